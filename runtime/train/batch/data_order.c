/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/batch/data_order.h"

#include <assert.h>

#include "runtime/base/mix.h"

/* The algorithms are in data_order.h. A draw is a hash of its number (counter
 * based), so there is no generator whose state would have to be saved. Memory:
 * 8 bytes for each example of the buffer. A seek to another round costs
 * O(count) for a full shuffle, O(buffer + at) with a smaller buffer; in the
 * round at hand nothing, and with a smaller buffer the draws between. No
 * example is read. */

struct weir_order {
  const weir_allocator *alloc;
  weir_order_spec spec;
  int64_t count, at, first, step;
  uint64_t key, draws, round;
  bool begun; /* |held| is of |round| */
  /* Shuffled: all of a round, or the buffer; positions of the round. */
  int64_t *held;
  int64_t capacity, size, next;
};

/* A number below |n|, by a product in place of a division: of 2^64 draws each
 * number gets 2^64 / n, give or take one (Lemire, ACM TOMACS 29 (2019) 3). */
static int64_t draw_below(weir_order *o, int64_t n) {
  uint64_t d = weir_mix(o->key + ++o->draws * WEIR_MIX_STEP);
  return (int64_t)(uint64_t)((unsigned __int128)d * (uint64_t)n >> 64);
}

/* Examples left after skip and take. */
static int64_t kept(const weir_order_spec *spec) {
  int64_t n = spec->examples > spec->skip ? spec->examples - spec->skip : 0;
  return spec->take >= 0 && spec->take < n ? spec->take : n;
}

int64_t weir_order_count(const weir_order_spec *spec) {
  int64_t n = kept(spec);
  if (spec->shards == 0) return n;
  return n / spec->shards + (spec->shard < (uint64_t)n % spec->shards);
}

weir_status weir_order_create(const weir_allocator *alloc,
                              const weir_order_spec *spec,
                              weir_order **out_order, weir_error *err) {
  *out_order = NULL;
  weir_order *o = weir_alloc_array(alloc, 1, sizeof *o);
  if (o == NULL) return weir_fail_memory(err, sizeof *o);
  o->alloc = alloc;
  o->spec = *spec;
  o->count = weir_order_count(spec);
  o->first = spec->skip + (spec->shards > 0 ? spec->shard : 0);
  o->step = spec->shards > 0 ? spec->shards : 1;
  if (spec->shuffle) {
    o->capacity = spec->buffer < o->count ? spec->buffer : o->count;
    o->held = weir_alloc_array(alloc, (size_t)o->capacity, sizeof *o->held);
    if (o->held == NULL) {
      weir_status s =
          weir_fail_memory(err, (size_t)o->capacity * sizeof *o->held);
      weir_free(alloc, o);
      return s;
    }
  }
  weir_order_seek(o, 0, 0);
  *out_order = o;
  return WEIR_OK;
}

void weir_order_release(weir_order *o) {
  if (o == NULL) return;
  weir_free(o->alloc, o->held);
  weir_free(o->alloc, o);
}

static void permute(weir_order *o) {
  for (int64_t i = o->count - 1; i > 0; i--) {
    int64_t j = draw_below(o, i + 1), kept_one = o->held[i];
    o->held[i] = o->held[j];
    o->held[j] = kept_one;
  }
}

/* The next position out of the buffer. |size| falls only once all positions
 * have been in the buffer, so each is given once. */
static int64_t take_one(weir_order *o) {
  assert(o->size > 0);
  int64_t j = draw_below(o, o->size), given = o->held[j];
  if (o->next < o->count)
    o->held[j] = o->next++;
  else
    o->held[j] = o->held[--o->size];
  return given;
}

static void begin_round(weir_order *o, uint64_t round) {
  o->key = weir_mix(o->spec.seed + weir_mix(round + 1));
  o->draws = 0;
  o->size = o->next = o->capacity;
  for (int64_t i = 0; i < o->capacity; i++) o->held[i] = i;
  if (o->capacity == o->count) permute(o);
  o->round = round;
  o->begun = true;
}

void weir_order_seek(weir_order *o, uint64_t round, int64_t at) {
  int64_t from = o->at;
  bool whole = o->capacity == o->count;
  o->at = at;
  if (!o->spec.shuffle) return;
  if (!o->begun || round != o->round || (!whole && at < from)) {
    begin_round(o, round);
    from = 0;
  }
  for (; !whole && from < at; from++) (void)take_one(o);
}

int64_t weir_order_next(weir_order *o) {
  int64_t position = o->at++;
  if (o->spec.shuffle)
    position = o->capacity == o->count ? o->held[position] : take_one(o);
  return o->first + position * o->step;
}

int64_t weir_order_at(const weir_order *o) {
  return o->at;
}
