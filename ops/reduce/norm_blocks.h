/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_OPS_NORM_BLOCKS_H_
#define WEIR_OPS_NORM_BLOCKS_H_

#include <stdint.h>

/* The order in which global_norm adds: its inputs are one vector, cut into
 * blocks of as many elements; what a block and an input have in common is a
 * stretch. Squares are summed by stretches, these by blocks, these in order.
 * So the sums of stretches, wherever they were computed, give the norm's bits.
 */

enum { WEIR_NORM_BLOCK = 32768 };

/* The stretches of |elements| elements from |at| on. */
static inline int64_t weir_norm_stretches(int64_t at, int64_t elements) {
  if (elements == 0) return 0;
  return (at + elements - 1) / WEIR_NORM_BLOCK - at / WEIR_NORM_BLOCK + 1;
}

/* Where stretch |k| of them begins, counted from their first element; that of
 * one behind the last is their end. */
static inline int64_t weir_norm_stretch(int64_t at, int64_t elements,
                                        int64_t k) {
  int64_t begin = (at / WEIR_NORM_BLOCK + k) * WEIR_NORM_BLOCK - at;
  if (k == 0) return 0;
  return begin < elements ? begin : elements;
}

#endif
