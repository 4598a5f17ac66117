/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_CELLS_H_
#define KERNELS_CUDA_CELLS_H_

#include "kernels/cuda/body.h"
#include "kernels/cuda/divide.h"

/* Arguments of the bodies of cells.cu: the element-wise part of one step of
 * recurrent layers, for all sequences and units. Grids: any number of blocks in
 * x.
 *
 * With b sequences of t steps, u units and g gates, [t] marks an operand with
 * all steps, of which the address is that of the first sequence's row of this
 * step: its sequences lie |steps| rows apart. NULL means zeros, or that an
 * output is not wanted. */

/* lstm_cell_f32: gates i, f, g, o; gru_cell_f32: r, z, n; rnn_cell_f32: one. */
typedef struct weir_cells_args {
  float *z;                  /* [t] g u: x w; replaced by the gates if |keep| */
  const float *q;            /* b, g u: h r */
  const float *bias, *rbias; /* g u; rbias: gru's */
  const float *before;       /* b, u: lstm's c or gru's h before the step; may
                                be c, or h */
  float *y;                  /* [t] u; rnn's may be z */
  float *h;                  /* b, u: y once more */
  float *c;                  /* b, u: lstm's */
  float *extra;              /* [t] u: lstm's c, or gru's h r + rbias of n */
  int64_t n, steps;          /* n: b u, below 2^31 */
  weir_divisor units;
  int32_t keep, relu;
} weir_cells_args;

/* lstm_cell_back_f32, gru_cell_back_f32, rnn_cell_back_f32: |dh| and |dc| are
 * the gradients of the states after the step. */
typedef struct weir_cells_back_args {
  float *dz, *dq;      /* [t] g u: of x w, and gru's of h r */
  float *past;         /* b, u: of the state before, but for the share that goes
                          through the gates: lstm's c, gru's h; may be dc, or dh */
  const float *gates;  /* [t] g u */
  const float *saved;  /* [t] u: lstm's c, gru's |extra|, rnn's y */
  const float *before; /* u: lstm's c or gru's h before the step; sequences lie
                          |before_steps| rows apart */
  const float *dh, *dc; /* b, u; dc: lstm's */
  const float *dy;      /* [t] u */
  int64_t n, steps, before_steps;
  weir_divisor units;
  int32_t relu;
} weir_cells_back_args;

#endif
