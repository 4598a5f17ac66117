/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_MESH_RULE_H_
#define WEIR_GRAPH_MESH_RULE_H_

#include "runtime/graph/mesh/mesh_internal.h"

/* Rules: how a node is cut, given its inputs. */

/* How |plan->node| is cut. */
void weir_mesh_rule(const weir_mesh_lower *l, weir_mesh_plan *plan);

/* How input |i| comes. */
weir_mesh_spec weir_mesh_in(const weir_mesh_lower *l,
                            const weir_mesh_plan *plan, uint32_t i);

/* How names say output |i| is to go on. */
weir_mesh_spec weir_mesh_wanted(const weir_mesh_lower *l,
                                const weir_mesh_plan *plan, uint32_t i);

/* The whole shape of input |i|. */
const weir_shape *weir_mesh_in_shape(const weir_mesh_lower *l,
                                     const weir_mesh_plan *plan, uint32_t i);

/* The whole shape of output |i|. */
const weir_shape *weir_mesh_out_shape(const weir_mesh_lower *l,
                                      const weir_mesh_plan *plan, uint32_t i);

#endif
