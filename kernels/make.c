/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/make.h"

#include <string.h>

#include "kernels/registry.h"

weir_attr weir_make_value(const weir_call *call) {
  const weir_attr *value = weir_call_attr(call, "value");
  bool ones = strncmp(call->op->name, "ones", 4) == 0;
  if (value != NULL) return *value;
  return (weir_attr){.kind = WEIR_ATTR_INT, .i = ones};
}
