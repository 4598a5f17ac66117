/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/rules.h"

/* A matrix operand as [batch..., rows, cols] after its transposition. */
typedef struct side {
  weir_shape batch;
  weir_dim rows, cols;
} side;

static weir_status read_side(weir_shape_ctx *ctx, uint32_t i, const char *flag,
                             side *out) {
  const weir_shape *x = weir_shape_in(ctx, i);
  bool transposed = weir_rule_bool(ctx, flag);
  if (x->rank == 1) {
    if (transposed)
      return weir_shape_fail(ctx, WEIR_W2004, "%s of the vector %s", flag,
                             weir_shape_text(ctx, x));
    out->rows = i == 0 ? weir_dim_of(1) : x->dims[0];
    out->cols = i == 0 ? x->dims[0] : weir_dim_of(1);
    out->batch = weir_shape_scalar();
    return WEIR_OK;
  }
  out->batch = weir_shape_scalar();
  for (int d = 0; d < x->rank - 2; d++)
    weir_shape_push(&out->batch, x->dims[d]);
  out->rows = x->dims[x->rank - (transposed ? 1 : 2)];
  out->cols = x->dims[x->rank - (transposed ? 2 : 1)];
  return WEIR_OK;
}

static weir_status shape(weir_shape_ctx *ctx) {
  const weir_shape *a = weir_shape_in(ctx, 0), *b = weir_shape_in(ctx, 1);
  weir_shape y = weir_shape_unknown();
  weir_dim k;
  side l, r;
  WEIR_TRY(weir_rule_rank(ctx, 0, "a", 1, WEIR_MAX_RANK));
  WEIR_TRY(weir_rule_rank(ctx, 1, "b", 1, WEIR_MAX_RANK));
  if (a->rank < 0 || b->rank < 0) return weir_shape_set(ctx, 0, &y);
  WEIR_TRY(read_side(ctx, 0, "transpose_a", &l));
  WEIR_TRY(read_side(ctx, 1, "transpose_b", &r));
  if (!weir_dim_unify(l.cols, r.rows, &k))
    return weir_shape_fail(
        ctx, WEIR_W2012, "inner dimensions differ, %s and %s, of %s and %s",
        weir_dim_text(ctx, l.cols), weir_dim_text(ctx, r.rows),
        weir_shape_text(ctx, a), weir_shape_text(ctx, b));
  WEIR_TRY(weir_rule_broadcast(ctx, &l.batch, &r.batch, &y));
  if (a->rank > 1) weir_shape_push(&y, l.rows);
  if (b->rank > 1) weir_shape_push(&y, r.cols);
  return weir_shape_set(ctx, 0, &y);
}

static weir_ref product(weir_grad_ctx *ctx, weir_ref a, weir_ref b, bool ta,
                        bool tb) {
  weir_named_attr attrs[] = {{"transpose_a", weir_attr_bool(ta)},
                             {"transpose_b", weir_attr_bool(tb)},
                             {NULL, {WEIR_ATTR_NONE, 0, {0}}}};
  return weir_grad_node(ctx, "matmul", 2, (weir_ref[]){a, b}, attrs);
}

static weir_ref as_matrix(weir_grad_ctx *ctx, weir_ref x, int64_t axis) {
  weir_dim dim = weir_dim_of(axis);
  return weir_g1a(ctx, "unsqueeze", x, "axis", weir_attr_dims(1, &dim));
}

/* dL/d(input i), of the shape [batch..., rows, cols], for input i. */
static void add_grad(weir_grad_ctx *ctx, uint32_t i, weir_ref matrix,
                     weir_ref g) {
  weir_ref x = weir_grad_in(ctx, i);
  weir_ref sum = weir_grad_unbroadcast(ctx, g, matrix);
  if (matrix != x) sum = weir_g_reshape_like(ctx, sum, x);
  weir_grad_add(ctx, i, sum);
}

/* All rows of all matrices of |x|, one below the other. */
static weir_ref as_rows(weir_grad_ctx *ctx, weir_ref x) {
  int axis = weir_grad_shape(ctx, x)->rank - 1;
  return weir_g1a(ctx, "flatten", x, "axis", weir_attr_int(axis));
}

static weir_status grad(weir_grad_ctx *ctx) {
  weir_ref a = weir_grad_in(ctx, 0), b = weir_grad_in(ctx, 1);
  weir_ref dy = weir_grad_dy(ctx, 0);
  bool ta = weir_grad_attr(ctx, "transpose_a")->b;
  bool tb = weir_grad_attr(ctx, "transpose_b")->b;
  bool a_vector = weir_grad_shape(ctx, a)->rank == 1;
  bool b_vector = weir_grad_shape(ctx, b)->rank == 1;
  if (b_vector) dy = as_matrix(ctx, dy, -1);
  if (a_vector) dy = as_matrix(ctx, dy, -2);
  if (a_vector) a = as_matrix(ctx, a, 0);
  if (b_vector) b = as_matrix(ctx, b, 1);
  if (weir_grad_wanted(ctx, 0))
    add_grad(
        ctx, 0, a,
        ta ? product(ctx, b, dy, tb, true) : product(ctx, dy, b, false, !tb));
  if (!weir_grad_wanted(ctx, 1)) return WEIR_OK;
  /* One matrix b for a batch: one sum over all rows, not one of each matrix. */
  if (!ta && weir_grad_shape(ctx, b)->rank == 2 &&
      weir_grad_shape(ctx, a)->rank > 2) {
    a = as_rows(ctx, a);
    dy = as_rows(ctx, dy);
  }
  add_grad(
      ctx, 1, b,
      tb ? product(ctx, dy, a, true, ta) : product(ctx, a, dy, !ta, false));
  return WEIR_OK;
}

static void cost(const weir_call *call, weir_cost *out) {
  const weir_operand *a = &call->in[0];
  bool transposed = a->rank > 1 && weir_call_attr(call, "transpose_a")->b;
  weir_cost_bytes(call, out);
  out->flops = weir_cost_mul(call->out[0].elements,
                             a->dims[a->rank - (transposed ? 2 : 1)]);
  out->flops = weir_cost_mul(out->flops, 2);
}

const weir_op_def weir_op_matmul = {
    .name = "matmul",
    .summary = "Product of two matrices, y = a b.",
    .doc =
        "Dimensions before the last two are a batch and broadcast. A vector "
        "a is a row, a vector b a column, and the dimension is gone from "
        "the result. Integers wrap on overflow.",
    .source = "BLAS 3 xGEMM: Dongarra et al., ACM TOMS 16 (1990) 1-17",
    .example = "matmul(a, b)",
    .inputs = {{"a", "T", "[..., m, k]"}, {"b", "T", "[..., k, n]"}},
    .outputs = {{"y", "T", "[..., m, n]"}},
    .types = {{"T", WEIR_FLOATS | WEIR_I32 | WEIR_I64}},
    .attrs = {{"transpose_a", WEIR_ATTR_BOOL, "false", "take a as [..., k, m]"},
              {"transpose_b", WEIR_ATTR_BOOL, "false",
               "take b as [..., n, k]"}},
    .refuses = {"inner dimensions that differ",
                "batch dimensions that do not broadcast", "scalars",
                "transposing a vector", "bool and u8"},
    .flags = WEIR_OP_ANCHOR,
    .shape = shape,
    .grad = grad,
    .cost = cost};
