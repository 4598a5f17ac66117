/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/replicas/replicas.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "runtime/train/batch/data_iter.h"
#include "runtime/train/data/data_open.h"
#include "runtime/train/loop/loop_eval.h"
#include "runtime/train/loop/loop_hooks.h"
#include "runtime/train/replicas/replicas_graph.h"

/* One thread decides: the loop's. It hands a replica over by its state, under
 * the lock, and gets it back the same way; everything else of a replica belongs
 * to the thread that has it. So which runs are dealt, and in sync mode the
 * order of all additions, follow from numbers and not from threads.
 *
 * Invariants: runs that are dealt and not applied are those of replicas that
 * are not idle, loop->under_way of them; loop->runs counts applied ones; an
 * update's assignments are committed by the loop's thread alone. */

/* ---- A replica's thread */

static void *run_replica(void *arg) {
  weir_replica *it = arg;
  weir_replicas *r = it->of;
  pthread_mutex_lock(&r->lock);
  for (;;) {
    while (!r->stop && it->state != WEIR_REPLICA_READY)
      pthread_cond_wait(&r->changed, &r->lock);
    if (r->stop) break;
    pthread_mutex_unlock(&r->lock);
    weir_run_options run = {.step = it->run};
    int64_t begin_ns = weir_loop_clock(r->loop);
    it->status = weir_stepper_go(it->stepper, &run, &it->err);
    it->ns = it->ran ? weir_loop_clock(r->loop) - begin_ns : 0;
    it->ran = true;
    pthread_mutex_lock(&r->lock);
    it->ended = r->ended++;
    it->state = WEIR_REPLICA_DONE;
    pthread_cond_broadcast(&r->changed);
  }
  pthread_mutex_unlock(&r->lock);
  return NULL;
}

static void hand_over(weir_replica *it) {
  weir_replicas *r = it->of;
  it->err = (weir_error)WEIR_ERROR_INIT;
  pthread_mutex_lock(&r->lock);
  it->state = WEIR_REPLICA_READY;
  pthread_cond_broadcast(&r->changed);
  pthread_mutex_unlock(&r->lock);
}

/* ---- Start and end */

static weir_status start(weir_replicas *r, weir_replica *it, weir_error *err) {
  weir_loop *loop = r->loop;
  weir_shape scalar = weir_shape_of(0, NULL);
  weir_stepper_options options = {.session = loop->session,
                                  .graph = loop->run_graph,
                                  .data = loop->data,
                                  .section = loop->spec->data,
                                  .fetches = r->fetches,
                                  .fetch_count = r->fetch_count,
                                  .rows = &r->fed.train->rows};
  it->of = r;
  WEIR_TRY(weir_stepper_create(loop->env, &options, &it->stepper, err));
  if (r->fed.given_step != WEIR_NO_VALUE)
    WEIR_TRY(weir_tensor_create_shaped(loop->alloc, WEIR_I64, &scalar,
                                       &it->step, err));
  if (r->fed.train->staleness != WEIR_NO_VALUE)
    WEIR_TRY(weir_tensor_create_shaped(loop->alloc, WEIR_I64, &scalar, &it->age,
                                       err));
  it->started = pthread_create(&it->thread, NULL, run_replica, it) == 0;
  if (it->started) return WEIR_OK;
  return weir_fail(err, WEIR_W6003, NULL, "a replica's thread did not start");
}

weir_status weir_replicas_start(weir_loop *loop, weir_error *err) {
  weir_replicas *r = loop->replicas;
  if (r->equal && weir_dataset_batches(loop->data) < 0)
    return weir_fail(err, WEIR_W1122, NULL,
                     "shard: equal needs to know the number of batches of an "
                     "epoch before it is read");
  WEIR_TRY(weir_replicas_fetches(r, err));
  r->items = weir_alloc_array(loop->alloc, r->count, sizeof *r->items);
  if (r->items == NULL) return weir_fail_memory(err, r->count);
  WEIR_TRY(weir_account_create(loop->alloc, r->count, &r->account, err));
  for (uint32_t i = 0; i < r->count; i++) WEIR_TRY(start(r, &r->items[i], err));
  loop->stepper = r->items[0].stepper;
  return WEIR_OK;
}

static void release(weir_replica *it) {
  for (uint32_t i = 0; i < WEIR_REPLICA_LANES; i++) {
    weir_binding_release(it->bound[i].last);
    weir_binding_release(it->bound[i].more);
  }
  weir_stepper_release(it->stepper);
  weir_tensor_unref(it->step);
  weir_tensor_unref(it->age);
}

void weir_replicas_release(weir_loop *loop) {
  weir_replicas *r = loop->replicas;
  if (r == NULL) return;
  pthread_mutex_lock(&r->lock);
  r->stop = true;
  pthread_cond_broadcast(&r->changed);
  pthread_mutex_unlock(&r->lock);
  for (uint32_t i = 0; r->items != NULL && i < r->count; i++)
    if (r->items[i].started) pthread_join(r->items[i].thread, NULL);
  for (uint32_t i = 0; r->items != NULL && i < r->count; i++)
    release(&r->items[i]);
  loop->stepper = NULL; /* was a replica's */
  loop->replicas = NULL;
  weir_tensor_unref(r->rate);
  weir_free(loop->alloc, r->items);
  weir_account_release(&r->account);
  pthread_cond_destroy(&r->changed);
  pthread_mutex_destroy(&r->lock);
  weir_free(loop->alloc, r);
}

/* ---- Dealing */

/* The fewest runs that a replica has behind it. */
static uint64_t slowest(const weir_replicas *r) {
  uint64_t least = UINT64_MAX;
  for (uint32_t i = 0; i < r->count; i++)
    if (r->items[i].applied < least) least = r->items[i].applied;
  return least;
}

/* Of the runs below |run|, dealt in turn, those of replica |i|. */
static uint64_t in_turn(const weir_replicas *r, uint64_t run, uint32_t i) {
  return run / r->count + (run % r->count > i);
}

/* Equal shares: whether |it| has had its own of this epoch. Which runs they are
 * does not matter, so nobody waits for another within an epoch. */
static bool has_share(const weir_replicas *r, const weir_replica *it) {
  const weir_loop *loop = r->loop;
  uint64_t all = (uint64_t)weir_dataset_batches(loop->data);
  uint32_t i = (uint32_t)(it - r->items);
  if (!r->equal || loop->batches + loop->under_way >= all) return false;
  uint64_t end = loop->runs - loop->batches + all;
  return it->shared >= in_turn(r, end, i) - in_turn(r, r->share_from, i);
}

static void begin_shares(weir_replicas *r) {
  const weir_loop *loop = r->loop;
  if (loop->epoch + 1 == r->share_epoch) return;
  r->share_epoch = loop->epoch + 1; /* 0: none yet */
  r->share_from = loop->runs;
  for (uint32_t i = 0; i < r->count; i++) r->items[i].shared = 0;
}

static bool may_deal(const weir_replicas *r, const weir_replica *it) {
  const weir_loop *loop = r->loop;
  uint64_t steps = loop->spec->steps;
  if (r->data_over || loop->end != WEIR_TRAIN_END_GOING) return false;
  if (r->shared->way == WEIR_WAY_SYNC)
    return r->dealt / loop->spec->accumulate == loop->step;
  if (r->shared->way == WEIR_WAY_BOUNDED &&
      it->applied - slowest(r) > r->shared->staleness)
    return false;
  if (has_share(r, it)) return false;
  if (steps > 0 && loop->step + loop->under_way >= steps) return false;
  return loop->under_way == 0 || !weir_loop_save_is_near(loop, loop->under_way);
}

/* Reads a batch. The end of an epoch is read when nothing is under way: a
 * checkpoint before that stands in front of it. An epoch whose number of
 * batches is not known has no end. */
static weir_status read_batch(const weir_replicas *r, weir_batch *batch,
                              weir_error *err) {
  const weir_loop *loop = r->loop;
  int64_t all = weir_dataset_batches(loop->data);
  batch->end_of_epoch = loop->under_way > 0 && all >= 0 &&
                        loop->batches + loop->under_way >= (uint64_t)all;
  if (batch->end_of_epoch) return WEIR_OK;
  WEIR_TRY(weir_data_iter_next(loop->iter, batch, err));
  assert(!batch->end_of_epoch || loop->under_way == 0);
  return WEIR_OK;
}

static weir_status deal(weir_replicas *r, weir_replica *it, weir_error *err) {
  weir_loop *loop = r->loop;
  weir_batch batch;
  WEIR_TRY(read_batch(r, &batch, err));
  r->data_over = batch.end_of_epoch;
  if (r->data_over) return WEIR_OK;
  it->begin_ns = weir_loop_clock(loop);
  WEIR_TRY(weir_stepper_load(it->stepper, &batch, err));
  it->rows = batch.rows;
  it->run = r->dealt++;
  it->shared++;
  it->version = loop->step;
  loop->under_way++;
  hand_over(it);
  return WEIR_OK;
}

static weir_status deal_all(weir_replicas *r, weir_error *err) {
  if (r->loop->under_way == 0) {
    r->dealt = r->loop->runs;
    r->data_over = false;
    begin_shares(r);
  }
  for (uint32_t i = 0; i < r->count; i++) {
    weir_replica *it = &r->items[i];
    pthread_mutex_lock(&r->lock);
    bool idle = it->state == WEIR_REPLICA_IDLE;
    pthread_mutex_unlock(&r->lock);
    if (idle && may_deal(r, it)) WEIR_TRY(deal(r, it, err));
  }
  return WEIR_OK;
}

/* ---- Applying */

/* The run to be applied next, of those that have ended; NULL: none has. */
static weir_replica *next_done(const weir_replicas *r) {
  weir_replica *best = NULL;
  for (uint32_t i = 0; i < r->count; i++) {
    weir_replica *it = &r->items[i];
    if (it->state != WEIR_REPLICA_DONE) continue;
    if (r->shared->way == WEIR_WAY_SYNC && it->run != r->loop->runs) continue;
    if (best == NULL || it->ended < best->ended) best = it;
  }
  return best;
}

static weir_replica *wait_for_one(weir_replicas *r) {
  pthread_mutex_lock(&r->lock);
  weir_replica *it = next_done(r);
  while (it == NULL) {
    pthread_cond_wait(&r->changed, &r->lock);
    it = next_done(r);
  }
  pthread_mutex_unlock(&r->lock);
  return it;
}

static weir_status bind(weir_replicas *r, const weir_replica *it, bool last,
                        weir_binding **out, weir_error *err) {
  const weir_train_graph *t = r->fed.train;
  uint32_t n = 0;
  for (; n < r->fed.push_count; n++)
    r->feeds[n] = (weir_exec_feed){
        r->fed.input[n], (weir_tensor *)(uintptr_t)weir_stepper_output(
                             it->stepper, r->push_at + n)};
  if (it->step != NULL)
    r->feeds[n++] = (weir_exec_feed){r->fed.given_step, it->step};
  if (it->age != NULL) r->feeds[n++] = (weir_exec_feed){t->staleness, it->age};
  weir_exec_fetch rate = {.value = t->learning_rate, .tensor = r->rate};
  weir_exec_request request = {
      .feeds = r->feeds,
      .feed_count = n,
      .fetches = &rate,
      .fetch_count = 1,
      .targets = last ? t->targets : t->accumulate_targets,
      .target_count = last ? t->target_count : t->accumulate_target_count};
  weir_status s = weir_exec_bind(r->loop->session, &request, out, err);
  r->rate = rate.tensor;
  return s;
}

/* The update program for the tensors in which |it| has its pushes. */
static weir_status find_bound(weir_replicas *r, weir_replica *it, bool last,
                              weir_binding **out, weir_error *err) {
  const weir_tensor *key = weir_stepper_output(it->stepper, r->push_at);
  weir_replica_bound *b = NULL;
  for (uint32_t i = 0; i < WEIR_REPLICA_LANES && b == NULL; i++)
    if (it->bound[i].key == key) b = &it->bound[i];
  if (b == NULL) {
    b = &it->bound[it->bound_at++ % WEIR_REPLICA_LANES];
    weir_binding_release(b->last);
    weir_binding_release(b->more);
    *b = (weir_replica_bound){.key = key};
  }
  weir_binding **at = last ? &b->last : &b->more;
  if (*at == NULL) WEIR_TRY(bind(r, it, last, at, err));
  *out = *at;
  return WEIR_OK;
}

/* A loss that is not finite is not pushed. */
static weir_status check_run(weir_replicas *r, weir_replica *it,
                             weir_error *err) {
  weir_loop *loop = r->loop;
  if (it->status != WEIR_OK) {
    weir_error_copy(err, &it->err);
    return it->status;
  }
  double loss =
      weir_loop_mean(weir_stepper_output(it->stepper, WEIR_FETCH_LOSS));
  if (!loop->spec->nan_trap || isfinite(loss)) return WEIR_OK;
  (void)weir_fail(err, WEIR_W5020, NULL, "the loss is %g", loss);
  return weir_loop_blame(loop, it->stepper, it->run, err);
}

/* A replica's load of a batch counts as its work, the read of it does not. */
static void note(weir_replicas *r, const weir_replica *it) {
  int64_t now_ns = weir_loop_clock(r->loop);
  weir_account_run run = {.rows = (uint64_t)it->rows,
                          .compute_ns = it->ns,
                          .busy_ns = now_ns - it->begin_ns};
  weir_account_note(&r->account, (uint32_t)(it - r->items), &run, now_ns);
  if (r->shared->way != WEIR_WAY_SYNC)
    weir_account_stale(&r->account, it->staleness);
}

static weir_status apply(weir_replicas *r, weir_replica *it, weir_error *err) {
  weir_loop *loop = r->loop;
  weir_binding *update = NULL;
  bool last = (loop->runs + 1) % loop->spec->accumulate == 0;
  it->staleness = loop->step - it->version;
  WEIR_TRY(check_run(r, it, err));
  WEIR_TRY(find_bound(r, it, last, &update, err));
  if (it->step != NULL) weir_tensor_set_i64(it->step, 0, (int64_t)it->version);
  if (it->age != NULL) weir_tensor_set_i64(it->age, 0, (int64_t)it->staleness);
  WEIR_TRY(weir_binding_run(update, NULL, err));
  weir_loop_take_values(loop, it->stepper);
  loop->rate = weir_loop_mean(r->rate);
  loop->stepper = it->stepper;
  weir_loop_count_run(loop, it->rows, last);
  it->applied++;
  note(r, it);
  loop->under_way--;
  pthread_mutex_lock(&r->lock);
  it->state = WEIR_REPLICA_IDLE;
  pthread_mutex_unlock(&r->lock);
  return WEIR_OK;
}

/* A push on values that are too old is computed again. */
static bool is_stale(const weir_replicas *r, const weir_replica *it) {
  return r->shared->way == WEIR_WAY_ASYNC && it->status == WEIR_OK &&
         r->loop->step - it->version > r->shared->max_staleness;
}

static weir_status take_one(weir_replicas *r, weir_error *err) {
  weir_replica *it = wait_for_one(r);
  if (!is_stale(r, it)) return apply(r, it, err);
  it->version = r->loop->step;
  hand_over(it);
  return WEIR_OK;
}

weir_status weir_replicas_turn(weir_loop *loop, weir_error *err) {
  weir_error mine = WEIR_ERROR_INIT;
  weir_replicas *r = loop->replicas;
  err = err != NULL ? err : &mine;
  WEIR_TRY(deal_all(r, err));
  if (loop->under_way > 0) return take_one(r, err);
  assert(r->data_over);
  return weir_loop_end_epoch(loop, err);
}

void weir_replicas_tell(weir_loop *loop) {
  weir_replicas *r = loop->replicas;
  weir_train_worker *workers =
      weir_alloc_array(loop->alloc, r->count, sizeof *workers);
  uint64_t runs = 0;
  if (workers == NULL) return; /* a text less */
  for (uint32_t i = 0; i < r->count; i++)
    runs += workers[i].runs = r->items[i].applied;
  weir_train_account all = {.runs = loop->runs,
                            .earlier = loop->runs - runs,
                            .updates_least = loop->step,
                            .updates_most = loop->step,
                            .applied = &loop->runs,
                            .server_count = 1};
  weir_account_fill(&r->account, workers, &all);
  if (loop->calls.account != NULL) loop->calls.account(loop->calls.self, &all);
  weir_free(loop->alloc, workers);
}

/* After a failure runs are not applied, like those of a step that failed: in
 * sync mode none may follow the one that is missing. */
static void discard(weir_replicas *r) {
  pthread_mutex_lock(&r->lock);
  for (uint32_t i = 0; r->items != NULL && i < r->count; i++) {
    while (r->items[i].state == WEIR_REPLICA_READY)
      pthread_cond_wait(&r->changed, &r->lock);
    r->items[i].state = WEIR_REPLICA_IDLE;
  }
  pthread_mutex_unlock(&r->lock);
  r->loop->under_way = 0;
}

weir_status weir_replicas_drain(weir_loop *loop, weir_error *err) {
  weir_error mine = WEIR_ERROR_INIT;
  if (loop->end == WEIR_TRAIN_END_FAILED) discard(loop->replicas);
  while (loop->under_way > 0)
    WEIR_TRY(take_one(loop->replicas, err != NULL ? err : &mine));
  return WEIR_OK;
}
