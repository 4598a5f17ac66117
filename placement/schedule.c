/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/schedule.h"

#include "placement/timeline.h"

enum { EVERY_DEVICE = 32 }; /* more are looked at by class */

struct weir_scheduler {
  const weir_allocator *alloc;
  const weir_place_problem *p;
  weir_timeline *devices, *links;
  uint32_t *copy_of;   /* per tensor: its latest copy + 1 */
  uint32_t *copy_next; /* per copy: an earlier one of its tensor + 1 */
  size_t next_capacity;
  uint32_t *group_device; /* per group, NONE: open */
  uint32_t *candidates;
  int64_t *promised; /* per link, while one node is looked at */
  uint32_t *touched; /* links with a promise */
  uint32_t touched_count;
};

/* A device for one node. */
typedef struct fit {
  uint32_t device;
  int64_t start, end, idle;
  bool possible;
} fit;

weir_status weir_scheduler_create(const weir_allocator *alloc,
                                  const weir_place_problem *p,
                                  weir_scheduler **out_scheduler,
                                  weir_error *err) {
  *out_scheduler = NULL;
  weir_scheduler *s = weir_alloc_array(alloc, 1, sizeof *s);
  if (s == NULL) return weir_fail_memory(err, sizeof *s);
  s->alloc = alloc;
  s->p = p;
  size_t links = (size_t)p->link_count + 1;
  s->devices = weir_alloc_array(alloc, p->device_count, sizeof *s->devices);
  s->links = weir_alloc_array(alloc, links, sizeof *s->links);
  s->copy_of =
      weir_alloc_array(alloc, (size_t)p->tensor_count + 1, sizeof *s->copy_of);
  s->group_device = weir_alloc_array(alloc, (size_t)p->group_count + 1,
                                     sizeof *s->group_device);
  s->candidates =
      weir_alloc_array(alloc, p->device_count, sizeof *s->candidates);
  s->promised = weir_alloc_array(alloc, links, sizeof *s->promised);
  s->touched = weir_alloc_array(alloc, links, sizeof *s->touched);
  if (s->devices == NULL || s->links == NULL || s->copy_of == NULL ||
      s->group_device == NULL || s->candidates == NULL || s->promised == NULL ||
      s->touched == NULL) {
    weir_scheduler_release(s);
    return weir_fail_memory(err, p->tensor_count * sizeof *s->copy_of);
  }
  *out_scheduler = s;
  return WEIR_OK;
}

void weir_scheduler_release(weir_scheduler *s) {
  if (s == NULL) return;
  weir_free(s->alloc, s->devices);
  weir_free(s->alloc, s->links);
  weir_free(s->alloc, s->copy_of);
  weir_free(s->alloc, s->copy_next);
  weir_free(s->alloc, s->group_device);
  weir_free(s->alloc, s->candidates);
  weir_free(s->alloc, s->promised);
  weir_free(s->alloc, s->touched);
  weir_free(s->alloc, s);
}

/* ---- When tensors are there */

/* When a copy over |link| that can begin at |ready| begins, after what this
 * node has been promised on it already. */
static int64_t copy_start(const weir_scheduler *s, uint32_t link, int64_t ready,
                          int64_t ns) {
  if (!s->p->links[link].exclusive) return ready;
  if (s->promised[link] > ready) ready = s->promised[link];
  return weir_timeline_find(&s->links[link], ready, ns);
}

static void promise(weir_scheduler *s, uint32_t link, int64_t end) {
  if (s->promised[link] == 0) s->touched[s->touched_count++] = link;
  s->promised[link] = end;
}

static void forget_promises(weir_scheduler *s) {
  for (uint32_t i = 0; i < s->touched_count; i++)
    s->promised[s->touched[i]] = 0;
  s->touched_count = 0;
}

/* The end of an earlier copy of |tensor| to |device|, or -1. */
static int64_t arrived(const weir_scheduler *s, const weir_place_plan *plan,
                       uint32_t tensor, uint32_t device) {
  for (uint32_t c = s->copy_of[tensor]; c != 0; c = s->copy_next[c - 1])
    if (plan->copies[c - 1].to == device) return plan->copies[c - 1].end_ns;
  return -1;
}

/* When all tensors of |node| are on |device|; -1: there is no way. */
static int64_t inputs_ready(weir_scheduler *s, const weir_place_plan *plan,
                            uint32_t node, uint32_t device) {
  const weir_place_problem *p = s->p;
  int64_t ready = 0;
  for (uint32_t i = p->in_first[node]; i < p->in_first[node + 1]; i++) {
    uint32_t t = p->in_tensor[i], from = plan->device[p->tensor_node[t]];
    int64_t end = plan->end_ns[p->tensor_node[t]];
    if (from != device) {
      int64_t there = arrived(s, plan, t, device);
      if (there < 0) {
        uint32_t link = p->link_of[(size_t)from * p->device_count + device];
        if (link == WEIR_PLACE_NONE) {
          ready = -1;
          break;
        }
        int64_t ns = weir_place_copy_ns(&p->links[link], p->tensor_bytes[t]);
        there = copy_start(s, link, end, ns) + ns;
        if (p->links[link].exclusive && ns > 0) promise(s, link, there);
      }
      end = there;
    }
    if (end > ready) ready = end;
  }
  forget_promises(s);
  return ready;
}

/* ---- Choosing a device */

static fit try_device(weir_scheduler *s, const weir_place_plan *plan,
                      uint32_t node, uint32_t device) {
  fit f = {.device = device};
  int64_t cost = weir_place_cost(s->p, node, device);
  if (cost == WEIR_PLACE_NO_KERNEL) return f;
  int64_t ready = inputs_ready(s, plan, node, device);
  if (ready < 0) return f;
  const weir_timeline *t = &s->devices[device];
  f.start = weir_timeline_find(t, ready, cost);
  f.end = f.start + cost;
  f.idle = f.start >= t->tail ? f.start - t->tail : 0;
  f.possible = true;
  return f;
}

static bool better(const fit *a, const fit *b) {
  if (!a->possible || !b->possible) return a->possible;
  if (a->end != b->end) return a->end < b->end;
  if (a->idle != b->idle) return a->idle < b->idle;
  return a->device < b->device;
}

static uint32_t add_candidate(weir_scheduler *s, uint32_t count,
                              uint32_t device) {
  for (uint32_t i = 0; i < count; i++)
    if (s->candidates[i] == device) return count;
  s->candidates[count] = device;
  return count + 1;
}

/* Devices that may be best: all of a few; of many those that hold an input and
 * the one of each class that is free first. */
static uint32_t find_candidates(weir_scheduler *s, const weir_place_plan *plan,
                                uint32_t node) {
  const weir_place_problem *p = s->p;
  uint32_t count = 0, best[WEIR_PLACE_CLASSES];
  if (p->device_count <= EVERY_DEVICE) {
    for (uint32_t d = 0; d < p->device_count; d++)
      if (weir_place_allows(p, node, d)) s->candidates[count++] = d;
    return count;
  }
  for (uint32_t c = 0; c < p->class_count; c++) best[c] = WEIR_PLACE_NONE;
  for (uint32_t d = 0; d < p->device_count; d++) {
    uint32_t c = p->devices[d].cls;
    if (weir_place_allows(p, node, d) &&
        (best[c] == WEIR_PLACE_NONE ||
         s->devices[d].tail < s->devices[best[c]].tail))
      best[c] = d;
  }
  for (uint32_t c = 0; c < p->class_count; c++)
    if (best[c] != WEIR_PLACE_NONE) count = add_candidate(s, count, best[c]);
  for (uint32_t i = p->in_first[node]; i < p->in_first[node + 1]; i++)
    count =
        add_candidate(s, count, plan->device[p->tensor_node[p->in_tensor[i]]]);
  return count;
}

static fit choose(weir_scheduler *s, const weir_schedule_input *input,
                  weir_place_plan *plan, uint32_t node) {
  uint32_t group = s->p->group[node];
  uint32_t forced =
      input->device == NULL ? WEIR_PLACE_NONE : input->device[node];
  plan->reason[node] = WEIR_PLACE_EFT;
  if (group != WEIR_PLACE_NONE && s->group_device[group] != WEIR_PLACE_NONE) {
    plan->reason[node] = WEIR_PLACE_COLOCATED;
    return try_device(s, plan, node, s->group_device[group]);
  }
  if (forced != WEIR_PLACE_NONE) {
    plan->reason[node] = WEIR_PLACE_SEARCH;
    return try_device(s, plan, node, forced);
  }
  uint32_t count = find_candidates(s, plan, node);
  fit best = {0};
  for (uint32_t i = 0; i < count; i++) {
    fit f = try_device(s, plan, node, s->candidates[i]);
    if (better(&f, &best)) best = f;
  }
  if (count == 1) plan->reason[node] = WEIR_PLACE_ONLY;
  return best;
}

/* ---- Carrying it out */

static bool add_copy(weir_scheduler *s, weir_place_plan *plan, uint32_t tensor,
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
  s->copy_next[c] = s->copy_of[tensor];
  s->copy_of[tensor] = c + 1;
  plan->copy_count++;
  return true;
}

/* The same steps as inputs_ready, for good. */
static bool bring_inputs(weir_scheduler *s, weir_place_plan *plan,
                         uint32_t node, uint32_t device) {
  const weir_place_problem *p = s->p;
  for (uint32_t i = p->in_first[node]; i < p->in_first[node + 1]; i++) {
    uint32_t t = p->in_tensor[i], from = plan->device[p->tensor_node[t]];
    if (from == device || arrived(s, plan, t, device) >= 0) continue;
    uint32_t link = p->link_of[(size_t)from * p->device_count + device];
    int64_t ns = weir_place_copy_ns(&p->links[link], p->tensor_bytes[t]);
    int64_t start = copy_start(s, link, plan->end_ns[p->tensor_node[t]], ns);
    if (p->links[link].exclusive && ns > 0) {
      promise(s, link, start + ns);
      weir_timeline_take(&s->links[link], start, ns);
    }
    weir_place_copy copy = {t, from, device, link, start, start + ns};
    if (!add_copy(s, plan, t, &copy)) return false;
  }
  forget_promises(s);
  return true;
}

static void reset(weir_scheduler *s, weir_place_plan *plan) {
  const weir_place_problem *p = s->p;
  for (uint32_t d = 0; d < p->device_count; d++)
    s->devices[d].tail = 0, s->devices[d].count = 0;
  for (uint32_t l = 0; l < p->link_count; l++)
    s->links[l].tail = 0, s->links[l].count = 0;
  memset(s->copy_of, 0, p->tensor_count * sizeof *s->copy_of);
  memset(s->group_device, 0xff, p->group_count * sizeof *s->group_device);
  plan->copy_count = 0;
  plan->makespan_ns = 0;
}

static weir_status no_device(const weir_place_problem *p, uint32_t node,
                             weir_error *err) {
  weir_error_id id =
      p->group[node] == WEIR_PLACE_NONE ? WEIR_W3014 : WEIR_W3012;
  return weir_fail(err, id, NULL,
                   "node %u %.*s has no device that its inputs "
                   "can reach and its group may use",
                   node, (int)p->names[node].size, p->names[node].data);
}

weir_status weir_schedule_run(weir_scheduler *s,
                              const weir_schedule_input *input,
                              weir_place_plan *plan, bool *out_complete,
                              weir_error *err) {
  const weir_place_problem *p = s->p;
  if (out_complete != NULL) *out_complete = false;
  reset(s, plan);
  for (uint32_t i = 0; i < p->node_count; i++) {
    uint32_t n = input->order[i];
    fit f = choose(s, input, plan, n);
    if (!f.possible) return no_device(p, n, err);
    if (input->stop_ns != 0 && f.end >= input->stop_ns) return WEIR_OK;
    if (!bring_inputs(s, plan, n, f.device))
      return weir_fail_memory(err, sizeof(weir_place_copy));
    weir_timeline_take(&s->devices[f.device], f.start, f.end - f.start);
    plan->device[n] = f.device;
    plan->start_ns[n] = f.start;
    plan->end_ns[n] = f.end;
    if (f.end > plan->makespan_ns) plan->makespan_ns = f.end;
    if (p->group[n] != WEIR_PLACE_NONE) s->group_device[p->group[n]] = f.device;
  }
  if (out_complete != NULL) *out_complete = true;
  return WEIR_OK;
}
