/* SPDX-License-Identifier: Apache-2.0 */
/* Orders of nodes that keep few bytes alive.
 *
 * The heap takes the ready node that adds the fewest bytes (its tensors, less
 * those it uses last), ties by depth first, i.e. the node that became ready
 * last. Sources (variables, inputs) wait until their first reader is taken:
 * they are ready from the beginning and would else all lie there before
 * anything runs. Invariant: every node is emitted once, after its inputs; a
 * node whose key fell is pushed again and its old entry is passed over. Cost:
 * O((nodes + uses) log). */
#include "placement/solve/rescue_order.h"

#include <assert.h>
#include <string.h>

#include "placement/schedule/rank.h"
#include "placement/solve/rescue.h"
#include "runtime/base/vec.h"

/* A ready node in the heap: the least |key| first, then the latest |turn|. An
 * entry whose node's key fell since is followed by a better one. */
typedef struct entry {
  int64_t key;
  uint32_t turn, node;
} entry;

typedef struct orderer {
  const weir_allocator *alloc;
  const weir_place_problem *p;
  WEIR_VEC(entry) heap;
  uint32_t *waiting;   /* per node: inputs to come that are no sources */
  uint32_t *uses_left; /* per tensor */
  bool *done;          /* per node */
  uint32_t *order;
  uint32_t count, turn;
  bool net;
} orderer;

static bool is_source(const weir_place_problem *p, uint32_t n) {
  return p->in_first[n] == p->in_first[n + 1];
}

static bool is_before(const entry *a, const entry *b) {
  return a->key < b->key || (a->key == b->key && a->turn > b->turn);
}

static bool push(orderer *o, entry e) {
  if (!weir_vec_push(o->alloc, &o->heap, e)) return false;
  size_t i = o->heap.count - 1;
  for (; i > 0 && is_before(&e, &o->heap.items[(i - 1) / 2]); i = (i - 1) / 2)
    o->heap.items[i] = o->heap.items[(i - 1) / 2];
  o->heap.items[i] = e;
  return true;
}

static entry pop(orderer *o) {
  assert(o->heap.count > 0);
  entry *h = o->heap.items, top = h[0], last = h[--o->heap.count];
  size_t i = 0, child;
  while ((child = 2 * i + 1) < o->heap.count) {
    if (child + 1 < o->heap.count && is_before(&h[child + 1], &h[child]))
      child++;
    if (!is_before(&h[child], &last)) break;
    h[i] = h[child];
    i = child;
  }
  h[i] = last;
  return top;
}

/* Bytes that |n| adds: its tensors, less those that it uses last. */
static int64_t net_bytes(const orderer *o, uint32_t n) {
  const weir_place_problem *p = o->p;
  int64_t bytes = 0;
  if (!o->net) return 0;
  for (uint32_t t = p->out_first[n]; t < p->out_first[n + 1]; t++)
    if (!weir_place_is_kept(p, t) && p->use_first[t] != p->use_first[t + 1])
      bytes += p->tensor_bytes[t];
  for (uint32_t i = p->in_first[n]; i < p->in_first[n + 1]; i++) {
    uint32_t t = p->in_tensor[i];
    if (o->uses_left[t] == 1 && !weir_place_is_kept(p, t))
      bytes -= p->tensor_bytes[t];
  }
  return bytes;
}

static bool make_ready(orderer *o, uint32_t n) {
  return push(o, (entry){net_bytes(o, n), o->turn++, n});
}

/* The only node left that uses |t| may have become cheaper. It is pushed again
 * with its new key; the old entry is met later, when the node is done. */
static bool requeue_last(orderer *o, uint32_t t) {
  const weir_place_problem *p = o->p;
  for (uint32_t u = p->use_first[t]; u < p->use_first[t + 1]; u++) {
    uint32_t n = p->use_node[u];
    if (!o->done[n]) return o->waiting[n] != 0 || make_ready(o, n);
  }
  return true;
}

static bool emit(orderer *o, uint32_t n) {
  const weir_place_problem *p = o->p;
  bool ok = true;
  assert(!o->done[n] && o->waiting[n] == 0);
  for (uint32_t i = p->in_first[n]; i < p->in_first[n + 1]; i++) {
    uint32_t from = p->tensor_node[p->in_tensor[i]];
    if (o->done[from]) continue;
    assert(is_source(p, from)); /* others were waited for */
    o->done[from] = true;
    o->order[o->count++] = from;
  }
  o->done[n] = true;
  o->order[o->count++] = n;
  for (uint32_t i = p->in_first[n]; i < p->in_first[n + 1] && ok; i++)
    if (--o->uses_left[p->in_tensor[i]] == 1 && o->net)
      ok = requeue_last(o, p->in_tensor[i]);
  for (uint32_t t = p->out_first[n]; t < p->out_first[n + 1]; t++)
    for (uint32_t u = p->use_first[t]; u < p->use_first[t + 1] && ok; u++)
      if (--o->waiting[p->use_node[u]] == 0) ok = make_ready(o, p->use_node[u]);
  return ok;
}

static bool run_heap(orderer *o) {
  const weir_place_problem *p = o->p;
  bool ok = true;
  for (uint32_t t = 0; t < p->tensor_count; t++)
    o->uses_left[t] = p->use_first[t + 1] - p->use_first[t];
  for (uint32_t n = p->node_count; n-- > 0 && ok;) {
    for (uint32_t i = p->in_first[n]; i < p->in_first[n + 1]; i++)
      o->waiting[n] += !is_source(p, p->tensor_node[p->in_tensor[i]]);
    if (o->waiting[n] == 0 && !is_source(p, n)) ok = make_ready(o, n);
  }
  while (o->heap.count > 0 && ok) {
    entry e = pop(o);
    if (!o->done[e.node]) ok = emit(o, e.node);
  }
  for (uint32_t n = 0; n < p->node_count && ok; n++)
    if (!o->done[n]) ok = emit(o, n); /* sources without a reader */
  return ok;
}

/* The order by rank or by number, with sources moved to their first use. */
static weir_status run_list(orderer *o, weir_rescue_order kind,
                            weir_error *err) {
  const weir_place_problem *p = o->p;
  size_t n = (size_t)p->node_count + 1;
  int64_t *key = weir_alloc_array(o->alloc, n, sizeof *key);
  uint32_t *list = weir_alloc_array(o->alloc, 2 * n, sizeof *list);
  weir_status s = WEIR_OK;
  if (key == NULL || list == NULL) {
    s = weir_fail_memory(err, n * sizeof *key);
  } else {
    if (kind == WEIR_RESCUE_RANK) weir_place_rank(p, WEIR_RANK_MEAN, key);
    for (uint32_t i = 0; i < p->node_count && kind == WEIR_RESCUE_NUMBER; i++)
      key[i] = -(int64_t)i;
    weir_place_order(p, key, list + n, o->waiting, list);
    for (uint32_t i = 0; i < p->node_count; i++) {
      uint32_t x = list[i];
      if (is_source(p, x)) continue;
      for (uint32_t k = p->in_first[x]; k < p->in_first[x + 1]; k++) {
        uint32_t from = p->tensor_node[p->in_tensor[k]];
        if (!o->done[from]) o->order[o->count++] = from;
        o->done[from] = true;
      }
      o->order[o->count++] = x;
      o->done[x] = true;
    }
    for (uint32_t x = 0; x < p->node_count; x++)
      if (!o->done[x]) o->order[o->count++] = x;
  }
  weir_free(o->alloc, key);
  weir_free(o->alloc, list);
  return s;
}

weir_status weir_rescue_order_make(const weir_allocator *alloc,
                                   const weir_place_problem *p,
                                   weir_rescue_order kind, uint32_t *order,
                                   weir_error *err) {
  size_t n = (size_t)p->node_count + 1;
  orderer o = {.alloc = alloc, .p = p, .order = order};
  o.net = kind == WEIR_RESCUE_NET;
  o.waiting = weir_alloc_array(alloc, n, sizeof *o.waiting);
  o.done = weir_alloc_array(alloc, n, sizeof *o.done);
  o.uses_left =
      weir_alloc_array(alloc, (size_t)p->tensor_count + 1, sizeof *o.uses_left);
  weir_status s = WEIR_OK;
  if (o.waiting == NULL || o.done == NULL || o.uses_left == NULL)
    s = weir_fail_memory(err, n * sizeof *o.waiting);
  else if (kind == WEIR_RESCUE_RANK || kind == WEIR_RESCUE_NUMBER)
    s = run_list(&o, kind, err);
  else if (!run_heap(&o))
    s = weir_fail_memory(err, n * sizeof(entry));
  assert(s != WEIR_OK || o.count == p->node_count);
  weir_vec_free(alloc, &o.heap);
  weir_free(alloc, o.waiting);
  weir_free(alloc, o.done);
  weir_free(alloc, o.uses_left);
  return s;
}
