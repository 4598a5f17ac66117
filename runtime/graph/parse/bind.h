/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_BIND_H_
#define WEIR_GRAPH_BIND_H_

#include "runtime/graph/load/loader.h"

/* Binds calls to ops and blocks. */

/* Gives every call of |expr| its op or block and every operand its role;
 * reports W1102, W1108, W1109. */
bool weir_expr_bind(weir_loader *l, weir_module *m, const weir_block *block,
                    weir_expr *expr, weir_ast_mode mode);

/* The ops called |name|, or NULL. */
const weir_op_names *weir_loader_ops(const weir_loader *l, weir_sv name);

#endif
