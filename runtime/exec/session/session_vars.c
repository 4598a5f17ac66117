/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/session/session_vars.h"

#include <assert.h>
#include <string.h>

#include "runtime/base/size.h"
#include "runtime/exec/session/session_cache.h"
#include "runtime/exec/session/session_internal.h"
#include "runtime/exec/session/session_mesh.h"
#include "runtime/exec/session/session_remote.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/graph/load/weight.h"

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

/* A buffer that had no user, now with one. Under the lock. */
static weir_var_buffer *spare_buffer(weir_exec_session *session,
                                     weir_variable *var) {
  for (weir_var_buffer *b = var->cell->buffers; b != NULL; b = b->next)
    if (b->users == 0 && b != var->cell->current) {
      b->users = 1;
      return b;
    }
  size_t bytes;
  if (!weir_size_add(var->bytes, sizeof(weir_var_buffer) + 64, &bytes))
    return NULL;
  weir_var_buffer *b = weir_alloc_aligned(session->env->alloc, bytes, 64);
  if (b == NULL) return NULL;
  b->users = 1;
  b->next = var->cell->buffers;
  var->cell->buffers = b;
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
    if (held[2 * i] != NULL) held[2 * i]->users--;
    if (held[2 * i + 1] == NULL) continue;
    assert(held[2 * i + 1]->users > 0 && held[2 * i + 1] != var->cell->current);
    if (commit) var->cell->current = held[2 * i + 1];
    held[2 * i + 1]->users--;
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

weir_status weir_session_vars_begin(weir_exec_session *session,
                                    const weir_cached *cached,
                                    weir_frame *frame, weir_var_buffer **held,
                                    weir_error *err) {
  uint32_t n = cached->compiled->var_count;
  if (n == 0) return WEIR_OK;
  bool ok = true;
  memset(held, 0, 2 * (size_t)n * sizeof *held);
  WEIR_TRY(check_here(session, cached, err));
  pthread_mutex_lock(session->vars_lock);
  for (uint32_t i = 0; ok && i < n; i++) {
    const weir_var_use *use = &cached->compiled->vars[i];
    weir_variable *var = &session->vars[cached->vars[i]];
    if (use->elsewhere) continue;
    held[2 * i] = var->cell->current;
    var->cell->current->users++;
    weir_frame_set_external(frame, use->read, var->cell->current->data);
    if (use->write == WEIR_NO_INDEX) continue;
    held[2 * i + 1] = spare_buffer(session, var);
    ok = held[2 * i + 1] != NULL;
    if (ok) weir_frame_set_external(frame, use->write, held[2 * i + 1]->data);
  }
  pthread_mutex_unlock(session->vars_lock);
  if (ok) return WEIR_OK;
  weir_session_vars_end(session, cached, held, false);
  return weir_fail_memory(err, 0);
}

/* ---- First values */

static bool set_first(weir_exec_session *session, weir_variable *var,
                      const void *data) {
  pthread_mutex_lock(session->vars_lock);
  weir_var_buffer *b = spare_buffer(session, var);
  if (b != NULL) {
    memcpy(b->data, data, var->bytes);
    b->users = 0;
    var->cell->current = b;
    var->cell->ready = true;
  }
  pthread_mutex_unlock(session->vars_lock);
  return b != NULL;
}

/* The bytes may have to be fetched first: without the lock. */
static weir_status set_weight(weir_exec_session *session, weir_variable *var,
                              const weir_graph_weight *weight,
                              weir_error *err) {
  pthread_mutex_lock(session->vars_lock);
  weir_var_buffer *b = spare_buffer(session, var);
  pthread_mutex_unlock(session->vars_lock);
  if (b == NULL) return weir_fail_memory(err, var->bytes);
  weir_status s = weir_graph_weight_copy(weight, b->data, err);
  pthread_mutex_lock(session->vars_lock);
  b->users = 0;
  if (s == WEIR_OK) {
    var->cell->current = b;
    var->cell->ready = true;
  }
  pthread_mutex_unlock(session->vars_lock);
  return s;
}

static bool is_ready(weir_exec_session *session, const weir_variable *var) {
  pthread_mutex_lock(session->vars_lock);
  bool ready = var->cell->ready;
  pthread_mutex_unlock(session->vars_lock);
  return ready;
}

/* Runs the initial values of |todo| in one program. */
static weir_status run_init(weir_exec_session *session, const uint32_t *todo,
                            uint32_t count, weir_error *err) {
  const weir_allocator *a = session->env->alloc;
  weir_value_id *ids = weir_alloc_array(a, count, sizeof *ids);
  weir_tensor **out = weir_alloc_array(a, count, sizeof *out);
  weir_wanted wanted = {.fetches = ids, .fetch_count = count, .init = true};
  weir_cached *cached = NULL;
  weir_frame *frame = NULL;
  weir_var_buffer **held = NULL;
  weir_status s = WEIR_OK;
  if (ids == NULL || out == NULL) s = weir_fail_memory(err, 0);
  for (uint32_t i = 0; s == WEIR_OK && i < count; i++)
    ids[i] = session->vars[todo[i]].init;
  if (s == WEIR_OK) s = weir_session_program(session, &wanted, &cached, err);
  for (uint32_t i = 0; s == WEIR_OK && i < count; i++)
    s = weir_session_output(session, cached, i, &out[i], err);
  if (s == WEIR_OK) s = weir_session_frame(session, cached, &frame, err);
  if (s == WEIR_OK)
    held = weir_alloc_array(a, 2 * (size_t)cached->compiled->var_count,
                            sizeof *held);
  if (s == WEIR_OK && held == NULL) s = weir_fail_memory(err, 0);
  for (uint32_t i = 0; s == WEIR_OK && i < count; i++)
    weir_frame_set_external(frame, i, out[i]->data);
  if (s == WEIR_OK)
    s = weir_session_step(session, cached, frame, held, NULL, err);
  for (uint32_t i = 0; s == WEIR_OK && i < count; i++)
    if (!set_first(session, &session->vars[todo[i]], out[i]->data))
      s = weir_fail_memory(err, session->vars[todo[i]].bytes);
  if (frame != NULL) weir_session_frame_return(session, cached, frame);
  weir_session_program_release(session, cached);
  for (uint32_t i = 0; out != NULL && i < count; i++) weir_tensor_unref(out[i]);
  weir_free(a, held);
  weir_free(a, ids);
  weir_free(a, out);
  return s;
}

/* Marks in |mark| (per node) the nodes that compute the first value of variable
 * |v|, down to the reads of other variables. All of them, and thus all marks,
 * have ids up to the one returned. */
static weir_node_id mark_below(const weir_exec_session *session, uint32_t v,
                               uint8_t *mark) {
  const weir_graph *g = session->graph;
  memset(mark, 0, g->node_count);
  weir_node_id from = g->values[session->vars[v].init].node;
  mark[from] = 1;
  for (weir_node_id id = from + 1; id-- > 0;) {
    const weir_node *node = &g->nodes[id];
    if (!mark[id] || node->op->instr == WEIR_INSTR_VAR_READ) continue;
    for (uint32_t i = 0; i < node->input_count; i++)
      if (node->inputs[i] != WEIR_NO_VALUE)
        mark[g->values[node->inputs[i]].node] = 1;
  }
  return from;
}

/* The variable that the marked node |id| reads; WEIR_MAP_NONE: none. */
static uint32_t marked_read(const weir_exec_session *session,
                            const uint8_t *mark, weir_node_id id) {
  const weir_node *node = &session->graph->nodes[id];
  return mark[id] && node->op->instr == WEIR_INSTR_VAR_READ
             ? weir_map_get(&session->var_names, node->name)
             : WEIR_MAP_NONE;
}

/* Whether the first value of variable |v| can be computed: no variable that it
 * reads is without one. |mark| (per node) is scratch memory. */
static bool can_init(weir_exec_session *session, uint32_t v, uint8_t *mark) {
  weir_node_id top = mark_below(session, v, mark);
  for (weir_node_id id = 0; id <= top; id++) {
    uint32_t read = marked_read(session, mark, id);
    if (read != WEIR_MAP_NONE && !is_ready(session, &session->vars[read]))
      return false;
  }
  return true;
}

/* First values that came with the graph. */
static weir_status take_weights(weir_exec_session *session, const bool *wanted,
                                weir_error *err) {
  const weir_graph *g = session->graph;
  for (uint32_t i = 0; i < g->weight_count; i++) {
    uint32_t v = weir_map_get(&session->var_names, g->weights[i].name);
    if (v == WEIR_MAP_NONE || !wanted[v] ||
        is_ready(session, &session->vars[v]))
      continue;
    WEIR_TRY(set_weight(session, &session->vars[v], &g->weights[i], err));
  }
  return WEIR_OK;
}

/* Adds to |wanted| the variables that first values of wanted ones read, if they
 * are not ready: these have lower ids. */
static void want_read(weir_exec_session *session, bool *wanted, uint8_t *mark) {
  for (uint32_t v = session->var_count; v-- > 0;) {
    if (!wanted[v] || is_ready(session, &session->vars[v])) continue;
    weir_node_id top = mark_below(session, v, mark);
    for (weir_node_id id = 0; id <= top; id++) {
      uint32_t read = marked_read(session, mark, id);
      if (read != WEIR_MAP_NONE) wanted[read] = true;
    }
  }
}

/* All variables that can be are initialised at once, so values do not depend on
 * the program that runs first. Each round makes some ready: the first value of
 * a variable reads variables of lower ids only, so the lowest one that is not
 * ready reads ready ones. */
static weir_status init_all(weir_exec_session *session, const bool *wanted,
                            uint32_t *todo, uint8_t *mark, weir_error *err) {
  WEIR_TRY(take_weights(session, wanted, err));
  for (;;) {
    uint32_t count = 0, left = 0;
    for (uint32_t v = 0; v < session->var_count; v++) {
      if (!wanted[v] || is_ready(session, &session->vars[v])) continue;
      left++;
      if (can_init(session, v, mark)) todo[count++] = v;
    }
    if (left == 0) return WEIR_OK;
    assert(count > 0);
    WEIR_TRY(run_init(session, todo, count, err));
  }
}

/* Those whose home is here, or variable |only|. Variables of other processes
 * get first values where first values of these read them. */
static weir_status init_vars(weir_exec_session *session, uint32_t only,
                             weir_error *err) {
  const weir_allocator *a = session->env->alloc;
  uint32_t n = session->var_count;
  pthread_mutex_lock(&session->init_lock);
  uint32_t *todo = weir_alloc_array(a, n, sizeof *todo);
  bool *wanted = weir_alloc_array(a, n, sizeof *wanted);
  uint8_t *mark = weir_alloc_array(a, session->graph->node_count, sizeof *mark);
  weir_status s = WEIR_OK;
  if (todo == NULL || wanted == NULL || mark == NULL)
    s = weir_fail_memory(err, session->graph->node_count);
  for (uint32_t v = 0; s == WEIR_OK && v < n; v++)
    wanted[v] = only == WEIR_MAP_NONE ? !session->vars[v].elsewhere : v == only;
  if (s == WEIR_OK) want_read(session, wanted, mark);
  if (s == WEIR_OK) s = init_all(session, wanted, todo, mark, err);
  weir_free(a, todo);
  weir_free(a, wanted);
  weir_free(a, mark);
  pthread_mutex_unlock(&session->init_lock);
  return s;
}

bool weir_session_vars_ready(weir_exec_session *session) {
  bool ready = true;
  if (session->options.remote != NULL) return true; /* made where they live */
  for (uint32_t v = 0; v < session->var_count && ready; v++)
    ready = session->vars[v].elsewhere || is_ready(session, &session->vars[v]);
  return ready;
}

weir_status weir_session_vars_init(weir_exec_session *session,
                                   weir_error *err) {
  if (weir_session_vars_ready(session)) return WEIR_OK;
  return init_vars(session, WEIR_MAP_NONE, err);
}

weir_status weir_session_vars_want(weir_exec_session *session, weir_sv name,
                                   weir_error *err) {
  uint32_t v = weir_map_get(&session->var_names, name);
  if (v == WEIR_MAP_NONE || session->vars[v].assigned ||
      !session->vars[v].elsewhere || is_ready(session, &session->vars[v]))
    return WEIR_OK;
  return init_vars(session, v, err);
}

bool weir_session_is_constant(const weir_exec_session *session, weir_sv name) {
  uint32_t v = weir_map_get(&session->var_names, name);
  return v != WEIR_MAP_NONE && !session->vars[v].assigned;
}

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
  pthread_mutex_lock(session->vars_lock);
  memcpy((*out_tensor)->data, var->cell->current->data, var->bytes);
  pthread_mutex_unlock(session->vars_lock);
  return WEIR_OK;
}

weir_status weir_exec_variable_set(weir_exec_session *session,
                                   weir_node_id node, const weir_tensor *tensor,
                                   weir_error *err) {
  return session->mesh != NULL
             ? weir_session_mesh_set(session, node, tensor, err)
             : weir_session_set(session, node, tensor, err);
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
  bool ok = set_first(session, var, tensor->data);
  weir_turn_give(&session->turn);
  if (ok) weir_session_make_stale(session, (uint32_t)(var - session->vars));
  return ok ? WEIR_OK : weir_fail_memory(err, var->bytes);
}
