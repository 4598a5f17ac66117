/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/ps/chief.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "runtime/base/map.h"
#include "runtime/train/data/data_open.h"
#include "runtime/train/loop/loop_hooks.h"
#include "runtime/train/ps/account/chief_account.h"
#include "runtime/train/ps/chief_net.h"
#include "runtime/train/ps/chief_values.h"

/* The loop's side of the chief. */

/* ---- Making one */

static weir_status check_spec(const weir_train_spec *spec, weir_error *err) {
  const char *what = NULL;
  if (spec->summary.has_scalars) what = "summary: {scalars:}";
  if (spec->summary.has_histograms) what = "summary: {histograms:}";
  if (what == NULL) return WEIR_OK;
  return weir_fail(err, WEIR_W1122, &spec->shared.way_mark,
                   "%s: nodes of a step are in workers, and a chief between "
                   "graphs does not have them in this version",
                   what);
}

weir_status weir_chief_create(weir_loop *loop, weir_error *err) {
  const weir_chief_options *o = loop->options.chief;
  WEIR_TRY(check_spec(loop->spec, err));
  weir_chief *c = weir_alloc_array(loop->alloc, 1, sizeof *c);
  if (c == NULL) return weir_fail_memory(err, sizeof *c);
  c->loop = loop;
  c->options = *o;
  pthread_mutex_init(&c->lock, NULL);
  pthread_condattr_t attr;
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(&c->changed, &attr);
  pthread_condattr_destroy(&attr);
  loop->chief = c;
  weir_ps_job_options job = {.servers = o->server_count,
                             .workers = o->worker_count,
                             .seed = loop->options.seed};
  WEIR_TRY(weir_ps_job_create(loop->env, loop->graph, loop->spec, &job, &c->job,
                              err));
  loop->spec->accumulate = c->job->config.aggregate;
  return WEIR_OK;
}

static uint64_t random_number(const weir_chief *c) {
  uint64_t n[] = {(uint64_t)weir_loop_clock(c->loop),
                  (uint64_t)c->loop->options.time_ns, (uint64_t)(uintptr_t)c};
  uint64_t x = weir_hash_bytes(n, sizeof n, 7);
  return x != 0 ? x : 1;
}

weir_status weir_chief_start(weir_loop *loop, weir_error *err) {
  weir_chief *c = loop->chief;
  const weir_chief_options *o = &c->options;
  if (weir_dataset_batches(loop->data) < 0)
    return weir_fail(err, WEIR_W1122, &loop->spec->shared.way_mark,
                     "data %.*s: its number of batches is not known before it "
                     "is read, and workers between graphs take batches by "
                     "number",
                     WEIR_SV(loop->spec->data));
  if (weir_dataset_batches(loop->data) == 0)
    return weir_fail(err, WEIR_W5021, NULL,
                     "data %.*s: an epoch has no batch; is there less data "
                     "than one batch, and drop_last set?",
                     WEIR_SV(loop->spec->data));
  WEIR_TRY(weir_chief_values_create(c, err));
  weir_ps_coordinator_options machine = {
      .config = c->job->config,
      .incarnation = random_number(c),
      .rejoin_ns = o->rejoin_ns,
      .evict_ns = loop->spec->shared.evict_ns,
      .save_every = o->save_every > 0 ? o->save_every : 100};
  weir_ps_coordinator_calls calls = weir_chief_calls(c);
  WEIR_TRY(weir_ps_coordinator_create(loop->alloc, &machine, &calls,
                                      &c->machine, err));
  weir_ps_net_options net = {.transports = o->transports,
                             .tls = o->tls,
                             .insecure = o->insecure,
                             .self = {WEIR_PS_CHIEF, 0},
                             .address = o->address,
                             .servers = o->servers,
                             .server_count = o->server_count,
                             .job_hash = c->job->hash,
                             .config = &c->job->config,
                             .heartbeat_ns = o->heartbeat_ns};
  weir_ps_net_events events = weir_chief_events(c);
  WEIR_TRY(weir_ps_net_create(loop->env, &net, &events, &c->net, err));
  return weir_ps_net_start(c->net, err);
}

void weir_chief_release(weir_loop *loop) {
  weir_chief *c = loop->chief;
  if (c == NULL) return;
  weir_ps_net_release(c->net);
  weir_ps_coordinator_release(c->machine);
  if (c->job != NULL) weir_chief_values_release(c);
  weir_ps_job_release(c->job);
  pthread_cond_destroy(&c->changed);
  pthread_mutex_destroy(&c->lock);
  loop->chief = NULL;
  weir_free(loop->alloc, c);
}

/* ---- Waiting; with the lock */

/* Waits for a change, for 100 ms at most. */
static void wait_a_while(weir_chief *c) {
  int64_t at = weir_loop_clock(c->loop) + 100000000;
  struct timespec t = {(time_t)(at / 1000000000), at % 1000000000};
  pthread_cond_timedwait(&c->changed, &c->lock, &t);
}

static bool is_over(const weir_chief *c) {
  return c->over || c->fenced;
}

/* Takes the step that was reached. False: the job is over, or |may_stop| and
 * the loop is to stop. */
static bool wait_for_step(weir_chief *c, bool may_stop, uint64_t *out_step) {
  pthread_mutex_lock(&c->lock);
  while (!c->reached && !is_over(c) &&
         !(may_stop && atomic_load(&c->loop->stop)))
    wait_a_while(c);
  bool reached = c->reached && !is_over(c);
  *out_step = c->step;
  c->reached = c->stale = false;
  pthread_mutex_unlock(&c->lock);
  return reached;
}

/* The report of the last run below |runs| is on its way: waits a little, for a
 * worker that died sends none. */
static void wait_for_report(weir_chief *c, uint64_t runs) {
  enum { WAITS = 10 };
  pthread_mutex_lock(&c->lock);
  for (int i = 0; i < WAITS && runs > 0; i++) {
    uint64_t last = c->reports[(runs - 1) % WEIR_CHIEF_REPORTS].run;
    if (last != WEIR_PS_NONE && last >= runs - 1) break;
    wait_a_while(c);
  }
  weir_chief_take_report(c, runs);
  pthread_mutex_unlock(&c->lock);
}

/* Puts the servers' values into the session. False in |*out_whole|: servers
 * went back meanwhile, and a step will be reached again. */
static weir_status fetch(weir_chief *c, bool *out_whole, weir_error *err) {
  pthread_mutex_lock(&c->lock);
  c->missing = c->job->config.servers;
  pthread_mutex_unlock(&c->lock);
  weir_chief_tell(c, WEIR_CHIEF_FETCH, 0);
  pthread_mutex_lock(&c->lock);
  while (c->missing > 0 && !c->fenced) wait_a_while(c);
  *out_whole = !c->stale && !c->fenced;
  pthread_mutex_unlock(&c->lock);
  return *out_whole ? weir_chief_values_take(c, err) : WEIR_OK;
}

/* Whether all others have heard of the end: they are gone, and none is to
 * come. */
static bool all_told(const weir_chief *c) {
  bool all = c->here == 0;
  for (uint32_t i = 0; i < c->job->config.workers; i++)
    all = all && (c->met[i] || i == c->options.own_worker);
  return all;
}

/* Tells the others of the end. Those that never came are waited for, for a few
 * seconds. */
static void end_all(weir_chief *c) {
  int64_t until = weir_loop_clock(c->loop) + 5 * INT64_C(1000000000);
  weir_chief_tell(c, WEIR_CHIEF_END, 0);
  pthread_mutex_lock(&c->lock);
  while (!all_told(c) && weir_loop_clock(c->loop) < until) wait_a_while(c);
  pthread_mutex_unlock(&c->lock);
}

/* ---- The next step with work */

static void at_most(uint64_t *next, uint64_t step) {
  if (step < *next) *next = step;
}

/* The first step after which |runs| runs are done. */
static uint64_t step_of_runs(const weir_loop *loop, uint64_t runs) {
  uint64_t n = loop->spec->accumulate;
  return runs / n + (runs % n != 0);
}

/* Times are looked at about once a second, by the rate so far. */
static uint64_t steps_of_a_second(const weir_loop *loop) {
  int64_t ns = weir_loop_clock(loop) - loop->start_ns;
  uint64_t steps = loop->step - loop->chief->first_step;
  if (steps == 0 || ns <= 0) return 1;
  double rate = (double)steps * 1e9 / (double)ns;
  return rate > 1 ? (uint64_t)rate : 1;
}

static void due_next(const weir_loop *loop, const weir_due *due,
                     uint64_t *next) {
  const weir_every *e = &due->every;
  int64_t all = weir_dataset_batches(loop->data);
  if (e->steps > 0) at_most(next, (loop->step / e->steps + 1) * e->steps);
  if (e->ns > 0) at_most(next, loop->step + steps_of_a_second(loop));
  if (e->epochs <= 0) return;
  double runs = ((double)due->epochs + 1) * e->epochs * (double)all;
  uint64_t step = step_of_runs(loop, (uint64_t)ceil(runs - 1e-6));
  at_most(next, step > loop->step ? step : loop->step + 1);
}

static uint64_t next_step(const weir_loop *loop) {
  const weir_train_spec *spec = loop->spec;
  uint64_t all = (uint64_t)weir_dataset_batches(loop->data);
  uint64_t next = step_of_runs(loop, (loop->runs / all + 1) * all);
  if (next <= loop->step) next = loop->step + 1;
  if (loop->last_step > 0) at_most(&next, loop->last_step);
  if (spec->stop.time_ns > 0)
    at_most(&next, loop->step + steps_of_a_second(loop));
  due_next(loop, &loop->log_due, &next);
  if (loop->summary != NULL) due_next(loop, &loop->summary_due, &next);
  if (loop->evals[0].data != NULL) due_next(loop, &loop->eval_due, &next);
  if (loop->store != NULL) due_next(loop, &loop->save_due, &next);
  return next;
}

/* ---- A step that was reached */

/* Where the loop stands with |runs| runs: at the end of an epoch, before its
 * work, the epoch is not finished. */
static void stand_at(weir_loop *loop, uint64_t step, uint64_t runs) {
  uint64_t all = (uint64_t)weir_dataset_batches(loop->data);
  int64_t rows = weir_dataset_examples(loop->data);
  loop->step = step;
  loop->runs = runs;
  loop->epoch = runs / all;
  loop->batches = runs % all;
  if (runs > 0 && loop->batches == 0) {
    loop->epoch--;
    loop->batches = all;
  }
  double part = (double)loop->batches / (double)all;
  loop->examples =
      loop->epoch * (uint64_t)rows + (uint64_t)(part * (double)rows + 0.5);
}

/* Does the work of an epoch that ended within an update, and of the step. */
static weir_status work(weir_chief *c, uint64_t step, weir_error *err) {
  weir_loop *loop = c->loop;
  uint64_t runs = step * loop->spec->accumulate, epoch = loop->epoch;
  stand_at(loop, step, runs);
  if (loop->epoch > epoch && loop->batches > 0) {
    uint64_t now = loop->epoch, batches = loop->batches;
    loop->epoch = now - 1;
    loop->batches = batches;
    WEIR_TRY(weir_loop_end_epoch(loop, err));
    loop->epoch = now;
    loop->batches = batches;
  }
  WEIR_TRY(weir_loop_after(loop, err));
  if (loop->batches == (uint64_t)weir_dataset_batches(loop->data))
    WEIR_TRY(weir_loop_end_epoch(loop, err));
  return WEIR_OK;
}

/* Another process of this chief, or an earlier job, has been before. What it
 * had to do at |step| is done now, perhaps again. */
static void go_on_from(weir_chief *c, uint64_t step) {
  weir_loop *loop = c->loop;
  c->resumed = true;
  c->first_step = step;
  if (step == 0) return;
  stand_at(loop, step, step * loop->spec->accumulate);
  loop->first_examples = loop->examples;
  if (loop->calls.resumed != NULL)
    loop->calls.resumed(loop->calls.self, loop->step);
  loop->step = 0; /* so that there is work */
}

/* The end: |step| is that which was reached, or NONE. Servers that go back
 * before they have heard of it reach it again. */
static void stop(weir_chief *c, uint64_t step) {
  weir_chief_tell(c, WEIR_CHIEF_STOP, step);
  uint64_t again;
  while (wait_for_step(c, false, &again))
    weir_chief_tell(
        c,
        step == WEIR_PS_NONE || again >= step ? WEIR_CHIEF_STOP : WEIR_CHIEF_GO,
        step == WEIR_PS_NONE || again >= step ? again : step);
}

static weir_status fail_over(const weir_chief *c, weir_error *err) {
  if (c->fenced)
    return weir_fail(err, WEIR_W7100, NULL,
                     "another chief of this job has taken over");
  weir_status s =
      weir_fail(err, WEIR_W5020, NULL,
                "run %" PRIu64 " (step %" PRIu64
                ") has failed at "
                "a worker",
                c->failed_run, c->failed_run / c->loop->spec->accumulate + 1);
  weir_hint(err, "the worker's log names the node");
  return s;
}

/* The servers' values of the end, and where the loop stands with them. */
static weir_status take_end(weir_chief *c, weir_error *err) {
  weir_loop *loop = c->loop;
  bool whole = false;
  pthread_mutex_lock(&c->lock);
  c->stale = false;
  pthread_mutex_unlock(&c->lock);
  WEIR_TRY(fetch(c, &whole, err));
  if (!whole) return WEIR_OK;
  stand_at(loop, c->version, c->version * loop->spec->accumulate);
  return weir_chief_set_step(c, loop->step, err);
}

/* The job is over, or this chief is not its chief any more. */
static weir_status on_over(weir_chief *c, weir_train_end end, weir_error *err) {
  weir_loop *loop = c->loop;
  pthread_mutex_lock(&c->lock);
  bool bad = c->fenced || c->failed, failed = c->failed;
  pthread_mutex_unlock(&c->lock);
  if (failed) end_all(c);
  if (bad) return fail_over(c, err);
  WEIR_TRY(take_end(c, err));
  loop->end = end;
  if (loop->last_step > 0 && loop->step >= loop->last_step)
    loop->end = WEIR_TRAIN_END_STEPS;
  weir_chief_account_tell(c);
  return WEIR_OK;
}

static weir_status on_step(weir_chief *c, uint64_t step, weir_error *err) {
  weir_loop *loop = c->loop;
  bool whole = false;
  if (!c->resumed || step > loop->step) {
    WEIR_TRY(fetch(c, &whole, err));
    if (!whole) return WEIR_OK;
  }
  if (!c->resumed) go_on_from(c, step);
  if (step > loop->step) {
    WEIR_TRY(weir_chief_set_step(c, step, err));
    wait_for_report(c, step * loop->spec->accumulate);
    WEIR_TRY(work(c, step, err));
  }
  if (loop->last_step > 0 && loop->step >= loop->last_step &&
      loop->end == WEIR_TRAIN_END_GOING)
    loop->end = loop->spec->steps > 0 && loop->step >= loop->spec->steps
                    ? WEIR_TRAIN_END_STEPS
                    : WEIR_TRAIN_END_EPOCHS;
  if (loop->end == WEIR_TRAIN_END_GOING) {
    weir_chief_tell(c, WEIR_CHIEF_GO, next_step(loop));
    return WEIR_OK;
  }
  stop(c, step);
  pthread_mutex_lock(&c->lock);
  bool bad = c->fenced || c->failed;
  pthread_mutex_unlock(&c->lock);
  if (bad) return on_over(c, loop->end, err);
  weir_chief_account_tell(c);
  return WEIR_OK;
}

weir_status weir_chief_turn(weir_loop *loop, weir_error *err) {
  weir_error mine = WEIR_ERROR_INIT;
  weir_chief *c = loop->chief;
  uint64_t step;
  err = err != NULL ? err : &mine;
  if (wait_for_step(c, true, &step)) return on_step(c, step, err);
  pthread_mutex_lock(&c->lock);
  bool over = is_over(c);
  pthread_mutex_unlock(&c->lock);
  if (!over) stop(c, WEIR_PS_NONE); /* it was told to */
  return on_over(c, WEIR_TRAIN_END_STOPPED, err);
}

void weir_chief_end(weir_loop *loop) {
  weir_chief *c = loop->chief;
  pthread_mutex_lock(&c->lock);
  bool over = c->over;
  pthread_mutex_unlock(&c->lock);
  if (over) end_all(c);
}
