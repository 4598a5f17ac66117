/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_ISA_CELLS_H_
#define KERNELS_CPU_ISA_CELLS_H_

#include <stdbool.h>
#include <stdint.h>

#include "kernels/cpu/isa/isa.h"

/* The element-wise part of a step of recurrent units, f32: n units of one
 * sequence that lie side by side. Gates lie |gate| elements apart. Pointers
 * are to the first unit. */

typedef struct weir_lstm_cell {
  int64_t n, gate;
  float *z;          /* sums of the gates i, f, g, o */
  const float *bias; /* added to them; NULL: none */
  float *c;          /* the cells before, replaced by those after */
  float *y;          /* out: h */
  float *cells;      /* out: c once more; NULL: not kept */
  bool keep;         /* z is replaced by the gates */
} weir_lstm_cell;

/* dh is the gradient of h from the next step, dy that of the output. */
typedef struct weir_lstm_cell_back {
  int64_t n, gate;
  const float *gates, *cells;
  const float *before; /* cells before the step; NULL: zeros */
  const float *dh;
  const float *dy; /* NULL: zeros */
  float *dc;       /* gradient of the cells after, replaced by before's */
  float *dz;       /* out, by gates */
} weir_lstm_cell_back;

typedef struct weir_gru_cell {
  int64_t n, gate;
  float *z;                    /* x w by gates r, z, n; h r added to r and z */
  float *q;                    /* h r of gate n */
  const float *bias, *rbias;   /* NULL: none */
  const float *before;         /* h before; NULL: zeros */
  float *y;                    /* out: h */
  bool keep_gates, keep_inner; /* z gets the gates; q gets rbias */
} weir_gru_cell;

typedef struct weir_gru_cell_back {
  int64_t n, gate;
  const float *gates, *inner;
  const float *before; /* NULL: zeros */
  float *dh;           /* replaced by what goes around the gates */
  const float *dy;     /* NULL: zeros */
  float *dz, *dq;      /* out, by gates */
} weir_gru_cell_back;

typedef struct weir_rnn_cell {
  int64_t n;
  bool relu;
  const float *bias; /* NULL: none */
  float *y;          /* the sum, replaced by h */
} weir_rnn_cell;

typedef struct weir_rnn_cell_back {
  int64_t n;
  bool relu;
  const float *y, *dh, *dy; /* dy NULL: zeros */
  float *dz;                /* out */
} weir_rnn_cell_back;

struct weir_cell_table {
  void (*lstm)(const weir_lstm_cell *cell);
  void (*lstm_back)(const weir_lstm_cell_back *cell);
  void (*gru)(const weir_gru_cell *cell);
  void (*gru_back)(const weir_gru_cell_back *cell);
  void (*rnn)(const weir_rnn_cell *cell);
  void (*rnn_back)(const weir_rnn_cell_back *cell);
};

#endif
