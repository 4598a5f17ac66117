/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs: one step over all tasks of a program.
 *
 * Small feeds ride on the step's message, large ones go by the rendezvous, and
 * so do fetches. A run is over when all parts have ended and its large fetches
 * are here; feeds that no task has taken are dropped then. A step that assigns
 * is held by the driver until decide().
 *
 * A failed step: fetches that came are good, all others have its error. */
#include "runtime/dist/cluster/cluster_runs.h"

#include <string.h>

#include "runtime/dist/channel/exchange.h"
#include "runtime/dist/cluster/cluster_turn.h"

/* Feeds within one message, all together. */
enum { INLINE_BYTES = 256 << 10 };

typedef struct run_op {
  weir_dist_op base;
  weir_remote_program *program;
  const weir_remote_step *step;
  weir_arena arena;
  weir_driver_value *small;
  weir_dist_move *moves; /* of feeds, then of fetches */
  bool *inlined;         /* per feed */
  /* Per fetch; set by the thread that has it. */
  bool *here;
  /* Under the lock: */
  uint32_t feeds_left, fetches_left;
  bool stepped, held, stopped;
  int64_t until_ns; /* for the fetches, when it has ended */
} run_op;

static bool is_small(size_t bytes) {
  return bytes <= WEIR_WIRE_VALUE_BYTES;
}

/* ---- Values by the rendezvous */

static void feed_moved(void *self, weir_status status, const weir_error *err) {
  (void)status, (void)err; /* the step fails, if it matters */
  const weir_dist_move *move = self;
  weir_dist *d = move->op->dist;
  pthread_mutex_lock(&d->lock);
  ((run_op *)move->op)->feeds_left--;
  pthread_cond_broadcast(&d->changed);
  pthread_mutex_unlock(&d->lock);
}

static void fetch_moved(void *self, weir_status status, const weir_error *err) {
  const weir_dist_move *move = self;
  run_op *op = (run_op *)move->op;
  weir_dist *d = move->op->dist;
  pthread_mutex_lock(&d->lock);
  weir_remote_outcome *o = &op->step->outcomes[move->index];
  o->status = status;
  if (status != WEIR_OK) weir_error_copy(&o->error, err);
  op->here[move->index] = true;
  op->fetches_left--;
  pthread_cond_broadcast(&d->changed);
  pthread_mutex_unlock(&d->lock);
}

static void receive(run_op *op, uint32_t k) {
  const struct weir_dist_row *row = &op->program->fetches[k];
  weir_dist_move *move = &op->moves[op->program->feed_count + k];
  *move = (weir_dist_move){{.fn = fetch_moved, .self = move}, &op->base, k};
  weir_slot slot = {WEIR__V1__VALUE_KIND__FETCH, k, op->base.number};
  weir_exchange_recv(op->base.dist->values, row->place, &slot,
                     op->step->fetches[k], row->bytes, &move->done);
}

static void send_feed(run_op *op, uint32_t i) {
  const struct weir_dist_row *row = &op->program->feeds[i];
  weir_dist_move *move = &op->moves[i];
  *move = (weir_dist_move){{.fn = feed_moved, .self = move}, &op->base, i};
  weir_slot slot = {WEIR__V1__VALUE_KIND__FEED, i, op->base.number};
  weir_bytes bytes = {op->step->feeds[i], row->bytes};
  weir_exchange_send(op->base.dist->values, row->place, &slot, bytes,
                     &move->done);
}

/* ---- The start; control thread */

/* The feeds that ride on the message; the others are counted. */
static size_t take_small(run_op *op) {
  const weir_remote_program *p = op->program;
  size_t count = 0, bytes = 0;
  for (uint32_t i = 0; i < p->feed_count; i++) {
    const struct weir_dist_row *row = &p->feeds[i];
    if (row->place == UINT32_MAX) continue;
    op->inlined[i] = is_small(row->bytes) && bytes + row->bytes <= INLINE_BYTES;
    if (!op->inlined[i]) {
      op->feeds_left++;
      continue;
    }
    bytes += row->bytes;
    op->small[count++] =
        (weir_driver_value){row->place, i, op->step->feeds[i], row->bytes};
  }
  return count;
}

static bool comes_large(const struct weir_dist_row *row) {
  return row->place != UINT32_MAX && !is_small(row->bytes);
}

static weir_status start_run(weir_dist_op *base, weir_error *err) {
  run_op *op = (run_op *)base;
  weir_dist *d = base->dist;
  const weir_remote_program *p = op->program;
  weir_driver_step step = {.program = p->number,
                           .random_step = op->step->options->step,
                           .feeds = op->small,
                           .hold = p->writes};
  uint64_t number = 0;
  step.feed_count = take_small(op);
  WEIR_TRY(weir_driver_run(d->driver, weir_dist_now(d), &step, &number, err));
  pthread_mutex_lock(&d->lock);
  base->number = d->last_step = number;
  for (uint32_t k = 0; k < p->fetch_count; k++)
    op->fetches_left += comes_large(&p->fetches[k]);
  pthread_mutex_unlock(&d->lock);
  for (uint32_t k = 0; k < p->fetch_count; k++)
    if (comes_large(&p->fetches[k])) receive(op, k);
  for (uint32_t i = 0; i < p->feed_count; i++)
    if (p->feeds[i].place != UINT32_MAX && !op->inlined[i]) send_feed(op, i);
  return WEIR_OK;
}

/* ---- The end of its parts; control thread */

static weir_status take_fetches(run_op *op, const weir_driver_result *result,
                                weir_error *err) {
  const weir_remote_program *p = op->program;
  for (size_t i = 0; i < result->fetch_count; i++) {
    const weir_driver_value *v = &result->fetches[i];
    if (v->id >= p->fetch_count || comes_large(&p->fetches[v->id]) ||
        op->here[v->id] || v->place != p->fetches[v->id].place ||
        v->size != p->fetches[v->id].bytes)
      return weir_fail(err, WEIR_W7011, NULL,
                       "a task sent a fetch that was not asked of it");
    if (v->size > 0) memcpy(op->step->fetches[v->id], v->data, v->size);
    op->here[v->id] = true;
    op->step->outcomes[v->id].status = WEIR_OK;
  }
  return WEIR_OK;
}

void weir_dist_stepped(weir_dist *d, const weir_driver_result *result,
                       const weir_error *err) {
  weir_error bad = WEIR_ERROR_INIT;
  pthread_mutex_lock(&d->lock);
  run_op *op = (run_op *)weir_dist_find(d, WEIR_DIST_RUN, result->step);
  pthread_mutex_unlock(&d->lock);
  if (op == NULL) return;
  const weir_remote_program *p = op->program;
  if (take_fetches(op, result, &bad) != WEIR_OK && err == NULL) {
    weir_dist_give_up(d, &bad);
    err = &bad;
  }
  for (uint32_t k = 0; err == NULL && k < p->fetch_count; k++) {
    /* |here| of a large one is the bulk thread's, so it is not looked at. */
    if (comes_large(&p->fetches[k]) || op->here[k] ||
        p->fetches[k].place == UINT32_MAX)
      continue;
    pthread_mutex_lock(&d->lock); /* many small ones: they come by themselves */
    op->fetches_left++;
    pthread_mutex_unlock(&d->lock);
    receive(op, k);
  }
  pthread_mutex_lock(&d->lock);
  int64_t patience = d->options.step_ns;
  if (patience == 0) patience = INT64_C(30000000000);
  op->until_ns = weir_dist_now(d) + patience;
  op->stepped = true;
  op->held = result->held;
  op->base.status = err != NULL ? err->code : WEIR_OK;
  if (err != NULL) weir_error_copy(&op->base.error, err);
  pthread_cond_broadcast(&d->changed);
  pthread_mutex_unlock(&d->lock);
}

/* ---- Deadlines; control thread */

static void too_late(weir_dist *d, const run_op *op) {
  weir_error why = WEIR_ERROR_INIT;
  for (uint32_t k = 0; k < op->program->fetch_count; k++) {
    const weir_peer *peer = op->program->fetches[k].place < UINT32_MAX
                                ? d->peers[op->program->fetches[k].place]
                                : NULL;
    if (op->here[k] || peer == NULL) continue;
    weir_fail(&why, WEIR_W7021, NULL, "%s does not send what was fetched",
              peer->name);
    weir_dist_give_up(d, &why);
    return;
  }
}

int64_t weir_dist_watch(weir_dist *d, int64_t now_ns) {
  const int64_t look_ns = 10000000; /* as in cluster_turn.c */
  int64_t next = INT64_MAX;
  weir_error why = WEIR_ERROR_INIT;
  uint64_t drop = 0;
  pthread_mutex_lock(&d->lock);
  for (weir_dist_op *it = d->ops; it != NULL; it = it->next) {
    run_op *op = (run_op *)it;
    if (it->kind == WEIR_DIST_TURN && weir_dist_turn_stops(it, now_ns, &next))
      next = now_ns;
    if (it->kind != WEIR_DIST_RUN || op->stopped) continue;
    const weir_run_options *o = op->step->options;
    if (weir_dist_must_stop(o, now_ns, &why)) {
      op->stopped = true;
      if (op->stepped)
        drop = it->number;
      else
        weir_driver_cancel(d->driver, it->number, &why);
    }
    if (op->stepped && op->fetches_left > 0 && now_ns >= op->until_ns)
      too_late(d, op);
    int64_t at = op->stepped ? op->until_ns : INT64_MAX;
    if (o->deadline_ns != 0 && o->deadline_ns < at) at = o->deadline_ns;
    if (o->cancel != NULL && now_ns + look_ns < at) at = now_ns + look_ns;
    if (at < next && !op->stopped) next = at;
    if (drop != 0) break;
  }
  pthread_mutex_unlock(&d->lock);
  if (drop == 0) return next;
  weir_exchange_drop(d->values, drop, &why);
  return now_ns;
}

/* ---- The caller */

static bool arrived(const run_op *op) {
  return op->base.done || (op->stepped && op->fetches_left == 0);
}

static weir_node_over run_is_over(void *self) {
  run_op *op = self;
  weir_dist *d = op->base.dist;
  pthread_mutex_lock(&d->lock);
  weir_node_over over = weir_dist_over(&op->base, arrived(op));
  pthread_mutex_unlock(&d->lock);
  return over;
}

/* Whether values go or come on the bulk thread. */
static bool has_large(const weir_remote_program *p) {
  for (uint32_t k = 0; k < p->fetch_count; k++)
    if (comes_large(&p->fetches[k])) return true;
  for (uint32_t i = 0; i < p->feed_count; i++)
    if (comes_large(&p->feeds[i])) return true;
  return false;
}

/* All steps below it are over. Under the lock. */
static uint64_t lowest_step(const weir_dist *d) {
  uint64_t lowest = d->last_step + 1;
  for (const weir_dist_op *it = d->ops; it != NULL; it = it->next)
    if (it->kind == WEIR_DIST_RUN && it->number != 0 && it->number < lowest)
      lowest = it->number;
  return lowest;
}

static void wait_for(weir_dist *d, run_op *op) {
  weir_error why = WEIR_ERROR_INIT;
  pthread_mutex_lock(&d->lock);
  while (!arrived(op)) pthread_cond_wait(&d->changed, &d->lock);
  if (!op->base.done && op->feeds_left > 0) {
    pthread_mutex_unlock(&d->lock);
    weir_fail(&why, WEIR_W7027, NULL, "the step is over");
    weir_exchange_drop(d->values, op->base.number, &why);
    pthread_mutex_lock(&d->lock);
    while (op->feeds_left > 0) pthread_cond_wait(&d->changed, &d->lock);
  }
  weir_dist_leave(d, &op->base);
  uint64_t below = lowest_step(d);
  pthread_mutex_unlock(&d->lock);
  weir_exchange_finish(d->values, below);
}

/* Every fetch has an outcome, and the run the first failed one's. */
static weir_status settle(run_op *op, weir_error *err) {
  weir_status s = op->base.status;
  for (uint32_t k = 0; k < op->program->fetch_count; k++) {
    weir_remote_outcome *o = &op->step->outcomes[k];
    if (!op->here[k] && s != WEIR_OK) {
      o->status = s;
      weir_error_copy(&o->error, &op->base.error);
    }
  }
  for (uint32_t k = 0; s == WEIR_OK && k < op->program->fetch_count; k++) {
    weir_remote_outcome *o = &op->step->outcomes[k];
    if (o->status == WEIR_OK) continue;
    s = o->status = weir_dist_blame(op->base.dist,
                                    op->program->fetches[k].place, &o->error);
    op->base.error = o->error;
  }
  if (s != WEIR_OK) weir_error_copy(err, &op->base.error);
  return s;
}

static weir_status make_op(run_op *op, weir_error *err) {
  const weir_remote_program *p = op->program;
  size_t moves = (size_t)p->feed_count + p->fetch_count;
  op->small = weir_arena_array(&op->arena, p->feed_count, sizeof *op->small);
  op->moves = weir_arena_array(&op->arena, moves, sizeof *op->moves);
  op->inlined = weir_arena_array(&op->arena, p->feed_count, sizeof(bool));
  op->here = weir_arena_array(&op->arena, p->fetch_count, sizeof(bool));
  bool ok = op->small != NULL && op->moves != NULL && op->inlined != NULL &&
            op->here != NULL;
  return ok ? WEIR_OK : weir_fail_memory(err, moves * sizeof *op->moves);
}

/* ---- Decisions */

typedef struct decide_op {
  weir_dist_op base;
  uint64_t step;
  bool commit;
} decide_op;

static weir_status start_decide(weir_dist_op *base, weir_error *err) {
  const decide_op *op = (const decide_op *)base;
  weir_dist *d = base->dist;
  return weir_driver_decide(d->driver, weir_dist_now(d), op->step, op->commit,
                            err);
}

weir_status weir_dist_decide(weir_remote *remote, weir_remote_program *p,
                             bool commit, weir_error *err) {
  weir_dist_session *s = (weir_dist_session *)remote;
  decide_op op = {
      .base = {.start = start_decide}, .step = p->held, .commit = commit};
  if (p->held == 0)
    return weir_fail(err, WEIR_W9001, NULL, "no step waits for a decision");
  p->held = 0;
  pthread_mutex_lock(&s->moment);
  weir_status status = weir_dist_call(s->dist, &op.base, err);
  weir_dist_ended(s->dist, &op.base);
  pthread_mutex_unlock(&s->moment);
  weir_dist_gate_leave(&s->dist->gate, false);
  weir_dist_turn_leave(s, false);
  return status;
}

/* It ends before it begins. */
static weir_status refuse_run(const weir_remote_program *p,
                              const weir_remote_step *step,
                              const weir_error *why) {
  for (uint32_t k = 0; k < p->fetch_count; k++) {
    step->outcomes[k].status = why->code;
    weir_error_copy(&step->outcomes[k].error, why);
  }
  return why->code;
}

weir_status weir_dist_run(weir_remote *remote, weir_remote_program *p,
                          const weir_remote_step *step, weir_error *err) {
  weir_dist_session *s = (weir_dist_session *)remote;
  weir_dist *d = s->dist;
  run_op op = {.base = {.kind = WEIR_DIST_RUN, .start = start_run},
               .program = p,
               .step = step};
  op.base.error = (weir_error)WEIR_ERROR_INIT;
  if (weir_dist_turn_enter(s, p->writes, step->options, NULL, &op.base.error) !=
      WEIR_OK) {
    weir_error_copy(err, &op.base.error);
    return refuse_run(p, step, &op.base.error);
  }
  weir_arena_init(&op.arena, d->env->alloc);
  weir_dist_gate_enter(&d->gate, false);
  op.base.status = make_op(&op, &op.base.error);
  if (op.base.status == WEIR_OK) {
    if (has_large(p))
      weir_dist_begin(d, &op.base);
    else
      weir_dist_begin_soon(d, &op.base, run_is_over);
    wait_for(d, &op);
    weir_dist_ended(d, &op.base);
    weir_status status = settle(&op, err);
    op.base.status = status;
  } else {
    (void)refuse_run(p, step, &op.base.error);
    weir_error_copy(err, &op.base.error);
  }
  weir_arena_release(&op.arena);
  if (op.held) {
    p->held = op.base.number;
    if (op.base.status == WEIR_OK) return WEIR_OK; /* decide leaves the gate */
    (void)weir_dist_decide(remote, p, false, NULL);
    return op.base.status;
  }
  weir_dist_gate_leave(&d->gate, false);
  weir_dist_turn_leave(s, false);
  return op.base.status;
}
