/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_MESH_RULE_PRODUCT_H_
#define WEIR_GRAPH_MESH_RULE_PRODUCT_H_

#include "runtime/graph/mesh/mesh_internal.h"

/* Rules of matmul and einsum. */

/* Rows, columns and the summed dimension of matmul. */
void weir_mesh_rule_matmul(const weir_mesh_lower *l, weir_mesh_plan *plan);

/* The same by the letters of einsum. */
void weir_mesh_rule_einsum(const weir_mesh_lower *l, weir_mesh_plan *plan);

#endif
