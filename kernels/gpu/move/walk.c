/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/gpu/move/walk.h"

#include <assert.h>

/* With s = ceil(log2 d) and the factor m = floor(2^32 (2^s - d) / d) + 1, u / d
 * is ((m u >> 32) + u) >> s for all u < 2^31. */
static void divisor(uint32_t d, uint32_t *factor, uint32_t *shift) {
  uint32_t s = 0;
  while (((uint64_t)1 << s) < d) s++;
  uint64_t over = ((uint64_t)1 << s) - d;
  *factor = (uint32_t)((over << 32) / d + 1);
  *shift = s;
}

void weir_gpu_walk(int32_t rank, const int64_t *dims, weir_walk *out) {
  int64_t all = 1;
  assert(rank >= 0 && rank <= WEIR_WALK_RANK);
  *out = (weir_walk){.rank = rank > 0 ? rank : 1, .dims = {1}};
  for (int32_t d = 0; d < rank; d++) {
    assert(dims[d] > 0);
    out->dims[d] = dims[d];
    all *= dims[d]; /* at most a checked shape's elements */
  }
  out->narrow = all <= INT32_MAX;
  for (int32_t d = 0; out->narrow && d < out->rank; d++)
    divisor((uint32_t)out->dims[d], &out->factors[d], &out->shifts[d]);
}

int32_t weir_gpu_axis(int64_t axis, int32_t rank) {
  return (int32_t)(axis < 0 ? axis + rank : axis);
}

weir_gpu_lanes weir_gpu_lanes_of(const weir_operand *x, int64_t axis) {
  weir_gpu_lanes lanes = {1, 1, 1};
  int32_t a = weir_gpu_axis(axis, x->rank);
  for (int32_t d = 0; d < x->rank; d++) {
    if (d < a) lanes.outer *= x->dims[d];
    if (d == a) lanes.n = x->dims[d];
    if (d > a) lanes.inner *= x->dims[d];
  }
  return lanes;
}

void weir_gpu_strides(const weir_operand *x, int64_t *strides) {
  int64_t stride = 1;
  for (int32_t d = x->rank - 1; d >= 0; d--) {
    strides[d] = stride;
    stride *= x->dims[d];
  }
}
