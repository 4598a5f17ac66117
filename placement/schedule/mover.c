/* SPDX-License-Identifier: Apache-2.0 */
/* Single moves of a plan (mover.h).
 *
 * A move changes nothing before the first node of its group in the order: the
 * schedule up to there is kept at a mark, taken back before the next move, and
 * made longer when that is of a later node. In the order of |order| all moves
 * so take half of a schedule each. The tails end most of them sooner still.
 *
 * The tails know the devices of a plan, and a node that moves changes those of
 * its predecessors, which are before it in the order, and its own. A group's
 * later nodes have predecessors after its first one, so that tails without
 * devices serve there. Where copies keep their senders busy, a move changes the
 * sends of the predecessors too, and begins at the first of them. Cost:
 * O((nodes + uses) * devices) a move. */
#include "placement/schedule/mover.h"

#include <assert.h>
#include <string.h>

#include "placement/schedule/rank.h"
#include "placement/schedule/schedule_sends.h"

enum { MOST_SCHEDULED = 2000000 }; /* nodes scheduled for all moves */

bool weir_mover_is_cheap(const weir_place_problem *p) {
  size_t count = (size_t)p->node_count * p->device_count;
  return count <= MOST_SCHEDULED && count * p->node_count <= MOST_SCHEDULED;
}

static bool mover_allocate(weir_mover *m) {
  const weir_allocator *a = m->alloc;
  size_t n = (size_t)m->p->node_count + 1;
  m->key = weir_alloc_array(a, n, sizeof *m->key);
  m->tail = weir_alloc_array(a, n, sizeof *m->tail);
  m->least_tail = weir_alloc_array(a, n, sizeof *m->least_tail);
  m->device = weir_alloc_array(a, n, sizeof *m->device);
  m->order = weir_alloc_array(a, n, sizeof *m->order);
  m->place = weir_alloc_array(a, n, sizeof *m->place);
  m->heap = weir_alloc_array(a, n, sizeof *m->heap);
  m->waiting = weir_alloc_array(a, n, sizeof *m->waiting);
  m->next = weir_alloc_array(a, n, sizeof *m->next);
  return m->key != NULL && m->tail != NULL && m->least_tail != NULL &&
         m->device != NULL && m->order != NULL && m->place != NULL &&
         m->heap != NULL && m->waiting != NULL && m->next != NULL;
}

/* Rings of the nodes of each group; a free node is one of its own. */
static weir_status link_groups(weir_mover *m, weir_error *err) {
  const weir_place_problem *p = m->p;
  size_t groups = (size_t)p->group_count + 1;
  uint32_t *first = weir_alloc_array(m->alloc, groups, sizeof *first);
  if (first == NULL) return weir_fail_memory(err, groups * sizeof *first);
  memset(first, 0xff, groups * sizeof *first);
  for (uint32_t n = 0; n < p->node_count; n++) {
    uint32_t g = p->group[n];
    m->next[n] = n;
    if (g == WEIR_PLACE_NONE) continue;
    if (first[g] == WEIR_PLACE_NONE) {
      first[g] = n;
      continue;
    }
    m->next[n] = m->next[first[g]];
    m->next[first[g]] = n;
  }
  weir_free(m->alloc, first);
  return WEIR_OK;
}

weir_status weir_mover_begin(weir_mover *m, const weir_allocator *alloc,
                             const weir_place_problem *p, weir_error *err) {
  *m = (weir_mover){.alloc = alloc, .p = p};
  if (!mover_allocate(m))
    return weir_fail_memory(err, p->node_count * sizeof *m->key);
  WEIR_TRY(link_groups(m, err));
  WEIR_TRY(weir_scheduler_create(alloc, p, &m->scheduler, err));
  if (!weir_schedule_is_capped(m->scheduler))
    WEIR_TRY(weir_schedule_mark_create(m->scheduler, &m->mark, err));
  weir_place_tails(p, NULL, m->least_tail);
  return weir_place_plan_create(alloc, p, &m->plan, err);
}

void weir_mover_end(weir_mover *m) {
  const weir_allocator *a = m->alloc;
  weir_free(a, m->key);
  weir_free(a, m->tail);
  weir_free(a, m->least_tail);
  weir_free(a, m->device);
  weir_free(a, m->order);
  weir_free(a, m->place);
  weir_free(a, m->heap);
  weir_free(a, m->waiting);
  weir_free(a, m->next);
  weir_schedule_mark_release(m->mark);
  weir_scheduler_release(m->scheduler);
  weir_place_plan_release(m->plan);
}

void weir_mover_take(weir_mover *m, const weir_place_plan *plan) {
  const weir_place_problem *p = m->p;
  assert(plan->node_count == p->node_count && plan != m->plan);
  m->of = plan;
  m->is_prefix_ok = false;
  for (uint32_t n = 0; n < p->node_count; n++) {
    m->device[n] = plan->device[n];
    m->key[n] = -plan->start_ns[n];
  }
  weir_place_order(p, m->key, m->heap, m->waiting, m->order);
  for (uint32_t i = 0; i < p->node_count; i++) m->place[m->order[i]] = i;
  weir_place_tails(p, m->device, m->tail);
}

bool weir_mover_may(const weir_mover *m, uint32_t node, uint32_t device) {
  uint32_t n = node;
  do {
    if (weir_place_cost(m->p, n, device) == WEIR_PLACE_NO_KERNEL) return false;
    n = m->next[n];
  } while (n != node);
  return true;
}

/* Places the first |count| nodes as in the plan, and keeps that. */
static weir_status prepare_prefix(weir_mover *m, uint32_t count,
                                  weir_error *err) {
  weir_schedule_input input = {.order = m->order, .device = m->device};
  if (m->is_prefix_ok && m->prefix <= count) {
    weir_schedule_take_back(m->scheduler, m->mark, m->plan);
  } else {
    weir_schedule_begin(m->scheduler, m->plan);
    m->prefix = 0;
  }
  m->is_prefix_ok = false;
  WEIR_TRY(weir_schedule_go_on(m->scheduler, &input, m->prefix, count, m->plan,
                               NULL, err));
  m->steps += count - m->prefix;
  m->prefix = count;
  m->is_prefix_ok = true;
  weir_schedule_keep(m->scheduler, m->plan, m->mark);
  return WEIR_OK;
}

static weir_status try_moved(weir_mover *m, uint32_t from, int64_t stop_ns,
                             const int64_t *tail, bool *out_complete,
                             weir_error *err) {
  const weir_place_problem *p = m->p;
  weir_schedule_input input = {.order = m->order,
                               .device = m->device,
                               .stop_ns = stop_ns,
                               .tail_ns = tail,
                               .spill = true};
  m->steps += p->node_count - from;
  if (m->mark == NULL)
    return weir_schedule_run(m->scheduler, &input, m->plan, out_complete, err);
  return weir_schedule_go_on(m->scheduler, &input, from, p->node_count, m->plan,
                             out_complete, err);
}

/* The first place in the order that a move of |node| changes. */
static uint32_t first_changed(const weir_mover *m, uint32_t node) {
  const weir_place_problem *p = m->p;
  uint32_t n = node, from = m->place[node];
  bool sends = weir_schedule_has_sends(m->scheduler);
  do {
    if (m->place[n] < from) from = m->place[n];
    for (uint32_t i = p->in_first[n]; sends && i < p->in_first[n + 1]; i++) {
      uint32_t maker = p->tensor_node[p->in_tensor[i]];
      if (m->place[maker] < from) from = m->place[maker];
    }
    n = m->next[n];
  } while (n != node);
  return from;
}

weir_status weir_mover_try(weir_mover *m, uint32_t node, uint32_t device,
                           int64_t stop_ns, bool *out_complete,
                           weir_error *err) {
  uint32_t n = node, from = first_changed(m, node), home = m->device[node];
  const int64_t *tail = m->next[node] == node ? m->tail : m->least_tail;
  int64_t kept = m->tail[node];
  assert(weir_mover_may(m, node, device));
  assert(stop_ns == 0 || out_complete != NULL);
  if (m->mark != NULL) WEIR_TRY(prepare_prefix(m, from, err));
  if (m->mark != NULL && stop_ns != 0 && m->plan->makespan_ns >= stop_ns) {
    *out_complete = false; /* the beginning alone is too long */
    return WEIR_OK;
  }
  do {
    m->device[n] = device;
    n = m->next[n];
  } while (n != node);
  m->tail[node] = weir_place_tail_of(m->p, m->device, m->tail, node, device);
  /* Memory may send a tensor another way than straight. */
  weir_status s =
      try_moved(m, from, stop_ns, m->mark == NULL ? m->least_tail : tail,
                out_complete, err);
  m->tail[node] = kept;
  do {
    m->device[n] = home;
    n = m->next[n];
  } while (n != node);
  return s;
}
