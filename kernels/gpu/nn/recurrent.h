/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_GPU_NN_RECURRENT_H_
#define KERNELS_GPU_NN_RECURRENT_H_

#include "kernels/cuda/cells.h"
#include "kernels/gpu/nn/strided.h"

/* What lstm, gru, rnn and their gradients have in common.
 *
 * Forward, x w of all steps is one product, then each step is a product of the
 * state with r and one body, which has the gates (kernels/cuda/cells.h). Output
 * h holds the state from step to step. Back, each step, the last one first, is
 * one body and one product with r transposed, which gives the gradient of the
 * state before. The number of steps follows from shapes, so a run puts all of
 * them into the queue at once. */

typedef struct weir_gpu_recurrent {
  weir_gpu_strided project; /* forward: x w */
  weir_gpu_product step;    /* with r; none: nothing is to be computed */
  weir_dtype dtype;
  int64_t batch, steps, units, wide; /* wide: of all gates */
  uint32_t in_count;
  bool reverse;
  int32_t relu;              /* rnn's function */
  size_t q_at, workspace_at; /* in scratch, behind x w */
} weir_gpu_recurrent;

/* Of a call forward, with inputs x, w, r, and of a gradient, of inputs r and
 * one of [b, t, ...]: whether bodies can count its units, and whether a queue
 * can take its steps. */
bool weir_gpu_recurrent_accepts(const weir_call *call, weir_why *why);
bool weir_gpu_recurrent_back_accepts(const weir_call *call, weir_why *why);

/* Plan them. |keeps_sums|: x w lies in scratch; |adds|: the gradient of the
 * state before is added to what a body has left there. */
weir_status weir_gpu_recurrent_prepare(const weir_call *call, bool keeps_sums,
                                       weir_prepared *out, weir_error *err);
weir_status weir_gpu_recurrent_back_prepare(const weir_call *call, bool adds,
                                            weir_prepared *out,
                                            weir_error *err);
void weir_gpu_recurrent_release(void *state);

/* Scratch for x w. */
void *weir_gpu_recurrent_sums(const weir_args *args);

/* Input |i| of a run; NULL: it is missing. */
const void *weir_gpu_recurrent_in(const weir_args *args, uint32_t i);
/* Output |i|; NULL: it is not wanted. */
void *weir_gpu_recurrent_out(const weir_args *args, uint32_t i);

/* A run forward: |cells| has the operands of all steps as they begin; z, q,
 * before and the sizes are set here. |h0| and |c0| may be NULL. */
typedef struct weir_gpu_cells {
  weir_gpu_body body; /* for f32 */
  weir_cells_args cells;
  void *sums; /* where x w lies */
  const void *h0, *c0;
} weir_gpu_cells;
weir_status weir_gpu_recurrent_run(const weir_args *args,
                                   const weir_gpu_cells *cells);

/* A run back: |cells| has the operands of all steps as they begin, and dh and
 * dc of the states after the last; |dh0| and |dc0|, lstm's, are outputs. */
typedef struct weir_gpu_cells_back {
  weir_gpu_body body;         /* for f32 */
  weir_cells_back_args cells; /* before: of step 0, [b, u] */
  const void *states;         /* [b, t, u]: the states after each step */
  const void *dq;             /* what r is multiplied with: dz, or gru's dq */
  void *dh0, *dc0;
} weir_gpu_cells_back;
weir_status weir_gpu_recurrent_run_back(const weir_args *args,
                                        const weir_gpu_cells_back *cells);

#endif
