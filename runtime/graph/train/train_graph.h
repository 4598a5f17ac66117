/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_TRAIN_GRAPH_H_
#define WEIR_GRAPH_TRAIN_GRAPH_H_

#include "runtime/graph/train/train.h"

/* The rewrite of a graph into a training step. */

/* Errors: W1131-W1135, W2018, W2005, the ops' own, W6001. */
weir_status weir_graph_train(const weir_graph *graph,
                             const weir_train_spec *spec,
                             weir_train_graph **out_train, weir_error *err);

void weir_train_graph_release(weir_train_graph *train); /* NULL-safe */

/* Only the gradients of the loss with respect to the trained variables, for
 * dumps: the stage before the rewrite. Errors: as above. */
weir_status weir_graph_train_gradients(const weir_graph *graph,
                                       const weir_train_spec *spec,
                                       weir_graph **out_graph, weir_error *err);

/* Says of each node of |graph| whether it is a variable that the `train`
 * section updates: |out| has room for all nodes. A section that cannot be read
 * trains nothing; its errors are reported when the graph is trained. */
void weir_graph_trained(const weir_graph *graph, bool *out);

#endif
