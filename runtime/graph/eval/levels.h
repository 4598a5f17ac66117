/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_LEVELS_H_
#define WEIR_GRAPH_LEVELS_H_

#include "runtime/graph/parse/forms.h"

/* Levels: graphs inside nodes, each with its builder and captures. */

/* Nodes go to |level| from here on. */
void weir_loader_enter(weir_loader *l, weir_level *level);

/* A new level within the present one; NULL: reported. */
weir_level *weir_level_create(weir_loader *l, weir_scope *scope,
                              const weir_mark *at);

void weir_level_release(weir_loader *l, weir_level *level);

/* An `input` node of the level for a value of |type|'s dtype and shape. */
bool weir_level_input(weir_loader *l, weir_level *level, weir_sv name,
                      const weir_value *type, const weir_mark *at,
                      weir_value_id *out);

/* The value of the present level that stands for |id| of |from|. */
bool weir_level_import(weir_loader *l, weir_level *from, weir_value_id id,
                       const weir_mark *at, weir_value_id *out);

/* The level that call |node| of an expression belongs to: the main graph for
 * variables and their first values, else |home|. |*out_init|: it is part of a
 * first value. */
weir_level *weir_level_of_call(weir_level *home, const weir_expr *expr,
                               uint32_t node, bool *out_init);

#endif
