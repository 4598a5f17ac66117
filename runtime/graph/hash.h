/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_HASH_H_
#define WEIR_GRAPH_HASH_H_

#include "runtime/graph/graph.h"

/* A number for the computation of |graph|: names, ops, attributes, edges,
 * types, inputs and outputs, bodies included; never 0. The same on every
 * machine and in every run. Sections (train, data, ...), places in the file and
 * seeds play no part, so a checkpoint of another learning rate is one of the
 * same graph. Reads only. */
uint64_t weir_graph_hash(const weir_graph *graph);

#endif
