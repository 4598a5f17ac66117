/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/report/dump_critical.h"

#include <stdlib.h>

#include "placement/report/dump_internal.h"

/* ---- The critical chain: from the last node back, the cause of each start: a
 * tensor, a copy, or the device that was busy.
 *
 * Every start but those at 0 touches the end of its cause, so the chain follows
 * equal times; it ends at 0, or at a start that waited for memory. |most|
 * bounds it where a plan from a file has gaps or cycles of nodes without cost.
 * Cost: O(chain * (nodes + copies)). */

typedef struct chain_link {
  uint32_t node, copy; /* NONE: not of this kind */
  const char *why;
} chain_link;

/* The copy that brought |tensor| to |device|. */
static uint32_t find_copy(const weir_place_plan *plan, uint32_t tensor,
                          uint32_t device) {
  for (uint32_t i = 0; i < plan->copy_count; i++)
    if (plan->copies[i].tensor == tensor && plan->copies[i].to == device)
      return i;
  return WEIR_PLACE_NONE;
}

/* The node, or the copy that was sent, that |device| ended at |time|. */
static chain_link ended_at(const weir_place_view *v, uint32_t device,
                           int64_t time, chain_link but) {
  const weir_place_plan *plan = v->plan;
  for (uint32_t n = 0; n < plan->node_count; n++)
    if (n != but.node && plan->device[n] == device && plan->end_ns[n] == time &&
        plan->start_ns[n] < time)
      return (chain_link){n, WEIR_PLACE_NONE, but.why};
  for (uint32_t i = 0; i < plan->copy_count; i++) {
    const weir_place_copy *k = &plan->copies[i];
    int64_t ns = weir_place_send_ns(&v->problem->links[k->link],
                                    v->problem->tensor_bytes[k->tensor]);
    if (i != but.copy && k->from == device && ns > 0 &&
        k->start_ns + ns == time)
      return (chain_link){WEIR_PLACE_NONE, i, but.why};
  }
  return (chain_link){WEIR_PLACE_NONE, WEIR_PLACE_NONE, but.why};
}

static chain_link before_node(const weir_place_view *v, uint32_t n) {
  const weir_place_problem *p = v->problem;
  const weir_place_plan *plan = v->plan;
  for (uint32_t i = p->in_first[n]; i < p->in_first[n + 1]; i++) {
    uint32_t t = p->in_tensor[i], from = p->tensor_node[t];
    if (plan->device[from] == plan->device[n]) {
      if (plan->end_ns[from] == plan->start_ns[n])
        return (chain_link){from, WEIR_PLACE_NONE, "its tensor"};
      continue;
    }
    uint32_t c = find_copy(plan, t, plan->device[n]);
    if (c != WEIR_PLACE_NONE && plan->copies[c].end_ns == plan->start_ns[n])
      return (chain_link){WEIR_PLACE_NONE, c, "its tensor's copy"};
  }
  return ended_at(v, plan->device[n], plan->start_ns[n],
                  (chain_link){n, WEIR_PLACE_NONE, "the device was busy"});
}

static chain_link before_copy(const weir_place_view *v, uint32_t c) {
  const weir_place_problem *p = v->problem;
  const weir_place_plan *plan = v->plan;
  const weir_place_copy *k = &plan->copies[c];
  uint32_t from = p->tensor_node[k->tensor];
  int64_t begin = weir_place_copy_begin(p, k);
  if (plan->end_ns[from] == k->start_ns && begin == k->start_ns)
    return (chain_link){from, WEIR_PLACE_NONE, "its tensor"};
  for (uint32_t i = 0; i < plan->copy_count; i++) {
    const weir_place_copy *o = &plan->copies[i];
    int64_t ns =
        weir_place_link_ns(&p->links[o->link], p->tensor_bytes[o->tensor]);
    if (i != c && o->link == k->link && ns > 0 &&
        weir_place_copy_begin(p, o) + ns == begin)
      return (chain_link){WEIR_PLACE_NONE, i, "the link was busy"};
  }
  if (plan->end_ns[from] == k->start_ns) /* of a link with other figures */
    return (chain_link){from, WEIR_PLACE_NONE, "its tensor"};
  return ended_at(v, k->from, k->start_ns,
                  (chain_link){WEIR_PLACE_NONE, c, "the sender was busy"});
}

static bool write_link(const weir_place_view *v, chain_link at,
                       const weir_writer *out) {
  char name[300], ns[32];
  const weir_place_plan *plan = v->plan;
  if (at.copy != WEIR_PLACE_NONE) {
    const weir_place_copy *c = &plan->copies[at.copy];
    return weir_place_print(
        out, "%12" PRId64 "  %-10s copy of %s to %.*s   (waited for: %s)\n",
        c->start_ns, weir_quantity_print_time(c->end_ns - c->start_ns, ns),
        weir_place_node_text(v->problem, v->problem->tensor_node[c->tensor],
                             name),
        WEIR_SV(v->problem->devices[c->to].name), at.why);
  }
  return weir_place_print(
      out, "%12" PRId64 "  %-10s %s on %.*s   (waited for: %s)\n",
      plan->start_ns[at.node],
      weir_quantity_print_time(plan->end_ns[at.node] - plan->start_ns[at.node],
                               ns),
      weir_place_node_text(v->problem, at.node, name),
      WEIR_SV(v->problem->devices[plan->device[at.node]].name), at.why);
}

weir_status weir_place_write_critical(const weir_place_view *v,
                                      const weir_writer *out, weir_error *err) {
  const weir_place_plan *plan = v->plan;
  size_t most = (size_t)plan->node_count + plan->copy_count + 1, count = 0;
  chain_link *chain = weir_alloc_array(v->alloc, most, sizeof *chain);
  if (chain == NULL) return weir_fail_memory(err, most * sizeof *chain);
  chain_link at = {WEIR_PLACE_NONE, WEIR_PLACE_NONE, ""};
  for (uint32_t n = 0; n < plan->node_count; n++)
    if (plan->end_ns[n] == plan->makespan_ns) at.node = n;
  while (count < most &&
         (at.node != WEIR_PLACE_NONE || at.copy != WEIR_PLACE_NONE)) {
    chain_link before = at.copy != WEIR_PLACE_NONE ? before_copy(v, at.copy)
                                                   : before_node(v, at.node);
    bool first =
        before.node == WEIR_PLACE_NONE && before.copy == WEIR_PLACE_NONE;
    at.why = first ? "nothing" : before.why;
    chain[count++] = at;
    at = before;
  }
  bool ok = weir_place_print(out, "%12s  %-10s\n", "start ns", "takes");
  while (count > 0 && ok) ok = write_link(v, chain[--count], out);
  weir_free(v->alloc, chain);
  return WEIR_OK;
}

/* ---- Memory of one device */

typedef struct holder {
  int64_t from, to, bytes;
  uint32_t node;
  const char *what;
} holder;

static int larger(const void *x, const void *y) {
  const holder *a = x, *b = y;
  if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
  return a->node < b->node ? -1 : a->node > b->node;
}

/* The last moment at which |device| needs |tensor|. */
static int64_t needed_until(const weir_place_view *v, uint32_t tensor,
                            uint32_t device, int64_t from) {
  const weir_place_problem *p = v->problem;
  for (uint32_t u = p->use_first[tensor]; u < p->use_first[tensor + 1]; u++)
    if (v->plan->device[p->use_node[u]] == device &&
        v->plan->end_ns[p->use_node[u]] > from)
      from = v->plan->end_ns[p->use_node[u]];
  for (uint32_t i = 0; i < v->plan->copy_count; i++)
    if (v->plan->copies[i].tensor == tensor &&
        v->plan->copies[i].from == device && v->plan->copies[i].end_ns > from)
      from = v->plan->copies[i].end_ns;
  return from;
}

static size_t list_holders(const weir_place_view *v, uint32_t device,
                           holder *h) {
  const weir_place_problem *p = v->problem;
  const weir_place_plan *plan = v->plan;
  size_t count = 0;
  for (uint32_t n = 0; n < p->node_count; n++) {
    if (plan->device[n] != device) continue;
    if (p->resident_bytes[n] > 0)
      h[count++] = (holder){0, INT64_MAX, p->resident_bytes[n], n, "variable"};
    if (weir_place_temp(p, plan->device, n) != 0)
      h[count++] =
          (holder){plan->start_ns[n], plan->end_ns[n],
                   weir_place_temp(p, plan->device, n), n, "temporary"};
    for (uint32_t t = p->out_first[n]; t < p->out_first[n + 1]; t++)
      if (weir_place_takes(p, plan->device, t, device) > 0)
        h[count++] = (holder){
            plan->start_ns[n], needed_until(v, t, device, plan->end_ns[n]),
            weir_place_takes(p, plan->device, t, device), n, "tensor"};
  }
  for (uint32_t c = 0; c < p->constant_count; c++) {
    uint32_t reader = weir_place_reader(p, plan->device, c, device);
    if (reader != WEIR_PLACE_NONE)
      h[count++] = (holder){
          0, INT64_MAX, p->constant_bytes[c],
          p->constant_home[c] != WEIR_PLACE_NONE ? p->constant_home[c] : reader,
          "constant"};
  }
  for (uint32_t i = 0; i < plan->copy_count; i++) {
    const weir_place_copy *c = &plan->copies[i];
    if (c->to == device &&
        weir_place_takes(p, plan->device, c->tensor, device) > 0)
      h[count++] =
          (holder){c->start_ns, needed_until(v, c->tensor, device, c->end_ns),
                   weir_place_takes(p, plan->device, c->tensor, device),
                   p->tensor_node[c->tensor], "copy"};
  }
  return count;
}

/* The first moment with the most bytes. Sums rise only where a holder begins,
 * so only such moments are tried. O(holders^2): for one device, on request. */
static int64_t peak_moment(const holder *h, size_t count, int64_t *peak) {
  int64_t best = 0;
  *peak = -1;
  for (size_t i = 0; i < count; i++) {
    int64_t sum = 0;
    for (size_t k = 0; k < count; k++)
      if (h[k].from <= h[i].from && h[k].to > h[i].from) sum += h[k].bytes;
    if (sum > *peak) {
      *peak = sum;
      best = h[i].from;
    }
  }
  return best;
}

weir_status weir_place_write_memory(const weir_place_view *v, uint32_t device,
                                    const weir_writer *out, weir_error *err) {
  const weir_place_problem *p = v->problem;
  size_t most = 2 * (size_t)p->node_count + p->tensor_count +
                p->constant_count + v->plan->copy_count + 1;
  char name[300], bytes[32], moment[32];
  holder *h = weir_alloc_array(v->alloc, most, sizeof *h);
  if (h == NULL) return weir_fail_memory(err, most * sizeof *h);
  size_t count = list_holders(v, device, h), shown = 0;
  int64_t peak, at = peak_moment(h, count, &peak);
  qsort(h, count, sizeof *h, larger);
  bool ok = weir_place_print(
      out, "%.*s: peak %s at %s\n", WEIR_SV(p->devices[device].name),
      weir_quantity_print_bytes(peak < 0 ? 0 : peak, bytes),
      weir_quantity_print_time(at, moment));
  for (size_t i = 0; i < count && shown < 10 && ok; i++) {
    if (h[i].from > at || h[i].to <= at || h[i].bytes <= 0) continue;
    shown++;
    ok = weir_place_print(out, "  %10s  %-9s %s\n",
                          weir_quantity_print_bytes(h[i].bytes, bytes),
                          h[i].what, weir_place_node_text(p, h[i].node, name));
  }
  weir_free(v->alloc, h);
  return WEIR_OK;
}
