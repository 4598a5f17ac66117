/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/collective/collective.h"

#include <inttypes.h>

#include "ops/cost.h"
#include "runtime/base/size.h"

weir_status weir_rule_ranks(weir_shape_ctx *ctx, int64_t *out_ranks) {
  int64_t rank = weir_rule_int(ctx, "rank"),
          ranks = weir_rule_int(ctx, "ranks");
  int64_t group = weir_rule_int(ctx, "group");
  if (rank < 0 || rank >= ranks || ranks > UINT32_MAX)
    return weir_shape_fail(ctx, WEIR_W2007,
                           "rank %" PRId64 " of %" PRId64
                           ", expected 0 <= rank < ranks",
                           rank, ranks);
  if (group < 0 || group > UINT32_MAX)
    return weir_shape_fail(ctx, WEIR_W2007,
                           "group is %" PRId64 ", expected 0 or more", group);
  *out_ranks = ranks;
  return WEIR_OK;
}

weir_status weir_rule_dealt(weir_shape_ctx *ctx, weir_shape *out_x,
                            int64_t *out_ranks) {
  *out_x = *weir_shape_in(ctx, 0);
  WEIR_TRY(weir_rule_ranks(ctx, out_ranks));
  WEIR_TRY(weir_rule_rank(ctx, 0, "x", 1, WEIR_MAX_RANK));
  if (out_x->rank < 1 || !weir_dim_known(out_x->dims[0])) return WEIR_OK;
  if (out_x->dims[0].value % *out_ranks == 0) return WEIR_OK;
  return weir_shape_fail(ctx, WEIR_W2010,
                         "x is %s and cannot be dealt to %" PRId64 " ranks",
                         weir_shape_text(ctx, out_x), *out_ranks);
}

void weir_cost_ring(const weir_call *call, int64_t turns, bool adds,
                    weir_cost *out) {
  const weir_operand *in = &call->in[0], *big = in;
  int64_t ranks = weir_call_attr(call, "ranks")->i;
  if (call->out[0].elements > in->elements) big = &call->out[0];
  int64_t bytes =
      weir_cost_mul(big->elements, (int64_t)weir_dtype_size(big->dtype));
  *out =
      (weir_cost){.flops = adds ? big->elements : 0,
                  .bytes = weir_cost_mul(turns, bytes / ranks * (ranks - 1))};
}
