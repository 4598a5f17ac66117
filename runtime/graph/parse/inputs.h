/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_INPUTS_H_
#define WEIR_GRAPH_INPUTS_H_

#include "runtime/graph/load/loader.h"

/* Inputs of a graph, their types and defaults. */

/* Appends an item for each input. */
bool weir_inputs_parse(weir_loader *l, weir_module *m, const weir_yaml *y,
                       weir_body *body);

/* Parses the type that starts at |*offset|. */
bool weir_type_parse(weir_loader *l, weir_module *m, const weir_block *block,
                     const weir_yaml *y, uint32_t *offset, weir_expr *out);

/* The attributes `shape` and `dtype` of an input's default, where |op| has
 * them and they are not given. */
bool weir_input_inject(weir_loader *l, weir_scope *scope, const weir_def *def,
                       const weir_op_def *op, weir_attr *attrs);

/* A literal default: the input's dtype, and its shape if it is a number. */
bool weir_input_literal(weir_loader *l, weir_scope *scope, weir_def *def,
                        const weir_const *c, const weir_mark *at,
                        weir_result *out);

/* Adds the node of an input; |fallback|: its default, or NULL. */
bool weir_input_add(weir_loader *l, weir_scope *scope, weir_def *def,
                    const weir_result *fallback);

#endif
