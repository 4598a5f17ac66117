/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/data/data_check.h"

#include <inttypes.h>
#include <stdio.h>

#include "runtime/base/diag/nearest.h"
#include "runtime/train/data/data_internal.h"

/* Columns against the graph's inputs: each column feeds the input of its name,
 * so one without is a mistake. The first dimension is the batch's and compared
 * apart; an input that fixes it fixes the batch. */

static weir_sv input_at(const void *self, size_t i) {
  return ((const weir_graph *)self)->inputs[i].name;
}

static const weir_graph_port *find_input(const weir_graph *g, weir_sv name) {
  for (uint32_t i = 0; i < g->input_count; i++)
    if (weir_sv_equal(g->inputs[i].name, name)) return &g->inputs[i];
  return NULL;
}

static weir_mark place_of(const weir_dataset *set, uint32_t c) {
  if (c < set->source->column_count && set->columns == set->read_columns) {
    weir_mark mark = set->source->columns[set->read_from[c]].mark;
    if (mark.file != NULL) return mark;
  }
  return set->spec->mark;
}

static weir_status no_input(const weir_dataset *set, uint32_t c,
                            weir_error *err) {
  weir_sv name = set->columns[c].name;
  weir_mark at = place_of(set, c);
  weir_status s = weir_fail(err, WEIR_W4021, &at,
                            "data set '%.*s': the graph has no input '%.*s'",
                            WEIR_SV(set->spec->name), WEIR_SV(name));
  weir_sv near =
      weir_nearest_name(name, set->graph->input_count, input_at, set->graph);
  if (near.size > 0)
    weir_hint(err, "did you mean '%.*s'?", WEIR_SV(near));
  else
    weir_hint(err, "`ignore: [%.*s]` leaves the column out", WEIR_SV(name));
  return s;
}

static char *column_text(const weir_data_column *c, char *text, size_t size) {
  int n = snprintf(text, size, "%s[", weir_dtype_name(c->dtype));
  for (int32_t d = 0; d < c->rank && n < (int)size; d++)
    if (d == 0 && c->dims[0] < 0)
      n += snprintf(text + n, size - (size_t)n, "*");
    else
      n += snprintf(text + n, size - (size_t)n, "%s%" PRId64, d > 0 ? ", " : "",
                    c->dims[d]);
  if (n < (int)size) snprintf(text + n, size - (size_t)n, "]");
  return text;
}

static weir_status does_not_fit(const weir_dataset *set, uint32_t c,
                                const weir_graph_port *input, weir_error *err) {
  const weir_data_column *column = &set->columns[c];
  const weir_value *value = &set->graph->values[input->value];
  char have[192], want[192];
  weir_mark at = place_of(set, c);
  weir_status s = weir_fail(
      err, WEIR_W4022, &at, "column '%.*s' is %s, the graph's input %s",
      WEIR_SV(column->name), column_text(column, have, sizeof have),
      weir_graph_type_text(set->graph, input->value, want, sizeof want));
  if (value->dtype != column->dtype)
    weir_hint(err, "`columns: {%.*s: {dtype: %s}}` converts",
              WEIR_SV(column->name), weir_dtype_name(value->dtype));
  return s;
}

static bool fits(const weir_data_column *column, const weir_value *value) {
  const weir_shape *shape = value->shape;
  if (value->dtype != column->dtype) return false;
  if (shape->rank == WEIR_RANK_UNKNOWN) return true;
  if (shape->rank != column->rank) return false;
  for (int32_t d = 1; d < column->rank; d++)
    if (weir_dim_known(shape->dims[d]) &&
        shape->dims[d].value != column->dims[d])
      return false;
  return true;
}

static weir_status check_column(weir_dataset *set, uint32_t c,
                                weir_error *err) {
  const weir_graph_port *input = find_input(set->graph, set->columns[c].name);
  if (input == NULL) return no_input(set, c, err);
  const weir_value *value = &set->graph->values[input->value];
  if (!fits(&set->columns[c], value)) return does_not_fit(set, c, input, err);
  const weir_shape *shape = value->shape;
  if (shape->rank == WEIR_RANK_UNKNOWN || !weir_dim_known(shape->dims[0]))
    return WEIR_OK;
  set->fixed_batch = true;
  if (shape->dims[0].value == set->batch) return WEIR_OK;
  return weir_fail(err, WEIR_W4022, &set->spec->batch_mark,
                   "data set '%.*s' has batches of %" PRId64
                   ", the graph's input '%.*s' takes %" PRId64,
                   WEIR_SV(set->spec->name), set->batch, WEIR_SV(input->name),
                   shape->dims[0].value);
}

weir_status weir_data_check_columns(weir_dataset *set, weir_error *err) {
  if (set->graph->input_count == 0) return WEIR_OK;
  for (uint32_t c = 0; c < set->column_count; c++)
    WEIR_TRY(check_column(set, c, err));
  return WEIR_OK;
}
