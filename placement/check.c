/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>

#include "placement/plan.h"

/* Knows problem.h and plan.h only. Rules are checked one after another over
 * sorted lists of events; nothing is shared with the schedulers. */

/* Something that happens at a time: on a device, on a link, in memory. */
typedef struct event {
  uint32_t where;
  int64_t time_ns, end_ns;
  int64_t bytes; /* memory: that come (> 0) or go */
  uint32_t node; /* or copy; for the message */
} event;

typedef struct checker {
  const weir_allocator *alloc;
  const weir_place_problem *p;
  const weir_place_plan *plan;
  weir_error *err;
  event *events;
  size_t event_count;
  int64_t *last_use; /* per tensor, on its producer's device */
} checker;

static weir_status broken(const checker *c, const char *rule, uint32_t node) {
  weir_sv name = node < c->p->node_count ? c->p->names[node] : (weir_sv){0};
  return weir_fail(c->err, WEIR_W3016, NULL, "%s: node %u %.*s", rule, node,
                   (int)name.size, name.data == NULL ? "" : name.data);
}

static weir_status check_nodes(checker *c) {
  const weir_place_problem *p = c->p;
  const weir_place_plan *plan = c->plan;
  int64_t makespan = 0;
  if (plan->node_count != p->node_count)
    return broken(c, "the plan has another number of nodes", 0);
  for (uint32_t n = 0; n < p->node_count; n++) {
    uint32_t d = plan->device[n];
    if (d >= p->device_count) return broken(c, "no such device", n);
    int64_t cost = weir_place_cost(p, n, d);
    if (cost == WEIR_PLACE_NO_KERNEL)
      return broken(c, "a device that the node may not use", n);
    if (plan->start_ns[n] < 0 || plan->end_ns[n] - plan->start_ns[n] != cost)
      return broken(c, "start, cost and end do not agree", n);
    if (plan->end_ns[n] > makespan) makespan = plan->end_ns[n];
  }
  if (makespan != plan->makespan_ns)
    return broken(c, "the makespan is not the last end", 0);
  return WEIR_OK;
}

static weir_status check_groups(checker *c) {
  const weir_place_problem *p = c->p;
  uint32_t *device =
      weir_alloc_array(c->alloc, (size_t)p->group_count + 1, sizeof *device);
  weir_status s = WEIR_OK;
  if (device == NULL)
    return weir_fail_memory(c->err, p->group_count * sizeof *device);
  for (uint32_t n = 0; n < p->node_count && s == WEIR_OK; n++) {
    uint32_t g = p->group[n];
    if (g == WEIR_PLACE_NONE) continue;
    if (device[g] != 0 && device[g] != c->plan->device[n] + 1)
      s = broken(c, "away from its group", n);
    device[g] = c->plan->device[n] + 1;
  }
  weir_free(c->alloc, device);
  return s;
}

/* By place, then time; what ends at a time comes before what begins then. */
static int compare_events(const void *x, const void *y) {
  const event *a = x, *b = y;
  if (a->where != b->where) return a->where < b->where ? -1 : 1;
  if (a->time_ns != b->time_ns) return a->time_ns < b->time_ns ? -1 : 1;
  if (a->end_ns != b->end_ns) return a->end_ns < b->end_ns ? -1 : 1;
  return a->node < b->node ? -1 : a->node > b->node;
}

static weir_status check_overlap(checker *c, const char *rule) {
  qsort(c->events, c->event_count, sizeof *c->events, compare_events);
  for (size_t i = 1; i < c->event_count; i++)
    if (c->events[i].where == c->events[i - 1].where &&
        c->events[i].time_ns < c->events[i - 1].end_ns)
      return broken(c, rule, c->events[i].node);
  return WEIR_OK;
}

static weir_status check_devices(checker *c) {
  c->event_count = 0;
  for (uint32_t n = 0; n < c->p->node_count; n++)
    if (c->plan->end_ns[n] > c->plan->start_ns[n])
      c->events[c->event_count++] = (event){
          c->plan->device[n], c->plan->start_ns[n], c->plan->end_ns[n], 0, n};
  return check_overlap(c, "two nodes at once on a device");
}

static weir_status check_copies(checker *c) {
  const weir_place_problem *p = c->p;
  c->event_count = 0;
  for (uint32_t i = 0; i < c->plan->copy_count; i++) {
    weir_place_copy k = c->plan->copies[i];
    if (k.tensor >= p->tensor_count || k.from >= p->device_count ||
        k.to >= p->device_count || k.from == k.to)
      return broken(c, "a copy of nothing", WEIR_PLACE_NONE);
    uint32_t producer = p->tensor_node[k.tensor];
    if (c->plan->device[producer] != k.from)
      return broken(c, "a copy from where the tensor is not", producer);
    if (p->link_of[(size_t)k.from * p->device_count + k.to] != k.link ||
        k.link >= p->link_count)
      return broken(c, "a copy over the wrong link", producer);
    const weir_place_link *link = &p->links[k.link];
    if (k.start_ns < c->plan->end_ns[producer])
      return broken(c, "a copy before its tensor is made", producer);
    if (k.end_ns - k.start_ns <
        weir_place_copy_ns(link, p->tensor_bytes[k.tensor]))
      return broken(c, "a copy faster than its link", producer);
    if (link->exclusive && k.end_ns > k.start_ns)
      c->events[c->event_count++] =
          (event){k.link, k.start_ns, k.end_ns, 0, producer};
  }
  return check_overlap(c, "two copies at once on a link");
}

/* ---- Every tensor there before it is used: uses and copies, both sorted by
 * (tensor, device). */

static int compare_arrivals(const void *x, const void *y) {
  const event *a = x, *b = y;
  if (a->node != b->node) return a->node < b->node ? -1 : 1;
  if (a->where != b->where) return a->where < b->where ? -1 : 1;
  return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

static const event *find_arrival(const checker *c, uint32_t tensor,
                                 uint32_t device) {
  size_t low = 0, high = c->event_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    const event *e = &c->events[middle];
    if (e->node < tensor || (e->node == tensor && e->where < device))
      low = middle + 1;
    else
      high = middle;
  }
  const event *e = &c->events[low];
  return low < c->event_count && e->node == tensor && e->where == device ? e
                                                                         : NULL;
}

static weir_status check_arrivals(checker *c) {
  const weir_place_problem *p = c->p;
  c->event_count = 0;
  for (uint32_t i = 0; i < c->plan->copy_count; i++) {
    weir_place_copy k = c->plan->copies[i];
    c->events[c->event_count++] = (event){k.to, k.end_ns, 0, 0, k.tensor};
  }
  qsort(c->events, c->event_count, sizeof *c->events, compare_arrivals);
  for (uint32_t n = 0; n < p->node_count; n++)
    for (uint32_t i = p->in_first[n]; i < p->in_first[n + 1]; i++) {
      uint32_t t = p->in_tensor[i], from = p->tensor_node[t];
      int64_t there = c->plan->end_ns[from];
      if (c->plan->device[from] != c->plan->device[n]) {
        const event *e = find_arrival(c, t, c->plan->device[n]);
        if (e == NULL) return broken(c, "a tensor never copied", n);
        there = e->time_ns;
      }
      if (c->plan->start_ns[n] < there)
        return broken(c, "a start before its tensors are there", n);
    }
  return WEIR_OK;
}

/* ---- Memory: weights always; temporary memory while a node runs; a tensor on
 * the device that makes it from that node's start to its last use or the end
 * of its last copy away; a copy from its start to the last use there. */

static void memory_event(checker *c, uint32_t device, int64_t from, int64_t to,
                         int64_t bytes, uint32_t node) {
  if (bytes == 0 || to <= from) return;
  c->events[c->event_count++] = (event){device, from, 1, bytes, node};
  c->events[c->event_count++] = (event){device, to, 0, -bytes, node};
}

/* The last end of a use of |tensor| on |device|, at least |from|. */
static int64_t last_use(const checker *c, uint32_t tensor, uint32_t device,
                        int64_t from) {
  const weir_place_problem *p = c->p;
  for (uint32_t u = p->use_first[tensor]; u < p->use_first[tensor + 1]; u++) {
    uint32_t n = p->use_node[u];
    if (c->plan->device[n] == device && c->plan->end_ns[n] > from)
      from = c->plan->end_ns[n];
  }
  return from;
}

static void list_memory(checker *c) {
  const weir_place_problem *p = c->p;
  const weir_place_plan *plan = c->plan;
  c->event_count = 0;
  for (uint32_t t = 0; t < p->tensor_count; t++)
    c->last_use[t] = last_use(c, t, plan->device[p->tensor_node[t]],
                              plan->end_ns[p->tensor_node[t]]);
  for (uint32_t i = 0; i < plan->copy_count; i++) {
    weir_place_copy k = plan->copies[i];
    if (k.end_ns > c->last_use[k.tensor]) c->last_use[k.tensor] = k.end_ns;
    memory_event(c, k.to, k.start_ns, last_use(c, k.tensor, k.to, k.end_ns),
                 p->tensor_bytes[k.tensor], p->tensor_node[k.tensor]);
  }
  for (uint32_t n = 0; n < p->node_count; n++) {
    memory_event(c, plan->device[n], plan->start_ns[n], plan->end_ns[n],
                 p->temp_bytes[n], n);
    for (uint32_t t = p->out_first[n]; t < p->out_first[n + 1]; t++)
      if (!p->tensor_kept[t])
        memory_event(c, plan->device[n], plan->start_ns[n], c->last_use[t],
                     p->tensor_bytes[t], n);
  }
}

static weir_status check_memory(checker *c, int64_t *peaks) {
  const weir_place_problem *p = c->p;
  list_memory(c);
  qsort(c->events, c->event_count, sizeof *c->events, compare_events);
  size_t i = 0;
  weir_status s = WEIR_OK;
  for (uint32_t d = 0; d < p->device_count; d++) {
    int64_t live = 0, peak;
    for (uint32_t n = 0; n < p->node_count; n++)
      if (c->plan->device[n] == d) live += p->resident_bytes[n];
    peak = live;
    for (; i < c->event_count && c->events[i].where == d; i++) {
      live += c->events[i].bytes;
      if (live > peak) peak = live;
    }
    if (peaks != NULL) peaks[d] = peak;
    if (peak > p->devices[d].memory_bytes && s == WEIR_OK)
      s = weir_fail(c->err, WEIR_W3013, NULL,
                    "%.*s needs %" PRId64 " bytes at its peak and has %" PRId64,
                    (int)p->devices[d].name.size, p->devices[d].name.data, peak,
                    p->devices[d].memory_bytes);
  }
  return s;
}

weir_status weir_place_check(const weir_allocator *alloc,
                             const weir_place_problem *p,
                             const weir_place_plan *plan, int64_t *peaks,
                             weir_error *err) {
  checker c = {.alloc = alloc, .p = p, .plan = plan, .err = err};
  size_t most =
      2 * ((size_t)p->node_count + p->tensor_count + plan->copy_count) + 1;
  c.events = weir_alloc_array(alloc, most, sizeof *c.events);
  c.last_use =
      weir_alloc_array(alloc, (size_t)p->tensor_count + 1, sizeof *c.last_use);
  weir_status s = WEIR_OK;
  if (c.events == NULL || c.last_use == NULL)
    s = weir_fail_memory(err, most * sizeof *c.events);
  if (s == WEIR_OK) s = check_nodes(&c);
  if (s == WEIR_OK) s = check_groups(&c);
  if (s == WEIR_OK) s = check_devices(&c);
  if (s == WEIR_OK) s = check_copies(&c);
  if (s == WEIR_OK) s = check_arrivals(&c);
  if (s == WEIR_OK) s = check_memory(&c, peaks);
  weir_free(alloc, c.events);
  weir_free(alloc, c.last_use);
  return s;
}
