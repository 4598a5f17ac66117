/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_ISA_CELLS_H_
#define KERNELS_CPU_ISA_CELLS_H_

#include <stdbool.h>
#include <stdint.h>

#include "kernels/cpu/isa/isa.h"

/* The element-wise part of a step of recurrent units, f32: n units of one
 * sequence that lie side by side. Gates lie |gate| elements apart, those of
 * products with r |q_gate|. Pointers are to the first unit; NULL means zeros,
 * or that an output is not wanted. */

typedef struct weir_lstm_cell {
  int64_t n, gate, q_gate;
  float *z;          /* x w of the gates i, f, g, o */
  const float *q;    /* h r of them; may be NULL */
  const float *bias; /* may be NULL */
  float *c;          /* the cells before, replaced by those after */
  float *y;          /* out: h */
  float *cells;      /* out: c once more; may be NULL */
  bool keep;         /* z is replaced by the gates */
} weir_lstm_cell;

/* dh is the gradient of h from the next step, dy that of the output. */
typedef struct weir_lstm_cell_back {
  int64_t n, gate;
  const float *gates, *cells;
  const float *before; /* cells before the step; may be NULL */
  const float *dh;     /* may be NULL */
  const float *dy;     /* may be NULL */
  float *dc;           /* gradient of the cells after, replaced by before's */
  float *dz;           /* out, by gates */
} weir_lstm_cell_back;

typedef struct weir_gru_cell {
  int64_t n, gate, q_gate;
  float *z;                  /* x w of the gates r, z, n */
  const float *q;            /* h r of them; may be NULL */
  const float *bias, *rbias; /* may be NULL */
  const float *before;       /* h before; may be NULL */
  float *y;                  /* out: h */
  float *inner;              /* out: h r + rbias of gate n; may be NULL */
  bool keep;                 /* z is replaced by the gates */
} weir_gru_cell;

typedef struct weir_gru_cell_back {
  int64_t n, gate;
  const float *gates, *inner;
  const float *before;  /* may be NULL */
  float *dh;            /* replaced by the share that goes past the gates */
  const float *through; /* added to dh: the share through them; may be NULL */
  const float *dy;      /* may be NULL */
  float *dz, *dq;       /* out, by gates */
} weir_gru_cell_back;

typedef struct weir_rnn_cell {
  int64_t n;
  bool relu;
  const float *q, *bias; /* may be NULL */
  float *y;              /* x w, replaced by h */
} weir_rnn_cell;

typedef struct weir_rnn_cell_back {
  int64_t n;
  bool relu;
  const float *y;
  const float *dh, *dy; /* may be NULL */
  float *dz;            /* out */
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
