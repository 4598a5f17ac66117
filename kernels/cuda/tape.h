/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_TAPE_H_
#define KERNELS_CUDA_TAPE_H_

#include "kernels/cuda/body.h"
#include "kernels/cuda/divide.h"

/* A tape: a list of element-wise steps that a thread carries out on its
 * elements, one after the other. The result of a step stays in registers for
 * the next one; a result that a later step reads is kept in shared memory. So
 * a group of calls reads its operands and writes its results once. */

enum {
  WEIR_TAPE_STEPS = 48,
  WEIR_TAPE_INPUTS = 24,
  WEIR_TAPE_OUTPUTS = 4,
  WEIR_TAPE_RANK = 4, /* dimensions after joining */
  WEIR_TAPE_KEPT = 8, /* results in shared memory at one time */

  /* Where an operand is, from 0 on an input's number: */
  WEIR_TAPE_LAST = -1,      /* the result of the step before */
  WEIR_TAPE_FIRST_KEPT = -2 /* -2 - k: kept result k */
};

typedef enum weir_tape_kind {
  WEIR_TAPE_COPY,
  WEIR_TAPE_UNARY,   /* weir_unary_op */
  WEIR_TAPE_BINARY,  /* weir_binary_op */
  WEIR_TAPE_COMPARE, /* weir_compare_op; the result is 0 or 1 */
  WEIR_TAPE_WHERE /* the first operand is not 0: the second, else the third */
} weir_tape_kind;

typedef struct weir_tape_step {
  int8_t kind, op; /* weir_tape_kind */
  int8_t count;    /* of operands */
  int8_t from[3];
  int8_t keep; /* the kept result that this one becomes, or -1 */
  int8_t out;  /* the output that this one is, or -1 */
  float p[2];  /* of a weir_unary_op */
} weir_tape_step;

/* An input: its element of index c is at the sum of c[d] * strides[d]; d 0 is
 * the last dimension, with stride 1 or 0. */
typedef struct weir_tape_input {
  const void *x;
  int32_t strides[WEIR_TAPE_RANK];
  int32_t byte; /* elements are bytes and count as 0 to 255; else f32 */
} weir_tape_input;

/* |n| elements, below 2^31. With |fours| threads take four elements of the last
 * dimension at a time, in which case dims[0] counts fours; all operands are
 * aligned to four elements. Only at rank 1 may a rest be left. Not for powers.
 * An output may be an input of its shape and dtype if there is no other output.
 * Results of comparisons are no outputs. */
typedef struct weir_tape_args {
  int64_t n;
  float *out[WEIR_TAPE_OUTPUTS];
  weir_divisor dims[WEIR_TAPE_RANK]; /* the last dimension first */
  int32_t rank, fours, step_count;
  weir_tape_step steps[WEIR_TAPE_STEPS];
  weir_tape_input in[WEIR_TAPE_INPUTS];
} weir_tape_args;

#endif
