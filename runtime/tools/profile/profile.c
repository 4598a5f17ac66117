/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tools/profile/profile.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/api/weir_internal.h"
#include "runtime/exec/measure/measure.h"
#include "runtime/train/loop/loop.h"

/* Profiles of steps: how they are taken, and what is said of a row. */

enum { MOST_PLAIN = 101 };

weir_status weir_tools_profile_create(weir_runtime *runtime,
                                      const weir_tools_profile_opts *opts,
                                      weir_tools_profile **out,
                                      weir_error *err) {
  const weir_env *env = &runtime->env;
  weir_step_profile_options options = {
      .steps = opts->steps, .skip = opts->skip, .max_events = opts->max_events};
  *out = NULL;
  weir_tools_profile *p = weir_alloc_array(env->alloc, 1, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  p->runtime = weir_runtime_ref(runtime);
  p->plain_ns = weir_alloc_array(env->alloc, MOST_PLAIN, sizeof *p->plain_ns);
  weir_status s = p->plain_ns == NULL
                      ? weir_fail_memory(err, sizeof *p->plain_ns)
                      : weir_step_profile_create(env, &options, &p->steps, err);
  if (s == WEIR_OK)
    *out = p;
  else
    weir_tools_profile_release(p);
  return s;
}

void weir_tools_profile_release(weir_tools_profile *p) {
  if (p == NULL) return;
  weir_runtime *runtime = p->runtime;
  weir_step_profile_release(p->steps);
  weir_free(runtime->env.alloc, p->plain_ns);
  weir_free(runtime->env.alloc, p->order);
  weir_free(runtime->env.alloc, p);
  weir_runtime_release(runtime);
}

/* ---- Taking */

weir_trace *weir_tools_profile_trace(weir_tools_profile *p) {
  return weir_step_profile_trace(p->steps);
}

weir_status weir_tools_profile_take(weir_tools_profile *p, int64_t took_ns,
                                    weir_error *err) {
  return weir_step_profile_take(p->steps, took_ns, err);
}

static int64_t now(const weir_tools_profile *p) {
  const weir_clock *clock = p->runtime->env.clock;
  return clock->now_ns(clock->self);
}

/* A run without a trace and one with it: both see the same machine. */
static weir_status run_pair(weir_tools_profile *p, weir_bound *bound,
                            weir_trace *trace, weir_error *err) {
  weir_run_opts opts = {.struct_size = sizeof opts, .trace = trace};
  int64_t begin = now(p);
  WEIR_TRY(weir_bound_run(bound, NULL, err));
  int64_t middle = now(p);
  WEIR_TRY(weir_bound_run(bound, &opts, err));
  int64_t took = now(p) - middle;
  if (p->plain_count < MOST_PLAIN)
    p->plain_ns[p->plain_count++] = middle - begin;
  return weir_step_profile_take(p->steps, took, err);
}

weir_status weir_tools_profile_bound(weir_tools_profile *p, weir_bound *bound,
                                     int64_t time_ns, weir_error *err) {
  enum { LEAST = 3 };
  int64_t end = now(p) + time_ns;
  weir_trace *trace;
  for (int i = 0; (trace = weir_step_profile_trace(p->steps)) != NULL; i++) {
    if (i >= LEAST && now(p) >= end) break;
    WEIR_TRY(run_pair(p, bound, trace, err));
  }
  return WEIR_OK;
}

static weir_trace *begin_run(void *self) {
  return weir_step_profile_trace(((weir_tools_profile *)self)->steps);
}

static weir_status end_run(void *self, int64_t took_ns, weir_error *err) {
  return weir_step_profile_take(((weir_tools_profile *)self)->steps, took_ns,
                                err);
}

weir_status weir_tools_profile_trainer(weir_tools_profile *p,
                                       weir_trainer *trainer, weir_error *err) {
  weir_loop_profiler profiler = {p, begin_run, end_run};
  return weir_loop_profile(weir_trainer_loop(trainer), &profiler, err);
}

/* ---- Adding up */

/* Rows' numbers with their times, to sort by. */
typedef struct timed {
  int64_t ns;
  uint32_t row;
} timed;

static int by_time(const void *a, const void *b) {
  const timed *x = a, *y = b;
  if (x->ns != y->ns) return x->ns < y->ns ? 1 : -1;
  return (x->row > y->row) - (x->row < y->row);
}

static weir_status sort_rows(weir_tools_profile *p, weir_error *err) {
  const weir_allocator *a = p->runtime->env.alloc;
  size_t count = p->sum.row_count;
  timed *list = weir_alloc_array(a, count + 1, sizeof *list);
  p->order = weir_alloc_array(a, count + 1, sizeof *p->order);
  weir_status s = list == NULL || p->order == NULL
                      ? weir_fail_memory(err, count * sizeof *list)
                      : WEIR_OK;
  for (uint32_t r = 0; s == WEIR_OK && r < count; r++)
    if (p->sum.rows[r].calls > 0)
      list[p->order_count++] = (timed){p->sum.rows[r].own_ns, r};
  if (s == WEIR_OK) qsort(list, p->order_count, sizeof *list, by_time);
  for (uint32_t i = 0; i < p->order_count; i++) p->order[i] = list[i].row;
  weir_free(a, list);
  return s;
}

weir_status weir_tools_profile_finish(weir_tools_profile *p, weir_error *err) {
  const weir_env *env = &p->runtime->env;
  assert(!p->finished);
  WEIR_TRY(weir_step_profile_sum(p->steps, &p->sum, err));
  WEIR_TRY(sort_rows(p, err));
  p->plain = weir_sample_of(p->plain_ns, p->plain_count);
  for (uint32_t r = 0; r < p->sum.row_count; r++) {
    if (p->sum.rows[r].threads > p->threads)
      p->threads = p->sum.rows[r].threads;
    p->devices |= p->sum.rows[r].by_device;
  }
  WEIR_TRY(weir_peak_measure(env, env->profile, &p->peak, err));
  p->finished = true;
  return WEIR_OK;
}

size_t weir_tools_profile_steps(const weir_tools_profile *p) {
  return p->sum.steps;
}

/* ---- What is said of a row */

static bool is_control(const weir_profile_row *row) {
  return strcmp(row->category, "loop") == 0 ||
         strcmp(row->category, "branch") == 0;
}

/* Instructions of other kinds than a kernel's, in words. */
static const char *words_of(const weir_profile_row *row) {
  static const struct {
    const char *category, *words;
  } list[] = {{"copy", "a copy, by the executor"},
              {"send", "a transfer to another part"},
              {"recv", "a transfer from another part, with the wait for it"},
              {"collective", "parts meet, with the wait for the last"},
              {"feed", "a copy of what is fed"},
              {"fetch", "a copy of what is fetched"}};
  if (is_control(row))
    return row->is_split ? "its bodies' nodes have rows of their own"
                         : "its bodies' nodes are not timed one by one";
  for (size_t i = 0; i < sizeof list / sizeof *list; i++)
    if (strcmp(list[i].category, row->category) == 0) return list[i].words;
  return "by the executor";
}

int64_t weir_profile_step_ns(const weir_tools_profile *p) {
  return p->plain.count > 0 ? p->plain.median_ns : p->sum.step.median_ns;
}

weir_profile_said weir_profile_say(const weir_tools_profile *p,
                                   const weir_profile_row *row) {
  double step = (double)p->sum.step.median_ns, ns = (double)row->own_ns;
  double flops = (double)row->flops * (double)row->calls;
  double bytes = (double)row->bytes * (double)row->calls;
  weir_profile_said said = {.share = step > 0 ? ns / step : 0, .peak = -1};
  bool kernel = strcmp(row->category, "kernel") == 0;
  said.kernel =
      row->kernel.size > 0 ? row->kernel : weir_sv_from(row->category);
  said.reason = kernel ? row->reason : weir_sv_from(words_of(row));
  said.is_work = kernel || (is_control(row) && !row->is_split);
  if (!said.is_work || ns <= 0) return said;
  said.gflops = flops / ns;
  said.gb_per_s = bytes / ns;
  if (row->on_host)
    said.peak = weir_peak_least_ns(&p->peak, row->threads, row->dtype,
                                   row->flops, row->bytes) *
                (double)row->calls / ns;
  return said;
}
