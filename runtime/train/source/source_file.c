/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/base/size.h"
#include "runtime/io/array/npz.h"
#include "runtime/train/source/source_array.h"

/* Opens npy, idx and npz: all in memory when it is small enough, else npy and
 * idx row by row. */

typedef struct opening {
  const weir_source_context *context;
  weir_array_column *columns;
  weir_source_column *infos;
  uint32_t count;
  weir_error *err;
} opening;

static weir_status make_columns(opening *o, uint32_t count) {
  weir_arena *arena = o->context->arena;
  o->columns = weir_arena_array(arena, count, sizeof *o->columns);
  o->infos = weir_arena_array(arena, count, sizeof *o->infos);
  if (o->columns == NULL || o->infos == NULL)
    return weir_fail_memory(o->err, count * sizeof *o->infos);
  o->count = count;
  return WEIR_OK;
}

static weir_status make_parts(opening *o, uint32_t c, uint32_t count) {
  weir_array_column *column = &o->columns[c];
  column->parts =
      weir_arena_array(o->context->arena, count, sizeof *column->parts);
  if (column->parts == NULL)
    return weir_fail_memory(o->err, count * sizeof *column->parts);
  column->part_count = count;
  return WEIR_OK;
}

/* ---- npy and idx */

static weir_status open_column(opening *o, uint32_t c,
                               const weir_files_spec *files) {
  const weir_source_context *x = o->context;
  const char *const *paths = NULL;
  uint32_t count = 0;
  o->infos[c].name = files->column;
  o->infos[c].mark = files->mark;
  WEIR_TRY(weir_data_paths(x, files, &paths, &count, o->err));
  WEIR_TRY(make_parts(o, c, count));
  for (uint32_t p = 0; p < count; p++)
    WEIR_TRY(weir_array_file_open(x->env, x->root, paths[p],
                                  &o->columns[c].parts[p].file, o->err));
  return WEIR_OK;
}

static weir_status load_part(opening *o, weir_array_part *part) {
  WEIR_TRY(weir_array_file_load(part->file, &part->tensor, o->err));
  weir_array_file_release(part->file);
  part->file = NULL;
  return WEIR_OK;
}

/* Bytes of all parts in memory, at most SIZE_MAX. */
static size_t total_bytes(const opening *o) {
  size_t sum = 0;
  for (uint32_t c = 0; c < o->count; c++)
    for (uint32_t p = 0; p < o->columns[c].part_count; p++) {
      const weir_array_file *f = o->columns[c].parts[p].file;
      size_t bytes = weir_shape_bytes(&f->shape, f->dtype);
      if (!weir_size_add(sum, bytes, &sum)) return SIZE_MAX;
    }
  return sum;
}

static weir_status load_small(opening *o) {
  bool all = total_bytes(o) <= o->context->spec->memory_bytes;
  for (uint32_t c = 0; c < o->count; c++)
    for (uint32_t p = 0; p < o->columns[c].part_count; p++) {
      weir_array_part *part = &o->columns[c].parts[p];
      if (all || part->file->fortran) WEIR_TRY(load_part(o, part));
    }
  return WEIR_OK;
}

static weir_status open_arrays(opening *o) {
  const weir_data_spec *spec = o->context->spec;
  WEIR_TRY(make_columns(o, spec->file_count));
  for (uint32_t c = 0; c < o->count; c++)
    WEIR_TRY(open_column(o, c, &spec->files[c]));
  return load_small(o);
}

/* ---- npz */

/* Member |name| of each archive becomes a part of column |c|. */
static weir_status read_members(opening *o, uint32_t c, const char *path,
                                uint32_t part, const weir_npz *npz) {
  size_t n = weir_npz_count(npz), i = 0;
  weir_sv name = o->infos[c].name;
  weir_mark at = {.file = path};
  while (i < n && !weir_sv_equal(weir_npz_name(npz, i), name)) i++;
  if (i < n)
    return weir_npz_read(npz, i, &o->columns[c].parts[part].tensor, o->err);
  weir_status s = weir_fail(o->err, WEIR_W4010, &at,
                            "the archive holds no array '%.*s'", WEIR_SV(name));
  weir_sv near = weir_nearest_name(name, n, weir_npz_name, npz);
  if (near.size > 0) weir_hint(o->err, "did you mean '%.*s'?", WEIR_SV(near));
  return s;
}

/* The first archive's members are the columns, but for ignored ones. */
static weir_status name_members(opening *o, const weir_npz *npz,
                                uint32_t part_count) {
  const weir_data_spec *spec = o->context->spec;
  uint32_t count = 0;
  WEIR_TRY(make_columns(o, (uint32_t)weir_npz_count(npz)));
  for (uint32_t i = 0; i < o->count; i++) {
    weir_sv name = weir_npz_name(npz, i);
    const weir_column_spec *c = weir_data_column_spec(spec, name);
    if (c != NULL && c->ignored) continue;
    const char *copy =
        weir_arena_string(o->context->arena, name.data, name.size);
    if (copy == NULL) return weir_fail_memory(o->err, name.size);
    o->infos[count].name = (weir_sv){copy, name.size};
    o->infos[count].mark = c != NULL ? c->mark : spec->files[0].mark;
    WEIR_TRY(make_parts(o, count, part_count));
    count++;
  }
  o->count = count;
  if (count > 0) return WEIR_OK;
  return weir_fail(o->err, WEIR_W4024, &spec->files[0].mark,
                   "the archive holds no column");
}

static weir_status open_archive(opening *o, const char *path, uint32_t part,
                                uint32_t part_count) {
  const weir_env *env = o->context->env;
  weir_file file = {0};
  weir_npz *npz = NULL;
  uint64_t limit = o->context->spec->memory_bytes;
  weir_status s =
      env->fs->read(env->fs->self, o->context->root, path,
                    limit < SIZE_MAX / 2 ? (size_t)limit : SIZE_MAX / 2, false,
                    &file, o->err);
  if (s != WEIR_OK && o->err != NULL && strcmp(o->err->id, "W4015") == 0)
    weir_hint(o->err, "archives are read whole; raise `memory`");
  if (s == WEIR_OK)
    s = weir_npz_open(env->alloc, file.bytes, path, &npz, o->err);
  if (s == WEIR_OK && part == 0) s = name_members(o, npz, part_count);
  for (uint32_t c = 0; s == WEIR_OK && c < o->count; c++)
    s = read_members(o, c, path, part, npz);
  weir_npz_release(npz);
  env->fs->close(env->fs->self, &file);
  return s;
}

static weir_status open_archives(opening *o) {
  const weir_data_spec *spec = o->context->spec;
  const char *const *paths = NULL;
  uint32_t count = 0;
  WEIR_TRY(
      weir_data_paths(o->context, &spec->files[0], &paths, &count, o->err));
  for (uint32_t p = 0; p < count; p++)
    WEIR_TRY(open_archive(o, paths[p], p, count));
  return WEIR_OK;
}

weir_status weir_source_array_open(const weir_source_context *context,
                                   weir_source **out_source, weir_error *err) {
  opening o = {.context = context, .err = err};
  *out_source = NULL;
  weir_status s = context->spec->kind == WEIR_DATA_NPZ ? open_archives(&o)
                                                       : open_arrays(&o);
  if (s == WEIR_OK)
    return weir_source_arrays(context, o.columns, o.infos, o.count, out_source,
                              err);
  weir_array_columns_release(o.columns, o.count);
  return s;
}
