/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_LOAD_H_
#define PLACEMENT_LOAD_H_

#include "placement/problem.h"

/* The loads of devices for one batch when batches follow one another.
 *
 * A device's load is the work of its nodes, and the time of each tensor that it
 * fetches, and of each that it sends: once, by the longest of its ways, however
 * many devices want it. A device without copy load (a processor beside
 * accelerators that fetch from its memory) has work only. In a steady pipeline
 * a batch leaves once per period, the largest load. So is max-load defined by
 * Tarnawski et al., NeurIPS 2020.
 *
 * Where nodes must be together they are one item: a split moves items. */

/* No time of a copy counts for more, so that sums stay in range; a way that
 * does not exist counts so. */
#define WEIR_LOAD_COPY_LIMIT INT64_C(100000000000000)

/* Load of each device, with saturation, and all bytes that are copied, for
 * |device| per node. O(nodes + uses + devices). |stamp|: room for device_count
 * numbers. */
int64_t weir_load_measure(const weir_place_problem *problem,
                          const uint32_t *device, int64_t *load,
                          uint32_t *stamp, int64_t *out_moved_bytes);

/* The load of a copy of |tensor|: its link's time without the latency, in which
 * nobody is busy; at most the limit. */
int64_t weir_load_copy(const weir_place_problem *problem, uint32_t tensor,
                       uint32_t from, uint32_t to);
/* How long a copy of |tensor| is under way, latency and all; at most the limit.
 */
int64_t weir_load_travel(const weir_place_problem *problem, uint32_t tensor,
                         uint32_t from, uint32_t to);

/* Fills |copy_ns|, per tensor, with the time of a copy over the mean of all
 * ways, at most the limit; 0 where there is no way. */
void weir_load_mean_copies(const weir_place_problem *problem, int64_t *copy_ns);

/* Whether a copy takes the same time over every way, and there is one between
 * every two devices. */
bool weir_load_ways_are_alike(const weir_place_problem *problem);
/* Whether no sum of loads can leave 64 bits. */
bool weir_load_sums_fit(const weir_place_problem *problem);

typedef struct weir_items {
  const weir_allocator *alloc;
  const weir_place_problem *p;
  uint32_t count;
  uint32_t *of;           /* per node */
  uint32_t *first, *node; /* [item]..[item + 1] in |node| */
  /* Tensors that an item makes or uses, each once. */
  uint32_t *touch_first, *touch;
  int64_t *resident; /* bytes, per item: of its nodes */
  /* Constants that an item reads, each once. */
  uint32_t *read_first, *read;
} weir_items;

/* Errors: W6001. */
weir_status weir_items_create(const weir_allocator *alloc,
                              const weir_place_problem *problem,
                              weir_items **out_items, weir_error *err);
void weir_items_release(weir_items *items); /* NULL-safe */
/* Work of |item| on |device|; NO_KERNEL when one of its nodes may not. */
int64_t weir_items_cost(const weir_items *items, uint32_t item,
                        uint32_t device);
/* The bytes that the nodes of |item| make and do not keep; saturates. */
int64_t weir_items_outputs(const weir_items *items, uint32_t item);
/* The bytes that |item| takes on its device if nothing is ever given back and
 * nobody else reads its constants there: these, resident ones and its outputs;
 * saturates. */
int64_t weir_items_bytes(const weir_items *items, uint32_t item);

/* ---- Splits: a device per item */

enum { WEIR_BALANCE_DEVICES = 64 }; /* a tensor's devices are a word */

/* The sums of a split, for each device and for all of them. */
typedef struct weir_split {
  int64_t load[WEIR_BALANCE_DEVICES];    /* ns */
  int64_t bytes[WEIR_BALANCE_DEVICES];   /* resident, and constants */
  int64_t outputs[WEIR_BALANCE_DEVICES]; /* bytes that are made there */
  int64_t moved;                         /* bytes that are copied */
} weir_split;

/* The quantity to minimise: the largest of the devices' figures, or, where
 * there is no |of_device|, the whole split's. */
typedef struct weir_balance_goal {
  int64_t (*of_device)(const weir_split *split, uint32_t device);
  int64_t (*of_all)(const weir_split *split);
} weir_balance_goal;

typedef struct weir_balance_options {
  const weir_balance_goal *goal;
  const int64_t *cap; /* bytes per device */
  uint64_t moves;
  uint64_t seed;
  int64_t bound; /* stop once the goal is this */
  bool (*stop)(void *self);
  void *stop_self;
} weir_balance_options;

#endif
