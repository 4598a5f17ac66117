/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/measure/step_profile.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/exec/measure/measure.h"
#include "runtime/exec/measure/step_profile_rows.h"
#include "runtime/exec/program/program.h"

/* Sums of a step are kept by row, so that a row's time is a median over steps:
 * a step that something else interrupted does not count more than another.
 *
 * What tracing costs is taken out (weir_trace_price): each event holds one
 * reading of the clock; a body's event is within its loop's, which holds the
 * reading and the adding of it too.
 *
 * The time in which nothing was run is the step's less the union of the times
 * of all events that are in no body, whatever the number of threads.
 *
 * Memory: two numbers for each row and step, at most MOST_SAMPLES of each.
 * Cost of a step: O(events log events). */

enum { DEFAULT_STEPS = 101, LEAST_STEPS = 3, MOST_SAMPLES = 4000000 };

typedef struct span {
  int64_t start_ns, end_ns;
} span;

struct weir_step_profile {
  const weir_env *env;
  weir_step_profile_options options;
  weir_trace *trace;
  const weir_program *program; /* whose rows these are; NULL: none yet */
  weir_profile_rows rows;
  int64_t clock_ns, gap_ns;
  uint32_t most, steps, others, skipped;
  int64_t *ns, *calls; /* [step * rows + row] */
  int64_t *step_ns, *between_ns;
  WEIR_VEC(span) spans; /* of the step being taken */
};

/* ---- Making */

static weir_status make_trace(weir_step_profile *p, size_t events,
                              weir_error *err) {
  weir_exec_trace_release(p->trace);
  p->trace = NULL;
  WEIR_TRY(weir_exec_trace_create(p->env, events, &p->trace, err));
  weir_trace_bodies(p->trace);
  return WEIR_OK;
}

weir_status weir_step_profile_create(const weir_env *env,
                                     const weir_step_profile_options *options,
                                     weir_step_profile **out, weir_error *err) {
  *out = NULL;
  weir_step_profile *p = weir_alloc_array(env->alloc, 1, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  p->env = env;
  p->options = *options;
  if (p->options.steps == 0) p->options.steps = DEFAULT_STEPS;
  p->most = p->options.steps;
  weir_profile_rows_init(&p->rows, env->alloc);
  size_t events = options->max_events > 0 ? options->max_events : 100000;
  weir_status s = make_trace(p, events, err);
  if (s == WEIR_OK) {
    weir_trace_price(env, p->trace, &p->clock_ns, &p->gap_ns);
    *out = p;
  } else {
    weir_step_profile_release(p);
  }
  return s;
}

void weir_step_profile_release(weir_step_profile *p) {
  if (p == NULL) return;
  const weir_allocator *a = p->env->alloc;
  weir_exec_trace_release(p->trace);
  weir_profile_rows_release(&p->rows);
  weir_vec_free(a, &p->spans);
  weir_free(a, p->ns);
  weir_free(a, p->calls);
  weir_free(a, p->step_ns);
  weir_free(a, p->between_ns);
  weir_free(a, p);
}

weir_trace *weir_step_profile_trace(weir_step_profile *p) {
  if (p->steps >= p->most || p->trace == NULL) return NULL;
  weir_trace_clear(p->trace);
  return p->trace;
}

/* ---- A step */

/* Room for the sums of |program|, which the profile is of from now on. */
static weir_status begin(weir_step_profile *p, const weir_program *program,
                         weir_error *err) {
  const weir_allocator *a = p->env->alloc;
  WEIR_TRY(weir_profile_rows_make(&p->rows, program, err));
  size_t rows = p->rows.list.count + 1;
  if (p->most > MOST_SAMPLES / rows)
    p->most =
        (uint32_t)(MOST_SAMPLES / rows < LEAST_STEPS ? LEAST_STEPS
                                                     : MOST_SAMPLES / rows);
  if (p->most > p->options.steps) p->most = p->options.steps;
  p->ns = weir_alloc_array(a, rows * p->most, sizeof *p->ns);
  p->calls = weir_alloc_array(a, rows * p->most, sizeof *p->calls);
  p->step_ns = weir_alloc_array(a, p->most + 1u, sizeof *p->step_ns);
  p->between_ns = weir_alloc_array(a, p->most + 1u, sizeof *p->between_ns);
  if (p->ns == NULL || p->calls == NULL || p->step_ns == NULL ||
      p->between_ns == NULL)
    return weir_fail_memory(err, rows * p->most * sizeof *p->ns);
  p->program = program;
  return WEIR_OK;
}

static int by_start(const void *a, const void *b) {
  const span *x = a, *y = b;
  return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* How long at least one of the spans lasted; sorts them. */
static int64_t cover(span *spans, size_t count) {
  int64_t sum = 0, end = INT64_MIN;
  qsort(spans, count, sizeof *spans, by_start);
  for (size_t i = 0; i < count; i++) {
    int64_t from = spans[i].start_ns > end ? spans[i].start_ns : end;
    if (spans[i].end_ns > from) sum += spans[i].end_ns - from;
    if (spans[i].end_ns > end) end = spans[i].end_ns;
  }
  return sum;
}

/* The time from the first event to the end of the last one. */
static int64_t length_of(const weir_trace *trace, size_t count) {
  int64_t start = INT64_MAX, end = INT64_MIN;
  for (size_t i = 0; i < count; i++) {
    weir_trace_event e = weir_trace_event_at(trace, i);
    if (e.start_ns < start) start = e.start_ns;
    if (e.end_ns > end) end = e.end_ns;
  }
  return count > 0 ? end - start : 0;
}

/* Adds an event to its row, and its price to the rows that it is in. */
static bool add_event(weir_step_profile *p, const weir_trace_event *e,
                      int64_t *ns, int64_t *calls) {
  weir_profile_row *rows = p->rows.list.items;
  uint32_t row = weir_profile_rows_find(&p->rows, e->instr);
  assert(row != WEIR_NO_INDEX);
  rows[row].by_device |= e->by_device;
  ns[row] += e->end_ns - e->start_ns - (e->by_device ? 0 : p->clock_ns);
  calls[row]++;
  uint32_t up = rows[row].parent;
  if (up == WEIR_NO_INDEX)
    return weir_vec_push(p->env->alloc, &p->spans,
                         (span){e->start_ns, e->end_ns});
  for (; up != WEIR_NO_INDEX; up = rows[up].parent)
    ns[up] -= p->clock_ns + p->gap_ns;
  return true;
}

static int64_t at_least_0(int64_t x) {
  return x > 0 ? x : 0;
}

static weir_status add_up(weir_step_profile *p, size_t count, int64_t took_ns,
                          weir_error *err) {
  size_t rows = p->rows.list.count;
  int64_t *ns = p->ns + p->steps * rows, *calls = p->calls + p->steps * rows;
  p->spans.count = 0;
  for (size_t i = 0; i < count; i++) {
    weir_trace_event e = weir_trace_event_at(p->trace, i);
    if (!add_event(p, &e, ns, calls)) {
      memset(ns, 0, rows * sizeof *ns);
      memset(calls, 0, rows * sizeof *calls);
      return weir_fail_memory(err, count * sizeof(span));
    }
  }
  if (took_ns < 0) took_ns = length_of(p->trace, count);
  for (size_t r = 0; r < rows; r++) ns[r] = at_least_0(ns[r]);
  int64_t price = (int64_t)count * (p->clock_ns + p->gap_ns);
  int64_t outer = (int64_t)p->spans.count * p->gap_ns;
  p->between_ns[p->steps] =
      at_least_0(took_ns - cover(p->spans.items, p->spans.count) - outer);
  p->step_ns[p->steps++] = at_least_0(took_ns - price);
  return WEIR_OK;
}

weir_status weir_step_profile_take(weir_step_profile *p, int64_t took_ns,
                                   weir_error *err) {
  size_t count = weir_trace_count(p->trace);
  size_t dropped = weir_trace_dropped(p->trace);
  assert(p->steps < p->most);
  if (dropped > 0) { /* later steps may be a little longer */
    p->others++;
    return make_trace(p, count + dropped + (count + dropped) / 4, err);
  }
  if (p->skipped < p->options.skip) {
    p->skipped++;
    return WEIR_OK;
  }
  if (count == 0) return WEIR_OK;
  weir_trace_event first = weir_trace_event_at(p->trace, 0);
  if (p->program == NULL) WEIR_TRY(begin(p, first.program, err));
  if (first.program != p->program) {
    p->others++;
    return WEIR_OK;
  }
  return add_up(p, count, took_ns, err);
}

/* ---- All steps */

/* The sample of |count| numbers, |step| apart; |room| has place for them. */
static weir_cost_sample sample_of(const int64_t *numbers, size_t step,
                                  uint32_t count, int64_t *room) {
  for (uint32_t i = 0; i < count; i++) room[i] = numbers[i * step];
  return weir_sample_of(room, count);
}

static void sum_rows(weir_step_profile *p, int64_t *room,
                     weir_profile_sum *out) {
  size_t count = p->rows.list.count;
  weir_profile_row *rows = p->rows.list.items;
  for (size_t r = 0; r < count; r++) {
    rows[r].time = sample_of(p->ns + r, count, p->steps, room);
    rows[r].calls = sample_of(p->calls + r, count, p->steps, room).median_ns;
    rows[r].own_ns = rows[r].time.median_ns;
  }
  for (size_t r = 0; r < count; r++)
    if (rows[r].parent != WEIR_NO_INDEX) {
      rows[rows[r].parent].own_ns -= rows[r].time.median_ns;
      rows[rows[r].parent].is_split |= rows[r].calls > 0;
    }
  for (size_t r = 0; r < count; r++) {
    rows[r].own_ns = at_least_0(rows[r].own_ns);
    out->all_ns += rows[r].own_ns;
  }
}

weir_status weir_step_profile_sum(weir_step_profile *p, weir_profile_sum *out,
                                  weir_error *err) {
  *out = (weir_profile_sum){.rows = p->rows.list.items,
                            .row_count = (uint32_t)p->rows.list.count,
                            .steps = p->steps,
                            .others = p->others};
  if (p->steps == 0) return WEIR_OK;
  int64_t *room = weir_alloc_array(p->env->alloc, p->steps + 1u, sizeof *room);
  if (room == NULL) return weir_fail_memory(err, p->steps * sizeof *room);
  sum_rows(p, room, out);
  out->step = sample_of(p->step_ns, 1, p->steps, room);
  out->between = sample_of(p->between_ns, 1, p->steps, room);
  weir_free(p->env->alloc, room);
  return WEIR_OK;
}
