/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_ATTENTION_MATCH_H_
#define WEIR_GRAPH_ATTENTION_MATCH_H_

#include "runtime/graph/graph.h"

/* Attention that is written in parts, and its gradient as autodiff writes it:
 *
 *   y = p v,  p = softmax(scale * q k^T + mask)
 *   dv = p^T dy,  dp = dy v^T,  ds = p * (dp - sum(dp * p))
 *   dq = scale * ds k,  dk = scale * ds^T q
 *
 * Heads may be turned: transposes [0, 2, 1, 3] bring q, k, v and dy forward,
 * and y, dq, dk and dv back. Parts have one reader each, or readers that are
 * parts themselves: else one would be computed twice. */

enum { WEIR_ATTENTION_PARTS = 24 };

/* Ids of the graph; values lie in [b, h, t, d], inside of transposes. */
typedef struct weir_attention_match {
  weir_value_id in[3]; /* q, k, v */
  weir_value_id mask;  /* NO_VALUE: none */
  weir_value_id y;
  double scale;
  bool turned;
  bool trained; /* the gradient is there: the next three are set */
  weir_value_id dy;
  weir_value_id d_in[3]; /* dq, dk, dv */
  weir_value_id ds;      /* with a mask it may have other readers */
  /* In whose places the node and that of its gradient go: what they read comes
   * before, what reads them behind. */
  weir_node_id place, back;
  /* A value that lies between and is read elsewhere; NO_VALUE: none, the parts
   * can become one node. */
  weir_value_id elsewhere;
  weir_node_id parts[WEIR_ATTENTION_PARTS];
  uint32_t part_count;
} weir_attention_match;

/* The readers of a graph's values. */
typedef struct weir_attention_finder {
  const weir_graph *graph;
  uint32_t *first;       /* per value, and one more: where its readers begin */
  weir_node_id *readers; /* an entry for each input of a node */
  bool *kept;            /* per value: an output, fetched, or in an order */
} weir_attention_finder;

/* |keep|: values that are fetched; NO_VALUE: none. End it in any case. Errors:
 * W6001. */
weir_status weir_attention_finder_begin(weir_attention_finder *f,
                                        const weir_graph *graph,
                                        const weir_value_id *keep,
                                        size_t keep_count, weir_error *err);
void weir_attention_finder_end(weir_attention_finder *f);

/* Whether node |mix|, the product with v, ends an attention in parts. */
bool weir_attention_find(const weir_attention_finder *f, weir_node_id mix,
                         weir_attention_match *out);

/* A value's place outside of the transposes of |m|, or itself: what a turned
 * operand is made of; what a turned result becomes. */
weir_value_id weir_attention_operand(const weir_attention_finder *f,
                                     const weir_attention_match *m,
                                     weir_value_id value);
weir_value_id weir_attention_result(const weir_attention_finder *f,
                                    const weir_attention_match *m,
                                    weir_value_id value);

#endif
