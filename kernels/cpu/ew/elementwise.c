/* SPDX-License-Identifier: Apache-2.0 */
/* Single element-wise calls: element-wise programs of one step. The tile
 * functions of kernels/cpu/isa decide which dtypes an op has; others are left
 * to ref.
 *
 * in_place is set where y has the dtype of input 0: a tile function reads a
 * vector before it writes that place, so y may be an operand. Comparisons and
 * casts write elements of another width and may not. */
#include "kernels/cpu/ew/ew.h"
#include "kernels/cpu/ew/ew_build.h"
#include "kernels/cpu/ew/ew_run.h"
#include "kernels/cpu/isa/choose.h"
#include "kernels/registry.h"

/* A call seen as a group of one. */
static bool build(const weir_call *call, weir_ew_room *room, weir_why *why) {
  weir_group_ref refs[3] = {{false, 0}, {false, 1}, {false, 2}};
  const weir_group_ref *const rows[1] = {refs};
  uint32_t out_call = 0;
  weir_group group = {.call_count = 1,
                      .in_count = call->in_count,
                      .out_count = 1,
                      .calls = call,
                      .refs = rows,
                      .in = call->in,
                      .out = call->out,
                      .out_calls = &out_call};
  if (call->in_count > 3) return weir_no(why, "more than 3 inputs");
  return weir_ew_build(&group, 0, -1, false, room, why);
}

static bool accepts(const weir_call *call, weir_why *why) {
  weir_ew_room room;
  return build(call, &room, why);
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  weir_ew_room room;
  if (!build(call, &room, NULL))
    return weir_fail(err, WEIR_W9001, NULL, "cpu.%s: call not accepted",
                     call->op->name);
  const weir_ew *ew = weir_ew_keep(&room, out->arena);
  if (!ew) return weir_fail_memory(err, sizeof *ew);
  out->state = (void *)(uintptr_t)ew;
  out->worker_scratch_bytes = ew->scratch_bytes;
  out->algorithm = weir_isa_of(call)->name;
  return WEIR_OK;
}

static weir_status run(const weir_args *args) {
  weir_ew_run(args->state, args);
  return WEIR_OK;
}

static void slice(const void *state, void *const *io, int64_t first,
                  int64_t count) {
  weir_ew_range(state, io, first, first + count, NULL);
}

/* One long row, which nothing has to be spread for, and no rate that a run has
 * to look at first. */
static weir_slice_fn slices(const void *state, uint32_t in) {
  const weir_ew *ew = state;
  bool whole = ew->rows == 1 && ew->rate_count == 0 && ew->step_count == 1;
  for (int32_t i = 0; whole && i < ew->in_count; i++)
    if (ew->in[i].io == (int32_t)in)
      whole = ew->in[i].strides[ew->rank - 1] == 1;
  return whole ? slice : NULL;
}

#define KERNEL_OF(op_name, dtypes, is_in_place)       \
  const weir_kernel_def weir_kernel_cpu_##op_name = { \
      .op = #op_name,                                 \
      .name = "cpu." #op_name,                        \
      .device = WEIR_CPU,                             \
      .types = (dtypes),                              \
      .accepts = accepts,                             \
      .layouts = true,                                \
      .prepare = prepare,                             \
      .run = run,                                     \
      .slices = slices,                               \
      .in_place = is_in_place,                        \
      .over_inputs = is_in_place};
#define KERNEL(op_name, dtypes) KERNEL_OF(op_name, dtypes, false)
#define KERNEL_IN_PLACE(op_name, dtypes) KERNEL_OF(op_name, dtypes, true)

KERNEL_IN_PLACE(neg, WEIR_NUMBERS)
KERNEL_IN_PLACE(abs, WEIR_NUMBERS)
KERNEL_IN_PLACE(sign, WEIR_NUMBERS)
KERNEL_IN_PLACE(square, WEIR_NUMBERS)
KERNEL_IN_PLACE(relu, WEIR_NUMBERS)
KERNEL_IN_PLACE(exp, WEIR_FLOATS)
KERNEL_IN_PLACE(log, WEIR_FLOATS)
KERNEL_IN_PLACE(sqrt, WEIR_FLOATS)
KERNEL_IN_PLACE(rsqrt, WEIR_FLOATS)
KERNEL_IN_PLACE(reciprocal, WEIR_FLOATS)
KERNEL_IN_PLACE(tanh, WEIR_FLOATS)
KERNEL_IN_PLACE(sigmoid, WEIR_F32)
KERNEL_IN_PLACE(softplus, WEIR_F32)
KERNEL_IN_PLACE(erf, WEIR_FLOATS)
KERNEL_IN_PLACE(sin, WEIR_FLOATS)
KERNEL_IN_PLACE(cos, WEIR_FLOATS)
KERNEL_IN_PLACE(floor, WEIR_FLOATS)
KERNEL_IN_PLACE(ceil, WEIR_FLOATS)
KERNEL_IN_PLACE(round, WEIR_FLOATS)
KERNEL_IN_PLACE(leaky_relu, WEIR_F32)
KERNEL_IN_PLACE(elu, WEIR_F32)
KERNEL_IN_PLACE(gelu, WEIR_F32)
KERNEL_IN_PLACE(clip, WEIR_F32 | WEIR_INTS)
KERNEL_IN_PLACE(logical_not, WEIR_BOOL)
KERNEL(cast, WEIR_ALL_TYPES)
KERNEL_IN_PLACE(add, WEIR_NUMBERS)
KERNEL_IN_PLACE(sub, WEIR_NUMBERS)
KERNEL_IN_PLACE(mul, WEIR_NUMBERS)
KERNEL_IN_PLACE(div, WEIR_FLOATS)
KERNEL_IN_PLACE(pow, WEIR_FLOATS)
KERNEL_IN_PLACE(min, WEIR_NUMBERS)
KERNEL_IN_PLACE(max, WEIR_NUMBERS)
KERNEL_IN_PLACE(sigmoid_grad, WEIR_FLOATS)
KERNEL_IN_PLACE(tanh_grad, WEIR_FLOATS)
KERNEL_IN_PLACE(relu_grad, WEIR_FLOATS)
KERNEL(equal, WEIR_ALL_TYPES)
KERNEL(not_equal, WEIR_ALL_TYPES)
KERNEL(less, WEIR_NUMBERS)
KERNEL(less_equal, WEIR_NUMBERS)
KERNEL(greater, WEIR_NUMBERS)
KERNEL(greater_equal, WEIR_NUMBERS)
KERNEL(logical_and, WEIR_BOOL)
KERNEL(logical_or, WEIR_BOOL)
KERNEL(logical_xor, WEIR_BOOL)
KERNEL(where, WEIR_BOOL)
KERNEL_IN_PLACE(sigmoid_xent, WEIR_F32)
KERNEL_IN_PLACE(hard_sigmoid, WEIR_FLOATS)
KERNEL_IN_PLACE(hard_swish, WEIR_FLOATS)
