/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cost.h"
#include "ops/grads.h"
#include "ops/nn/heads.h"
#include "ops/recurrent/recurrent.h"
#include "ops/rules.h"

static weir_status shape(weir_shape_ctx *ctx) {
  weir_head_shapes s;
  WEIR_TRY(weir_rule_heads(ctx, 3, &s));
  WEIR_TRY(weir_shape_set(ctx, 0, &s.y));
  return weir_shape_set(ctx, 1, &s.lse);
}

static weir_status grad(weir_grad_ctx *ctx) {
  static const char *const kAttrs[] = {"scale",       "is_causal",    "window",
                                       "q_num_heads", "kv_num_heads", NULL};
  WEIR_TRY(weir_grad_not_through(ctx, 1));
  weir_ref mask = weir_grad_optional(ctx, 3);
  weir_ref in[] = {weir_grad_in(ctx, 0),
                   weir_grad_in(ctx, 1),
                   weir_grad_in(ctx, 2),
                   weir_grad_dy(ctx, 0),
                   weir_grad_out(ctx, 0),
                   weir_grad_out(ctx, 1),
                   mask,
                   weir_grad_optional(ctx, 4)};
  weir_ref first = weir_g_like(ctx, "attention_grad", 8, in, kAttrs);
  for (uint32_t i = 0; i < 3; i++)
    weir_grad_add(ctx, i, weir_grad_next(first, i));
  if (mask != WEIR_NO_VALUE && weir_grad_wanted(ctx, 3))
    weir_grad_add(ctx, 3,
                  weir_grad_unbroadcast(ctx, weir_grad_next(first, 3), mask));
  return WEIR_OK;
}

static void cost(const weir_call *call, weir_cost *out) {
  weir_heads h;
  weir_heads_of(call, &h);
  weir_cost_bytes(call, out);
  int64_t pairs = weir_cost_mul(weir_cost_mul(h.batch, h.q_heads),
                                weir_cost_mul(h.queries, h.keys));
  out->flops = weir_cost_mul(pairs, 2 * (h.width + h.depth) + 16);
}

const weir_op_def weir_op_attention = {
    .name = "attention",
    .aliases = {"scaled_dot_product_attention"},
    .summary = "softmax(q k^T * scale + mask) v, head by head.",
    .doc =
        "q, k and v are [batch, heads, tokens, width], or [batch, tokens, "
        "heads * width] with the numbers of heads as attributes; k and v may "
        "have fewer heads than q, each of which serves as many neighbours. A "
        "mask broadcasts to [batch, heads, queries, keys]: numbers are added, "
        "a false bool hides the key. lengths says how many keys of each batch "
        "count (ONNX's nonpad_kv_seqlen); less than 0 is 0, more than there "
        "are is all. With is_causal query i sees keys 0 to i, with a window "
        "those less than window tokens away. A row that sees no key is 0. The "
        "scores are never stored as a whole, so memory is linear in tokens.",
    .source =
        "Vaswani et al., arXiv:1706.03762; in blocks: Dao et al., "
        "arXiv:2205.14135; ONNX Attention, opset 23",
    .example = "attention(q, k, v, is_causal=true)",
    .inputs = {{"q", "T", "[b, h, t, d] or [b, t, h d]"},
               {"k", "T", "[b, g, s, d] or [b, s, g d]"},
               {"v", "T", "[b, g, s, e] or [b, s, g e]"},
               {"mask", "U", "to [b, h, t, s]; none", .optional = true},
               {"lengths", "i64", "[b] or []; all keys", .optional = true}},
    .outputs = {{"y", "T", "[b, h, t, e] or [b, t, h e]"},
                {"lse", "T", "[b, h, t], log(sum(exp)) of each row of scores",
                 .optional = true}},
    .types = {{"T", WEIR_FLOATS}, {"U", WEIR_FLOATS | WEIR_BOOL}},
    .attrs = {{"scale", WEIR_ATTR_FLOAT, "none",
               "of the products; none: 1 / sqrt(d)"},
              {"is_causal", WEIR_ATTR_BOOL, "false",
               "query i sees keys 0 to i"},
              {"window", WEIR_ATTR_INT, "0",
               "keys that far away are not seen; 0: all are"},
              {"q_num_heads", WEIR_ATTR_INT, "0",
               "of q, where they lie in its last dimension"},
              {"kv_num_heads", WEIR_ATTR_INT, "0",
               "of k and v there; 0: as many"}},
    .refuses = {"ranks other than 3 and 4, or different ones",
                "heads of q that are not a multiple of those of k",
                "sizes of q, k and v that do not fit",
                "q_num_heads missing with rank 3, or given with rank 4",
                "a mask that does not broadcast to the scores",
                "a mask of another type", "lengths of another batch",
                "a window below 0", "integers"},
    .shape = shape,
    .grad = grad,
    .cost = cost};
