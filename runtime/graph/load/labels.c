/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/load/labels.h"

#include <string.h>

#include "runtime/base/utf8.h"
#include "runtime/graph/graph_internal.h"
#include "runtime/graph/load/keys.h"
#include "runtime/graph/load/report.h"

/* `labels: FILE` or `labels: [shirt, coat]`: the name of class i is line or
 * item i. A name is any text that can be shown: not empty, UTF-8, without
 * characters that change a terminal; several classes may have the same. The
 * graph's file lies beneath its folder; the caller's, which takes its place,
 * may lie anywhere. */

enum { kMostBytes = 4 << 20, kMostNames = 1 << 20 };

static bool is_shown(weir_sv name) {
  if (name.size == 0 || !weir_utf8_valid(name, NULL)) return false;
  while (name.size > 0) {
    uint32_t point = 0;
    size_t n = weir_utf8_decode(name, &point);
    if (weir_utf8_unsafe(point) || weir_utf8_line_break(name) > 0) return false;
    name.data += n;
    name.size -= n;
  }
  return true;
}

/* Keeps |name| as the next one; its text lives as long as the graph. */
static bool keep(weir_loader *l, weir_sv *names, weir_sv name) {
  weir_graph *g = weir_graph_builder_graph(l->builder);
  char *copy = weir_arena_string(l->arena, name.data, name.size);
  if (copy == NULL) return weir_report_memory(l);
  names[g->label_count++] = (weir_sv){copy, name.size};
  return true;
}

static weir_sv *room_for(weir_loader *l, size_t count) {
  weir_sv *names = weir_arena_array(l->arena, count + 1, sizeof *names);
  weir_graph_builder_graph(l->builder)->labels = names;
  if (names == NULL) weir_report_memory(l);
  return names;
}

static bool read_list(weir_loader *l, const weir_yaml *at) {
  weir_sv *names = room_for(l, at->count);
  for (uint32_t i = 0; names != NULL && i < at->count; i++) {
    const weir_yaml *y = at->items[i];
    if (!weir_want_kind(l, y, WEIR_YAML_SCALAR, "a label")) return false;
    if (!is_shown(y->text))
      return weir_report(l, WEIR_W4039, &y->mark,
                         "class %u has no name that can be shown", i);
    if (!keep(l, names, y->text)) return false;
  }
  return names != NULL;
}

/* The next line without its end. */
static weir_sv next_line(weir_sv text, size_t *at) {
  const char *from = text.data + *at;
  const char *end = memchr(from, '\n', text.size - *at);
  size_t size = end != NULL ? (size_t)(end - from) : text.size - *at;
  *at += size + (end != NULL);
  if (size > 0 && from[size - 1] == '\r') size--;
  return (weir_sv){from, size};
}

/* Where names are read from: |at| is its place in the graph, or NULL. */
typedef struct source {
  const weir_mark *at;
  const char *root, *path;
} source;

static bool bad(weir_loader *l, const source *from, const char *what,
                size_t line) {
  return weir_report(l, WEIR_W4039, from->at, "labels '%s': line %zu %s",
                     from->path, line, what);
}

static bool read_lines(weir_loader *l, const source *from, weir_sv text) {
  size_t count = 0, at = 0;
  while (at < text.size) {
    weir_sv line = next_line(text, &at);
    if (++count > kMostNames)
      return bad(l, from, "is more than can be read", count);
    if (!is_shown(line))
      return bad(l, from, "is no name that can be shown", count);
  }
  if (count == 0) return bad(l, from, "is not there: the file is empty", 1);
  weir_sv *names = room_for(l, count);
  for (at = 0; names != NULL && at < text.size;)
    if (!keep(l, names, next_line(text, &at))) return false;
  return names != NULL;
}

static bool read_file(weir_loader *l, const source *from) {
  const weir_fs *fs = l->env->fs;
  weir_file file = {0};
  weir_error err = WEIR_ERROR_INIT;
  weir_status s = fs->read(fs->self, from->root, from->path, kMostBytes, false,
                           &file, &err);
  if (s == WEIR_RESOURCE_EXHAUSTED && strcmp(err.id, "W4015") != 0)
    return weir_report_error(l, &err);
  if (s != WEIR_OK) {
    weir_error_id id = strcmp(err.id, "W4002") == 0   ? WEIR_W4002
                       : strcmp(err.id, "W4015") == 0 ? WEIR_W4015
                                                      : WEIR_W4001;
    return weir_report(l, id, from->at, "labels '%s': %s", from->path,
                       err.message);
  }
  weir_sv text = {(const char *)file.bytes.data, file.bytes.size};
  bool ok = read_lines(l, from, text);
  fs->close(fs->self, &file);
  return ok;
}

/* The graph's own file, beneath its folder. */
static bool read_own(weir_loader *l, const weir_yaml *at) {
  source from = {.at = &at->mark, .root = "."};
  char *path = weir_arena_string(&l->work, at->text.data, at->text.size);
  char *root = weir_arena_string(&l->work, l->root.data, l->root.size);
  if (path == NULL || root == NULL) return weir_report_memory(l);
  if (memchr(path, '\0', at->text.size) != NULL)
    return weir_report(l, WEIR_W4001, &at->mark, "the path has a NUL");
  if (l->root.size > 0) from.root = root;
  from.path = path;
  return read_file(l, &from);
}

bool weir_labels_read(weir_loader *l) {
  const weir_yaml *at = weir_yaml_get(l->main->root, "labels");
  const char *other = l->options->labels;
  if (other != NULL) return read_file(l, &(source){NULL, NULL, other});
  if (at == NULL) return true;
  if (at->kind == WEIR_YAML_LIST) return read_list(l, at);
  if (at->kind == WEIR_YAML_SCALAR) return read_own(l, at);
  return weir_report(l, WEIR_W1010, &at->mark,
                     "labels is %s, must be a file or a list of names",
                     weir_yaml_kind_text(at->kind));
}
