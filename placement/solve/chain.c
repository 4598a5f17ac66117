/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/solve/chain.h"

#include <assert.h>
#include <string.h>

#include "placement/solve/item_order.h"
#include "placement/solve/load.h"
#include "runtime/base/size.h"

/* Devices that are alike are one kind; a state says how many of each kind are
 * taken. best[state][i] is the least possible largest load of a split of the
 * first i blocks over these devices. Blocks are items, or in large graphs
 * stretches of them.
 *
 *   best[s + one of k][i] = min over j < i of max(best[s][j], load of j..i on
 * k)
 *
 * The load of j..i needs no table: with j fixed, the stretch is made longer
 * block by block, and each tensor's copies are counted anew where it is
 * touched. The walk back gives the devices of one kind in turn.
 *
 * Cost: blocks^2 / 2 * states * kinds for the program, and blocks * uses for
 * the stretches; choose_blocks keeps both under a limit. */

enum {
  MOST_STATES = 4096,
  STEPS = 100000000, /* blocks^2 / 2 * states * kinds, at most about */
  VISITS = 100000000 /* blocks * uses */
};

typedef struct kind {
  uint32_t device, count, stride; /* the first, how many; in a state */
} kind;

typedef struct origin {
  uint32_t block; /* where the last stretch begins; NONE: nothing here */
  uint32_t kind;
} origin;

typedef struct chain {
  const weir_items *items;
  const weir_place_problem *p;
  const weir_chain_options *o;
  kind kinds[WEIR_PLACE_CLASSES];
  uint32_t kind_count, states;
  uint32_t blocks, orders;
  uint32_t *order;   /* items */
  int64_t *copy_ns;  /* per tensor, over the mean way */
  int64_t *best;     /* [block * states + state] */
  origin *from;      /* the same */
  uint32_t *stamp;   /* per tensor: the stretch that its counts are of */
  uint32_t *used;    /* per tensor: uses inside */
  bool *made;        /* per tensor: inside */
  uint32_t *read_in; /* per constant: the stretch that was last to read it */
  /* The stretch that is being made longer. */
  uint32_t stretch;
  int64_t copies, bytes, received;  /* bytes that stay, that come */
  int64_t work[WEIR_PLACE_CLASSES]; /* per kind; INT64_MAX: not possible */
} chain;

/* ---- Kinds */

static bool alike(const chain *c, uint32_t a, uint32_t b) {
  const weir_place_problem *p = c->p;
  if (p->devices[a].cls != p->devices[b].cls || c->o->cap[a] != c->o->cap[b] ||
      p->no_copy_load[a] != p->no_copy_load[b])
    return false;
  for (uint32_t s = 0; s < p->set_count; s++) {
    const uint64_t *set = p->sets + (size_t)s * p->set_words;
    if (((set[a >> 6] >> (a & 63)) & 1) != ((set[b >> 6] >> (b & 63)) & 1))
      return false;
  }
  return true;
}

static bool find_kinds(chain *c) {
  for (uint32_t d = 0; d < c->p->device_count; d++) {
    uint32_t k = 0;
    while (k < c->kind_count && !alike(c, c->kinds[k].device, d)) k++;
    if (k == WEIR_PLACE_CLASSES) return false;
    if (k == c->kind_count) c->kinds[c->kind_count++] = (kind){.device = d};
    c->kinds[k].count++;
  }
  c->states = 1;
  for (uint32_t k = 0; k < c->kind_count; k++) {
    c->kinds[k].stride = c->states;
    c->states *= c->kinds[k].count + 1;
    if (c->states > MOST_STATES) return false;
  }
  return true;
}

static uint32_t taken(const chain *c, uint32_t state, uint32_t k) {
  assert(k < c->kind_count && state < c->states);
  return state / c->kinds[k].stride % (c->kinds[k].count + 1);
}

/* ---- A stretch */

static void begin_stretch(chain *c) {
  c->stretch++;
  c->copies = c->bytes = c->received = 0;
  memset(c->work, 0, sizeof c->work);
}

static bool crosses(const chain *c, uint32_t t) {
  uint32_t uses = c->p->use_first[t + 1] - c->p->use_first[t];
  assert(c->used[t] <= uses);
  return c->made[t] ? c->used[t] < uses : c->used[t] > 0;
}

/* Whether |t| is copied into the stretch. */
static bool comes(const chain *c, uint32_t t) {
  return !c->made[t] && c->used[t] > 0;
}

/* Counts a use of |t| inside, or that it is made there. The stamp stands for
 * clearing both counts of all tensors at the beginning of a stretch. */
static void touch(chain *c, uint32_t t, bool makes) {
  if (c->stamp[t] != c->stretch) {
    c->stamp[t] = c->stretch;
    c->used[t] = 0;
    c->made[t] = false;
  }
  if (crosses(c, t)) c->copies -= c->copy_ns[t];
  if (comes(c, t)) c->received -= c->p->tensor_bytes[t];
  assert(!makes || !c->made[t]); /* each node is inside once */
  if (makes)
    c->made[t] = true;
  else
    c->used[t]++;
  if (crosses(c, t)) weir_sum_add(&c->copies, c->copy_ns[t]);
  if (comes(c, t)) weir_sum_add(&c->received, c->p->tensor_bytes[t]);
}

static void add_item(chain *c, uint32_t item) {
  const weir_place_problem *p = c->p;
  const weir_items *s = c->items;
  for (uint32_t i = s->first[item]; i < s->first[item + 1]; i++) {
    uint32_t n = s->node[i];
    for (uint32_t k = p->in_first[n]; k < p->in_first[n + 1]; k++)
      touch(c, p->in_tensor[k], false);
    for (uint32_t t = p->out_first[n]; t < p->out_first[n + 1]; t++)
      touch(c, t, true);
  }
  weir_sum_add(&c->bytes, s->resident[item]);
  if (c->o->sum) weir_sum_add(&c->bytes, weir_items_outputs(s, item));
  for (uint32_t r = s->read_first[item]; r < s->read_first[item + 1]; r++) {
    if (c->read_in[s->read[r]] == c->stretch) continue;
    c->read_in[s->read[r]] = c->stretch;
    weir_sum_add(&c->bytes, p->constant_bytes[s->read[r]]);
  }
  for (uint32_t k = 0; k < c->kind_count; k++)
    weir_sum_add(&c->work[k], weir_items_cost(s, item, c->kinds[k].device));
}

/* Load of the stretch on a device of kind |k|; INT64_MAX: it may not be. */
static int64_t stretch_load(const chain *c, uint32_t k) {
  uint32_t d = c->kinds[k].device;
  int64_t load = c->work[k];
  int64_t bytes = c->bytes;
  if (c->o->sum) weir_sum_add(&bytes, c->received);
  if (bytes > c->o->cap[d]) return INT64_MAX;
  if (c->o->sum)
    weir_sum_add(&load,
                 c->copies / 2); /* the other half is the other stretch's */
  else if (!c->p->no_copy_load[d])
    weir_sum_add(&load, c->copies);
  return load;
}

/* ---- The program */

static uint32_t block_begin(const chain *c, uint32_t block) {
  return (uint32_t)((uint64_t)block * c->items->count / c->blocks);
}

/* Takes the stretch from block |j| up to |i| into account. False when no kind
 * can hold it: work and bytes only grow with the stretch, so that no longer one
 * need be tried. (Copies may shrink, so a load alone ends nothing.) */
static bool extend(chain *c, uint32_t j, uint32_t i) {
  const int64_t *before = c->best + (size_t)j * c->states;
  int64_t *after = c->best + (size_t)i * c->states;
  origin *from = c->from + (size_t)i * c->states;
  bool some = false;
  assert(j < i && i <= c->blocks);
  for (uint32_t k = 0; k < c->kind_count; k++) {
    int64_t load = stretch_load(c, k);
    some |=
        c->work[k] != INT64_MAX && c->bytes <= c->o->cap[c->kinds[k].device];
    if (load == INT64_MAX) continue;
    for (uint32_t s = 0; s < c->states; s++) {
      if (before[s] == INT64_MAX || taken(c, s, k) == c->kinds[k].count)
        continue;
      int64_t value = before[s] > load ? before[s] : load;
      if (c->o->sum) value = before[s] + load;
      uint32_t next = s + c->kinds[k].stride;
      if (value >= after[next]) continue;
      after[next] = value;
      from[next] = (origin){j, k};
    }
  }
  return some;
}

static void run(chain *c) {
  size_t cells = ((size_t)c->blocks + 1) * c->states;
  for (size_t i = 0; i < cells; i++) c->best[i] = INT64_MAX;
  c->best[0] = 0;
  memset(c->stamp, 0, c->p->tensor_count * sizeof *c->stamp);
  memset(c->read_in, 0, c->p->constant_count * sizeof *c->read_in);
  c->stretch = 0;
  for (uint32_t j = 0; j < c->blocks; j++) {
    begin_stretch(c);
    for (uint32_t i = j + 1; i <= c->blocks; i++) {
      for (uint32_t k = block_begin(c, i - 1); k < block_begin(c, i); k++)
        add_item(c, c->order[k]);
      if (!extend(c, j, i)) break;
    }
  }
}

/* The device of the stretch that ends a state's split: the |nth| of its kind.
 */
static uint32_t device_of(const chain *c, uint32_t k, uint32_t nth) {
  uint32_t d = c->kinds[k].device;
  for (; nth > 0; nth--) do {
      d++;
    } while (!alike(c, c->kinds[k].device, d));
  assert(d < c->p->device_count);
  return d;
}

static void read_back(const chain *c, uint32_t state, uint32_t *device) {
  uint32_t block = c->blocks;
  while (block > 0) {
    origin o = c->from[(size_t)block * c->states + state];
    assert(o.block < block && taken(c, state, o.kind) > 0);
    state -= c->kinds[o.kind].stride;
    uint32_t d = device_of(c, o.kind, taken(c, state, o.kind));
    for (uint32_t k = block_begin(c, o.block); k < block_begin(c, block); k++)
      device[c->order[k]] = d;
    block = o.block;
  }
  assert(state == 0); /* no device is taken before the first stretch */
}

/* Puts the best split of this order among the best of all, if its value is new
 * there. */
static void keep_best(const chain *c, weir_chain_splits *out) {
  const int64_t *last = c->best + (size_t)c->blocks * c->states;
  uint32_t state = 0, items = c->items->count, at = out->count;
  for (uint32_t s = 1; s < c->states; s++)
    if (last[s] < last[state]) state = s;
  for (; at > 0 && out->value[at - 1] >= last[state]; at--)
    if (out->value[at - 1] == last[state]) return;
  if (last[state] == INT64_MAX || at == WEIR_CHAIN_SPLITS) return;
  if (out->count < WEIR_CHAIN_SPLITS) out->count++;
  for (uint32_t k = out->count; k-- > at + 1;) {
    out->value[k] = out->value[k - 1];
    memcpy(out->device + (size_t)k * items,
           out->device + (size_t)(k - 1) * items, items * sizeof *out->device);
  }
  out->value[at] = last[state];
  read_back(c, state, out->device + (size_t)at * items);
}

/* ---- All together */

/* As many blocks as the time allows, then as many orders. */
static void choose_blocks(chain *c) {
  uint64_t uses = (uint64_t)c->p->use_count + c->p->tensor_count + 1;
  uint64_t per_pair = (uint64_t)c->states * c->kind_count;
  c->blocks = c->items->count;
  while (c->blocks > 1 &&
         ((uint64_t)c->blocks * c->blocks / 2 * per_pair > STEPS ||
          c->blocks * uses > VISITS))
    c->blocks -= c->blocks / 16 + 1;
  uint64_t steps = (uint64_t)c->blocks * c->blocks / 2 * per_pair + 1;
  uint64_t orders = STEPS / steps < VISITS / (c->blocks * uses)
                        ? STEPS / steps
                        : VISITS / (c->blocks * uses);
  c->orders = orders > c->o->orders ? c->o->orders
              : orders == 0         ? 1
                                    : (uint32_t)orders;
}

static bool chain_begin(chain *c) {
  assert(c->blocks > 0 && c->blocks <= c->items->count && c->states > 0);
  const weir_allocator *a = c->items->alloc;
  size_t tensors = (size_t)c->p->tensor_count + 1;
  size_t cells = ((size_t)c->blocks + 1) * c->states;
  c->order = weir_alloc_array(a, c->items->count, sizeof *c->order);
  c->copy_ns = weir_alloc_array(a, tensors, sizeof *c->copy_ns);
  c->best = weir_alloc_array(a, cells, sizeof *c->best);
  c->from = weir_alloc_array(a, cells, sizeof *c->from);
  c->stamp = weir_alloc_array(a, tensors, sizeof *c->stamp);
  c->used = weir_alloc_array(a, tensors, sizeof *c->used);
  c->made = weir_alloc_array(a, tensors, sizeof *c->made);
  c->read_in =
      weir_alloc_array(a, (size_t)c->p->constant_count + 1, sizeof *c->read_in);
  return c->order != NULL && c->copy_ns != NULL && c->best != NULL &&
         c->from != NULL && c->stamp != NULL && c->used != NULL &&
         c->made != NULL && c->read_in != NULL;
}

static void chain_end(chain *c) {
  const weir_allocator *a = c->items->alloc;
  weir_free(a, c->order);
  weir_free(a, c->copy_ns);
  weir_free(a, c->best);
  weir_free(a, c->from);
  weir_free(a, c->stamp);
  weir_free(a, c->used);
  weir_free(a, c->made);
  weir_free(a, c->read_in);
}

weir_status weir_chain_split(const weir_items *items,
                             const weir_chain_options *options,
                             weir_chain_splits *out, weir_error *err) {
  chain c = {.items = items, .p = items->p, .o = options};
  out->count = 0;
  if (items->count == 0 || !find_kinds(&c)) return WEIR_OK;
  choose_blocks(&c);
  weir_status status = WEIR_OK;
  weir_item_orders *orders = NULL;
  if (chain_begin(&c)) {
    weir_load_mean_copies(c.p, c.copy_ns);
    status = weir_item_orders_create(items, c.copy_ns, &orders, err);
    for (uint32_t nth = 0; nth < c.orders && status == WEIR_OK; nth++) {
      weir_item_order_make(orders, nth, c.order);
      run(&c);
      keep_best(&c, out);
    }
    weir_item_orders_release(orders);
  } else {
    status = weir_fail_memory(err, items->count * sizeof *c.order);
  }
  chain_end(&c);
  return status;
}
