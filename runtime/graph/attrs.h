/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_ATTRS_H_
#define WEIR_GRAPH_ATTRS_H_

#include "ops/op.h"
#include "runtime/base/alloc.h"

/* "a list of integers". Static text. */
const char *weir_attr_kind_text(weir_attr_kind kind);

/* Checks that attribute |index| of |op| takes |in| and copies it with its lists
 * and text to |arena|; tensors are lent. An INT stands for a FLOAT or for INTS
 * of one. Errors: W1111 at |mark|, W6001. */
weir_status weir_attr_normalize(const weir_op_def *op, uint32_t index,
                                const weir_attr *in, const weir_mark *mark,
                                weir_arena *arena, weir_attr *out,
                                weir_error *err);

/* |attrs|, one for each of |op|'s, from a list by names that NULL ends (or
 * NULL): kind NONE where none is given. false: the op has none of that name. */
bool weir_attrs_by_name(const weir_op_def *op, const weir_named_attr *given,
                        weir_attr attrs[WEIR_OP_ATTRS]);

#endif
