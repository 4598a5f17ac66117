/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_MESH_RULE_SHAPE_H_
#define WEIR_GRAPH_MESH_RULE_SHAPE_H_

#include "runtime/graph/mesh/mesh_internal.h"

/* Rules of transpose, reshape and the like. */

/* Dimensions keep their axes. */
void weir_mesh_rule_transpose(const weir_mesh_lower *l, weir_mesh_plan *plan);

/* Dimensions that reshape and its like leave whole keep their axes. */
void weir_mesh_rule_reshape(const weir_mesh_lower *l, weir_mesh_plan *plan);

#endif
