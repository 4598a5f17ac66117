/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_LONG_FORM_H_
#define WEIR_GRAPH_LONG_FORM_H_

#include "runtime/graph/load/loader.h"

/* Items written as maps. */

/* {op:, in:, attrs:, device:, after:}. */
bool weir_item_long(weir_loader *l, weir_module *m, const weir_block *block,
                    const weir_yaml *y, weir_item *item);

/* {repeat: {i: 0..3}, nodes: {...}}. */
bool weir_item_repeat(weir_loader *l, weir_module *m, const weir_block *block,
                      const weir_yaml *y, weir_item *item);

/* The keys of a node in its long form and of a repeat; NULL ends each. */
extern const char *const weir_long_keys[], *const weir_repeat_keys[];

#endif
