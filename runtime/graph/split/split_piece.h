/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_SPLIT_PIECE_H_
#define WEIR_GRAPH_SPLIT_PIECE_H_

#include "runtime/graph/pass/pass.h"
#include "runtime/graph/split/split_cut.h"

/* The rows of a server in its update graph. */

/* What |server| has of variable |node|; NULL: nothing, or it is none. */
const weir_split_var *weir_split_piece(const weir_splitter *s,
                                       weir_node_id node, uint32_t server);
/* Copies variable |id| as its piece |v|. Its first value is computed whole, as
 * random numbers follow from their place in it, and rows of it are taken. */
weir_status weir_split_copy_piece(weir_splitter *s, weir_pass *pass,
                                  weir_node_id id, const weir_split_var *v);
/* What |server|'s rows of trained variable |k| add to the norm over servers: a
 * piece begins at a block. */
weir_split_share weir_split_share_of(const weir_splitter *s, uint32_t k,
                                     uint32_t server);
/* Files have whole values: of a piece the session takes its bytes. */
weir_status weir_split_cut_weights(weir_splitter *s, weir_pass *pass,
                                   uint32_t server);

#endif
