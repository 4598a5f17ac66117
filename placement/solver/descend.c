/* SPDX-License-Identifier: Apache-2.0 */
/* Steepness does not matter where moves are dear: the first move that helps is
 * made. The look-out goes round and round the order of the plan, so that moves
 * share their beginnings, and ends when every node was tried since the last
 * move. Invariant: nodes with the number of the present plan in |tried| have no
 * move that helps. Cost: nodes * devices schedules a round, each a small part
 * of one (mover.c). */
#include "placement/solver/descend.h"

#include <string.h>

#include "placement/schedule/mover.h"

enum { MOST_STEPS = 16000000, ASK_EVERY = 16 };

typedef struct lookout {
  const weir_descent *o;
  weir_mover m;
  weir_place_plan *plan;
  uint32_t *tried; /* per node: the number of the plan that it was tried on */
  uint32_t number; /* of the plan */
  uint32_t left;   /* nodes to try */
  uint64_t asked;
  bool all; /* all devices are tried */
} lookout;

static bool is_over(lookout *l) {
  const weir_descent *o = l->o;
  if (l->plan->makespan_ns <= o->floor_ns || l->m.steps > MOST_STEPS)
    return true;
  return o->stop != NULL && l->asked++ % ASK_EVERY == 0 &&
         o->stop(o->stop_self);
}

static weir_status accept(lookout *l, weir_error *err) {
  WEIR_TRY(weir_place_plan_copy(l->plan, l->m.plan, err));
  l->plan->placer = "search";
  weir_mover_take(&l->m, l->plan);
  l->number++;
  l->left = l->m.p->node_count;
  l->all = true;
  return WEIR_OK;
}

/* A move that has no room or no way is none. */
static weir_status try_device(lookout *l, uint32_t node, uint32_t d,
                              bool *better, weir_error *err) {
  weir_error why = WEIR_ERROR_INIT;
  weir_status s =
      weir_mover_try(&l->m, node, d, l->plan->makespan_ns, better, &why);
  if (s == WEIR_OK || strcmp(why.id, "W6001") != 0) return WEIR_OK;
  weir_error_copy(err, &why);
  return s;
}

/* Its group is tried with it. */
static void mark_tried(lookout *l, uint32_t node) {
  uint32_t n = node;
  do {
    l->tried[n] = l->number;
    l->left--;
    n = l->m.next[n];
  } while (n != node);
}

static weir_status try_node(lookout *l, uint32_t node, weir_error *err) {
  for (uint32_t d = 0; d < l->m.p->device_count; d++) {
    bool better = false;
    if (d == l->plan->device[node] || !weir_mover_may(&l->m, node, d) ||
        (!l->all && !l->o->try_device[d]))
      continue;
    if (is_over(l)) return WEIR_OK;
    WEIR_TRY(try_device(l, node, d, &better, err));
    if (better) return accept(l, err);
  }
  mark_tried(l, node);
  return WEIR_OK;
}

static weir_status look_out(lookout *l, weir_error *err) {
  uint32_t count = l->m.p->node_count;
  weir_mover_take(&l->m, l->plan);
  l->number = 1;
  l->left = count;
  for (uint32_t at = 0; l->left > 0 && !is_over(l); at = (at + 1) % count) {
    uint32_t node = l->m.order[at];
    if (l->tried[node] != l->number) WEIR_TRY(try_node(l, node, err));
  }
  return WEIR_OK;
}

weir_status weir_place_descend(const weir_descent *o, weir_place_plan *plan,
                               weir_error *err) {
  uint32_t count = o->problem->node_count;
  lookout l = {.o = o, .plan = plan, .all = o->try_device == NULL};
  if (count == 0 || !weir_mover_is_cheap(o->problem) ||
      plan->makespan_ns <= o->floor_ns)
    return WEIR_OK;
  l.tried = weir_alloc_array(o->alloc, count, sizeof *l.tried);
  weir_status s = weir_mover_begin(&l.m, o->alloc, o->problem, err);
  if (s == WEIR_OK && l.tried == NULL)
    s = weir_fail_memory(err, count * sizeof *l.tried);
  if (s == WEIR_OK) s = look_out(&l, err);
  weir_mover_end(&l.m);
  weir_free(o->alloc, l.tried);
  return s;
}
