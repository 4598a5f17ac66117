/* SPDX-License-Identifier: Apache-2.0 */
/* resize and its gradient, a thread an element of the result. */
#include "kernels/cuda/resize.h"

#include "kernels/gpu/gpu.h"
#include "kernels/gpu/move/walk.h"

typedef struct resized {
  weir_resize_args args; /* but for the operands */
  weir_dtype dtype;
} resized;

/* |x| is the smaller or larger image as resize has it, |y| its result. */
static weir_status prepare(const weir_call *call, const weir_operand *x,
                           const weir_operand *y, weir_prepared *out,
                           weir_error *err) {
  const weir_operand *made = &call->out[0];
  const int64_t dims[] = {made->dims[0] * made->dims[1], made->dims[2],
                          made->dims[3]};
  weir_sv mode = weir_call_attr(call, "mode")->s;
  resized *r = weir_arena_alloc(out->arena, sizeof *r);
  if (r == NULL) return weir_fail_memory(err, sizeof *r);
  weir_resize_args *a = &r->args;
  r->dtype = made->dtype;
  *a = (weir_resize_args){.n = made->elements,
                          .from = {x->dims[2], x->dims[3]},
                          .to = {y->dims[2], y->dims[3]},
                          .nearest = weir_sv_is(mode, "nearest")};
  for (int k = 0; k < 2; k++) a->inverse[k] = 0.5 / (double)a->to[k];
  if (a->n > 0) weir_gpu_walk(3, dims, &a->walk);
  out->state = r;
  return WEIR_OK;
}

static weir_status prepare_resize(const weir_call *call, weir_prepared *out,
                                  weir_error *err) {
  return prepare(call, &call->in[0], &call->out[0], out, err);
}

static weir_status prepare_grad(const weir_call *call, weir_prepared *out,
                                weir_error *err) {
  return prepare(call, &call->out[0], &call->in[0], out, err);
}

static weir_status launch(const weir_args *args, weir_gpu_body body) {
  const resized *r = args->state;
  weir_resize_args a = r->args;
  a.x = args->io[0];
  a.y = args->io[1];
  return weir_gpu_launch(args, weir_gpu_typed(body, r->dtype),
                         weir_gpu_blocks(a.n), &a, sizeof a);
}

static weir_status run_resize(const weir_args *args) {
  return launch(args, WEIR_GPU_resize_f32);
}

static weir_status run_grad(const weir_args *args) {
  return launch(args, WEIR_GPU_resize_grad_f32);
}

const weir_kernel_def weir_kernel_gpu_resize = {.op = "resize",
                                                .name = "gpu.resize",
                                                .device = WEIR_GPU,
                                                .types = WEIR_FLOATS,
                                                .prepare = prepare_resize,
                                                .run = run_resize};

const weir_kernel_def weir_kernel_gpu_resize_grad = {.op = "resize_grad",
                                                     .name = "gpu.resize_grad",
                                                     .device = WEIR_GPU,
                                                     .types = WEIR_FLOATS,
                                                     .prepare = prepare_grad,
                                                     .run = run_grad};
