/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/loop/loop_eval.h"

#include <math.h>
#include <string.h>

#include "runtime/exec/session/session_snapshot.h"
#include "runtime/exec/session/session_vars.h"
#include "runtime/train/batch/data_iter.h"
#include "runtime/train/data/data_open.h"
#include "runtime/train/loop/flight.h"
#include "runtime/train/loop/loop_create.h"
#include "runtime/train/loop/loop_internal.h"

/* Evaluation: the metrics of the source graph, not in training mode, averaged
 * over the examples of a data set: batch means are weighted by rows, so a small
 * last batch counts as much as it has examples, and exp of a perplexity is
 * taken of the whole mean. The same session runs it, so weights are shared. */

double weir_loop_mean(const weir_tensor *tensor) {
  int64_t n = weir_shape_elements(&tensor->shape);
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += weir_tensor_get_f64(tensor, i);
  return n == 1 ? sum : sum / (double)n;
}

static weir_status open_on(weir_loop *loop, const char *name,
                           weir_loop_eval_on *on, weir_error *err) {
  weir_dataset_options options = weir_loop_dataset(loop);
  weir_value_id *ids =
      weir_alloc_array(loop->alloc, loop->metric_count + 1u, sizeof *ids);
  if (ids == NULL) return weir_fail_memory(err, 0);
  for (uint32_t i = 0; i < loop->metric_count; i++)
    ids[i] = loop->metrics[i].value;
  on->name = weir_arena_string(&loop->arena, name, strlen(name));
  weir_status s =
      on->name == NULL
          ? weir_fail_memory(err, 0)
          : weir_dataset_open(loop->env, loop->graph, weir_sv_from(on->name),
                              &options, &on->data, err);
  weir_stepper_options step = {.session = loop->session,
                               .graph = loop->run_graph,
                               .data = on->data,
                               .section = weir_sv_from(name),
                               .fetches = ids,
                               .fetch_count = loop->metric_count,
                               .targets = loop->own_assigns,
                               .target_count = loop->own_assign_count};
  if (s == WEIR_OK)
    s = weir_stepper_create(loop->env, &step, &on->stepper, err);
  weir_free(loop->alloc, ids);
  if (s != WEIR_OK) {
    weir_dataset_release(on->data);
    *on = (weir_loop_eval_on){0};
  }
  return s;
}

weir_status weir_loop_find_eval(weir_loop *loop, const char *name,
                                weir_loop_eval_on **out_on, weir_error *err) {
  weir_loop_eval_on *on = loop->evals;
  int used = loop->spec->eval.data.size > 0 ? 0 : 1; /* 0: the spec's own */
  for (; used < WEIR_LOOP_EVALS && on[used].data != NULL; used++)
    if (strcmp(on[used].name, name) == 0) {
      *out_on = &on[used];
      return WEIR_OK;
    }
  if (used == WEIR_LOOP_EVALS)
    return weir_fail(err, WEIR_W0004, NULL,
                     "at most %d data sets can be evaluated on",
                     (int)WEIR_LOOP_EVALS);
  *out_on = &on[used];
  return open_on(loop, name, &on[used], err);
}

void weir_loop_evals_release(weir_loop *loop) {
  for (int i = 0; i < WEIR_LOOP_EVALS; i++) {
    weir_stepper_release(loop->evals[i].stepper);
    weir_dataset_release(loop->evals[i].data);
  }
}

/* A stop that came while evaluating: within the grace period it may go on. Once
 * training has ended, evaluations are asked for by themselves. */
static bool must_end(weir_loop *loop) {
  if (!atomic_load(&loop->stop) || loop->end != WEIR_TRAIN_END_GOING)
    return false;
  if (loop->stop_ns == 0) loop->stop_ns = weir_loop_clock(loop);
  return weir_loop_clock(loop) - loop->stop_ns >= loop->spec->stop.grace_ns;
}

/* One evaluation under way. */
typedef struct evaluating {
  weir_loop *loop;
  weir_data_iter *iter;
  weir_train_report *out;
  uint64_t taken; /* batches read */
} evaluating;

/* A flight's reading. */
static weir_status take(void *self, weir_batch *batch, bool *more,
                        weir_error *err) {
  evaluating *e = self;
  uint64_t most = e->loop->spec->eval.steps;
  *more = most == 0 || e->taken < most;
  if (!*more) return WEIR_OK;
  if (must_end(e->loop))
    return weir_fail(err, WEIR_W5005, NULL, "stopped while evaluating");
  WEIR_TRY(weir_data_iter_next(e->iter, batch, err));
  *more = !batch->end_of_epoch;
  e->taken += *more;
  return WEIR_OK;
}

/* Its results, in order: so the sums are the same bits, however many runs there
 * were at once. */
static weir_status give(void *self, const weir_flight_result *r,
                        weir_error *err) {
  const evaluating *e = self;
  weir_loop *loop = e->loop;
  (void)err;
  for (uint32_t i = 0; i < loop->metric_count; i++)
    loop->sums[i] += (double)r->in->rows * weir_loop_mean(r->outputs[i]);
  e->out->batches++;
  e->out->examples += (uint64_t)r->in->rows;
  return WEIR_OK;
}

static weir_status run_all(weir_loop *loop, weir_loop_eval_on *on,
                           weir_data_iter *iter, weir_train_report *out,
                           weir_error *err) {
  evaluating e = {loop, iter, out, 0};
  weir_run_options run = {.step = loop->runs};
  weir_flight_options flight = {.session = loop->session,
                                .stepper = on->stepper,
                                .columns = weir_dataset_column_count(on->data),
                                .outputs = loop->metric_count,
                                .run = &run,
                                .self = &e,
                                .take = take,
                                .give = give};
  memset(loop->sums, 0, loop->metric_count * sizeof *loop->sums);
  WEIR_TRY(weir_flight_run(loop->env, &flight, err));
  if (out->examples > 0) return WEIR_OK;
  return weir_fail(err, WEIR_W5021, NULL,
                   "data %s: there is nothing to evaluate on", on->name);
}

/* Evaluations go into the summary, too. */
static void summarise(weir_loop *loop, const weir_train_report *report) {
  uint32_t scalars = loop->row_evals;
  weir_error err = WEIR_ERROR_INIT;
  if (loop->summary == NULL) return;
  for (uint32_t i = 0; i < scalars; i++) loop->sums[i] = NAN;
  for (uint32_t i = 0; i < report->value_count; i++)
    loop->sums[scalars + i] = report->values[i].value;
  if (weir_summary_row(loop->summary, loop->step, loop->sums, &err) == WEIR_OK)
    return;
  weir_loop_warn(loop, &err);
  weir_summary_release(loop->summary);
  loop->summary = NULL;
}

/* Evaluation has states of its own: they begin anew, go on from batch to batch,
 * and training's are put back. */
static weir_status run_apart(weir_loop *loop, weir_loop_eval_on *on,
                             weir_data_iter *iter, weir_train_report *out,
                             weir_error *err) {
  if (loop->own_assign_count == 0) return run_all(loop, on, iter, out, err);
  size_t n = loop->entry_count;
  weir_tensor **held = weir_alloc_array(loop->alloc, n, sizeof *held);
  if (held == NULL) return weir_fail_memory(err, n * sizeof *held);
  weir_status s = WEIR_OK;
  for (size_t i = 0; s == WEIR_OK && i < n; i++)
    if (loop->first_states[i] != NULL)
      s = weir_exec_variable_snapshot(loop->session, loop->entry_nodes[i],
                                      &held[i], err);
  if (s == WEIR_OK) s = weir_loop_reset_states(loop, err);
  if (s == WEIR_OK) s = run_all(loop, on, iter, out, err);
  for (size_t i = 0; i < n; i++) {
    weir_error second = WEIR_ERROR_INIT;
    weir_status put = WEIR_OK;
    if (held[i] != NULL)
      put = weir_exec_variable_set(loop->session, loop->entry_nodes[i], held[i],
                                   &second);
    weir_tensor_unref(held[i]);
    if (s == WEIR_OK && put != WEIR_OK) {
      s = put;
      weir_error_copy(err, &second);
    }
  }
  weir_free(loop->alloc, held);
  return s;
}

weir_status weir_loop_eval_on_run(weir_loop *loop, weir_loop_eval_on *on,
                                  weir_train_report *out, weir_error *err) {
  int64_t start = weir_loop_clock(loop);
  weir_data_iter *iter = NULL;
  *out = (weir_train_report){
      .struct_size = sizeof *out, .data = on->name, .step = loop->step};
  weir_status s = weir_data_iter_create(on->data, &iter, err);
  if (s == WEIR_OK) s = run_apart(loop, on, iter, out, err);
  weir_data_iter_release(iter);
  out->ns = weir_loop_clock(loop) - start;
  loop->eval_ns += out->ns;
  if (s != WEIR_OK) return s;
  for (uint32_t i = 0; i < loop->metric_count; i++) {
    double x = loop->sums[i] / (double)out->examples;
    loop->eval_values[i].value = loop->metrics[i].perplexity ? exp(x) : x;
  }
  out->values = loop->eval_values;
  out->value_count = loop->metric_count;
  if (on == &loop->evals[0]) summarise(loop, out);
  if (loop->calls.eval != NULL) loop->calls.eval(loop->calls.self, out);
  return WEIR_OK;
}

weir_status weir_loop_eval(weir_loop *loop, const char *data,
                           weir_train_report *out_report, weir_error *err) {
  weir_loop_eval_on *on = &loop->evals[0];
  if (data != NULL) WEIR_TRY(weir_loop_find_eval(loop, data, &on, err));
  if (on->data == NULL)
    return weir_fail(err, WEIR_W5023, NULL,
                     "train: has no eval: {data: ...} to evaluate on");
  return weir_loop_eval_on_run(loop, on, out_report, err);
}
