/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_REF_ITER_H_
#define KERNELS_REF_ITER_H_

#include "kernels/kernel.h"

/* Walks over up to WEIR_ITER_OPERANDS operands of different strides at once, in
 * row-major order of the dims given:
 *
 *   weir_iter it;
 *   weir_iter_init(&it, y->rank, y->dims);
 *   weir_iter_broadcast(&it, 0, &call->in[0]);
 *   for (; weir_iter_more(&it, args); weir_iter_next(&it)) use(x[it.at[0]]);
 */

enum {
  WEIR_ITER_OPERANDS = 3,
  WEIR_ITER_RANK = 2 * WEIR_MAX_RANK, /* einsum sums over both inputs' dims */
  WEIR_LOOK_EVERY = 4096              /* elements between looks at the time */
};

typedef struct weir_iter {
  int32_t rank;
  int64_t left; /* elements still to come, this one included */
  int64_t dims[WEIR_ITER_RANK], index[WEIR_ITER_RANK];
  int64_t strides[WEIR_ITER_OPERANDS][WEIR_ITER_RANK]; /* in elements */
  int64_t at[WEIR_ITER_OPERANDS];                      /* element of operand */
} weir_iter;

/* Starts at index 0 with all strides 0. Dims are not negative. */
void weir_iter_init(weir_iter *it, int32_t rank, const int64_t *dims);
/* Operand |i| is |operand|, row-major, broadcast to the iterator's dims: a
 * missing or 1-long axis has stride 0. */
void weir_iter_broadcast(weir_iter *it, int i, const weir_operand *operand);
/* Back to the first element; |at| is kept for the caller to set. */
void weir_iter_rewind(weir_iter *it);

/* Whether there are more elements. Looks now and then, at the last element of
 * all at least, whether the run is over; then there are none. */
static inline bool weir_iter_more(const weir_iter *it, const weir_args *args) {
  return it->left > 0 &&
         (it->left % WEIR_LOOK_EVERY != 1 || !weir_run_over(args));
}

static inline void weir_iter_next(weir_iter *it) {
  it->left--;
  for (int32_t d = it->rank - 1; d >= 0; d--) {
    for (int i = 0; i < WEIR_ITER_OPERANDS; i++) it->at[i] += it->strides[i][d];
    if (++it->index[d] < it->dims[d]) return;
    for (int i = 0; i < WEIR_ITER_OPERANDS; i++)
      it->at[i] -= it->strides[i][d] * it->dims[d];
    it->index[d] = 0;
  }
}

/* Row-major strides of |operand| in elements. */
void weir_operand_strides(const weir_operand *operand, int64_t *strides);

/* A tensor seen along one axis: |outer| blocks of |n| rows of |inner|
 * elements. Lane (o, i) starts at element o * n * inner + i and has |n|
 * elements, |inner| apart. */
typedef struct weir_lanes {
  int64_t outer, n, inner;
} weir_lanes;

/* |axis| may be negative and must be in range. */
weir_lanes weir_lanes_of(const weir_operand *operand, int64_t axis);
/* |axis| counted from the front. */
static inline int32_t weir_axis_of(int64_t axis, int32_t rank) {
  return (int32_t)(axis < 0 ? axis + rank : axis);
}
/* The axes an INTS attribute names as bits; all |rank| of them when it was not
 * given. */
unsigned weir_axes_of(const weir_attr *axis, int32_t rank);

#endif
