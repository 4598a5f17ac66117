/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_ISA_APPLY_H_
#define KERNELS_CPU_ISA_APPLY_H_

#include <stdint.h>

#include "kernels/cpu/isa/isa.h"

/* Optimisers' rules in one instruction set: one pass over the variable, its
 * slots and the gradient. The same vector code computes every element. */

enum {
  WEIR_APPLY_SLOTS = 4,
  WEIR_APPLY_CONSTANTS = 8,
  WEIR_APPLY_LANES = 16 /* a whole number of vectors, whatever their size */
};

/* |n| elements, a multiple of WEIR_APPLY_LANES. in[0] and out[0] are the
 * variable, then come the slots in the rule's order; out[k] may be in[k]. g =
 * scale grad + l2 var; the proximal rules and ema take no l2. |c|: the rule's
 * numbers. */
typedef struct weir_apply_piece {
  const float *grad;
  const float *in[WEIR_APPLY_SLOTS];
  float *out[WEIR_APPLY_SLOTS];
  int64_t n;
  float scale, l2;
  float c[WEIR_APPLY_CONSTANTS];
} weir_apply_piece;

typedef void (*weir_apply_fn)(const weir_apply_piece *piece);

struct weir_apply_table {
  weir_apply_fn sgd;              /* c: lr */
  weir_apply_fn momentum;         /* c: lr, momentum */
  weir_apply_fn nesterov;         /* c: lr, momentum */
  weir_apply_fn adagrad;          /* c: lr, epsilon */
  weir_apply_fn proximal_sgd;     /* c: lr, lr l1, 1 / (1 + lr l2) */
  weir_apply_fn proximal_adagrad; /* c: lr, l1, l2 */
  /* c: lr, rho, 1 - rho, epsilon, momentum. Slots: ms, then mom, then mg, as
   * far as there are: [with momentum][centered]. */
  weir_apply_fn rms_prop[2][2];
  /* c: lr / (1 - beta1^t), beta1, 1 - beta1, beta2, 1 - beta2,
   * 1 / sqrt(1 - beta2^t), epsilon, the share of var that decay leaves */
  weir_apply_fn adam;
  /* average and, as the gradient, the variable; scale 1. c: 1 - decay */
  weir_apply_fn ema;
  /* The sum of squares, in f64; its order depends on n alone. */
  double (*squares)(const float *x, int64_t n);
};

#endif
