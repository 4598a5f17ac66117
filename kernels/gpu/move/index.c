/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/gpu/move/index.h"

weir_indices weir_gpu_indices(const weir_operand *x, const void *data) {
  weir_index_type type = x->dtype == WEIR_I32   ? WEIR_INDEX_I32
                         : x->dtype == WEIR_I64 ? WEIR_INDEX_I64
                                                : WEIR_INDEX_U8;
  return (weir_indices){data, x->elements, (int32_t)type};
}

weir_status weir_gpu_check(const weir_args *args, const weir_indices *indices,
                           int64_t low, int64_t high) {
  const weir_gpu_run *run = args->ctx->gpu;
  const weir_check_args a = {.indices = *indices,
                             .block = run->block,
                             .low = low,
                             .high = high,
                             .instr = (uint64_t)run->instr + 1};
  return weir_gpu_launch(args, WEIR_GPU_check_indices, indices->n > 0, &a,
                         sizeof a);
}
