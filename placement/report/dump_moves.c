/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/report/dump_moves.h"

#include "placement/report/dump_internal.h"
#include "placement/schedule/rank.h"
#include "runtime/base/table.h"

/* ---- A plan scheduled again with one node elsewhere. The starts of the plan
 * are the keys of the order, so the move is the main difference between the
 * two. All moves share one scheduler and its memory. Cost: one schedule a move,
 * O((nodes + uses) * devices). */

weir_status weir_place_mover_begin(weir_place_mover *m,
                                   const weir_place_view *v, weir_error *err) {
  size_t n = (size_t)v->problem->node_count + 1;
  *m = (weir_place_mover){.v = v};
  m->key = weir_alloc_array(v->alloc, n, sizeof *m->key);
  m->device = weir_alloc_array(v->alloc, n, sizeof *m->device);
  m->order = weir_alloc_array(v->alloc, n, sizeof *m->order);
  m->heap = weir_alloc_array(v->alloc, n, sizeof *m->heap);
  m->waiting = weir_alloc_array(v->alloc, n, sizeof *m->waiting);
  if (m->key == NULL || m->device == NULL || m->order == NULL ||
      m->heap == NULL || m->waiting == NULL)
    return weir_fail_memory(err, n * sizeof *m->key);
  WEIR_TRY(weir_scheduler_create(v->alloc, v->problem, &m->scheduler, err));
  return weir_place_plan_create(v->alloc, v->problem, &m->plan, err);
}

void weir_place_mover_end(weir_place_mover *m) {
  const weir_allocator *a = m->v->alloc;
  weir_free(a, m->key);
  weir_free(a, m->device);
  weir_free(a, m->order);
  weir_free(a, m->heap);
  weir_free(a, m->waiting);
  weir_scheduler_release(m->scheduler);
  weir_place_plan_release(m->plan);
}

/* Moves |node| and its group to |device|; the order of the plan is kept.
 * Errors: W3012-W3014, W6001. */
static weir_status move_group(weir_place_mover *m, uint32_t node,
                              uint32_t device, weir_error *err) {
  const weir_place_problem *p = m->v->problem;
  for (uint32_t n = 0; n < p->node_count; n++) {
    bool with = n == node || (p->group[node] != WEIR_PLACE_NONE &&
                              p->group[n] == p->group[node]);
    m->device[n] = with ? device : m->v->plan->device[n];
    m->key[n] = -m->v->plan->start_ns[n];
  }
  weir_place_order(p, m->key, m->heap, m->waiting, m->order);
  weir_schedule_input input = {
      .order = m->order, .device = m->device, .spill = true};
  return weir_schedule_run(m->scheduler, &input, m->plan, NULL, err);
}

bool weir_place_group_may(const weir_place_problem *p, uint32_t node,
                          uint32_t device) {
  if (p->group[node] == WEIR_PLACE_NONE)
    return weir_place_cost(p, node, device) != WEIR_PLACE_NO_KERNEL;
  for (uint32_t n = 0; n < p->node_count; n++)
    if (p->group[n] == p->group[node] &&
        weir_place_cost(p, n, device) == WEIR_PLACE_NO_KERNEL)
      return false;
  return true;
}

/* ---- One node on one device */

const char *weir_place_chance_text(weir_place_chance_kind kind) {
  static const char *const texts[] = {[WEIR_PLACE_HERE] = "chosen",
                                      [WEIR_PLACE_POSSIBLE] = "",
                                      [WEIR_PLACE_NOT_ALLOWED] = "not allowed",
                                      [WEIR_PLACE_KERNEL_MISSING] = "no kernel",
                                      [WEIR_PLACE_ROOM_MISSING] = "no room"};
  WEIR_TABLE_OF(texts, WEIR_PLACE_CHANCES);
  return texts[kind];
}

weir_status weir_place_mover_try(weir_place_mover *m, uint32_t node, uint32_t d,
                                 weir_place_chance *out, weir_error *err) {
  const weir_place_problem *p = m->v->problem;
  const weir_place_plan *plan = m->v->plan;
  weir_error why = WEIR_ERROR_INIT;
  *out = (weir_place_chance){WEIR_PLACE_NOT_ALLOWED, {-1, -1}};
  if (plan->device[node] == d) {
    *out = (weir_place_chance){WEIR_PLACE_HERE,
                               {plan->end_ns[node], plan->makespan_ns}};
    return WEIR_OK;
  }
  if (!weir_place_group_may(p, node, d)) {
    if (p->cost[(size_t)node * p->class_count + p->devices[d].cls] ==
        WEIR_PLACE_NO_KERNEL)
      out->kind = WEIR_PLACE_KERNEL_MISSING;
    return WEIR_OK;
  }
  weir_status s = move_group(m, node, d, &why);
  if (s == WEIR_OK) {
    *out = (weir_place_chance){WEIR_PLACE_POSSIBLE,
                               {m->plan->end_ns[node], m->plan->makespan_ns}};
  } else if (strcmp(why.id, "W3013") == 0) {
    out->kind = WEIR_PLACE_ROOM_MISSING;
    return WEIR_OK;
  }
  if (s != WEIR_OK) weir_error_copy(err, &why);
  return s;
}

weir_status weir_place_chance_of(const weir_place_view *view, uint32_t node,
                                 uint32_t device, weir_place_chance *out,
                                 weir_error *err) {
  weir_place_mover m;
  weir_status s = weir_place_mover_begin(&m, view, err);
  if (s == WEIR_OK) s = weir_place_mover_try(&m, node, device, out, err);
  weir_place_mover_end(&m);
  return s;
}

/* ---- All nodes on all devices */

enum { MOST_SCHEDULED = 2000000 }; /* nodes scheduled for all of it */

static weir_status fill(weir_place_mover *m, weir_place_alternative *all,
                        weir_error *err) {
  const weir_place_problem *p = m->v->problem;
  const weir_place_plan *plan = m->v->plan;
  for (uint32_t n = 0; n < p->node_count; n++)
    for (uint32_t d = 0; d < p->device_count; d++) {
      weir_place_alternative *a = &all[(size_t)n * p->device_count + d];
      *a = (weir_place_alternative){-1, -1};
      if (plan->device[n] == d) {
        *a = (weir_place_alternative){plan->end_ns[n], plan->makespan_ns};
      } else if (weir_place_group_may(p, n, d)) {
        weir_error why = WEIR_ERROR_INIT;
        weir_status s = move_group(m, n, d, &why);
        if (s != WEIR_OK && strcmp(why.id, "W6001") != 0) continue;
        if (s != WEIR_OK) return weir_fail_memory(err, sizeof *a);
        *a = (weir_place_alternative){m->plan->end_ns[n], m->plan->makespan_ns};
      }
    }
  return WEIR_OK;
}

weir_status weir_place_alternatives_create(const weir_place_view *v,
                                           weir_place_alternative **out_all,
                                           weir_error *err) {
  const weir_place_problem *p = v->problem;
  size_t count = (size_t)p->node_count * p->device_count;
  *out_all = NULL;
  if (count > MOST_SCHEDULED || count * p->node_count > MOST_SCHEDULED)
    return WEIR_OK;
  weir_place_alternative *all =
      weir_alloc_array(v->alloc, count + 1, sizeof *all);
  if (all == NULL) return weir_fail_memory(err, count * sizeof *all);
  weir_place_mover m;
  weir_status s = weir_place_mover_begin(&m, v, err);
  if (s == WEIR_OK) s = fill(&m, all, err);
  weir_place_mover_end(&m);
  if (s == WEIR_OK)
    *out_all = all;
  else
    weir_free(v->alloc, all);
  return s;
}
