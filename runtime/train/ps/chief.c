/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/ps/chief.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/base/map.h"
#include "runtime/train/data/data_open.h"
#include "runtime/train/loop/loop_hooks.h"
#include "runtime/train/ps/account/chief_account.h"
#include "runtime/train/ps/chief_net.h"
#include "runtime/train/ps/chief_values.h"
#include "runtime/train/ps/seed/chief_seed.h"
#include "runtime/train/ps/watch/chief_watch.h"

/* The loop's side of the chief. */

/* ---- Making one */

weir_status weir_chief_create(weir_loop *loop, weir_error *err) {
  const weir_chief_options *o = loop->options.chief;
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
                             .slots = o->slots,
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
  WEIR_TRY(weir_chief_watch_create(c, err));
  WEIR_TRY(weir_chief_seed_create(c, err));
  const int64_t most = 60 * INT64_C(1000000000); /* for the last generation */
  weir_ps_coordinator_options machine = {
      .config = c->job->config,
      .incarnation = random_number(c),
      .rejoin_ns = o->rejoin_ns,
      .final_ns = o->away_ns > 0 && o->away_ns < most ? o->away_ns : most,
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
                             .book = o->book,
                             .server_count = o->server_count,
                             .job_hash = c->job->hash,
                             .config = &c->job->config,
                             .heartbeat_ns = o->heartbeat_ns,
                             .away_ns = o->away_ns};
  weir_ps_net_events events = weir_chief_events(c);
  WEIR_TRY(weir_ps_net_create(loop->env, &net, &events, &c->net, err));
  return weir_ps_net_start(c->net, err);
}

void weir_chief_release(weir_loop *loop) {
  weir_chief *c = loop->chief;
  if (c == NULL) return;
  weir_ps_net_release(c->net);
  weir_ps_coordinator_release(c->machine);
  if (c->job != NULL) weir_chief_seed_release(c);
  weir_chief_watch_release(c);
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
  return c->over || c->fenced || c->stuck;
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

/* Puts the servers' values into the session, in sync of |step| or a later one.
 * False in |*out_whole|: servers went back meanwhile, and a step will be
 * reached again. */
static weir_status fetch(weir_chief *c, uint64_t step, bool *out_whole,
                         weir_error *err) {
  bool sync = c->job->config.mode == WEIR_PS_SYNC;
  pthread_mutex_lock(&c->lock);
  c->missing = c->job->config.servers;
  pthread_mutex_unlock(&c->lock);
  weir_chief_tell(c, WEIR_CHIEF_FETCH, sync ? step : 0);
  pthread_mutex_lock(&c->lock);
  while (c->missing > 0 && !c->fenced && !c->stuck) wait_a_while(c);
  *out_whole = !c->stale && !c->fenced && !c->stuck;
  pthread_mutex_unlock(&c->lock);
  return *out_whole ? weir_chief_values_take(c, err) : WEIR_OK;
}

/* Whether all others have heard of the end: they are gone, and none is to come.
 * Those that are not listed may come or not. */
static bool all_told(const weir_chief *c) {
  bool all = c->here == 0 && c->away == 0;
  for (uint32_t i = 0; i < c->options.listed; i++)
    all = all && (c->met[i] || i == c->options.own_worker);
  return all;
}

/* Says who is left without a word. With the lock. */
static void name_untold(const weir_chief *c) {
  char text[300];
  size_t n = 0;
  for (uint32_t s = 0; s < c->job->config.servers && n < 240; s++)
    if ((c->away >> s & 1) != 0)
      n += (size_t)snprintf(text + n, sizeof text - n, " ps:%" PRIu32, s);
  for (uint32_t i = 0; i < c->options.listed && n < 240; i++)
    if (!c->met[i] && i != c->options.own_worker)
      n += (size_t)snprintf(text + n, sizeof text - n, " worker:%" PRIu32, i);
  if (n == 0 || c->options.log == NULL) return;
  char line[360];
  snprintf(line, sizeof line, "the job is over, and not there to hear it:%s",
           text);
  c->options.log(c->options.log_self, line);
}

/* Tells the others of the end. Those that never came, or are cut off, are
 * waited for, for a few seconds. */
static void end_all(weir_chief *c, weir_chief_ask ask, uint64_t number) {
  int64_t until = weir_loop_clock(c->loop) + 5 * INT64_C(1000000000);
  weir_chief_tell(c, ask, number);
  pthread_mutex_lock(&c->lock);
  while (!all_told(c) && weir_loop_clock(c->loop) < until) wait_a_while(c);
  name_untold(c);
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
 * had to do at |step| is done now, perhaps again; but not at the step of a
 * checkpoint, which was made after it. */
static void go_on_from(weir_chief *c, uint64_t step) {
  weir_loop *loop = c->loop;
  c->resumed = true;
  c->first_step = step;
  if (step == c->seed_step) return; /* the loop stands there */
  stand_at(loop, step, step * loop->spec->accumulate);
  loop->saved = loop->early_has = false; /* of another step */
  loop->early_bad = 0;
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

/* The end of a job that has not begun: its servers may never come. False: it is
 * left after a few seconds. */
static bool stop_early(weir_chief *c) {
  int64_t until = weir_loop_clock(c->loop) + 5 * INT64_C(1000000000);
  weir_chief_tell(c, WEIR_CHIEF_STOP, WEIR_PS_NONE);
  pthread_mutex_lock(&c->lock);
  while (!c->reached && !is_over(c) && weir_loop_clock(c->loop) < until)
    wait_a_while(c);
  bool begun = c->reached && !is_over(c), over = is_over(c);
  pthread_mutex_unlock(&c->lock);
  if (begun) stop(c, WEIR_PS_NONE);
  return begun || over;
}

static weir_status fail_over(const weir_chief *c, weir_error *err) {
  if (c->fenced)
    return weir_fail(err, WEIR_W7100, NULL,
                     "another chief of this job has taken over");
  if (c->stuck) {
    weir_error_copy(err, &c->stuck_why);
    return c->stuck_why.code;
  }
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
  WEIR_TRY(fetch(c, 0, &whole, err));
  if (!whole) return WEIR_OK;
  stand_at(loop, c->version, c->version * loop->spec->accumulate);
  return weir_chief_set_step(c, loop->step, err);
}

/* The job is over, or this chief is not its chief any more. */
static weir_status on_over(weir_chief *c, weir_train_end end, weir_error *err) {
  weir_loop *loop = c->loop;
  pthread_mutex_lock(&c->lock);
  bool bad = c->fenced || c->failed || c->stuck, failed = c->failed;
  pthread_mutex_unlock(&c->lock);
  if (failed) end_all(c, WEIR_CHIEF_END, 0);
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
    WEIR_TRY(fetch(c, step, &whole, err));
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
  bool bad = c->fenced || c->failed || c->stuck;
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
  if (!over && c->resumed) { /* it was told to */
    stop(c, WEIR_PS_NONE);
  } else if (!over && !stop_early(c)) {
    loop->end = WEIR_TRAIN_END_STOPPED;
    loop->saved = true; /* there is nothing to be saved */
    return WEIR_OK;
  }
  return on_over(c, WEIR_TRAIN_END_STOPPED, err);
}

weir_status weir_chief_end(weir_loop *loop, weir_error *err) {
  weir_chief *c = loop->chief;
  pthread_mutex_lock(&c->lock);
  bool over = c->over, unsaved = c->unsaved;
  pthread_mutex_unlock(&c->lock);
  if (over) end_all(c, WEIR_CHIEF_END, 0);
  if (!over || !unsaved) return WEIR_OK;
  weir_status s = weir_fail(err, WEIR_W7102, NULL,
                            "the job has ended at step %" PRIu64
                            ", a server could not save its last generation",
                            loop->step);
  weir_hint(err,
            "the servers' logs say why; a job that is started again goes "
            "on from the generation before");
  return s;
}

void weir_chief_fail(weir_loop *loop, const weir_error *why) {
  weir_chief *c = loop->chief;
  if (c->net == NULL) return;
  pthread_mutex_lock(&c->lock);
  bool needed = !c->over && !c->fenced;
  pthread_mutex_unlock(&c->lock);
  uint64_t number = 0;
  if (why != NULL && why->id[0] == 'W')
    number = strtoull(why->id + 1, NULL, 10);
  if (needed) end_all(c, WEIR_CHIEF_FAIL, number > 0 ? number : 6001);
}
