/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_PASS_ATTENTION_H_
#define WEIR_GRAPH_PASS_ATTENTION_H_

#include "runtime/base/strbuf.h"
#include "runtime/graph/graph.h"

/* The pass that makes one node of attention written in parts, and one of its
 * gradient. */

/* matmul(softmax(matmul(q, k, transpose_b=true) scaled + mask), v) becomes
 * attention(q, k, v, mask), and what autodiff makes of it attention_grad
 * (attention_match.h), where nothing else reads what lies between and |keep|
 * (values of |graph| that are fetched) has none of it. Heads that transposes
 * [0, 2, 1, 3] brought forward, and back behind it, are read where they lie.
 * Old ids map to new ones by |values| and |nodes|, with room for all of
 * |graph|'s; UINT32_MAX: gone. Without a match the result is |graph| itself,
 * once more referenced. Bodies of nodes stay as they are. Errors: W6001. */
weir_status weir_graph_attend(const weir_graph *graph,
                              const weir_value_id *keep, size_t keep_count,
                              weir_value_id *values, weir_node_id *nodes,
                              weir_graph **out_graph, weir_error *err);
/* Appends lines that say where attention in parts stays so, and why: a part is
 * an output of |graph| or is read elsewhere; for what becomes one node, when
 * the pass is left out (weir_cut_request). Errors: W6001. */
weir_status weir_graph_attend_note(const weir_graph *graph, weir_strbuf *text,
                                   weir_error *err);

#endif
