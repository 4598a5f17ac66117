/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/base/yaml/yaml_scalar.h"
#include "runtime/train/data/data_files.h"
#include "runtime/train/source/array.h"

/* `values: {x: [[1, 2], [3, 4]], y: [0, 1]}`: nested lists of numbers. */

enum { kMaxElements = 65536 };

/* A list that is being read, and the next of its items. */
typedef struct level {
  const weir_yaml *list;
  uint32_t next;
} level;

/* The dtype of the column's entry, else of the graph's input, else f32. */
static weir_dtype choose_dtype(const weir_source_context *context,
                               weir_sv name) {
  const weir_column_spec *spec = weir_data_column_spec(context->spec, name);
  const weir_graph *g = context->graph;
  if (spec != NULL &&
      (spec->code != WEIR_CODE_NONE || spec->mean_count + spec->std_count > 0))
    return WEIR_F64;
  if (spec != NULL && spec->dtype != WEIR_DTYPE_NONE) return spec->dtype;
  for (uint32_t i = 0; i < g->input_count; i++)
    if (weir_sv_equal(g->inputs[i].name, name))
      return g->values[g->inputs[i].value].dtype;
  return WEIR_F32;
}

static weir_status bad_value(const weir_yaml *y, weir_dtype dtype,
                             weir_error *err) {
  return weir_fail(err, WEIR_W4027, &y->mark, "not a number of dtype %s",
                   weir_dtype_name(dtype));
}

static weir_status store(const weir_yaml *y, weir_tensor *t, int64_t i,
                         weir_error *err) {
  double v = 0;
  int64_t n = 0;
  bool truth = false;
  if (t->dtype == WEIR_BOOL && weir_yaml_bool(y, &truth)) {
    weir_tensor_set_i64(t, i, truth);
    return WEIR_OK;
  }
  if (weir_dtype_is_float(t->dtype)) {
    if (!weir_yaml_float(y, &v)) return bad_value(y, t->dtype, err);
    weir_tensor_set_f64(t, i, v);
    return WEIR_OK;
  }
  if (!weir_yaml_int(y, &n)) return bad_value(y, t->dtype, err);
  weir_tensor_set_i64(t, i, n);
  if (weir_tensor_get_i64(t, i) == n) return WEIR_OK;
  return bad_value(y, t->dtype, err);
}

/* The shape, from the first item of each list; fill then compares all others
 * with it. The bound on values keeps numbers of any size out of graph files. */
static weir_status find_shape(const weir_yaml *y, weir_shape *out,
                              weir_error *err) {
  int64_t dims[WEIR_MAX_RANK], elements = 1;
  int rank = 0;
  const weir_mark *at = &y->mark;
  for (; y->kind == WEIR_YAML_LIST; y = y->items[0]) {
    if (rank == WEIR_MAX_RANK)
      return weir_fail(err, WEIR_W4024, at, "values are nested too deeply");
    dims[rank++] = y->count;
    elements *= y->count;
    if (elements > kMaxElements)
      return weir_fail(err, WEIR_W4024, at,
                       "more than %d values; put them into a file",
                       kMaxElements);
    if (y->count == 0) break;
  }
  *out = weir_shape_of(rank, dims);
  if (rank > 0) return WEIR_OK;
  return weir_fail(err, WEIR_W4024, at,
                   "values are a list, one for each "
                   "example");
}

/* Stores the numbers in order, with a stack as deep as the rank. */
static weir_status fill(const weir_yaml *y, weir_tensor *t, weir_error *err) {
  level stack[WEIR_MAX_RANK];
  int depth = 0, rank = t->shape.rank;
  int64_t at = 0;
  stack[0] = (level){y, 0};
  while (depth >= 0) {
    level *top = &stack[depth];
    bool ragged = top->list->kind != WEIR_YAML_LIST ||
                  top->list->count != t->shape.dims[depth].value;
    if (ragged)
      return weir_fail(err, WEIR_W4024, &top->list->mark,
                       "the lists differ in length");
    if (top->next == top->list->count) {
      depth--;
      continue;
    }
    const weir_yaml *item = top->list->items[top->next++];
    if (depth + 1 < rank)
      stack[++depth] = (level){item, 0};
    else
      WEIR_TRY(store(item, t, at++, err));
  }
  return WEIR_OK;
}

static weir_status read_literal(const weir_source_context *context,
                                const weir_yaml_entry *e, weir_tensor **out,
                                weir_error *err) {
  weir_shape shape;
  WEIR_TRY(find_shape(e->value, &shape, err));
  WEIR_TRY(weir_tensor_create_shaped(
      context->env->alloc, choose_dtype(context, e->key), &shape, out, err));
  return fill(e->value, *out, err);
}

static weir_status open_memory(const weir_source_context *context,
                               weir_source **out_source, weir_error *err) {
  const weir_data_spec *spec = context->spec;
  const weir_yaml *values = weir_yaml_get(spec->section, "values");
  *out_source = NULL;
  if (values == NULL || values->kind != WEIR_YAML_MAP || values->count == 0)
    return weir_fail(err, WEIR_W4024, &spec->mark,
                     "a data set in memory needs `values`, {column: literal}");
  uint32_t count = values->count;
  weir_array_column *columns =
      weir_arena_array(context->arena, count, sizeof *columns);
  weir_source_column *infos =
      weir_arena_array(context->arena, count, sizeof *infos);
  weir_array_part *parts =
      weir_arena_array(context->arena, count, sizeof *parts);
  if (columns == NULL || infos == NULL || parts == NULL)
    return weir_fail_memory(err, count * sizeof *infos);
  weir_status s = WEIR_OK;
  for (uint32_t c = 0; c < count && s == WEIR_OK; c++) {
    columns[c] = (weir_array_column){&parts[c], 1};
    infos[c].name = values->entries[c].key;
    infos[c].mark = values->entries[c].key_mark;
    s = read_literal(context, &values->entries[c], &parts[c].tensor, err);
  }
  if (s == WEIR_OK)
    return weir_source_arrays(context, columns, infos, count, out_source, err);
  weir_array_columns_release(columns, count);
  return s;
}

static const weir_data_key kKeys[] = {
    {.name = "values", .must_be_map = true},
    {.name = NULL},
};

const weir_source_def weir_source_memory = {
    .form = {"memory", kKeys},
    .summary = "numbers written in the graph's file",
    .files = WEIR_FILES_NONE,
    .open = open_memory,
};
