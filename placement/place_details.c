/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/place_details.h"

void weir_plan_details_release(const weir_allocator *alloc,
                               weir_plan_details *d) {
  if (d == NULL) return;
  weir_place_parts_release(d->parts);
  weir_free(alloc, d->edge_copy);
  weir_free(alloc, d);
}

/* Lists of the plan's copies by the value that they bring. */
typedef struct copy_lists {
  uint32_t *first; /* per value of the graph */
  uint32_t *next;  /* per copy */
} copy_lists;

static weir_status make_lists(const weir_plan *plan, copy_lists *l,
                              weir_error *err) {
  const weir_placement *p = plan->placement;
  const weir_place_plan *made = plan->result.plan;
  size_t values = p->graph->value_count;
  l->first = weir_alloc_array(plan->alloc, values + 1, sizeof *l->first);
  l->next =
      weir_alloc_array(plan->alloc, made->copy_count + 1, sizeof *l->next);
  if (l->first == NULL || l->next == NULL)
    return weir_fail_memory(err, (values + made->copy_count) * 4);
  for (size_t v = 0; v < values; v++) l->first[v] = WEIR_PLACE_NONE;
  for (uint32_t c = 0; c < made->copy_count; c++) {
    weir_value_id v = p->tensor_value[made->copies[c].tensor];
    if (v == WEIR_NO_VALUE) continue; /* a token */
    l->next[c] = l->first[v];
    l->first[v] = c;
  }
  return WEIR_OK;
}

/* An edge and a copy are the same way of the same value, but a variable that
 * nothing assigns has no edge in a step, and a token no value. */
static void match_edges(const weir_plan *plan, const copy_lists *l,
                        weir_plan_details *d) {
  const weir_place_parts *parts = d->parts;
  for (uint32_t e = 0; e < parts->edge_count; e++) {
    const weir_parts_edge *edge = &parts->edges[e];
    d->edge_copy[e] = WEIR_PLACE_NONE;
    if (edge->value == WEIR_NO_VALUE) continue;
    for (uint32_t c = l->first[edge->value]; c != WEIR_PLACE_NONE;
         c = l->next[c])
      if (plan->result.plan->copies[c].to == parts->parts[edge->to].device)
        d->edge_copy[e] = c;
  }
}

static weir_status make(const weir_plan *plan, weir_plan_details **out,
                        weir_error *err) {
  copy_lists l = {NULL, NULL};
  weir_plan_details *d = weir_alloc_array(plan->alloc, 1, sizeof *d);
  *out = d;
  if (d == NULL) return weir_fail_memory(err, sizeof *d);
  const weir_partition *partition;
  WEIR_TRY(weir_plan_partition(plan, &partition, err));
  weir_status s = weir_place_parts_create(plan->alloc, plan->placement,
                                          partition, &d->parts, err);
  if (s == WEIR_OK) {
    d->edge_copy = weir_alloc_array(
        plan->alloc, (size_t)d->parts->edge_count + 1, sizeof *d->edge_copy);
    if (d->edge_copy == NULL) s = weir_fail_memory(err, d->parts->edge_count);
  }
  if (s == WEIR_OK) s = make_lists(plan, &l, err);
  if (s == WEIR_OK) match_edges(plan, &l, d);
  weir_free(plan->alloc, l.first);
  weir_free(plan->alloc, l.next);
  return s;
}

weir_status weir_plan_details_get(const weir_plan *plan,
                                  const weir_plan_details **out,
                                  weir_error *err) {
  *out = NULL;
  if (plan->placement == NULL) return WEIR_OK;
  /* The plan's only field that changes: from NULL, once. */
  weir_plan *p = (weir_plan *)(uintptr_t)plan;
  weir_plan_details *d = atomic_load(&p->details), *none = NULL;
  if (d == NULL) {
    weir_status s = make(plan, &d, err);
    if (s != WEIR_OK) {
      weir_plan_details_release(plan->alloc, d);
      return s;
    }
    if (!atomic_compare_exchange_strong(&p->details, &none, d)) {
      weir_plan_details_release(plan->alloc, d); /* another thread was first */
      d = none;
    }
  }
  *out = d;
  return WEIR_OK;
}
