/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_ISA_GEMM_H_
#define KERNELS_CPU_ISA_GEMM_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/cpu/isa/isa.h"

/* Products of matrices in one instruction set. Each function makes one register
 * tile or one vector of output; kernels/cpu/gemm/gemm.h cuts products into
 * these. All strides count elements. Every element of c is one sum in the order
 * of k, in tiles of every size. */

enum { WEIR_GEMM_AHEAD = 4 };

/* c[i * c_row + j] (+)= sum over p of a[i * a_row + p * a_k] *
 * b[p * b_k + j], i < m, j < n, p < k. */
typedef struct weir_gemm_tile {
  const void *a, *b;
  void *c;
  int64_t a_row, a_k, b_k, c_row;
  int64_t m, n, k; /* m <= rows and n <= columns of the table */
  bool add;        /* to the values of c; else they are overwritten */
  /* Not NULL: b's panel is written here, as pack would. */
  void *copy;
  /* Memory that is wanted soon: while they compute, tiles on panels fetch a row
   * of a panel of b each WEIR_GEMM_AHEAD steps, rows ahead_step bytes apart.
   * Any address will do, as nothing is read. */
  const void *ahead;
  int64_t ahead_step;
} weir_gemm_tile;

/* Behind a tile that wrote a panel, of |columns|: the tiles below read it. */
static inline void weir_gemm_tile_reuse(weir_gemm_tile *t, int64_t columns) {
  if (t->copy == NULL) return;
  t->b = t->copy;
  t->b_k = columns;
  t->copy = NULL;
}

struct weir_gemm_table {
  int64_t rows, columns; /* of a register tile */
  void (*tile)(const weir_gemm_tile *t);
  /* dst[p * columns + j] = b[p * b_k + j * b_column], zero for j >= n. */
  void (*pack)(void *dst, const void *b, int64_t b_k, int64_t b_column,
               int64_t k, int64_t n);
  /* dst[p * rows + i] = a[i * a_row + p * a_k] for i < m: a tile's a, to be
   * read by steps of 1 from row to row and of |rows| from k to k. Of i >= m it
   * holds anything. */
  void (*pack_a)(void *dst, const void *a, int64_t a_row, int64_t a_k,
                 int64_t k, int64_t m);
  /* y[j] = sum over p of x[p] * b[p * b_k + j], j < n. */
  void (*sweep)(void *y, const void *x, const void *b, int64_t b_k, int64_t k,
                int64_t n);
  /* The same sums in the same order, by whole rows: for a b from afar. */
  void (*sweep_rows)(void *y, const void *x, const void *b, int64_t b_k,
                     int64_t k, int64_t n);
  /* y[i] = sum over p of x[p] * a[i * a_row + p], i < m; summed in lanes. */
  void (*dots)(void *y, const void *x, const void *a, int64_t a_row, int64_t k,
               int64_t m);
};

#endif
