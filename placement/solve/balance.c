/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/solve/balance.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "placement/solve/item_order.h"
#include "placement/solve/load.h"
#include "runtime/base/mix.h"

/* One split is changed in place, and its costs are kept beside it: a move
 * takes the copies of the tensors that the item touches out of all sums, moves
 * the item, and puts them back as they are then. |log| has the changes of
 * the present move, so that a refused one is taken back by moving again.
 *
 * Invariant: |split|, |mask| and |users| equal fill_state's result for
 * |device|. Sums are integers, so no number of moves lets them drift.
 *
 * Cost: a move takes the uses of the item's tensors, and one look at all
 * devices for its value. */

enum {
  GROUP = 8,       /* items that move together, at most */
  STEPS = 64,      /* of the threshold, per round */
  ORDERS = 16,     /* for splits of pairs */
  PAIR_EVERY = 64, /* and items: moves between two of these, about */
  TABLE_BYTES = 64 << 20
};

typedef struct change {
  uint32_t item, device; /* where it was */
} change;

typedef struct balance {
  const weir_items *items;
  const weir_place_problem *p;
  const weir_balance_options *o;
  uint32_t devices;
  int64_t *cost;    /* [item * devices + device] */
  uint32_t *device; /* per item, now */
  uint32_t *best;
  uint64_t *mask;    /* per tensor: devices with uses */
  uint32_t *users;   /* [tensor * devices + device] */
  uint32_t *readers; /* [constant * devices + device]: items there */
  int64_t *copy_ns;  /* per tensor, where all ways are alike; else NULL */
  weir_split split;  /* the sums of |device| */
  double unit;       /* of |value|: one over the goal at the beginning */
  uint64_t random;
  change *log; /* room for all items */
  uint32_t logged;
  uint32_t *orders; /* ORDERS of all items */
} balance;

/* ---- The state */

static int64_t copy_ns(const balance *b, uint32_t t, uint32_t from,
                       uint32_t to) {
  return b->copy_ns != NULL ? b->copy_ns[t] : weir_load_copy(b->p, t, from, to);
}

/* Counts |t|'s copies from |from|, or takes them back. */
static void count_copies(balance *b, uint32_t t, uint32_t from, int64_t sign) {
  assert(from < b->devices && (sign == 1 || sign == -1));
  uint64_t to = b->mask[t] & ~(UINT64_C(1) << from);
  int64_t longest = 0;
  for (; to != 0; to &= to - 1) {
    uint32_t d = (uint32_t)__builtin_ctzll(to);
    int64_t ns = copy_ns(b, t, from, d);
    if (!b->p->no_copy_load[d]) b->split.load[d] += sign * ns;
    if (ns > longest) longest = ns;
    b->split.moved += sign * b->p->tensor_bytes[t];
  }
  if (!b->p->no_copy_load[from]) b->split.load[from] += sign * longest;
}

static uint32_t producer(const balance *b, uint32_t t) {
  return b->items->of[b->p->tensor_node[t]];
}

/* Uses of |t| by the nodes of |item| move from |from| to |to|. */
static void move_users(balance *b, uint32_t item, uint32_t from, uint32_t to) {
  const weir_place_problem *p = b->p;
  for (uint32_t i = b->items->first[item]; i < b->items->first[item + 1]; i++) {
    uint32_t n = b->items->node[i];
    for (uint32_t k = p->in_first[n]; k < p->in_first[n + 1]; k++) {
      uint32_t t = p->in_tensor[k];
      uint32_t *users = b->users + (size_t)t * b->devices;
      assert(to < b->devices && (from == b->devices || users[from] > 0));
      if (from < b->devices && --users[from] == 0)
        b->mask[t] &= ~(UINT64_C(1) << from);
      if (users[to]++ == 0) b->mask[t] |= UINT64_C(1) << to;
    }
    for (uint32_t t = p->out_first[n]; t < p->out_first[n + 1]; t++) {
      if (weir_place_is_kept(p, t)) continue;
      int64_t bytes = weir_place_held(p, p->tensor_bytes[t]);
      if (from < b->devices) b->split.outputs[from] -= bytes;
      b->split.outputs[to] += bytes;
    }
  }
}

/* The constants of |item| go from |from| (no device: from nowhere) to |to|:
 * their bytes are where they have a reader. */
static void move_reads(balance *b, uint32_t item, uint32_t from, uint32_t to) {
  const weir_items *s = b->items;
  for (uint32_t r = s->read_first[item]; r < s->read_first[item + 1]; r++) {
    uint32_t *readers = b->readers + (size_t)s->read[r] * b->devices;
    int64_t bytes = b->p->constant_bytes[s->read[r]];
    assert(from == b->devices || readers[from] > 0);
    if (from < b->devices && --readers[from] == 0)
      b->split.bytes[from] -= bytes;
    if (readers[to]++ == 0) b->split.bytes[to] += bytes;
  }
}

/* Bytes that |item| would bring to |to|. */
static int64_t brought_bytes(const balance *b, uint32_t item, uint32_t to) {
  const weir_items *s = b->items;
  int64_t bytes = s->resident[item];
  for (uint32_t r = s->read_first[item]; r < s->read_first[item + 1]; r++)
    if (b->readers[(size_t)s->read[r] * b->devices + to] == 0)
      bytes += b->p->constant_bytes[s->read[r]];
  return bytes;
}

static void move_item(balance *b, uint32_t item, uint32_t to) {
  const weir_items *s = b->items;
  uint32_t from = b->device[item];
  assert(item < s->count && from != to);
  for (uint32_t k = s->touch_first[item]; k < s->touch_first[item + 1]; k++)
    count_copies(b, s->touch[k], b->device[producer(b, s->touch[k])], -1);
  move_users(b, item, from, to);
  b->device[item] = to;
  for (uint32_t k = s->touch_first[item]; k < s->touch_first[item + 1]; k++)
    count_copies(b, s->touch[k], b->device[producer(b, s->touch[k])], 1);
  b->split.load[from] -= b->cost[(size_t)item * b->devices + from];
  b->split.load[to] += b->cost[(size_t)item * b->devices + to];
  b->split.bytes[from] -= s->resident[item];
  b->split.bytes[to] += s->resident[item];
  move_reads(b, item, from, to);
}

static void fill_state(balance *b, const uint32_t *device) {
  const weir_items *s = b->items;
  memset(b->split.load, 0, sizeof b->split.load);
  memset(b->split.bytes, 0, sizeof b->split.bytes);
  memset(b->split.outputs, 0, sizeof b->split.outputs);
  memset(b->mask, 0, b->p->tensor_count * sizeof *b->mask);
  memset(b->users, 0,
         (size_t)b->p->tensor_count * b->devices * sizeof *b->users);
  memset(b->readers, 0,
         (size_t)b->p->constant_count * b->devices * sizeof *b->readers);
  memcpy(b->device, device, s->count * sizeof *b->device);
  b->split.moved = 0;
  for (uint32_t i = 0; i < s->count; i++) {
    move_users(b, i, b->devices, device[i]);
    b->split.load[device[i]] += b->cost[(size_t)i * b->devices + device[i]];
    b->split.bytes[device[i]] += s->resident[i];
    move_reads(b, i, b->devices, device[i]);
  }
  for (uint32_t t = 0; t < b->p->tensor_count; t++)
    count_copies(b, t, device[producer(b, t)], 1);
}

/* ---- The quantity to minimise */

/* The goal itself. */
static int64_t goal(const balance *b) {
  const weir_balance_goal *g = b->o->goal;
  int64_t most = 0;
  if (g->of_device == NULL) return g->of_all(&b->split);
  for (uint32_t d = 0; d < b->devices; d++) {
    int64_t x = g->of_device(&b->split, d);
    if (x > most) most = x;
  }
  return most;
}

/* A smooth stand-in for the largest: the sum of sixteenth powers, with the goal
 * at the round's beginning as 1. The largest alone is flat: a move that makes
 * the second largest smaller is progress that it does not see. Products only,
 * so the same on every machine. */
static double value(const balance *b) {
  const weir_balance_goal *g = b->o->goal;
  double sum = 0;
  if (g->of_device == NULL) return (double)g->of_all(&b->split) * b->unit;
  for (uint32_t d = 0; d < b->devices; d++) {
    double y = (double)g->of_device(&b->split, d) * b->unit;
    y *= y;
    y *= y;
    y *= y;
    sum += y * y;
  }
  return sum;
}

/* ---- Moves */

/* Whether |item| may go to |to|, with |more| bytes going there as well. */
static bool allowed(const balance *b, uint32_t item, uint32_t to,
                    int64_t less) {
  int64_t free = b->o->cap[to] - b->split.bytes[to] + less;
  return b->cost[(size_t)item * b->devices + to] != WEIR_PLACE_NO_KERNEL &&
         brought_bytes(b, item, to) <= free;
}

static bool send(balance *b, uint32_t item, uint32_t to, int64_t less) {
  uint32_t from = b->device[item];
  if (from == to || !allowed(b, item, to, less)) return false;
  assert(b->logged < b->items->count);
  b->log[b->logged++] = (change){item, from};
  move_item(b, item, to);
  return true;
}

static void take_back(balance *b) {
  while (b->logged > 0) {
    change c = b->log[--b->logged];
    if (b->device[c.item] != c.device) move_item(b, c.item, c.device);
  }
}

/* A random item that shares a tensor with |item|, or |item|. */
static uint32_t neighbour(balance *b, uint32_t item) {
  const weir_items *s = b->items;
  uint32_t count = s->touch_first[item + 1] - s->touch_first[item];
  if (count == 0) return item;
  uint32_t t =
      s->touch[s->touch_first[item] + weir_mix_below(&b->random, count)];
  uint32_t uses = b->p->use_first[t + 1] - b->p->use_first[t];
  uint32_t k = weir_mix_below(&b->random, uses + 1);
  return k == uses ? producer(b, t)
                   : s->of[b->p->use_node[b->p->use_first[t] + k]];
}

/* Sends |item|, and some neighbours on its device, to |to|. */
static void send_group(balance *b, uint32_t item, uint32_t to) {
  uint32_t from = b->device[item], want = 1 + weir_mix_below(&b->random, GROUP);
  if (!send(b, item, to, 0)) return;
  for (uint32_t tries = 0; tries < 2 * GROUP && b->logged < want; tries++) {
    uint32_t next =
        neighbour(b, b->log[weir_mix_below(&b->random, b->logged)].item);
    if (b->device[next] == from) send(b, next, to, 0);
  }
}

/* Bytes that would leave |item|'s device with it. */
static int64_t freed_bytes(const balance *b, uint32_t item) {
  const weir_items *s = b->items;
  int64_t bytes = s->resident[item];
  for (uint32_t r = s->read_first[item]; r < s->read_first[item + 1]; r++)
    if (b->readers[(size_t)s->read[r] * b->devices + b->device[item]] == 1)
      bytes += b->p->constant_bytes[s->read[r]];
  return bytes;
}

/* A constant of both stays where it is, though each alone would take it along:
 * so the caps are looked at once more. */
static void swap(balance *b, uint32_t i, uint32_t j) {
  uint32_t di = b->device[i], dj = b->device[j];
  if (di == dj || !allowed(b, i, dj, freed_bytes(b, j)) ||
      !allowed(b, j, di, freed_bytes(b, i)))
    return;
  if (!send(b, i, dj, freed_bytes(b, j)) || !send(b, j, di, 0) ||
      b->split.bytes[dj] > b->o->cap[dj])
    take_back(b);
}

/* ---- Two devices split anew. All items of both go to one of them, then one
 * after the other in a linear order, from a random place around, to the other;
 * the best moment of that stays. Of the pair's splits into an interval of the
 * order and the rest it is the best with that beginning. */

static bool may(const balance *b, uint32_t item, uint32_t device) {
  return b->cost[(size_t)item * b->devices + device] != WEIR_PLACE_NO_KERNEL;
}

/* Notes the items of both devices. */
static void list_pair(balance *b, uint32_t one, uint32_t other) {
  uint32_t items = b->items->count, at = weir_mix_below(&b->random, items);
  const uint32_t *order =
      b->orders + (size_t)weir_mix_below(&b->random, ORDERS) * items;
  for (uint32_t k = 0; k < items; k++, at = at + 1 == items ? 0 : at + 1)
    if (b->device[order[at]] == one || b->device[order[at]] == other)
      b->log[b->logged++] = (change){order[at], b->device[order[at]]};
}

static void split_pair(balance *b, uint32_t one, uint32_t other) {
  double least = INFINITY;
  uint32_t best = 0;
  list_pair(b, one, other);
  for (uint32_t k = 0; k < b->logged; k++)
    if (b->device[b->log[k].item] == one && may(b, b->log[k].item, other))
      move_item(b, b->log[k].item, other);
  for (uint32_t k = 0; k < b->logged; k++) {
    if (b->device[b->log[k].item] == other && may(b, b->log[k].item, one))
      move_item(b, b->log[k].item, one);
    if (b->split.bytes[one] > b->o->cap[one] ||
        b->split.bytes[other] > b->o->cap[other])
      continue;
    double now = value(b);
    if (now < least) least = now, best = k + 1;
  }
  for (uint32_t k = b->logged; k-- > best;)
    if (b->device[b->log[k].item] == one && may(b, b->log[k].item, other))
      move_item(b, b->log[k].item, other);
  if (best > 0) return;
  take_back(b);
}

static void split_some_pair(balance *b) {
  uint32_t item = weir_mix_below(&b->random, b->items->count);
  uint32_t one = b->device[item], other = b->device[neighbour(b, item)];
  if (one == other) other = weir_mix_below(&b->random, b->devices);
  if (one != other) split_pair(b, one, other);
}

static void change_something(balance *b) {
  uint32_t item = weir_mix_below(&b->random, b->items->count);
  uint32_t kind = weir_mix_below(&b->random, 8), other = neighbour(b, item);
  uint32_t to = b->device[other];
  if (to == b->device[item] || kind == 0)
    to = weir_mix_below(&b->random, b->devices);
  if (kind < 4)
    send(b, item, to, 0);
  else if (kind < 6)
    send_group(b, item, to);
  else
    swap(b, item,
         kind == 6 ? neighbour(b, other)
                   : weir_mix_below(&b->random, b->items->count));
}

/* ---- The search */

static uint64_t round_moves(const balance *b) {
  uint64_t moves = (uint64_t)b->items->count * 1000;
  return moves < 50000 ? 50000 : moves > 400000 ? 400000 : moves;
}

/* One round: from |device|, accepting worse by less and less. True when the
 * search is to end. */
static bool run_round(balance *b, double hot, int64_t *best, uint64_t *done) {
  uint64_t moves = round_moves(b);
  b->unit = 1.0 / (double)(goal(b) > 0 ? goal(b) : 1);
  assert(moves >= STEPS);
  double now = value(b), threshold = hot;
  uint64_t step = 0;
  for (uint64_t k = 0; k < moves && *done < b->o->moves; k++, ++*done) {
    if (k >= step) {
      step += moves / STEPS;
      threshold *= 0.9;
      if (b->o->stop != NULL && b->o->stop(b->o->stop_self)) return true;
    }
    b->logged = 0;
    if (b->orders != NULL &&
        weir_mix_below(&b->random, b->items->count + PAIR_EVERY) == 0)
      split_some_pair(b);
    else
      change_something(b);
    if (b->logged == 0) continue;
    k += b->logged - 1;
    *done += b->logged - 1;
    double next = value(b);
    /* The threshold is drawn anew: at most itself, mostly far below. */
    double u = (double)(weir_mix_next(&b->random) >> 40) * 0x1p-24;
    if (next > now + threshold * now * u * u) {
      take_back(b);
      continue;
    }
    now = next;
    int64_t g = goal(b);
    if (g >= *best) continue;
    *best = g;
    memcpy(b->best, b->device, b->items->count * sizeof *b->best);
    if (g <= b->o->bound) return true;
  }
  return *done >= b->o->moves;
}

/* Rounds of unequal heat, each from the best so far: a cool one improves
 * nearby, a hot one leaves a valley. */
static void search(balance *b, uint64_t *done) {
  static const double hot[] = {0.3, 2, 0.05, 8};
  int64_t best = goal(b);
  memcpy(b->best, b->device, b->items->count * sizeof *b->best);
  for (uint32_t round = 0; best > b->o->bound; round++) {
    if (run_round(b, hot[round % 4], &best, done)) break;
    fill_state(b, b->best);
  }
}

static bool begin(balance *b) {
  const weir_allocator *a = b->items->alloc;
  const weir_place_problem *p = b->p;
  size_t tensors = (size_t)p->tensor_count + 1, items = b->items->count;
  b->cost = weir_alloc_array(a, items * b->devices + 1, sizeof *b->cost);
  b->device = weir_alloc_array(a, items + 1, sizeof *b->device);
  b->best = weir_alloc_array(a, items + 1, sizeof *b->best);
  b->mask = weir_alloc_array(a, tensors, sizeof *b->mask);
  b->users = weir_alloc_array(a, tensors * b->devices, sizeof *b->users);
  b->readers = weir_alloc_array(a, ((size_t)p->constant_count + 1) * b->devices,
                                sizeof *b->readers);
  b->copy_ns = weir_alloc_array(a, tensors, sizeof *b->copy_ns);
  b->log = weir_alloc_array(a, items + 1, sizeof *b->log);
  return b->cost != NULL && b->device != NULL && b->best != NULL &&
         b->mask != NULL && b->users != NULL && b->readers != NULL &&
         b->copy_ns != NULL && b->log != NULL;
}

static void end(balance *b) {
  const weir_allocator *a = b->items->alloc;
  weir_free(a, b->cost);
  weir_free(a, b->device);
  weir_free(a, b->best);
  weir_free(a, b->mask);
  weir_free(a, b->users);
  weir_free(a, b->readers);
  weir_free(a, b->copy_ns);
  weir_free(a, b->log);
  weir_free(a, b->orders);
}

static weir_status make_orders(balance *b, weir_error *err) {
  const weir_place_problem *p = b->p;
  weir_item_orders *orders = NULL;
  size_t items = b->items->count;
  int64_t *ns = weir_alloc_array(b->items->alloc, (size_t)p->tensor_count + 1,
                                 sizeof *ns);
  b->orders =
      weir_alloc_array(b->items->alloc, ORDERS * items, sizeof *b->orders);
  weir_status s = ns == NULL || b->orders == NULL
                      ? weir_fail_memory(err, ORDERS * items)
                      : WEIR_OK;
  if (s == WEIR_OK) weir_load_mean_copies(p, ns);
  if (s == WEIR_OK) s = weir_item_orders_create(b->items, ns, &orders, err);
  for (uint32_t k = 0; k < ORDERS && s == WEIR_OK; k++)
    weir_item_order_make(orders, k == 1 ? 10 : k, b->orders + k * items);
  weir_item_orders_release(orders);
  weir_free(b->items->alloc, ns);
  return s;
}

weir_status weir_balance(const weir_items *items, const weir_balance_options *o,
                         uint32_t *device, uint64_t *out_moves,
                         weir_error *err) {
  const weir_place_problem *p = items->p;
  balance b = {.items = items,
               .p = p,
               .o = o,
               .devices = p->device_count,
               .random = o->seed};
  *out_moves = 0;
  if (b.devices < 2 || b.devices > WEIR_BALANCE_DEVICES || items->count == 0 ||
      ((size_t)p->tensor_count + p->constant_count + items->count) * b.devices >
          TABLE_BYTES / 8 ||
      !weir_load_sums_fit(p))
    return WEIR_OK;
  if (!begin(&b)) {
    end(&b);
    return weir_fail_memory(err, items->count * sizeof *b.device);
  }
  for (uint32_t i = 0; i < items->count; i++)
    for (uint32_t d = 0; d < b.devices; d++)
      b.cost[(size_t)i * b.devices + d] = weir_items_cost(items, i, d);
  if (weir_load_ways_are_alike(p)) {
    for (uint32_t t = 0; t < p->tensor_count; t++)
      b.copy_ns[t] = weir_load_copy(p, t, 0, 1);
  } else {
    weir_free(items->alloc, b.copy_ns);
    b.copy_ns = NULL;
  }
  weir_status status = make_orders(&b, err);
  if (status != WEIR_OK) {
    end(&b);
    return status;
  }
  fill_state(&b, device);
  search(&b, out_moves);
  if (*out_moves > o->moves) *out_moves = o->moves; /* a pair's are many */
  memcpy(device, b.best, items->count * sizeof *device);
  end(&b);
  return WEIR_OK;
}
