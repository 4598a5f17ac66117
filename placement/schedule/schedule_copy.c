/* SPDX-License-Identifier: Apache-2.0 */
/* When a copy can begin, and what it takes from links and senders. */
#include "placement/schedule/schedule_copy.h"

weir_copy_times weir_schedule_copy_times(const weir_place_link *link,
                                         int64_t bytes) {
  weir_copy_times t = {.whole = weir_place_copy_ns(link, bytes),
                       .send = weir_place_send_ns(link, bytes)};
  if (link->exclusive) t.on_link = weir_place_link_ns(link, bytes);
  return t;
}

/* When |ns| are free on |line|, of which |promised| says how much is promised
 * already. */
static int64_t find_time(const weir_timeline *line, int64_t promised,
                         int64_t ready, int64_t ns) {
  return weir_timeline_find(line, promised > ready ? promised : ready, ns);
}

/* The link and the sender must be free at one time. Ends: each turn begins
 * later, and both are free for ever from the later of their tails on. */
int64_t weir_schedule_copy_start(const weir_scheduler *s, uint32_t link,
                                 uint32_t from, int64_t ready,
                                 const weir_copy_times *t) {
  for (;;) {
    int64_t start = ready;
    if (t->on_link > 0)
      start = find_time(&s->links[link], s->promised[link], start, t->on_link);
    if (t->send == 0) return start;
    ready = find_time(&s->devices[from], s->promised[s->p->link_count + from],
                      start, t->send);
    if (ready == start) return start;
  }
}

void weir_schedule_take_copy(weir_scheduler *s, const weir_place_copy *copy,
                             const weir_copy_times *t) {
  weir_timeline_take(&s->links[copy->link], copy->start_ns, t->on_link);
  weir_timeline_take(&s->devices[copy->from], copy->start_ns, t->send);
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
