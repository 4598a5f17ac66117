/* SPDX-License-Identifier: Apache-2.0 */
/* Variables and waits of the engine. Variables are those of a program's bundle;
 * its session is read and written on the engine's thread, and their bytes go to
 * the driver, or come from it, by the rendezvous. */
#include "runtime/dist/run/run_vars.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/size.h"
#include "runtime/dist/run/run_add.h"
#include "runtime/dist/run/run_limits.h"
#include "runtime/exec/session/session_vars.h"
#include "runtime/net/wire.h"

static void vars_read(weir_engine_event *event) {
  run_vars *v = (run_vars *)((char *)event - offsetof(run_vars, event));
  run_engine *e = v->engine;
  for (uint32_t i = 0; v->tensors != NULL && i < v->count; i++)
    weir_tensor_unref(v->tensors[i]);
  weir_arena_release(&v->arena);
  run_vars_leave(e, v->count, v);
  weir_free(e->env.alloc, v);
}

static void tell(run_vars *v) {
  run_engine *e = v->engine;
  run_post_event(e, &v->event);
  run_end_work(e);
}

/* One of |left| is over. */
static void one_less(run_vars *v) {
  if (atomic_fetch_sub(&v->left, 1) != 1) return;
  if (v->set && v->event.error.id[0] == '\0')
    run_post_job(v->engine, &v->job);
  else
    tell(v);
}

/* A value has left, or is here. */
static void moved(void *self, weir_status status, const weir_error *err) {
  run_vars *v = self;
  if (status != WEIR_OK) {
    pthread_mutex_lock(&v->engine->lock);
    if (v->event.error.id[0] == '\0') weir_error_copy(&v->event.error, err);
    pthread_mutex_unlock(&v->engine->lock);
  }
  one_less(v);
}

static weir_slot slot_of(const run_vars *v, uint32_t i) {
  return (weir_slot){WEIR__V1__VALUE_KIND__VARIABLE, v->nodes[i], v->request};
}

static weir_status find_session(run_vars *v, weir_error *err) {
  run_program *p = run_program_get(v->engine, v->program);
  v->session = p != NULL ? p->bundle->session : NULL;
  run_program_unref(p);
  if (v->session == NULL)
    return weir_fail(err, WEIR_W7011, NULL,
                     "variables of program %u, which is not here", v->program);
  return WEIR_OK;
}

/* Looks at the nodes: variables, each once. Their bytes are |v->bytes|. */
static weir_status check_nodes(run_vars *v, weir_error *err) {
  const weir_graph *g = weir_session_graph(v->session);
  size_t room = (size_t)g->node_count / 8 + 1;
  uint8_t *seen = weir_arena_array(&v->arena, room, 1);
  if (seen == NULL) return weir_fail_memory(err, room);
  size_t bytes = 0;
  for (uint32_t i = 0; i < v->count; i++) {
    uint32_t node = v->nodes[i];
    if (node >= g->node_count ||
        g->nodes[node].op->instr != WEIR_INSTR_VAR_READ)
      return weir_fail(err, WEIR_W7011, NULL, "node %u is no variable", node);
    uint8_t bit = (uint8_t)(1u << node % 8);
    if ((seen[node / 8] & bit) != 0)
      return weir_fail(err, WEIR_W7011, NULL,
                       "variable %u stands in a request twice", node);
    seen[node / 8] |= bit;
    const weir_value *value = &g->values[g->nodes[node].first_output];
    size_t more = weir_shape_known(value->shape)
                      ? weir_shape_bytes(value->shape, value->dtype)
                      : 0;
    if (!weir_size_add(bytes, more, &bytes)) return weir_fail_memory(err, more);
  }
  v->bytes = bytes;
  return WEIR_OK;
}

static weir_status make(run_engine *e, uint32_t program, const uint32_t *nodes,
                        size_t count, run_vars **out, weir_error *err) {
  *out = NULL;
  WEIR_TRY(run_vars_admit(e, count, err));
  run_vars *v = weir_alloc_array(e->env.alloc, 1, sizeof *v);
  *out = v;
  if (v == NULL) {
    run_vars_leave(e, count, NULL);
    return weir_fail_memory(err, sizeof *v);
  }
  v->engine = e;
  v->count = (uint32_t)count;
  v->program = program;
  v->event = (weir_engine_event){.kind = WEIR_ENGINE_VARIABLES,
                                 .release = vars_read,
                                 .error = WEIR_ERROR_INIT};
  atomic_init(&v->left, 1);
  weir_arena_init(&v->arena, e->env.alloc);
  v->nodes = weir_arena_array(&v->arena, count + 1, sizeof *v->nodes);
  v->tensors = weir_arena_array(&v->arena, count + 1, sizeof(weir_tensor *));
  v->calls = weir_arena_array(&v->arena, count + 1, sizeof *v->calls);
  if (v->nodes == NULL || v->tensors == NULL || v->calls == NULL)
    return weir_fail_memory(err, count * sizeof *v->calls);
  if (count > 0) memcpy(v->nodes, nodes, count * sizeof *nodes);
  return WEIR_OK;
}

/* ---- Get */

static void get_job(run_engine *e, run_job *job) {
  run_vars *v = (run_vars *)job;
  weir_error *err = &v->event.error;
  bool waits = false;
  weir_status s = find_session(v, err);
  if (s == WEIR_OK && !v->taken) s = check_nodes(v, err);
  if (s == WEIR_OK) s = run_vars_take(e, v, &waits, err);
  if (waits) return; /* another's, who comes again */
  for (uint32_t i = 0; s == WEIR_OK && i < v->count; i++)
    s = weir_session_get(v->session, v->nodes[i], &v->tensors[i], err);
  for (uint32_t i = 0; s == WEIR_OK && i < v->count; i++) {
    weir_slot slot = slot_of(v, i);
    v->calls[i] = (weir_channel_done){.fn = moved, .self = v};
    atomic_fetch_add(&v->left, 1);
    weir_exchange_send(e->exchange, WEIR_PEER_DRIVER, &slot,
                       (weir_bytes){v->tensors[i]->data, v->tensors[i]->bytes},
                       &v->calls[i]);
  }
  one_less(v);
}

weir_status run_get(weir_engine *engine, uint32_t program, uint64_t request,
                    const uint32_t *nodes, size_t count, weir_error *err) {
  run_engine *e = (run_engine *)engine;
  run_vars *v = NULL;
  weir_status s = make(e, program, nodes, count, &v, err);
  if (s != WEIR_OK) {
    if (v != NULL) vars_read(&v->event);
    return s;
  }
  v->request = v->event.request = request;
  v->job.run = get_job;
  run_begin_work(e);
  run_post_job(e, &v->job);
  return WEIR_OK;
}

/* ---- Set */

static void set_job(run_engine *e, run_job *job) {
  (void)e;
  run_vars *v = (run_vars *)job;
  weir_status s = find_session(v, &v->event.error); /* still there */
  for (uint32_t i = 0; s == WEIR_OK && i < v->count; i++)
    s = weir_session_set(v->session, v->nodes[i], v->tensors[i],
                         &v->event.error);
  tell(v);
}

weir_status run_set(weir_engine *engine, uint32_t program, uint64_t request,
                    const uint32_t *nodes, size_t count, weir_error *err) {
  run_engine *e = (run_engine *)engine;
  run_vars *v = NULL;
  weir_status s = make(e, program, nodes, count, &v, err);
  if (v != NULL) v->set = true;
  if (s == WEIR_OK) s = find_session(v, err);
  if (s == WEIR_OK) s = check_nodes(v, err);
  if (s == WEIR_OK) s = run_vars_take_written(e, v, err);
  for (uint32_t i = 0; s == WEIR_OK && i < v->count; i++) {
    const weir_graph *g = weir_session_graph(v->session);
    const weir_value *value = &g->values[g->nodes[v->nodes[i]].first_output];
    s = weir_tensor_create_shaped(e->env.alloc, value->dtype, value->shape,
                                  &v->tensors[i], err);
  }
  if (s != WEIR_OK) {
    if (v != NULL) vars_read(&v->event);
    return s;
  }
  v->request = v->event.request = request;
  v->job.run = set_job;
  run_begin_work(e);
  for (uint32_t i = 0; i < v->count; i++) {
    weir_slot slot = slot_of(v, i);
    v->calls[i] = (weir_channel_done){.fn = moved, .self = v};
    atomic_fetch_add(&v->left, 1);
    weir_exchange_recv(e->exchange, WEIR_PEER_DRIVER, &slot,
                       v->tensors[i]->data, v->tensors[i]->bytes, &v->calls[i]);
  }
  one_less(v);
  return WEIR_OK;
}

void run_vars_end(run_engine *e, const weir_error *why) {
  for (run_vars *next, *v = run_vars_strand(e); v != NULL; v = next) {
    next = v->next;
    weir_error_copy(&v->event.error, why);
    tell(v);
  }
}

/* ---- Waits */

static bool waits_for(const weir_rendezvous_wait *rows, size_t count,
                      uint64_t step) {
  for (size_t i = 0; i < count; i++)
    if (rows[i].incoming && rows[i].slot.step == step) return true;
  return false;
}

size_t run_pending(weir_engine *engine, weir_engine_wait *waits,
                   size_t capacity, uint32_t *out_running) {
  enum { ROWS = 64 };
  run_engine *e = (run_engine *)engine;
  weir_rendezvous_wait rows[ROWS];
  const weir_clock *clock = e->given->clock;
  int64_t now = clock != NULL ? clock->now_ns(clock->self) : 0;
  size_t n = weir_exchange_pending(e->exchange, rows, ROWS);
  if (n > ROWS) n = ROWS;
  *out_running = 0;
  pthread_mutex_lock(&e->lock);
  for (const run_step *s = e->steps; s != NULL; s = s->next)
    *out_running += (s->state == RUN_STARTING || s->state == RUN_RUNS) &&
                    !waits_for(rows, n, s->step);
  pthread_mutex_unlock(&e->lock);
  if (n > capacity) n = capacity;
  for (size_t i = 0; i < n; i++)
    waits[i] = (weir_engine_wait){
        .kind = rows[i].slot.kind,
        .id = rows[i].slot.id,
        .step = rows[i].slot.step,
        .peer = rows[i].peer,
        .since_ns =
            now > rows[i].since_ns ? (uint64_t)(now - rows[i].since_ns) : 0,
        .bytes = rows[i].bytes,
        .total_bytes = rows[i].total,
        .node = ""};
  return n;
}
