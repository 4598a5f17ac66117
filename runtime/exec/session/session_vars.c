/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/session/session_vars.h"

#include <assert.h>
#include <string.h>

#include "runtime/base/size.h"
#include "runtime/exec/gpu/gpu_memory.h"
#include "runtime/exec/session/session_cache.h"
#include "runtime/exec/session/session_first.h"
#include "runtime/exec/session/session_internal.h"
#include "runtime/exec/session/session_mesh.h"
#include "runtime/exec/session/session_remote.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/exec/store/var_memory.h"

/* Variables: their buffers, first values, and the commit of a step.
 *
 * A variable has versions: a step that assigns it writes another buffer than
 * the current one, and the commit makes all of the step's buffers current under
 * one lock. So a reader sees the variables of one step, never a mixture, and a
 * failed step leaves no trace. Buffers without a user are used again: a
 * variable has one for each run that holds it, and the current one, which in
 * training makes two.
 *
 * Invariant: |current| of a ready variable is never written; |users| counts the
 * runs, snapshots and compiled-in constants that hold a buffer.
 *
 * Buffers hang on a cell: the session's own, or that of a store
 * (exec/store/var_store.h), which sessions of several drivers have. |vars_lock|
 * is the store's then. */

/* Whether the home of variable |name| is a task of another process. */
static bool is_elsewhere(const weir_exec_session *session, weir_sv name) {
  if (session->share.tasks == NULL) return false;
  const weir_placing *placing = session->options.placing;
  uint32_t task = weir_placing_home_task(placing, name);
  return task == WEIR_PLACE_NONE || !session->share.tasks[task];
}

static weir_status fail_elsewhere(const weir_variable *var, weir_error *err) {
  weir_status s = weir_fail(err, WEIR_W7050, NULL,
                            "variable %.*s lives in another task's process",
                            WEIR_SV(var->name));
  weir_error_set_node(err, var->name.data, var->name.size);
  return s;
}

weir_status weir_session_vars_create(weir_exec_session *session,
                                     weir_error *err) {
  const weir_graph *g = session->graph;
  uint32_t count = 0;
  for (uint32_t i = 0; i < g->node_count; i++)
    if (g->nodes[i].op->instr == WEIR_INSTR_VAR_READ) count++;
  session->vars =
      weir_alloc_array(session->env->alloc, count, sizeof *session->vars);
  if (session->vars == NULL)
    return weir_fail_memory(err, count * sizeof *session->vars);
  for (weir_node_id i = 0; i < g->node_count; i++) {
    const weir_node *node = &g->nodes[i];
    if (node->op->instr != WEIR_INSTR_VAR_READ) continue;
    const weir_value *v = &g->values[node->first_output];
    if (!weir_shape_known(v->shape)) {
      weir_status s = weir_fail(err, WEIR_W2008, &node->mark,
                                "the shape of variable %.*s is not known",
                                WEIR_SV(node->name));
      weir_error_set_node(err, node->name.data, node->name.size);
      return s;
    }
    session->vars[session->var_count] =
        (weir_variable){.name = node->name,
                        .node = i,
                        .init = node->inputs[0],
                        .dtype = v->dtype,
                        .shape = v->shape,
                        .bytes = weir_shape_bytes(v->shape, v->dtype)};
    weir_variable *var = &session->vars[session->var_count];
    var->cell = &var->own;
    if (!weir_map_put(&session->var_names, node->name, session->var_count++,
                      NULL))
      return weir_fail_memory(err, 0);
    var->elsewhere = is_elsewhere(session, node->name);
  }
  for (weir_node_id i = 0; i < g->node_count; i++) {
    if (g->nodes[i].op->instr != WEIR_INSTR_VAR_COMMIT) continue;
    const weir_node *owner = &g->nodes[g->values[g->nodes[i].inputs[0]].node];
    uint32_t v = weir_map_get(&session->var_names, owner->name);
    if (v != WEIR_MAP_NONE) session->vars[v].assigned = true;
  }
  return WEIR_OK;
}

void weir_session_vars_release(weir_exec_session *session) {
  for (uint32_t i = 0; i < session->var_count; i++) {
    weir_variable *var = &session->vars[i];
    if (var->cell == &var->own)
      weir_var_cell_clear(session->env->alloc, &var->own);
    else if (var->cell != NULL)
      weir_var_store_leave(session->options.store, var->cell);
  }
  weir_free(session->env->alloc, session->vars);
  weir_var_store_unref(session->options.store);
  session->options.store = NULL;
}

/* ---- Buffers. Under the lock. */

/* Of all that lie idle in a session that overwrites, beside one of each
 * variable that has rooms: memory of small values goes around. */
enum { kIdleBytes = 16 << 20 };

static bool is_free(const weir_var_buffer *b) {
  return b->users == 0 && b != b->cell->current;
}

static void drop_buffer(weir_exec_session *session, weir_var_buffer *buffer) {
  weir_var_buffer **at = &buffer->cell->buffers;
  while (*at != buffer) at = &(*at)->next;
  *at = buffer->next;
  weir_var_buffer_free(session->env->alloc, buffer);
}

void weir_session_var_left(weir_exec_session *session, weir_var_buffer *b) {
  if (!session->options.overwrite || !is_free(b)) return;
  bool other = false;
  for (weir_var_buffer *o = b->cell->buffers; o != NULL; o = o->next)
    other = other || (o != b && is_free(o) && !o->idle);
  if (b->cell->rooms && !other) return;
  if (b->bytes > kIdleBytes - session->idle_bytes) {
    drop_buffer(session, b);
    return;
  }
  b->idle = true;
  session->idle_bytes += b->bytes;
}

/* A buffer that had no user, now with one. */
weir_var_buffer *weir_session_var_spare(weir_exec_session *session,
                                        weir_variable *var) {
  for (weir_var_buffer *b = var->cell->buffers; b != NULL; b = b->next)
    if (is_free(b)) {
      if (b->idle) session->idle_bytes -= b->bytes;
      b->idle = false;
      b->users = 1;
      return b;
    }
  size_t bytes;
  if (!weir_size_add(var->bytes, sizeof(weir_var_buffer) + 64, &bytes))
    return NULL;
  weir_var_buffer *b = weir_alloc_aligned(session->env->alloc, bytes, 64);
  if (b == NULL) return NULL;
  *b = (weir_var_buffer){.next = var->cell->buffers,
                         .users = 1,
                         .cell = var->cell,
                         .bytes = var->bytes};
  var->cell->buffers = b;
  return b;
}

weir_var_buffer *weir_session_var_room(weir_exec_session *session,
                                       weir_variable *var) {
  var->cell->rooms = true;
  return weir_session_var_spare(session, var);
}

/* The feed that |use|'s new value may take, if it is room of the variable that
 * its tensor alone holds. */
static weir_var_buffer *fed_room(const weir_variable *var,
                                 const weir_var_use *use,
                                 const weir_frame *frame) {
  if (use->over_feed == WEIR_NO_INDEX) return NULL;
  const void *data = weir_frame_external(frame, use->over_feed);
  for (weir_var_buffer *b = var->cell->buffers; b != NULL; b = b->next)
    if (b->data == data && b != var->cell->current && b->users == 1) return b;
  return NULL;
}

/* Where a run writes |var|; |read| is the value that it reads, held by it. */
static weir_var_buffer *place_to_write(weir_exec_session *session,
                                       weir_variable *var,
                                       const weir_var_use *use,
                                       const weir_frame *frame,
                                       weir_var_buffer *read) {
  weir_var_buffer *b = NULL;
  if (session->options.overwrite) {
    b = fed_room(var, use, frame);
    if (b == NULL && use->over_own && read->users == 1) b = read;
  }
  if (b == NULL) return weir_session_var_spare(session, var);
  b->users++;
  return b;
}

void weir_session_vars_end(weir_exec_session *session,
                           const weir_cached *cached, weir_var_buffer **held,
                           bool commit) {
  uint32_t n = cached->compiled->var_count;
  if (n == 0) return;
  pthread_mutex_lock(session->vars_lock);
  for (uint32_t i = 0; i < n; i++) {
    weir_variable *var = &session->vars[cached->vars[i]];
    assert(held[2 * i] == NULL || held[2 * i]->users > 0);
    weir_var_buffer *read = held[2 * i], *written = held[2 * i + 1];
    if (read != NULL) read->users--;
    if (written != NULL) {
      assert(written->users > 0 &&
             (written != var->cell->current || written == read));
      if (commit) {
        var->cell->current = written;
        weir_var_buffer_written(written, cached->compiled->vars[i].gpu);
      }
      written->users--;
      if (written != read) weir_session_var_left(session, written);
    }
    if (read != NULL) weir_session_var_left(session, read);
  }
  pthread_mutex_unlock(session->vars_lock);
}

/* A program on one device, of a default, reads variables as it finds them: of
 * another process's there is no value here. First values read first values. */
static weir_status check_here(const weir_exec_session *session,
                              const weir_cached *cached, weir_error *err) {
  for (uint32_t i = 0; i < cached->compiled->var_count && !cached->init; i++) {
    const weir_variable *var = &session->vars[cached->vars[i]];
    if (cached->compiled->vars[i].elsewhere || !var->elsewhere) continue;
    return fail_elsewhere(var, err);
  }
  return WEIR_OK;
}

/* A buffer that got no memory of its GPU would be the next run's spare one, in
 * place of one that has some. */
static void drop_empty(weir_exec_session *session, weir_var_buffer **held) {
  weir_var_buffer *b = held[1];
  if (b->gpu != NULL || b == held[0] || b->users != 1) return;
  drop_buffer(session, b);
  held[1] = NULL;
}

/* Holds the buffers of one use, held[0] to be read and held[1] to be written.
 */
static weir_status hold(weir_exec_session *session, weir_variable *var,
                        const weir_var_use *use, weir_frame *frame,
                        weir_var_buffer **held, weir_error *err) {
  void *data = NULL;
  held[0] = var->cell->current;
  held[0]->users++;
  WEIR_TRY(weir_var_buffer_read(held[0], use->gpu, &data, err));
  weir_frame_set_external(frame, use->read, data);
  if (use->write == WEIR_NO_INDEX) return WEIR_OK;
  held[1] = place_to_write(session, var, use, frame, held[0]);
  if (held[1] == NULL) return weir_fail_memory(err, var->bytes);
  weir_status s = weir_var_buffer_write(held[1], use->gpu, &data, err);
  if (s == WEIR_OK)
    weir_frame_set_external(frame, use->write, data);
  else
    drop_empty(session, held);
  return s;
}

/* Holds all, or none after a failure. */
static weir_status hold_all(weir_exec_session *session,
                            const weir_cached *cached, weir_frame *frame,
                            weir_var_buffer **held, weir_error *err) {
  uint32_t n = cached->compiled->var_count;
  weir_status s = WEIR_OK;
  memset(held, 0, 2 * (size_t)n * sizeof *held);
  pthread_mutex_lock(session->vars_lock);
  for (uint32_t i = 0; s == WEIR_OK && i < n; i++) {
    const weir_var_use *use = &cached->compiled->vars[i];
    if (!use->elsewhere)
      s = hold(session, &session->vars[cached->vars[i]], use, frame,
               &held[2 * i], err);
  }
  pthread_mutex_unlock(session->vars_lock);
  if (s != WEIR_OK) weir_session_vars_end(session, cached, held, false);
  return s;
}

/* A GPU that variables are on; NULL: none. */
static const weir_exec_gpu *gpu_of(const weir_compiled *c) {
  for (uint32_t i = 0; i < c->var_count; i++)
    if (c->vars[i].gpu != NULL) return c->vars[i].gpu;
  return NULL;
}

/* Nothing is held while memory of a GPU is waited for: other runs go on. */
weir_status weir_session_vars_begin(weir_exec_session *session,
                                    const weir_cached *cached,
                                    weir_frame *frame, weir_var_buffer **held,
                                    weir_error *err) {
  if (cached->compiled->var_count == 0) return WEIR_OK;
  WEIR_TRY(check_here(session, cached, err));
  weir_gpu_wait wait = {0};
  weir_status s;
  do s = hold_all(session, cached, frame, held, err);
  while (s != WEIR_OK &&
         weir_gpu_wait_more(gpu_of(cached->compiled), &wait, &s, err));
  return s;
}

/* ---- Constants */

bool weir_session_is_constant(const weir_exec_session *session, weir_sv name) {
  uint32_t v = weir_map_get(&session->var_names, name);
  return v != WEIR_MAP_NONE && !session->vars[v].assigned;
}

/* Nothing assigns it, so its value was written by the host. */
const void *weir_session_constant(weir_exec_session *session,
                                  weir_cached *cached, weir_sv name) {
  uint32_t v = weir_map_get(&session->var_names, name);
  const void *data = NULL;
  if (v == WEIR_MAP_NONE || session->vars[v].assigned) return NULL;
  pthread_mutex_lock(session->vars_lock);
  weir_variable *var = &session->vars[v];
  if (var->cell->ready && cached->constants[v] == NULL) {
    cached->constants[v] = var->cell->current;
    var->cell->current->users++;
  }
  if (cached->constants[v] != NULL) data = cached->constants[v]->data;
  pthread_mutex_unlock(session->vars_lock);
  return data;
}

/* ---- From outside */

static weir_status find_var(weir_exec_session *session, weir_node_id node,
                            weir_variable **out, weir_error *err) {
  *out = NULL;
  for (uint32_t i = 0; i < session->var_count; i++)
    if (session->vars[i].node == node) {
      *out = &session->vars[i];
      return WEIR_OK;
    }
  return weir_fail(err, WEIR_W0004, NULL, "node %u is no variable", node);
}

weir_status weir_exec_variable_get(weir_exec_session *session,
                                   weir_node_id node, weir_tensor **out_tensor,
                                   weir_error *err) {
  return session->mesh != NULL
             ? weir_session_mesh_get(session, node, out_tensor, err)
             : weir_session_get(session, node, out_tensor, err);
}

weir_status weir_session_check_home(const weir_exec_session *session,
                                    uint32_t var, weir_error *err) {
  return session->vars[var].elsewhere ? fail_elsewhere(&session->vars[var], err)
                                      : WEIR_OK;
}

weir_status weir_session_get(weir_exec_session *session, weir_node_id node,
                             weir_tensor **out_tensor, weir_error *err) {
  weir_variable *var = NULL;
  *out_tensor = NULL;
  WEIR_TRY(find_var(session, node, &var, err));
  if (var->elsewhere) return fail_elsewhere(var, err);
  WEIR_TRY(weir_session_vars_init(session, err));
  WEIR_TRY(weir_tensor_create_shaped(session->env->alloc, var->dtype,
                                     var->shape, out_tensor, err));
  if (session->options.remote != NULL) {
    void *data = (*out_tensor)->data;
    weir_status s = weir_session_remote_get(session, &node, &data, 1, err);
    if (s == WEIR_OK) return WEIR_OK;
    weir_tensor_unref(*out_tensor);
    *out_tensor = NULL;
    return s;
  }
  void *data = NULL;
  pthread_mutex_lock(session->vars_lock);
  weir_status s = weir_var_buffer_read(var->cell->current, NULL, &data, err);
  if (s == WEIR_OK) memcpy((*out_tensor)->data, data, var->bytes);
  pthread_mutex_unlock(session->vars_lock);
  if (s == WEIR_OK) return WEIR_OK;
  weir_tensor_unref(*out_tensor);
  *out_tensor = NULL;
  return s;
}

weir_status weir_exec_variable_set(weir_exec_session *session,
                                   weir_node_id node, const weir_tensor *tensor,
                                   weir_error *err) {
  return session->mesh != NULL
             ? weir_session_mesh_set(session, node, tensor, err)
             : weir_session_set(session, node, tensor, err);
}

static bool set_value(weir_exec_session *session, weir_variable *var,
                      const void *data) {
  pthread_mutex_lock(session->vars_lock);
  weir_var_buffer *old = var->cell->current, *b = old;
  bool over = session->options.overwrite && old != NULL && old->users == 0;
  if (!over) b = weir_session_var_spare(session, var);
  if (b != NULL) {
    memcpy(b->data, data, var->bytes);
    weir_var_buffer_written(b, NULL);
    b->users = 0;
    var->cell->current = b;
    var->cell->ready = true;
    if (old != NULL) weir_session_var_left(session, old);
  }
  pthread_mutex_unlock(session->vars_lock);
  return b != NULL;
}

weir_status weir_session_set(weir_exec_session *session, weir_node_id node,
                             const weir_tensor *tensor, weir_error *err) {
  weir_variable *var = NULL;
  WEIR_TRY(find_var(session, node, &var, err));
  if (tensor->dtype != var->dtype ||
      !weir_shape_equal(&tensor->shape, var->shape))
    return weir_fail(err, WEIR_W4009, NULL,
                     "variable %.*s has another dtype or shape",
                     WEIR_SV(var->name));
  if (session->options.remote != NULL)
    return weir_session_remote_set(session, node, tensor->data, err);
  if (var->elsewhere && var->assigned) return fail_elsewhere(var, err);
  weir_turn_wait(&session->turn);
  bool ok = set_value(session, var, tensor->data);
  weir_turn_give(&session->turn);
  if (ok) weir_session_make_stale(session, (uint32_t)(var - session->vars));
  return ok ? WEIR_OK : weir_fail_memory(err, var->bytes);
}
