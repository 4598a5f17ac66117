/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/schedule/schedule_memory.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "placement/schedule/schedule_constants.h"
#include "placement/schedule/schedule_copy.h"
#include "placement/schedule/schedule_kept.h"
#include "placement/schedule/schedule_sends.h"
#include "runtime/base/vec.h"

/* This file counts as the checker counts. A tensor takes its bytes from the
 * start of its producer, a copy from its own start, both for ever at first;
 * once all uses of the tensor are placed, each ends with its last use. Resident
 * bytes of nodes with one possible device are taken from the beginning, those
 * of a group when its first node is placed. The same holds for the constants
 * that they read, each of them once a device.
 *
 * Taking "for ever" until the last use is known makes the room a promise: a
 * node that fits now fits at every later moment, beside all later ones. A node
 * that does not fit waits until placed uses have ended other tensors. */

enum {
  WINDOW = 64, /* ready nodes that are tried when the first does not fit */
  SCAN = 8192, /* places in the order that are looked through for them */
  SENDERS = 8  /* nodes for which tensors are sent away, at a dead end */
};

/* ---- Life */

static bool is_capped(const weir_place_problem *p) {
  __int128 sum = 0;
  int64_t most = 0, least = INT64_MAX;
  for (uint32_t n = 0; n < p->node_count; n++) {
    sum += p->resident_bytes[n];
    if (p->temp_bytes[n] > most) most = p->temp_bytes[n];
  }
  for (uint32_t t = 0; t < p->tensor_count; t++)
    sum += weir_place_held(p, p->tensor_bytes[t]);
  for (uint32_t c = 0; c < p->constant_count; c++) sum += p->constant_bytes[c];
  for (uint32_t d = 0; d < p->device_count; d++)
    if (p->devices[d].memory_bytes < least) least = p->devices[d].memory_bytes;
  return least != INT64_MAX && sum + most > least;
}

/* The only device of |node|, or NONE. */
static uint32_t only_device(const weir_place_problem *p, uint32_t node) {
  uint32_t only = WEIR_PLACE_NONE;
  for (uint32_t d = 0; d < p->device_count; d++) {
    if (weir_place_cost(p, node, d) == WEIR_PLACE_NO_KERNEL) continue;
    if (only != WEIR_PLACE_NONE) return WEIR_PLACE_NONE;
    only = d;
  }
  return only;
}

/* Resident bytes of groups, and those whose device is certain. |group_device|
 * is the scheduler's, lent for the moment. */
static void reserve(weir_scheduler *s) {
  const weir_place_problem *p = s->p;
  weir_schedule_memory *m = s->memory;
  memset(s->group_device, 0xff, p->group_count * sizeof *s->group_device);
  for (uint32_t n = 0; n < p->node_count; n++) {
    if (p->group[n] == WEIR_PLACE_NONE) continue;
    uint32_t only = only_device(p, n);
    if (only != WEIR_PLACE_NONE) s->group_device[p->group[n]] = only;
    m->group_bytes[p->group[n]] += p->resident_bytes[n];
  }
  for (uint32_t n = 0; n < p->node_count; n++) {
    uint32_t g = p->group[n];
    uint32_t only =
        g == WEIR_PLACE_NONE ? only_device(p, n) : s->group_device[g];
    m->reserved[n] = only != WEIR_PLACE_NONE;
    if (!m->reserved[n]) continue;
    m->pinned_bytes[only] +=
        p->resident_bytes[n] +
        weir_schedule_constants(s, n, only, m->pinned, true);
  }
}

bool weir_schedule_memory_create(weir_scheduler *s) {
  const weir_place_problem *p = s->p;
  const weir_allocator *a = s->alloc;
  if (!is_capped(p)) return true;
  size_t nodes = (size_t)p->node_count + 1, tensors = p->tensor_count + 1;
  weir_schedule_memory *m = weir_alloc_array(a, 1, sizeof *m);
  if (m == NULL) return false;
  s->memory = m;
  m->rooms = weir_alloc_array(a, p->device_count, sizeof *m->rooms);
  m->pinned_bytes =
      weir_alloc_array(a, p->device_count, sizeof *m->pinned_bytes);
  m->group_bytes =
      weir_alloc_array(a, (size_t)p->group_count + 1, sizeof *m->group_bytes);
  m->reserved = weir_alloc_array(a, nodes, sizeof *m->reserved);
  m->last_ns = weir_alloc_array(a, tensors, sizeof *m->last_ns);
  m->kept_at = weir_alloc_array(a, tensors, sizeof *m->kept_at);
  m->uses_left = weir_alloc_array(a, tensors, sizeof *m->uses_left);
  m->waiting = weir_alloc_array(a, nodes, sizeof *m->waiting);
  m->placed = weir_alloc_array(a, nodes, sizeof *m->placed);
  m->place = weir_alloc_array(a, nodes, sizeof *m->place);
  m->blame = (weir_schedule_short){WEIR_PLACE_NONE, WEIR_PLACE_NONE, 0};
  if (m->rooms == NULL || m->pinned_bytes == NULL || m->group_bytes == NULL ||
      m->reserved == NULL || m->last_ns == NULL || m->kept_at == NULL ||
      m->uses_left == NULL || m->waiting == NULL || m->placed == NULL ||
      m->place == NULL)
    return false;
  for (uint32_t d = 0; d < p->device_count; d++)
    m->rooms[d].cap_bytes = p->devices[d].memory_bytes;
  if (!weir_schedule_constants_begin(s)) return false;
  reserve(s);
  return true;
}

void weir_schedule_memory_release(weir_scheduler *s) {
  weir_schedule_memory *m = s->memory;
  if (m == NULL) return;
  for (uint32_t d = 0; d < s->p->device_count && m->rooms != NULL; d++)
    weir_free(s->alloc, m->rooms[d].steps);
  weir_free(s->alloc, m->rooms);
  weir_free(s->alloc, m->pinned_bytes);
  weir_free(s->alloc, m->group_bytes);
  weir_free(s->alloc, m->reserved);
  weir_schedule_constants_end(s);
  weir_free(s->alloc, m->last_ns);
  weir_free(s->alloc, m->kept_at);
  weir_free(s->alloc, m->uses_left);
  weir_free(s->alloc, m->copy_last);
  weir_free(s->alloc, m->waiting);
  weir_free(s->alloc, m->placed);
  weir_free(s->alloc, m->place);
  weir_free(s->alloc, m);
}

/* Forgets the placed buffers, before a run. false: out of memory. */
static bool reset(weir_scheduler *s) {
  const weir_place_problem *p = s->p;
  weir_schedule_memory *m = s->memory;
  for (uint32_t d = 0; d < p->device_count; d++)
    if (!weir_room_reset(s->alloc, &m->rooms[d], m->pinned_bytes[d]))
      return false;
  for (uint32_t n = 0; n < p->node_count; n++) {
    m->waiting[n] = p->in_first[n + 1] - p->in_first[n];
    m->placed[n] = false;
  }
  for (uint32_t t = 0; t < p->tensor_count; t++)
    m->uses_left[t] = p->use_first[t + 1] - p->use_first[t];
  weir_schedule_constants_reset(s);
  m->blame = (weir_schedule_short){WEIR_PLACE_NONE, WEIR_PLACE_NONE, 0};
  return true;
}

/* ---- Counting */

int64_t weir_schedule_memory_resident(const weir_scheduler *s, uint32_t node,
                                      uint32_t device, int64_t keep_bytes) {
  const weir_schedule_memory *m = s->memory;
  uint32_t group = s->p->group[node];
  if (m->reserved[node]) return 0;
  if (group != WEIR_PLACE_NONE && s->group_device[group] != WEIR_PLACE_NONE)
    return 0;
  int64_t bytes = group == WEIR_PLACE_NONE ? s->p->resident_bytes[node]
                                           : m->group_bytes[group];
  int64_t more = weir_schedule_constants(s, node, device, m->held, false);
  if (__builtin_add_overflow(bytes, more, &bytes)) bytes = INT64_MAX / 4;
  const weir_room *room = &m->rooms[device];
  if (bytes == 0 || room->cap_bytes == INT64_MAX) return bytes;
  return bytes > room->cap_bytes - keep_bytes - weir_room_peak(room) ? -1
                                                                     : bytes;
}

static int64_t takes(const weir_scheduler *s, uint32_t t, uint32_t device) {
  return weir_schedule_memory_takes(s, t, device);
}

/* All uses of |t| are placed: it goes everywhere with its last. */
static bool end_tensor(weir_scheduler *s, const weir_place_plan *plan,
                       uint32_t t) {
  weir_schedule_memory *m = s->memory;
  const weir_made *made = &s->made[t];
  assert(m->uses_left[t] == 0);
  bool ok = weir_room_add(s->alloc, &m->rooms[made->device], m->last_ns[t],
                          INT64_MAX, -takes(s, t, made->device));
  for (uint32_t c = made->copies; c != 0 && ok; c = s->copy_next[c - 1])
    if (m->copy_last[c - 1] >= 0)
      ok = weir_room_add(s->alloc, &m->rooms[plan->copies[c - 1].to],
                         m->copy_last[c - 1], INT64_MAX,
                         -takes(s, t, plan->copies[c - 1].to));
  return ok;
}

/* The open copy of |t| on |device| + 1, or 0. */
static uint32_t open_copy(const weir_scheduler *s, const weir_place_plan *plan,
                          uint32_t t, uint32_t device) {
  uint32_t c = s->made[t].copies;
  while (c != 0 &&
         (plan->copies[c - 1].to != device || s->memory->copy_last[c - 1] < 0))
    c = s->copy_next[c - 1];
  return c;
}

static bool count_use(weir_scheduler *s, const weir_place_plan *plan,
                      uint32_t t, const weir_fit *f) {
  weir_schedule_memory *m = s->memory;
  int64_t *last = &m->last_ns[t];
  assert(m->uses_left[t] > 0);
  assert(s->made[t].device == f->device ||
         open_copy(s, plan, t, f->device) != 0);
  if (s->made[t].device != f->device)
    last = &m->copy_last[open_copy(s, plan, t, f->device) - 1];
  if (f->end > *last) *last = f->end;
  return --m->uses_left[t] > 0 || end_tensor(s, plan, t);
}

static bool count_outputs(weir_scheduler *s, uint32_t node, const weir_fit *f) {
  const weir_place_problem *p = s->p;
  weir_schedule_memory *m = s->memory;
  weir_room *room = &m->rooms[f->device];
  bool ok = weir_room_add(s->alloc, room, f->start, f->end,
                          weir_schedule_memory_temp(s, node, f->device));
  for (uint32_t t = p->out_first[node]; t < p->out_first[node + 1] && ok; t++) {
    m->last_ns[t] = f->end;
    m->kept_at[t] = weir_schedule_memory_keeper(s, t, node, f->device);
    ok = weir_room_add(s->alloc, room, f->start,
                       m->uses_left[t] == 0 ? f->end : INT64_MAX,
                       takes(s, t, f->device));
  }
  return ok;
}

bool weir_schedule_memory_count(weir_scheduler *s, const weir_place_plan *plan,
                                uint32_t node, const weir_fit *f,
                                uint32_t first_copy) {
  const weir_place_problem *p = s->p;
  weir_schedule_memory *m = s->memory;
  weir_room *room = &m->rooms[f->device];
  assert(!m->placed[node] && m->waiting[node] == 0);
  bool ok = weir_room_add(s->alloc, room, 0, INT64_MAX, f->resident);
  if (!m->reserved[node])
    weir_schedule_constants(s, node, f->device, m->held, true);
  for (uint32_t c = first_copy; c < plan->copy_count && ok; c++) {
    const weir_place_copy *k = &plan->copies[c];
    ok = weir_room_add(s->alloc, room, k->start_ns, INT64_MAX,
                       takes(s, k->tensor, k->to));
    if (k->end_ns > m->last_ns[k->tensor]) m->last_ns[k->tensor] = k->end_ns;
  }
  ok = ok && count_outputs(s, node, f);
  for (uint32_t i = p->in_first[node]; i < p->in_first[node + 1] && ok; i++)
    ok = count_use(s, plan, p->in_tensor[i], f);
  m->placed[node] = true;
  for (uint32_t t = p->out_first[node]; t < p->out_first[node + 1]; t++)
    for (uint32_t u = p->use_first[t]; u < p->use_first[t + 1]; u++)
      m->waiting[p->use_node[u]]--;
  return ok;
}

/* ---- A dead end: tensors that are needed late are sent to a device that has
 * room, or dropped where they are copies. */

/* The place in the order of the next use of |t|. */
static uint32_t next_use(const weir_scheduler *s, uint32_t t) {
  const weir_place_problem *p = s->p;
  uint32_t next = UINT32_MAX;
  for (uint32_t u = p->use_first[t]; u < p->use_first[t + 1]; u++) {
    uint32_t n = p->use_node[u];
    if (!s->memory->placed[n] && s->memory->place[n] < next)
      next = s->memory->place[n];
  }
  return next;
}

static bool uses(const weir_place_problem *p, uint32_t node, uint32_t t) {
  for (uint32_t i = p->in_first[node]; i < p->in_first[node + 1]; i++)
    if (p->in_tensor[i] == t) return true;
  return false;
}

/* The tensor on |device| that is needed last, but not by |node|; NONE. */
static uint32_t find_victim(const weir_scheduler *s,
                            const weir_place_plan *plan, uint32_t device,
                            uint32_t node) {
  const weir_place_problem *p = s->p;
  uint32_t victim = WEIR_PLACE_NONE, latest = 0;
  for (uint32_t t = 0; t < p->tensor_count; t++) {
    if (!s->memory->placed[p->tensor_node[t]] || p->tensor_bytes[t] == 0 ||
        s->memory->uses_left[t] == 0)
      continue;
    bool home = s->made[t].device == device;
    if (home ? takes(s, t, device) == 0 : open_copy(s, plan, t, device) == 0)
      continue;
    uint32_t next = next_use(s, t);
    if (next <= latest || uses(p, node, t)) continue;
    latest = next;
    victim = t;
  }
  return victim;
}

/* The device to which |t| gets soonest from where it is kept; NONE. */
static uint32_t find_refuge(const weir_scheduler *s, uint32_t t,
                            weir_place_copy *copy) {
  const weir_place_problem *p = s->p;
  const weir_made *m = &s->made[t];
  *copy = (weir_place_copy){t, m->device, WEIR_PLACE_NONE, 0, 0, INT64_MAX};
  for (uint32_t d = 0; d < p->device_count; d++) {
    uint32_t link = p->link_of[(size_t)m->device * p->device_count + d];
    if (d == m->device || link == WEIR_PLACE_NONE ||
        p->link_of[(size_t)d * p->device_count + m->device] == WEIR_PLACE_NONE)
      continue;
    int64_t ready =
        weir_room_find(&s->memory->rooms[d], m->ready_ns, takes(s, t, d));
    if (ready < 0) continue;
    weir_copy_times ns = weir_schedule_copy_times(&p->links[link], m->bytes);
    int64_t sent = ready;
    if (s->sends != NULL) weir_schedule_sends_find(s, t, ready, ns.send, &sent);
    int64_t start = weir_schedule_link_start(s, link, sent, &ns);
    if (start + ns.whole >= copy->end_ns) continue;
    *copy = (weir_place_copy){
        t, m->device, d, link, ns.send > 0 ? sent : start, start + ns.whole};
  }
  return copy->to;
}

/* From now on |t| is kept where its copy |c| is. */
static bool move_home(weir_scheduler *s, weir_place_plan *plan, uint32_t t,
                      uint32_t c) {
  weir_schedule_memory *m = s->memory;
  weir_made *made = &s->made[t];
  assert(plan->copies[c].tensor == t && m->copy_last[c] >= 0);
  bool ok = weir_room_add(s->alloc, &m->rooms[made->device], m->last_ns[t],
                          INT64_MAX, -takes(s, t, made->device));
  made->device = plan->copies[c].to;
  if (s->sends != NULL) s->sends->times[t].left_ns = 0;
  made->ready_ns = plan->copies[c].end_ns;
  m->last_ns[t] = m->copy_last[c];
  m->copy_last[c] = -1;
  return ok;
}

/* Ends |t| on |device| for now. *|gone| is false when it has nowhere to go. */
static bool send_away(weir_scheduler *s, weir_place_plan *plan, uint32_t t,
                      uint32_t device, bool *gone) {
  weir_schedule_memory *m = s->memory;
  weir_made *made = &s->made[t];
  *gone = true;
  if (made->device != device) { /* a copy: it is made again when needed */
    assert(open_copy(s, plan, t, device) != 0);
    uint32_t c = open_copy(s, plan, t, device) - 1;
    int64_t last = m->copy_last[c];
    m->copy_last[c] = -1;
    return weir_room_add(s->alloc, &m->rooms[device], last, INT64_MAX,
                         -takes(s, t, device));
  }
  for (uint32_t c = made->copies; c != 0; c = s->copy_next[c - 1])
    if (m->copy_last[c - 1] >= 0) return move_home(s, plan, t, c - 1);
  weir_place_copy copy;
  if (find_refuge(s, t, &copy) == WEIR_PLACE_NONE) {
    *gone = false;
    return true;
  }
  weir_copy_times ns =
      weir_schedule_copy_times(&s->p->links[copy.link], made->bytes);
  weir_schedule_take_copy(s, &copy, &ns);
  if (copy.end_ns > m->last_ns[t]) m->last_ns[t] = copy.end_ns;
  return weir_room_add(s->alloc, &m->rooms[copy.to], copy.start_ns, INT64_MAX,
                       takes(s, t, copy.to)) &&
         weir_schedule_add_copy(s, plan, &copy) &&
         move_home(s, plan, t, plan->copy_count - 1);
}

/* Sends tensors away from |device| until |node| fits there. Ends, as each turn
 * takes one tensor from the device and none comes. */
static bool make_room(weir_scheduler *s, const weir_schedule_input *input,
                      weir_place_plan *plan, uint32_t node, uint32_t device,
                      weir_fit *out) {
  out->possible = false;
  for (;;) {
    *out = weir_schedule_choose(s, input, plan, node, device);
    if (out->possible) return true;
    uint32_t t = find_victim(s, plan, device, node);
    bool gone = false;
    if (t == WEIR_PLACE_NONE) return true;
    if (!send_away(s, plan, t, device, &gone)) return false;
    if (!gone) return true;
  }
}

static bool may_try(const weir_scheduler *s, const weir_schedule_input *input,
                    uint32_t node, uint32_t device) {
  uint32_t g = s->p->group[node];
  if (weir_place_cost(s->p, node, device) == WEIR_PLACE_NO_KERNEL) return false;
  if (g != WEIR_PLACE_NONE && s->group_device[g] != WEIR_PLACE_NONE)
    return s->group_device[g] == device;
  return input->device == NULL || input->device[node] == WEIR_PLACE_NONE ||
         input->device[node] == device;
}

/* ---- The run */

typedef struct memory_run {
  weir_scheduler *s;
  const weir_schedule_input *input;
  weir_place_plan *plan;
  uint32_t head; /* all before it in the order are placed */
} memory_run;

/* The ready nodes in order, from place |*at| on; NONE after the last. */
static uint32_t next_ready(const memory_run *r, uint32_t *at) {
  const weir_schedule_memory *m = r->s->memory;
  uint32_t end = r->s->p->node_count;
  if (end - r->head > SCAN) end = r->head + SCAN;
  while (*at < end) {
    uint32_t n = r->input->order[(*at)++];
    if (!m->placed[n] && m->waiting[n] == 0) return n;
  }
  return WEIR_PLACE_NONE;
}

/* The first ready node that fits. Errors: W3012, W3014. */
static weir_status find_node(memory_run *r, uint32_t *node, weir_fit *fit,
                             weir_error *err) {
  uint32_t at = r->head, tries = 0;
  weir_schedule_memory *m = r->s->memory;
  while (tries++ < WINDOW && (*node = next_ready(r, &at)) != WEIR_PLACE_NONE) {
    *fit =
        weir_schedule_choose(r->s, r->input, r->plan, *node, WEIR_PLACE_NONE);
    if (fit->possible) return WEIR_OK;
    if (fit->short_bytes == 0) return weir_schedule_no_device(r->s, *node, err);
    if (tries == 1)
      m->blame = (weir_schedule_short){*node, fit->device, fit->short_bytes};
  }
  *node = WEIR_PLACE_NONE;
  return WEIR_OK;
}

/* The first ready node that fits once others have left. false: no memory. */
static bool find_by_sending(memory_run *r, uint32_t *node, weir_fit *fit) {
  uint32_t at = r->head, tries = 0;
  while (tries++ < SENDERS && (*node = next_ready(r, &at)) != WEIR_PLACE_NONE)
    for (uint32_t d = 0; d < r->s->p->device_count; d++) {
      if (!may_try(r->s, r->input, *node, d)) continue;
      if (!make_room(r->s, r->input, r->plan, *node, d, fit)) return false;
      if (fit->possible) return true;
    }
  *node = WEIR_PLACE_NONE;
  return true;
}

static weir_status dead_end(const weir_scheduler *s, weir_error *err) {
  const weir_place_problem *p = s->p;
  const weir_schedule_short *b = &s->memory->blame;
  assert(b->node < p->node_count && b->device < p->device_count);
  return weir_fail(
      err, WEIR_W3013, NULL, "node %u %.*s lacks %" PRId64 " bytes on %.*s",
      b->node, (int)p->names[b->node].size, p->names[b->node].data, b->bytes,
      (int)p->devices[b->device].name.size, p->devices[b->device].name.data);
}

weir_status weir_schedule_memory_run(weir_scheduler *s,
                                     const weir_schedule_input *input,
                                     weir_place_plan *plan, bool *out_complete,
                                     weir_error *err) {
  const weir_place_problem *p = s->p;
  memory_run r = {s, input, plan, 0};
  if (!reset(s)) return weir_fail_memory(err, sizeof(weir_room_step));
  for (uint32_t i = 0; i < p->node_count; i++)
    s->memory->place[input->order[i]] = i;
  for (uint32_t done = 0; done < p->node_count; done++) {
    uint32_t n;
    weir_fit f = {0};
    while (s->memory->placed[input->order[r.head]]) r.head++;
    /* All before the head are placed and the order is topological. */
    assert(s->memory->waiting[input->order[r.head]] == 0);
    WEIR_TRY(find_node(&r, &n, &f, err));
    if (n == WEIR_PLACE_NONE && input->spill && !find_by_sending(&r, &n, &f))
      return weir_fail_memory(err, sizeof(weir_room_step));
    if (n == WEIR_PLACE_NONE)
      return out_complete == NULL ? dead_end(s, err) : WEIR_OK;
    int64_t tail = input->tail_ns == NULL ? 0 : input->tail_ns[n];
    if (input->stop_ns != 0 && f.end >= input->stop_ns - tail) {
      s->memory->blame.node = WEIR_PLACE_NONE; /* it is no dead end */
      return WEIR_OK;
    }
    if (!weir_schedule_settle(s, plan, n, &f))
      return weir_fail_memory(err, sizeof(weir_place_copy));
    if (input->cluster != NULL)
      input->cluster_device[input->cluster[n]] = f.device;
  }
  s->memory->blame = (weir_schedule_short){WEIR_PLACE_NONE, WEIR_PLACE_NONE, 0};
  if (out_complete != NULL) *out_complete = true;
  return WEIR_OK;
}
