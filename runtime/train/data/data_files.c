/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/data/data_files.h"

#include <string.h>

#include "runtime/base/fs/fs_open.h"
#include "runtime/base/fs/fs_system.h"
#include "runtime/base/size.h"
#include "runtime/base/vec.h"
#include "runtime/graph/pattern.h"
#include "runtime/train/data/data_source.h"

/* Paths of a section. Patterns match names of one folder, hidden files left
 * out; matches are sorted, because a folder lists its files in any order and
 * the numbers of examples follow from that of files. */

enum { kMaxFiles = 1 << 16 };

/* ---- The root */

static weir_status join(weir_arena *arena, weir_sv folder, weir_sv name,
                        const char **out, weir_error *err) {
  size_t bytes = 0;
  if (!weir_size_add(folder.size, name.size, &bytes) ||
      !weir_size_add(bytes, 2, &bytes))
    return weir_fail_memory(err, SIZE_MAX);
  char *text = weir_arena_alloc(arena, bytes);
  if (text == NULL) return weir_fail_memory(err, bytes);
  size_t n = 0;
  if (folder.size > 0) memcpy(text, folder.data, n = folder.size);
  if (n > 0 && name.size > 0 && text[n - 1] != '/') text[n++] = '/';
  if (name.size > 0) memcpy(text + n, name.data, name.size);
  text[n + name.size] = '\0';
  *out = text;
  return WEIR_OK;
}

static weir_sv graph_folder(const weir_graph *graph) {
  weir_sv folder = graph->file;
  while (folder.size > 0 && folder.data[folder.size - 1] != '/') folder.size--;
  while (folder.size > 1 && folder.data[folder.size - 1] == '/') folder.size--;
  return folder;
}

weir_status weir_data_beside_graph(const weir_graph *graph, weir_sv name,
                                   weir_arena *arena, const char **out_path,
                                   weir_error *err) {
  char ordered[WEIR_PATH_BYTES];
  const char *text = NULL;
  WEIR_TRY(join(arena, name, (weir_sv){NULL, 0}, &text, err));
  WEIR_TRY(weir_path_beneath(text, ordered, err));
  return join(arena, graph_folder(graph), weir_sv_from(ordered), out_path, err);
}

weir_status weir_data_root(const weir_graph *graph, const char *option,
                           weir_arena *arena, const char **out_root,
                           weir_error *err) {
  if (option != NULL && option[0] != '\0')
    return join(arena, weir_sv_from(option), (weir_sv){NULL, 0}, out_root, err);
  weir_sv folder = graph_folder(graph);
  const weir_yaml *data = graph->data, *root = NULL;
  if (data != NULL && data->kind == WEIR_YAML_MAP)
    root = weir_yaml_get(data, "root");
  weir_sv said = {NULL, 0};
  WEIR_TRY(weir_spec_path(root, "data.root", &said, err));
  if (said.size > 0 && said.data[0] == '/') folder.size = 0;
  if (folder.size == 0 && said.size == 0) said = WEIR_SV_LIT(".");
  return join(arena, folder, said, out_root, err);
}

/* ---- Patterns */

typedef struct matches {
  weir_arena *arena;
  weir_sv folder, pattern;
  WEIR_VEC(const char *) paths;
  const weir_allocator *alloc;
  weir_status status;
  weir_error *err;
  const weir_mark *mark;
} matches;

static bool add_path(matches *m, const char *path) {
  if (m->paths.count == kMaxFiles) {
    m->status = weir_fail(m->err, WEIR_W4024, m->mark, "more than %d files",
                          (int)kMaxFiles);
    return false;
  }
  if (weir_vec_push(m->alloc, &m->paths, path)) return true;
  m->status = weir_fail_memory(m->err, sizeof path);
  return false;
}

static bool add_match(void *self, const char *name) {
  matches *m = self;
  if (name[0] == '.' || !weir_pattern_fits(m->pattern, weir_sv_from(name)))
    return true;
  const char *path = NULL;
  m->status = join(m->arena, m->folder, weir_sv_from(name), &path, m->err);
  return m->status == WEIR_OK && add_path(m, path);
}

/* Insertion by binary search: patterns match some thousand files at most. */
static void sort_paths(const char **paths, size_t count) {
  for (size_t i = 1; i < count; i++) {
    const char *path = paths[i];
    size_t low = 0, high = i;
    while (low < high) {
      size_t middle = low + (high - low) / 2;
      if (strcmp(paths[middle], path) <= 0)
        low = middle + 1;
      else
        high = middle;
    }
    memmove(paths + low + 1, paths + low, (i - low) * sizeof *paths);
    paths[low] = path;
  }
}

static weir_status add_paths(matches *m, const weir_source_context *context,
                             const weir_yaml *y) {
  weir_sv text = y->text;
  bool pattern = memchr(text.data, '*', text.size) != NULL ||
                 memchr(text.data, '?', text.size) != NULL;
  const char *path = NULL;
  m->mark = &y->mark;
  if (memchr(text.data, '\0', text.size) != NULL)
    return weir_fail(m->err, WEIR_W4024, &y->mark, "a path has no NUL bytes");
  if (!pattern) {
    WEIR_TRY(join(m->arena, text, (weir_sv){NULL, 0}, &path, m->err));
    return add_path(m, path) ? WEIR_OK : m->status;
  }
  size_t slash = text.size;
  while (slash > 0 && text.data[slash - 1] != '/') slash--;
  m->folder = (weir_sv){text.data, slash > 0 ? slash - 1 : 0};
  m->pattern = (weir_sv){text.data + slash, text.size - slash};
  WEIR_TRY(join(m->arena, slash > 0 ? m->folder : WEIR_SV_LIT("."),
                (weir_sv){NULL, 0}, &path, m->err));
  const weir_fs *fs = context->env->fs;
  size_t before = m->paths.count;
  if (fs->pieces == NULL)
    return weir_fail(m->err, WEIR_W4001, &y->mark,
                     "this file system cannot list folders");
  WEIR_TRY(
      fs->pieces->list(fs->self, context->root, path, m, add_match, m->err));
  WEIR_TRY(m->status);
  if (m->paths.count > before) {
    sort_paths(m->paths.items + before, m->paths.count - before);
    return WEIR_OK;
  }
  return weir_fail(m->err, WEIR_W4001, &y->mark,
                   "no file matches '%.*s' in '%.200s'", WEIR_SV(text),
                   context->root);
}

weir_status weir_data_paths(const weir_source_context *context,
                            const weir_files_spec *files,
                            const char *const **out_paths, uint32_t *out_count,
                            weir_error *err) {
  const weir_yaml *y = files->paths;
  matches m = {
      .arena = context->arena, .alloc = context->env->alloc, .err = err};
  weir_status s = WEIR_OK;
  uint32_t count = y->kind == WEIR_YAML_LIST ? y->count : 1;
  for (uint32_t i = 0; s == WEIR_OK && i < count; i++)
    s = add_paths(&m, context, y->kind == WEIR_YAML_LIST ? y->items[i] : y);
  const char **paths = NULL;
  if (s == WEIR_OK) {
    paths = weir_arena_array(context->arena, m.paths.count, sizeof *paths);
    if (paths == NULL)
      s = weir_fail_memory(err, sizeof *paths);
    else
      memcpy(paths, m.paths.items, m.paths.count * sizeof *paths);
  }
  *out_paths = paths;
  *out_count = (uint32_t)m.paths.count;
  weir_vec_free(m.alloc, &m.paths);
  return s;
}

/* ---- Columns */

weir_status weir_source_column_size(weir_source_column *column,
                                    weir_error *err) {
  size_t elements = 1, bytes = 0;
  for (int32_t d = 0; d < column->rank; d++)
    if (!weir_size_mul(elements, (size_t)column->dims[d], &elements))
      elements = SIZE_MAX;
  if (elements > INT64_MAX ||
      !weir_size_mul(elements, weir_dtype_size(column->dtype), &bytes) ||
      bytes > INT64_MAX)
    return weir_fail(err, WEIR_W4022, &column->mark,
                     "an example of column '%.*s' is too large",
                     WEIR_SV(column->name));
  column->elements = (int64_t)elements;
  column->bytes = bytes;
  return WEIR_OK;
}

const weir_column_spec *weir_data_column_spec(const weir_data_spec *spec,
                                              weir_sv name) {
  for (uint32_t i = 0; i < spec->column_count; i++)
    if (weir_sv_equal(spec->columns[i].name, name)) return &spec->columns[i];
  return NULL;
}
