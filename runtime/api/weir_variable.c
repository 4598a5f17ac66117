/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/api/weir_internal.h"
#include "runtime/graph/train/trained.h"

/* The variables of a session. */

static bool is_variable(const weir_graph *g, weir_node_id id) {
  return g->nodes[id].op->instr == WEIR_INSTR_VAR_READ;
}

size_t weir_session_variable_count(const weir_session *session) {
  size_t count = 0;
  if (session == NULL) return 0;
  for (weir_node_id id = 0; id < session->graph->node_count; id++)
    count += is_variable(session->graph, id);
  return count;
}

/* Whether `train` updates a variable, for all of them. */
static weir_status find_trained(weir_session *session, weir_error *err) {
  const weir_graph *g = session->graph;
  session->trained = weir_alloc_array(session->runtime->env.alloc,
                                      g->node_count, sizeof *session->trained);
  if (session->trained == NULL) return weir_fail_memory(err, g->node_count);
  weir_graph_trained(g, session->trained);
  return WEIR_OK;
}

static weir_status is_trained(weir_session *session, weir_node_id id, bool *out,
                              weir_error *err) {
  weir_status s = WEIR_OK;
  pthread_mutex_lock(&session->lock);
  if (session->trained == NULL) s = find_trained(session, err);
  *out = s == WEIR_OK && session->trained[id];
  pthread_mutex_unlock(&session->lock);
  return s;
}

static void describe(const weir_session *session, weir_node_id id,
                     weir_variable_desc *out) {
  const weir_graph *g = session->graph;
  const weir_node *node = &g->nodes[id];
  const weir_value *value = &g->values[node->first_output];
  weir_sv home = weir_placed_home(session->placed, node->name);
  out->dtype = value->dtype;
  out->rank = value->shape->rank;
  for (int32_t i = 0; i < value->shape->rank; i++)
    out->dims[i] = value->shape->dims[i].value;
  out->bytes = (int64_t)weir_shape_bytes(value->shape, value->dtype);
  out->name = (weir_text){node->name.data, node->name.size};
  out->home = (weir_text){home.data, home.size};
  weir_graph_type_text(g, node->first_output, out->type, sizeof out->type);
}

weir_status weir_session_variable_at(weir_session *session, size_t i,
                                     weir_variable_desc *out_variable,
                                     weir_error *err) {
  weir_variable_desc v = {.struct_size = sizeof v};
  size_t at = 0;
  if (session == NULL) return weir_fail_null(err, "session");
  for (weir_node_id id = 0; id < session->graph->node_count; id++) {
    if (!is_variable(session->graph, id) || at++ != i) continue;
    WEIR_TRY(is_trained(session, id, &v.trained, err));
    describe(session, id, &v);
    return WEIR_OPTS_WRITE(weir_variable_desc, out_variable, &v, err);
  }
  return weir_fail(err, WEIR_W0004, NULL, "there are %zu variables, not %zu",
                   at, i + 1);
}
