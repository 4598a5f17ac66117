/* SPDX-License-Identifier: Apache-2.0 */
/* pad and its gradient. The gradient of a constant's pad is a slice. That of an
 * edge or a reflection is done dimension by dimension, padded ones alone, the
 * last one first: each pass sums what the pad of its dimension took from an
 * element, in a fixed order. Passes but the last write to scratch, which has
 * two halves in turn; the first pass makes the largest result. */
#include "kernels/gpu/move/move.h"
#include "kernels/registry.h"

static weir_pad_mode mode_of(const weir_call *call) {
  weir_sv name = weir_call_attr(call, "mode")->s;
  return weir_sv_is(name, "edge")      ? WEIR_PAD_EDGE
         : weir_sv_is(name, "reflect") ? WEIR_PAD_REFLECT
                                       : WEIR_PAD_CONSTANT;
}

/* Dimensions of x and y, neighbours joined that are not padded. */
typedef struct joined {
  int32_t rank;
  int64_t x[WEIR_BODY_RANK], y[WEIR_BODY_RANK], before[WEIR_BODY_RANK];
} joined;

static void join_dims(const weir_call *call, const weir_operand *x,
                      const weir_operand *y, joined *out) {
  const weir_attr *pads = weir_call_attr(call, "pads");
  bool open = false; /* the last one is not padded */
  *out = (joined){0};
  for (int32_t d = 0; d < x->rank; d++) {
    bool same = x->dims[d] == y->dims[d];
    if (same && open) {
      out->x[out->rank - 1] *= x->dims[d];
      out->y[out->rank - 1] *= y->dims[d];
      continue;
    }
    out->x[out->rank] = x->dims[d];
    out->y[out->rank] = y->dims[d];
    out->before[out->rank++] = pads->dims[d].value;
    open = same;
  }
}

typedef struct pad_plan {
  weir_gpu_body body;
  weir_pad_args args;
} pad_plan;

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  const weir_operand *x = &call->in[0], *y = &call->out[0];
  pad_plan *p = weir_arena_alloc(out->arena, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  weir_pad_args *a = &p->args;
  *p = (pad_plan){weir_gpu_sized(WEIR_GPU_pad_1, weir_dtype_size(x->dtype)),
                  {.n = y->elements, .mode = (int32_t)mode_of(call)}};
  out->state = p;
  if (a->n == 0) return WEIR_OK;
  joined j;
  join_dims(call, x, y, &j);
  weir_gpu_walk(j.rank, j.y, &a->walk);
  a->dims[0] = 1; /* of rank 0 */
  int64_t stride = 1;
  for (int32_t d = j.rank - 1; d >= 0; d--) {
    a->dims[d] = j.x[d];
    a->before[d] = j.before[d];
    a->strides[d] = stride;
    stride *= j.x[d];
  }
  weir_put_attr(x->dtype, &a->value, 0, weir_call_attr(call, "value"));
  return WEIR_OK;
}

static weir_status run(const weir_args *args) {
  const pad_plan *p = args->state;
  weir_pad_args a = p->args;
  a.x = args->io[0];
  a.y = args->io[1];
  return weir_gpu_launch(args, p->body, weir_gpu_blocks(a.n), &a, sizeof a);
}

const weir_kernel_def weir_kernel_gpu_pad = {.op = "pad",
                                             .name = "gpu.pad",
                                             .device = WEIR_GPU,
                                             .types = WEIR_ALL_TYPES,
                                             .prepare = prepare,
                                             .run = run};

/* ---- pad_grad: dy -> dx */

typedef struct grad_plan {
  weir_gpu_move move; /* with no passes: of a constant, or nothing is padded */
  int32_t passes;
  size_t half; /* bytes of scratch until its second half */
  weir_unpad_args args[WEIR_BODY_RANK];
} grad_plan;

/* The elements of dy that are not of the pad. */
static void plan_slice(const joined *j, size_t size, weir_gpu_move *out) {
  weir_gpu_view v = {.size = size};
  int64_t src[WEIR_BODY_RANK], dst[WEIR_BODY_RANK], dx = 1, dy = 1;
  for (int32_t d = j->rank - 1; d >= 0; d--) {
    src[d] = dy;
    dst[d] = dx;
    dy *= j->y[d];
    dx *= j->x[d];
  }
  for (int32_t d = 0; d < j->rank; d++) {
    v.src_at += j->before[d] * src[d];
    weir_gpu_view_add(&v, j->x[d], src[d], dst[d]);
  }
  weir_gpu_move_plan(&v, out);
}

static void plan_passes(joined *j, weir_pad_mode mode, grad_plan *p) {
  int64_t inner = 1;
  for (int32_t d = j->rank - 1; d >= 0; inner *= j->x[d--]) {
    if (j->x[d] == j->y[d]) continue;
    int64_t dims[3] = {1, j->x[d], inner};
    for (int32_t o = 0; o < d; o++) dims[0] *= j->y[o];
    weir_unpad_args *a = &p->args[p->passes++];
    *a = (weir_unpad_args){.n = dims[0] * dims[1] * dims[2],
                           .from = j->y[d],
                           .before = j->before[d],
                           .mode = (int32_t)mode};
    weir_gpu_walk(3, dims, &a->walk);
  }
}

static bool accepts_grad(const weir_call *call, weir_why *why) {
  return mode_of(call) == WEIR_PAD_CONSTANT || call->in[0].dtype == WEIR_F32 ||
         weir_no(why, "sums of f64");
}

static weir_status prepare_grad(const weir_call *call, weir_prepared *out,
                                weir_error *err) {
  const weir_operand *dy = &call->in[0], *dx = &call->out[0];
  weir_pad_mode mode = mode_of(call);
  grad_plan *p = weir_arena_alloc(out->arena, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  *p = (grad_plan){0};
  joined j;
  join_dims(call, dx, dy, &j);
  if (mode != WEIR_PAD_CONSTANT && dx->elements > 0) plan_passes(&j, mode, p);
  if (p->passes == 0) plan_slice(&j, weir_dtype_size(dx->dtype), &p->move);
  if (p->passes > 1) {
    p->half = weir_scratch_align((size_t)p->args[0].n * sizeof(float));
    out->scratch_bytes = 2 * p->half;
  }
  out->state = p;
  return WEIR_OK;
}

static weir_status run_grad(const weir_args *args) {
  const grad_plan *p = args->state;
  const void *from = args->io[0];
  if (p->passes == 0)
    return weir_gpu_move_run(args, &p->move, args->io[1], from);
  for (int32_t k = 0; k < p->passes; k++) {
    weir_unpad_args a = p->args[k];
    a.x = from;
    a.y = k == p->passes - 1
              ? args->io[1]
              : (void *)((char *)args->scratch + (k % 2 ? p->half : 0));
    from = a.y;
    WEIR_TRY(weir_gpu_launch(args, WEIR_GPU_unpad_f32, weir_gpu_blocks(a.n), &a,
                             sizeof a));
  }
  return WEIR_OK;
}

const weir_kernel_def weir_kernel_gpu_pad_grad = {.op = "pad_grad",
                                                  .name = "gpu.pad_grad",
                                                  .device = WEIR_GPU,
                                                  .types = WEIR_FLOATS,
                                                  .accepts = accepts_grad,
                                                  .prepare = prepare_grad,
                                                  .run = run_grad};
