/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "runtime/exec/session/session_snapshot.h"
#include "runtime/exec/session/session_vars.h"
#include "runtime/io/checkpoint/checkpoint_store.h"
#include "runtime/train/batch/data_iter.h"
#include "runtime/train/data/data_open.h"
#include "runtime/train/loop/loop_eval.h"
#include "runtime/train/loop/loop_hooks.h"
#include "runtime/train/loop/loop_internal.h"
#include "runtime/train/loop/loop_save.h"
#include "runtime/train/ps/chief.h"
#include "runtime/train/replicas/replicas.h"

/* Steps.
 *
 * An update is |accumulate| runs: all but the last use |accumulator|, which
 * only adds gradients up; the last uses |stepper|, which also assigns the
 * variables. A run changes nothing unless all of it succeeds, and |accept_loss|
 * is part of it: so after a loss that is not finite the values are still those
 * before the run, and the run can be made again to find the node. Counters move
 * only after a run has succeeded. */

int64_t weir_loop_clock(const weir_loop *loop) {
  return loop->env->clock->now_ns(loop->env->clock->self);
}

void weir_loop_warn(const weir_loop *loop, const weir_error *err) {
  if (loop->calls.warning != NULL) loop->calls.warning(loop->calls.self, err);
}

double weir_loop_epochs(const weir_loop *loop) {
  int64_t all = loop->data != NULL ? weir_dataset_batches(loop->data) : 0;
  double part = all > 0 ? (double)loop->batches / (double)all : 0;
  return (double)loop->epoch + (part < 1 ? part : 1);
}

void weir_loop_stop(weir_loop *loop) {
  atomic_store(&loop->stop, true);
}

const weir_graph *weir_loop_graph(const weir_loop *loop) {
  return loop->run_graph;
}

weir_exec_session *weir_loop_session(weir_loop *loop) {
  return loop->session;
}

weir_train_progress weir_loop_now(const weir_loop *loop) {
  return (weir_train_progress){
      .struct_size = sizeof(weir_train_progress),
      .step = loop->step,
      .last_step = loop->last_step,
      .epochs = loop->spec->epochs,
      .epoch = weir_loop_epochs(loop),
      .loss = loop->loss,
      .learning_rate = loop->rate,
      .values = loop->values,
      .value_count = loop->metric_count,
      .examples = loop->examples - loop->first_examples,
      .run_ns = weir_loop_clock(loop) - loop->start_ns,
      .wait_ns = loop->iter != NULL ? weir_data_iter_wait_ns(loop->iter) : 0,
      .save_ns = loop->save_ns,
      .eval_ns = loop->eval_ns};
}

/* ---- One update */

/* Asked before variables change. */
static weir_status accept_loss(void *self, weir_error *err) {
  const weir_loop *loop = self;
  uint32_t micro = loop->spec->accumulate;
  bool last = loop->runs % micro == micro - 1u;
  const weir_stepper *s = last ? loop->stepper : loop->accumulator;
  double loss = weir_loop_mean(weir_stepper_output(s, WEIR_FETCH_LOSS));
  if (isfinite(loss)) return WEIR_OK;
  return weir_fail(err, WEIR_W5020, NULL, "the loss is %g", loss);
}

/* The name of a variable that holds NaN or infinity, or an empty text. */
static weir_sv bad_variable(weir_loop *loop) {
  for (size_t i = 0; i < loop->entry_count; i++) {
    weir_tensor *t = NULL;
    if (weir_exec_variable_snapshot(loop->session, loop->entry_nodes[i], &t,
                                    NULL) != WEIR_OK)
      break;
    bool good = true;
    if (weir_dtype_is_float(t->dtype)) {
      int64_t n = weir_shape_elements(&t->shape);
      for (int64_t k = 0; good && k < n; k++)
        good = isfinite(weir_tensor_get_f64(t, k));
    }
    weir_tensor_unref(t);
    if (!good) return loop->entries[i].name;
  }
  return (weir_sv){NULL, 0};
}

/* Runs the step again, from the same values, until the first NaN. */
weir_status weir_loop_blame(weir_loop *loop, weir_stepper *stepper,
                            uint64_t run, weir_error *err) {
  weir_sv var = bad_variable(loop);
  return weir_stepper_blame(stepper, run, loop->step + 1, var, err);
}

void weir_loop_take_values(weir_loop *loop, const weir_stepper *stepper) {
  loop->loss = weir_loop_mean(weir_stepper_output(stepper, WEIR_FETCH_LOSS));
  for (uint32_t i = 0; i < loop->metric_count; i++) {
    double x =
        weir_loop_mean(weir_stepper_output(stepper, WEIR_FETCH_METRICS + i));
    loop->values[i].value = loop->metrics[i].perplexity ? exp(x) : x;
  }
}

void weir_loop_count_run(weir_loop *loop, int64_t rows, bool last) {
  loop->runs++;
  loop->batches++;
  loop->examples += (uint64_t)rows;
  if (last) loop->step++;
}

weir_status weir_loop_profile(weir_loop *loop,
                              const weir_loop_profiler *profiler,
                              weir_error *err) {
  if (loop->replicas != NULL || loop->chief != NULL)
    return weir_fail(err, WEIR_W0001, NULL,
                     "a profile is of one trainer; this training's steps are "
                     "made by %s",
                     loop->chief != NULL ? "other processes" : "replicas");
  loop->profiler = *profiler;
  return WEIR_OK;
}

/* A run, with a trace where the profiler wants one. */
static weir_status run_stepper(weir_loop *loop, weir_stepper *stepper,
                               const weir_batch *batch, weir_run_options *run,
                               weir_error *err) {
  const weir_loop_profiler *p = &loop->profiler;
  run->trace = p->begin != NULL ? p->begin(p->self) : NULL;
  if (run->trace == NULL) return weir_stepper_run(stepper, batch, run, err);
  WEIR_TRY(weir_stepper_load(stepper, batch, err));
  int64_t begin = weir_loop_clock(loop);
  WEIR_TRY(weir_stepper_go(stepper, run, err));
  return p->end(p->self, weir_loop_clock(loop) - begin, err);
}

static weir_status run_batch(weir_loop *loop, const weir_batch *batch,
                             weir_error *err) {
  uint32_t micro = loop->spec->accumulate;
  assert(micro > 0);
  bool last = loop->runs % micro == micro - 1u;
  weir_stepper *stepper = last ? loop->stepper : loop->accumulator;
  weir_run_options run = {.step = loop->runs,
                          .accept = loop->spec->nan_trap ? accept_loss : NULL,
                          .accept_self = loop};
  weir_error mine = WEIR_ERROR_INIT;
  weir_error *e = err != NULL ? err : &mine;
  weir_status s = run_stepper(loop, stepper, batch, &run, e);
  if (s != WEIR_OK && strcmp(e->id, "W5020") == 0)
    return weir_loop_blame(loop, stepper, loop->runs, e);
  if (s != WEIR_OK) return s;
  weir_loop_take_values(loop, stepper);
  loop->rate = weir_loop_mean(weir_stepper_output(stepper, WEIR_FETCH_RATE));
  weir_loop_count_run(loop, batch->rows, last);
  return WEIR_OK;
}

weir_status weir_loop_reset_states(weir_loop *loop, weir_error *err) {
  for (size_t i = 0; i < loop->entry_count; i++)
    if (loop->first_states[i] != NULL)
      WEIR_TRY(weir_exec_variable_set(loop->session, loop->entry_nodes[i],
                                      loop->first_states[i], err));
  return WEIR_OK;
}

weir_status weir_loop_end_epoch(weir_loop *loop, weir_error *err) {
  if (loop->batches == 0)
    return weir_fail(err, WEIR_W5021, NULL,
                     "data %.*s: an epoch has no batch; is there less data "
                     "than one batch, and drop_last set?",
                     WEIR_SV(loop->spec->data));
  loop->epoch++;
  loop->batches = 0;
  if (weir_sv_is(loop->spec->reset_state, "epoch"))
    WEIR_TRY(weir_loop_reset_states(loop, err));
  if (loop->calls.epoch != NULL) {
    weir_train_progress now = weir_loop_now(loop);
    loop->calls.epoch(loop->calls.self, &now);
  }
  return weir_loop_after(loop, err);
}

/* A run that goes on from a checkpoint of the end has nothing to do. */
static void look_for_end(weir_loop *loop) {
  if (loop->end != WEIR_TRAIN_END_GOING) return;
  if (loop->spec->steps > 0 && loop->step >= loop->spec->steps)
    loop->end = WEIR_TRAIN_END_STEPS;
  else if (loop->spec->epochs > 0 && loop->epoch >= loop->spec->epochs)
    loop->end = WEIR_TRAIN_END_EPOCHS;
}

weir_status weir_loop_step(weir_loop *loop, weir_train_end *out_end,
                           weir_error *err) {
  uint64_t want = loop->step + 1;
  weir_status s = WEIR_OK;
  if (loop->chief == NULL) look_for_end(loop); /* a chief's servers know */
  while (s == WEIR_OK && loop->step < want &&
         loop->end == WEIR_TRAIN_END_GOING) {
    weir_batch batch;
    if (loop->replicas != NULL || loop->chief != NULL) {
      s = loop->chief != NULL ? weir_chief_turn(loop, err)
                              : weir_replicas_turn(loop, err);
      continue;
    }
    s = weir_data_iter_next(loop->iter, &batch, err);
    if (s == WEIR_OK)
      s = batch.end_of_epoch ? weir_loop_end_epoch(loop, err)
                             : run_batch(loop, &batch, err);
  }
  if (s == WEIR_OK && loop->step == want && loop->chief == NULL)
    s = weir_loop_after(loop, err);
  if (s != WEIR_OK) loop->end = WEIR_TRAIN_END_FAILED;
  if (s != WEIR_OK && loop->chief != NULL) weir_chief_fail(loop, err);
  *out_end = loop->end;
  return s;
}

weir_status weir_loop_run(weir_loop *loop, weir_train_end *out_end,
                          weir_error *err) {
  weir_status s = WEIR_OK;
  *out_end = loop->end;
  do {
    s = weir_loop_step(loop, out_end, err);
  } while (s == WEIR_OK && *out_end == WEIR_TRAIN_END_GOING);
  if (s == WEIR_OK) return weir_loop_finish(loop, err);
  if (loop->store != NULL) { /* a save under way is finished all the same */
    weir_error ignored = WEIR_ERROR_INIT;
    weir_status waited = weir_checkpoint_wait(loop->store, &ignored);
    if (waited != WEIR_OK) weir_loop_warn(loop, &ignored);
  }
  return s;
}
