/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_DATA_ORDER_H_
#define WEIR_TRAIN_DATA_ORDER_H_

#include "runtime/base/alloc.h"
#include "runtime/base/status.h"

/* The order of examples.
 *
 * Of a source's examples, the first |skip| are left out, the next |take| are
 * kept, and of those every |shards|-th from |shard| on: |count| examples, equal
 * for all shards but for one. A round goes over them once, in order or
 * shuffled; round r's order follows from (seed, r) alone.
 *
 * Shuffled with a buffer of at least |count|, each order is equally likely:
 * for i from count - 1 down to 1, example i and example below(draw, i + 1) are
 * exchanged (Fisher and Yates). With a smaller buffer: the buffer holds the
 * first examples; each time one of them is drawn, given, and replaced by the
 * next, at the end by the buffer's last. draw k of a round is
 * mix(key + (k + 1) * 0x9E3779B97F4A7C15) with SplitMix64's mix, key =
 * mix(seed + mix(r + 1)); below(d, n) is the high half of d * n. */
typedef struct weir_order_spec {
  int64_t examples;   /* of the source */
  int64_t skip, take; /* take -1: all */
  uint32_t shard, shards;
  bool shuffle;
  int64_t buffer;
  uint64_t seed;
} weir_order_spec;

/* Examples of one round. */
int64_t weir_order_count(const weir_order_spec *spec);

/* A place in a round. Its memory is allocated by create. */
typedef struct weir_order weir_order;

/* At the start of round 0. Errors: W6001. */
weir_status weir_order_create(const weir_allocator *alloc,
                              const weir_order_spec *spec,
                              weir_order **out_order, weir_error *err);
void weir_order_release(weir_order *order); /* NULL-safe */
/* Goes to position |at| (at most the count) of |round|. Costs the draws from
 * the round's start, or from here if |at| lies ahead in the same round; no
 * reading.
 */
void weir_order_seek(weir_order *order, uint64_t round, int64_t at);
/* The source's number of the next example; the position must be below the
 * count. */
int64_t weir_order_next(weir_order *order);
int64_t weir_order_at(const weir_order *order);

#endif
