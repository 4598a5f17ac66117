/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/ps/watch/chief_watch.h"

#include <math.h>

#include "runtime/exec/session/session_snapshot.h"
#include "runtime/train/batch/data_runs.h"
#include "runtime/train/loop/loop_eval.h"
#include "runtime/train/ps/chief_internal.h"

/* Scalars are of the step's last run and update, as they were told. For
 * histograms of nodes the chief runs the worker graph itself: on the values of
 * the version that it looks at, with the batch and the random numbers of the
 * run before it. In one process they are of the version before, for there the
 * run that is shown is the one that made the step. Nothing of it depends on who
 * computed which run, so it is the same whatever dies. */

struct weir_chief_watch {
  weir_exec_session *session; /* of the worker graph */
  weir_data_runs *runs;
  weir_stepper *stepper;
  weir_exec_feed *given; /* variables: the buffers of what was fetched */
  weir_value_id *fetches;
  uint32_t given_count, fetch_count;
};

/* ---- Making one */

/* The values that the run is for, and the variables that it reads. */
static weir_status list_values(weir_chief *c, weir_chief_watch *w, bool *reads,
                               weir_error *err) {
  const weir_ps_job *job = c->job;
  for (uint32_t i = 0; i < job->shown_count; i++)
    if (job->shown[i] != WEIR_NO_VALUE)
      w->fetches[w->fetch_count++] = job->shown[i];
  WEIR_TRY(
      weir_split_reads(job->split, w->fetches, w->fetch_count, reads, err));
  for (uint32_t s = 0; s < job->config.servers; s++) {
    const weir_ps_lists *l = &job->servers[s];
    for (uint32_t i = 0; i < l->held_count; i++)
      if (reads[l->held[i]])
        w->given[w->given_count++] = (weir_exec_feed){
            job->split->vars[l->held[i]].worker, c->fetches[s].tensors[i]};
  }
  return WEIR_OK;
}

static weir_status make_lists(weir_chief *c, weir_chief_watch *w,
                              weir_error *err) {
  weir_arena *arena = &c->loop->arena;
  uint32_t vars = c->job->split->var_count;
  w->given = weir_arena_array(arena, vars + 1u, sizeof *w->given);
  w->fetches =
      weir_arena_array(arena, c->job->shown_count + 1u, sizeof *w->fetches);
  bool *reads = weir_arena_array(arena, vars + 1u, sizeof *reads);
  if (w->given == NULL || w->fetches == NULL || reads == NULL)
    return weir_fail_memory(err, vars * sizeof *w->given);
  return list_values(c, w, reads, err);
}

static weir_status make_run(weir_chief *c, weir_chief_watch *w,
                            weir_error *err) {
  weir_loop *loop = c->loop;
  weir_session_options session = {.seed = loop->options.seed};
  WEIR_TRY(weir_exec_session_create(loop->env, loop->pool,
                                    c->job->split->worker, &session,
                                    &w->session, err));
  WEIR_TRY(weir_data_runs_create(loop->data, &w->runs, err));
  weir_stepper_options options = {.session = w->session,
                                  .graph = c->job->split->worker,
                                  .data = loop->data,
                                  .section = loop->spec->data,
                                  .fetches = w->fetches,
                                  .fetch_count = w->fetch_count,
                                  .given = w->given,
                                  .given_count = w->given_count};
  return weir_stepper_create(loop->env, &options, &w->stepper, err);
}

weir_status weir_chief_watch_create(weir_chief *c, weir_error *err) {
  weir_chief_watch *w = weir_alloc_array(c->loop->alloc, 1, sizeof *w);
  c->watch = w;
  if (w == NULL) return weir_fail_memory(err, sizeof *w);
  WEIR_TRY(make_lists(c, w, err));
  return w->fetch_count > 0 ? make_run(c, w, err) : WEIR_OK;
}

void weir_chief_watch_release(weir_chief *c) {
  weir_chief_watch *w = c->watch;
  if (w == NULL) return;
  weir_stepper_release(w->stepper);
  weir_data_runs_release(w->runs);
  weir_exec_session_release(w->session);
  weir_free(c->loop->alloc, w);
  c->watch = NULL;
}

/* ---- A step */

/* The node of watched value |i| of the loop, which is a variable. */
static weir_status take_variable(const weir_loop *loop, uint32_t i,
                                 weir_tensor **out, weir_error *err) {
  weir_node_id node = loop->run_graph->values[loop->watch.fetches[i]].node;
  return weir_exec_variable_snapshot(loop->session, node, out, err);
}

double weir_chief_scalar(const weir_loop *loop, uint32_t i) {
  const weir_chief *c = loop->chief;
  const weir_ps_scalar *s = &c->job->scalars[i];
  if (s->of == WEIR_PS_SCALAR_RUN) return c->reported[s->place];
  if (s->of == WEIR_PS_SCALAR_UPDATE)
    return c->fetches[s->server].watched[s->place];
  weir_tensor *t = NULL;
  if (take_variable(loop, loop->watch.scalar_at + i, &t, NULL) != WEIR_OK)
    return NAN;
  double mean = weir_loop_mean(t);
  weir_tensor_unref(t);
  return mean;
}

weir_status weir_chief_look(weir_loop *loop, weir_error *err) {
  weir_chief_watch *w = loop->chief->watch;
  weir_batch batch;
  if (w->stepper == NULL || loop->runs == 0) return WEIR_OK;
  weir_run_options run = {.step = loop->runs - 1};
  WEIR_TRY(weir_data_runs_read(w->runs, run.step, NULL, 0, &batch, err));
  return weir_stepper_run(w->stepper, &batch, &run, err);
}

weir_status weir_chief_histogram(const weir_loop *loop, uint32_t i,
                                 weir_tensor **out, weir_error *err) {
  const weir_chief *c = loop->chief;
  uint32_t at = 0;
  if (c->job->shown[i] == WEIR_NO_VALUE)
    return take_variable(loop, loop->watch.histogram_at + i, out, err);
  for (uint32_t k = 0; k < i; k++) at += c->job->shown[k] != WEIR_NO_VALUE;
  *out = weir_tensor_ref(
      (weir_tensor *)weir_stepper_output(c->watch->stepper, at));
  return WEIR_OK;
}
