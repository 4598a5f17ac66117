/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/source/array.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "runtime/base/size.h"
#include "runtime/train/data/data_files.h"

/* Columns that are arrays, cut into parts (files). Example i is found by
 * bisection over the parts' first examples, and a run of examples that crosses
 * parts is read piece by piece. All parts in memory if they fit into `memory`,
 * else row by row from their files. */

enum { kWindow = 65536 };

typedef struct array_source {
  weir_source base;
  weir_array_column *columns;
} array_source;

/* A stream for each column of gzip files. */
typedef struct array_cursor {
  const weir_env *env;
  uint32_t count;
  weir_stream *streams[];
} array_cursor;

void weir_array_columns_release(weir_array_column *columns, uint32_t count) {
  for (uint32_t c = 0; columns != NULL && c < count; c++)
    for (uint32_t p = 0; p < columns[c].part_count; p++) {
      weir_tensor_unref(columns[c].parts[p].tensor);
      weir_array_file_release(columns[c].parts[p].file);
    }
}

static void array_release(weir_source *base) {
  array_source *s = (array_source *)base;
  weir_array_columns_release(s->columns, base->column_count);
  weir_free(base->env->alloc, s);
}

static void cursor_release(const weir_source *source,
                           weir_source_cursor *cursor) {
  array_cursor *c = (array_cursor *)cursor;
  (void)source;
  if (c == NULL) return;
  for (uint32_t i = 0; i < c->count; i++) weir_stream_release(c->streams[i]);
  weir_free(c->env->alloc, c);
}

static bool needs_stream(const weir_array_column *column) {
  for (uint32_t p = 0; p < column->part_count; p++) {
    const weir_array_file *f = column->parts[p].file;
    if (f != NULL && f->blob->gzip) return true;
  }
  return false;
}

static weir_status cursor_create(const weir_source *base,
                                 weir_source_cursor **out_cursor,
                                 weir_error *err) {
  const array_source *s = (const array_source *)base;
  *out_cursor = NULL;
  if (!base->forward_only) return WEIR_OK;
  size_t bytes =
      sizeof(array_cursor) + base->column_count * sizeof(weir_stream *);
  array_cursor *c = weir_alloc_array(base->env->alloc, 1, bytes);
  if (c == NULL) return weir_fail_memory(err, bytes);
  c->env = base->env;
  c->count = base->column_count;
  weir_status status = WEIR_OK;
  for (uint32_t i = 0; status == WEIR_OK && i < c->count; i++)
    if (needs_stream(&s->columns[i]))
      status = weir_stream_create(base->env, kWindow, &c->streams[i], err);
  if (status == WEIR_OK)
    *out_cursor = (weir_source_cursor *)c;
  else
    cursor_release(base, (weir_source_cursor *)c);
  return status;
}

/* The part that holds example |i|. */
static const weir_array_part *part_of(const weir_array_column *c, int64_t i) {
  uint32_t low = 0, high = c->part_count - 1;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (c->parts[middle].first + c->parts[middle].rows <= i)
      low = middle + 1;
    else
      high = middle;
  }
  assert(c->parts[low].first <= i &&
         i - c->parts[low].first < c->parts[low].rows);
  return &c->parts[low];
}

static weir_status array_read(const weir_source *base,
                              weir_source_cursor *cursor, int64_t first,
                              int64_t count, void *const *dst,
                              weir_error *err) {
  const array_source *s = (const array_source *)base;
  array_cursor *cur = (array_cursor *)cursor;
  for (uint32_t c = 0; c < base->column_count; c++) {
    size_t bytes = base->columns[c].bytes;
    uint8_t *to = dst[c];
    for (int64_t i = first; to != NULL && i < first + count;) {
      const weir_array_part *p = part_of(&s->columns[c], i);
      int64_t n = p->first + p->rows - i;
      if (n > first + count - i) n = first + count - i;
      size_t row = (size_t)(i - p->first), size = bytes * (size_t)n;
      if (p->tensor != NULL) {
        if (size > 0)
          memcpy(to, (uint8_t *)p->tensor->data + row * bytes, size);
      } else {
        WEIR_TRY(weir_array_file_read(p->file,
                                      cur != NULL ? cur->streams[c] : NULL,
                                      (int64_t)row, n, to, err));
      }
      to += size;
      i += n;
    }
  }
  return WEIR_OK;
}

static const weir_source_vtable kArrays = {cursor_create, cursor_release,
                                           array_read, array_release};

/* ---- Making one */

static const weir_shape *shape_of(const weir_array_part *p) {
  return p->tensor != NULL ? &p->tensor->shape : &p->file->shape;
}

static weir_status fail_parts(const weir_source_column *info,
                              const weir_array_part *part, weir_error *err) {
  char text[128];
  return weir_fail(
      err, WEIR_W4022, &info->mark,
      "column '%.*s': a later file holds %s%s, another type than the first",
      WEIR_SV(info->name),
      weir_dtype_name(part->tensor != NULL ? part->tensor->dtype
                                           : part->file->dtype),
      weir_shape_print(shape_of(part), NULL, NULL, text, sizeof text));
}

/* The shape that `columns` gives, in place of the file's. */
static weir_status reshape(const weir_source_context *context,
                           weir_source_column *info, weir_error *err) {
  const weir_column_spec *spec =
      weir_data_column_spec(context->spec, info->name);
  if (spec == NULL || spec->rank < 0) return WEIR_OK;
  int64_t had = info->elements;
  info->rank = spec->rank;
  memcpy(info->dims, spec->dims, sizeof info->dims);
  WEIR_TRY(weir_source_column_size(info, err));
  if (info->elements == had) return WEIR_OK;
  return weir_fail(err, WEIR_W4022, &spec->mark,
                   "column '%.*s' has %" PRId64
                   " elements in an example, its shape %" PRId64,
                   WEIR_SV(info->name), had, info->elements);
}

/* Fills in a column's type and its parts' places; gives its examples. */
static weir_status describe(const weir_source_context *context,
                            weir_array_column *column, weir_source_column *info,
                            int64_t *out_examples, weir_error *err) {
  int64_t at = 0;
  for (uint32_t p = 0; p < column->part_count; p++) {
    weir_array_part *part = &column->parts[p];
    const weir_shape *shape = shape_of(part);
    weir_dtype dtype =
        part->tensor != NULL ? part->tensor->dtype : part->file->dtype;
    if (shape->rank == 0)
      return weir_fail(err, WEIR_W4022, &info->mark,
                       "column '%.*s' is a single number; examples lie along "
                       "the first dimension",
                       WEIR_SV(info->name));
    if (p == 0) {
      info->dtype = dtype;
      info->rank = shape->rank - 1;
      for (int d = 0; d < info->rank; d++)
        info->dims[d] = shape->dims[d + 1].value;
    }
    bool same = dtype == info->dtype && shape->rank == info->rank + 1;
    for (int d = 0; same && d < info->rank; d++)
      same = shape->dims[d + 1].value == info->dims[d];
    if (!same) return fail_parts(info, part, err);
    part->first = at;
    part->rows = shape->dims[0].value;
    if (!weir_dim_add_checked(at, part->rows, &at))
      return weir_fail_memory(err, SIZE_MAX);
  }
  *out_examples = at;
  WEIR_TRY(weir_source_column_size(info, err));
  return reshape(context, info, err);
}

static weir_status check_counts(const weir_source_column *infos,
                                const int64_t *counts, uint32_t count,
                                weir_error *err) {
  for (uint32_t c = 1; c < count; c++)
    if (counts[c] != counts[0])
      return weir_fail(
          err, WEIR_W4025, &infos[c].mark,
          "column '%.*s' has %" PRId64 " examples, column '%.*s' %" PRId64,
          WEIR_SV(infos[c].name), counts[c], WEIR_SV(infos[0].name), counts[0]);
  return WEIR_OK;
}

weir_status weir_source_arrays(const weir_source_context *context,
                               weir_array_column *columns,
                               weir_source_column *infos, uint32_t count,
                               weir_source **out_source, weir_error *err) {
  const weir_allocator *alloc = context->env->alloc;
  weir_status s = WEIR_OK;
  array_source *source = weir_alloc_array(alloc, 1, sizeof *source);
  int64_t *counts = weir_arena_array(context->arena, count, sizeof *counts);
  *out_source = NULL;
  if (source == NULL || counts == NULL)
    s = weir_fail_memory(err, sizeof *source);
  for (uint32_t c = 0; s == WEIR_OK && c < count; c++)
    s = describe(context, &columns[c], &infos[c], &counts[c], err);
  if (s == WEIR_OK) s = check_counts(infos, counts, count, err);
  if (s != WEIR_OK) {
    weir_array_columns_release(columns, count);
    weir_free(alloc, source);
    return s;
  }
  source->base = (weir_source){.vtable = &kArrays,
                               .env = context->env,
                               .columns = infos,
                               .column_count = count,
                               .examples = counts[0]};
  source->columns = columns;
  for (uint32_t c = 0; c < count; c++)
    if (needs_stream(&columns[c])) {
      source->base.forward_only = true;
      source->base.file = columns[c].parts[0].file->blob->path;
    }
  *out_source = &source->base;
  return WEIR_OK;
}

/* ---- Opening */

weir_status weir_array_opening_columns(weir_array_opening *o, uint32_t count) {
  weir_arena *arena = o->context->arena;
  o->columns = weir_arena_array(arena, count, sizeof *o->columns);
  o->infos = weir_arena_array(arena, count, sizeof *o->infos);
  if (o->columns == NULL || o->infos == NULL)
    return weir_fail_memory(o->err, count * sizeof *o->infos);
  o->count = count;
  return WEIR_OK;
}

weir_status weir_array_opening_parts(weir_array_opening *o, uint32_t c,
                                     uint32_t count) {
  weir_array_column *column = &o->columns[c];
  column->parts =
      weir_arena_array(o->context->arena, count, sizeof *column->parts);
  if (column->parts == NULL)
    return weir_fail_memory(o->err, count * sizeof *column->parts);
  column->part_count = count;
  return WEIR_OK;
}

weir_status weir_array_opening_end(weir_array_opening *o, weir_status status,
                                   weir_source **out_source) {
  *out_source = NULL;
  if (status == WEIR_OK)
    return weir_source_arrays(o->context, o->columns, o->infos, o->count,
                              out_source, o->err);
  weir_array_columns_release(o->columns, o->count);
  return status;
}

/* ---- Files by column: all in memory when they are small enough, else those
 * that can are read row by row. */

static weir_status open_column(weir_array_opening *o, uint32_t c,
                               const weir_files_spec *files) {
  const weir_source_context *x = o->context;
  const char *const *paths = NULL;
  uint32_t count = 0;
  o->infos[c].name = files->column;
  o->infos[c].mark = files->mark;
  WEIR_TRY(weir_data_paths(x, files, &paths, &count, o->err));
  WEIR_TRY(weir_array_opening_parts(o, c, count));
  for (uint32_t p = 0; p < count; p++)
    WEIR_TRY(weir_array_file_open(x->env, x->root, paths[p],
                                  &o->columns[c].parts[p].file, o->err));
  return WEIR_OK;
}

static weir_status load_part(weir_array_opening *o, weir_array_part *part) {
  WEIR_TRY(weir_array_file_load(part->file, &part->tensor, o->err));
  weir_array_file_release(part->file);
  part->file = NULL;
  return WEIR_OK;
}

/* Bytes of all parts in memory, at most SIZE_MAX. */
static size_t total_bytes(const weir_array_opening *o) {
  size_t sum = 0;
  for (uint32_t c = 0; c < o->count; c++)
    for (uint32_t p = 0; p < o->columns[c].part_count; p++) {
      const weir_array_file *f = o->columns[c].parts[p].file;
      size_t bytes = weir_shape_bytes(&f->shape, f->dtype);
      if (!weir_size_add(sum, bytes, &sum)) return SIZE_MAX;
    }
  return sum;
}

static weir_status load_small(weir_array_opening *o) {
  bool all = total_bytes(o) <= o->context->spec->memory_bytes;
  for (uint32_t c = 0; c < o->count; c++)
    for (uint32_t p = 0; p < o->columns[c].part_count; p++) {
      weir_array_part *part = &o->columns[c].parts[p];
      if (all || part->file->fortran) WEIR_TRY(load_part(o, part));
    }
  return WEIR_OK;
}

static weir_status open_arrays(weir_array_opening *o) {
  const weir_data_spec *spec = o->context->spec;
  WEIR_TRY(weir_array_opening_columns(o, spec->file_count));
  for (uint32_t c = 0; c < o->count; c++)
    WEIR_TRY(open_column(o, c, &spec->files[c]));
  return load_small(o);
}

weir_status weir_source_array_files(const weir_source_context *context,
                                    weir_source **out_source, weir_error *err) {
  weir_array_opening o = {.context = context, .err = err};
  return weir_array_opening_end(&o, open_arrays(&o), out_source);
}
