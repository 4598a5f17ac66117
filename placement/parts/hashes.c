/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/parts/hashes.h"

#include "placement/parts/tasks.h"

/* Three numbers for what processes must have in common. Each covers what the
 * one before it does not fix: equal graphs may have different plans, equal
 * plans different clusters. */

static uint64_t mix(uint64_t h, int64_t x) {
  return weir_hash_bytes(&x, sizeof x, h);
}

static uint64_t hash_plan(const weir_plan *plan) {
  const weir_place_plan *p = plan->result.plan;
  uint32_t units = plan->placement->unit_count;
  uint64_t h = mix(units, (int64_t)p->copy_count);
  for (uint32_t u = 0; u < units; u++)
    h = mix(mix(mix(h, p->device[u]), p->start_ns[u]), p->end_ns[u]);
  for (uint32_t c = 0; c < p->copy_count; c++) {
    const weir_place_copy *copy = &p->copies[c];
    h = mix(mix(mix(h, copy->tensor), copy->to), copy->start_ns);
  }
  return h;
}

weir_status weir_plan_hashes_get(const weir_plan *plan, weir_plan_hashes *out,
                                 weir_error *err) {
  const weir_partition *partition = NULL;
  weir_task_cut *cut = NULL;
  *out = (weir_plan_hashes){0};
  WEIR_TRY(weir_plan_partition(plan, &partition, err));
  if (partition == NULL) return WEIR_OK; /* an instance's */
  WEIR_TRY(
      weir_task_cut_create(plan->alloc, plan->placement, partition, &cut, err));
  *out = (weir_plan_hashes){weir_plan_hash(plan), hash_plan(plan),
                            weir_task_cut_hash(cut)};
  weir_task_cut_release(cut);
  return WEIR_OK;
}

const char *weir_plan_hashes_differ(const weir_plan_hashes *a,
                                    const weir_plan_hashes *b) {
  if (a->graph != b->graph) return "the graph after passes (nodes or shapes)";
  if (a->plan != b->plan)
    return "the plan (devices, order, copies, or kernels of --tune)";
  if (a->partition != b->partition)
    return "the partition (devices, threads, edges or collectives)";
  return NULL;
}
