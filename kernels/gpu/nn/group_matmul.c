/* SPDX-License-Identifier: Apache-2.0 */
/* Groups that begin with a matmul of f32. A bias of the columns, and a relu or
 * a gelu by tanh after it, are the library's epilogue; what is left is a tape
 * over the product, in its place (gpu/ew/tape_plan.h).
 *
 * A call goes into the epilogue if it alone reads the one before it. A group
 * is taken where that is fewer launches than one for each of its calls. */
#include <string.h>

#include "kernels/cpu/gemm/matmul_shape.h"
#include "kernels/gpu/ew/tape_plan.h"
#include "kernels/gpu/nn/strided.h"
#include "kernels/registry.h"

typedef struct state {
  weir_gpu_strided product;
  weir_gpu_tape tape;
  weir_gemm_epilogue epilogue;
  uint32_t a, b, d,
      bias; /* operands of the run; bias: if the epilogue has it */
  bool has_bias, has_tape;
} state;

/* The one call that reads the result of call |of|, once, or 0. */
static uint32_t only_reader(const weir_group *g, uint32_t of) {
  uint32_t reader = 0, reads = 0;
  for (uint32_t c = 1; c < g->call_count; c++)
    for (uint32_t i = 0; i < g->calls[c].in_count; i++)
      if (g->refs[c][i].member && g->refs[c][i].index == of) {
        reader = c;
        reads++;
      }
  return reads == 1 ? reader : 0;
}

/* Whether |x| has one value for each column of |y|. */
static bool is_row(const weir_operand *x, const weir_operand *y) {
  return x->dtype == WEIR_F32 && x->rank > 0 && x->rank <= y->rank &&
         x->dims[x->rank - 1] == y->dims[y->rank - 1] &&
         x->elements == y->dims[y->rank - 1];
}

/* Takes call |c|, which reads call |of|, for the bias. */
static bool take_bias(const weir_group *g, uint32_t c, uint32_t of, state *s) {
  const weir_call *call = &g->calls[c];
  if (strcmp(call->op->name, "add") != 0) return false;
  uint32_t other = g->refs[c][0].member && g->refs[c][0].index == of ? 1 : 0;
  if (g->refs[c][other].member || !is_row(&call->in[other], &call->out[0]))
    return false;
  s->bias = g->refs[c][other].index;
  s->has_bias = true;
  s->epilogue = WEIR_GEMM_BIAS;
  return true;
}

static bool take_function(const weir_call *call, state *s) {
  const weir_attr *form = weir_call_attr(call, "approximate");
  if (strcmp(call->op->name, "relu") == 0)
    s->epilogue = s->has_bias ? WEIR_GEMM_RELU_BIAS : WEIR_GEMM_RELU;
  else if (strcmp(call->op->name, "gelu") == 0 && form != NULL &&
           weir_sv_is(form->s, "tanh"))
    s->epilogue = s->has_bias ? WEIR_GEMM_GELU_TANH_BIAS : WEIR_GEMM_GELU_TANH;
  else
    return false;
  return true;
}

/* The calls that the product does. */
static weir_gpu_tape_part fill_epilogue(const weir_group *g, state *s) {
  weir_gpu_tape_part part = {.done = 1, .done_io = (int32_t)s->d};
  uint32_t next = only_reader(g, 0);
  if (next != 0 && take_bias(g, next, 0, s)) {
    part.done |= (uint64_t)1 << next;
    part.done_by = next;
    next = only_reader(g, next);
  }
  if (next != 0 && take_function(&g->calls[next], s)) {
    part.done |= (uint64_t)1 << next;
    part.done_by = next;
  }
  return part;
}

static bool build(const weir_group *g, state *s, weir_why *why) {
  const weir_call *call = &g->calls[0];
  *s = (state){.epilogue = WEIR_GEMM_NONE, .d = g->in_count};
  if (strcmp(call->op->name, "matmul") != 0)
    return weir_no(why, "does not start with matmul");
  if (call->out[0].dtype != WEIR_F32) return weir_no(why, "not f32");
  if (g->call_count > WEIR_TAPE_STEPS)
    return weir_no(why, "more than %d calls", WEIR_TAPE_STEPS);
  if (g->out_count != 1 || g->out_calls[0] != g->call_count - 1)
    return weir_no(why, "another output than the last call's");
  weir_gemm_shape shape;
  weir_matmul_shape(call, &shape);
  if (shape.k == 0) return weir_no(why, "no terms");
  if (!weir_gpu_strided_accepts(&shape, why)) return false;
  s->a = g->refs[0][0].index;
  s->b = g->refs[0][1].index;
  weir_gpu_tape_part part = fill_epilogue(g, s);
  uint32_t left = 0;
  for (uint32_t c = 0; c < g->call_count; c++)
    left += (part.done >> c & 1) == 0;
  s->has_tape = left > 0;
  if (g->call_count <= (s->has_tape ? 2u : 1u))
    return weir_no(why, "saves no launch");
  return !s->has_tape || weir_gpu_tape_build(g, &part, &s->tape, why);
}

static bool accepts(const weir_group *group, weir_why *why) {
  state s;
  return build(group, &s, why);
}

static weir_status prepare(const weir_group *group, weir_prepared *out,
                           weir_error *err) {
  state *s = weir_arena_alloc(out->arena, sizeof *s);
  if (s == NULL) return weir_fail_memory(err, sizeof *s);
  if (!build(group, s, NULL))
    return weir_fail(err, WEIR_W9001, NULL, "gpu.matmul_fused: not accepted");
  weir_gemm_shape shape;
  weir_matmul_shape(&group->calls[0], &shape);
  WEIR_TRY(weir_gpu_strided_plan(out, &shape, s->epilogue, &s->product, err));
  out->scratch_bytes = s->product.product.workspace_bytes;
  out->algorithm =
      WEIR_GPU_PRODUCT_WORDS(&s->product.product, "the device's library");
  out->state = s;
  return WEIR_OK;
}

static weir_status run(const weir_args *args) {
  const state *s = args->state;
  const weir_gpu_matrices m = {.a = args->io[s->a],
                               .b = args->io[s->b],
                               .d = args->io[s->d],
                               .workspace = args->scratch,
                               .bias = s->has_bias ? args->io[s->bias] : NULL};
  WEIR_TRY(weir_gpu_strided_run(args, &s->product, &m));
  return s->has_tape ? weir_gpu_tape_run(&s->tape, args) : WEIR_OK;
}

static void release(void *of) {
  state *s = of;
  weir_gpu_strided_release(&s->product);
}

const weir_group_kernel_def weir_group_gpu_matmul = {.name = "gpu.matmul_fused",
                                                     .device = WEIR_GPU,
                                                     .accepts = accepts,
                                                     .prepare = prepare,
                                                     .release = release,
                                                     .run = run};
