/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/op.h"

#include "ops/registry.h"

const weir_attr *weir_call_attr(const weir_call *call, const char *name) {
  int i = weir_op_attr_index(call->op, weir_sv_from(name));
  return i < 0 ? NULL : &call->attrs[i];
}
