/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_CELLS_H_
#define KERNELS_CUDA_CELLS_H_

#include "kernels/cuda/body.h"
#include "kernels/cuda/divide.h"

/* Arguments of the bodies of cells.cu, for f32 and f64: the element-wise part
 * of one step of recurrent layers, for all sequences and units. Grids: any
 * number of blocks in x.
 *
 * With b sequences of t steps, u units and g gates, [t] marks an operand with
 * all steps, of which the address is that of the first sequence's row of this
 * step: its sequences lie |steps| rows apart. NULL means zeros, or that an
 * output is not wanted. */

/* lstm_cell: gates i, f, g, o; gru_cell: r, z, n; rnn_cell: one. */
typedef struct weir_cells_args {
  void *z;                  /* [t] g u: x w; replaced by the gates if |keep| */
  const void *q;            /* b, g u: h r */
  const void *bias, *rbias; /* g u; rbias: gru's */
  const void *before;       /* b, u: lstm's c or gru's h before the step; may
                                be c, or h */
  void *y;                  /* [t] u; rnn's may be z */
  void *h;                  /* b, u: y once more */
  void *c;                  /* b, u: lstm's */
  void *extra;              /* [t] u: lstm's c, or gru's h r + rbias of n */
  int64_t n, steps;         /* n: b u, below 2^31 */
  weir_divisor units;
  int32_t keep, relu;
} weir_cells_args;

/* lstm_cell_back, gru_cell_back, rnn_cell_back: |dh| and |dc| are
 * the gradients of the states after the step. */
typedef struct weir_cells_back_args {
  void *dz, *dq;       /* [t] g u: of x w, and gru's of h r */
  void *past;          /* b, u: of the state before, but for the share that goes
                           through the gates: lstm's c, gru's h; may be dc, or dh */
  const void *gates;   /* [t] g u */
  const void *saved;   /* [t] u: lstm's c, gru's |extra|, rnn's y */
  const void *before;  /* u: lstm's c or gru's h before the step; sequences lie
                           |before_steps| rows apart */
  const void *dh, *dc; /* b, u; dc: lstm's */
  const void *dy;      /* [t] u */
  int64_t n, steps, before_steps;
  weir_divisor units;
  int32_t relu;
} weir_cells_back_args;

#endif
