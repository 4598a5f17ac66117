/* SPDX-License-Identifier: Apache-2.0 */
/* Ops whose output has the bytes of their input in the same order. */
#include <string.h>

#include "kernels/ref/ref.h"

static weir_status run(const weir_args *args) {
  const weir_call *call = args->state;
  size_t size = weir_dtype_size(call->in[0].dtype);
  if (args->io[0] != args->io[1])
    memcpy(args->io[1], args->io[0], (size_t)call->in[0].elements * size);
  return WEIR_OK;
}

#define VIEW(op_name)                                                         \
  const weir_kernel_def weir_kernel_ref_##op_name = {.op = #op_name,          \
                                                     .name = "ref." #op_name, \
                                                     .types = WEIR_ALL_TYPES, \
                                                     .in_place = true,        \
                                                     .run = run}

VIEW(flatten);
VIEW(identity);
VIEW(reshape);
VIEW(squeeze);
VIEW(stop_gradient);
VIEW(unsqueeze);
