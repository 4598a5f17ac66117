/* SPDX-License-Identifier: Apache-2.0 */
/* Names to ids. Outputs come before nodes, as weir_fetch promises; a name that
 * is not there fails with the nearest one as a hint. Linear: a run with many
 * names should be bound. */
#include <stdio.h>

#include "runtime/api/weir_internal.h"
#include "runtime/base/diag/nearest.h"
#include "runtime/base/join.h"

static weir_sv input_name(const void *self, size_t i) {
  return ((const weir_graph *)self)->inputs[i].name;
}

static weir_sv output_name(const void *self, size_t i) {
  return ((const weir_graph *)self)->outputs[i].name;
}

/* Outputs first, then nodes. */
static weir_sv any_name(const void *self, size_t i) {
  const weir_graph *graph = self;
  return i < graph->output_count ? output_name(self, i)
                                 : graph->nodes[i - graph->output_count].name;
}

static void hint_nearest(weir_error *err, weir_sv name, size_t count,
                         weir_sv (*name_at)(const void *self, size_t i),
                         const void *self) {
  weir_sv nearest = weir_nearest_name(name, count, name_at, self);
  if (nearest.size != 0) weir_hint(err, "did you mean %.*s?", WEIR_SV(nearest));
}

static weir_status no_such(const weir_graph *graph, weir_sv name,
                           weir_error *err) {
  weir_status s =
      weir_fail(err, WEIR_W4016, NULL, "the graph has no output or node %.*s",
                WEIR_SV(name));
  hint_nearest(err, name, (size_t)graph->output_count + graph->node_count,
               any_name, graph);
  return s;
}

weir_status weir_find_value(const weir_graph *graph, const char *name,
                            weir_value_id *out_value, weir_error *err) {
  if (name == NULL) return weir_fail_null(err, "name");
  weir_sv sv = weir_sv_from(name);
  for (uint32_t i = 0; i < graph->output_count; i++) {
    *out_value = graph->outputs[i].value;
    if (weir_sv_equal(graph->outputs[i].name, sv)) return WEIR_OK;
  }
  *out_value = weir_graph_find_value(graph, sv);
  return *out_value != WEIR_NO_VALUE ? WEIR_OK : no_such(graph, sv, err);
}

weir_status weir_find_node(const weir_graph *graph, const char *name,
                           weir_node_id *out_node, weir_error *err) {
  if (name == NULL) return weir_fail_null(err, "name");
  *out_node = weir_graph_find_node(graph, weir_sv_from(name));
  if (*out_node != UINT32_MAX) return WEIR_OK;
  weir_value_id value;
  WEIR_TRY(weir_find_value(graph, name, &value, err));
  *out_node = graph->values[value].node;
  return WEIR_OK;
}

weir_status weir_find_input(const weir_graph *graph, const char *name,
                            weir_value_id *out_value, weir_error *err) {
  if (name == NULL) return weir_fail_null(err, "name");
  weir_sv sv = weir_sv_from(name);
  for (uint32_t i = 0; i < graph->input_count; i++) {
    *out_value = graph->inputs[i].value;
    if (weir_sv_equal(graph->inputs[i].name, sv)) return WEIR_OK;
  }
  char names[200] = "";
  for (uint32_t i = 0; i < graph->input_count; i++) {
    char one[80];
    snprintf(one, sizeof one, "%.*s", WEIR_SV(graph->inputs[i].name));
    weir_join_name(names, sizeof names, one);
  }
  weir_status s =
      weir_fail(err, WEIR_W4011, NULL, "the graph has no input %.*s; it has %s",
                WEIR_SV(sv), names[0] != '\0' ? names : "none");
  hint_nearest(err, sv, graph->input_count, input_name, graph);
  return s;
}
