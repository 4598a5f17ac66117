/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables of a remote: read at home, written wherever their values are.
 *
 * One that some node assigns has its value at home alone. One that nothing
 * assigns is compiled in where it is read, so it is set at home and on each
 * task of a program that needs its bytes. A program that is made later may need
 * it elsewhere: then it is read at home and set there first.
 *
 * A task that cannot read or set a variable as it should has lost its sense of
 * the session, which ends. */
#include "runtime/dist/cluster/cluster_vars.h"

#include <string.h>

#include "placement/place.h"
#include "runtime/dist/channel/exchange.h"
#include "runtime/dist/cluster/cluster_turn.h"

weir_status weir_dist_vars_create(weir_dist_session *s, weir_error *err) {
  const weir_graph *g = s->graph;
  uint32_t tasks = s->dist->options.task_count, count = 0;
  for (weir_node_id i = 0; i < g->node_count; i++)
    count += g->nodes[i].op->instr == WEIR_INSTR_VAR_READ;
  s->variables = weir_arena_array(&s->arena, count, sizeof *s->variables);
  if (s->variables == NULL)
    return weir_fail_memory(err, count * sizeof *s->variables);
  for (weir_node_id i = 0; i < g->node_count; i++) {
    const weir_node *node = &g->nodes[i];
    if (node->op->instr != WEIR_INSTR_VAR_READ) continue;
    const weir_value *v = &g->values[node->first_output];
    weir_dist_variable *var = &s->variables[s->variable_count++];
    var->node = i;
    var->home = weir_placing_home_task(s->placing, node->name);
    if (var->home < s->home || s->variable_count == 1) s->home = var->home;
    if (weir_shape_known(v->shape))
      var->bytes = weir_shape_bytes(v->shape, v->dtype);
    var->needed = weir_arena_array(&s->arena, tasks, sizeof(bool));
    var->has = weir_arena_array(&s->arena, tasks, sizeof(bool));
    if (var->needed == NULL || var->has == NULL || var->home >= tasks)
      return var->home >= tasks && var->has != NULL
                 ? weir_fail(err, WEIR_W9001, NULL, "variable %.*s has no home",
                             WEIR_SV(node->name))
                 : weir_fail_memory(err, tasks);
  }
  for (weir_node_id i = 0; i < g->node_count; i++) {
    if (g->nodes[i].op->instr != WEIR_INSTR_VAR_COMMIT) continue;
    weir_node_id owner = g->values[g->nodes[i].inputs[0]].node;
    for (uint32_t k = 0; k < s->variable_count; k++)
      if (s->variables[k].node == owner) s->variables[k].assigned = true;
  }
  return WEIR_OK;
}

weir_dist_variable *weir_dist_variable_of(const weir_dist_session *s,
                                          weir_node_id node) {
  uint32_t low = 0, high = s->variable_count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (s->variables[middle].node < node)
      low = middle + 1;
    else
      high = middle;
  }
  return low < s->variable_count && s->variables[low].node == node
             ? &s->variables[low]
             : NULL;
}

/* ---- A call: rows sorted by place, one request for each place */

typedef struct var_row {
  weir_dist_move move;
  weir_dist_variable *variable;
  void *data;
} var_row;

typedef struct var_request {
  uint32_t place;
  uint32_t first, count; /* of rows and nodes */
  uint64_t number;
  bool told;
} var_request;

typedef struct vars_op {
  weir_dist_op base;
  weir_arena arena;
  bool set;
  uint32_t program; /* that made the session on the tasks */
  var_row *rows;
  uint32_t *nodes;
  var_request *requests;
  uint32_t row_count, request_count;
  uint32_t left; /* rows and requests; under the lock */
  weir_status first;
  weir_error why;
} vars_op;

/* One of |left| has ended. Under the lock. */
static void one_ended(vars_op *op, weir_status status, const weir_error *err) {
  if (status != WEIR_OK && op->first == WEIR_OK) {
    op->first = status;
    weir_error_copy(&op->why, err);
  }
  if (--op->left == 0) weir_dist_done(&op->base, op->first, &op->why);
}

static void row_moved(void *self, weir_status status, const weir_error *err) {
  const weir_dist_move *move = self;
  weir_dist *d = move->op->dist;
  pthread_mutex_lock(&d->lock);
  one_ended((vars_op *)move->op, status, err);
  pthread_mutex_unlock(&d->lock);
}

static void move_row(vars_op *op, var_row *row, const var_request *request) {
  weir_slot slot = {WEIR__V1__VALUE_KIND__VARIABLE, row->variable->node,
                    request->number};
  weir_dist_move *move = &row->move;
  *move = (weir_dist_move){{.fn = row_moved, .self = move}, &op->base, 0};
  struct weir_exchange *values = op->base.dist->values;
  if (op->set)
    weir_exchange_send(values, request->place, &slot,
                       (weir_bytes){row->data, row->variable->bytes},
                       &move->done);
  else
    weir_exchange_recv(values, request->place, &slot, row->data,
                       row->variable->bytes, &move->done);
}

/* The request could not be sent: as if its task had refused. */
static void not_sent(vars_op *op, const var_request *r, const weir_error *err) {
  weir_dist *d = op->base.dist;
  weir_dist_give_up(d, err);
  pthread_mutex_lock(&d->lock);
  for (uint32_t k = 0; k <= r->count; k++) one_ended(op, err->code, err);
  pthread_mutex_unlock(&d->lock);
}

static weir_status start_vars(weir_dist_op *base, weir_error *err) {
  (void)err;
  vars_op *op = (vars_op *)base;
  weir_dist *d = base->dist;
  uint32_t count = op->request_count;
  /* The op may be over, and gone, after its last row. */
  for (uint32_t i = 0; i < count; i++) {
    var_request *r = &op->requests[i];
    weir_error why = WEIR_ERROR_INIT;
    weir_driver_variables want = {op->set, r->place, op->program,
                                  op->nodes + r->first, r->count};
    uint64_t number = 0;
    if (weir_driver_variables_start(d->driver, weir_dist_now(d), &want, &number,
                                    &why) != WEIR_OK) {
      not_sent(op, r, &why);
      continue;
    }
    pthread_mutex_lock(&d->lock);
    r->number = number;
    pthread_mutex_unlock(&d->lock);
    for (uint32_t k = 0; k < r->count; k++)
      move_row(op, &op->rows[r->first + k], r);
  }
  return WEIR_OK;
}

/* Control thread. */
void weir_dist_variables(weir_dist *d, uint64_t request,
                         const weir_error *err) {
  bool refused = false;
  pthread_mutex_lock(&d->lock);
  for (weir_dist_op *it = d->ops; it != NULL; it = it->next) {
    vars_op *op = (vars_op *)it;
    if (it->kind != WEIR_DIST_VARIABLES || it->done) continue;
    for (uint32_t i = 0; i < op->request_count && !it->done; i++) {
      if (op->requests[i].told || op->requests[i].number != request) continue;
      op->requests[i].told = true;
      refused = err != NULL;
      one_ended(op, err != NULL ? err->code : WEIR_OK, err);
    }
  }
  pthread_mutex_unlock(&d->lock);
  if (refused) weir_dist_give_up(d, err);
}

/* ---- Making it */

static weir_status make_op(weir_dist_session *s, uint32_t rows, bool set,
                           vars_op *op, weir_error *err) {
  uint32_t tasks = s->dist->options.task_count;
  *op = (vars_op){.base = {.kind = WEIR_DIST_VARIABLES, .start = start_vars},
                  .set = set,
                  .program = s->program,
                  .why = WEIR_ERROR_INIT};
  weir_arena_init(&op->arena, s->dist->env->alloc);
  op->rows = weir_arena_array(&op->arena, rows, sizeof *op->rows);
  op->nodes = weir_arena_array(&op->arena, rows, sizeof *op->nodes);
  op->requests = weir_arena_array(&op->arena, tasks, sizeof *op->requests);
  if (op->rows != NULL && op->nodes != NULL && op->requests != NULL)
    return WEIR_OK;
  return weir_fail_memory(err, rows * sizeof *op->rows);
}

/* Rows come by ascending place. */
static void add_row(vars_op *op, uint32_t place, weir_dist_variable *variable,
                    void *data) {
  var_request *r = &op->requests[op->request_count];
  if (op->request_count > 0 && r[-1].place == place) {
    r--;
  } else {
    *r = (var_request){.place = place, .first = op->row_count};
    op->request_count++;
  }
  r->count++;
  op->nodes[op->row_count] = variable->node;
  op->rows[op->row_count++] = (var_row){.variable = variable, .data = data};
}

static weir_status run_op(weir_dist *d, vars_op *op, weir_error *err) {
  weir_status s = WEIR_OK;
  op->left = op->row_count + op->request_count;
  weir_error why = WEIR_ERROR_INIT;
  if (op->left > 0) s = weir_dist_call(d, &op->base, &why);
  if (s != WEIR_OK) s = weir_dist_blame(d, op->requests[0].place, &why);
  if (s != WEIR_OK) weir_error_copy(err, &why);
  return s;
}

static weir_status check(const weir_dist_session *s, const weir_node_id *nodes,
                         uint32_t count, weir_error *err) {
  for (uint32_t i = 0; i < count; i++)
    if (weir_dist_variable_of(s, nodes[i]) == NULL)
      return weir_fail(err, WEIR_W0004, NULL, "node %u is no variable",
                       nodes[i]);
  return WEIR_OK;
}

/* In a turn. */
static weir_status get(weir_dist_session *s, const weir_node_id *nodes,
                       void *const *data, uint32_t count, weir_error *err) {
  vars_op op;
  WEIR_TRY(check(s, nodes, count, err));
  weir_status status = make_op(s, count, false, &op, err);
  for (uint32_t t = 0; status == WEIR_OK && t < s->dist->options.task_count;
       t++)
    for (uint32_t i = 0; i < count; i++) {
      weir_dist_variable *v = weir_dist_variable_of(s, nodes[i]);
      if (v->home == t) add_row(&op, t, v, data[i]);
    }
  pthread_mutex_lock(&s->moment);
  if (status == WEIR_OK) status = run_op(s->dist, &op, err);
  pthread_mutex_unlock(&s->moment);
  weir_arena_release(&op.arena);
  return status;
}

weir_status weir_dist_get(weir_remote *remote, const weir_node_id *nodes,
                          void *const *data, uint32_t count, weir_error *err) {
  weir_dist_session *s = (weir_dist_session *)remote;
  WEIR_TRY(weir_dist_turn_enter(s, false, NULL, NULL, err));
  weir_status status = get(s, nodes, data, count, err);
  weir_dist_turn_leave(s, false);
  return status;
}

/* The tasks whose sessions have the value. */
bool weir_dist_goes_to(const weir_dist_variable *v, uint32_t place) {
  return v->home == place || (!v->assigned && v->needed[place]);
}

/* In a turn, with |preparing|. */
static weir_status set(weir_dist_session *s, const weir_node_id *nodes,
                       const void *const *data, uint32_t count,
                       weir_error *err) {
  uint32_t tasks = s->dist->options.task_count;
  vars_op op;
  weir_dist_gate_enter(&s->dist->gate, true);
  pthread_mutex_lock(&s->moment);
  weir_status status = make_op(s, count * tasks, true, &op, err);
  for (uint32_t t = 0; status == WEIR_OK && t < tasks; t++)
    for (uint32_t i = 0; i < count; i++) {
      weir_dist_variable *v = weir_dist_variable_of(s, nodes[i]);
      if (weir_dist_goes_to(v, t))
        add_row(&op, t, v, (void *)(uintptr_t)data[i]);
    }
  if (status == WEIR_OK) status = run_op(s->dist, &op, err);
  for (uint32_t i = 0; status == WEIR_OK && i < count; i++) {
    weir_dist_variable *v = weir_dist_variable_of(s, nodes[i]);
    v->set = true;
    for (uint32_t t = 0; t < tasks; t++) v->has[t] = weir_dist_goes_to(v, t);
  }
  pthread_mutex_unlock(&s->moment);
  weir_dist_gate_leave(&s->dist->gate, true);
  weir_arena_release(&op.arena);
  return status;
}

weir_status weir_dist_set(weir_remote *remote, const weir_node_id *nodes,
                          const void *const *data, uint32_t count,
                          weir_error *err) {
  weir_dist_session *s = (weir_dist_session *)remote;
  weir_driver_turn turn = {0};
  WEIR_TRY(check(s, nodes, count, err));
  pthread_mutex_lock(&s->preparing);
  weir_status status = weir_dist_turn_enter(s, true, NULL, &turn, err);
  if (status == WEIR_OK) {
    status = weir_dist_turn_check_alone(s, &turn, err);
    if (status == WEIR_OK) status = set(s, nodes, data, count, err);
    weir_dist_turn_leave(s, false);
  }
  pthread_mutex_unlock(&s->preparing);
  return status;
}

/* ---- To tasks that need it later */

static bool lacks(const weir_dist_variable *v, uint32_t tasks) {
  bool any = false;
  for (uint32_t t = 0; t < tasks; t++)
    any |= v->set && weir_dist_goes_to(v, t) && !v->has[t];
  return any;
}

static weir_status share_one(weir_dist_session *s, weir_dist_variable *v,
                             weir_error *err) {
  const weir_allocator *alloc = s->dist->env->alloc;
  uint32_t tasks = s->dist->options.task_count;
  void *bytes = weir_alloc_array(alloc, v->bytes + 1, 1);
  if (bytes == NULL) return weir_fail_memory(err, v->bytes);
  weir_status status = get(s, &v->node, &bytes, 1, err);
  vars_op op;
  if (status == WEIR_OK) {
    status = make_op(s, tasks, true, &op, err);
    for (uint32_t t = 0; status == WEIR_OK && t < tasks; t++)
      if (weir_dist_goes_to(v, t) && !v->has[t]) add_row(&op, t, v, bytes);
    if (status == WEIR_OK) status = run_op(s->dist, &op, err);
    weir_arena_release(&op.arena);
  }
  for (uint32_t t = 0; status == WEIR_OK && t < tasks; t++)
    v->has[t] = weir_dist_goes_to(v, t);
  weir_free(alloc, bytes);
  return status;
}

/* In a turn. */
static weir_status share_all(weir_dist_session *s, weir_error *err) {
  uint32_t tasks = s->dist->options.task_count;
  weir_status status = WEIR_OK;
  for (uint32_t i = 0; status == WEIR_OK && i < s->variable_count; i++) {
    if (!lacks(&s->variables[i], tasks)) continue;
    weir_dist_gate_enter(&s->dist->gate, true);
    status = share_one(s, &s->variables[i], err);
    weir_dist_gate_leave(&s->dist->gate, true);
  }
  return status;
}

weir_status weir_dist_share(weir_dist_session *s, weir_error *err) {
  bool any = false;
  for (uint32_t i = 0; !any && i < s->variable_count; i++)
    any = lacks(&s->variables[i], s->dist->options.task_count);
  if (!any) return WEIR_OK;
  WEIR_TRY(weir_dist_turn_enter(s, false, NULL, NULL, err));
  weir_status status = share_all(s, err);
  weir_dist_turn_leave(s, false);
  return status;
}

void weir_dist_vars_found(weir_dist_session *s) {
  for (uint32_t i = 0; i < s->variable_count; i++) {
    weir_dist_variable *v = &s->variables[i];
    if (v->assigned) continue;
    v->set = true;
    v->has[v->home] = true;
  }
}
