/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/gpu/move/bytes.h"

#include "kernels/cuda/random.h"
#include "kernels/gpu/move/move.h"

/* The widest element of a move that divides |bytes|. */
static size_t element_of(size_t bytes) {
  return bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : 1;
}

/* Bytes from the last multiple of 16, which a move counts its places from. */
static size_t past_16(const void *at) {
  return (uintptr_t)at % 16;
}

weir_status weir_gpu_copy_rows(const weir_args *args, const weir_gpu_rows *rows,
                               void *dst, const void *src) {
  size_t x = past_16(src), y = past_16(dst);
  size_t size =
      element_of(rows->bytes | rows->src_step | rows->dst_step | x | y);
  weir_gpu_view v = {.size = size,
                     .src_at = (int64_t)(x / size),
                     .dst_at = (int64_t)(y / size)};
  weir_gpu_move move;
  weir_gpu_view_add(&v, rows->count, (int64_t)(rows->src_step / size),
                    (int64_t)(rows->dst_step / size));
  weir_gpu_view_add(&v, (int64_t)(rows->bytes / size), 1, 1);
  weir_gpu_move_plan(&v, &move);
  return weir_gpu_move_run(args, &move, (char *)dst - y, (const char *)src - x);
}

static weir_status fill(const weir_args *args, void *dst, int64_t n,
                        int32_t size, uint64_t value) {
  const weir_fill_args a = {.y = dst, .n = n, .value = value, .size = size};
  return weir_gpu_launch(args, WEIR_GPU_fill, weir_gpu_blocks(n), &a, sizeof a);
}

weir_status weir_gpu_zero(const weir_args *args, void *dst, size_t bytes) {
  size_t size = element_of(bytes | past_16(dst));
  return fill(args, dst, (int64_t)(bytes / size), (int32_t)size, 0);
}

weir_status weir_gpu_put_i64(const weir_args *args, int64_t *dst,
                             int64_t value) {
  return fill(args, dst, 1, 8, (uint64_t)value);
}

weir_status weir_gpu_turn_step(const weir_args *args, uint64_t *step,
                               const uint64_t *outer, int64_t turn) {
  const weir_turn_args a = {step, outer, turn};
  return weir_gpu_launch(args, WEIR_GPU_turn_step, 1, &a, sizeof a);
}
