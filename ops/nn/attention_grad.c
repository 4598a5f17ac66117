/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/nn/heads.h"
#include "ops/recurrent/recurrent.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_head_shapes s;
  WEIR_TRY(weir_rule_heads(ctx, 6, &s));
  WEIR_TRY(weir_rule_fits(ctx, 3, "dy", &s.y, "attention's y"));
  WEIR_TRY(weir_rule_fits(ctx, 4, "y", &s.y, "attention's y"));
  WEIR_TRY(weir_rule_fits(ctx, 5, "lse", &s.lse, "attention's lse"));
  for (uint32_t i = 0; i < 3; i++)
    WEIR_TRY(weir_shape_set(ctx, i, weir_shape_in(ctx, i)));
  return weir_shape_set(ctx, 3, &s.scores);
}

static void cost(const weir_call *call, weir_cost *out) {
  weir_heads h;
  weir_heads_of(call, &h);
  weir_cost_bytes(call, out);
  int64_t pairs = weir_cost_mul(weir_cost_mul(h.batch, h.q_heads),
                                weir_cost_mul(h.queries, h.keys));
  out->flops = weir_cost_mul(pairs, 6 * h.width + 4 * h.depth + 16);
}

const weir_op_def weir_op_attention_grad = {
    .name = "attention_grad",
    .summary = "Gradient of attention with respect to q, k, v and the mask.",
    .doc =
        "y and lse are attention's outputs. The weights p = exp(score - lse) "
        "are computed again, block by block; with d = sum(dy * y) of a row, ds "
        "= p (dy v^T - d), and dq, dk, dv are products of ds and p.",
    .source = "Dao et al., arXiv:2205.14135",
    .example = "attention_grad(q, k, v, dy, y, lse)",
    .inputs = {{"q", "T", "[b, h, t, d] or [b, t, h d]"},
               {"k", "T", "[b, g, s, d] or [b, s, g d]"},
               {"v", "T", "[b, g, s, e] or [b, s, g e]"},
               {"dy", "T", "as attention's y"},
               {"y", "T", "attention's y"},
               {"lse", "T", "[b, h, t]"},
               {"mask", "U", "to [b, h, t, s]; none", .optional = true},
               {"lengths", "i64", "[b] or []; all keys", .optional = true}},
    .outputs = {{"dq", "T"},
                {"dk", "T"},
                {"dv", "T"},
                {"dmask", "T", "[b, h, t, s]", .optional = true}},
    .types = {{"T", WEIR_FLOATS}, {"U", WEIR_FLOATS | WEIR_BOOL}},
    .attrs = {{"scale", WEIR_ATTR_FLOAT, "none", "as attention had it"},
              {"is_causal", WEIR_ATTR_BOOL, "false", "as attention had it"},
              {"window", WEIR_ATTR_INT, "0", "as attention had it"},
              {"q_num_heads", WEIR_ATTR_INT, "0", "as attention had it"},
              {"kv_num_heads", WEIR_ATTR_INT, "0", "as attention had it"}},
    .refuses = {"what attention refuses",
                "a dy, y or lse that does not fit attention's outputs",
                "integers"},
    .shape = shape,
    .cost = cost};
