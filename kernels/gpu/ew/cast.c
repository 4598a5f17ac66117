/* SPDX-License-Identifier: Apache-2.0 */
/* cast: by one body, or as a copy. */
#include "kernels/cuda/ew.h"
#include "kernels/gpu/gpu.h"
#include "kernels/registry.h"

static weir_status run(const weir_args *args) {
  const weir_call *call = args->state;
  const weir_operand *x = &call->in[0], *y = &call->out[0];
  if (x->dtype == y->dtype)
    return weir_gpu_copy(args, args->io[1], args->io[0],
                         (size_t)x->elements * weir_dtype_size(x->dtype));
  const weir_cast_args a = {.y = args->io[1],
                            .x = args->io[0],
                            .n = x->elements,
                            .from = (int32_t)weir_gpu_cast_type(x->dtype),
                            .to = (int32_t)weir_gpu_cast_type(y->dtype)};
  return weir_gpu_launch(args, WEIR_GPU_cast, weir_gpu_blocks(a.n), &a,
                         sizeof a);
}

const weir_kernel_def weir_kernel_gpu_cast = {.op = "cast",
                                              .name = "gpu.cast",
                                              .device = WEIR_GPU,
                                              .types = WEIR_ALL_TYPES,
                                              .run = run};
