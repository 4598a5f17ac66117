/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/schedule/schedule_internal.h"

#include <assert.h>

#include "placement/schedule/schedule_copy.h"
#include "placement/schedule/schedule_fetch.h"
#include "placement/schedule/schedule_kept.h"
#include "placement/schedule/schedule_memory.h"
#include "placement/schedule/schedule_sends.h"
#include "runtime/base/size.h"

/* A node is looked at on every candidate device before it is placed, so that
 * this must change nothing: copies that would be made are promises, kept per
 * link and sender for the node in hand only (two inputs must not take one
 * moment of a link), and |there| keeps their ends as complements.
 * weir_schedule_settle then turns the chosen candidate's promises into copies.
 *
 * Invariant: all that is placed is final. Nothing moves later, so a start that
 * a timeline gave stays free until it is taken.
 *
 * Cost: nodes * candidates * inputs; a timeline remembers WEIR_GAPS gaps only,
 * so that each insertion has constant cost. |limit| ends the look at a
 * candidate as soon as it cannot beat the best. */

enum {
  EVERY_DEVICE = 32 /* more are looked at by class */
};

static uint32_t most_inputs(const weir_place_problem *p) {
  uint32_t most = 1;
  for (uint32_t n = 0; n < p->node_count; n++)
    if (p->in_first[n + 1] - p->in_first[n] > most)
      most = p->in_first[n + 1] - p->in_first[n];
  return most;
}

static bool allocate(weir_scheduler *s, size_t inputs) {
  const weir_allocator *a = s->alloc;
  const weir_place_problem *p = s->p;
  size_t links = (size_t)p->link_count + 1, devices = p->device_count;
  /* Of many devices few are candidates: one of each class, one per input. */
  size_t candidates = devices <= EVERY_DEVICE ? devices
                      : p->class_count + inputs < devices
                          ? p->class_count + inputs
                          : devices;
  size_t cells;
  if (!weir_size_mul(inputs, candidates, &cells)) return false;
  s->devices = weir_alloc_array(a, devices, sizeof *s->devices);
  s->links = weir_alloc_array(a, links, sizeof *s->links);
  s->made = weir_alloc_array(a, (size_t)p->tensor_count + 1, sizeof *s->made);
  s->group_device =
      weir_alloc_array(a, (size_t)p->group_count + 1, sizeof *s->group_device);
  s->promised = weir_alloc_array(a, links + devices, sizeof *s->promised);
  s->touched = weir_alloc_array(a, links + devices, sizeof *s->touched);
  s->inputs = weir_alloc_array(a, inputs, sizeof *s->inputs);
  s->candidates = weir_alloc_array(a, candidates, sizeof *s->candidates);
  s->there = weir_alloc_array(a, cells, sizeof *s->there);
  s->slot = weir_alloc_array(a, devices, sizeof *s->slot);
  if (!weir_schedule_sends_create(s, cells)) return false;
  return s->devices != NULL && s->links != NULL && s->made != NULL &&
         s->group_device != NULL && s->promised != NULL && s->touched != NULL &&
         s->inputs != NULL && s->candidates != NULL && s->there != NULL &&
         s->slot != NULL;
}

weir_status weir_scheduler_create(const weir_allocator *alloc,
                                  const weir_place_problem *p,
                                  weir_scheduler **out_scheduler,
                                  weir_error *err) {
  *out_scheduler = NULL;
  weir_scheduler *s = weir_alloc_array(alloc, 1, sizeof *s);
  if (s == NULL) return weir_fail_memory(err, sizeof *s);
  s->alloc = alloc;
  s->p = p;
  if (!allocate(s, most_inputs(p)) || !weir_schedule_memory_create(s)) {
    weir_scheduler_release(s);
    return weir_fail_memory(err, p->tensor_count * sizeof *s->made);
  }
  for (uint32_t t = 0; t < p->tensor_count; t++)
    s->made[t].bytes = p->tensor_bytes[t];
  *out_scheduler = s;
  return WEIR_OK;
}

void weir_scheduler_release(weir_scheduler *s) {
  if (s == NULL) return;
  weir_free(s->alloc, s->devices);
  weir_free(s->alloc, s->links);
  weir_free(s->alloc, s->made);
  weir_free(s->alloc, s->copy_next);
  weir_free(s->alloc, s->group_device);
  weir_free(s->alloc, s->promised);
  weir_free(s->alloc, s->touched);
  weir_free(s->alloc, s->inputs);
  weir_free(s->alloc, s->candidates);
  weir_free(s->alloc, s->there);
  weir_free(s->alloc, s->slot);
  weir_schedule_memory_release(s);
  weir_schedule_sends_release(s);
  weir_free(s->alloc, s);
}

bool weir_schedule_is_capped(const weir_scheduler *s) {
  return s->memory != NULL;
}

/* ---- Candidates: devices that may be best. */

static void add_candidate(weir_scheduler *s, uint32_t node, uint32_t device) {
  assert(node < s->p->node_count && device < s->p->device_count);
  int64_t cost = weir_place_cost(s->p, node, device);
  if (cost == WEIR_PLACE_NO_KERNEL || s->slot[device] != 0) return;
  s->candidates[s->candidate_count] =
      (weir_fit){.device = device, .at = s->candidate_count, .cost = cost};
  s->slot[device] = ++s->candidate_count;
}

static void forget_candidates(weir_scheduler *s) {
  for (uint32_t c = 0; c < s->candidate_count; c++)
    s->slot[s->candidates[c].device] = 0;
  s->candidate_count = 0;
}

/* All of a few; of many those that hold an input and the one of each class that
 * is free first. */
static void find_candidates(weir_scheduler *s, uint32_t node) {
  const weir_place_problem *p = s->p;
  uint32_t best[WEIR_PLACE_CLASSES];
  if (p->device_count <= EVERY_DEVICE) {
    for (uint32_t d = 0; d < p->device_count; d++) add_candidate(s, node, d);
    return;
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
    if (best[c] != WEIR_PLACE_NONE) add_candidate(s, node, best[c]);
  for (uint32_t i = p->in_first[node]; i < p->in_first[node + 1]; i++)
    add_candidate(s, node, s->made[p->in_tensor[i]].device);
}

/* ---- When tensors are there */

/* Reads the arrivals of the inputs, once for all candidates. */
static void gather(weir_scheduler *s, const weir_place_plan *plan,
                   uint32_t node) {
  const weir_place_problem *p = s->p;
  uint32_t first = p->in_first[node], count = p->in_first[node + 1] - first;
  int64_t *there = s->there;
  s->input_count = count;
  s->made_ns = 0;
  for (uint32_t i = 0; i < count; i++, there += s->candidate_count) {
    uint32_t t = p->in_tensor[first + i];
    const weir_made *m = &s->made[t];
    s->inputs[i] = (weir_wanted){m->ready_ns, m->bytes, t, m->device};
    if (m->ready_ns > s->made_ns) s->made_ns = m->ready_ns;
    for (uint32_t c = 0; c < s->candidate_count; c++) there[c] = WEIR_NOT_THERE;
    for (uint32_t c = m->copies; c != 0; c = s->copy_next[c - 1]) {
      uint32_t slot = s->slot[plan->copies[c - 1].to];
      if (s->memory != NULL && s->memory->copy_last[c - 1] < 0) continue;
      if (slot != 0) there[slot - 1] = plan->copies[c - 1].end_ns;
    }
    if (s->slot[m->device] != 0) there[s->slot[m->device] - 1] = m->ready_ns;
  }
}

static void promise(weir_scheduler *s, uint32_t place, int64_t end) {
  if (s->promised[place] == 0) s->touched[s->touched_count++] = place;
  s->promised[place] = end;
}

static void forget_promises(weir_scheduler *s) {
  for (uint32_t i = 0; i < s->touched_count; i++)
    s->promised[s->touched[i]] = 0;
  s->touched_count = 0;
}

/* When |bytes| more fit on |device| for good, not before |ready|; -1: never. */
static int64_t find_room(const weir_scheduler *s, uint32_t device,
                         int64_t ready, int64_t bytes) {
  return s->memory == NULL
             ? ready
             : weir_room_find(&s->memory->rooms[device], ready, bytes);
}

/* When the copy of input |i| to the candidate's device ends; -1: no way. */
static int64_t bring(weir_scheduler *s, uint32_t i, weir_fit *f) {
  const weir_place_problem *p = s->p;
  const weir_wanted *w = &s->inputs[i];
  uint32_t link = p->link_of[(size_t)w->from * p->device_count + f->device];
  assert(w->from != f->device); /* there it is at once: see gather */
  if (link == WEIR_PLACE_NONE) return -1;
  if (s->memory != NULL)
    f->bytes += weir_schedule_memory_takes(s, w->tensor, f->device);
  int64_t ready = find_room(s, f->device, w->ready_ns, f->bytes);
  if (ready < 0) {
    f->short_bytes = 1; /* the sum is not known yet */
    return -1;
  }
  weir_copy_times t = weir_schedule_copy_times(&p->links[link], w->bytes);
  int64_t sent = ready;
  if (s->sends != NULL &&
      weir_schedule_sends_find(s, w->tensor, ready, t.send, &sent))
    promise(s, p->link_count + w->from, sent + t.send);
  int64_t start = weir_schedule_link_start(s, link, sent, &t);
  if (t.on_link > 0) promise(s, link, start + t.on_link);
  if (s->sends != NULL)
    s->sends->start[(size_t)i * s->candidate_count + f->at] =
        t.send > 0 ? sent : start;
  return start + t.whole;
}

/* When all inputs are on the candidate's device; -1: there is no way, or not
 * before |limit|, past which the answer does not matter. */
static int64_t inputs_ready(weir_scheduler *s, weir_fit *f, int64_t limit) {
  int64_t ready = 0;
  for (uint32_t i = 0; i < s->input_count && ready >= 0; i++) {
    int64_t *there = &s->there[(size_t)i * s->candidate_count + f->at];
    int64_t end = *there;
    if (end == WEIR_NOT_THERE) {
      end = bring(s, i, f);
      if (end >= 0) *there = ~end;
    }
    if (end < 0 || end > limit)
      ready = -1;
    else if (end > ready)
      ready = end;
  }
  forget_promises(s);
  return ready;
}

/* ---- Choosing a device */

/* The bytes that |node| takes while it runs: this peak is reserved for all the
 * time after it. */
static int64_t needed_bytes(const weir_scheduler *s, uint32_t node,
                            uint32_t device) {
  const weir_place_problem *p = s->p;
  int64_t bytes = weir_schedule_memory_temp(s, node, device);
  for (uint32_t t = p->out_first[node]; t < p->out_first[node + 1]; t++)
    if (weir_schedule_memory_keeper(s, t, node, device) != device)
      bytes += weir_place_held(p, p->tensor_bytes[t]);
  return bytes;
}

/* Leaves a candidate that cannot end by |limit| impossible. */
static void try_candidate(weir_scheduler *s, weir_fit *f, int64_t limit) {
  int64_t ready = inputs_ready(s, f, limit - f->cost);
  if (ready >= 0) ready = find_room(s, f->device, ready, f->bytes);
  if (ready < 0) return;
  const weir_timeline *t = &s->devices[f->device];
  f->start = weir_timeline_find(t, ready, f->cost + s->send_ns);
  f->end = f->start + f->cost;
  f->idle = f->start >= t->tail ? f->start - t->tail : 0;
  f->possible = true;
}

/* The same with caps: how many bytes |node| adds, and whether they fit. */
static void try_in_memory(weir_scheduler *s, uint32_t node, weir_fit *f,
                          int64_t keep_bytes) {
  const weir_room *room = &s->memory->rooms[f->device];
  f->resident = weir_schedule_memory_resident(s, node, f->device, keep_bytes);
  if (f->resident < 0) {
    f->short_bytes = 1;
    return;
  }
  f->bytes = f->resident + needed_bytes(s, node, f->device);
  f->room = weir_room_left(room) - f->bytes;
  for (uint32_t i = 0; i < s->input_count; i++)
    if (s->there[(size_t)i * s->candidate_count + f->at] == WEIR_NOT_THERE)
      f->room -= weir_schedule_memory_takes(s, s->inputs[i].tensor, f->device);
  try_candidate(s, f, INT64_MAX);
  if (!f->possible && f->room < 0) f->short_bytes = -f->room;
}

static bool better(const weir_fit *a, const weir_fit *b,
                   weir_schedule_rule rule) {
  if (!a->possible || !b->possible) return a->possible;
  if (rule == WEIR_SCHEDULE_LEAST && a->bytes != b->bytes)
    return a->bytes < b->bytes;
  if (rule == WEIR_SCHEDULE_ROOM && a->room != b->room)
    return a->room > b->room;
  if (a->end != b->end) return a->end < b->end;
  if (a->idle != b->idle) return a->idle < b->idle;
  return a->device < b->device;
}

/* Whether a request leaves |node| one device. */
static bool is_only_one(const weir_place_problem *p, uint32_t node) {
  const uint64_t *set = p->sets + (size_t)p->allowed[node] * p->set_words;
  int count = 0;
  for (uint32_t w = 0; w < p->set_words && count < 2; w++)
    count += __builtin_popcountll(set[w]);
  return count == 1;
}

/* Lists the devices where |node| may go; returns the reason it gets there. */
static weir_place_reason list_candidates(weir_scheduler *s,
                                         const weir_schedule_input *input,
                                         uint32_t node, uint32_t must) {
  uint32_t group = s->p->group[node];
  forget_candidates(s);
  if (must != WEIR_PLACE_NONE) {
    add_candidate(s, node, must);
    return WEIR_PLACE_NO_ROOM;
  }
  if (group != WEIR_PLACE_NONE && s->group_device[group] != WEIR_PLACE_NONE) {
    add_candidate(s, node, s->group_device[group]);
    return WEIR_PLACE_COLOCATED;
  }
  if (input->device != NULL && input->device[node] != WEIR_PLACE_NONE) {
    add_candidate(s, node, input->device[node]);
    return is_only_one(s->p, node) ? WEIR_PLACE_ONLY : WEIR_PLACE_SEARCH;
  }
  if (input->cluster != NULL &&
      input->cluster_device[input->cluster[node]] != WEIR_PLACE_NONE) {
    add_candidate(s, node, input->cluster_device[input->cluster[node]]);
    if (s->candidate_count == 1) return WEIR_PLACE_SEARCH;
  }
  find_candidates(s, node);
  return s->candidate_count == 1 ? WEIR_PLACE_ONLY : WEIR_PLACE_EFT;
}

/* Says so if a device that may end the node sooner had no room for it; if none
 * had, which came nearest. */
static void note_refusals(const weir_scheduler *s, weir_fit *best,
                          weir_place_reason *reason) {
  int64_t least = INT64_MAX;
  for (uint32_t c = 0; c < s->candidate_count; c++) {
    const weir_fit *f = &s->candidates[c];
    if (f->possible) continue;
    if (*reason == WEIR_PLACE_EFT && f->early_ns < best->end)
      *reason = WEIR_PLACE_NO_ROOM;
    if (best->possible || f->short_bytes == 0 || f->short_bytes >= least)
      continue;
    least = best->short_bytes = f->short_bytes;
    best->device = f->device;
  }
}

weir_fit weir_schedule_choose(weir_scheduler *s,
                              const weir_schedule_input *input,
                              weir_place_plan *plan, uint32_t node,
                              uint32_t must) {
  weir_fit best = {.end = INT64_MAX};
  weir_place_reason reason = list_candidates(s, input, node, must);
  gather(s, plan, node);
  if (s->sends != NULL) weir_schedule_sends_count(s, node);
  /* First the one that could end first: it rules out others. */
  uint32_t first = 0;
  for (uint32_t c = 0; c < s->candidate_count; c++) {
    weir_fit *f = &s->candidates[c];
    const weir_timeline *t = &s->devices[f->device];
    f->early_ns = weir_timeline_find(t, s->made_ns, f->cost) + f->cost;
    if (f->early_ns < s->candidates[first].early_ns) first = c;
  }
  for (uint32_t i = 0; i < s->candidate_count; i++) {
    uint32_t c = i == 0 ? first : i - (i <= first);
    weir_fit *f = &s->candidates[c];
    if (s->memory != NULL)
      try_in_memory(s, node, f, input->keep_bytes);
    else if (f->early_ns <= best.end)
      try_candidate(s, f, best.end);
    if (better(f, &best, input->rule)) best = *f;
  }
  if (s->memory != NULL) note_refusals(s, &best, &reason);
  if (s->sends == NULL || !s->sends->is_again)
    plan->reason[node] = (uint8_t)reason;
  return best;
}

/* ---- Carrying it out */

/* The copies that inputs_ready found for |f|. */
static bool bring_inputs(weir_scheduler *s, weir_place_plan *plan,
                         const weir_fit *f) {
  const weir_place_problem *p = s->p;
  for (uint32_t i = 0; i < s->input_count; i++) {
    int64_t there = s->there[(size_t)i * s->candidate_count + f->at];
    const weir_wanted *w = &s->inputs[i];
    assert(there != WEIR_NOT_THERE); /* the fit is possible */
    if (there >= 0) continue;
    uint32_t link = p->link_of[(size_t)w->from * p->device_count + f->device];
    weir_copy_times t = weir_schedule_copy_times(&p->links[link], w->bytes);
    weir_place_copy copy = {w->tensor, w->from,          f->device,
                            link,      ~there - t.whole, ~there};
    if (s->sends != NULL)
      copy.start_ns = s->sends->start[(size_t)i * s->candidate_count + f->at];
    weir_schedule_take_copy(s, &copy, &t);
    if (!weir_schedule_add_copy(s, plan, &copy)) return false;
  }
  return true;
}

void weir_schedule_begin(weir_scheduler *s, weir_place_plan *plan) {
  const weir_place_problem *p = s->p;
  for (uint32_t d = 0; d < p->device_count; d++)
    s->devices[d].tail = 0, s->devices[d].count = 0;
  for (uint32_t l = 0; l < p->link_count; l++)
    s->links[l].tail = 0, s->links[l].count = 0;
  memset(s->group_device, 0xff, p->group_count * sizeof *s->group_device);
  plan->copy_count = 0;
  plan->makespan_ns = 0;
}

weir_status weir_schedule_no_device(const weir_scheduler *s, uint32_t node,
                                    weir_error *err) {
  const weir_place_problem *p = s->p;
  weir_error_id id =
      p->group[node] == WEIR_PLACE_NONE ? WEIR_W3014 : WEIR_W3012;
  return weir_fail(err, id, NULL,
                   "node %u %.*s has no device that its inputs "
                   "can reach and its group may use",
                   node, (int)p->names[node].size, p->names[node].data);
}

bool weir_schedule_settle(weir_scheduler *s, weir_place_plan *plan,
                          uint32_t node, const weir_fit *f) {
  const weir_place_problem *p = s->p;
  uint32_t copies = plan->copy_count;
  assert(f->possible && f->start >= 0 && f->end == f->start + f->cost);
  if (!bring_inputs(s, plan, f)) return false;
  weir_timeline_take(&s->devices[f->device], f->start,
                     f->end - f->start + s->send_ns);
  if (s->sends != NULL) weir_schedule_sends_begin(s, node, f->end);
  plan->device[node] = f->device;
  plan->start_ns[node] = f->start;
  plan->end_ns[node] = f->end;
  if (f->end > plan->makespan_ns) plan->makespan_ns = f->end;
  if (p->group[node] != WEIR_PLACE_NONE)
    s->group_device[p->group[node]] = f->device;
  for (uint32_t t = p->out_first[node]; t < p->out_first[node + 1]; t++) {
    s->made[t].ready_ns = f->end;
    s->made[t].device = f->device;
    s->made[t].copies = 0;
  }
  return s->memory == NULL ||
         weir_schedule_memory_count(s, plan, node, f, copies);
}

static weir_status go_on(weir_scheduler *s, const weir_schedule_input *input,
                         uint32_t first, uint32_t last, weir_place_plan *plan,
                         bool *out_complete, weir_error *err) {
  const weir_place_problem *p = s->p;
  assert(s->memory == NULL && first <= last && last <= p->node_count);
  if (out_complete != NULL) *out_complete = false;
  for (uint32_t i = first; i < last; i++) {
    uint32_t n = input->order[i];
    assert(n < p->node_count);
    weir_schedule_fetch(s, input->order + i, p->node_count - i);
    weir_fit f = weir_schedule_choose(s, input, plan, n, WEIR_PLACE_NONE);
    if (!f.possible) return weir_schedule_no_device(s, n, err);
    int64_t tail = input->tail_ns == NULL ? 0 : input->tail_ns[n];
    if (input->stop_ns != 0 && f.end >= input->stop_ns - tail) return WEIR_OK;
    if (!weir_schedule_settle(s, plan, n, &f))
      return weir_fail_memory(err, sizeof(weir_place_copy));
    if (input->cluster != NULL)
      input->cluster_device[input->cluster[n]] = f.device;
  }
  if (out_complete != NULL) *out_complete = true;
  return WEIR_OK;
}

weir_status weir_schedule_go_on(weir_scheduler *s,
                                const weir_schedule_input *input,
                                uint32_t first, uint32_t last,
                                weir_place_plan *plan, bool *out_complete,
                                weir_error *err) {
  if (s->sends != NULL) weir_schedule_sends_know(s, input->device);
  return go_on(s, input, first, last, plan, out_complete, err);
}

weir_status weir_schedule_run_once(weir_scheduler *s,
                                   const weir_schedule_input *input,
                                   weir_place_plan *plan, bool *out_complete,
                                   weir_error *err) {
  weir_schedule_begin(s, plan);
  if (s->memory == NULL)
    return go_on(s, input, 0, s->p->node_count, plan, out_complete, err);
  if (out_complete != NULL) *out_complete = false;
  return weir_schedule_memory_run(s, input, plan, out_complete, err);
}

weir_status weir_schedule_run(weir_scheduler *s,
                              const weir_schedule_input *input,
                              weir_place_plan *plan, bool *out_complete,
                              weir_error *err) {
  if (s->sends != NULL)
    return weir_schedule_sends_run(s, input, plan, out_complete, err);
  return weir_schedule_run_once(s, input, plan, out_complete, err);
}
