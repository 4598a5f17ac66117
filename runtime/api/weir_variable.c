/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/api/weir_internal.h"
#include "runtime/graph/train/train_graph.h"

/* The variables of sessions and trainers. */

static bool is_variable(const weir_graph *g, weir_node_id id) {
  return g->nodes[id].op->instr == WEIR_INSTR_VAR_READ;
}

size_t weir_variables_count(const weir_graph *graph) {
  size_t count = 0;
  for (weir_node_id id = 0; id < graph->node_count; id++)
    count += is_variable(graph, id);
  return count;
}

/* Whether `train` updates a variable, for all of them: the section is read
 * once, not once for each. */
static weir_status find_trained(weir_variables *v, weir_error *err) {
  const weir_graph *g = v->graph;
  if (v->trained != NULL) return WEIR_OK;
  v->trained = weir_alloc_array(g->alloc, g->node_count, sizeof *v->trained);
  if (v->trained == NULL)
    return weir_fail_refused(g->alloc, "looking for variables", err);
  weir_graph_trained(g, v->trained);
  return WEIR_OK;
}

static void describe(const weir_variables *v, weir_node_id id,
                     weir_variable_desc *out) {
  const weir_graph *g = v->graph;
  const weir_node *node = &g->nodes[id];
  const weir_value *value = &g->values[node->first_output];
  out->trained = v->trained[id];
  out->dtype = value->dtype;
  out->rank = value->shape->rank;
  for (int32_t i = 0; i < value->shape->rank; i++)
    out->dims[i] = value->shape->dims[i].value;
  out->bytes = (int64_t)weir_shape_bytes(value->shape, value->dtype);
  out->name = weir_text_of(node->name);
  out->home = weir_text_of(weir_placed_home(v->placed, node->name));
  weir_graph_type_text(g, node->first_output, out->type, sizeof out->type);
}

weir_status weir_variables_at(weir_variables *variables, size_t i,
                              weir_variable_desc *out_variable,
                              weir_error *err) {
  const weir_graph *g = variables->graph;
  weir_variable_desc desc = {.struct_size = sizeof desc};
  size_t at = 0;
  for (weir_node_id id = 0; id < g->node_count; id++) {
    if (!is_variable(g, id) || at++ != i) continue;
    WEIR_TRY(find_trained(variables, err));
    describe(variables, id, &desc);
    return WEIR_OPTS_WRITE(weir_variable_desc, out_variable, &desc, err);
  }
  return weir_fail(err, WEIR_W0004, NULL, "there are %zu variables, not %zu",
                   at, i + 1);
}

void weir_variables_release(weir_variables *variables) {
  if (variables->graph != NULL)
    weir_free(variables->graph->alloc, variables->trained);
}

size_t weir_session_variable_count(const weir_session *session) {
  return session == NULL ? 0 : weir_variables_count(session->graph);
}

weir_status weir_session_variable_at(weir_session *session, size_t i,
                                     weir_variable_desc *out_variable,
                                     weir_error *err) {
  if (session == NULL) return weir_fail_null(err, "session");
  pthread_mutex_lock(&session->lock);
  weir_status s = weir_variables_at(&session->variables, i, out_variable, err);
  pthread_mutex_unlock(&session->lock);
  return s;
}
