/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic and comparisons of two operands, with broadcasting. Division and
 * powers of integers may be refused: a body finds the first such element and
 * another makes it the run's fault. */
#include <inttypes.h>
#include <string.h>

#include "kernels/cuda/ew.h"
#include "kernels/gpu/ew/ops.h"
#include "kernels/gpu/space.h"
#include "kernels/registry.h"

typedef struct plan {
  const weir_call *call;
  weir_binary_args one, four; /* but for the operands; four: if |fours| */
  weir_gpu_body body;
  uint32_t second; /* input that is the second operand */
  bool fours, refuses;
} plan;

static weir_gpu_body arithmetic_body(weir_dtype dtype) {
  return dtype == WEIR_F32   ? WEIR_GPU_binary_f32
         : dtype == WEIR_F64 ? WEIR_GPU_binary_f64
         : dtype == WEIR_I32 ? WEIR_GPU_binary_i32
         : dtype == WEIR_I64 ? WEIR_GPU_binary_i64
                             : WEIR_GPU_binary_u8;
}

static weir_gpu_body compare_body(weir_dtype dtype) {
  return dtype == WEIR_F32   ? WEIR_GPU_compare_f32
         : dtype == WEIR_F64 ? WEIR_GPU_compare_f64
         : dtype == WEIR_I32 ? WEIR_GPU_compare_i32
         : dtype == WEIR_I64 ? WEIR_GPU_compare_i64
                             : WEIR_GPU_compare_u8;
}

static weir_binary_args args_of(const weir_gpu_space *s, int32_t op,
                                bool fours) {
  weir_binary_args a = {.n = s->n,
                        .rank = s->rank,
                        .op = op,
                        .fours = fours,
                        .repeated = s->repeated};
  memcpy(a.dims, s->dims, sizeof a.dims);
  memcpy(a.strides, s->strides, sizeof a.strides);
  return a;
}

static weir_status prepare(const weir_call *call, weir_gpu_body body,
                           int32_t op, weir_prepared *out, plan **out_plan,
                           weir_error *err) {
  plan *p = weir_arena_alloc(out->arena, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  uint32_t count = call->in_count < 2 ? call->in_count : 2;
  weir_gpu_space space;
  weir_gpu_space_make(call, count, &space);
  *p = (plan){.call = call, .body = body, .second = count - 1};
  p->one = args_of(&space, op, false);
  p->fours = space.fours;
  if (space.fours) weir_gpu_space_by_fours(&space);
  p->four = args_of(&space, op, true);
  out->state = p;
  *out_plan = p;
  return WEIR_OK;
}

static weir_status prepare_arithmetic(const weir_call *call, weir_prepared *out,
                                      weir_error *err) {
  weir_dtype dtype = call->in[0].dtype;
  plan *p = NULL;
  int32_t op = weir_gpu_binary_op(call);
  WEIR_TRY(prepare(call, arithmetic_body(dtype), op, out, &p, err));
  if (op == WEIR_BINARY_POW) p->fours = false;
  p->refuses = !weir_dtype_is_float(dtype) &&
               (op == WEIR_BINARY_DIV || op == WEIR_BINARY_POW);
  if (p->refuses) out->scratch_bytes = sizeof(unsigned long long);
  out->unchecked = !p->refuses;
  return WEIR_OK;
}

static weir_status prepare_compare(const weir_call *call, weir_prepared *out,
                                   weir_error *err) {
  plan *p = NULL;
  out->unchecked = true;
  return prepare(call, compare_body(call->in[0].dtype),
                 weir_gpu_compare_op(call), out, &p, err);
}

/* No element is refused yet. */
static weir_status clear_refused(const weir_args *args) {
  const weir_fill_args a = {
      .y = args->scratch, .n = 1, .value = UINT64_MAX, .size = 8};
  return weir_gpu_launch(args, WEIR_GPU_fill, 1, &a, sizeof a);
}

static weir_status tell_refused(const weir_args *args, int64_t n) {
  const weir_tell_args a = {.block = args->ctx->gpu->block,
                            .refused = args->scratch,
                            .instr = (uint64_t)args->ctx->gpu->instr + 1,
                            .most = n};
  return weir_gpu_launch(args, WEIR_GPU_tell, 1, &a, sizeof a);
}

static weir_status run(const weir_args *args) {
  const plan *p = args->state;
  const weir_call *call = p->call;
  const void *in[] = {args->io[0], args->io[p->second]};
  void *y = args->io[call->in_count];
  size_t size = weir_dtype_size(call->in[0].dtype);
  bool fours = p->fours && weir_gpu_four_aligned(in[0], size) &&
               weir_gpu_four_aligned(in[1], size) &&
               weir_gpu_four_aligned(y, weir_dtype_size(call->out[0].dtype));
  weir_binary_args a = fours ? p->four : p->one;
  a.in[0] = in[0];
  a.in[1] = in[1];
  a.y = y;
  a.refused = p->refuses ? args->scratch : NULL;
  if (a.n == 0) return WEIR_OK;
  if (p->refuses) WEIR_TRY(clear_refused(args));
  WEIR_TRY(weir_gpu_launch(args, p->body,
                           weir_gpu_blocks(fours ? (a.n + 3) / 4 : a.n), &a,
                           sizeof a));
  return p->refuses ? tell_refused(args, a.n) : WEIR_OK;
}

static weir_status fault(const void *state, const weir_body_fault *fault,
                         weir_error *err) {
  const plan *p = state;
  bool is_div = p->one.op == WEIR_BINARY_DIV;
  return weir_fail(err, is_div ? WEIR_W5003 : WEIR_W5008, NULL,
                   "%s: %s, at element %" PRId64, p->call->op->name,
                   is_div ? "division of an integer by zero"
                          : "an integer to a negative power",
                   fault->element);
}

#define KERNEL(op_name, dtypes, in_place_too, prepares) \
  const weir_kernel_def weir_kernel_gpu_##op_name = {   \
      .op = #op_name,                                   \
      .name = "gpu." #op_name,                          \
      .device = WEIR_GPU,                               \
      .types = dtypes,                                  \
      .in_place = in_place_too,                         \
      .over_inputs = in_place_too,                      \
      .prepare = prepares,                              \
      .run = run,                                       \
      .fault = fault}
#define ARITHMETIC(op_name, dtypes) \
  KERNEL(op_name, dtypes, true, prepare_arithmetic)
#define COMPARE(op_name, dtypes) KERNEL(op_name, dtypes, false, prepare_compare)

ARITHMETIC(add, WEIR_NUMBERS);
ARITHMETIC(sub, WEIR_NUMBERS);
ARITHMETIC(mul, WEIR_NUMBERS);
ARITHMETIC(div, WEIR_NUMBERS);
ARITHMETIC(min, WEIR_NUMBERS);
ARITHMETIC(max, WEIR_NUMBERS);
ARITHMETIC(pow, WEIR_NUMBERS);
ARITHMETIC(sigmoid_grad, WEIR_FLOATS);
ARITHMETIC(tanh_grad, WEIR_FLOATS);
ARITHMETIC(relu_grad, WEIR_FLOATS);
COMPARE(equal, WEIR_ALL_TYPES);
COMPARE(not_equal, WEIR_ALL_TYPES);
COMPARE(less, WEIR_ALL_TYPES);
COMPARE(less_equal, WEIR_ALL_TYPES);
COMPARE(greater, WEIR_ALL_TYPES);
COMPARE(greater_equal, WEIR_ALL_TYPES);
COMPARE(logical_and, WEIR_BOOL);
COMPARE(logical_or, WEIR_BOOL);
COMPARE(logical_xor, WEIR_BOOL);
COMPARE(logical_not, WEIR_BOOL);
