/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_ITEMS_H_
#define WEIR_GRAPH_ITEMS_H_

#include "runtime/graph/load/loader.h"

/* Parts of an item. Each reports its errors and returns false then. */

/* The names of its key. */
bool weir_item_names(weir_loader *l, weir_module *m, const weir_block *block,
                     const weir_yaml_entry *e, weir_item *item);
/* `after: [a, b]`. */
bool weir_item_after(weir_loader *l, weir_module *m, const weir_block *block,
                     const weir_yaml *y, weir_item *item);
/* The device written from |offset| of a scalar on, canonical. */
bool weir_device_parse(weir_loader *l, const weir_yaml *y, uint32_t offset,
                       weir_sv *out);

/* An entry that is a call string. */
bool weir_item_call(weir_loader *l, weir_module *m, const weir_block *block,
                    const weir_yaml *y, weir_item *item);

/* The same; but the tree is checked and forgotten, so that a large file does
 * not hold all its trees at once. */
bool weir_item_call_briefly(weir_loader *l, weir_module *m, const weir_yaml *y,
                            weir_item *item);
/* The tree again, if it was forgotten; _forget frees it. The item is of the
 * main graph. */
bool weir_item_again(weir_loader *l, weir_item *item);
void weir_item_forget(weir_loader *l, weir_item *item);

/* Parses |y|, a call string, into the arena. */
bool weir_expr_parse(weir_loader *l, const weir_yaml *y, weir_expr *out);

/* Bytes |from| to |from| + |size| of the scalar |y| as a scalar of their own;
 * NULL: no memory, reported. */
weir_yaml *weir_scalar_part(weir_loader *l, const weir_yaml *y, size_t from,
                            size_t size);

/* Reports the text that stands behind an expression. */
bool weir_refuse_rest(weir_loader *l, const weir_yaml *y, uint32_t offset);

/* Reports the parser's error. */
bool weir_parse_failed(weir_loader *l, const weir_yaml *src,
                       weir_parse_result result, const weir_parse_error *e);

#endif
