/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_ISA_ISA_H_
#define KERNELS_CPU_ISA_ISA_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Instruction sets.
 *
 * Every .c file of this folder but choose.c is compiled once per instruction
 * set, from the same source, with GCC's vector extensions. Each build of a file
 * yields a const table; weir_isa holds them all. Kernels take the table when
 * they are prepared and keep it in their state, so nothing is chosen at run
 * time and nothing global is written.
 *
 * Two instruction sets may give different bits; one gives the same bits on
 * every thread, at every alignment and at every place of an element in a
 * tile. */

/* One piece of element-wise work: n elements of y from those of a, b and c. An
 * operand marked "one" is a single value that counts for all. y may be a, b or
 * c, but must not overlap them otherwise. p: attributes. */
typedef struct weir_tile {
  void *y;
  const void *a, *b, *c;
  int64_t n;
  bool a_one, b_one, c_one;
  float p[2];
} weir_tile;

typedef void (*weir_tile_fn)(const weir_tile *t);

/* A tile function, found by the op's name and dtypes. */
typedef struct weir_tile_entry {
  const char *op;
  unsigned dtype;  /* of the first operand (where: of the second) */
  unsigned target; /* cast: the dtype of y; else 0 */
  weir_tile_fn fn;
} weir_tile_entry;

enum { WEIR_SHORT_ROW = 64 };

/* Row functions: n elements that lie together, f32. Sums go lane by lane in
 * f32 over at most 4096 elements and are joined in double, in an order that
 * depends on n alone. */
typedef struct weir_rows {
  /* A row joined to one number. NaN wins in max and min; of no elements: 0,
   * -infinity, infinity, 1. */
  double (*sum)(const float *x, int64_t n);
  double (*max)(const float *x, int64_t n);
  double (*min)(const float *x, int64_t n);
  double (*prod)(const float *x, int64_t n);
  /* acc[i] = acc[i] op x[i] */
  void (*sum_to)(float *acc, const float *x, int64_t n);
  void (*max_to)(float *acc, const float *x, int64_t n);
  void (*min_to)(float *acc, const float *x, int64_t n);
  void (*prod_to)(float *acc, const float *x, int64_t n);
  /* exp(x - max) / sum and x - max - log(sum); n > 0. y may be x. */
  void (*softmax)(float *y, const float *x, int64_t n);
  void (*log_softmax)(float *y, const float *x, int64_t n);
  /* |count| rows of n <= WEIR_SHORT_ROW, one per lane: softmax or log_softmax
   * (y may be x); the largest element and the sum of exp(x - largest). */
  void (*softmax_short)(float *y, const float *x, int64_t count, int64_t n,
                        bool is_log);
  void (*exp_sums_short)(float *most, float *sums, const float *x,
                         int64_t count, int64_t n);
  /* log(sum(exp(x - *most))), *most being the largest; n > 0. The two are not
   * added: a large one would swallow the other. */
  double (*log_sum_exp)(const float *x, int64_t n, float *most);
  /* (x - mean) / sqrt(variance + epsilon) * scale + bias; n > 0 */
  void (*layer_norm)(float *y, const float *x, const float *scale,
                     const float *bias, int64_t n, double epsilon);
  /* Its gradient by x: (g - mean(g) - z mean(g z)) / sqrt(variance + epsilon)
   * with g = dy scale and z the normalised x. */
  void (*layer_norm_grad)(float *dx, const float *x, const float *scale,
                          const float *dy, int64_t n, double epsilon);
  /* y[i] = (x[i] - mean) * factor + shift */
  void (*affine)(float *y, const float *x, int64_t n, float mean, float factor,
                 float shift);
  /* y[j][i] = x[i][j] for rows x columns of x; strides in elements. */
  void (*transpose)(float *y, int64_t y_stride, const float *x,
                    int64_t x_stride, int64_t rows, int64_t columns);
} weir_rows;

/* Gradients of poolings; a pixel is |depth| elements: 16 images, or 1. |row|:
 * elements from row to row of dx (and x). */
typedef struct weir_pool_grad_table {
  /* dx[i k + j] = dy[i] / divisor for j < k, |count| pixels of dy. */
  void (*spread)(float *dx, const float *dy, int64_t count, int32_t k,
                 int32_t depth, float divisor);
  /* dy / divisor is added to rows x columns pixels of dx. */
  void (*add)(float *dx, const float *dy, int64_t row, int32_t rows,
              int32_t columns, int32_t depth, float divisor);
  /* dy is added where x is largest, the first of equals, NaN before all. */
  void (*max)(float *dx, const float *x, const float *dy, int64_t row,
              int32_t rows, int32_t columns, int32_t depth);
} weir_pool_grad_table;

typedef struct weir_conv_table weir_conv_table;
typedef struct weir_conv_grad_table weir_conv_grad_table;
typedef struct weir_gemm_table weir_gemm_table;
typedef struct weir_cell_table weir_cell_table;
typedef struct weir_random_table weir_random_table;
typedef struct weir_apply_table weir_apply_table;
typedef struct weir_loss_table weir_loss_table;
typedef struct weir_column_table weir_column_table;
typedef struct weir_peak_table weir_peak_table;
typedef struct weir_attention_table weir_attention_table;
typedef struct weir_conv_tile_table weir_conv_tile_table;

typedef struct weir_isa {
  const char *name;             /* "avx512" */
  int lanes;                    /* f32 in a vector */
  const weir_tile_entry *f32;   /* ended by a NULL op */
  const weir_tile_entry *other; /* f64, integers, bool */
  const weir_rows *rows;
  const weir_conv_table *conv;
  const weir_conv_grad_table *conv_grad;
  const weir_pool_grad_table *pool_grad;
  const weir_cell_table *cells;               /* isa/cells.h */
  const weir_random_table *random;            /* isa/random.h */
  const weir_gemm_table *gemm_f32, *gemm_f64; /* isa/gemm.h */
  const weir_apply_table *apply;              /* isa/apply.h */
  const weir_loss_table *loss;                /* isa/loss.h */
  const weir_column_table *columns;           /* isa/columns.h */
  const weir_peak_table *peak;                /* cpu/peak/peak.h */
  const weir_attention_table *attention;      /* attention/block.h */
  const weir_conv_tile_table *conv_tiles;     /* blocked/tile.h */
} weir_isa;

#endif
