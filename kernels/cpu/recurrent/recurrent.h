/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_RECURRENT_H_
#define KERNELS_CPU_RECURRENT_H_

#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/isa/cells.h"

/* The common part of the recurrent kernels, f32.
 *
 * The products of all steps with w are one product of matrices. Then each step
 * is one parallel loop over blocks of rows (sequences) and units: a block makes
 * its part of the product with r and applies the gates to it while it is hot,
 * so that a step costs one barrier. r is packed into panels of units, once if
 * it is constant, else once a run: every step reads all of it, and reads it in
 * the order in which it lies. Odd steps go through the blocks backwards, which
 * finds the panels in the cache that the step before used last.
 *
 * Edges follow from shapes; an element is the same chain of sums in every
 * block. */

typedef struct weir_recurrent {
  const weir_isa *isa;
  const weir_gemm_table *tiles;
  int64_t batch, steps, inputs, units, gates;
  uint32_t in_count;
  bool reverse, back;               /* back: products with r transposed */
  bool relu;                        /* rnn: the function */
  bool shared;                      /* a step is worth several threads */
  int64_t panels;                   /* of units */
  int64_t rows, row_blocks, blocks; /* of a block; of a step */
  int64_t depth;                    /* of a slice of a sum */
  weir_gemm project;                /* forward: x w */
  void *packed_w;                   /* constant ones, else NULL */
  float *packed_r;
  const weir_allocator *alloc;
  size_t sums_at, gemm_at; /* in scratch, after r's panels */
  size_t workers_at, worker_bytes;
} weir_recurrent;

/* A block's part of a step. */
typedef struct weir_recurrent_block {
  int64_t row0, row1;   /* sequences */
  int64_t unit0, unit1; /* of one panel */
  float *local;         /* the thread's own, for products */
} weir_recurrent_block;

/* Packs panel |panel| of r. */
void weir_recurrent_pack(const weir_recurrent *plan, const float *r,
                         float *panels, int64_t panel);

/* One run. */
typedef struct weir_recurrent_run {
  const weir_recurrent *plan;
  const weir_args *args;
  const void *in[WEIR_OP_INPUTS]; /* NULL: missing */
  void *const *out;
  const float *r_panels;
  float *sums;     /* scratch for x w, if planned */
  int64_t step;    /* the one being made, in the order of time */
  const float *dq; /* weir_recurrent_first_state's */
  float *dh;
  bool add;
} weir_recurrent_run;

/* Fills |run| and packs r if no prepare did. |r|: index of its input. */
void weir_recurrent_begin(const weir_args *args, uint32_t r,
                          weir_recurrent_run *run);
/* The work of one step on one block of it. */
typedef void (*weir_recurrent_fn)(const weir_recurrent_run *run,
                                  const weir_recurrent_block *block);
/* A run forward, once begun: x w into |sums|, |fn| on all steps, then the state
 * after the last one, of |h0| and output 0, into output 1. */
WEIR_MUST_USE weir_status weir_recurrent_run_forward(weir_recurrent_run *run,
                                                     float *sums,
                                                     weir_recurrent_fn fn,
                                                     const float *h0);
/* |fn| on all steps, the last one first. */
void weir_recurrent_run_back(weir_recurrent_run *run, weir_recurrent_fn fn);

/* Row of [b, t, ...] that sequence |b| has in step |step| of the run. */
static inline int64_t weir_recurrent_row(const weir_recurrent *plan, int64_t b,
                                         int64_t step) {
  return b * plan->steps + (plan->reverse ? plan->steps - 1 - step : step);
}

/* The block's part of h r, h being the row of |y| [b, t, u] before this step's,
 * or |h0|: a row of weir_recurrent_local elements for each sequence, gate by
 * gate, a panel's columns each, in the thread's own memory. NULL: there is no
 * state before. */
const float *weir_recurrent_forward(const weir_recurrent_run *run,
                                    const weir_recurrent_block *block,
                                    const float *y, const float *h0);
/* The block's part of |dq| [b, t, g u] of step |from| times r transposed: a row
 * of weir_recurrent_local elements for each sequence. */
const float *weir_recurrent_back(const weir_recurrent_run *run,
                                 const weir_recurrent_block *block,
                                 const float *dq, int64_t from);
/* Elements of a row of these. */
static inline int64_t weir_recurrent_local(const weir_recurrent *plan) {
  return plan->tiles->columns * (plan->back ? 1 : plan->gates);
}
/* Asks for this step's rows of |x| [b, t, |parts| u] at the block's units; NULL
 * is allowed. Before the products, which hide the way from far caches. */
void weir_recurrent_fetch(const weir_recurrent_run *run,
                          const weir_recurrent_block *block, const float *x,
                          int64_t parts);
/* dh [b, u] (or += ) dq of the first step times r transposed. */
void weir_recurrent_first_state(weir_recurrent_run *run, const float *dq,
                                float *dh, bool add);
/* The state [.., u] before this step of sequence |b|, at unit |unit|; NULL:
 * zeros. */
const float *weir_recurrent_before(const weir_recurrent_run *run,
                                   const float *y, const float *h0, int64_t b,
                                   int64_t unit);

/* Copies |from| [b, u], or zeros if it is NULL, to |to|. */
void weir_recurrent_state(const weir_recurrent *plan, float *to,
                          const float *from);

#endif
