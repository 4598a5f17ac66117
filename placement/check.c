/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/check.h"

#include <assert.h>
#include <inttypes.h>

#include "placement/plan.h"
#include "runtime/base/size.h"

/* The judge of every plan. It knows problem.h and plan.h only and shares
 * nothing with the schedulers, so a fault in their bookkeeping cannot hide
 * itself.
 *
 * Rules are checked one after another over sorted lists of events: devices and
 * costs, groups, copies, one node or send at a time on a device, inputs before
 * starts, memory. A plan may come from a file: numbers are checked before they
 * index. Invariant: later rules rely on earlier ones; list_copies, say, on
 * check_copy's ranges. Events are sorted by digits, the lowest first (Knuth,
 * TAOCP 3, 5.2.5). Cost: O(nodes + uses + copies), times the digits of the last
 * time, and one search through the copies of a tensor for each use. */

enum {
  kFewEvents = 4096, /* are sorted by digits of fewer bits */
  kFewBits = 8,
  kBits = 11
};

/* Something that happens at a time: on a device, on a link, in memory. */
typedef struct event {
  int64_t time_ns;
  int64_t value; /* its end; of memory the bytes that come (> 0) or go */
  uint32_t where;
  uint32_t node; /* for the message */
} event;

typedef struct checker {
  const weir_allocator *alloc;
  const weir_place_problem *p;
  const weir_place_plan *plan;
  weir_error *err;
  event *events, *spare; /* |spare|: to sort them */
  size_t event_count;
  /* Copies by tensor: those of tensor t are |by_tensor| from first[t] to
   * first[t + 1]. */
  uint32_t *first, *by_tensor;
  int64_t *last_use;  /* per tensor, of its producer's own copy */
  int64_t *copy_last; /* per copy */
  int64_t *resident;  /* per device */
  bool *has;          /* per device: the constant in hand */
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
    if (plan->start_ns[n] < 0 || plan->end_ns[n] < plan->start_ns[n] ||
        plan->end_ns[n] - plan->start_ns[n] != cost)
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

/* An end comes before a beginning of the same time, so that memory which is
 * given back serves the next one at once. */
static uint64_t time_key(const event *e) {
  assert(e->time_ns >= 0);
  return (uint64_t)e->time_ns << 1 | (e->value > 0);
}

static uint64_t place_key(const event *e) {
  return e->where;
}

/* Sorts by |key|; events of one key keep their order. */
static void sort_by(checker *c, uint64_t (*key)(const event *)) {
  size_t first[1 << kBits], count = c->event_count;
  int bits = count < kFewEvents ? kFewBits : kBits;
  size_t digits = (size_t)1 << bits;
  uint64_t most = 0;
  for (size_t i = 0; i < count; i++) most |= key(&c->events[i]);
  for (int shift = 0; shift < 64 && most >> shift != 0; shift += bits) {
    size_t sum = 0;
    for (size_t d = 0; d < digits; d++) first[d] = 0;
    for (size_t i = 0; i < count; i++)
      first[key(&c->events[i]) >> shift & (digits - 1)]++;
    for (size_t d = 0; d < digits; d++) {
      size_t here = first[d];
      first[d] = sum;
      sum += here;
    }
    assert(sum == count);
    for (size_t i = 0; i < count; i++)
      c->spare[first[key(&c->events[i]) >> shift & (digits - 1)]++] =
          c->events[i];
    event *sorted = c->spare;
    c->spare = c->events;
    c->events = sorted;
  }
}

/* By place, then time. */
static void sort_events(checker *c) {
  sort_by(c, time_key);
  sort_by(c, place_key);
}

static weir_status check_overlap(checker *c, const char *rule) {
  sort_events(c);
  for (size_t i = 1; i < c->event_count; i++)
    if (c->events[i].where == c->events[i - 1].where &&
        c->events[i].time_ns < c->events[i - 1].value)
      return broken(c, rule, c->events[i].node);
  return WEIR_OK;
}

/* ---- Where tensors are. A tensor arrives on a device when its producer ends
 * there or a copy to it ends; a use there takes the latest arrival before it.
 */

/* Lists copies by tensor; those of one tensor stay in the plan's order. */
static void list_copies(checker *c) {
  const weir_place_plan *plan = c->plan;
  uint32_t tensors = c->p->tensor_count;
  for (uint32_t i = 0; i < plan->copy_count; i++)
    c->first[plan->copies[i].tensor + 2]++;
  for (uint32_t t = 2; t < tensors + 2; t++) c->first[t] += c->first[t - 1];
  for (uint32_t i = 0; i < plan->copy_count; i++)
    c->by_tensor[c->first[plan->copies[i].tensor + 1]++] = i;
}

/* The last use of the arrival of |tensor| that is on |device| at |at_ns|, to be
 * raised; NULL: it is not there. |*there_ns|: when it came; a time if it comes
 * later, INT64_MAX if never. */
static int64_t *find_arrival(const checker *c, uint32_t tensor, uint32_t device,
                             int64_t at_ns, int64_t *there_ns) {
  const weir_place_plan *plan = c->plan;
  assert(tensor < c->p->tensor_count && device < c->p->device_count);
  uint32_t producer = c->p->tensor_node[tensor];
  int64_t *found = NULL, latest = -1, later = INT64_MAX;
  if (plan->device[producer] == device) {
    if (plan->end_ns[producer] <= at_ns)
      found = &c->last_use[tensor], latest = plan->end_ns[producer];
    else
      later = plan->end_ns[producer];
  }
  for (uint32_t i = c->first[tensor]; i < c->first[tensor + 1]; i++) {
    const weir_place_copy *k = &plan->copies[c->by_tensor[i]];
    assert(k->tensor == tensor);
    if (k->to != device) continue;
    if (k->end_ns <= at_ns && k->end_ns > latest)
      found = &c->copy_last[c->by_tensor[i]], latest = k->end_ns;
    else if (k->end_ns > at_ns && k->end_ns < later)
      later = k->end_ns;
  }
  *there_ns = found != NULL ? latest : later;
  return found;
}

static weir_status check_copy(checker *c, const weir_place_copy *k) {
  const weir_place_problem *p = c->p;
  if (k->tensor >= p->tensor_count || k->from >= p->device_count ||
      k->to >= p->device_count || k->from == k->to)
    return broken(c, "a copy of nothing", WEIR_PLACE_NONE);
  uint32_t producer = p->tensor_node[k->tensor];
  if (p->link_of[(size_t)k->from * p->device_count + k->to] != k->link ||
      k->link >= p->link_count)
    return broken(c, "a copy over the wrong link", producer);
  const weir_place_link *link = &p->links[k->link];
  if (k->start_ns < 0 || k->end_ns < k->start_ns ||
      k->end_ns - k->start_ns <
          weir_place_copy_ns(link, p->tensor_bytes[k->tensor]))
    return broken(c, "a copy faster than its link", producer);
  int64_t ns = weir_place_link_ns(link, p->tensor_bytes[k->tensor]);
  int64_t begin = weir_place_copy_begin(p, k);
  if (link->exclusive && ns > 0)
    c->events[c->event_count++] = (event){begin, begin + ns, k->link, producer};
  return WEIR_OK;
}

static weir_status check_copies(checker *c) {
  const weir_place_plan *plan = c->plan;
  c->event_count = 0;
  for (uint32_t i = 0; i < plan->copy_count; i++)
    WEIR_TRY(check_copy(c, &plan->copies[i]));
  WEIR_TRY(check_overlap(c, "two copies at once on a link"));
  list_copies(c);
  for (uint32_t n = 0; n < c->p->node_count; n++)
    for (uint32_t t = c->p->out_first[n]; t < c->p->out_first[n + 1]; t++)
      c->last_use[t] = plan->end_ns[n];
  for (uint32_t i = 0; i < plan->copy_count; i++)
    c->copy_last[i] = plan->copies[i].end_ns;
  for (uint32_t i = 0; i < plan->copy_count; i++) {
    const weir_place_copy *k = &plan->copies[i];
    int64_t there;
    int64_t *last = find_arrival(c, k->tensor, k->from, k->start_ns, &there);
    if (last == NULL)
      return broken(c,
                    there == INT64_MAX ? "a copy from where the tensor is not"
                                       : "a copy before its tensor is there",
                    c->p->tensor_node[k->tensor]);
    if (k->end_ns > *last) *last = k->end_ns;
  }
  return WEIR_OK;
}

static weir_status check_uses(checker *c) {
  const weir_place_problem *p = c->p;
  const weir_place_plan *plan = c->plan;
  for (uint32_t n = 0; n < p->node_count; n++)
    for (uint32_t i = p->in_first[n]; i < p->in_first[n + 1]; i++) {
      int64_t there;
      int64_t *last = find_arrival(c, p->in_tensor[i], plan->device[n],
                                   plan->start_ns[n], &there);
      if (last == NULL)
        return broken(c,
                      there == INT64_MAX
                          ? "a tensor never copied"
                          : "a start before its tensors are there",
                      n);
      if (plan->end_ns[n] > *last) *last = plan->end_ns[n];
    }
  return WEIR_OK;
}

/* Needs sound copies: a device sends between its nodes. */
static weir_status check_devices(checker *c) {
  const weir_place_problem *p = c->p;
  const weir_place_plan *plan = c->plan;
  c->event_count = 0;
  for (uint32_t n = 0; n < p->node_count; n++)
    if (plan->end_ns[n] > plan->start_ns[n])
      c->events[c->event_count++] =
          (event){plan->start_ns[n], plan->end_ns[n], plan->device[n], n};
  for (uint32_t i = 0; i < plan->copy_count; i++) {
    const weir_place_copy *k = &plan->copies[i];
    int64_t ns =
        weir_place_send_ns(&p->links[k->link], p->tensor_bytes[k->tensor]);
    if (ns > 0)
      c->events[c->event_count++] = (event){k->start_ns, k->start_ns + ns,
                                            k->from, p->tensor_node[k->tensor]};
  }
  return check_overlap(c, "two nodes or sends at once on a device");
}

/* ---- Memory: weights always, constants wherever a node reads them; temporary
 * memory while a node runs; a tensor from the start of its producer, or of the
 * copy that brought it, to the last use of that arrival or the end of the last
 * copy away. */

static void memory_event(checker *c, uint32_t device, int64_t from, int64_t to,
                         int64_t bytes, uint32_t node) {
  if (bytes == 0 || to <= from) return;
  c->events[c->event_count++] = (event){from, bytes, device, node};
  c->events[c->event_count++] = (event){to, -bytes, device, node};
}

static void list_memory(checker *c) {
  const weir_place_problem *p = c->p;
  const weir_place_plan *plan = c->plan;
  c->event_count = 0;
  for (uint32_t i = 0; i < plan->copy_count; i++) {
    const weir_place_copy *k = &plan->copies[i];
    memory_event(c, k->to, k->start_ns, c->copy_last[i],
                 weir_place_takes(p, plan->device, k->tensor, k->to),
                 p->tensor_node[k->tensor]);
  }
  for (uint32_t n = 0; n < p->node_count; n++) {
    memory_event(c, plan->device[n], plan->start_ns[n], plan->end_ns[n],
                 weir_place_temp(p, plan->device, n), n);
    for (uint32_t t = p->out_first[n]; t < p->out_first[n + 1]; t++)
      memory_event(c, plan->device[n], plan->start_ns[n], c->last_use[t],
                   weir_place_takes(p, plan->device, t, plan->device[n]), n);
  }
}

/* Nodes' own bytes, and a constant on each device that has a reader of it. */
static void add_residents(checker *c) {
  const weir_place_problem *p = c->p;
  for (uint32_t n = 0; n < p->node_count; n++)
    c->resident[c->plan->device[n]] += p->resident_bytes[n];
  for (uint32_t k = 0; k < p->constant_count; k++) {
    for (uint32_t i = p->reader_first[k]; i < p->reader_first[k + 1]; i++) {
      uint32_t d = c->plan->device[p->reader_node[i]];
      if (!c->has[d]) c->resident[d] += p->constant_bytes[k];
      c->has[d] = true;
    }
    for (uint32_t i = p->reader_first[k]; i < p->reader_first[k + 1]; i++)
      c->has[c->plan->device[p->reader_node[i]]] = false;
  }
}

static weir_status check_memory(checker *c, int64_t *peaks) {
  const weir_place_problem *p = c->p;
  add_residents(c);
  list_memory(c);
  sort_events(c);
  size_t i = 0;
  weir_status s = WEIR_OK;
  for (uint32_t d = 0; d < p->device_count; d++) {
    int64_t live = c->resident[d], peak;
    peak = live;
    for (; i < c->event_count && c->events[i].where == d; i++) {
      live += c->events[i].value;
      assert(live >= c->resident[d] ||
             c->events[i].time_ns == c->events[i + 1].time_ns);
      if (live > peak) peak = live;
    }
    if (peaks != NULL) peaks[d] = peak;
    if (peak > p->devices[d].memory_bytes && s == WEIR_OK)
      s = weir_fail(c->err, WEIR_W3013, NULL,
                    "%.*s needs %" PRId64 " bytes at its peak and has %" PRId64,
                    (int)p->devices[d].name.size, p->devices[d].name.data, peak,
                    p->devices[d].memory_bytes);
  }
  assert(i == c->event_count);
  return s;
}

static bool checker_begin(checker *c) {
  const weir_allocator *a = c->alloc;
  size_t tensors = c->p->tensor_count, copies = c->plan->copy_count;
  size_t most = 2 * ((size_t)c->p->node_count + tensors + copies) + 1;
  size_t bytes;
  if (!weir_size_mul(most, sizeof *c->events, &bytes)) return false;
  c->events = weir_alloc(a, bytes);
  c->spare = weir_alloc(a, bytes);
  c->first = weir_alloc_array(a, tensors + 2, sizeof *c->first);
  c->by_tensor = weir_alloc_array(a, copies + 1, sizeof *c->by_tensor);
  c->last_use = weir_alloc_array(a, tensors + 1, sizeof *c->last_use);
  c->copy_last = weir_alloc_array(a, copies + 1, sizeof *c->copy_last);
  c->resident = weir_alloc_array(a, c->p->device_count, sizeof *c->resident);
  c->has = weir_alloc_array(a, c->p->device_count, sizeof *c->has);
  return c->events != NULL && c->spare != NULL && c->first != NULL &&
         c->by_tensor != NULL && c->last_use != NULL && c->copy_last != NULL &&
         c->resident != NULL && c->has != NULL;
}

weir_status weir_place_check(const weir_allocator *alloc,
                             const weir_place_problem *p,
                             const weir_place_plan *plan, int64_t *peaks,
                             weir_error *err) {
  checker c = {.alloc = alloc, .p = p, .plan = plan, .err = err};
  weir_status s = WEIR_OK;
  if (!checker_begin(&c))
    s = weir_fail_memory(err, plan->copy_count * sizeof *c.events);
  if (s == WEIR_OK) s = check_nodes(&c);
  if (s == WEIR_OK) s = check_groups(&c);
  if (s == WEIR_OK) s = check_copies(&c);
  if (s == WEIR_OK) s = check_devices(&c);
  if (s == WEIR_OK) s = check_uses(&c);
  if (s == WEIR_OK) s = check_memory(&c, peaks);
  weir_free(alloc, c.events);
  weir_free(alloc, c.spare);
  weir_free(alloc, c.first);
  weir_free(alloc, c.by_tensor);
  weir_free(alloc, c.last_use);
  weir_free(alloc, c.copy_last);
  weir_free(alloc, c.resident);
  weir_free(alloc, c.has);
  return s;
}
