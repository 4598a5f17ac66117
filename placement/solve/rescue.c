/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/solve/rescue.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placement/bounds/bounds_memory.h"
#include "placement/check.h"
#include "placement/schedule/room.h"
#include "placement/solve/rescue_order.h"

/* Memory first, time second: each order of rescue_order.c with each rule of the
 * scheduler, without and then with tensors that are sent away; the shortest
 * plan that keeps the caps is taken. Nothing here is exact: to fit a graph into
 * caps is NP-hard, so no plan found does not mean that there is none, and the
 * message says "found".
 *
 * Where none was found, halving finds about the least cap that would have done,
 * and the plan for it names the holders of its peak: a number to type and nodes
 * to look at. */

enum {
  CAP_STEPS = 16,    /* halvings in the search for a cap that would do */
  CAP_NODES = 20000, /* larger graphs are not searched */
  HOLDERS = 3
};

/* The most that a node needs at once: room to leave beside variables. */
static int64_t own_bytes(const weir_place_problem *p, uint32_t n) {
  int64_t bytes = p->temp_bytes[n];
  for (uint32_t t = p->out_first[n]; t < p->out_first[n + 1]; t++)
    if (!weir_place_is_kept(p, t))
      bytes += weir_place_held(p, p->tensor_bytes[t]);
  for (uint32_t i = p->in_first[n]; i < p->in_first[n + 1]; i++)
    if (!weir_place_is_kept(p, p->in_tensor[i]))
      bytes += weir_place_held(p, p->tensor_bytes[p->in_tensor[i]]);
  return bytes;
}

static int64_t most_bytes(const weir_place_problem *p) {
  int64_t most = 0;
  for (uint32_t n = 0; n < p->node_count; n++)
    if (own_bytes(p, n) > most) most = own_bytes(p, n);
  return most;
}

static int64_t all_resident(const weir_place_problem *p) {
  int64_t sum = 0;
  for (uint32_t n = 0; n < p->node_count; n++)
    if (__builtin_add_overflow(sum, p->resident_bytes[n], &sum))
      return INT64_MAX;
  for (uint32_t c = 0; c < p->constant_count; c++)
    if (__builtin_add_overflow(sum, p->constant_bytes[c], &sum))
      return INT64_MAX;
  return sum;
}

/* What |n| alone keeps on its device, and the constants that it reads. */
static int64_t kept_bytes(const weir_place_problem *p, uint32_t n) {
  int64_t sum = p->resident_bytes[n];
  for (uint32_t i = p->read_first[n]; i < p->read_first[n + 1]; i++)
    if (__builtin_add_overflow(sum, p->constant_bytes[p->read_constant[i]],
                               &sum))
      return INT64_MAX;
  return sum;
}

/* One order, all rules, with |keep| bytes free beside variables. */
static weir_status try_order(weir_place_rescue *r, const uint32_t *order,
                             int64_t keep, bool spill, weir_place_plan **best,
                             weir_place_plan **plan, weir_error *err) {
  for (int rule = 0; rule < WEIR_SCHEDULE_RULES; rule++) {
    bool complete = false;
    weir_schedule_input input = {.order = order,
                                 .stop_ns = (*best)->makespan_ns,
                                 .rule = (weir_schedule_rule)rule,
                                 .keep_bytes = keep,
                                 .spill = spill};
    WEIR_TRY(weir_schedule_run(r->scheduler, &input, *plan, &complete, err));
    if (!complete) continue;
    weir_place_plan *shorter = *plan;
    *plan = *best;
    *best = shorter;
    shorter->placer = spill ? "memory, spilled" : "memory";
    r->spilled = spill;
    if (r->enough) break;
  }
  return WEIR_OK;
}

weir_status weir_place_rescue_run(weir_place_rescue *r, weir_place_plan **best,
                                  weir_place_plan **plan, bool *found,
                                  weir_error *err) {
  const weir_place_problem *p = r->problem;
  int64_t before = (*best)->makespan_ns, keep = most_bytes(p);
  bool residents = all_resident(p) > 0, over = false;
  uint32_t *order =
      weir_alloc_array(r->alloc, (size_t)p->node_count + 1, sizeof *order);
  if (order == NULL)
    return weir_fail_memory(err, p->node_count * sizeof *order);
  weir_status s = WEIR_OK;
  for (int spill = 0; spill < 2 && !over; spill++)
    for (int kind = 0; kind < WEIR_RESCUE_ORDERS && s == WEIR_OK && !over;
         kind++) {
      s = weir_rescue_order_make(r->alloc, p, (weir_rescue_order)kind, order,
                                 err);
      for (int64_t k = 0; k <= (residents ? 2 : 0) && s == WEIR_OK && !over;
           k++) {
        s = try_order(r, order, k * keep, spill == 1, best, plan, err);
        over = r->enough && (*best)->makespan_ns < before;
      }
      if (kind + 1 == WEIR_RESCUE_ORDERS && (*best)->makespan_ns != INT64_MAX)
        over = true;
    }
  weir_free(r->alloc, order);
  *found = s == WEIR_OK && (*best)->makespan_ns != INT64_MAX;
  return s;
}

/* ---- Why there is no plan */

/* A node that alone is too large for every device that it may use. */
static weir_status find_giant(const weir_place_problem *p, weir_error *err) {
  for (uint32_t n = 0; n < p->node_count; n++) {
    int64_t bytes = own_bytes(p, n), most = -1;
    if (__builtin_add_overflow(bytes, kept_bytes(p, n), &bytes))
      bytes = INT64_MAX;
    for (uint32_t d = 0; d < p->device_count; d++)
      if (weir_place_cost(p, n, d) != WEIR_PLACE_NO_KERNEL &&
          p->devices[d].memory_bytes > most)
        most = p->devices[d].memory_bytes;
    if (bytes <= most) continue;
    return weir_fail(err, WEIR_W3030, NULL,
                     "node %u %.*s needs %" PRId64
                     " bytes at once, its tensors and variables, and no device "
                     "that it may use has more than %" PRId64,
                     n, (int)p->names[n].size, p->names[n].data, bytes, most);
  }
  return WEIR_OK;
}

/* A plan with every cap at least |cap|; |*found| tells. */
static weir_status try_cap(const weir_allocator *alloc,
                           const weir_place_problem *p, int64_t cap,
                           weir_place_plan **best, bool *found,
                           weir_error *err) {
  weir_place_problem raised = *p;
  weir_place_rescue r = {alloc, &raised, NULL, true, false};
  weir_place_plan *plan = NULL;
  weir_place_device *devices =
      weir_alloc_array(alloc, p->device_count, sizeof *devices);
  if (devices == NULL)
    return weir_fail_memory(err, p->device_count * sizeof *devices);
  for (uint32_t d = 0; d < p->device_count; d++) {
    devices[d] = p->devices[d];
    if (devices[d].memory_bytes < cap) devices[d].memory_bytes = cap;
  }
  raised.devices = devices;
  (*best)->makespan_ns = INT64_MAX;
  weir_status s = weir_scheduler_create(alloc, &raised, &r.scheduler, err);
  if (s == WEIR_OK) s = weir_place_plan_create(alloc, p, &plan, err);
  if (s == WEIR_OK) s = weir_place_rescue_run(&r, best, &plan, found, err);
  weir_place_plan_release(plan);
  weir_scheduler_release(r.scheduler);
  weir_free(alloc, devices);
  return s;
}

/* ---- The holders of a plan's peak */

typedef struct holding {
  int64_t from_ns, to_ns, bytes;
  uint32_t node;
} holding;

static int by_size(const void *x, const void *y) {
  const holding *a = x, *b = y;
  if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
  return a->node < b->node ? -1 : a->node > b->node;
}

static int64_t last_use(const weir_place_problem *p,
                        const weir_place_plan *plan, uint32_t t,
                        uint32_t device, int64_t last) {
  for (uint32_t u = p->use_first[t]; u < p->use_first[t + 1]; u++)
    if (plan->device[p->use_node[u]] == device &&
        plan->end_ns[p->use_node[u]] > last)
      last = plan->end_ns[p->use_node[u]];
  return last;
}

static size_t list_holdings(const weir_place_problem *p,
                            const weir_place_plan *plan, uint32_t device,
                            holding *h) {
  size_t count = 0;
  for (uint32_t n = 0; n < p->node_count; n++) {
    if (plan->device[n] != device) continue;
    if (p->resident_bytes[n] > 0)
      h[count++] = (holding){0, INT64_MAX, p->resident_bytes[n], n};
    if (weir_place_temp(p, plan->device, n) > 0)
      h[count++] = (holding){plan->start_ns[n], plan->end_ns[n],
                             weir_place_temp(p, plan->device, n), n};
    for (uint32_t t = p->out_first[n]; t < p->out_first[n + 1]; t++)
      if (weir_place_takes(p, plan->device, t, device) > 0)
        h[count++] = (holding){plan->start_ns[n],
                               last_use(p, plan, t, device, plan->end_ns[n]),
                               weir_place_takes(p, plan->device, t, device), n};
  }
  for (uint32_t c = 0; c < p->constant_count; c++) {
    uint32_t reader = weir_place_reader(p, plan->device, c, device);
    if (reader != WEIR_PLACE_NONE)
      h[count++] =
          (holding){0, INT64_MAX, p->constant_bytes[c],
                    p->constant_home[c] != WEIR_PLACE_NONE ? p->constant_home[c]
                                                           : reader};
  }
  for (uint32_t c = 0; c < plan->copy_count; c++)
    if (plan->copies[c].to == device &&
        weir_place_takes(p, plan->device, plan->copies[c].tensor, device) > 0)
      h[count++] = (holding){
          plan->copies[c].start_ns,
          last_use(p, plan, plan->copies[c].tensor, device,
                   plan->copies[c].end_ns),
          weir_place_takes(p, plan->device, plan->copies[c].tensor, device),
          p->tensor_node[plan->copies[c].tensor]};
  return count;
}

/* "a 12, b 7": the largest at the peak of |device|. */
static bool write_holders(const weir_allocator *alloc,
                          const weir_place_problem *p,
                          const weir_place_plan *plan, uint32_t device,
                          char *text, size_t size) {
  size_t most = 2 * (size_t)p->node_count + p->tensor_count +
                p->constant_count + plan->copy_count + 1;
  weir_room room = {.cap_bytes = INT64_MAX};
  holding *h = weir_alloc_array(alloc, most, sizeof *h);
  bool ok = h != NULL && weir_room_reset(alloc, &room, 0);
  size_t count = ok ? list_holdings(p, plan, device, h) : 0, used = 0;
  for (size_t i = 0; i < count && ok; i++)
    ok = weir_room_add(alloc, &room, h[i].from_ns, h[i].to_ns, h[i].bytes);
  int64_t at = 0, peak = -1;
  for (size_t i = 0; i < room.count && ok; i++)
    if (room.steps[i].bytes > peak)
      peak = room.steps[i].bytes, at = room.steps[i].from_ns;
  if (ok) qsort(h, count, sizeof *h, by_size);
  text[0] = 0;
  assert(!ok || count <= most);
  for (size_t i = 0, shown = 0; i < count && shown < HOLDERS && ok; i++) {
    if (h[i].from_ns > at || h[i].to_ns <= at || used + 64 > size) continue;
    weir_sv name = p->names[h[i].node];
    used += (size_t)snprintf(text + used, size - used, "%s%.*s %" PRId64,
                             shown++ == 0 ? "" : ", ",
                             name.size < 32 ? (int)name.size : 32,
                             name.data == NULL ? "" : name.data, h[i].bytes);
  }
  weir_free(alloc, h);
  weir_free(alloc, room.steps);
  return ok;
}

/* "no plan can keep the memory caps: ...", where that is proved; else that
 * none was found. */
static weir_status write_verdict(const weir_allocator *alloc,
                                 const weir_place_problem *p, char *text,
                                 size_t size, weir_error *err) {
  weir_memory_lack l;
  WEIR_TRY(weir_memory_prove(alloc, p, &l, err));
  weir_sv name = l.proof == WEIR_MEMORY_ITEM ? p->names[l.node] : (weir_sv){0};
  if (l.proof == WEIR_MEMORY_OPEN)
    snprintf(text, size,
             "no plan that keeps the memory caps was found within "
             "the budget");
  else if (l.proof == WEIR_MEMORY_ITEM)
    snprintf(text, size,
             "no plan can keep the memory caps: the group of %.*s keeps "
             "%" PRId64
             " bytes, and no device that it may use has more than "
             "%" PRId64,
             name.size < 32 ? (int)name.size : 32,
             name.data == NULL ? "" : name.data, l.bytes, l.cap_bytes);
  else if (l.proof == WEIR_MEMORY_SUM)
    snprintf(text, size,
             "no plan can keep the memory caps: variables of %" PRId64
             " bytes may only be on devices of %" PRId64 " bytes in all",
             l.bytes, l.cap_bytes);
  else
    snprintf(text, size,
             "no plan can keep the memory caps: %u groups take more than half "
             "of a device each, and they may only be on %u",
             l.count, l.room);
  return WEIR_OK;
}

static weir_status report(const weir_allocator *alloc,
                          const weir_place_problem *p, int64_t cap,
                          const weir_place_plan *plan, weir_error *err) {
  char holders[192], verdict[224];
  WEIR_TRY(write_verdict(alloc, p, verdict, sizeof verdict, err));
  int64_t *peaks = weir_alloc_array(alloc, p->device_count, sizeof *peaks);
  if (peaks == NULL)
    return weir_fail_memory(err, p->device_count * sizeof *peaks);
  /* The peaks are wanted, not the verdict. */
  weir_error ignored = WEIR_ERROR_INIT;
  bool ok = weir_place_check(alloc, p, plan, peaks, &ignored) == WEIR_OK ||
            strcmp(ignored.id, "W6001") != 0;
  uint32_t worst = 0;
  for (uint32_t d = 0; d < p->device_count; d++)
    if (peaks[d] > peaks[worst]) worst = d;
  weir_free(alloc, peaks);
  if (!ok || !write_holders(alloc, p, plan, worst, holders, sizeof holders))
    return weir_fail_memory(err, p->node_count * sizeof(holding));
  return weir_fail(err, WEIR_W3013, NULL,
                   "%s; with %" PRId64
                   " bytes on every device one was found, which at the peak "
                   "of %.*s holds %s",
                   verdict, cap, (int)p->devices[worst].name.size,
                   p->devices[worst].name.data, holders);
}

/* About the smallest cap with which a plan was found, by halving between the
 * present caps and the sum of all bytes, with which every order fits. */
static weir_status find_cap(const weir_allocator *alloc,
                            const weir_place_problem *p, weir_place_plan **best,
                            weir_place_plan **tried, weir_error *err) {
  int64_t low = INT64_MAX, high = 0;
  for (uint32_t d = 0; d < p->device_count; d++)
    if (p->devices[d].memory_bytes < low) low = p->devices[d].memory_bytes;
  high = all_resident(p);
  for (uint32_t n = 0; n < p->node_count; n++)
    if (__builtin_add_overflow(high, own_bytes(p, n), &high)) high = INT64_MAX;
  bool found = false;
  WEIR_TRY(try_cap(alloc, p, high, best, &found, err));
  for (int i = 0; i < CAP_STEPS && high - low > high / 128; i++) {
    int64_t middle = low + (high - low) / 2;
    assert(low <= middle && middle < high);
    WEIR_TRY(try_cap(alloc, p, middle, tried, &found, err));
    if (!found) {
      low = middle;
      continue;
    }
    high = middle;
    weir_place_plan *better = *tried;
    *tried = *best;
    *best = better;
  }
  return report(alloc, p, high, *best, err);
}

weir_status weir_place_explain_short(const weir_allocator *alloc,
                                     const weir_place_problem *p,
                                     weir_error *err) {
  WEIR_TRY(find_giant(p, err));
  if (p->node_count > CAP_NODES) {
    char verdict[224];
    WEIR_TRY(write_verdict(alloc, p, verdict, sizeof verdict, err));
    return weir_fail(err, WEIR_W3013, NULL, "%s", verdict);
  }
  weir_place_plan *best = NULL, *tried = NULL;
  weir_status s = weir_place_plan_create(alloc, p, &best, err);
  if (s == WEIR_OK) s = weir_place_plan_create(alloc, p, &tried, err);
  if (s == WEIR_OK) s = find_cap(alloc, p, &best, &tried, err);
  weir_place_plan_release(best);
  weir_place_plan_release(tried);
  return s;
}
