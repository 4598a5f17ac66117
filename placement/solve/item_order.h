/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_ITEM_ORDER_H_
#define WEIR_PLACEMENT_ITEM_ORDER_H_

#include "placement/solve/load.h"

/* Linear orders of items in which related items stand close together, for
 * splits into stretches (chain.h).
 *
 * Items are groups of nodes, so their graph may have cycles: in training the
 * nodes of a layer's backward pass are in the item of its forward pass. An item
 * stands where its first node with an input from another item stands, and an
 * edge counts only where it leads to a later place; so backward edges, and
 * weights that are numbered early, do not pull an item away. */

typedef struct weir_item_orders weir_item_orders;

/* |items| is lent. |copy_ns| per tensor is the price of a cut; lent too.
 * Errors: W6001. */
weir_status weir_item_orders_create(const weir_items *items,
                                    const int64_t *copy_ns,
                                    weir_item_orders **out_orders,
                                    weir_error *err);
void weir_item_orders_release(weir_item_orders *orders); /* NULL-safe */
/* Fills |order| with all items, each once, by the |nth| rule; any number is
 * one. The first is depth first from the ends back, then each time the cheapest
 * cut from the first and from the last item on, then depth first on nodes and
 * random kin of these. */
void weir_item_order_make(weir_item_orders *orders, uint32_t nth,
                          uint32_t *order);

#endif
