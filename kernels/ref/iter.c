/* SPDX-License-Identifier: Apache-2.0 */
/* The walk that most reference kernels share (iter.h): an odometer over dims,
 * with a place for each operand that moves by strides instead of being worked
 * out from the index each time. */
#include "kernels/ref/iter.h"

#include <assert.h>
#include <string.h>

void weir_iter_init(weir_iter *it, int32_t rank, const int64_t *dims) {
  assert(rank >= 0 && rank <= WEIR_ITER_RANK);
  memset(it, 0, sizeof *it);
  it->rank = rank;
  for (int32_t d = 0; d < rank; d++) it->dims[d] = dims[d];
  weir_iter_rewind(it);
}

void weir_iter_rewind(weir_iter *it) {
  it->left = 1;
  for (int32_t d = 0; d < it->rank; d++) {
    it->left *= it->dims[d]; /* at most a checked shape's elements */
    it->index[d] = 0;
  }
}

void weir_operand_strides(const weir_operand *operand, int64_t *strides) {
  int64_t stride = 1;
  for (int32_t d = operand->rank - 1; d >= 0; d--) {
    strides[d] = stride;
    stride *= operand->dims[d];
  }
}

void weir_iter_broadcast(weir_iter *it, int i, const weir_operand *operand) {
  int64_t strides[WEIR_MAX_RANK];
  int32_t shift = it->rank - operand->rank;
  assert(i < WEIR_ITER_OPERANDS && shift >= 0);
  weir_operand_strides(operand, strides);
  for (int32_t d = 0; d < operand->rank; d++)
    it->strides[i][d + shift] = operand->dims[d] == 1 ? 0 : strides[d];
}

weir_lanes weir_lanes_of(const weir_operand *operand, int64_t axis) {
  weir_lanes lanes = {1, 1, 1};
  int32_t a = weir_axis_of(axis, operand->rank);
  for (int32_t d = 0; d < operand->rank; d++) {
    if (d < a) lanes.outer *= operand->dims[d];
    if (d == a) lanes.n = operand->dims[d];
    if (d > a) lanes.inner *= operand->dims[d];
  }
  return lanes;
}

unsigned weir_axes_of(const weir_attr *axis, int32_t rank) {
  unsigned bits = 0;
  if (axis->kind == WEIR_ATTR_NONE) return (1u << rank) - 1;
  for (uint32_t i = 0; i < axis->count; i++)
    bits |= 1u << weir_axis_of(axis->dims[i].value, rank);
  return bits;
}
