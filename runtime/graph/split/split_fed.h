/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_SPLIT_FED_H_
#define WEIR_GRAPH_SPLIT_FED_H_

#include "runtime/graph/split/split.h"

/* Workers and servers of one process on one graph.
 *
 * The fed graph is the training graph cut as split.h says, with both sides in
 * it: a worker's run fetches loss and pushes, an update's run is fed pushes and
 * assigns. They are programs of one session, so a pull lends the variable's
 * current buffer and costs nothing, and evaluation, checkpoints and summaries
 * see the same variables as ever. */

typedef struct weir_split_fed {
  weir_train_graph *train;     /* as weir_graph_train makes it, but that updates
                                  read inputs; the caller's to release */
  const weir_value_id *worker; /* per push of the split: fetched */
  const weir_value_id *input;  /* likewise: fed */
  weir_value_id given_step;    /* input: the number of updates at the pull;
                                  WEIR_NO_VALUE: the graph counts */
  uint32_t push_count;
} weir_split_fed;

/* The fed graph of |split|, of |source| and for one server; lists live in
 * |*out|'s train. Ids of |source| are kept. |given_step| as in split.h. Errors:
 * W1122 (a step reads what the graph assigns in it), W6001. */
weir_status weir_split_feed(const weir_split *split, const weir_graph *source,
                            bool given_step, weir_split_fed *out,
                            weir_error *err);

#endif
