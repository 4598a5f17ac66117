/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_APPLY_H_
#define KERNELS_CUDA_APPLY_H_

#include "kernels/cuda/body.h"

/* Arguments of the optimisers' bodies in apply.cu. The learning rate, the step
 * and the scale are data, so one body makes a rule's numbers of them, in f64,
 * and the rule's body reads those. Grids: any number of blocks in x. */

enum { WEIR_UPDATE_SLOTS = 4, WEIR_UPDATE_CONSTANTS = 8 };

/* A rule's numbers, with the constants |c| of cpu/isa/apply.h. A rule of f32
 * rounds them once. */
typedef struct weir_update_numbers {
  double scale, l2;
  double c[WEIR_UPDATE_CONSTANTS];
  int32_t refused; /* nothing is written */
} weir_update_numbers;

/* How numbers follow from the rate and the step. */
typedef enum weir_update_kind {
  WEIR_UPDATE_PLAIN,        /* c[0] is the rate */
  WEIR_UPDATE_PROXIMAL_SGD, /* p: l1, l2 */
  WEIR_UPDATE_ADAM          /* p: beta1, beta2, weight decay */
} weir_update_kind;

/* Refused, as the run's fault unless there is one: a rate that is negative or
 * not finite, element 0 with the bits of a double as its value; a step below 1,
 * element 1. One block. */
typedef struct weir_update_numbers_args {
  weir_update_numbers *out;
  const void *lr;      /* NULL: the rule has none */
  const void *scale;   /* NULL: 1 */
  const int64_t *step; /* NULL: the rule has none */
  weir_body_block *block;
  uint64_t instr;             /* number of the instruction + 1 */
  weir_update_numbers before; /* but for what follows from the data */
  double p[3];
  int32_t kind; /* weir_update_kind */
  int32_t wide; /* lr and scale are f64 */
} weir_update_numbers_args;

/* in[0] and out[0] are the variable, then come the slots; out[k] may be any
 * input. */
typedef struct weir_update_args {
  const weir_update_numbers *numbers;
  const void *grad;
  const void *in[WEIR_UPDATE_SLOTS];
  void *out[WEIR_UPDATE_SLOTS];
  int64_t n;
  int32_t momentum, centered; /* rms_prop has slots for them */
  int32_t fours;              /* all are 16-byte aligned */
} weir_update_args;

#endif
