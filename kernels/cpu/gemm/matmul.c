/* SPDX-License-Identifier: Apache-2.0 */
/* matmul and einsum of floats, alone or (matmul) with element-wise followers.
 *
 * The shape is read once, in prepare; gemm plans and runs it. A constant b (a
 * frozen weight) is packed into panels there, once for all runs. Followers run
 * on each block of the product as soon as it is finished, while it is in the
 * cache of the thread that made it: bias and activation cost no pass over
 * memory of their own. */
#include "kernels/cpu/gemm/matmul.h"

#include <string.h>

#include "kernels/cpu/ew/ew_build.h"
#include "kernels/cpu/ew/ew_run.h"
#include "kernels/cpu/gemm/einsum_shape.h"
#include "kernels/cpu/gemm/gemm_plan.h"
#include "kernels/cpu/gemm/matmul_shape.h"
#include "kernels/cpu/isa/choose.h"
#include "kernels/registry.h"

static void epilogue(void *arg, int64_t r0, int64_t r1, int64_t c0, int64_t c1,
                     char *scratch) {
  const weir_args *args = arg;
  const weir_matmul *mm = args->state;
  weir_ew_region(mm->epilogue, args->io, r0, r1, c0, c1, scratch);
}

static weir_status run(const weir_args *args) {
  const weir_matmul *mm = args->state;
  weir_gemm_io io = {.a = args->io[mm->a_io],
                     .b = args->io[mm->b_io],
                     .c = args->io[mm->out_io],
                     .packed = mm->packed};
  if (mm->epilogue) {
    WEIR_TRY(weir_ew_check(mm->epilogue, args));
    io.done = epilogue;
    io.arg = (void *)(uintptr_t)args;
    io.done_bytes = mm->epilogue->scratch_bytes;
  }
  return weir_gemm_run(&mm->gemm, &io, args);
}

static void release(void *state) {
  weir_matmul *mm = state;
  if (mm) weir_free(mm->alloc, mm->packed);
}

static weir_status pack(weir_matmul *mm, const void *b, weir_prepared *out,
                        weir_error *err) {
  size_t bytes = weir_gemm_packed_bytes(&mm->gemm);
  if (bytes == SIZE_MAX) return weir_fail_memory(err, bytes);
  out->kept_bytes = bytes;
  if (out->sizes_only) return WEIR_OK;
  mm->packed = weir_alloc_aligned(mm->alloc, bytes, 64);
  if (!mm->packed) return weir_fail_memory(err, bytes);
  weir_gemm_pack(&mm->gemm, b, mm->packed);
  return WEIR_OK;
}

/* |io|: operands of the run for a, b and the product; |b|: a constant one's
 * data, else NULL. */
static weir_status prepare_shape(const weir_gemm_shape *shape,
                                 const weir_isa *isa, const void *b,
                                 const weir_ew *ew, const int32_t io[3],
                                 weir_prepared *out, weir_error *err) {
  weir_matmul *mm = weir_arena_alloc(out->arena, sizeof *mm);
  if (!mm) return weir_fail_memory(err, sizeof *mm);
  *mm = (weir_matmul){.alloc = out->alloc,
                      .epilogue = ew,
                      .a_io = io[0],
                      .b_io = io[1],
                      .out_io = io[2]};
  weir_gemm_plan(shape, isa, b != NULL, &mm->gemm);
  if (mm->gemm.copy_b == WEIR_GEMM_GIVEN) WEIR_TRY(pack(mm, b, out, err));
  out->state = mm;
  out->scratch_bytes = mm->gemm.scratch_bytes;
  out->worker_scratch_bytes =
      weir_scratch_align(mm->gemm.worker_bytes) + (ew ? ew->scratch_bytes : 0);
  out->algorithm = mm->gemm.text;
  return WEIR_OK;
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  const int32_t io[3] = {0, 1, 2};
  weir_gemm_shape shape;
  weir_matmul_shape(call, &shape);
  return prepare_shape(&shape, weir_isa_of(call), call->in[1].value, NULL, io,
                       out, err);
}

const weir_kernel_def weir_kernel_cpu_matmul = {.op = "matmul",
                                                .name = "cpu.matmul",
                                                .device = WEIR_CPU,
                                                .types = WEIR_FLOATS,
                                                .prepare = prepare,
                                                .release = release,
                                                .run = run};

/* ---- einsum */

static bool einsum_accepts(const weir_call *call, weir_why *why) {
  weir_gemm_shape shape;
  bool swapped;
  return weir_einsum_shape(call, &shape, &swapped, why);
}

static weir_status einsum_prepare(const weir_call *call, weir_prepared *out,
                                  weir_error *err) {
  weir_gemm_shape shape;
  bool swapped;
  if (!weir_einsum_shape(call, &shape, &swapped, NULL))
    return weir_fail(err, WEIR_W9001, NULL, "cpu.einsum: call not accepted");
  const int32_t io[3] = {swapped, !swapped, 2};
  return prepare_shape(&shape, weir_isa_of(call), call->in[!swapped].value,
                       NULL, io, out, err);
}

const weir_kernel_def weir_kernel_cpu_einsum = {.op = "einsum",
                                                .name = "cpu.einsum",
                                                .device = WEIR_CPU,
                                                .types = WEIR_FLOATS,
                                                .accepts = einsum_accepts,
                                                .prepare = einsum_prepare,
                                                .release = release,
                                                .run = run};

/* ---- With followers: bias, activation, residual ... */

static bool plan_group(const weir_group *group, weir_ew_room *room,
                       weir_why *why) {
  const weir_call *call = &group->calls[0];
  if (strcmp(call->op->name, "matmul") != 0)
    return weir_no(why, "does not start with matmul");
  if ((call->in[0].dtype & WEIR_FLOATS) == 0) return weir_no(why, "not floats");
  if (call->in[0].rank < 2 || call->in[1].rank < 2)
    return weir_no(why, "a vector operand");
  int32_t io = weir_anchor_io(group);
  if (io < 0) return weir_no(why, "no output to write the product to");
  return weir_ew_build(group, 1, io, true, room, why);
}

static bool group_accepts(const weir_group *group, weir_why *why) {
  weir_ew_room room;
  return plan_group(group, &room, why);
}

static weir_status group_prepare(const weir_group *group, weir_prepared *out,
                                 weir_error *err) {
  weir_ew_room room;
  if (!plan_group(group, &room, NULL))
    return weir_fail(err, WEIR_W9001, NULL, "cpu.matmul_fused: not accepted");
  const weir_ew *ew = weir_ew_keep(&room, out->arena);
  if (!ew) return weir_fail_memory(err, sizeof *ew);
  const weir_group_ref *refs = group->refs[0];
  const int32_t io[3] = {(int32_t)refs[0].index, (int32_t)refs[1].index,
                         weir_anchor_io(group)};
  const weir_call *call = &group->calls[0];
  weir_gemm_shape shape;
  weir_matmul_shape(call, &shape);
  return prepare_shape(&shape, weir_isa_of(call), call->in[1].value, ew, io,
                       out, err);
}

const weir_group_kernel_def weir_group_cpu_matmul = {.name = "cpu.matmul_fused",
                                                     .device = WEIR_CPU,
                                                     .accepts = group_accepts,
                                                     .prepare = group_prepare,
                                                     .release = release,
                                                     .run = run};
