/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/gpu/space.h"

#include <assert.h>

void weir_gpu_space_strides(const weir_operand *x, int32_t rank,
                            int64_t *strides) {
  int64_t stride = 1;
  for (int32_t d = 0; d < rank; d++) strides[d] = 0;
  for (int32_t d = x->rank - 1; d >= 0; d--) {
    if (x->dims[d] != 1) strides[d + rank - x->rank] = stride;
    stride *= x->dims[d];
  }
}

/* Joins |dim| to the last dimension, if each operand goes from one element of
 * that to the next by |dim| of its own steps; else adds it. */
static void add_dim(weir_gpu_space *s, uint32_t count, int64_t dim,
                    const int64_t *strides) {
  int32_t last = s->rank - 1;
  bool join = s->rank > 0;
  for (uint32_t k = 0; k < count && join; k++)
    join = s->strides[k][last] == strides[k] * dim;
  if (!join) last = s->rank++;
  s->dims[last] = join ? s->dims[last] * dim : dim;
  for (uint32_t k = 0; k < count; k++) s->strides[k][last] = strides[k];
}

/* An operand that goes on with the last dimension has its rows one after the
 * other, so that with fours in a row each row begins with one. */
static bool can_fours(const weir_gpu_space *s, uint32_t count) {
  (void)count;
  int32_t last = s->rank - 1;
  if (s->n < 4 || (s->rank > 1 && s->dims[last] % 4 != 0)) return false;
  for (uint32_t k = 0; k < count; k++)
    for (int32_t d = 0; d < last; d++)
      assert(s->strides[k][last] == 0 || s->strides[k][d] % 4 == 0);
  return true;
}

void weir_gpu_space_make(const weir_call *call, uint32_t count,
                         weir_gpu_space *out) {
  const weir_operand *y = &call->out[0];
  int64_t full[WEIR_GPU_OPERANDS][WEIR_MAX_RANK] = {{0}};
  *out = (weir_gpu_space){.n = y->elements};
  for (uint32_t k = 0; k < count; k++)
    weir_gpu_space_strides(&call->in[k], y->rank, full[k]);
  for (int32_t d = 0; d < y->rank; d++) {
    int64_t strides[WEIR_GPU_OPERANDS];
    for (uint32_t k = 0; k < count; k++) strides[k] = full[k][d];
    if (y->dims[d] != 1) add_dim(out, count, y->dims[d], strides);
  }
  if (out->rank == 0) {
    const int64_t none[WEIR_GPU_OPERANDS] = {0};
    add_dim(out, count, 1, none);
  }
  for (uint32_t k = 0; k < count; k++)
    if (out->strides[k][out->rank - 1] == 0) out->repeated |= 1u << k;
  out->fours = can_fours(out, count);
}

void weir_gpu_space_by_fours(weir_gpu_space *space) {
  int32_t last = space->rank - 1;
  space->dims[last] /= 4;
  for (int k = 0; k < WEIR_GPU_OPERANDS; k++) space->strides[k][last] *= 4;
}

bool weir_gpu_four_aligned(const void *data, size_t size) {
  return (uintptr_t)data % (size < 4 ? 4 * size : 16) == 0;
}
