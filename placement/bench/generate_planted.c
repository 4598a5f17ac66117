/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/bench/generate_planted.h"

#include <stdlib.h>

#include "placement/bench/generate_internal.h"
#include "placement/problem.h"

/* The plan that is hidden: every processor is busy from 0 to the end, so no
 * plan is shorter than the work divided by the processors; an edge goes to a
 * task that begins after its tensor could have been copied. Like RGPOS (Kwok
 * and Ahmad, JPDC 59 (1999) 381-422), with copies. */

typedef struct planted {
  int64_t start, end;
  uint32_t processor;
} planted;

enum { MEAN_NS = 1000, BACK = 64, INPUTS = 4 };

static int by_start(const void *x, const void *y) {
  const planted *a = x, *b = y;
  if (a->start != b->start) return a->start < b->start ? -1 : 1;
  return a->processor < b->processor ? -1 : a->processor > b->processor;
}

/* Cuts the timelines: equal counts, equal lengths. */
static void cut(weir_generator *g, planted *tasks, uint64_t count,
                uint32_t processors) {
  uint64_t next = 0;
  int64_t length = (int64_t)(count / processors) * MEAN_NS;
  for (uint32_t p = 0; p < processors; p++) {
    uint64_t mine = count / processors + (p < count % processors);
    int64_t at = 0;
    for (uint64_t i = 0; i < mine; i++) {
      int64_t left = length - at, rest = (int64_t)(mine - i);
      int64_t mean = left / rest;
      int64_t ns = mean < 2 ? 1
                            : 1 + mean / 4 +
                                  (int64_t)weir_generator_below(
                                      g, (uint64_t)(3 * mean / 2));
      if (rest == 1 || ns > left - (rest - 1)) ns = left - (rest - 1);
      tasks[next++] = (planted){at, at + ns, p};
      at += ns;
    }
  }
  qsort(tasks, count, sizeof *tasks, by_start);
  g->optimum_ns = length;
}

/* Inputs among the tasks that began shortly before. */
static uint32_t draw_inputs(weir_generator *g, const planted *tasks, uint64_t n,
                            uint32_t processors, const int64_t *bytes,
                            uint32_t *inputs) {
  uint32_t count = 0;
  uint64_t reach = (uint64_t)BACK + 4 * processors;
  if (reach > n) reach = n;
  for (int x = 0; x < INPUTS; x++) {
    if (reach == 0) break;
    uint64_t from = n - 1 - weir_generator_below(g, reach);
    int64_t slack = tasks[n].start - tasks[from].end;
    int64_t copy = weir_place_bytes_ns(bytes[from], g->options->fs_per_byte);
    bool fits = slack >= 0 &&
                (tasks[from].processor == tasks[n].processor || copy <= slack);
    for (uint32_t y = 0; y < count; y++) fits &= inputs[y] != from;
    if (fits) inputs[count++] = (uint32_t)from;
  }
  return count;
}

bool weir_generate_planted(weir_generator *g) {
  uint64_t count = g->options->nodes;
  uint32_t processors = g->options->processors, inputs[INPUTS];
  if (processors == 0) processors = 4;
  if (count < processors) count = processors;
  planted *tasks = weir_alloc_array(g->alloc, count, sizeof *tasks);
  int64_t *bytes = weir_alloc_array(g->alloc, count, sizeof *bytes);
  bool done = tasks != NULL && bytes != NULL;
  if (done) cut(g, tasks, count, processors);
  for (uint64_t n = 0; n < count && done; n++) {
    bytes[n] = 64 + (int64_t)weir_generator_below(g, 4096);
    uint32_t used = draw_inputs(g, tasks, n, processors, bytes, inputs);
    done = weir_generator_emit(
        g, &(weir_generator_task){.name = "task",
                                  .index = {(int64_t)n, tasks[n].processor},
                                  .cost_ns = tasks[n].end - tasks[n].start,
                                  .out_bytes = bytes[n],
                                  .inputs = inputs,
                                  .count = used});
  }
  weir_free(g->alloc, tasks);
  weir_free(g->alloc, bytes);
  return done;
}
