/* SPDX-License-Identifier: Apache-2.0 */
/* The sender's part of copies (schedule_sends.h).
 *
 * A device sends the tensors of a node when the node has ended, before it runs
 * the next one. But a list places that next node before it knows who reads the
 * tensors, and all that is placed is final. So there are two schedules: the
 * first chooses devices, as if a copy left at once and its sender worked for it
 * in its next gap; the second has the same order and these devices, and takes
 * the time for all sends of a node with the node itself. Where the devices are
 * given there is only the second.
 *
 * Invariant of the second: from next_ns on left_ns are busy on the timeline of
 * the tensor's device, and enough for one copy to each other device that reads
 * it. A copy that is made again, away from another device or to a device that
 * has no room yet looks for a gap. Under caps the second may find no room where
 * the first did; then one schedule does all, with sends in later gaps.
 *
 * Cost: a second schedule, and O(uses). */
#include "placement/schedule/schedule_sends.h"

#include <assert.h>
#include <string.h>

static bool has_sends(const weir_place_problem *p) {
  for (uint32_t l = 0; l < p->link_count; l++)
    if ((p->links[l].send_ns | p->links[l].send_fs_per_byte) != 0) return true;
  return false;
}

bool weir_schedule_sends_create(weir_scheduler *s, size_t cells) {
  const weir_place_problem *p = s->p;
  const weir_allocator *a = s->alloc;
  if (!has_sends(p)) return true;
  weir_schedule_sends *d = s->sends = weir_alloc_array(a, 1, sizeof *d);
  if (d == NULL) return false;
  d->chosen = weir_alloc_array(a, (size_t)p->node_count + 1, sizeof *d->chosen);
  d->times = weir_alloc_array(a, (size_t)p->tensor_count + 1, sizeof *d->times);
  d->start = weir_alloc_array(a, cells, sizeof *d->start);
  d->stamp = weir_alloc_array(a, p->device_count, sizeof *d->stamp);
  return d->chosen != NULL && d->times != NULL && d->start != NULL &&
         d->stamp != NULL;
}

void weir_schedule_sends_release(weir_scheduler *s) {
  weir_schedule_sends *d = s->sends;
  if (d == NULL) return;
  weir_free(s->alloc, d->chosen);
  weir_free(s->alloc, d->times);
  weir_free(s->alloc, d->start);
  weir_free(s->alloc, d->stamp);
  weir_free(s->alloc, d);
}

bool weir_schedule_has_sends(const weir_scheduler *s) {
  return s->sends != NULL;
}

/* ---- Two schedules */

static bool knows_devices(const weir_place_problem *p, const uint32_t *device) {
  for (uint32_t n = 0; n < p->node_count && device != NULL; n++)
    if (device[n] == WEIR_PLACE_NONE) return false;
  return device != NULL;
}

/* The last schedule ended as a node had no room, not at its stop. */
static bool met_dead_end(const weir_scheduler *s) {
  return s->memory != NULL && s->memory->blame.node != WEIR_PLACE_NONE;
}

void weir_schedule_sends_know(weir_scheduler *s, const uint32_t *device) {
  s->sends->rule = WEIR_SENDS_RESERVED;
  s->sends->is_again = false;
  s->sends->device = device;
}

static weir_status choose_and_time(weir_scheduler *s,
                                   const weir_schedule_input *input,
                                   weir_place_plan *plan, bool *complete,
                                   weir_error *err) {
  weir_schedule_sends *d = s->sends;
  weir_schedule_input second = *input;
  if (knows_devices(s->p, input->device)) {
    weir_schedule_sends_know(s, input->device);
    return weir_schedule_run_once(s, input, plan, complete, err);
  }
  d->rule = WEIR_SENDS_GUESSED;
  d->is_again = false;
  WEIR_TRY(weir_schedule_run_once(s, input, plan, complete, err));
  if (!*complete) return WEIR_OK;
  memcpy(d->chosen, plan->device, s->p->node_count * sizeof *d->chosen);
  second.device = d->chosen;
  second.cluster = NULL;
  weir_schedule_sends_know(s, d->chosen);
  d->is_again = true;
  return weir_schedule_run_once(s, &second, plan, complete, err);
}

weir_status weir_schedule_sends_run(weir_scheduler *s,
                                    const weir_schedule_input *input,
                                    weir_place_plan *plan, bool *out_complete,
                                    weir_error *err) {
  bool complete = false;
  WEIR_TRY(choose_and_time(s, input, plan, &complete, err));
  if (!complete && met_dead_end(s)) {
    s->sends->rule = WEIR_SENDS_LATE;
    s->sends->is_again = false;
    return weir_schedule_run_once(s, input, plan, out_complete, err);
  }
  if (out_complete != NULL) *out_complete = complete;
  return WEIR_OK;
}

/* ---- A node's sends */

/* Those of |tensor| from |from|: one to each other device with a reader. */
static int64_t tensor_sends(weir_scheduler *s, uint32_t tensor, uint32_t from) {
  const weir_place_problem *p = s->p;
  weir_schedule_sends *d = s->sends;
  int64_t sum = 0;
  for (uint32_t u = p->use_first[tensor]; u < p->use_first[tensor + 1]; u++) {
    uint32_t to = d->device[p->use_node[u]];
    uint32_t link = p->link_of[(size_t)from * p->device_count + to];
    if (to == from || link == WEIR_PLACE_NONE || d->stamp[to] == tensor + 1)
      continue;
    d->stamp[to] = tensor + 1;
    int64_t ns = weir_place_send_ns(&p->links[link], p->tensor_bytes[tensor]);
    sum = ns < WEIR_PLACE_COPY_LIMIT - sum ? sum + ns : WEIR_PLACE_COPY_LIMIT;
  }
  for (uint32_t u = p->use_first[tensor]; u < p->use_first[tensor + 1]; u++)
    d->stamp[d->device[p->use_node[u]]] = 0;
  return sum;
}

void weir_schedule_sends_count(weir_scheduler *s, uint32_t node) {
  const weir_place_problem *p = s->p;
  weir_schedule_sends *d = s->sends;
  s->send_ns = 0;
  if (d->rule != WEIR_SENDS_RESERVED || s->candidate_count == 0) return;
  assert(s->candidate_count == 1); /* the device is known */
  for (uint32_t t = p->out_first[node]; t < p->out_first[node + 1]; t++) {
    int64_t ns = tensor_sends(s, t, s->candidates[0].device);
    if (ns > WEIR_PLACE_COPY_LIMIT - s->send_ns) ns = 0; /* copies find gaps */
    d->times[t].left_ns = ns;
    s->send_ns += ns;
  }
}

void weir_schedule_sends_begin(weir_scheduler *s, uint32_t node,
                               int64_t end_ns) {
  const weir_place_problem *p = s->p;
  weir_send_time *times = s->sends->times;
  if (s->sends->rule != WEIR_SENDS_RESERVED) return;
  for (uint32_t t = p->out_first[node]; t < p->out_first[node + 1]; t++) {
    times[t].next_ns = end_ns;
    end_ns += times[t].left_ns;
  }
}

bool weir_schedule_sends_find(const weir_scheduler *s, uint32_t tensor,
                              int64_t ready_ns, int64_t send_ns,
                              int64_t *out_start) {
  const weir_schedule_sends *d = s->sends;
  const weir_send_time *time = &d->times[tensor];
  uint32_t from = s->made[tensor].device;
  *out_start = ready_ns;
  if (send_ns == 0 || d->rule == WEIR_SENDS_GUESSED) return false;
  if (d->rule == WEIR_SENDS_RESERVED && time->left_ns >= send_ns &&
      time->next_ns >= ready_ns) {
    *out_start = time->next_ns;
    return false;
  }
  int64_t promised = s->promised[s->p->link_count + from];
  *out_start = weir_timeline_find(
      &s->devices[from], promised > ready_ns ? promised : ready_ns, send_ns);
  return true;
}

void weir_schedule_sends_take(weir_scheduler *s, const weir_place_copy *copy,
                              int64_t send_ns) {
  weir_schedule_sends *d = s->sends;
  weir_timeline *line = &s->devices[copy->from];
  weir_send_time *time = &d->times[copy->tensor];
  int64_t start = copy->start_ns;
  if (d->rule == WEIR_SENDS_RESERVED && time->left_ns >= send_ns &&
      time->next_ns == start) { /* no gap begins there, as it is taken */
    time->next_ns += send_ns;
    time->left_ns -= send_ns;
    return;
  }
  if (d->rule == WEIR_SENDS_GUESSED)
    start = weir_timeline_find(line, start, send_ns);
  weir_timeline_take(line, start, send_ns);
}

/* A copy that found a gap ends elsewhere: what lies directly before next_ns is
 * the node, or another send. */
void weir_schedule_sends_give_back(weir_scheduler *s,
                                   const weir_place_copy *copy) {
  const weir_place_problem *p = s->p;
  weir_send_time *time = &s->sends->times[copy->tensor];
  int64_t ns =
      weir_place_send_ns(&p->links[copy->link], p->tensor_bytes[copy->tensor]);
  assert(s->sends->rule == WEIR_SENDS_RESERVED);
  if (copy->start_ns + ns != time->next_ns) return;
  time->next_ns -= ns;
  time->left_ns += ns;
}
