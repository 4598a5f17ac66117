/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernels/ref/ref.h"

/* Holds the device for the given time; the output is zeros. */
static weir_status run(const weir_args *args) {
  const weir_call *call = args->state;
  int64_t ns = weir_call_attr(call, "cost_ns")->i;
  bool spin = weir_call_attr(call, "spin")->b;
  if (ns > 0) args->ctx->hold(args->ctx->self, ns, spin);
  memset(args->io[call->in_count], 0, (size_t)call->out[0].elements);
  return WEIR_OK;
}

WEIR_REF_KERNEL(task, WEIR_ALL_TYPES, run);
