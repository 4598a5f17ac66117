/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_ATTR_EVAL_H_
#define WEIR_GRAPH_ATTR_EVAL_H_

#include "runtime/graph/load/loader.h"

/* Constants as attributes. */

/* A constant that is given for attribute |index| of |op|. */
typedef struct weir_given_attr {
  const weir_op_def *op;
  uint32_t index;
  const weir_const *value;
  const weir_mark *at;
} weir_given_attr;

/* |given| as an attribute; reports W1111, W1120. */
bool weir_attr_from_const(weir_loader *l, const weir_scope *scope,
                          const weir_given_attr *given, weir_attr *out);

#endif
