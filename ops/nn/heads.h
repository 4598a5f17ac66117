/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPS_NN_HEADS_H_
#define OPS_NN_HEADS_H_

#include "ops/shape_ctx.h"

/* The common part of attention and its gradient, and of their kernels.
 *
 * q, k and v are [batch, heads, tokens, width], or [batch, tokens, heads *
 * width] with the numbers of heads as attributes. Either way a token of a head
 * is |width| elements that lie together, so a kernel reads both forms by
 * strides and no head is moved. */

/* Shapes of a call, as a shape rule knows them: [batch, heads, tokens, width]
 * each; ranks may be unknown. */
typedef struct weir_head_shapes {
  weir_shape q, k, v;
  weir_shape y;      /* as the output is written, in the form of q */
  weir_shape lse;    /* [batch, q heads, queries] */
  weir_shape scores; /* [batch, q heads, queries, keys] */
} weir_head_shapes;

/* Checks inputs 0 to 2, the mask (input |mask|), the lengths (the one after it)
 * and the attributes. W2004, W2005, W2007, W2010, W2011. */
weir_status weir_rule_heads(weir_shape_ctx *ctx, uint32_t mask,
                            weir_head_shapes *out);

/* Where the tokens of a head lie, in elements: that of batch b, head h, token t
 * begins at b * batch + h * head + t * row. */
typedef struct weir_head_strides {
  int64_t batch, head, row;
} weir_head_strides;

/* A call with everything known. */
typedef struct weir_heads {
  int64_t batch, q_heads, kv_heads;
  int64_t queries, keys;
  int64_t width; /* of a token of q and k */
  int64_t depth; /* of a token of v and y */
  int64_t group; /* heads of q that share one of k and v */
  double scale;
  bool causal;
  int64_t window; /* 0: none */
  weir_head_strides q, k, v, y;
} weir_heads;

/* Reads inputs 0 to 2 and the attributes. */
void weir_heads_of(const weir_call *call, weir_heads *out);

/* The keys that query |i| may see, but for the mask: [*begin, *end), where
 * |keys| are there. Empty: *begin == *end. */
static inline void weir_heads_seen(const weir_heads *h, int64_t i, int64_t keys,
                                   int64_t *begin, int64_t *end) {
  int64_t from = 0, to = keys;
  if (h->causal && to > i + 1) to = i + 1;
  if (h->window > 0 && from < i - h->window + 1) from = i - h->window + 1;
  if (h->window > 0 && to - i > h->window) to = i + h->window;
  *begin = from;
  *end = to > from ? to : from;
}

/* Keys of batch |b|: all, or as many as |lengths| says. |count| is 1 or the
 * batch; |lengths| NULL: all. */
static inline int64_t weir_heads_keys(const weir_heads *h,
                                      const int64_t *lengths, int64_t count,
                                      int64_t b) {
  int64_t n = lengths == NULL ? h->keys : lengths[count > 1 ? b : 0];
  return n < 0 ? 0 : n < h->keys ? n : h->keys;
}

/* The elements of a mask of scores: that of b, h, i, j is at the sum of each
 * times its stride; 0 where the mask is repeated. */
typedef struct weir_mask_strides {
  int64_t batch, head, query, key;
} weir_mask_strides;

/* Those of a mask that passed the shape rule. */
weir_mask_strides weir_mask_strides_of(const weir_operand *mask);

#endif
