/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/load/advice.h"

#include <string.h>

/* A quotient of integers that becomes a fraction: `cast(u / 255, f32)`. The
 * division rounds toward zero before the cast, so all but the brightest pixels
 * are 0. Division by 1 changes nothing; a quotient with a node between it and
 * the cast is left alone, so identity() is the way to say that whole numbers
 * are meant. A block's text makes a node for each call; its place is reported
 * once. Cost: each node once, and each of a few places. */

enum { PLACES = 8 };

typedef struct adviser {
  const weir_diag_sink *sink;
  weir_mark places[PLACES]; /* reported */
  uint32_t count;
} adviser;

static bool is_new(adviser *a, const weir_mark *at) {
  if (a->count == PLACES) return false;
  for (uint32_t i = 0; i < a->count; i++)
    if (a->places[i].line == at->line && a->places[i].col == at->col &&
        a->places[i].file == at->file)
      return false;
  a->places[a->count++] = *at;
  return true;
}

static bool is_one(const weir_tensor *known) {
  return known != NULL && weir_shape_elements(&known->shape) == 1 &&
         weir_tensor_get_i64(known, 0) == 1;
}

static bool is_rounded(const weir_graph *g, weir_value_id id) {
  const weir_node *node = &g->nodes[g->values[id].node];
  return strcmp(node->op->name, "div") == 0 && node->input_count == 2 &&
         !weir_dtype_is_float(g->values[id].dtype) &&
         !is_one(g->values[node->inputs[1]].known);
}

static void look_at(adviser *a, const weir_graph *g, const weir_node *cast) {
  if (strcmp(cast->op->name, "cast") != 0 || cast->input_count != 1 ||
      !weir_dtype_is_float(g->values[cast->first_output].dtype) ||
      !is_rounded(g, cast->inputs[0]))
    return;
  const weir_node *div = &g->nodes[g->values[cast->inputs[0]].node];
  weir_error err = WEIR_ERROR_INIT;
  if (!is_new(a, &div->mark)) return;
  weir_fail(&err, WEIR_W2021, &div->mark,
            "%.*s: %s are divided, rounding toward zero, before they become %s",
            WEIR_SV(div->name),
            weir_dtype_name(g->values[div->inputs[0]].dtype),
            weir_dtype_name(g->values[cast->first_output].dtype));
  weir_error_set_node(&err, div->name.data, div->name.size);
  weir_hint(&err, "cast first: cast(x, %s) / y",
            weir_dtype_name(g->values[cast->first_output].dtype));
  weir_diag_warn(a->sink, &err);
}

/* Bodies nest at most 10 deep. */
static void look_in(adviser *a, const weir_graph *g) {
  for (uint32_t i = 0; i < g->node_count; i++) {
    const weir_node *node = &g->nodes[i];
    look_at(a, g, node);
    for (uint32_t k = 0; k < node->body_count; k++) look_in(a, node->bodies[k]);
  }
}

void weir_load_advise(const weir_graph *graph, const weir_diag_sink *sink) {
  adviser a = {.sink = sink};
  if (sink != NULL) look_in(&a, graph);
}
