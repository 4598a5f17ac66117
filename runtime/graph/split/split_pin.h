/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_SPLIT_PIN_H_
#define WEIR_GRAPH_SPLIT_PIN_H_

#include "runtime/graph/split/split.h"

/* The halves of a step on devices. */

typedef struct weir_split_devices {
  weir_sv worker;       /* its job; nodes keep the kind that they ask for */
  uint32_t worker_task; /* in that job */
  weir_sv server;       /* the servers' job; server k is its task k */
} weir_split_devices;

/* |train|'s graph, in which each node asks for the device of its half: for
 * predictions of a step. |train| is of the graph that |split| was made from, as
 * a plain training step. Ids are kept. Errors: W1115, W6001. */
weir_status weir_split_pin(const weir_split *split,
                           const weir_train_graph *train,
                           const weir_split_devices *devices,
                           weir_graph **out_graph, weir_error *err);

#endif
