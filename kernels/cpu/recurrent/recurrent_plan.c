/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/recurrent/recurrent_plan.h"

#include <string.h>

#include "kernels/cpu/gemm/gemm_plan.h"
#include "kernels/cpu/isa/choose.h"
#include "kernels/cpu/recurrent/recurrent.h"
#include "runtime/base/size.h"

/* Plans of recurrent kernels: blocks, scratch, packed constants. The number of
 * rows in a block follows from the batch alone: with few sequences all of them
 * are in one block and r is read once a step. */

enum {
  DEPTH = 256, /* of a slice: its panel stays in the first cache */
  BLOCK_ROWS = 48
};
static const double kStepFlops = 5e5; /* at least, to be shared out */

static int64_t ceil_div(int64_t a, int64_t b) {
  return a / b + (a % b != 0);
}

static bool bytes_of(int64_t a, int64_t b, size_t *out) {
  size_t bytes;
  return weir_size_mul((size_t)a, (size_t)b, &bytes) &&
         weir_size_mul(bytes, sizeof(float), &bytes) &&
         weir_size_align(bytes, 64, out);
}

/* Elements of r's panels. */
static int64_t panel_columns(const weir_recurrent *p) {
  return p->panels * p->tiles->columns;
}

static void cut(weir_recurrent *p) {
  int64_t deep = p->back ? p->gates * p->units : p->units;
  double flops =
      2.0 * (double)(p->batch * p->gates) * (double)(p->units * p->units);
  p->panels = ceil_div(p->units, p->tiles->columns);
  p->depth = deep == 0 ? 1 : ceil_div(deep, ceil_div(deep, DEPTH));
  p->shared = flops >= kStepFlops;
  p->row_blocks = ceil_div(p->batch, BLOCK_ROWS);
  if (p->row_blocks < 1) p->row_blocks = 1;
  p->rows = ceil_div(p->batch, p->row_blocks);
  p->blocks = p->row_blocks * p->panels;
}

static void plan_projection(weir_recurrent *p, bool constant) {
  weir_gemm_shape shape = {.dtype = WEIR_F32,
                           .m = p->batch * p->steps,
                           .n = p->gates * p->units,
                           .k = p->inputs,
                           .a_row = p->inputs,
                           .a_k = 1,
                           .b_k = p->gates * p->units,
                           .b_column = 1,
                           .batches = 1};
  weir_gemm_plan(&shape, p->isa, constant, &p->project);
}

/* Scratch: r's panels, x w, then the projection's own. The projection is done
 * before the first step, so the workers' parts serve both. */
static bool place(weir_recurrent *p, bool keeps_sums, weir_prepared *out) {
  size_t panels = 0, sums = 0, total = 0;
  if (!p->packed_r && !bytes_of(panel_columns(p), p->gates * p->units, &panels))
    return false;
  if (keeps_sums && !bytes_of(p->batch * p->steps, p->gates * p->units, &sums))
    return false;
  p->sums_at = panels;
  if (!weir_size_add(panels, sums, &p->gemm_at)) return false;
  if (!weir_size_add(p->gemm_at, p->project.scratch_bytes, &total))
    return false;
  out->scratch_bytes = total;
  p->workers_at = weir_scratch_align(total);
  p->worker_bytes = (size_t)(p->rows * weir_recurrent_local(p)) * sizeof(float);
  if (p->worker_bytes < p->project.worker_bytes)
    p->worker_bytes = p->project.worker_bytes;
  p->worker_bytes = weir_scratch_align(p->worker_bytes);
  out->worker_scratch_bytes = p->worker_bytes;
  return true;
}

/* Where only sizes are wanted a few bytes stand for the panels. */
static weir_status keep(const weir_recurrent *p, size_t bytes, void **to,
                        weir_prepared *out, weir_error *err) {
  size_t taken = out->sizes_only ? 64 : bytes;
  *to = bytes == SIZE_MAX ? NULL : weir_alloc_aligned(p->alloc, taken, 64);
  if (*to == NULL) return weir_fail_memory(err, bytes);
  out->kept_bytes += bytes;
  return WEIR_OK;
}

static weir_status pack_constants(weir_recurrent *p, const void *w,
                                  const void *r, weir_prepared *out,
                                  weir_error *err) {
  size_t bytes = SIZE_MAX;
  void *panels = NULL;
  if (r) {
    if (!bytes_of(panel_columns(p), p->gates * p->units, &bytes))
      bytes = SIZE_MAX;
    WEIR_TRY(keep(p, bytes, &panels, out, err));
    p->packed_r = panels;
    for (int64_t i = 0; i < p->panels && !out->sizes_only; i++)
      weir_recurrent_pack(p, r, p->packed_r, i);
  }
  if (w && !p->back && p->project.copy_b == WEIR_GEMM_GIVEN) {
    WEIR_TRY(
        keep(p, weir_gemm_packed_bytes(&p->project), &p->packed_w, out, err));
    if (!out->sizes_only) weir_gemm_pack(&p->project, w, p->packed_w);
  }
  return WEIR_OK;
}

void weir_recurrent_release(void *state) {
  weir_recurrent *p = state;
  if (!p) return;
  weir_free(p->alloc, p->packed_r);
  weir_free(p->alloc, p->packed_w);
}

weir_status weir_recurrent_prepare(const weir_call *call, int64_t gates,
                                   bool back, bool keeps_sums,
                                   weir_prepared *out, weir_error *err) {
  const weir_operand *x = &call->in[back ? 1 : 0], *r = &call->in[back ? 0 : 2];
  weir_recurrent *p = weir_arena_alloc(out->arena, sizeof *p);
  if (!p) return weir_fail_memory(err, sizeof *p);
  *p = (weir_recurrent){.isa = weir_isa_of(call),
                        .batch = x->dims[0],
                        .steps = x->dims[1],
                        .inputs = x->dims[2],
                        .units = r->dims[0],
                        .gates = gates,
                        .in_count = call->in_count,
                        .reverse = weir_call_attr(call, "reverse")->b,
                        .back = back,
                        .alloc = out->alloc};
  p->tiles = p->isa->gemm_f32;
  cut(p);
  if (!back) plan_projection(p, call->in[1].value != NULL);
  weir_status s =
      pack_constants(p, back ? NULL : call->in[1].value, r->value, out, err);
  if (s == WEIR_OK && !place(p, keeps_sums, out))
    s = weir_fail_memory(err, SIZE_MAX);
  if (s != WEIR_OK) {
    weir_recurrent_release(p);
    return s;
  }
  out->state = p;
  out->algorithm = p->packed_r ? "steps of tiles, r packed once"
                               : "steps of tiles, r packed each run";
  return WEIR_OK;
}
