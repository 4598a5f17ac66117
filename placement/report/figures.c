/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/report/figures.h"

#include <string.h>

#include "placement/bounds/bounds_split.h"
#include "placement/solve/objective.h"

void weir_place_figures_release(weir_place_figures *f) {
  if (f == NULL) return;
  weir_free(f->alloc, f->stages);
  weir_free(f->alloc, f);
}

/* Devices with nodes, by their first start, then by number. */
static void find_stages(weir_place_figures *f, const weir_place_problem *p,
                        const weir_place_plan *plan, const int64_t *load,
                        int64_t *first) {
  for (uint32_t d = 0; d < p->device_count; d++) first[d] = INT64_MAX;
  for (uint32_t n = 0; n < p->node_count; n++)
    if (plan->start_ns[n] < first[plan->device[n]])
      first[plan->device[n]] = plan->start_ns[n];
  for (uint32_t d = 0; d < p->device_count; d++) {
    if (first[d] == INT64_MAX) continue;
    uint32_t at = f->stage_count++;
    for (; at > 0 && first[f->stages[at - 1].device] > first[d]; at--)
      f->stages[at] = f->stages[at - 1];
    f->stages[at] = (weir_place_stage){.device = d, .load_ns = load[d]};
  }
}

static void fill_pipeline(weir_place_figures *f, const weir_place_problem *p,
                          const weir_place_plan *plan, const int64_t *peaks,
                          int64_t *resident, uint32_t *stamp) {
  double sum = 0, most = (double)f->period_ns, all;
  weir_place_resident(p, plan->device, resident, stamp);
  for (uint32_t s = 0; s < f->stage_count; s++) {
    weir_place_stage *g = &f->stages[s];
    uint32_t left = f->stage_count - s;
    g->batches = f->batches < left ? f->batches : left;
    g->memory_bytes = resident[g->device];
    for (uint32_t k = 0; k < g->batches; k++)
      if (__builtin_add_overflow(g->memory_bytes,
                                 peaks[g->device] - resident[g->device],
                                 &g->memory_bytes))
        g->memory_bytes = INT64_MAX;
    sum += (double)g->load_ns;
  }
  all = sum + (f->batches - 1.0) * most;
  f->batches_ns = all < 9e18 ? (int64_t)all : INT64_MAX;
  f->bubble = all > 0 ? 1.0 - f->batches * most / all : 0;
  if (f->bubble < 0) f->bubble = 0;
}

/* The largest item on its cheapest device. */
static int64_t bound_items(const weir_items *items) {
  int64_t most = 0;
  for (uint32_t i = 0; i < items->count; i++) {
    int64_t least = WEIR_PLACE_NO_KERNEL;
    for (uint32_t d = 0; d < items->p->device_count; d++) {
      int64_t cost = weir_items_cost(items, i, d);
      if (cost < least) least = cost;
    }
    if (least > most && least != WEIR_PLACE_NO_KERNEL) most = least;
  }
  return most;
}

/* No period is shorter: the largest of the bounds. */
static weir_status bound_period(weir_place_figures *f,
                                const weir_place_problem *p, int64_t area_ns,
                                weir_error *err) {
  weir_items *items = NULL;
  int64_t copies;
  WEIR_TRY(weir_items_create(f->alloc, p, &items, err));
  weir_status s = weir_bound_period(items, f->period_ns, &copies, err);
  f->period_bound_ns = bound_items(items);
  f->period_bound = "largest item";
  if (area_ns > f->period_bound_ns)
    f->period_bound_ns = area_ns, f->period_bound = "area";
  if (copies > f->period_bound_ns)
    f->period_bound_ns = copies, f->period_bound = "copies";
  weir_items_release(items);
  return s;
}

/* One number of each device. */
typedef struct scratch {
  int64_t *load, *numbers;
  uint32_t *stamp;
} scratch;

static weir_status measure(weir_place_figures *f, const weir_place_view *view,
                           const scratch *s, weir_error *err) {
  const weir_place_problem *p = view->problem;
  const weir_place_plan *plan = view->plan;
  const weir_place_bounds *bounds = view->bounds;
  f->latency_ns = plan->makespan_ns;
  f->latency_bound_ns = bounds->best_ns;
  f->period_ns =
      weir_load_measure(p, plan->device, s->load, s->stamp, &f->moved_bytes);
  for (uint32_t d = 0; d < p->device_count; d++)
    if (view->peaks[d] > f->peak_bytes) f->peak_bytes = view->peaks[d];
  find_stages(f, p, plan, s->load, s->numbers);
  fill_pipeline(f, p, plan, view->peaks, s->numbers, s->stamp);
  return bound_period(f, p, bounds->area_ns, err);
}

weir_status weir_place_measure(const weir_place_view *view, uint32_t batches,
                               const weir_place_objective *objective,
                               weir_place_figures **out_figures,
                               weir_error *err) {
  const weir_allocator *alloc = view->alloc;
  size_t devices = view->problem->device_count;
  *out_figures = NULL;
  weir_place_figures *f = weir_alloc_array(alloc, 1, sizeof *f);
  if (f == NULL) return weir_fail_memory(err, sizeof *f);
  f->alloc = alloc;
  f->objective = objective;
  f->batches = batches;
  f->stages = weir_alloc_array(alloc, devices, sizeof *f->stages);
  scratch x = {.load = weir_alloc_array(alloc, devices, sizeof *x.load),
               .numbers = weir_alloc_array(alloc, devices, sizeof *x.numbers),
               .stamp = weir_alloc_array(alloc, devices, sizeof *x.stamp)};
  weir_status s = f->stages == NULL || x.load == NULL || x.numbers == NULL ||
                          x.stamp == NULL
                      ? weir_fail_memory(err, devices * sizeof *x.load)
                      : measure(f, view, &x, err);
  weir_free(alloc, x.load);
  weir_free(alloc, x.numbers);
  weir_free(alloc, x.stamp);
  if (s == WEIR_OK)
    *out_figures = f;
  else
    weir_place_figures_release(f);
  return s;
}
