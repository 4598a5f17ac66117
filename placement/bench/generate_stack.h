/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_GENERATE_STACK_H_
#define WEIR_PLACEMENT_GENERATE_STACK_H_

#include "placement/bench/generate_internal.h"

/* Stacks of encoder layers, |side| of them, through which several batches go.
 * A task's indices are its batch, its layer and its place in the layer. */

enum {
  WEIR_STACK_LAYER_TASKS = 36, /* of one batch in one layer */
  WEIR_STACK_BATCHES = 16,     /* of a pipeline */
  WEIR_STACK_REPLICAS = 8
};

/* Batches of a graph of |nodes| tasks: |most|, or half of them and so on, so
 * that there are two layers. */
uint64_t weir_stack_batches(uint64_t nodes, uint64_t most);
/* One batch, one stack. */
bool weir_generate_transformer(weir_generator *g);
/* Micro-batches through one stack; each layer has weights, which all of them
 * read. */
bool weir_generate_pipeline(weir_generator *g);
/* Independent copies of a stack, and a tree that adds up their results. */
bool weir_generate_replicas(weir_generator *g);

#endif
