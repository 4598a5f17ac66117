/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/gpu/nn/channels.h"

enum {
  kSliceElements = 4096, /* at least: a thread's sixteen */
  kMostBlocks = 2048     /* of all channels, if these are fewer */
};

weir_channels_args weir_gpu_channels(const weir_operand *x) {
  int64_t channels = x->dims[1], inner = 1;
  for (int32_t d = 2; d < x->rank; d++) inner *= x->dims[d];
  int64_t each = channels > 0 ? x->elements / channels : 0;
  int64_t most = channels > 0 ? kMostBlocks / channels : 1;
  int64_t slices = each / kSliceElements;
  if (slices > most) slices = most;
  if (slices < 1) slices = 1;
  int64_t slice = (each + slices - 1) / slices;
  if (slice > 0) slices = (each + slice - 1) / slice; /* none is empty */
  return (weir_channels_args){.n = x->elements,
                              .each = each,
                              .slice = slice,
                              .inner = weir_divisor_of(inner),
                              .channels = weir_divisor_of(channels),
                              .slices = weir_divisor_of(slices),
                              .channel_count = (int32_t)channels,
                              .slice_count = (int32_t)slices};
}

size_t weir_gpu_channel_parts(const weir_channels_args *a) {
  return (size_t)a->channel_count * (size_t)a->slice_count * 2 * sizeof(double);
}

weir_status weir_gpu_channel_run(const weir_args *args, weir_dtype dtype,
                                 weir_gpu_body body, weir_gpu_body end,
                                 const weir_channels_args *a) {
  int64_t slices = (int64_t)a->channel_count * a->slice_count;
  uint32_t blocks = (uint32_t)(slices < kMostBlocks ? slices : kMostBlocks);
  WEIR_TRY(
      weir_gpu_launch(args, weir_gpu_typed(body, dtype), blocks, a, sizeof *a));
  return weir_gpu_launch(args, weir_gpu_typed(end, dtype),
                         weir_gpu_blocks((int64_t)a->channel_count * 32), a,
                         sizeof *a);
}
