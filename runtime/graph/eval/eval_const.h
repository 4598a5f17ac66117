/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_EVAL_CONST_H_
#define WEIR_GRAPH_EVAL_CONST_H_

#include "runtime/graph/eval/lookup.h"

/* Evaluates constants. */

/* The node's constant; a bare name that means nothing is a WORD. Reports W1113,
 * W1107. */
bool weir_eval_const(weir_loader *l, const weir_scope *scope,
                     const weir_loop *loop, const weir_expr *expr,
                     uint32_t node, weir_const *out);

/* How many results must have a name: not the last ones that an op makes only
 * where they are read. */
uint32_t weir_named_results(const weir_loader *l, const weir_result *r);

/* The value of a name's result; reports W1107. */
bool weir_select_result(weir_loader *l, const weir_ast *name,
                        const weir_lookup *found, weir_value_id *out);

/* Adds to the report under way that `/` makes fractions, if |c| is one. */
void weir_const_hint_fraction(weir_loader *l, const weir_const *c);

/* Writes |c| as in a graph file, for messages. */
const char *weir_const_text(const weir_const *c, char *text, size_t capacity);

#endif
