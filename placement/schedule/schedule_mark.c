/* SPDX-License-Identifier: Apache-2.0 */
/* Many schedules that begin alike (schedule_mark.h): the state after their
 * common beginning is kept once, and taken back before each of them.
 *
 * Timelines and the devices of groups are copied. Of a tensor only the list of
 * its copies, and the time for its sends that is left, can change after the
 * node that makes it is placed, and each copy remembers the one before it: so
 * copies are taken off their lists from the last one back. What later nodes
 * wrote of themselves is written anew. Cost: O(devices + links + groups +
 * copies taken back). */
#include "placement/schedule/schedule_mark.h"

#include <assert.h>
#include <string.h>

#include "placement/schedule/schedule_internal.h"
#include "placement/schedule/schedule_sends.h"

struct weir_schedule_mark {
  const weir_allocator *alloc;
  weir_timeline *devices, *links;
  uint32_t *group_device;
  uint32_t copies;
  int64_t makespan_ns;
};

weir_status weir_schedule_mark_create(const weir_scheduler *s,
                                      weir_schedule_mark **out,
                                      weir_error *err) {
  const weir_place_problem *p = s->p;
  const weir_allocator *a = s->alloc;
  size_t links = (size_t)p->link_count + 1, groups = (size_t)p->group_count + 1;
  weir_schedule_mark *m = weir_alloc_array(a, 1, sizeof *m);
  *out = NULL;
  if (m == NULL) return weir_fail_memory(err, sizeof *m);
  m->alloc = a;
  m->devices = weir_alloc_array(a, p->device_count, sizeof *m->devices);
  m->links = weir_alloc_array(a, links, sizeof *m->links);
  m->group_device = weir_alloc_array(a, groups, sizeof *m->group_device);
  if (m->devices == NULL || m->links == NULL || m->group_device == NULL) {
    weir_schedule_mark_release(m);
    return weir_fail_memory(err, links * sizeof *m->links);
  }
  *out = m;
  return WEIR_OK;
}

void weir_schedule_mark_release(weir_schedule_mark *m) {
  if (m == NULL) return;
  weir_free(m->alloc, m->devices);
  weir_free(m->alloc, m->links);
  weir_free(m->alloc, m->group_device);
  weir_free(m->alloc, m);
}

void weir_schedule_keep(const weir_scheduler *s, const weir_place_plan *plan,
                        weir_schedule_mark *m) {
  const weir_place_problem *p = s->p;
  assert(s->memory == NULL);
  memcpy(m->devices, s->devices, p->device_count * sizeof *m->devices);
  memcpy(m->links, s->links, p->link_count * sizeof *m->links);
  memcpy(m->group_device, s->group_device,
         p->group_count * sizeof *m->group_device);
  m->copies = plan->copy_count;
  m->makespan_ns = plan->makespan_ns;
}

void weir_schedule_take_back(weir_scheduler *s, const weir_schedule_mark *m,
                             weir_place_plan *plan) {
  const weir_place_problem *p = s->p;
  assert(plan->copy_count >= m->copies);
  memcpy(s->devices, m->devices, p->device_count * sizeof *m->devices);
  memcpy(s->links, m->links, p->link_count * sizeof *m->links);
  memcpy(s->group_device, m->group_device,
         p->group_count * sizeof *m->group_device);
  for (uint32_t c = plan->copy_count; c-- > m->copies;) {
    s->made[plan->copies[c].tensor].copies = s->copy_next[c];
    if (s->sends != NULL) weir_schedule_sends_give_back(s, &plan->copies[c]);
  }
  plan->copy_count = m->copies;
  plan->makespan_ns = m->makespan_ns;
}
