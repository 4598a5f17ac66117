/* SPDX-License-Identifier: Apache-2.0 */
/* When a copy can begin, and what it takes from links and senders. */
#include "placement/schedule/schedule_copy.h"

#include "placement/schedule/schedule_sends.h"

weir_copy_times weir_schedule_copy_times(const weir_place_link *link,
                                         int64_t bytes) {
  weir_copy_times t = {.whole = weir_place_copy_ns(link, bytes),
                       .send = weir_place_send_ns(link, bytes)};
  if (link->exclusive) t.on_link = weir_place_link_ns(link, bytes);
  return t;
}

int64_t weir_schedule_link_start(const weir_scheduler *s, uint32_t link,
                                 int64_t ready, const weir_copy_times *t) {
  if (t->on_link == 0) return ready;
  int64_t promised = s->promised[link];
  return weir_timeline_find(&s->links[link],
                            promised > ready ? promised : ready, t->on_link);
}

void weir_schedule_take_copy(weir_scheduler *s, const weir_place_copy *copy,
                             const weir_copy_times *t) {
  weir_timeline_take(&s->links[copy->link], copy->end_ns - t->whole,
                     t->on_link);
  if (t->send > 0) weir_schedule_sends_take(s, copy, t->send);
}

bool weir_schedule_add_copy(weir_scheduler *s, weir_place_plan *plan,
                            const weir_place_copy *copy) {
  uint32_t c = plan->copy_count;
  if (c == plan->copy_capacity &&
      !weir_vec_grow(plan->alloc, (void **)&plan->copies, &plan->copy_capacity,
                     c, 1, sizeof *plan->copies))
    return false;
  if (c == s->next_capacity &&
      !weir_vec_grow(s->alloc, (void **)&s->copy_next, &s->next_capacity, c, 1,
                     sizeof *s->copy_next))
    return false;
  plan->copies[c] = *copy;
  if (s->memory != NULL) {
    weir_schedule_memory *m = s->memory;
    if (c == m->copy_capacity &&
        !weir_vec_grow(s->alloc, (void **)&m->copy_last, &m->copy_capacity, c,
                       1, sizeof *m->copy_last))
      return false;
    m->copy_last[c] = copy->end_ns;
  }
  s->copy_next[c] = s->made[copy->tensor].copies;
  s->made[copy->tensor].copies = c + 1;
  plan->copy_count++;
  return true;
}
