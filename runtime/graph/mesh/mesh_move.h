/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_MESH_MOVE_H_
#define WEIR_GRAPH_MESH_MOVE_H_

#include "runtime/graph/mesh/mesh_internal.h"

/* Moves a value from one cut to another. */

/* Gets |m| into the cut |to|. Errors: W6001. */
weir_status weir_mesh_move(weir_mesh_lower *l, weir_mesh_moving *m,
                           const weir_mesh_spec *to);

/* Old value |id| cut as |spec|, made when it is not there yet. */
weir_status weir_mesh_get(weir_mesh_lower *l, weir_value_id id,
                          const weir_mesh_spec *spec,
                          const weir_value_id **out_ids);

#endif
