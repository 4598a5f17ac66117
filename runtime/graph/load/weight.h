/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_WEIGHT_H_
#define WEIR_GRAPH_WEIGHT_H_

#include "runtime/graph/graph.h"

/* Copies the first value that |weight| is to |dst|, of its variable's size.
 * Blocks while the bytes are fetched, where they are not here; any thread.
 * Errors: those of weir_file.need. */
weir_status weir_graph_weight_copy(const weir_graph_weight *weight, void *dst,
                                   weir_error *err);

#endif
