/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_ADD_H_
#define WEIR_GRAPH_ADD_H_

#include "runtime/graph/load/loader.h"

/* Nodes and their names. |def| NULL: none. */

/* Adds |spec|'s node to the present level. */
bool weir_add_node(weir_loader *l, weir_scope *scope, weir_node_spec *spec,
                   weir_node_id *out);

/* A const node; |dtype| WEIR_DTYPE_NONE: bool for true and false, else f32. */
typedef struct weir_const_node {
  const weir_def *def;
  weir_sv name;
  const weir_const *value;
  weir_dtype dtype;
  weir_mark at;
} weir_const_node;

/* Adds |node| to the present level. */
bool weir_add_const(weir_loader *l, weir_scope *scope,
                    const weir_const_node *node, weir_result *out);

/* The definition's own name for its root call, else NAME/what, made unique.
 * data NULL: no memory, reported. */
weir_sv weir_node_name(weir_loader *l, const weir_scope *scope,
                       const weir_def *def, weir_sv what, bool root,
                       uint32_t ordinal);

/* The op called |name|, or NULL. */
const weir_op_def *weir_loader_op(const weir_loader *l, const char *name);

#endif
