/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_CHAIN_H_
#define WEIR_PLACEMENT_CHAIN_H_

#include "placement/solve/load.h"

/* Splits a graph into stretches of an order, exactly. */

enum { WEIR_CHAIN_SPLITS = 8 };

typedef struct weir_chain_options {
  const int64_t *cap; /* bytes per device */
  uint32_t orders;    /* of items (item_order.h) that are tried, at most */
  /* The value is the sum of the stretches' work, and of copies once, as if one
   * came after the other; else the largest load. */
  bool sum;
} weir_chain_options;

/* The best splits of all orders, of unequal values, the best first. */
typedef struct weir_chain_splits {
  uint32_t count;
  int64_t value[WEIR_CHAIN_SPLITS]; /* ns */
  uint32_t *device; /* [split * items + item]; the caller's, room for all */
} weir_chain_splits;

/* Items in an order, cut into stretches, one per device: exact for the order by
 * dynamic programming over items, in large graphs over blocks of them. Copies
 * count as over the mean of all ways, devices that are alike are taken in turn.
 * The linearised program of Tarnawski et al., NeurIPS 2020, over more orders
 * than one. Errors: W6001. */
weir_status weir_chain_split(const weir_items *items,
                             const weir_chain_options *options,
                             weir_chain_splits *out, weir_error *err);

#endif
