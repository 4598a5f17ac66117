/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/mesh/mesh_rule_shape.h"

#include "runtime/base/size.h"
#include "runtime/graph/mesh/mesh_internal.h"
#include "runtime/graph/mesh/mesh_rule.h"

/* Ops that give the same elements another shape. A cut can be kept only by a
 * dimension that has the same elements at the same places before and after: in
 * row-major order, one of the same size with as many elements before it. Cuts
 * of other dimensions are undone before the op. */

void weir_mesh_rule_transpose(const weir_mesh_lower *l, weir_mesh_plan *plan) {
  int rank = weir_mesh_in_shape(l, plan, 0)->rank;
  int at = weir_op_attr_index(plan->node->op, WEIR_SV_LIT("perm"));
  if (at < 0 || rank < 0) return;
  const weir_attr *perm = &plan->node->attrs[at];
  plan->in[0] = weir_mesh_in(l, plan, 0);
  for (int i = 0; i < rank; i++) {
    int64_t from = rank - 1 - i;
    if (perm->kind == WEIR_ATTR_INTS) from = perm->dims[i].value;
    if (from < 0) from += rank;
    plan->out[0].axis[i] = plan->in[0].axis[from];
  }
}

/* The dimension of |y| with the same elements as dimension |i| of |x|: of its
 * size, with as many elements before it. -1: none. */
static int same_dim(const weir_shape *x, int i, const weir_shape *y) {
  int64_t before = 1, here = 1;
  for (int d = 0; d < i; d++)
    if (!weir_dim_mul_checked(before, x->dims[d].value, &before)) return -1;
  for (int d = 0; d < y->rank; d++) {
    if (here == before && y->dims[d].value == x->dims[i].value &&
        x->dims[i].value > 1)
      return d;
    if (!weir_dim_mul_checked(here, y->dims[d].value, &here)) return -1;
  }
  return -1;
}

void weir_mesh_rule_reshape(const weir_mesh_lower *l, weir_mesh_plan *plan) {
  const weir_shape *x = weir_mesh_in_shape(l, plan, 0);
  const weir_shape *y = weir_mesh_out_shape(l, plan, 0);
  if (!weir_shape_known(x) || !weir_shape_known(y)) return;
  weir_mesh_spec in = weir_mesh_in(l, plan, 0);
  for (int i = 0; i < x->rank; i++) {
    int to = in.axis[i] >= 0 ? same_dim(x, i, y) : -1;
    if (to < 0) continue; /* whole */
    plan->in[0].axis[i] = plan->out[0].axis[to] = in.axis[i];
  }
  plan->cut_shape =
      weir_op_attr_index(plan->node->op, WEIR_SV_LIT("shape")) >= 0;
}
