/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_MESH_WANTED_H_
#define WEIR_GRAPH_MESH_WANTED_H_

#include "runtime/graph/train/train.h"

/* A lowered graph without unwanted nodes. */

/* |graph| (NULL |train|: its outputs), or a step of |train|, lowered and with
 * nothing else in it: for dumps and placement. Errors: as weir_graph_mesh. */
weir_status weir_graph_mesh_wanted(const weir_graph *graph,
                                   const struct weir_train_graph *train,
                                   weir_graph **out_graph, weir_error *err);

#endif
