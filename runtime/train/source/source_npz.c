/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/diag/nearest.h"
#include "runtime/io/array/npz.h"
#include "runtime/train/data/data_files.h"

#include <string.h>

#include "runtime/train/source/array.h"

/* Archives, read whole: their members are the columns. */

/* Member |name| of each archive becomes a part of column |c|. */
static weir_status read_members(weir_array_opening *o, uint32_t c,
                                const char *path, uint32_t part,
                                const weir_npz *npz) {
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
static weir_status name_members(weir_array_opening *o, const weir_npz *npz,
                                uint32_t part_count) {
  const weir_data_spec *spec = o->context->spec;
  uint32_t count = 0;
  WEIR_TRY(weir_array_opening_columns(o, (uint32_t)weir_npz_count(npz)));
  for (uint32_t i = 0; i < o->count; i++) {
    weir_sv name = weir_npz_name(npz, i);
    const weir_column_spec *c = weir_data_column_spec(spec, name);
    if (c != NULL && c->ignored) continue;
    const char *copy =
        weir_arena_string(o->context->arena, name.data, name.size);
    if (copy == NULL) return weir_fail_memory(o->err, name.size);
    o->infos[count].name = (weir_sv){copy, name.size};
    o->infos[count].mark = c != NULL ? c->mark : spec->files[0].mark;
    WEIR_TRY(weir_array_opening_parts(o, count, part_count));
    count++;
  }
  o->count = count;
  if (count > 0) return WEIR_OK;
  return weir_fail(o->err, WEIR_W4024, &spec->files[0].mark,
                   "the archive holds no column");
}

static weir_status open_archive(weir_array_opening *o, const char *path,
                                uint32_t part, uint32_t part_count) {
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

static weir_status open_archives(weir_array_opening *o) {
  const weir_data_spec *spec = o->context->spec;
  const char *const *paths = NULL;
  uint32_t count = 0;
  WEIR_TRY(
      weir_data_paths(o->context, &spec->files[0], &paths, &count, o->err));
  for (uint32_t p = 0; p < count; p++)
    WEIR_TRY(open_archive(o, paths[p], p, count));
  return WEIR_OK;
}

static weir_status open_source(const weir_source_context *context,
                               weir_source **out_source, weir_error *err) {
  weir_array_opening o = {.context = context, .err = err};
  return weir_array_opening_end(&o, open_archives(&o), out_source);
}

static const weir_data_key kKeys[] = {
    {.name = "files"},
    {.name = NULL},
};

const weir_source_def weir_source_npz = {
    .form = {"npz", kKeys},
    .summary = ".npz archives; their members are the columns",
    .files = WEIR_FILES_LIST,
    .open = open_source,
};
