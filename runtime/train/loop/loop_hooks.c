/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/loop/loop_hooks.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "runtime/exec/session/session_snapshot.h"
#include "runtime/train/data/data_open.h"
#include "runtime/train/loop/loop_eval.h"
#include "runtime/train/loop/loop_internal.h"
#include "runtime/train/loop/loop_save.h"
#include "runtime/train/ps/watch/chief_watch.h"

/* The work after a step, in its order: the log, summaries, evaluation, stop
 * rules, checkpoint. */

/* How many times |epochs| have passed. 1e-9 makes up for the rounding of
 * fractions: ten times a tenth of an epoch is due at its end, not later. */
static uint64_t times_of(const weir_loop *loop, double epochs) {
  if (epochs <= 0) return 0;
  return (uint64_t)floor(weir_loop_epochs(loop) / epochs + 1e-9);
}

void weir_loop_due_begin(const weir_loop *loop, weir_due *due) {
  due->ns = weir_loop_clock(loop);
  due->epochs = times_of(loop, due->every.epochs);
}

/* Whether it is time again; |*due| then remembers. */
static bool is_due(const weir_loop *loop, weir_due *due) {
  const weir_every *every = &due->every;
  bool is = false;
  /* The end of an epoch is no step. */
  if (every->steps > 0 && loop->batches > 0)
    is = loop->step % every->steps == 0 && loop->step > 0;
  if (every->ns > 0 && !is) is = weir_loop_clock(loop) - due->ns >= every->ns;
  if (every->epochs > 0) {
    uint64_t times = times_of(loop, every->epochs);
    is = is || times > due->epochs;
    due->epochs = times;
  }
  if (is && every->ns > 0) due->ns = weir_loop_clock(loop);
  return is;
}

bool weir_loop_save_is_near(const weir_loop *loop, uint32_t more) {
  const weir_due *due = &loop->save_due;
  const weir_every *every = &due->every;
  if (loop->store == NULL) return false;
  if (every->steps > 0 &&
      (loop->step + more) / every->steps > loop->step / every->steps)
    return true;
  if (every->ns > 0 && weir_loop_clock(loop) - due->ns >= every->ns)
    return true;
  int64_t all = weir_dataset_batches(loop->data);
  double epochs = weir_loop_epochs(loop);
  if (all > 0) epochs += (double)more / (double)all;
  return every->epochs > 0 &&
         (uint64_t)floor(epochs / every->epochs + 1e-9) > due->epochs;
}

/* ---- Stop rules that look at evaluations */

static bool find_value(const weir_train_report *report, weir_sv name,
                       double *out) {
  for (uint32_t i = 0; i < report->value_count; i++) {
    if (!weir_sv_is(name, report->values[i].name)) continue;
    *out = report->values[i].value;
    return true;
  }
  return false;
}

/* The verdict of an evaluation: reaching the target ends training at once;
 * early stopping counts evaluations in a row without a gain above the delta.
 * Best and count go into checkpoints, so a run that goes on stops at the same
 * evaluation as one that was never interrupted. */
static void judge(weir_loop *loop, const weir_train_report *report) {
  const weir_train_spec *spec = loop->spec;
  double x;
  if (spec->stop.target.metric.size > 0 &&
      find_value(report, spec->stop.target.metric, &x)) {
    double want = spec->stop.target.value;
    if (spec->stop.target.at_least ? x >= want : x <= want)
      loop->end = WEIR_TRAIN_END_TARGET;
  }
  if (spec->stop.early_patience == 0 ||
      !find_value(report, spec->stop.early_metric, &x))
    return;
  double gain =
      spec->stop.early_at_least ? x - loop->early_best : loop->early_best - x;
  if (!loop->early_has || gain > spec->stop.early_delta) {
    loop->early_has = true;
    loop->early_best = x;
    loop->early_bad = 0;
  } else {
    loop->early_bad++;
  }
  if (loop->early_bad >= spec->stop.early_patience &&
      loop->end == WEIR_TRAIN_END_GOING)
    loop->end = WEIR_TRAIN_END_EARLY;
}

static weir_status evaluate(weir_loop *loop, weir_error *err) {
  weir_train_report report;
  weir_status s = weir_loop_eval_on_run(loop, &loop->evals[0], &report, err);
  if (s == WEIR_CANCELLED) return WEIR_OK; /* asked to stop meanwhile */
  if (s == WEIR_OK) judge(loop, &report);
  return s;
}

/* ---- Summaries */

/* The number of a summary's scalar |i|. */
static double scalar_of(const weir_loop *loop, uint32_t i) {
  if (loop->chief != NULL) return weir_chief_scalar(loop, i);
  return weir_loop_mean(
      weir_stepper_output(loop->stepper, loop->watch.scalar_at + i));
}

/* A row has a column for each number of a step and of an evaluation; NaN leaves
 * those of the other open. */
static void write_row(weir_loop *loop, weir_error *err, weir_status *s) {
  const weir_train_spec *spec = loop->spec;
  /* Steps alone: neither evaluations nor saves. */
  int64_t now = weir_loop_clock(loop) - loop->eval_ns - loop->save_ns;
  int64_t ns = now - loop->row_ns;
  uint32_t n = 0;
  for (uint32_t i = 0; i < spec->summary.scalar_count; i++)
    loop->sums[n++] = scalar_of(loop, i);
  if (!spec->summary.has_scalars) {
    loop->sums[n++] = loop->loss;
    for (uint32_t i = 0; i < loop->metric_count; i++)
      if (!weir_sv_is(spec->minimize, loop->metrics[i].name))
        loop->sums[n++] = loop->values[i].value;
  }
  loop->sums[n++] = loop->rate;
  uint64_t examples = loop->examples - loop->first_examples;
  loop->sums[n++] =
      ns > 0 ? (double)(examples - loop->row_examples) * 1e9 / (double)ns : NAN;
  assert(n == loop->row_evals);
  for (uint32_t i = 0; i < loop->metric_count; i++)
    loop->sums[n++] = NAN; /* of evaluations */
  loop->row_examples = examples;
  loop->row_ns = now;
  *s = weir_summary_row(loop->summary, loop->step, loop->sums, err);
}

/* Histograms that nobody asked for are of every tenth row, from the first on:
 * they read all variables. */
static bool wants_histograms(const weir_loop *loop) {
  return loop->spec->summary.has_histograms || loop->row_count % 10 == 0;
}

/* The values of node |i| of those in `histograms:`. The caller's. */
static weir_status take_node(const weir_loop *loop, uint32_t i,
                             weir_tensor **out, weir_error *err) {
  if (loop->chief != NULL) return weir_chief_histogram(loop, i, out, err);
  *out = weir_tensor_ref((weir_tensor *)weir_stepper_output(
      loop->stepper, loop->watch.histogram_at + i));
  return WEIR_OK;
}

static weir_status write_node(weir_loop *loop, weir_sv name, uint32_t i,
                              weir_error *err) {
  weir_tensor *t = NULL;
  WEIR_TRY(take_node(loop, i, &t, err));
  weir_status s =
      weir_summary_histogram(loop->summary, loop->step, name, t, err);
  weir_tensor_unref(t);
  return s;
}

static weir_status write_histograms(weir_loop *loop, weir_error *err) {
  const weir_train_spec *spec = loop->spec;
  static const weir_sv kAll = {"kind:var", 8};
  uint32_t at = 0;
  uint32_t count =
      spec->summary.has_histograms ? spec->summary.histogram_count : 1;
  if (loop->chief != NULL) WEIR_TRY(weir_chief_look(loop, err));
  for (uint32_t i = 0; i < count; i++) {
    weir_sv name =
        spec->summary.has_histograms ? spec->summary.histograms[i] : kAll;
    if (!weir_sv_is(name, "kind:var")) {
      WEIR_TRY(write_node(loop, name, at++, err));
      continue;
    }
    for (size_t k = 0; k < loop->entry_count; k++) {
      weir_tensor *t = NULL;
      if (loop->entries[k].role != WEIR_CHECKPOINT_VARIABLE) continue;
      WEIR_TRY(weir_exec_variable_snapshot(loop->session, loop->entry_nodes[k],
                                           &t, err));
      weir_status s = weir_summary_histogram(loop->summary, loop->step,
                                             loop->entries[k].name, t, err);
      weir_tensor_unref(t);
      WEIR_TRY(s);
    }
  }
  return WEIR_OK;
}

/* A summary that cannot be written is a warning, once; training goes on. */
static void summarise(weir_loop *loop) {
  weir_error err = WEIR_ERROR_INIT;
  weir_status s = WEIR_OK;
  write_row(loop, &err, &s);
  if (s == WEIR_OK && wants_histograms(loop)) s = write_histograms(loop, &err);
  loop->row_count++;
  if (s == WEIR_OK) s = weir_summary_flush(loop->summary, &err);
  if (s == WEIR_OK) return;
  weir_loop_warn(loop, &err);
  weir_summary_release(loop->summary);
  loop->summary = NULL;
}

/* ---- All of it */

static void tell_step(weir_loop *loop) {
  bool log = is_due(loop, &loop->log_due);
  if (loop->calls.step == NULL) return;
  weir_train_progress now = weir_loop_now(loop);
  now.log = log;
  loop->calls.step(loop->calls.self, &now);
}

/* Before the checkpoint: one that is saved at the end says so. */
static void check_limits(weir_loop *loop) {
  const weir_train_spec *spec = loop->spec;
  if (loop->end != WEIR_TRAIN_END_GOING) return;
  if (spec->steps > 0 && loop->step >= spec->steps)
    loop->end = WEIR_TRAIN_END_STEPS;
  else if (spec->epochs > 0 && loop->epoch >= spec->epochs)
    loop->end = WEIR_TRAIN_END_EPOCHS;
  else if (spec->stop.time_ns > 0 &&
           weir_loop_clock(loop) - loop->start_ns >= spec->stop.time_ns)
    loop->end = WEIR_TRAIN_END_TIME;
}

weir_status weir_loop_after(weir_loop *loop, weir_error *err) {
  bool is_step = loop->batches > 0;
  if (is_step) tell_step(loop);
  if (is_step && loop->summary != NULL && is_due(loop, &loop->summary_due))
    summarise(loop);
  if (loop->evals[0].data != NULL && is_due(loop, &loop->eval_due))
    WEIR_TRY(evaluate(loop, err));
  check_limits(loop);
  if (atomic_load(&loop->stop) && loop->end == WEIR_TRAIN_END_GOING)
    loop->end = WEIR_TRAIN_END_STOPPED;
  bool save = loop->store != NULL && loop->under_way == 0 &&
              is_due(loop, &loop->save_due);
  if (save && loop->end == WEIR_TRAIN_END_GOING) {
    weir_error told = WEIR_ERROR_INIT;
    (void)weir_loop_save_now(loop, &told); /* training survives it */
  }
  return WEIR_OK;
}
