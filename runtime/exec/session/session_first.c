/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/session/session_first.h"

#include <assert.h>
#include <string.h>

#include "runtime/exec/session/session_cache.h"
#include "runtime/exec/session/session_internal.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/exec/session/session_vars.h"
#include "runtime/exec/store/var_memory.h"
#include "runtime/graph/load/weight.h"

/* First values of variables: those that came with the graph, then those that
 * programs compute, of all at once. A variable is ready when it has one. */

/* The bytes may have to be fetched first: without the lock. */
static weir_status set_weight(weir_exec_session *session, weir_variable *var,
                              const weir_graph_weight *weight,
                              weir_error *err) {
  pthread_mutex_lock(session->vars_lock);
  weir_var_buffer *b = weir_session_var_spare(session, var);
  pthread_mutex_unlock(session->vars_lock);
  if (b == NULL) return weir_fail_memory(err, var->bytes);
  weir_status s = weir_graph_weight_copy(weight, b->data, err);
  pthread_mutex_lock(session->vars_lock);
  weir_var_buffer *old = var->cell->current;
  b->users = 0;
  if (s == WEIR_OK) {
    weir_var_buffer_written(b, NULL);
    var->cell->current = b;
    var->cell->ready = true;
    if (old != NULL) weir_session_var_left(session, old);
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

/* Where the first value of |var| is computed; held once. */
static weir_var_buffer *first_buffer(weir_exec_session *session,
                                     weir_variable *var) {
  weir_var_buffer *b = var->cell->current;
  bool over = session->options.overwrite && b != NULL && b->users == 0;
  if (!over) return weir_session_var_spare(session, var);
  b->users = 1;
  return b;
}

static void end_first(weir_exec_session *session, const uint32_t *todo,
                      weir_var_buffer **rooms, uint32_t count, bool ok) {
  pthread_mutex_lock(session->vars_lock);
  for (uint32_t i = 0; i < count && rooms[i] != NULL; i++) {
    weir_var_cell *cell = session->vars[todo[i]].cell;
    weir_var_buffer *old = cell->current;
    rooms[i]->users--;
    if (!ok) continue;
    weir_var_buffer_written(rooms[i], NULL);
    cell->current = rooms[i];
    cell->ready = true;
    if (old != NULL && old != rooms[i]) weir_session_var_left(session, old);
  }
  pthread_mutex_unlock(session->vars_lock);
}

static bool begin_first(weir_exec_session *session, const uint32_t *todo,
                        weir_var_buffer **rooms, uint32_t count) {
  bool ok = true;
  pthread_mutex_lock(session->vars_lock);
  for (uint32_t i = 0; ok && i < count; i++) {
    rooms[i] = first_buffer(session, &session->vars[todo[i]]);
    ok = rooms[i] != NULL;
  }
  pthread_mutex_unlock(session->vars_lock);
  return ok;
}

/* Runs the initial values of |todo| in one program, straight into buffers. */
static weir_status run_init(weir_exec_session *session, const uint32_t *todo,
                            uint32_t count, weir_error *err) {
  const weir_allocator *a = session->env->alloc;
  weir_value_id *ids = weir_alloc_array(a, count, sizeof *ids);
  weir_var_buffer **rooms = weir_alloc_array(a, count, sizeof *rooms);
  weir_wanted wanted = {.fetches = ids, .fetch_count = count, .init = true};
  weir_cached *cached = NULL;
  weir_frame *frame = NULL;
  weir_var_buffer **held = NULL;
  weir_status s = WEIR_OK;
  if (ids == NULL || rooms == NULL) s = weir_fail_memory(err, 0);
  for (uint32_t i = 0; s == WEIR_OK && i < count; i++)
    ids[i] = session->vars[todo[i]].init;
  if (s == WEIR_OK) s = weir_session_program(session, &wanted, &cached, err);
  if (s == WEIR_OK) s = weir_session_frame(session, cached, &frame, err);
  if (s == WEIR_OK)
    held = weir_alloc_array(a, 2 * (size_t)cached->compiled->var_count,
                            sizeof *held);
  if (s == WEIR_OK && held == NULL) s = weir_fail_memory(err, 0);
  if (s == WEIR_OK && !begin_first(session, todo, rooms, count))
    s = weir_fail_memory(err, 0);
  for (uint32_t i = 0; s == WEIR_OK && i < count; i++)
    weir_frame_set_external(frame, i, rooms[i]->data);
  if (s == WEIR_OK)
    s = weir_session_step(session, cached, frame, held, NULL, err);
  if (rooms != NULL) end_first(session, todo, rooms, count, s == WEIR_OK);
  if (frame != NULL) weir_session_frame_return(session, cached, frame);
  weir_session_program_release(session, cached);
  weir_free(a, held);
  weir_free(a, ids);
  weir_free(a, rooms);
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

weir_status weir_exec_variables_first(weir_exec_session *session,
                                      weir_error *err) {
  assert(session->mesh == NULL && session->options.remote == NULL);
  for (uint32_t v = 0; v < session->var_count; v++) {
    if (session->vars[v].elsewhere) continue;
    pthread_mutex_lock(session->vars_lock);
    session->vars[v].cell->ready = false;
    pthread_mutex_unlock(session->vars_lock);
    weir_session_make_stale(session, v);
  }
  return weir_session_vars_init(session, err);
}

weir_status weir_session_vars_want(weir_exec_session *session, weir_sv name,
                                   weir_error *err) {
  uint32_t v = weir_map_get(&session->var_names, name);
  if (v == WEIR_MAP_NONE || session->vars[v].assigned ||
      !session->vars[v].elsewhere || is_ready(session, &session->vars[v]))
    return WEIR_OK;
  return init_vars(session, v, err);
}
