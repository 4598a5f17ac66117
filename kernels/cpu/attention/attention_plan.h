/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_ATTENTION_PLAN_H_
#define KERNELS_CPU_ATTENTION_PLAN_H_

#include "kernels/cpu/attention/block.h"
#include "kernels/cpu/isa/gemm.h"
#include "kernels/kernel.h"
#include "ops/nn/heads.h"

/* Plans of attention and its gradient, and the work on one block. */

typedef struct weir_attention {
  weir_heads h;
  const weir_isa *isa;
  const weir_gemm_table *tiles;
  int64_t query_block; /* queries, whole panels */
  int64_t query_blocks;
  int64_t key_block; /* keys at most */
  uint32_t in_count;
  uint32_t mask_in;     /* input that is the mask; the lengths are next */
  weir_dtype mask_type; /* WEIR_DTYPE_NONE: no mask */
  weir_mask_strides mask;
  int64_t length_count; /* 0: no lengths */
  /* Of a worker's scratch, in floats; all whole lines. */
  int64_t parts[12];
  size_t worker_bytes;
} weir_attention;

/* The parts of a worker's scratch. */
enum {
  WEIR_ATTENTION_S,    /* a block of scores */
  WEIR_ATTENTION_MASK, /* a mask's block */
  WEIR_ATTENTION_ROW,  /* numbers of each query, four rows of them */
  WEIR_ATTENTION_Q,    /* q turned, as panels of queries */
  WEIR_ATTENTION_V,    /* panels of v, or of k in the gradient */
  WEIR_ATTENTION_DP,   /* the gradient's: a second block, */
  WEIR_ATTENTION_DY,   /* dy turned, */
  WEIR_ATTENTION_Q_PANELS,
  WEIR_ATTENTION_DY_PANELS,
  WEIR_ATTENTION_PARTS
};

/* Refuses heads so wide that sizes would overflow. */
bool weir_attention_accepts(const weir_call *call, weir_why *why);

/* Makes the plan the kernel's state. |mask_in|: which input is the mask. */
weir_status weir_attention_prepare(const weir_call *call, uint32_t mask_in,
                                   bool back, weir_prepared *out,
                                   weir_error *err);

/* Part |part| of worker |worker|'s scratch. */
float *weir_attention_part(const weir_attention *p, const weir_args *args,
                           int worker, int part);

/* Queries [begin, end) of one head, and the keys that any of them sees. */
typedef struct weir_attention_rows {
  int64_t b, head, kv;
  int64_t begin, end;
  int64_t lanes; /* of the queries, in whole panels */
  int64_t key_begin, key_end;
} weir_attention_rows;

/* Keys of batch |b| that its length leaves. */
int64_t weir_attention_keys(const weir_attention *p, const weir_args *args,
                            int64_t b);

/* Block |block| of head |head| of batch |b|. */
void weir_attention_rows_of(const weir_attention *p, const weir_args *args,
                            int64_t b, int64_t head, int64_t block,
                            weir_attention_rows *out);

/* Blocks of keys in [begin, end), and the k-th of them: about equal ones, whole
 * tiles but for the last. */
int64_t weir_attention_key_blocks(const weir_attention *p, int64_t begin,
                                  int64_t end);
void weir_attention_key_range(const weir_attention *p, int64_t begin,
                              int64_t end, int64_t k, int64_t *from,
                              int64_t *to);

/* |rows| of |x| become columns: dst[panel][c][columns], times |factor|. */
void weir_attention_turn(const weir_attention *p, float *dst, const float *x,
                         int64_t row, int64_t rows, int64_t width,
                         float factor);

/* Panels of |x|'s columns: dst[panel][row][columns]. */
void weir_attention_pack(const weir_attention *p, float *dst, const float *x,
                         int64_t row, int64_t rows, int64_t width);

/* c[i * c_row + j] (+)= sum of a[i * a_row + t * a_k] times element t of column
 * j, of the panels |b|; i < m, j < n, t < k. k 0: zeros, or nothing is added.
 */
typedef struct weir_attention_product {
  const float *a, *b;
  float *c;
  int64_t a_row, a_k, c_row;
  int64_t m, n, k;
  bool add;
  bool plain;    /* |b| is no panels, but rows of n numbers */
  int64_t b_row; /* then: from row to row */
} weir_attention_product;

/* The product itself. */
void weir_attention_multiply(const weir_attention *p,
                             const weir_attention_product *product);

/* The scores of |rows| with keys [from, to) in the worker's block, masks added:
 * s[j * rows->lanes + i]. |q|: turned and scaled. */
void weir_attention_scores(const weir_attention *p, const weir_args *args,
                           int worker, const weir_attention_rows *rows,
                           int64_t from, int64_t to, weir_attention_block *out);

/* Where a token of an operand begins. */
static inline int64_t weir_attention_token(const weir_head_strides *s,
                                           int64_t b, int64_t head, int64_t i) {
  return b * s->batch + head * s->head + i * s->row;
}

/* Fills |to| with what the mask adds to |count| scores of query |i|, from key
 * |from| on; of |rows| the batch and the head are read. */
void weir_attention_mask_row(const weir_attention *p, const weir_args *args,
                             const weir_attention_rows *rows, int64_t i,
                             int64_t from, int64_t count, float *to);

#endif
