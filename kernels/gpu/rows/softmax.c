/* SPDX-License-Identifier: Apache-2.0 */
/* softmax and its logarithm over any axis. Over the last one, a row's threads
 * keep it in registers: as few threads as a row of at most 128 elements needs,
 * a warp up to 1024, a block up to 16384. Longer rows are read twice. Over
 * another axis, neighbours are columns, and a row of f64 is one column. All of
 * it follows from the shape. */
#include "kernels/gpu/rows/softmax.h"

#include <string.h>

#include "kernels/gpu/space.h"
#include "kernels/registry.h"

enum {
  kWarp = 32,
  kBlock = WEIR_BODY_THREADS,
  kWarpMost = 4 * kWarp * WEIR_SOFTMAX_SOME /* elements of a warp's row */
};

static int64_t parts_of(int64_t n, int64_t part) {
  return n / part + (n % part != 0);
}

static void plan_columns(weir_gpu_softmax *p, weir_dtype dtype) {
  weir_softmax_args *a = &p->args;
  a->lanes = 1;
  while (a->lanes < kWarp && a->lanes < a->inner) a->lanes *= 2;
  p->body = weir_gpu_typed(WEIR_GPU_softmax_columns_f32, dtype);
  p->blocks = weir_gpu_blocks(a->rows * parts_of(a->inner, a->lanes) * kBlock);
}

static void plan_rows(weir_gpu_softmax *p) {
  weir_softmax_args *a = &p->args;
  a->wide = a->cols % 4 == 0;
  a->lanes = a->cols > kWarpMost ? kBlock : 4;
  while (a->lanes < kWarp && 4 * a->lanes < a->cols) a->lanes *= 2;
  int64_t fours = parts_of(a->cols, 4 * a->lanes);
  p->body = fours <= WEIR_SOFTMAX_FEW    ? WEIR_GPU_softmax_kept_2
            : fours <= WEIR_SOFTMAX_SOME ? WEIR_GPU_softmax_kept_8
            : fours <= WEIR_SOFTMAX_MANY ? WEIR_GPU_softmax_kept_16
                                         : WEIR_GPU_softmax_long;
  p->blocks = weir_gpu_blocks(parts_of(a->rows, kBlock / a->lanes) * kBlock);
}

void weir_gpu_softmax_plan(const weir_gpu_lanes *lanes, weir_dtype dtype,
                           bool log, weir_gpu_softmax *out) {
  *out = (weir_gpu_softmax){.args = {.rows = lanes->outer,
                                     .cols = lanes->n,
                                     .inner = lanes->inner,
                                     .log = log}};
  if (lanes->inner > 1 || dtype != WEIR_F32)
    plan_columns(out, dtype);
  else
    plan_rows(out);
  if (lanes->outer * lanes->n * lanes->inner == 0) out->blocks = 0;
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  weir_gpu_softmax *p = weir_arena_alloc(out->arena, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  weir_gpu_lanes lanes =
      weir_gpu_lanes_of(&call->in[0], weir_call_attr(call, "axis")->i);
  weir_gpu_softmax_plan(&lanes, call->in[0].dtype,
                        strcmp(call->op->name, "log_softmax") == 0, p);
  out->state = p;
  return WEIR_OK;
}

static weir_status run(const weir_args *args) {
  const weir_gpu_softmax *p = args->state;
  weir_softmax_args a = p->args;
  a.x = args->io[0];
  a.y = args->io[1];
  a.wide = a.wide && weir_gpu_four_aligned(a.x, sizeof(float)) &&
           weir_gpu_four_aligned(a.y, sizeof *a.y);
  return weir_gpu_launch(args, p->body, p->blocks, &a, sizeof a);
}

#define SOFTMAX(op_name)                                                      \
  const weir_kernel_def weir_kernel_gpu_##op_name = {.op = #op_name,          \
                                                     .name = "gpu." #op_name, \
                                                     .device = WEIR_GPU,      \
                                                     .types = WEIR_FLOATS,    \
                                                     .in_place = true,        \
                                                     .prepare = prepare,      \
                                                     .run = run}

SOFTMAX(softmax);
SOFTMAX(log_softmax);
