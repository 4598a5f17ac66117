/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_ATTR_EVAL_H_
#define WEIR_GRAPH_ATTR_EVAL_H_

#include "runtime/graph/load/loader.h"

/* Constants as attributes. */

/* |c| as attribute |index| of |op|; reports W1110. */
bool weir_attr_from_const(weir_loader *l, const weir_scope *scope,
                          const weir_op_def *op, uint32_t index,
                          const weir_const *c, const weir_mark *at,
                          weir_attr *out);

#endif
