/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/nn/einsum_equation.h"
#include "ops/rules.h"

static weir_status read(weir_shape_ctx *ctx, weir_einsum *e) {
  const weir_attr *equation = weir_shape_attr(ctx, "equation");
  const char *why = weir_einsum_parse(equation->s, e);
  int count = weir_rule_has(ctx, 1) ? 2 : 1;
  if (why != NULL)
    return weir_shape_fail(ctx, WEIR_W2015, "%s, at character %u of \"%.*s\"",
                           why, e->error_at + 1, WEIR_SV(equation->s));
  if (e->operand_count != count)
    return weir_shape_fail(ctx, WEIR_W2015,
                           "the equation names %d operands, given %d",
                           e->operand_count, count);
  return WEIR_OK;
}

/* Gives the letters of operand |i| their sizes. */
static weir_status bind(weir_shape_ctx *ctx, const weir_einsum *e, int i,
                        weir_dim *sizes, bool *bound) {
  const weir_shape *x = weir_shape_in(ctx, (uint32_t)i);
  if (x->rank < 0) return WEIR_OK;
  if (x->rank != e->rank[i])
    return weir_shape_fail(ctx, WEIR_W2015,
                           "%c is %s, and the equation names %d dimensions",
                           'a' + i, weir_shape_text(ctx, x), e->rank[i]);
  for (int d = 0; d < x->rank; d++) {
    int index = e->index[i][d];
    weir_dim old = bound[index] ? sizes[index] : x->dims[d];
    if (!weir_dim_unify(old, x->dims[d], &sizes[index]))
      return weir_shape_fail(ctx, WEIR_W2015, "%c is %s and %s",
                             e->letters[index], weir_dim_text(ctx, old),
                             weir_dim_text(ctx, x->dims[d]));
    bound[index] = true;
  }
  return WEIR_OK;
}

static weir_status shape(weir_shape_ctx *ctx) {
  weir_einsum e;
  weir_dim sizes[WEIR_EINSUM_INDICES];
  bool bound[WEIR_EINSUM_INDICES] = {false};
  WEIR_TRY(read(ctx, &e));
  for (int i = 0; i < e.operand_count; i++)
    WEIR_TRY(bind(ctx, &e, i, sizes, bound));
  weir_shape y = weir_shape_scalar();
  for (int d = 0; d < e.rank[2]; d++) {
    int index = e.index[2][d];
    weir_shape_push(&y, bound[index] ? sizes[index] : weir_shape_new_dim(ctx));
  }
  return weir_shape_set(ctx, 0, &y);
}

/* Writes the letters of part |i|, those that |others| have only. */
static size_t letters(const weir_einsum *e, int i, uint32_t others, char *out) {
  size_t n = 0;
  for (int d = 0; d < e->rank[i]; d++)
    if (others & 1u << e->index[i][d]) out[n++] = e->letters[e->index[i][d]];
  return n;
}

/* dL/d(operand i): dy and the other operand, summed to the indices of |i|;
 * those that neither has were summed over alone, so dy is the same along them.
 */
static weir_ref operand_grad(weir_grad_ctx *ctx, const weir_einsum *e, int i) {
  weir_ref in[] = {weir_grad_dy(ctx, 0), WEIR_NO_VALUE};
  weir_ref x = weir_grad_in(ctx, (uint32_t)i);
  uint32_t have = weir_einsum_indices(e, 2), count = 1;
  char text[4 * WEIR_MAX_RANK + 8];
  size_t n = letters(e, 2, UINT32_MAX, text);
  if (e->operand_count == 2) {
    in[count++] = weir_grad_in(ctx, (uint32_t)(1 - i));
    have |= weir_einsum_indices(e, 1 - i);
    text[n++] = ',';
    n += letters(e, 1 - i, UINT32_MAX, text + n);
  }
  text[n++] = '-';
  text[n++] = '>';
  n += letters(e, i, have, text + n);
  weir_named_attr attrs[] = {
      {"equation", {.kind = WEIR_ATTR_STRING, .s = {text, n}}},
      {NULL, {WEIR_ATTR_NONE, 0, {0}}}};
  weir_ref g = weir_grad_node(ctx, "einsum", count, in, attrs);
  weir_dim missing[WEIR_MAX_RANK];
  uint32_t gone = 0;
  for (int d = 0; d < e->rank[i]; d++)
    if (!(have & 1u << e->index[i][d])) missing[gone++] = weir_dim_of(d);
  if (gone == 0) return g;
  g = weir_g1a(ctx, "unsqueeze", g, "axis", weir_attr_dims(gone, missing));
  return weir_g_expand_like(ctx, g, x);
}

static weir_status grad(weir_grad_ctx *ctx) {
  weir_einsum e;
  if (weir_einsum_parse(weir_grad_attr(ctx, "equation")->s, &e) != NULL)
    return WEIR_INTERNAL;
  for (int i = 0; i < e.operand_count; i++)
    if (weir_grad_wanted(ctx, (uint32_t)i))
      weir_grad_add(ctx, (uint32_t)i, operand_grad(ctx, &e, i));
  return WEIR_OK;
}

/* A multiplication and an addition for each combination of the indices. */
static void cost(const weir_call *call, weir_cost *out) {
  weir_einsum e;
  uint32_t seen = 0;
  weir_cost_bytes(call, out);
  if (weir_einsum_parse(weir_call_attr(call, "equation")->s, &e) != NULL)
    return;
  out->flops = 2;
  for (int i = 0; i < e.operand_count; i++)
    for (int d = 0; d < e.rank[i]; d++)
      if (!(seen & 1u << e.index[i][d])) {
        seen |= 1u << e.index[i][d];
        out->flops = weir_cost_mul(out->flops, call->in[i].dims[d]);
      }
}

const weir_op_def weir_op_einsum = {
    .name = "einsum",
    .summary = "Sum of products over named indices.",
    .doc =
        "Every index is one letter; spaces are ignored. Indices that the "
        "result lacks are summed over.",
    .source =
        "Einstein, Annalen der Physik 354 (1916) 769-822; the NumPy manual, "
        "einsum",
    .example = "einsum(\"m k, k n -> m n\", a, b)",
    .inputs = {{"a", "T"}, {"b", "T", NULL, .optional = true}},
    .outputs = {{"y", "T"}},
    .types = {{"T", WEIR_FLOATS}},
    .attrs = {{"equation", WEIR_ATTR_STRING, NULL,
               "a letter for each dimension of each operand -> those of the "
               "result"}},
    .refuses = {"an equation without ->",
                "another number of operands or dimensions than it names",
                "an index twice in one operand or in the result",
                "a result index that no operand has",
                "one index with two sizes", "integers"},
    .shape = shape,
    .grad = grad,
    .cost = cost};
