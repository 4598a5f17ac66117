/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_ITEMS_H_
#define WEIR_GRAPH_ITEMS_H_

#include "runtime/graph/load/loader.h"

/* Parts of an item. Each reports what it finds wrong and returns false then. */

/* The names of its key. */
bool weir_item_names(weir_loader *l, weir_module *m, const weir_block *block,
                     const weir_yaml_entry *e, weir_item *item);
/* `after: [a, b]`. */
bool weir_item_after(weir_loader *l, weir_module *m, const weir_block *block,
                     const weir_yaml *y, weir_item *item);
/* The device written from |offset| of a scalar on, canonical. */
bool weir_device_parse(weir_loader *l, const weir_yaml *y, uint32_t offset,
                       weir_sv *out);
/* {op:, in:, attrs:, device:, after:}. */
bool weir_item_long(weir_loader *l, weir_module *m, const weir_block *block,
                    const weir_yaml *y, weir_item *item);
/* {repeat: {i: 0..3}, nodes: {...}}. */
bool weir_item_repeat(weir_loader *l, weir_module *m, const weir_block *block,
                      const weir_yaml *y, weir_item *item);

#endif
