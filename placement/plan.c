/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and words of plans. A plan's arrays are as long as its problem; only
 * its copies grow, and keep their memory when a plan is copied over another: a
 * search copies its best plan often. */
#include "placement/plan.h"

#include "runtime/base/size.h"
#include "runtime/base/table.h"

#include <string.h>

weir_status weir_place_plan_create(const weir_allocator *alloc,
                                   const weir_place_problem *problem,
                                   weir_place_plan **out_plan,
                                   weir_error *err) {
  *out_plan = NULL;
  size_t n = problem->node_count;
  weir_place_plan *p = weir_alloc_array(alloc, 1, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  p->alloc = alloc;
  p->node_count = problem->node_count;
  p->device = weir_alloc_array(alloc, n + 1, sizeof *p->device);
  p->start_ns = weir_alloc_array(alloc, n + 1, sizeof *p->start_ns);
  p->end_ns = weir_alloc_array(alloc, n + 1, sizeof *p->end_ns);
  p->reason = weir_alloc_array(alloc, n + 1, sizeof *p->reason);
  if (p->device == NULL || p->start_ns == NULL || p->end_ns == NULL ||
      p->reason == NULL) {
    weir_place_plan_release(p);
    return weir_fail_memory(err, n * sizeof *p->start_ns);
  }
  p->placer = "";
  *out_plan = p;
  return WEIR_OK;
}

void weir_place_plan_release(weir_place_plan *p) {
  if (p == NULL) return;
  weir_free(p->alloc, p->device);
  weir_free(p->alloc, p->start_ns);
  weir_free(p->alloc, p->end_ns);
  weir_free(p->alloc, p->reason);
  weir_free(p->alloc, p->copies);
  weir_free(p->alloc, p);
}

weir_status weir_place_plan_copy(weir_place_plan *dst,
                                 const weir_place_plan *src, weir_error *err) {
  size_t n = src->node_count;
  if (dst->copy_capacity < src->copy_count &&
      !weir_vec_grow(dst->alloc, (void **)&dst->copies, &dst->copy_capacity, 0,
                     src->copy_count, sizeof *dst->copies))
    return weir_fail_memory(err, src->copy_count * sizeof *dst->copies);
  memcpy(dst->device, src->device, n * sizeof *dst->device);
  memcpy(dst->start_ns, src->start_ns, n * sizeof *dst->start_ns);
  memcpy(dst->end_ns, src->end_ns, n * sizeof *dst->end_ns);
  memcpy(dst->reason, src->reason, n * sizeof *dst->reason);
  if (src->copy_count != 0)
    memcpy(dst->copies, src->copies, src->copy_count * sizeof *dst->copies);
  dst->copy_count = src->copy_count;
  dst->makespan_ns = src->makespan_ns;
  dst->placer = src->placer;
  return WEIR_OK;
}

void weir_place_resident(const weir_place_problem *p, const uint32_t *device,
                         int64_t *bytes, uint32_t *stamp) {
  memset(bytes, 0, p->device_count * sizeof *bytes);
  memset(stamp, 0xff, p->device_count * sizeof *stamp);
  for (uint32_t n = 0; n < p->node_count; n++)
    weir_sum_add(&bytes[device[n]], p->resident_bytes[n]);
  for (uint32_t c = 0; c < p->constant_count; c++)
    for (uint32_t i = p->reader_first[c]; i < p->reader_first[c + 1]; i++) {
      uint32_t d = device[p->reader_node[i]];
      if (stamp[d] == c) continue;
      stamp[d] = c;
      weir_sum_add(&bytes[d], p->constant_bytes[c]);
    }
}

uint32_t weir_place_reader(const weir_place_problem *p, const uint32_t *device,
                           uint32_t constant, uint32_t at) {
  for (uint32_t i = p->reader_first[constant];
       i < p->reader_first[constant + 1]; i++)
    if (device[p->reader_node[i]] == at) return p->reader_node[i];
  return WEIR_PLACE_NONE;
}

uint32_t weir_place_start_copies(const weir_place_problem *p,
                                 const uint32_t *device, uint32_t *stamp,
                                 int64_t *out_bytes) {
  uint32_t copies = 0;
  *out_bytes = 0;
  memset(stamp, 0xff, p->device_count * sizeof *stamp);
  for (uint32_t c = 0; c < p->constant_count; c++) {
    if (p->constant_home[c] == WEIR_PLACE_NONE) continue;
    stamp[device[p->constant_home[c]]] = c;
    for (uint32_t i = p->reader_first[c]; i < p->reader_first[c + 1]; i++) {
      uint32_t d = device[p->reader_node[i]];
      if (stamp[d] == c) continue;
      stamp[d] = c;
      weir_sum_add(out_bytes, p->constant_bytes[c]);
      copies++;
    }
  }
  return copies;
}

void weir_place_settle_homes(const weir_place_problem *p,
                             weir_place_plan *plan) {
  for (uint32_t c = 0; c < p->constant_count; c++) {
    uint32_t n = p->constant_home[c];
    if (n == WEIR_PLACE_NONE || p->group[n] != WEIR_PLACE_NONE ||
        p->reader_first[c] == p->reader_first[c + 1] ||
        plan->start_ns[n] != plan->end_ns[n] || p->resident_bytes[n] != 0 ||
        p->in_first[n] != p->in_first[n + 1] ||
        p->out_first[n] != p->out_first[n + 1] ||
        p->read_first[n] != p->read_first[n + 1])
      continue;
    uint32_t to = plan->device[p->reader_node[p->reader_first[c]]];
    if (weir_place_cost(p, n, to) == 0) plan->device[n] = to;
  }
}

const char *weir_place_reason_text(weir_place_reason reason) {
  static const char *const texts[] = {[WEIR_PLACE_EFT] = "eft",
                                      [WEIR_PLACE_ONLY] = "only",
                                      [WEIR_PLACE_COLOCATED] = "colocated",
                                      [WEIR_PLACE_SEARCH] = "search",
                                      [WEIR_PLACE_NO_ROOM] = "memory",
                                      [WEIR_PLACE_REPLAY] = "replay",
                                      [WEIR_PLACE_HOME] = "home"};
  WEIR_TABLE_OF(texts, WEIR_PLACE_REASONS);
  return texts[reason];
}

const char *weir_place_reason_words(weir_place_reason reason) {
  static const char *const words[] = {
      [WEIR_PLACE_EFT] = "it finishes first there",
      [WEIR_PLACE_ONLY] = "no other device is allowed or has a kernel",
      [WEIR_PLACE_COLOCATED] = "it has to be with an earlier node",
      [WEIR_PLACE_SEARCH] = "the local search found a shorter step so",
      [WEIR_PLACE_NO_ROOM] = "where it would finish sooner there is no room",
      [WEIR_PLACE_REPLAY] = "the plan that was given says so",
      [WEIR_PLACE_HOME] = "the variable lives there for all programs"};
  WEIR_TABLE_OF(words, WEIR_PLACE_REASONS);
  return words[reason];
}
