/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_REPLICAS_GRAPH_H_
#define WEIR_TRAIN_REPLICAS_GRAPH_H_

#include "runtime/train/replicas/replicas_internal.h"

/* The graph of replicas, and what a run of one fetches. */

/* Makes loop->train, the graph of both sides, and loop->replicas for it.
 * loop->spec->accumulate becomes the number of runs of an update. Errors:
 * W1122, those of weir_graph_split, W6001. */
weir_status weir_replicas_create(weir_loop *loop, weir_error *err);

/* The fetches of a replica. Errors: W1122 (one that a server computes, or a
 * state that replicas would share), W6001. */
weir_status weir_replicas_fetches(weir_replicas *r, weir_error *err);

#endif
