/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/session/session_mesh.h"

#include <string.h>

#include "runtime/exec/session/binding.h"
#include "runtime/exec/session/session_internal.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/exec/session/session_vars.h"
#include "runtime/graph/mesh/mesh_var.h"

/* Sessions of graphs with a mesh: callers know the graph as it was written, the
 * programs are of the lowered one. Ids are translated on the way in; variables
 * are whole outside and shards inside. */

static weir_value_id own_value(const weir_exec_session *s, weir_value_id id) {
  return id < s->given->value_count ? s->mesh->values[id] : WEIR_NO_VALUE;
}

static weir_node_id own_node(const weir_exec_session *s, weir_node_id id) {
  return id < s->given->node_count ? s->mesh->nodes[id] : UINT32_MAX;
}

const weir_value *weir_session_mesh_value(const weir_exec_session *s,
                                          weir_value_id id) {
  for (weir_value_id v = 0; v < s->given->value_count; v++)
    if (s->mesh->values[v] == id) return &s->given->values[v];
  return NULL;
}

/* Lists of one call. */
typedef struct own_call {
  weir_exec_feed *feeds;
  weir_exec_fetch *fetches;
  weir_node_id *targets, *dump;
} own_call;

static void own_release(const weir_allocator *a, own_call *c) {
  weir_free(a, c->feeds);
  weir_free(a, c->fetches);
  weir_free(a, c->targets);
  weir_free(a, c->dump);
}

static weir_status own_make(const weir_allocator *a, size_t feeds,
                            size_t fetches, size_t targets, size_t dump,
                            own_call *c, weir_error *err) {
  c->feeds = weir_alloc_array(a, feeds, sizeof *c->feeds);
  c->fetches = weir_alloc_array(a, fetches, sizeof *c->fetches);
  c->targets = weir_alloc_array(a, targets, sizeof *c->targets);
  c->dump = weir_alloc_array(a, dump, sizeof *c->dump);
  if (c->feeds == NULL || c->fetches == NULL || c->targets == NULL ||
      c->dump == NULL)
    return weir_fail_memory(err, fetches * sizeof *c->fetches);
  return WEIR_OK;
}

weir_status weir_session_mesh_run(
    weir_exec_session *session, const weir_exec_feed *feeds, size_t feed_count,
    weir_exec_fetch *fetches, size_t fetch_count, const weir_node_id *targets,
    size_t target_count, const weir_run_options *options,
    weir_binding **out_binding, weir_error *err) {
  const weir_allocator *a = session->env->alloc;
  weir_run_options own = {0};
  own_call c = {0};
  if (options != NULL) own = *options;
  weir_status s = own_make(a, feed_count, fetch_count, target_count,
                           own.dump_count, &c, err);
  if (s == WEIR_OK) {
    for (size_t i = 0; i < feed_count; i++)
      c.feeds[i] =
          (weir_exec_feed){own_value(session, feeds[i].value), feeds[i].tensor};
    for (size_t i = 0; i < fetch_count; i++) {
      c.fetches[i] = fetches[i];
      c.fetches[i].value = own_value(session, fetches[i].value);
    }
    for (size_t i = 0; i < target_count; i++)
      c.targets[i] = own_node(session, targets[i]);
    for (size_t i = 0; i < own.dump_count; i++)
      c.dump[i] = own_node(session, own.dump[i]);
    own.dump = c.dump;
    s = out_binding != NULL
            ? weir_session_own_bind(session, c.feeds, feed_count, c.fetches,
                                    fetch_count, c.targets, target_count,
                                    out_binding, err)
            : weir_session_own_run(session, c.feeds, feed_count, c.fetches,
                                   fetch_count, c.targets, target_count,
                                   options != NULL ? &own : NULL, err);
    for (size_t i = 0; i < fetch_count; i++) {
      fetches[i].status = c.fetches[i].status;
      fetches[i].tensor = c.fetches[i].tensor;
    }
  }
  own_release(a, &c);
  return s;
}

/* ---- Variables */

static weir_status find(const weir_exec_session *session, weir_node_id node,
                        const weir_mesh_var **out, weir_error *err) {
  for (uint32_t v = 0; v < session->mesh->var_count; v++)
    if (session->mesh->vars[v].node == node) {
      *out = &session->mesh->vars[v];
      return WEIR_OK;
    }
  return weir_fail(err, WEIR_W0004, NULL, "node %u is no variable", node);
}

static const weir_value *whole_of(const weir_exec_session *session,
                                  const weir_mesh_var *var) {
  const weir_graph *g = session->given;
  return &g->values[g->nodes[var->node].first_output];
}

static const weir_variable *shard_of(const weir_exec_session *session,
                                     weir_node_id part) {
  uint32_t v = 0;
  while (session->vars[v].node != part) v++;
  return &session->vars[v];
}

weir_status weir_session_mesh_get(weir_exec_session *session, weir_node_id node,
                                  weir_tensor **out_tensor, weir_error *err) {
  const weir_mesh_var *var = NULL;
  *out_tensor = NULL;
  WEIR_TRY(find(session, node, &var, err));
  WEIR_TRY(weir_session_vars_init(session, err));
  const weir_value *whole = whole_of(session, var);
  WEIR_TRY(weir_tensor_create_shaped(session->env->alloc, whole->dtype,
                                     whole->shape, out_tensor, err));
  /* Steps commit under the lock: all shards are of one step. */
  pthread_mutex_lock(&session->lock);
  for (uint32_t d = 0; d < session->mesh->device_count; d++) {
    weir_mesh_shard shard = {session->given->mesh, var, d, whole->dtype,
                             whole->shape};
    weir_mesh_shard_copy(&shard, (*out_tensor)->data,
                         shard_of(session, var->parts[d])->current->data, true);
  }
  pthread_mutex_unlock(&session->lock);
  return WEIR_OK;
}

weir_status weir_session_mesh_set(weir_exec_session *session, weir_node_id node,
                                  const weir_tensor *tensor, weir_error *err) {
  const weir_mesh_var *var = NULL;
  WEIR_TRY(find(session, node, &var, err));
  const weir_value *whole = whole_of(session, var);
  if (tensor->dtype != whole->dtype ||
      !weir_shape_equal(&tensor->shape, whole->shape))
    return weir_fail(err, WEIR_W4009, NULL,
                     "variable %.*s has another dtype or shape",
                     WEIR_SV(session->given->nodes[node].name));
  for (uint32_t d = 0; d < session->mesh->device_count; d++) {
    const weir_variable *shard = shard_of(session, var->parts[d]);
    weir_tensor *part = NULL;
    WEIR_TRY(weir_tensor_create_shaped(session->env->alloc, shard->dtype,
                                       shard->shape, &part, err));
    weir_mesh_shard from = {session->given->mesh, var, d, whole->dtype,
                            whole->shape};
    weir_mesh_shard_copy(&from, tensor->data, part->data, false);
    weir_status s = weir_session_set(session, var->parts[d], part, err);
    weir_tensor_unref(part);
    if (s != WEIR_OK) return s;
  }
  return WEIR_OK;
}
