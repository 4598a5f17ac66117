/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_ATTENTION_BLOCK_H_
#define KERNELS_CPU_ATTENTION_BLOCK_H_

#include <stdbool.h>
#include <stdint.h>

#include "kernels/cpu/isa/isa.h"

/* Softmax on blocks of attention's scores in one instruction set. A block is
 * stored key by key with its queries side by side, s[j * row + i], so that
 * each query has a lane of its own and nothing is joined across lanes.
 * |queries| is a multiple of the lanes; those that are not there hold numbers
 * too. */

typedef struct weir_attention_block {
  float *s;
  int64_t row, keys, queries;
  const float *per_key; /* added to a key's scores; NULL: nothing */
  const float *full;    /* added, laid out as s; NULL: nothing */
  /* With |bounded| a score stays where low <= shift + j - i <= high, else it is
   * minus infinity; |shift| is the first key less the first query. */
  bool bounded;
  int64_t shift, low, high;
} weir_attention_block;

struct weir_attention_table {
  /* Adds the masks and hides keys out of bounds. */
  void (*mask)(const weir_attention_block *b);
  /* s = exp(s - most), with the largest score of each query so far: |most| is
   * raised, |sum| is that of the weights so far, and what was made of the
   * blocks before must be multiplied by |factor|. A query that has seen nothing
   * yet has most minus infinity and sum 0, and its weights are 0. */
  void (*weigh)(const weir_attention_block *b, float *most, float *sum,
                float *factor);
  /* The same of n scores of one query that lie together; gives the factor. */
  float (*weigh_row)(float *s, int64_t n, float *most, float *sum);
  /* s = exp(s - lse), dp = s (dp - delta), each query with its own two. */
  void (*back)(const weir_attention_block *b, float *dp, const float *lse,
               const float *delta);
};

#endif
