/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_SPLIT_CUT_H_
#define WEIR_GRAPH_SPLIT_CUT_H_

#include "runtime/graph/split/split.h"

/* The cut through a training graph. */

/* A split under way; arrays are per node or value of the training graph. */
typedef struct weir_splitter {
  weir_split *out;
  const weir_train_graph *train;
  weir_split_options options;
  weir_split_var *vars; /* of |out| */
  uint32_t *var_of;     /* per node: its first place in |vars|, or UINT32_MAX */
  /* While variables are whole: of a slot its variable's place, else its own. */
  uint32_t *unit_of;
  weir_node_id
      *follows;  /* per value: the variable whose rows it has, or none */
  uint8_t *side; /* per node: weir_train_side */
  /* Per trained variable: what it adds to a norm over several servers; NULL:
   * there is none. Values are those of the server at hand. */
  weir_split_share *shares;
  bool *pushed;           /* per value */
  uint8_t *need;          /* per node, of the server at hand */
  weir_split_push *lists; /* of |out| */
  weir_error *err;
} weir_splitter;

/* Why a server needs a node: for a first value, for a step. */
enum { WEIR_SPLIT_NEED_FIRST = 1, WEIR_SPLIT_NEED_STEP = 2 };

/* Whether |node| is a norm over several servers, which comes from outside. */
bool weir_split_is_norm(const weir_splitter *s, weir_node_id node);

/* Marks the nodes that |server| needs in |need|, and in |pushed| the values
 * that it gets from workers. */
void weir_split_mark(weir_splitter *s, uint32_t server);

/* Makes out->worker and its maps. Errors: W1122, W6001. */
weir_status weir_split_worker(weir_splitter *s);
/* Makes the graph of |server| and its lists, once pushes are listed. Errors:
 * W1122, W6001. */
weir_status weir_split_update(weir_splitter *s, uint32_t server,
                              weir_update_graph *out);

#endif
