/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/rows/lanes.h"

#include "kernels/cpu/isa/choose.h"

/* Rows of the dims from |axis| (may be negative) on; the rest is counted.
 * |element_cost|: about how many tenths of a nanosecond an element takes. */
static void plan_init(weir_row_plan *plan, const weir_call *call, int64_t axis,
                      int64_t element_cost) {
  const weir_operand *x = &call->in[0];
  *plan = (weir_row_plan){.isa = weir_isa_of(call), .call = call, .n = 1};
  if (axis < 0) axis += x->rank;
  for (int32_t d = (int32_t)axis; d < x->rank; d++) plan->n *= x->dims[d];
  plan->count = 1;
  for (int32_t d = 0; d < axis; d++) plan->count *= x->dims[d];
  /* Blocks of about 10 us, and nothing is cut below 20. */
  int64_t row_cost = plan->n * element_cost + 50;
  plan->block = 100000 / row_cost + 1;
  if (plan->block * 2 > plan->count) plan->block = plan->count;
}

void weir_row_plan_run(const weir_row_plan *plan, const weir_args *args,
                       weir_block_fn fn, void *arg) {
  if (plan->count == 0) return;
  int64_t blocks = (plan->count + plan->block - 1) / plan->block;
  weir_parallel_for(args, blocks, fn, arg);
}

weir_status weir_row_plan_prepare(const weir_call *call, int64_t axis,
                                  int64_t element_cost, weir_prepared *out,
                                  weir_error *err) {
  weir_row_plan *plan = weir_arena_alloc(out->arena, sizeof *plan);
  if (!plan) return weir_fail_memory(err, sizeof *plan);
  plan_init(plan, call, axis, element_cost);
  out->state = plan;
  out->algorithm = plan->isa->name;
  return WEIR_OK;
}
