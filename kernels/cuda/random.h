/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_RANDOM_H_
#define KERNELS_CUDA_RANDOM_H_

#include "kernels/cuda/body.h"

/* Arguments of the bodies of random.cu, whose numbers come from the bits of
 * kernels/philox.h for |key| and |*step|. Grids: any number of blocks in x. */

typedef enum weir_random_op {
  WEIR_RANDOM_UNIFORM,
  WEIR_RANDOM_NORMAL,
  WEIR_RANDOM_TRUNCATED
} weir_random_op;

/* random_f32, random_f64: y = offset + scale z; what is |high| or more becomes
 * |offset|. */
typedef struct weir_random_args {
  void *y;
  const uint64_t *step;
  int64_t n;
  uint64_t key;
  double offset, scale;
  double high;
  int32_t op; /* weir_random_op */
} weir_random_args;

/* dropout_f32, dropout_f64: y = x scale where 24 bits are less than |below|,
 * else 0, and |mask|, if it is not NULL, where. y may be x. */
typedef struct weir_dropout_args {
  void *y;
  const void *x;
  uint8_t *mask;
  const uint64_t *step;
  int64_t n;
  uint64_t key;
  uint32_t below;
  double scale;
} weir_dropout_args;

/* turn_step: |*step| is that of turn |turn| of a loop in a step |*outer|: the
 * number that weir_hash_bytes makes of both. One thread. */
typedef struct weir_turn_args {
  uint64_t *step;
  const uint64_t *outer;
  int64_t turn;
} weir_turn_args;

#endif
