/* SPDX-License-Identifier: Apache-2.0 */
/* New times for a plan (plan_retime.h).
 *
 * Nodes and copies are one list, by their old starts; at equal starts nodes
 * without a duration come as numbered, which is topological, each after the
 * copies that it waits for. A thing of the list waits for things before it
 * only, so one walk times all. The copy that a node reads is the last that had
 * arrived at its device, and a copy leaves from where the last one before it
 * arrived, or from its producer: a tensor may be sent away and back.
 *
 * A device sends a node's tensors directly after the node, one after the other
 * by their old starts; so the next node of the device waits for these sends,
 * and the copies stand in the list where they got their links. A later copy of
 * a tensor to the same device, or one from another device, is sent when its
 * turn comes. */
#include "placement/plan_retime.h"

#include <assert.h>
#include <stdlib.h>

/* A node, or a copy where |is_copy|. */
typedef struct timed {
  int64_t start_ns, end_ns; /* of the old plan */
  int64_t turn_ns;          /* its place among all */
  int64_t sent_ns;          /* new; of a copy with |is_next| */
  int64_t new_end_ns;
  uint32_t id, rank; /* rank: the node, or the producer of the copy's tensor */
  bool is_copy;
  bool is_next; /* it is sent directly after its node */
} timed;

typedef struct retimer {
  const weir_place_problem *p;
  weir_place_plan *plan;
  timed *list;              /* by old start */
  timed **turns;            /* the same by turn */
  uint32_t count;           /* in |list| */
  timed **copies;           /* of all copies, by tensor and old start */
  uint32_t *first;          /* [tensor]..[tensor + 1] in |copies| */
  int64_t *devices, *links; /* when they are free */
  int64_t *ends;            /* per node: the new end */
} retimer;

static int64_t copy_time(const weir_place_problem *p,
                         const weir_place_copy *c) {
  return weir_place_copy_ns(&p->links[c->link], p->tensor_bytes[c->tensor]);
}

static int64_t send_time(const weir_place_problem *p,
                         const weir_place_copy *c) {
  return weir_place_send_ns(&p->links[c->link], p->tensor_bytes[c->tensor]);
}

bool weir_place_plan_has_other_times(const weir_place_problem *p,
                                     const weir_place_plan *plan,
                                     bool is_sound) {
  bool other = false;
  for (uint32_t n = 0; n < p->node_count; n++) {
    int64_t cost = weir_place_cost(p, n, plan->device[n]);
    if (cost == WEIR_PLACE_NO_KERNEL || plan->start_ns[n] < 0 ||
        plan->end_ns[n] < plan->start_ns[n])
      return false;
    other |= plan->end_ns[n] - plan->start_ns[n] != cost;
  }
  for (uint32_t c = 0; c < plan->copy_count; c++) {
    const weir_place_copy *copy = &plan->copies[c];
    if (copy->link == WEIR_PLACE_NONE || copy->start_ns < 0 ||
        copy->end_ns < copy->start_ns)
      return false;
    int64_t spare = copy->end_ns - copy->start_ns - copy_time(p, copy);
    other |= spare < 0 || (send_time(p, copy) == 0 ? spare > 0 : !is_sound);
  }
  return other;
}

/* By turn; then those that end at once, then by the node, copies last. */
static int compare_timed(const void *a, const void *b) {
  const timed *x = a, *y = b;
  bool x_long = x->end_ns > x->start_ns, y_long = y->end_ns > y->start_ns;
  if (x->turn_ns != y->turn_ns) return x->turn_ns < y->turn_ns ? -1 : 1;
  if (x_long != y_long) return x_long ? 1 : -1;
  if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
  if (x->is_copy != y->is_copy) return x->is_copy ? 1 : -1;
  return x->id < y->id ? -1 : x->id > y->id;
}

static int compare_turns(const void *a, const void *b) {
  return compare_timed(*(timed *const *)a, *(timed *const *)b);
}

static weir_status retimer_begin(retimer *r, const weir_allocator *a,
                                 weir_error *err) {
  const weir_place_problem *p = r->p;
  size_t all = (size_t)p->node_count + r->plan->copy_count + 1;
  r->list = weir_alloc_array(a, all, sizeof *r->list);
  r->turns = weir_alloc_array(a, all, sizeof *r->turns);
  r->copies = weir_alloc_array(a, all, sizeof *r->copies);
  r->first = weir_alloc_array(a, (size_t)p->tensor_count + 2, sizeof *r->first);
  r->devices = weir_alloc_array(a, p->device_count, sizeof *r->devices);
  r->links = weir_alloc_array(a, (size_t)p->link_count + 1, sizeof *r->links);
  r->ends = weir_alloc_array(a, all, sizeof *r->ends);
  return r->list != NULL && r->turns != NULL && r->copies != NULL &&
                 r->first != NULL && r->devices != NULL && r->links != NULL &&
                 r->ends != NULL
             ? WEIR_OK
             : weir_fail_memory(err, all * sizeof *r->list);
}

static void retimer_end(retimer *r, const weir_allocator *a) {
  weir_free(a, r->list);
  weir_free(a, r->turns);
  weir_free(a, r->copies);
  weir_free(a, r->first);
  weir_free(a, r->devices);
  weir_free(a, r->links);
  weir_free(a, r->ends);
}

static void fill_list(retimer *r) {
  const weir_place_plan *plan = r->plan;
  for (uint32_t n = 0; n < r->p->node_count; n++)
    r->list[r->count++] = (timed){.start_ns = plan->start_ns[n],
                                  .end_ns = plan->end_ns[n],
                                  .turn_ns = plan->start_ns[n],
                                  .new_end_ns = -1,
                                  .id = n,
                                  .rank = n};
  for (uint32_t c = 0; c < plan->copy_count; c++) {
    const weir_place_copy *copy = &plan->copies[c];
    r->list[r->count++] = (timed){.start_ns = copy->start_ns,
                                  .end_ns = copy->end_ns,
                                  .turn_ns = copy->start_ns,
                                  .new_end_ns = -1,
                                  .id = c,
                                  .rank = r->p->tensor_node[copy->tensor],
                                  .is_copy = true};
  }
  qsort(r->list, r->count, sizeof *r->list, compare_timed);
  for (uint32_t c = 0; c < plan->copy_count; c++)
    r->first[plan->copies[c].tensor + 2]++;
  for (uint32_t t = 0; t < r->p->tensor_count; t++)
    r->first[t + 2] += r->first[t + 1];
  for (uint32_t i = 0; i < r->count; i++)
    if (r->list[i].is_copy)
      r->copies[r->first[plan->copies[r->list[i].id].tensor + 1]++] =
          &r->list[i];
}

/* Whether copy |i| of |copies| goes directly after its node. Where memory is
 * capped it may have waited for room. */
static bool is_sent_next(const retimer *r, uint32_t i) {
  const weir_place_problem *p = r->p;
  const weir_place_copy *c = &r->plan->copies[r->copies[i]->id];
  uint32_t maker = p->tensor_node[c->tensor];
  if (send_time(p, c) == 0 || c->from != r->plan->device[maker]) return false;
  for (uint32_t k = r->first[c->tensor]; k < i; k++)
    if (r->plan->copies[r->copies[k]->id].to == c->to) return false;
  return p->devices[c->to].memory_bytes == INT64_MAX ||
         c->start_ns == r->plan->end_ns[maker];
}

/* Copies that go directly after their node have their turns on their links. */
static void take_turns(retimer *r) {
  for (uint32_t i = 0; i < r->plan->copy_count; i++) {
    timed *t = r->copies[i];
    int64_t begin = t->end_ns - copy_time(r->p, &r->plan->copies[t->id]);
    t->is_next = is_sent_next(r, i);
    if (t->is_next && begin > t->turn_ns) t->turn_ns = begin;
  }
  for (uint32_t i = 0; i < r->count; i++) r->turns[i] = &r->list[i];
  qsort(r->turns, r->count, sizeof *r->turns, compare_turns);
}

/* When |tensor| is on |device|, for a thing that began at |before_ns|. */
static int64_t arrival(const retimer *r, uint32_t tensor, uint32_t device,
                       int64_t before_ns) {
  int64_t at = r->ends[r->p->tensor_node[tensor]];
  for (uint32_t i = r->first[tensor]; i < r->first[tensor + 1]; i++) {
    const timed *c = r->copies[i];
    if (r->plan->copies[c->id].to == device && c->end_ns <= before_ns &&
        c->new_end_ns >= 0)
      at = c->new_end_ns;
  }
  return at;
}

static void time_copy(retimer *r, timed *t) {
  weir_place_copy *c = &r->plan->copies[t->id];
  const weir_place_link *link = &r->p->links[c->link];
  int64_t bytes = r->p->tensor_bytes[c->tensor];
  int64_t send = send_time(r->p, c);
  int64_t start =
      t->is_next ? t->sent_ns : arrival(r, c->tensor, c->from, t->start_ns);
  if (!t->is_next && send > 0) {
    if (r->devices[c->from] > start) start = r->devices[c->from];
    r->devices[c->from] = start + send;
  }
  int64_t begin = start;
  if (link->exclusive && r->links[c->link] > begin) begin = r->links[c->link];
  c->start_ns = send > 0 ? start : begin;
  c->end_ns = t->new_end_ns = begin + copy_time(r->p, c);
  r->links[c->link] = begin + weir_place_link_ns(link, bytes);
}

/* The sends of |node|, which has ended at |end|; returns when they have. */
static int64_t send_next(retimer *r, uint32_t node, int64_t end) {
  const weir_place_problem *p = r->p;
  for (uint32_t t = p->out_first[node]; t < p->out_first[node + 1]; t++)
    for (uint32_t i = r->first[t]; i < r->first[t + 1]; i++) {
      if (!r->copies[i]->is_next) continue;
      r->copies[i]->sent_ns = end;
      end += send_time(p, &r->plan->copies[r->copies[i]->id]);
    }
  return end;
}

static void time_node(retimer *r, const timed *t) {
  const weir_place_problem *p = r->p;
  uint32_t n = t->id, device = r->plan->device[n];
  int64_t start = r->devices[device];
  for (uint32_t k = p->in_first[n]; k < p->in_first[n + 1]; k++) {
    int64_t at = arrival(r, p->in_tensor[k], device, t->start_ns);
    if (at > start) start = at;
  }
  int64_t end = start + weir_place_cost(p, n, device);
  r->plan->start_ns[n] = start;
  r->plan->end_ns[n] = r->ends[n] = end;
  r->devices[device] = send_next(r, n, end);
  if (end > r->plan->makespan_ns) r->plan->makespan_ns = end;
}

weir_status weir_place_plan_retime(const weir_allocator *alloc,
                                   const weir_place_problem *p,
                                   weir_place_plan *plan, weir_error *err) {
  retimer r = {.p = p, .plan = plan};
  weir_status s = retimer_begin(&r, alloc, err);
  if (s == WEIR_OK) {
    fill_list(&r);
    take_turns(&r);
    plan->makespan_ns = 0;
    for (uint32_t i = 0; i < r.count; i++)
      if (r.turns[i]->is_copy)
        time_copy(&r, r.turns[i]);
      else
        time_node(&r, r.turns[i]);
  }
  retimer_end(&r, alloc);
  return s;
}
