/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/session/session_mesh.h"

#include <string.h>

#include "runtime/exec/session/binding.h"
#include "runtime/exec/session/session_first.h"
#include "runtime/exec/session/session_internal.h"
#include "runtime/exec/session/session_remote.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/exec/session/session_vars.h"
#include "runtime/exec/store/var_memory.h"
#include "runtime/graph/mesh/mesh_var.h"

/* Sessions of graphs with a mesh: callers know the graph as it was written, the
 * programs are of the lowered one. Ids are translated on the way in; variables
 * are whole outside and shards inside. */

/* The session's own id of a value or node of the given graph. */
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

/* A request in the session's own ids. */
typedef struct own_request {
  weir_exec_request request; /* of the lists here */
  weir_run_options options;
  weir_exec_feed *feeds;
  weir_exec_fetch *fetches;
  weir_node_id *targets, *dump;
} own_request;

static void own_release(const weir_allocator *a, own_request *o) {
  weir_free(a, o->feeds);
  weir_free(a, o->fetches);
  weir_free(a, o->targets);
  weir_free(a, o->dump);
}

static weir_status own_make(const weir_exec_session *session,
                            const weir_exec_request *given, own_request *o,
                            weir_error *err) {
  const weir_allocator *a = session->env->alloc;
  size_t feeds = given->feed_count, fetches = given->fetch_count;
  size_t targets = given->target_count;
  if (given->options != NULL) o->options = *given->options;
  size_t dump = o->options.dump_count;
  o->feeds = weir_alloc_array(a, feeds, sizeof *o->feeds);
  o->fetches = weir_alloc_array(a, fetches, sizeof *o->fetches);
  o->targets = weir_alloc_array(a, targets, sizeof *o->targets);
  o->dump = weir_alloc_array(a, dump, sizeof *o->dump);
  if (o->feeds == NULL || o->fetches == NULL || o->targets == NULL ||
      o->dump == NULL)
    return weir_fail_memory(err, fetches * sizeof *o->fetches);
  for (size_t i = 0; i < feeds; i++)
    o->feeds[i] = (weir_exec_feed){own_value(session, given->feeds[i].value),
                                   given->feeds[i].tensor};
  for (size_t i = 0; i < fetches; i++) {
    o->fetches[i] = given->fetches[i];
    o->fetches[i].value = own_value(session, given->fetches[i].value);
  }
  for (size_t i = 0; i < targets; i++)
    o->targets[i] = own_node(session, given->targets[i]);
  for (size_t i = 0; i < dump; i++)
    o->dump[i] = own_node(session, o->options.dump[i]);
  o->options.dump = o->dump;
  o->request = (weir_exec_request){
      .feeds = o->feeds,
      .feed_count = feeds,
      .fetches = o->fetches,
      .fetch_count = fetches,
      .targets = o->targets,
      .target_count = targets,
      .options = given->options != NULL ? &o->options : NULL};
  return WEIR_OK;
}

weir_status weir_session_mesh_run(weir_exec_session *session,
                                  const weir_exec_request *request,
                                  weir_binding **out_binding, weir_error *err) {
  own_request own = {.feeds = NULL};
  weir_status s = own_make(session, request, &own, err);
  if (s == WEIR_OK) {
    s = out_binding != NULL
            ? weir_session_own_bind(session, &own.request, out_binding, err)
            : weir_session_own_run(session, &own.request, err);
    for (size_t i = 0; i < request->fetch_count; i++) {
      request->fetches[i].status = own.fetches[i].status;
      request->fetches[i].tensor = own.fetches[i].tensor;
      request->fetches[i].elsewhere = own.fetches[i].elsewhere;
    }
  }
  own_release(session->env->alloc, &own);
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

/* Copies the shards at |data|, one for each device, into the whole. */
static void join(const weir_exec_session *session, const weir_mesh_var *var,
                 const void *const *data, weir_tensor *whole) {
  for (uint32_t d = 0; d < session->mesh->device_count; d++) {
    weir_mesh_shard shard = {session->given->mesh, var, d, whole->dtype,
                             whole_of(session, var)->shape};
    weir_mesh_shard_copy(&shard, whole->data, (void *)(uintptr_t)data[d], true);
  }
}

/* From the session's remote, all at once. */
static weir_status get_remote(weir_exec_session *session,
                              const weir_mesh_var *var, weir_tensor *whole,
                              weir_error *err) {
  const weir_allocator *a = session->env->alloc;
  uint32_t count = session->mesh->device_count;
  weir_tensor **parts = weir_alloc_array(a, count, sizeof *parts);
  void **data = weir_alloc_array(a, count, sizeof *data);
  weir_status s = parts == NULL || data == NULL
                      ? weir_fail_memory(err, count * sizeof *parts)
                      : WEIR_OK;
  for (uint32_t d = 0; s == WEIR_OK && d < count; d++) {
    const weir_variable *shard = shard_of(session, var->parts[d]);
    s = weir_tensor_create_shaped(a, shard->dtype, shard->shape, &parts[d],
                                  err);
    if (s == WEIR_OK) data[d] = parts[d]->data;
  }
  if (s == WEIR_OK)
    s = weir_session_remote_get(session, var->parts, data, count, err);
  if (s == WEIR_OK) join(session, var, (const void *const *)data, whole);
  for (uint32_t d = 0; parts != NULL && d < count; d++)
    weir_tensor_unref(parts[d]);
  weir_free(a, parts);
  weir_free(a, data);
  return s;
}

/* Steps commit under the lock: all shards are of one step. */
static weir_status get_own(weir_exec_session *session, const weir_mesh_var *var,
                           weir_tensor *whole, weir_error *err) {
  const weir_allocator *a = session->env->alloc;
  uint32_t count = session->mesh->device_count;
  void **data = weir_alloc_array(a, count, sizeof *data);
  weir_status s = WEIR_OK;
  if (data == NULL) return weir_fail_memory(err, count * sizeof *data);
  pthread_mutex_lock(session->vars_lock);
  for (uint32_t d = 0; s == WEIR_OK && d < count; d++)
    s = weir_var_buffer_read(shard_of(session, var->parts[d])->cell->current,
                             NULL, &data[d], err);
  if (s == WEIR_OK) join(session, var, (const void *const *)data, whole);
  pthread_mutex_unlock(session->vars_lock);
  weir_free(a, data);
  return s;
}

weir_status weir_session_mesh_get(weir_exec_session *session, weir_node_id node,
                                  weir_tensor **out_tensor, weir_error *err) {
  const weir_mesh_var *var = NULL;
  *out_tensor = NULL;
  WEIR_TRY(find(session, node, &var, err));
  for (uint32_t d = 0; d < session->mesh->device_count; d++)
    WEIR_TRY(weir_session_check_home(
        session, (uint32_t)(shard_of(session, var->parts[d]) - session->vars),
        err));
  WEIR_TRY(weir_session_vars_init(session, err));
  const weir_value *whole = whole_of(session, var);
  WEIR_TRY(weir_tensor_create_shaped(session->env->alloc, whole->dtype,
                                     whole->shape, out_tensor, err));
  weir_status s = session->options.remote != NULL
                      ? get_remote(session, var, *out_tensor, err)
                      : get_own(session, var, *out_tensor, err);
  if (s == WEIR_OK) return WEIR_OK;
  weir_tensor_unref(*out_tensor);
  *out_tensor = NULL;
  return s;
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
    if (shard->elsewhere && shard->assigned) continue;
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
