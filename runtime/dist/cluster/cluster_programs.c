/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs: a plan cut by tasks, and its registration.
 *
 * The plan is packed and served as a blob; the tasks with work load it, compile
 * and compare. The partition says which task is given a feed and which one
 * makes a fetch. */
#include "runtime/dist/cluster/cluster_programs.h"

#include <string.h>

#include "kernels/tune/tuned.h"
#include "placement/carry/carry_plan.h"
#include "placement/parts/hashes.h"
#include "placement/parts/tasks.h"
#include "runtime/dist/cluster/cluster_turn.h"
#include "runtime/dist/cluster/cluster_vars.h"
#include "runtime/net/wire.h"

typedef struct program_op {
  weir_dist_op base;
  Weir__V1__Register message;
  const uint32_t *places;
  size_t count;
  weir_driver_program result;
} program_op;

static weir_status start_register(weir_dist_op *base, weir_error *err) {
  program_op *op = (program_op *)base;
  weir_dist *d = base->dist;
  uint32_t number = 0;
  WEIR_TRY(weir_driver_register(d->driver, weir_dist_now(d), &op->message,
                                op->places, op->count, &number, err));
  pthread_mutex_lock(&d->lock);
  base->number = number;
  pthread_mutex_unlock(&d->lock);
  return WEIR_OK;
}

void weir_dist_registered(void *self, const weir_driver_program *program,
                          const weir_error *err) {
  weir_dist *d = self;
  err = weir_dist_cause(d, err);
  pthread_mutex_lock(&d->lock);
  program_op *op =
      (program_op *)weir_dist_find(d, WEIR_DIST_PROGRAM, program->program);
  if (op != NULL) {
    op->result = *program;
    weir_dist_done(&op->base, err != NULL ? err->code : WEIR_OK, err);
  }
  pthread_mutex_unlock(&d->lock);
}

typedef struct unregister_op {
  weir_dist_op base;
  uint32_t program;
} unregister_op;

static weir_status start_unregister(weir_dist_op *base, weir_error *err) {
  return weir_driver_unregister(base->dist->driver,
                                ((unregister_op *)base)->program, err);
}

void weir_dist_unregister(weir_dist *dist, uint32_t program) {
  unregister_op op = {.base = {.start = start_unregister}, .program = program};
  /* A session that is over has forgotten all of them. */
  (void)weir_dist_call(dist, &op.base, NULL);
}

static void init_op(const weir_dist_session *s, program_op *op) {
  *op = (program_op){
      .base = {.kind = WEIR_DIST_PROGRAM, .start = start_register}};
  weir__v1__register__init(&op->message);
  op->message.bundle.data = (uint8_t *)(uintptr_t)s->bundle;
  op->message.bundle.len = sizeof s->bundle;
  op->message.home = s->home;
}

weir_status weir_dist_open_session(weir_dist_session *s, weir_error *err) {
  uint32_t count = s->dist->options.task_count;
  uint32_t *places = weir_arena_array(&s->arena, count, sizeof *places);
  if (places == NULL) return weir_fail_memory(err, count * sizeof *places);
  for (uint32_t i = 0; i < count; i++) places[i] = i;
  program_op op;
  init_op(s, &op);
  op.places = places;
  op.count = count;
  weir_driver_turn turn = {0};
  WEIR_TRY(weir_dist_turn_enter(s, true, NULL, &turn, err));
  if (turn.fresh) op.message.flags = WEIR_WIRE_REGISTER_FRESH;
  weir_status status = weir_dist_call(s->dist, &op.base, err);
  weir_dist_turn_leave(s, status == WEIR_OK);
  if (status != WEIR_OK) return status;
  s->base.found = s->dist->shared && !turn.fresh;
  if (s->base.found) weir_dist_vars_found(s);
  s->program = op.result.program;
  return WEIR_OK;
}

/* ---- A program */

typedef struct maker {
  weir_dist_session *session;
  const weir_remote_request *request;
  weir_remote_program *program;
  weir_task_cut *cut;
  bool *works; /* per place */
} maker;

static weir_status make_row(const maker *m, weir_value_id id,
                            struct weir_dist_row *row, bool fed) {
  const weir_cut *cut = m->request->cut;
  weir_value_id now = cut->values[id];
  row->place = UINT32_MAX;
  if (now == WEIR_NO_VALUE) return WEIR_OK; /* nobody reads it */
  const weir_value *v = &cut->graph->values[now];
  row->place =
      m->cut->partition->part_count > 0 ? weir_task_of_value(m->cut, now) : 0;
  if (!fed) row->bytes = weir_shape_bytes(v->shape, v->dtype);
  m->works[row->place] = true;
  return WEIR_OK;
}

static weir_status make_rows(maker *m, weir_error *err) {
  const weir_remote_request *r = m->request;
  weir_remote_program *p = m->program;
  p->feed_count = r->feed_count;
  p->fetch_count = r->fetch_count;
  p->feeds = weir_arena_array(&p->arena, r->feed_count, sizeof *p->feeds);
  p->fetches = weir_arena_array(&p->arena, r->fetch_count, sizeof *p->fetches);
  m->works = weir_arena_array(&p->arena, m->cut->task_count, sizeof *m->works);
  if (p->feeds == NULL || p->fetches == NULL || m->works == NULL)
    return weir_fail_memory(err, r->fetch_count * sizeof *p->fetches);
  for (uint32_t i = 0; i < r->feed_count; i++) {
    WEIR_TRY(make_row(m, r->feeds[i], &p->feeds[i], true));
    p->feeds[i].bytes = weir_shape_bytes(&r->feed_shapes[i],
                                         r->graph->values[r->feeds[i]].dtype);
  }
  for (uint32_t i = 0; i < r->fetch_count; i++)
    WEIR_TRY(make_row(m, r->fetches[i], &p->fetches[i], false));
  for (uint32_t t = 0; t < m->cut->task_count; t++)
    if (m->cut->tasks[t].part_count > 0) m->works[t] = true;
  return WEIR_OK;
}

/* Marks the tasks that are compiled with a variable's value. */
static weir_status mark_variables(const maker *m, weir_error *err) {
  const weir_dist_session *s = m->session;
  const weir_cut *cut = m->request->cut;
  bool *marks =
      weir_arena_array(&m->program->arena, m->cut->task_count, sizeof *marks);
  if (marks == NULL) return weir_fail_memory(err, m->cut->task_count);
  for (uint32_t i = 0; i < s->variable_count; i++) {
    const weir_dist_variable *v = &s->variables[i];
    weir_value_id now =
        cut->values[m->request->graph->nodes[v->node].first_output];
    if (v->assigned || now == WEIR_NO_VALUE) continue;
    memset(marks, 0, m->cut->task_count * sizeof *marks);
    WEIR_TRY(weir_task_mark_variable(m->cut, cut->graph->values[now].node, true,
                                     marks, err));
    for (uint32_t t = 0; t < m->cut->task_count; t++)
      if (marks[t]) v->needed[t] = true;
  }
  return WEIR_OK;
}

static weir_status fill_feeds(maker *m, Weir__V1__Register *message,
                              weir_error *err) {
  const weir_remote_request *r = m->request;
  weir_arena *arena = &m->program->arena;
  Weir__V1__Feed *feeds = weir_arena_array(arena, r->feed_count, sizeof *feeds);
  Weir__V1__Shape *shapes =
      weir_arena_array(arena, r->feed_count, sizeof *shapes);
  message->feeds =
      weir_arena_array(arena, r->feed_count, sizeof *message->feeds);
  if (feeds == NULL || shapes == NULL || message->feeds == NULL)
    return weir_fail_memory(err, r->feed_count * sizeof *feeds);
  for (uint32_t i = 0; i < r->feed_count; i++) {
    const weir_shape *shape = &r->feed_shapes[i];
    weir__v1__feed__init(&feeds[i]);
    weir__v1__shape__init(&shapes[i]);
    shapes[i].n_dims = (size_t)shape->rank;
    shapes[i].dims =
        weir_arena_array(arena, (size_t)shape->rank, sizeof *shapes[i].dims);
    if (shapes[i].dims == NULL) return weir_fail_memory(err, sizeof *shapes);
    for (int32_t k = 0; k < shape->rank; k++)
      shapes[i].dims[k] = shape->dims[k].value;
    feeds[i].value = r->feeds[i];
    feeds[i].dtype = (uint32_t)r->graph->values[r->feeds[i]].dtype;
    feeds[i].shape = &shapes[i];
    message->feeds[i] = &feeds[i];
  }
  message->n_feeds = r->feed_count;
  return WEIR_OK;
}

static weir_status fill(maker *m, program_op *op, uint8_t *plan_name,
                        weir_error *err) {
  const weir_remote_request *r = m->request;
  weir_plan_hashes hashes;
  uint32_t *places =
      weir_arena_array(&m->program->arena, m->cut->task_count, sizeof *places);
  if (places == NULL) return weir_fail_memory(err, sizeof *places);
  WEIR_TRY(weir_plan_hashes_get(r->plan, &hashes, err));
  init_op(m->session, op);
  op->message.plan.data = plan_name;
  op->message.plan.len = WEIR_BLOB_NAME_BYTES;
  op->message.graph_hash = hashes.graph;
  op->message.plan_hash =
      hashes.plan + weir_tuned_hash(m->session->dist->env->tuned);
  op->message.partition_hash = hashes.partition;
  op->message.fetches = (uint32_t *)(uintptr_t)r->fetches;
  op->message.n_fetches = r->fetch_count;
  op->message.targets = (uint32_t *)(uintptr_t)r->targets;
  op->message.n_targets = r->target_count;
  op->message.flags = r->no_fusion ? WEIR_DIST_NO_FUSION : 0;
  for (uint32_t t = 0; t < m->cut->task_count; t++)
    if (m->works[t]) places[op->count++] = t;
  op->places = places;
  return fill_feeds(m, &op->message, err);
}

/* Registers with the plan at hand, as a blob of that name. */
static weir_status register_plan(maker *m, weir_error *err) {
  weir_dist *d = m->session->dist;
  uint8_t name[WEIR_BLOB_NAME_BYTES];
  weir_dist_blob *blob = NULL;
  program_op op;
  weir_strbuf plan;
  weir_strbuf_init(&plan, d->env->alloc);
  weir_status s = weir_plan_pack(m->request->plan, &plan, err);
  weir_sv view = weir_strbuf_view(&plan);
  weir_bytes bytes = {(const uint8_t *)view.data, view.size};
  if (s == WEIR_OK) {
    weir_blob_name(bytes, name);
    s = fill(m, &op, name, err);
  }
  if (s == WEIR_OK) s = weir_dist_blobs_add(&d->blobs, name, bytes, &blob, err);
  if (s == WEIR_OK) s = weir_dist_call(d, &op.base, err);
  if (s == WEIR_OK) {
    m->program->number = op.result.program;
    m->program->writes = op.result.writes;
  }
  weir_dist_blobs_drop(&d->blobs, blob);
  weir_strbuf_release(&plan);
  return s;
}

static weir_status make_program(maker *m, weir_error *err) {
  weir_dist_session *s = m->session;
  const weir_plan *plan = m->request->plan;
  const weir_partition *partition = NULL;
  WEIR_TRY(weir_plan_partition(plan, &partition, err));
  WEIR_TRY(weir_task_cut_create(s->dist->env->alloc, plan->placement, partition,
                                &m->cut, err));
  WEIR_TRY(make_rows(m, err));
  pthread_mutex_lock(&s->preparing);
  weir_status status = mark_variables(m, err);
  if (status == WEIR_OK) status = weir_dist_share(s, err);
  if (status == WEIR_OK) status = register_plan(m, err);
  pthread_mutex_unlock(&s->preparing);
  return status;
}

weir_status weir_dist_prepare(weir_remote *remote,
                              const weir_remote_request *request,
                              weir_remote_program **out_program,
                              bool *out_writes, weir_error *err) {
  weir_dist_session *s = (weir_dist_session *)remote;
  const weir_allocator *alloc = s->dist->env->alloc;
  weir_remote_program *p = weir_alloc_array(alloc, 1, sizeof *p);
  *out_program = NULL;
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  weir_arena_init(&p->arena, alloc);
  maker m = {.session = s, .request = request, .program = p};
  weir_status status = make_program(&m, err);
  weir_task_cut_release(m.cut);
  if (status != WEIR_OK) {
    weir_arena_release(&p->arena);
    weir_free(alloc, p);
    return status;
  }
  *out_program = p;
  *out_writes = p->writes;
  return WEIR_OK;
}

void weir_dist_forget(weir_remote *remote, weir_remote_program *p) {
  weir_dist_session *s = (weir_dist_session *)remote;
  if (p == NULL) return;
  weir_dist_unregister(s->dist, p->number);
  weir_arena_release(&p->arena);
  weir_free(s->dist->env->alloc, p);
}
