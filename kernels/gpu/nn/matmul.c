/* SPDX-License-Identifier: Apache-2.0 */
/* matmul by the device's library of products (device/gemm.h). */
#include "kernels/cpu/gemm/matmul_shape.h"
#include "kernels/gpu/nn/strided.h"
#include "kernels/registry.h"

static bool accepts(const weir_call *call, weir_why *why) {
  weir_gemm_shape shape;
  weir_matmul_shape(call, &shape);
  return weir_gpu_strided_accepts(&shape, why);
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  weir_gemm_shape shape;
  weir_gpu_strided *p = weir_arena_alloc(out->arena, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  weir_matmul_shape(call, &shape);
  WEIR_TRY(weir_gpu_strided_plan(out, &shape, WEIR_GEMM_NONE, p, err));
  out->scratch_bytes = p->product.workspace_bytes;
  out->algorithm = WEIR_GPU_PRODUCT_WORDS(&p->product, "the device's library");
  out->state = p;
  return WEIR_OK;
}

static void release(void *state) {
  weir_gpu_strided_release(state);
}

static weir_status run(const weir_args *args) {
  const weir_gpu_matrices m = {args->io[0], args->io[1], args->io[2],
                               args->scratch};
  return weir_gpu_strided_run(args, args->state, &m);
}

const weir_kernel_def weir_kernel_gpu_matmul = {.op = "matmul",
                                                .name = "gpu.matmul",
                                                .device = WEIR_GPU,
                                                .types = WEIR_FLOATS,
                                                .accepts = accepts,
                                                .prepare = prepare,
                                                .release = release,
                                                .run = run};
