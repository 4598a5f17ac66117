/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/session/session_snapshot.h"

#include <assert.h>
#include <stddef.h>

#include "runtime/exec/session/remote.h"
#include "runtime/exec/session/session_first.h"
#include "runtime/exec/session/session_internal.h"
#include "runtime/exec/session/session_mesh.h"
#include "runtime/exec/session/session_vars.h"
#include "runtime/exec/store/var_memory.h"

/* A variable's value as a tensor that shares its buffer: the buffer gets a
 * user, so steps that follow write to others. */

static void release(void *self, void *data) {
  weir_exec_session *session = self;
  weir_var_buffer *buffer =
      (weir_var_buffer *)((char *)data - offsetof(weir_var_buffer, data));
  pthread_mutex_lock(session->vars_lock);
  assert(buffer->users > 0);
  buffer->users--;
  weir_session_var_left(session, buffer);
  pthread_mutex_unlock(session->vars_lock);
}

static weir_status find(const weir_exec_session *session, weir_node_id node,
                        uint32_t *out, weir_error *err) {
  uint32_t v = 0;
  while (v < session->var_count && session->vars[v].node != node) v++;
  *out = v;
  if (v < session->var_count) return WEIR_OK;
  return weir_fail(err, WEIR_W0004, NULL, "node %u is no variable", node);
}

/* A tensor that holds |buffer| once. */
static weir_status wrap(weir_exec_session *session, const weir_variable *var,
                        weir_var_buffer *buffer, weir_tensor **out,
                        weir_error *err) {
  weir_tensor_memory memory = {var->dtype, var->shape, buffer->data, release,
                               session};
  weir_status s = weir_tensor_wrap(session->env->alloc, &memory, out, err);
  if (s != WEIR_OK) release(session, buffer->data);
  return s;
}

weir_status weir_session_snapshot(weir_exec_session *session, weir_node_id node,
                                  weir_tensor **out_tensor, weir_error *err) {
  uint32_t v;
  *out_tensor = NULL;
  WEIR_TRY(find(session, node, &v, err));
  WEIR_TRY(weir_session_check_home(session, v, err));
  WEIR_TRY(weir_session_vars_init(session, err));
  const weir_variable *var = &session->vars[v];
  void *data = NULL;
  pthread_mutex_lock(session->vars_lock);
  weir_var_buffer *buffer = var->cell->current;
  weir_status s = weir_var_buffer_read(buffer, NULL, &data, err);
  if (s == WEIR_OK) buffer->users++;
  pthread_mutex_unlock(session->vars_lock);
  if (s == WEIR_OK) s = wrap(session, var, buffer, out_tensor, err);
  if (s == WEIR_OK) (*out_tensor)->read_only = true;
  return s;
}

weir_status weir_exec_variable_room(weir_exec_session *session,
                                    weir_node_id node, weir_tensor **out_tensor,
                                    weir_error *err) {
  uint32_t v;
  *out_tensor = NULL;
  assert(session->options.overwrite && session->mesh == NULL);
  WEIR_TRY(find(session, node, &v, err));
  weir_variable *var = &session->vars[v];
  pthread_mutex_lock(session->vars_lock);
  weir_var_buffer *buffer = weir_session_var_room(session, var);
  pthread_mutex_unlock(session->vars_lock);
  if (buffer == NULL) return weir_fail_memory(err, var->bytes);
  return wrap(session, var, buffer, out_tensor, err);
}

weir_status weir_exec_variable_snapshot(weir_exec_session *session,
                                        weir_node_id node,
                                        weir_tensor **out_tensor,
                                        weir_error *err) {
  if (session->mesh != NULL) /* shards are put together: a copy */
    return weir_session_mesh_get(session, node, out_tensor, err);
  if (session->options.remote != NULL)
    return weir_exec_variable_get(session, node, out_tensor, err);
  return weir_session_snapshot(session, node, out_tensor, err);
}

/* ---- Where they live */

bool weir_exec_session_has_owners(const weir_exec_session *session) {
  const weir_remote *r = session->options.remote;
  return r != NULL && r->vt->hold != NULL && session->mesh == NULL;
}

bool weir_exec_session_has_found(const weir_exec_session *session) {
  return session->options.remote != NULL && session->options.remote->found;
}

weir_status weir_exec_variables_hold(weir_exec_session *session,
                                     const weir_node_id *nodes, uint32_t count,
                                     struct weir_checkpoint_owners **out_owners,
                                     weir_error *err) {
  weir_remote *r = session->options.remote;
  return r->vt->hold(r, nodes, count, out_owners, err);
}

weir_status weir_exec_variables_load(weir_exec_session *session,
                                     const struct weir_checkpoint_common *place,
                                     const struct weir_remote_row *rows,
                                     uint32_t count, bool *out_left,
                                     const struct weir_diag_sink *sink,
                                     weir_error *err) {
  weir_remote *r = session->options.remote;
  return r->vt->load(r, place, rows, count, out_left, sink, err);
}
