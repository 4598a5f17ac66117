/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/session/session_remote.h"

#include <string.h>

#include "runtime/base/size.h"
#include "runtime/exec/program/program_internal.h"

/* A remote program, seen from the session, is a program of 2 + fetches
 * instructions. The first one runs it and notes how the run and each fetch
 * ended; the others hand that on, so that a failed fetch is poisoned and no
 * other. Operands are the run's own memory: nothing is copied here.
 *
 * Values: feeds, the outcomes, then two for each fetch with the same memory,
 * one that the first instruction is given and one that the fetch's own makes.
 */

typedef struct remote_state {
  weir_remote *remote;
  weir_remote_program *program;
  uint32_t feed_count, fetch_count;
} remote_state;

static weir_status run_remote(const weir_args *args) {
  const remote_state *s = args->state;
  weir_frame *frame = weir_exec_of(args)->frame;
  weir_remote_outcome *outcomes = args->io[s->feed_count + s->fetch_count];
  weir_remote_step step = {.feeds = (const void *const *)args->io,
                           .fetches = args->io + s->feed_count,
                           .outcomes = outcomes,
                           .options = &frame->options};
  for (uint32_t k = 0; k <= s->fetch_count; k++)
    outcomes[k] = (weir_remote_outcome){.error = WEIR_ERROR_INIT};
  weir_remote_outcome *all = &outcomes[s->fetch_count];
  all->status = s->remote->vt->run(s->remote, s->program, &step, &all->error);
  return WEIR_OK;
}

/* Hands one outcome on. */
typedef struct outcome_state {
  uint32_t index; /* of a fetch; their number: the run itself */
} outcome_state;

static weir_status run_outcome(const weir_args *args) {
  const outcome_state *s = args->state;
  const weir_remote_outcome *outcomes = args->io[0];
  const weir_remote_outcome *o = &outcomes[s->index];
  if (o->status != WEIR_OK) weir_error_copy(args->err, &o->error);
  return o->status;
}

/* ---- The program */

typedef struct maker {
  weir_program_builder *builder;
  weir_cached *e;
  const weir_graph *special;
  uint32_t *values; /* operands of the first instruction */
  uint32_t outcomes;
  remote_state *state;
} maker;

static uint32_t add_external(maker *m, weir_value_id id, uint32_t external) {
  const weir_value *v = &m->special->values[id];
  int64_t *dims = weir_arena_array(weir_program_builder_arena(m->builder),
                                   (size_t)v->shape->rank, sizeof *dims);
  if (dims == NULL) return WEIR_NO_INDEX;
  for (int32_t d = 0; d < v->shape->rank; d++)
    dims[d] = v->shape->dims[d].value;
  weir_value_spec spec = {.storage = WEIR_STORAGE_EXTERNAL,
                          .external = external,
                          .bytes = weir_shape_bytes(v->shape, v->dtype),
                          .dtype = v->dtype,
                          .rank = v->shape->rank,
                          .dims = dims};
  return weir_program_add_value(m->builder, &spec);
}

static bool add_values(maker *m) {
  const weir_cached *e = m->e;
  uint32_t count = e->feed_count + e->fetch_count;
  size_t bytes;
  for (uint32_t i = 0; i < count; i++) {
    m->values[i] = add_external(m, e->ids[i], i);
    if (m->values[i] == WEIR_NO_INDEX) return false;
  }
  if (!weir_size_mul((size_t)e->fetch_count + 1, sizeof(weir_remote_outcome),
                     &bytes))
    return false;
  weir_value_spec outcomes = {
      .storage = WEIR_STORAGE_TEMP, .bytes = bytes, .dtype = WEIR_U8};
  m->outcomes = weir_program_add_value(m->builder, &outcomes);
  return m->outcomes != WEIR_NO_INDEX;
}

static bool add_run(maker *m) {
  const weir_cached *e = m->e;
  weir_instr_spec spec = {.kind = WEIR_INSTR_KERNEL,
                          .in = m->values,
                          .in_count = e->feed_count + e->fetch_count,
                          .out = &m->outcomes,
                          .out_count = 1,
                          .run = run_remote,
                          .state = m->state,
                          .node_order = UINT32_MAX,
                          .node = WEIR_SV_LIT(""),
                          .op = "run",
                          .kernel = "remote"};
  return weir_program_add_instr(m->builder, &spec) != WEIR_NO_INDEX;
}

/* Its failure comes before those of fetches. */
static bool add_end(maker *m) {
  outcome_state *state = weir_arena_array(
      weir_program_builder_arena(m->builder), 1, sizeof *state);
  if (state == NULL) return false;
  state->index = m->e->fetch_count;
  weir_instr_spec spec = {.kind = WEIR_INSTR_KERNEL,
                          .in = &m->outcomes,
                          .in_count = 1,
                          .run = run_outcome,
                          .state = state,
                          .node = WEIR_SV_LIT(""),
                          .op = "run",
                          .kernel = "remote"};
  return weir_program_add_instr(m->builder, &spec) != WEIR_NO_INDEX;
}

static bool add_fetch(maker *m, uint32_t k) {
  const weir_cached *e = m->e;
  outcome_state *state = weir_arena_array(
      weir_program_builder_arena(m->builder), 1, sizeof *state);
  uint32_t made = add_external(m, e->ids[e->feed_count + k], e->feed_count + k);
  if (state == NULL || made == WEIR_NO_INDEX) return false;
  weir_node_id node = m->special->values[e->ids[e->feed_count + k]].node;
  state->index = k;
  weir_instr_spec spec = {
      .kind = WEIR_INSTR_KERNEL,
      .in = &m->outcomes,
      .in_count = 1,
      .out = &made,
      .out_count = 1,
      .run = run_outcome,
      .state = state,
      .node_order = node,
      .node = WEIR_SV_LIT(""), /* the outcome names its own */
      .op = "fetch",
      .kernel = "remote"};
  if (weir_program_add_instr(m->builder, &spec) == WEIR_NO_INDEX) return false;
  weir_program_add_fetch(m->builder, made);
  return true;
}

static weir_status build(const weir_env *env, maker *m, weir_program **out,
                         weir_error *err) {
  const weir_cached *e = m->e;
  size_t count = (size_t)e->feed_count + e->fetch_count;
  WEIR_TRY(
      weir_program_builder_create(env, m->special->alloc, &m->builder, err));
  weir_arena *arena = weir_program_builder_arena(m->builder);
  m->values = weir_arena_array(arena, count, sizeof *m->values);
  m->state = weir_arena_array(arena, 1, sizeof *m->state);
  bool ok = m->values != NULL && m->state != NULL && add_values(m) &&
            add_run(m) && add_end(m);
  for (uint32_t k = 0; ok && k < e->fetch_count; k++) ok = add_fetch(m, k);
  weir_program_options options = {.threads = 1};
  if (!ok) return weir_fail_memory(err, count * sizeof *m->values);
  return weir_program_finish(m->builder, &options, out, err);
}

weir_status weir_session_remote_compile(weir_exec_session *session,
                                        weir_cached *e,
                                        const weir_compile_request *request,
                                        const weir_graph *special,
                                        weir_error *err) {
  weir_remote *remote = session->options.remote;
  maker m = {.e = e, .special = special};
  weir_program *program = NULL;
  weir_compiled *c = weir_alloc_array(session->env->alloc, 1, sizeof *c);
  if (c == NULL) return weir_fail_memory(err, sizeof *c);
  e->compiled = c; /* released with |e| */
  *c = (weir_compiled){.env = session->env,
                       .graph = weir_graph_ref(request->cut->graph),
                       .plan = weir_plan_ref(request->plan),
                       .node_count = request->cut->graph->node_count};
  weir_status s = build(session->env, &m, &program, err);
  weir_program_builder_release(m.builder);
  c->program = program;
  if (s != WEIR_OK) return s;
  weir_remote_request ask = {.graph = session->graph,
                             .feeds = e->ids,
                             .feed_shapes = e->feed_shapes,
                             .fetches = e->ids + e->feed_count,
                             .targets = e->ids + e->feed_count + e->fetch_count,
                             .feed_count = e->feed_count,
                             .fetch_count = e->fetch_count,
                             .target_count = e->target_count,
                             .no_fusion = request->options.no_fusion,
                             .cut = request->cut,
                             .plan = request->plan};
  WEIR_TRY(remote->vt->prepare(remote, &ask, &e->remote, &c->writes, err));
  *m.state = (remote_state){remote, e->remote, e->feed_count, e->fetch_count};
  return WEIR_OK;
}

void weir_session_remote_forget(weir_exec_session *session, weir_cached *e) {
  if (e->remote != NULL)
    session->options.remote->vt->forget(session->options.remote, e->remote);
}

weir_status weir_session_remote_decide(weir_exec_session *session,
                                       const weir_cached *e, weir_status status,
                                       weir_error *err) {
  weir_remote *remote = session->options.remote;
  if (e->remote == NULL || !e->compiled->writes) return status;
  if (status != WEIR_OK) {
    (void)remote->vt->decide(remote, e->remote, false, NULL);
    return status;
  }
  return remote->vt->decide(remote, e->remote, true, err);
}

weir_status weir_session_remote_get(weir_exec_session *session,
                                    const weir_node_id *nodes,
                                    void *const *data, uint32_t count,
                                    weir_error *err) {
  weir_remote *remote = session->options.remote;
  return remote->vt->get(remote, nodes, data, count, err);
}

weir_status weir_session_remote_set(weir_exec_session *session,
                                    weir_node_id node, const void *data,
                                    weir_error *err) {
  weir_remote *remote = session->options.remote;
  return remote->vt->set(remote, &node, &data, 1, err);
}
