/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/cluster/tls.h"

#include <string.h>

/* Paths are kept as patterns: what is no `%t` of the user's is spelled so that
 * it stays as it is, the folder of the file for one. */

enum { PATH_BYTES = 1024 };

static weir_status bad(weir_error *err, const weir_mark *at, const char *what,
                       weir_sv text) {
  weir_status s = weir_fail(err, WEIR_W3020, at, "cluster: tls: %s%s%.*s", what,
                            text.size > 0 ? ": " : "", WEIR_SV(text));
  weir_hint(err,
            "`tls: FOLDER`, or {ca: FILE, cert: FILE, key: FILE} with %%t for "
            "the task, as in certs/%%t.pem");
  return s;
}

/* The text of |y| as a path. */
static weir_status read_path(const weir_yaml *y, bool pattern, weir_sv *out,
                             weir_error *err) {
  const weir_sv none = {"", 0};
  if (y->kind != WEIR_YAML_SCALAR || y->text.size == 0)
    return bad(err, &y->mark, "expected a path", none);
  *out = y->text;
  if (out->size > PATH_BYTES)
    return bad(err, &y->mark, "paths end at 1024 bytes", none);
  for (size_t i = 0; i < out->size; i++) {
    unsigned char c = (unsigned char)out->data[i];
    if (c < ' ' || c == 127)
      return bad(err, &y->mark, "a path with a control character", none);
    if (c != '%' || !pattern) continue;
    if (++i == out->size || (out->data[i] != 't' && out->data[i] != '%'))
      return bad(err, &y->mark, "% stands before t, for the task, or % only",
                 *out);
  }
  return WEIR_OK;
}

/* A path in the making: bytes are counted before they are written. */
typedef struct path {
  char *to; /* NULL: they are counted only */
  size_t size;
} path;

static void add(path *p, const char *data, size_t size, bool literally) {
  for (size_t i = 0; i < size; i++) {
    for (int n = literally && data[i] == '%' ? 2 : 1; n > 0; n--) {
      if (p->to != NULL) p->to[p->size] = data[i];
      p->size++;
    }
  }
}

/* The folder of the file that |y| stands in, with the / behind it. */
static weir_sv folder_of(const weir_yaml *y) {
  const char *file = y->mark.file;
  const char *slash = file != NULL ? strrchr(file, '/') : NULL;
  return (weir_sv){file, slash != NULL ? (size_t)(slash - file) + 1 : 0};
}

static void join(path *p, const weir_yaml *y, bool pattern, const char *end) {
  weir_sv folder = folder_of(y);
  if (y->text.data[0] != '/') add(p, folder.data, folder.size, true);
  add(p, y->text.data, y->text.size, !pattern);
  add(p, end, strlen(end), false);
}

static weir_status keep(const weir_yaml *y, bool pattern, const char *end,
                        weir_arena *arena, weir_sv *out) {
  path p = {NULL, 0};
  join(&p, y, pattern, end);
  p.to = weir_arena_alloc(arena, p.size + 1);
  if (p.to == NULL) return WEIR_RESOURCE_EXHAUSTED;
  p.size = 0;
  join(&p, y, pattern, end);
  p.to[p.size] = '\0';
  *out = (weir_sv){p.to, p.size};
  return WEIR_OK;
}

weir_status weir_cluster_tls_read(const weir_yaml *y, weir_arena *arena,
                                  weir_cluster_tls *out, weir_error *err) {
  const struct {
    const char *key, *in_folder;
    weir_sv *to;
  } files[] = {{"ca", "/ca.pem", &out->ca},
               {"cert", "/%t.pem", &out->cert},
               {"key", "/%t.key", &out->key}};
  const weir_yaml *of[3] = {y, y, y};
  bool map = y->kind == WEIR_YAML_MAP;
  for (uint32_t i = 0; map && i < y->count; i++) {
    weir_sv key = y->entries[i].key;
    bool known = weir_sv_starts_with(key, "x-");
    for (int k = 0; k < 3; k++) known |= weir_sv_is(key, files[k].key);
    if (!known)
      return bad(err, &y->entries[i].key_mark,
                 "no such key, expected ca, cert or key", key);
  }
  for (int k = 0; k < 3; k++) {
    weir_sv text = {"", 0};
    if (map) of[k] = weir_yaml_get(y, files[k].key);
    if (of[k] == NULL)
      return bad(err, &y->mark, "a file is missing",
                 weir_sv_from(files[k].key));
    WEIR_TRY(read_path(of[k], map, &text, err));
    if (keep(of[k], map, map ? "" : files[k].in_folder, arena, files[k].to) !=
        WEIR_OK)
      return weir_fail_memory(err, text.size);
  }
  return WEIR_OK;
}

static void expand(path *p, weir_sv pattern, const char *task) {
  for (size_t i = 0; i < pattern.size; i++) {
    bool escape = pattern.data[i] == '%' && i + 1 < pattern.size;
    if (escape && pattern.data[++i] == 't')
      add(p, task, strlen(task), false);
    else
      add(p, &pattern.data[i], 1, false);
  }
}

const char *weir_cluster_tls_path(weir_sv pattern, const char *task,
                                  weir_arena *arena) {
  path p = {NULL, 0};
  expand(&p, pattern, task);
  p.to = weir_arena_alloc(arena, p.size + 1);
  if (p.to == NULL) return NULL;
  p.size = 0;
  expand(&p, pattern, task);
  p.to[p.size] = '\0';
  return p.to;
}
