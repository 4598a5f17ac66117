/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/mesh/mesh_rule_product.h"

#include <assert.h>

#include "ops/nn/einsum_equation.h"
#include "runtime/base/size.h"
#include "runtime/graph/mesh/mesh_internal.h"
#include "runtime/graph/mesh/mesh_rule.h"
#include "runtime/graph/mesh/mesh_spec.h"

/* Sums of products. Every index of the equation may lie on one mesh axis, and
 * every axis may carry one index. Each axis in turn takes the index that moves
 * the fewest elements: an operand that comes in another cut has to be moved, a
 * sum over an index that is cut is partial and has to be added up.
 *
 * Only indices that already lie on the axis, in an operand or in the result,
 * are tried: at most three. The choice is greedy, axis by axis, so it may miss
 * the cheapest assignment of all axes together; it is the same in every run.
 * Cost: axes times parts times dimensions. */

enum { kNoIndex = -1, kIndices = WEIR_EINSUM_INDICES };

/* Part 0 and 1 are the operands, part 2 is the result. */
typedef struct product {
  int operands, count; /* of indices */
  int rank[3];
  int index[3][WEIR_MAX_RANK]; /* kNoIndex: a dimension of 1 that broadcasts */
  weir_mesh_spec spec[3];      /* as it comes; as it goes on */
  int64_t bytes[3];
} product;

/* Elements; bounded, so that a few of them can be added. A symbol counts as 1.
 */
static int64_t size_of(const weir_shape *shape) {
  int64_t n = 1;
  for (int i = 0; i < shape->rank; i++)
    if (shape->dims[i].symbol == 0 &&
        !weir_dim_mul_checked(n, shape->dims[i].value, &n))
      return INT64_MAX / 16;
  return n < INT64_MAX / 16 ? n : INT64_MAX / 16;
}

/* The elements moved when |axis| carries |index|. A reduce_scatter counts once
 * the result, an all_reduce twice: it is a reduce_scatter and an all_gather. */
static int64_t price(const product *p, int index, int axis) {
  int64_t sum = 0;
  for (int part = 0; part < 3; part++) {
    if (part == 1 && p->operands < 2) continue;
    int on = weir_mesh_dim_on(&p->spec[part], axis);
    bool has = false;
    for (int d = 0; d < p->rank[part]; d++)
      has = has || p->index[part][d] == index;
    if (part == 2) {
      if (has && on >= 0 && p->index[2][on] == index) continue;
      /* Summed and then kept whole or in parts; or cut otherwise. */
      sum += has ? p->bytes[2] : on >= 0 ? p->bytes[2] : 2 * p->bytes[2];
    } else if (on >= 0 && p->index[part][on] != index) {
      sum += p->bytes[part];
    }
  }
  return sum;
}

/* The index that |axis| carries, or kNoIndex. */
static int choose(const product *p, int axis, const int *axis_of) {
  int best = kNoIndex;
  int64_t least = 0;
  for (int part = 0; part < 3; part++) {
    int d = weir_mesh_dim_on(&p->spec[part], axis);
    if (d < 0 || d >= p->rank[part]) continue;
    int index = p->index[part][d];
    if (index == kNoIndex || axis_of[index] >= 0 || index == best) continue;
    int64_t cost = price(p, index, axis);
    if (best != kNoIndex && cost >= least) continue;
    best = index;
    least = cost;
  }
  return best;
}

static void solve(const weir_mesh_lower *l, const product *p,
                  weir_mesh_plan *plan) {
  int axis_of[kIndices];
  uint32_t in_result = 0; /* bit by index */
  assert(p->count <= kIndices && kIndices <= 32);
  for (int i = 0; i < kIndices; i++) axis_of[i] = -1;
  for (uint32_t a = 0; a < l->mesh->axis_count; a++) {
    int index = choose(p, (int)a, axis_of);
    if (index != kNoIndex) axis_of[index] = (int)a;
  }
  for (int part = 0; part < 3; part++) {
    if (part == 1 && p->operands < 2) continue;
    weir_mesh_spec *spec = part == 2 ? &plan->out[0] : &plan->in[part];
    for (int d = 0; d < p->rank[part]; d++) {
      int index = p->index[part][d];
      if (index == kNoIndex) continue;
      spec->axis[d] = (int8_t)axis_of[index];
      if (part == 2) in_result |= 1u << index;
    }
  }
  for (int i = 0; i < p->count; i++)
    if (axis_of[i] >= 0 && (in_result & 1u << i) == 0)
      plan->partial |= 1u << axis_of[i];
}

static void fill(const weir_mesh_lower *l, const weir_mesh_plan *plan,
                 product *p) {
  for (int i = 0; i < p->operands; i++) {
    p->spec[i] = weir_mesh_in(l, plan, (uint32_t)i);
    p->bytes[i] = size_of(weir_mesh_in_shape(l, plan, (uint32_t)i));
  }
  p->spec[2] = weir_mesh_wanted(l, plan, 0);
  p->bytes[2] = size_of(weir_mesh_out_shape(l, plan, 0));
}

void weir_mesh_rule_einsum(const weir_mesh_lower *l, weir_mesh_plan *plan) {
  weir_einsum e;
  product p = {0};
  const weir_node *node = plan->node;
  int at = weir_op_attr_index(node->op, WEIR_SV_LIT("equation"));
  if (at < 0 || weir_einsum_parse(node->attrs[at].s, &e) != NULL) return;
  p.operands = e.operand_count;
  p.count = e.index_count;
  for (int part = 0; part < 3; part++) {
    p.rank[part] = e.rank[part];
    for (int d = 0; d < e.rank[part]; d++) p.index[part][d] = e.index[part][d];
  }
  fill(l, plan, &p);
  solve(l, &p, plan);
}

static bool flag(const weir_node *node, const char *name) {
  int at = weir_op_attr_index(node->op, weir_sv_from(name));
  return at >= 0 && node->attrs[at].b;
}

/* Indices 0, 1, 2 are m, k, n; the batch follows, counted from the back. */
static void matmul_operand(const weir_mesh_lower *l, const weir_mesh_plan *plan,
                           product *p, int part) {
  const weir_shape *x = weir_mesh_in_shape(l, plan, (uint32_t)part);
  bool turned = flag(plan->node, part == 0 ? "transpose_a" : "transpose_b");
  int first = part == 0 ? 0 : 1, second = part == 0 ? 1 : 2;
  p->rank[part] = x->rank;
  if (x->rank == 1) {
    p->index[part][0] = 1;
    return;
  }
  p->index[part][x->rank - 2] = turned ? second : first;
  p->index[part][x->rank - 1] = turned ? first : second;
  for (int d = 0; d < x->rank - 2; d++) {
    bool one = weir_dim_is(x->dims[d], 1);
    p->index[part][d] = one ? kNoIndex : 3 + (x->rank - 3 - d);
  }
}

void weir_mesh_rule_matmul(const weir_mesh_lower *l, weir_mesh_plan *plan) {
  product p = {.operands = 2, .count = 3 + WEIR_MAX_RANK};
  const weir_shape *a = weir_mesh_in_shape(l, plan, 0);
  const weir_shape *b = weir_mesh_in_shape(l, plan, 1);
  const weir_shape *y = weir_mesh_out_shape(l, plan, 0);
  if (a->rank < 1 || b->rank < 1 || y->rank < 0) return;
  matmul_operand(l, plan, &p, 0);
  matmul_operand(l, plan, &p, 1);
  p.rank[2] = y->rank;
  int last = y->rank - 1;
  if (b->rank > 1) p.index[2][last--] = 2;
  if (a->rank > 1) p.index[2][last--] = 0;
  for (int d = last; d >= 0; d--) {
    bool one = weir_dim_is(y->dims[d], 1);
    p.index[2][d] = one ? kNoIndex : 3 + (last - d);
  }
  fill(l, plan, &p);
  solve(l, &p, plan);
}
