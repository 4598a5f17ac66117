/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_APPLY_H_
#define KERNELS_CUDA_APPLY_H_

#include "kernels/cuda/body.h"

/* Arguments of the optimisers' bodies in apply.cu: those of weir_apply_piece
 * (cpu/isa/apply.h), with the same constants |c|, which the host computes.
 * in[0] and out[0] are the variable, then come the slots; out[k] may be in[k].
 * Grids: any number of blocks in x. */

enum { WEIR_UPDATE_SLOTS = 3, WEIR_UPDATE_CONSTANTS = 8 };

typedef struct weir_update_args {
  const float *grad;
  const float *in[WEIR_UPDATE_SLOTS];
  float *out[WEIR_UPDATE_SLOTS];
  int64_t n;
  float scale, l2;
  float c[WEIR_UPDATE_CONSTANTS];
} weir_update_args;

#endif
