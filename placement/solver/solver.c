/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of one solver of a search, and its candidates. */
#include "placement/solver/solver.h"

#include <assert.h>
#include <string.h>

#include "placement/schedule/rank.h"
#include "placement/solver/pack.h"

weir_status weir_solver_begin(weir_solver *s) {
  const weir_allocator *a = s->alloc;
  size_t n = (size_t)s->p->node_count + 1;
  s->key = weir_alloc_array(a, n, sizeof *s->key);
  s->kept_key = weir_alloc_array(a, n, sizeof *s->kept_key);
  s->device = weir_alloc_array(a, n, sizeof *s->device);
  s->kept_device = weir_alloc_array(a, n, sizeof *s->kept_device);
  s->tail = weir_alloc_array(a, n, sizeof *s->tail);
  s->order = weir_alloc_array(a, n, sizeof *s->order);
  s->heap = weir_alloc_array(a, n, sizeof *s->heap);
  s->waiting = weir_alloc_array(a, n, sizeof *s->waiting);
  if (s->key == NULL || s->kept_key == NULL || s->device == NULL ||
      s->kept_device == NULL || s->tail == NULL || s->order == NULL ||
      s->heap == NULL || s->waiting == NULL)
    return weir_fail_memory(s->err, n * sizeof *s->key);
  WEIR_TRY(weir_scheduler_create(a, s->p, &s->scheduler, s->err));
  WEIR_TRY(weir_place_plan_create(a, s->p, &s->plan, s->err));
  WEIR_TRY(weir_place_plan_create(a, s->p, &s->best, s->err));
  s->best->makespan_ns = INT64_MAX; /* none yet */
  weir_place_tails(s->p, NULL, s->tail);
  return weir_solver_prepare_packing(s);
}

void weir_solver_end(weir_solver *s) {
  const weir_allocator *a = s->alloc;
  weir_free(a, s->key);
  weir_free(a, s->kept_key);
  weir_free(a, s->device);
  weir_free(a, s->kept_device);
  weir_free(a, s->tail);
  weir_free(a, s->order);
  weir_free(a, s->heap);
  weir_free(a, s->waiting);
  for (int i = 0; i < WEIR_SEARCH_WALKS; i++) {
    weir_free(a, s->walks[i].key);
    weir_free(a, s->walks[i].device);
  }
  weir_scheduler_release(s->scheduler);
  weir_scheduler_release(s->back_scheduler);
  weir_place_plan_release(s->plan);
  weir_place_plan_release(s->back_plan);
  weir_place_plan_release(s->best);
  weir_place_problem_release(s->reversed);
  weir_regions_release(s->regions);
  weir_items_release(s->items);
}

weir_status weir_solver_schedule(weir_solver *s, int64_t stop_ns,
                                 bool *complete) {
  weir_place_order(s->p, s->key, s->heap, s->waiting, s->order);
  weir_schedule_input input = {.order = s->order,
                               .device = s->device,
                               .stop_ns = stop_ns,
                               .tail_ns = s->tail,
                               .spill = s->spill};
  return weir_schedule_run(s->scheduler, &input, s->plan, complete, s->err);
}

void weir_solver_keep(weir_solver *s, const char *placer) {
  uint32_t count = s->p->node_count;
  assert(s->plan != s->best && s->plan->makespan_ns >= 0);
  if (s->best->makespan_ns <= s->plan->makespan_ns) return;
  weir_place_plan *worse = s->best;
  s->best = s->plan;
  s->plan = worse;
  s->best->placer = placer;
  weir_place_progress *progress = s->options->progress;
  if (progress != NULL && s->best->makespan_ns < progress->best_ns)
    progress->best_ns = s->best->makespan_ns;
  s->descended = false;
  if (s->walk_count > 0) return; /* a walk has its own */
  memcpy(s->kept_key, s->key, count * sizeof *s->key);
  memcpy(s->kept_device, s->device, count * sizeof *s->device);
}

void weir_solver_keep_starts(weir_solver *s) {
  for (uint32_t n = 0; n < s->p->node_count; n++) {
    s->kept_key[n] = -s->best->start_ns[n];
    s->kept_device[n] = s->best->device[n];
  }
}

void weir_solver_free_devices(weir_solver *s) {
  for (uint32_t n = 0; n < s->p->node_count; n++)
    s->device[n] = WEIR_PLACE_NONE;
}
