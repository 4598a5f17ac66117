/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_TRAIN_SPEC_H_
#define WEIR_GRAPH_TRAIN_SPEC_H_

#include "runtime/graph/train/train.h"

/* Section `train` as a struct. */

/* Reads and checks all of `train:`, unknown keys included. Loading a graph has
 * done that before, so that only graphs put together otherwise fail here. A
 * graph without the section gives W1130. Errors: W1130-W1135, W1001-W1009,
 * W6001; findings go to |sink| too (may be NULL). */
weir_status weir_train_spec_read(const weir_graph *graph,
                                 const weir_diag_sink *sink,
                                 weir_train_spec **out_spec, weir_error *err);

void weir_train_spec_release(weir_train_spec *spec); /* NULL-safe */

/* For the loader: reads and checks without a result. |names|: the graph is
 * complete. Findings go to |sink|. Returns how many there were. */
uint32_t weir_train_check(const weir_graph *graph, const weir_diag_sink *sink,
                          bool names, weir_error *err);

/* Fills |err| with W1136 if keys of |spec| have no effect in one process, which
 * is the only way to train so far; returns whether it did. */
bool weir_train_unused(const weir_train_spec *spec, weir_error *err);

#endif
