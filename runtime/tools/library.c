/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "runtime/api/weir_internal.h"
#include "runtime/base/json/json.h"
#include "runtime/base/strbuf.h"
#include "runtime/base/yaml/yaml.h"
#include "runtime/graph/std/find.h"
#include "runtime/tools/tools.h"

/* Manuals of the library's blocks, made from its text: the comment before a
 * block says what it is, its keys are its signature, and its lines are shown as
 * they are, since they are the exact answer. */

static const weir_sv kLibrary = {"std/nn", 6};
static const weir_sv kAlias = {"nn", 2}; /* as everybody imports it */

typedef struct library {
  weir_arena arena;
  weir_sv text;
  const weir_yaml *blocks; /* a map; NULL: it could not be read */
} library;

static void open_library(library *lib) {
  const weir_yaml *root = NULL;
  weir_arena_init(&lib->arena, weir_allocator_system());
  lib->text = weir_std_find(kLibrary);
  lib->blocks = NULL;
  if (weir_yaml_parse(lib->text, "std/nn", NULL, &lib->arena, NULL, &root,
                      NULL) == WEIR_OK)
    lib->blocks = weir_yaml_get(root, "blocks");
}

static void close_library(library *lib) {
  weir_arena_release(&lib->arena);
}

/* Line |number|, from 1, without its end; empty past the last. */
static weir_sv line_of(weir_sv text, uint32_t number) {
  const char *at = text.data, *end = text.data + text.size;
  while (--number > 0 && at < end) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    at = stop != NULL ? stop + 1 : end;
  }
  const char *stop = memchr(at, '\n', (size_t)(end - at));
  return (weir_sv){at, (size_t)((stop != NULL ? stop : end) - at)};
}

static bool is_comment(weir_sv line) {
  return weir_sv_starts_with(line, "  # ");
}

/* The first line of the comment before the block at |e|; its own without. */
static uint32_t first_comment(const library *lib, const weir_yaml_entry *e) {
  uint32_t line = e->key_mark.line;
  while (line > 1 && is_comment(line_of(lib->text, line - 1))) line--;
  return line;
}

/* One part of a comment: examples stand two blanks further in. */
static weir_sv comment_text(weir_sv line, bool *example) {
  weir_sv text = {line.data + 4, line.size - 4};
  *example = weir_sv_starts_with(text, "  ");
  if (*example) text = (weir_sv){text.data + 2, text.size - 2};
  return text;
}

/* "kind = default" of an attribute. */
static void split_attr(weir_sv text, weir_sv *kind, weir_sv *fallback) {
  const char *equals = memchr(text.data, '=', text.size);
  *kind = text;
  *fallback = (weir_sv){NULL, 0};
  if (equals == NULL) return;
  kind->size = (size_t)(equals - text.data);
  *fallback = (weir_sv){equals + 1, text.size - kind->size - 1};
  while (kind->size > 0 && kind->data[kind->size - 1] == ' ') kind->size--;
  while (fallback->size > 0 && fallback->data[0] == ' ') {
    fallback->data++;
    fallback->size--;
  }
}

/* A manual under way. */
typedef struct manual {
  const library *lib;
  const weir_yaml_entry *e;
  const weir_yaml *in, *attrs;
  uint32_t first, last; /* lines: of the comment, the block's last */
} manual;

static manual manual_of(const library *lib, uint32_t i) {
  const weir_yaml_entry *e = &lib->blocks->entries[i];
  manual m = {.lib = lib,
              .e = e,
              .in = weir_yaml_get(e->value, "in"),
              .attrs = weir_yaml_get(e->value, "attrs"),
              .first = first_comment(lib, e)};
  m.last = e->key_mark.line;
  while (weir_sv_starts_with(line_of(lib->text, m.last + 1), "    ")) m.last++;
  return m;
}

static void put_comment(const manual *m, bool examples, const char *before,
                        weir_strbuf *out) {
  const char *between = before;
  for (uint32_t i = m->first; i < m->e->key_mark.line; i++) {
    bool example;
    weir_sv text = comment_text(line_of(m->lib->text, i), &example);
    if (example != examples) continue;
    weir_strbuf_printf(out, "%s%.*s", between, WEIR_SV(text));
    between = examples ? "\n  " : "\n";
  }
}

static void put_call(const manual *m, weir_strbuf *out) {
  const char *between = "";
  weir_strbuf_printf(out, "%.*s.%.*s(", WEIR_SV(kAlias), WEIR_SV(m->e->key));
  for (uint32_t i = 0; m->in != NULL && i < m->in->count; i++) {
    weir_strbuf_printf(out, "%s%.*s", between, WEIR_SV(m->in->items[i]->text));
    between = ", ";
  }
  for (uint32_t i = 0; m->attrs != NULL && i < m->attrs->count; i++) {
    const weir_yaml_entry *a = &m->attrs->entries[i];
    weir_sv kind, fallback;
    split_attr(a->value->text, &kind, &fallback);
    weir_strbuf_printf(
        out, "%s%.*s%s%.*s", between, WEIR_SV(a->key),
        fallback.data != NULL ? "=" : "",
        WEIR_SV(fallback.data != NULL ? fallback : WEIR_SV_LIT("")));
    between = ", ";
  }
  weir_strbuf_text(out, ")");
}

static void put_text(const manual *m, weir_strbuf *out) {
  weir_strbuf_printf(out, "%.*s.%.*s: ", WEIR_SV(kAlias), WEIR_SV(m->e->key));
  put_comment(m, false, "", out);
  weir_strbuf_text(out, "\n\n  ");
  put_call(m, out);
  weir_strbuf_text(out, "\n\nA block of the library: import: {nn: std/nn}\n");
  for (uint32_t i = 0; m->attrs != NULL && i < m->attrs->count; i++) {
    const weir_yaml_entry *a = &m->attrs->entries[i];
    weir_sv kind, fallback;
    split_attr(a->value->text, &kind, &fallback);
    weir_strbuf_printf(out, "%s  %-12.*s %.*s, ",
                       i == 0 ? "\nAttributes\n" : "", WEIR_SV(a->key),
                       WEIR_SV(kind));
    if (fallback.data != NULL)
      weir_strbuf_printf(out, "default %.*s\n", WEIR_SV(fallback));
    else
      weir_strbuf_text(out, "required\n");
  }
  put_comment(m, true, "\nExample\n  ", out);
  weir_strbuf_text(out, "\n\nIt stands for\n");
  for (uint32_t i = m->e->key_mark.line; i <= m->last; i++)
    weir_strbuf_printf(out, "%.*s\n", WEIR_SV(line_of(m->lib->text, i)));
}

static void put_part(weir_json_writer *w, weir_strbuf *part, const char *key) {
  weir_json_key(w, key);
  weir_json_string(w, weir_strbuf_view(part));
  weir_strbuf_clear(part);
}

static void put_attrs(const manual *m, weir_json_writer *w) {
  weir_json_key(w, "attributes");
  weir_json_array_begin(w, false);
  for (uint32_t i = 0; m->attrs != NULL && i < m->attrs->count; i++) {
    const weir_yaml_entry *a = &m->attrs->entries[i];
    weir_sv kind, fallback;
    split_attr(a->value->text, &kind, &fallback);
    weir_json_object_begin(w, true);
    weir_json_key(w, "name");
    weir_json_string(w, a->key);
    weir_json_key(w, "kind");
    weir_json_string(w, kind);
    weir_json_key(w, "default");
    if (fallback.data != NULL)
      weir_json_string(w, fallback);
    else
      weir_json_null(w);
    weir_json_object_end(w);
  }
  weir_json_array_end(w);
}

static void put_json(const manual *m, weir_strbuf *out) {
  weir_json_writer w;
  weir_strbuf part;
  weir_strbuf_init(&part, weir_allocator_system());
  weir_json_writer_init(&w, weir_strbuf_writer(out), 2);
  weir_json_object_begin(&w, false);
  weir_strbuf_printf(&part, "%.*s.%.*s", WEIR_SV(kAlias), WEIR_SV(m->e->key));
  put_part(&w, &part, "name");
  weir_json_key(&w, "library");
  weir_json_string(&w, kLibrary);
  put_comment(m, false, "", &part);
  put_part(&w, &part, "summary");
  put_call(m, &part);
  put_part(&w, &part, "call");
  put_attrs(m, &w);
  put_comment(m, true, "", &part);
  put_part(&w, &part, "example");
  weir_json_object_end(&w);
  weir_json_finish(&w);
  weir_strbuf_release(&part);
}

/* The name behind "nn." or "std/nn."; empty: another. */
static weir_sv name_in_library(weir_sv name) {
  const weir_sv *prefixes[] = {&kAlias, &kLibrary};
  for (size_t i = 0; i < 2; i++) {
    size_t n = prefixes[i]->size;
    if (name.size > n && memcmp(name.data, prefixes[i]->data, n) == 0 &&
        name.data[n] == '.')
      return (weir_sv){name.data + n + 1, name.size - n - 1};
  }
  return (weir_sv){"", 0};
}

bool weir_tools_block_write(const char *name, bool json, weir_write_fn write,
                            void *self) {
  library lib;
  bool found = false;
  weir_sv wanted = name_in_library(weir_sv_from(name));
  weir_strbuf out;
  weir_strbuf_init(&out, weir_allocator_system());
  open_library(&lib);
  for (uint32_t i = 0; lib.blocks != NULL && i < lib.blocks->count; i++) {
    if (!weir_sv_equal(lib.blocks->entries[i].key, wanted)) continue;
    manual m = manual_of(&lib, i);
    found = true;
    if (json)
      put_json(&m, &out);
    else
      put_text(&m, &out);
  }
  if (found) (void)write(self, out.data, out.size);
  weir_strbuf_release(&out);
  close_library(&lib);
  return found;
}

bool weir_tools_block(size_t i, char *name, size_t size, char *summary,
                      size_t summary_size) {
  library lib;
  open_library(&lib);
  bool found = lib.blocks != NULL && i < lib.blocks->count;
  if (found) {
    manual m = manual_of(&lib, (uint32_t)i);
    bool example;
    weir_sv text = comment_text(line_of(lib.text, m.first), &example);
    snprintf(name, size, "%.*s.%.*s", WEIR_SV(kAlias), WEIR_SV(m.e->key));
    snprintf(summary, summary_size, "%.*s", WEIR_SV(text));
  }
  close_library(&lib);
  return found;
}
