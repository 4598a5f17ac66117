/* SPDX-License-Identifier: Apache-2.0 */
/* Packing: by falling end times on the reversed problem, and back, which never
 * makes a plan longer (forward-backward improvement, Li and Willis, EJOR 56
 * (1992) 370-379). For equal devices and free copies. Cost: two schedules a
 * round, and rounds end when nothing was gained. */
#include "placement/solver/pack.h"

#include <assert.h>

#include "placement/schedule/rank.h"

bool weir_solver_copies_are_free(const weir_place_problem *p) {
  for (uint32_t l = 0; l < p->link_count; l++)
    if (!weir_place_link_is_free(&p->links[l])) return false;
  size_t pairs = (size_t)p->device_count * p->device_count;
  for (size_t i = 0; i < pairs; i++)
    if (p->link_of[i] == WEIR_PLACE_NONE &&
        i / p->device_count != i % p->device_count)
      return false;
  return true;
}

static weir_status reverse(const weir_allocator *alloc,
                           const weir_place_problem *p,
                           weir_place_problem **out, weir_error *err) {
  weir_place_builder *b = NULL;
  WEIR_TRY(weir_place_builder_create(alloc, 1, &b, err));
  for (uint32_t d = 0; d < p->device_count; d++)
    weir_place_add_device(b, &p->devices[d]);
  weir_place_connect_all(b, &(weir_place_link){0});
  for (uint32_t n = p->node_count; n-- > 0;) {
    weir_place_node_spec spec = {.cost = &p->cost[n], .group = WEIR_PLACE_NONE};
    uint32_t id = weir_place_add_node(b, &spec);
    weir_place_add_tensor(b, id, 0);
    for (uint32_t t = p->out_first[n]; t < p->out_first[n + 1]; t++)
      for (uint32_t u = p->use_first[t]; u < p->use_first[t + 1]; u++)
        weir_place_add_use(b, id, p->node_count - 1 - p->use_node[u]);
  }
  weir_status s = weir_place_builder_finish(b, out, err);
  weir_place_builder_release(b);
  return s;
}

weir_status weir_solver_prepare_packing(weir_solver *s) {
  const weir_place_problem *p = s->p;
  if (p->class_count != 1 || p->set_count != 1 || p->group_count != 0 ||
      p->node_count > WEIR_SEARCH_PACK_NODES ||
      !weir_solver_copies_are_free(p) || weir_schedule_is_capped(s->scheduler))
    return WEIR_OK;
  WEIR_TRY(reverse(s->alloc, p, &s->reversed, s->err));
  WEIR_TRY(
      weir_scheduler_create(s->alloc, s->reversed, &s->back_scheduler, s->err));
  return weir_place_plan_create(s->alloc, s->reversed, &s->back_plan, s->err);
}

/* Packs s->plan until it gets no shorter. A node's end in the plan is its
 * priority in the reversed problem: the node that ends last comes first. */
weir_status weir_solver_pack(weir_solver *s) {
  uint32_t count = s->p->node_count;
  int64_t before;
  assert(s->reversed != NULL && s->reversed->node_count == count);
  do {
    before = s->plan->makespan_ns;
    for (uint32_t n = 0; n < count; n++)
      s->key[count - 1 - n] = s->plan->end_ns[n];
    weir_place_order(s->reversed, s->key, s->heap, s->waiting, s->order);
    weir_schedule_input back = {.order = s->order};
    WEIR_TRY(weir_schedule_run(s->back_scheduler, &back, s->back_plan, NULL,
                               s->err));
    for (uint32_t n = 0; n < count; n++)
      s->key[n] = s->back_plan->end_ns[count - 1 - n];
    WEIR_TRY(weir_solver_schedule(s, 0, NULL));
  } while (s->plan->makespan_ns < before);
  return WEIR_OK;
}
