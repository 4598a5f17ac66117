/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/memory/memory_plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "placement/memory/free_list.h"
#include "runtime/base/size.h"

/* Offsets for lifetimes is dynamic storage allocation, which is NP-hard; so two
 * rules of thumb, and a bound that says when the first is enough. First fit in
 * time is fast and mostly meets the largest live sum. Where it does not, the
 * largest slots are placed first, each into the smallest gap among those that
 * live with it; that takes slots^2 and is left out of large programs. While the
 * peak is above the bound the slot at the top is then placed earlier, and all
 * are placed again, a number of rounds: the largest first with the top in front
 * of all, then the longest lived first with the top half way to the front.
 *
 * Invariant: two slots that share a moment never overlap. */

enum {
  kQuadraticCount = 1000,
  kRounds = 200,
  kRoundSteps = 10000000 /* slots^2 * rounds, at most about */
};

/* A piece of memory: one buffer, or several that follow each other in place. */
typedef struct slot {
  size_t bytes, offset;
  uint32_t first, last;
  uint32_t buffer; /* the first of them: ties are broken by it */
} slot;

typedef struct planner {
  const weir_lifetime *lifetimes;
  uint32_t count, slot_count;
  slot *slots;
  uint32_t *slot_of; /* buffer -> slot */
  size_t *best;      /* slot -> offset in the best plan so far */
  size_t peak;
} planner;

/* Gathers buffers into slots; sizes are rounded up, so that all offsets are
 * aligned. */
static bool make_slots(planner *p, size_t align) {
  size_t sum = 0;
  for (uint32_t b = 0; b < p->count; b++) {
    const weir_lifetime *l = &p->lifetimes[b];
    assert(l->first <= l->last);
    size_t bytes;
    if (!weir_size_align(l->bytes, align, &bytes) ||
        !weir_size_add(sum, bytes, &sum))
      return false;
    if (l->in_place_of < b) {
      uint32_t s = p->slot_of[l->in_place_of];
      slot *taken = &p->slots[s];
      if (taken->last == l->first && bytes <= taken->bytes && bytes > 0 &&
          p->lifetimes[l->in_place_of].last == taken->last) {
        taken->last = l->last;
        p->slot_of[b] = s;
        continue;
      }
    }
    p->slot_of[b] = p->slot_count;
    p->slots[p->slot_count++] = (slot){bytes, 0, l->first, l->last, b};
  }
  return true;
}

static void keep_if_better(planner *p, size_t peak) {
  assert(p->slot_count <= p->count);
  if (peak >= p->peak) return;
  p->peak = peak;
  for (uint32_t s = 0; s < p->slot_count; s++) p->best[s] = p->slots[s].offset;
}

/* Order of births: by time, larger first, then by index. */
static int by_birth(const void *a, const void *b) {
  const slot *x = *(const slot *const *)a, *y = *(const slot *const *)b;
  if (x->first != y->first) return x->first < y->first ? -1 : 1;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  return x->buffer < y->buffer ? -1 : 1;
}

static int by_death(const void *a, const void *b) {
  const slot *x = *(const slot *const *)a, *y = *(const slot *const *)b;
  if (x->last != y->last) return x->last < y->last ? -1 : 1;
  return x->buffer < y->buffer ? -1 : 1;
}

static int by_size(const void *a, const void *b) {
  const slot *x = *(const slot *const *)a, *y = *(const slot *const *)b;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  if (x->first != y->first) return x->first < y->first ? -1 : 1;
  return x->buffer < y->buffer ? -1 : 1;
}

static uint32_t length_of(const slot *s) {
  return s->last - s->first;
}

/* Those that live longest, then the largest. */
static int by_length(const void *a, const void *b) {
  const slot *x = *(const slot *const *)a, *y = *(const slot *const *)b;
  if (length_of(x) != length_of(y)) return length_of(x) > length_of(y) ? -1 : 1;
  return by_size(a, b);
}

/* Walks through time, giving back dead buffers before each birth. */
static bool plan_first_fit(planner *p, slot **births, slot **deaths,
                           weir_free_list *list) {
  size_t peak = 0;
  uint32_t d = 0;
  for (uint32_t b = 0; b < p->slot_count; b++) {
    slot *s = births[b];
    for (; d < p->slot_count && deaths[d]->last < s->first; d++)
      if (deaths[d]->bytes > 0 &&
          !weir_free_list_give(list, deaths[d]->offset, deaths[d]->bytes))
        return false;
    if (s->bytes == 0) continue;
    if (!weir_free_list_take(list, s->bytes, &s->offset)) return false;
    if (s->offset + s->bytes > peak) peak = s->offset + s->bytes;
  }
  keep_if_better(p, peak);
  return true;
}

/* The largest live sum: each slot counts from first to last. */
static size_t live_bound(const planner *p, slot **births, slot **deaths) {
  size_t live = 0, bound = 0;
  uint32_t d = 0;
  for (uint32_t b = 0; b < p->slot_count; b++) {
    for (; d < p->slot_count && deaths[d]->last < births[b]->first; d++)
      live -= deaths[d]->bytes; /* born before: last >= first */
    live += births[b]->bytes;
    if (live > bound) bound = live;
  }
  return bound;
}

/* The smallest gap below, between or above the placed slots that live with
 * |s|. |placed| is sorted by offset. */
static size_t best_gap(const slot *s, slot *const *placed, uint32_t count) {
  size_t best = SIZE_MAX, best_gap_bytes = SIZE_MAX, top = 0;
  for (uint32_t i = 0; i < count; i++) {
    const slot *o = placed[i];
    if (o->last < s->first || s->last < o->first) continue;
    if (o->offset > top && o->offset - top >= s->bytes &&
        o->offset - top < best_gap_bytes) {
      best = top;
      best_gap_bytes = o->offset - top;
    }
    if (o->offset + o->bytes > top) top = o->offset + o->bytes;
  }
  return best == SIZE_MAX ? top : best;
}

/* Places all in |order|; quadratic. Returns the place in it of the slot that
 * makes the peak. */
static uint32_t place_in_order(planner *p, slot *const *order, slot **placed) {
  size_t peak = 0;
  uint32_t count = 0, top = 0;
  for (uint32_t i = 0; i < p->slot_count; i++) {
    slot *s = order[i];
    if (s->bytes == 0) continue;
    s->offset = best_gap(s, placed, count);
    if (s->offset + s->bytes > peak) {
      peak = s->offset + s->bytes;
      top = i;
    }
    assert(count < p->slot_count);
    uint32_t at = count++;
    for (; at > 0 && placed[at - 1]->offset > s->offset; at--)
      placed[at] = placed[at - 1];
    placed[at] = s;
  }
  keep_if_better(p, peak);
  return top;
}

/* The largest first, then the one at the top earlier and earlier. |order| and
 * |placed| hold all slots. */
static void plan_by_size(planner *p, slot **order, slot **placed,
                         size_t bound) {
  uint64_t pairs = (uint64_t)p->slot_count * p->slot_count + 1;
  uint64_t rounds =
      kRoundSteps / pairs < kRounds ? kRoundSteps / pairs : kRounds;
  for (int length = 0; length < 2; length++) {
    qsort(order, p->slot_count, sizeof *order, length ? by_length : by_size);
    for (uint64_t r = 0; r <= rounds && p->peak > bound; r++) {
      uint32_t top = place_in_order(p, order, placed),
               to = length ? top / 2 : 0;
      slot *s = order[top];
      for (; top > to; top--) order[top] = order[top - 1];
      order[to] = s;
    }
  }
}

static bool plan_all(planner *p, slot **orders, const weir_allocator *scratch,
                     weir_memory_plan *plan) {
  slot **births = orders, **deaths = orders + p->slot_count;
  for (uint32_t s = 0; s < p->slot_count; s++)
    births[s] = deaths[s] = &p->slots[s];
  qsort(births, p->slot_count, sizeof *births, by_birth);
  qsort(deaths, p->slot_count, sizeof *deaths, by_death);
  plan->bound_bytes = live_bound(p, births, deaths);
  weir_free_list list;
  weir_free_list_init(&list, scratch);
  bool ok = plan_first_fit(p, births, deaths, &list);
  weir_free_list_release(&list);
  assert(!ok || p->peak >= plan->bound_bytes);
  if (ok && p->peak > plan->bound_bytes && p->slot_count <= kQuadraticCount)
    plan_by_size(p, births, deaths, plan->bound_bytes);
  return ok;
}

weir_status weir_memory_plan_make(weir_lifetimes lives, size_t align,
                                  weir_arena *arena,
                                  const weir_allocator *scratch,
                                  weir_memory_plan *out_plan, weir_error *err) {
  uint32_t count = lives.count;
  planner p = {.lifetimes = lives.items, .count = count, .peak = SIZE_MAX};
  slot **orders = NULL;
  *out_plan = (weir_memory_plan){0};
  weir_status status = WEIR_OK;
  out_plan->offsets = weir_arena_array(arena, count, sizeof(size_t));
  p.slots = weir_alloc_array(scratch, count, sizeof *p.slots);
  p.slot_of = weir_alloc_array(scratch, count, sizeof *p.slot_of);
  p.best = weir_alloc_array(scratch, count, sizeof *p.best);
  orders = weir_alloc_array(scratch, count, 2 * sizeof *orders);
  bool ok = out_plan->offsets && p.slots && p.slot_of && p.best && orders;
  if (ok && !make_slots(&p, align))
    status = weir_fail(err, WEIR_W2001, NULL,
                       "the sizes of %u buffers overflow when added", count);
  if (ok && status == WEIR_OK) ok = plan_all(&p, orders, scratch, out_plan);
  if (!ok) status = weir_fail_memory(err, count * sizeof *p.slots);
  for (uint32_t b = 0; status == WEIR_OK && b < count; b++)
    out_plan->offsets[b] = p.best[p.slot_of[b]];
  if (status == WEIR_OK) out_plan->peak_bytes = p.peak;
  weir_free(scratch, orders);
  weir_free(scratch, p.best);
  weir_free(scratch, p.slot_of);
  weir_free(scratch, p.slots);
  return status;
}
