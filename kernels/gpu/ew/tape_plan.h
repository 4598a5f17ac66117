/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_GPU_EW_TAPE_PLAN_H_
#define KERNELS_GPU_EW_TAPE_PLAN_H_

#include "kernels/cuda/tape.h"
#include "kernels/gpu/gpu.h"

/* A group's element-wise calls as a tape of one launch (kernels/cuda/tape.h).
 *
 *   weir_gpu_tape_part all = {.done_io = -1};
 *   if (!weir_gpu_tape_build(group, &all, &tape, &why)) ...    once
 *   weir_gpu_tape_run(&tape, args)                             per run */

/* Calls that something else carries out before. */
typedef struct weir_gpu_tape_part {
  uint64_t done;    /* bit c: call c */
  uint32_t done_by; /* of these, the only one that others read */
  int32_t done_io;  /* the operand of the run that has its result; -1: none */
} weir_gpu_tape_part;

typedef struct weir_gpu_tape {
  weir_tape_args args;   /* but for addresses; by single elements */
  bool fours;            /* whether it may go by fours, and then */
  weir_divisor last_dim; /* the last dimension's number of these */
  uint32_t in_count, out_count;
  uint32_t in[WEIR_TAPE_INPUTS];   /* operands of the run */
  uint32_t out[WEIR_TAPE_OUTPUTS]; /* the same */
} weir_gpu_tape;

/* False and |why| (may be NULL) when a call is none that tapes have, or there
 * are too many steps, inputs, dimensions or values at one time. |out| is set in
 * both cases. */
bool weir_gpu_tape_build(const weir_group *group,
                         const weir_gpu_tape_part *part, weir_gpu_tape *out,
                         weir_why *why);

/* Puts the tape into the run's queue: one launch. */
weir_status weir_gpu_tape_run(const weir_gpu_tape *tape, const weir_args *args);

#endif
