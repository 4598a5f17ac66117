/* SPDX-License-Identifier: Apache-2.0 */
/* matmul of integers, by a body: the library of products has none. */
#include "kernels/cpu/gemm/matmul_shape.h"
#include "kernels/cuda/product.h"
#include "kernels/gpu/gpu.h"

typedef struct plan {
  weir_product_args args; /* but for the operands */
  weir_gpu_body body;
} plan;

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  weir_gemm_shape s;
  plan *p = weir_arena_alloc(out->arena, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  weir_product_args *a = &p->args;
  weir_matmul_shape(call, &s);
  p->body = s.dtype == WEIR_I32 ? WEIR_GPU_product_i32 : WEIR_GPU_product_i64;
  *a = (weir_product_args){.m = s.m,
                           .n = s.n,
                           .k = s.k,
                           .batches = s.batches,
                           .a_row = s.a_row,
                           .a_k = s.a_k,
                           .b_k = s.b_k,
                           .b_column = s.b_column,
                           .batch_rank = s.batch_rank};
  for (int32_t d = 0; d < s.batch_rank; d++) {
    a->batch_dims[d] = s.batch_dims[d];
    a->batch_strides[0][d] = s.a_batch[d];
    a->batch_strides[1][d] = s.b_batch[d];
  }
  out->algorithm = "tiles of 16 x 16";
  out->state = p;
  return WEIR_OK;
}

static int64_t tiles_of(int64_t n) {
  return n / WEIR_PRODUCT_TILE + (n % WEIR_PRODUCT_TILE != 0);
}

static weir_status run(const weir_args *args) {
  const plan *p = args->state;
  weir_product_args a = p->args;
  int64_t tiles = a.batches * tiles_of(a.m) * tiles_of(a.n);
  a.a = args->io[0];
  a.b = args->io[1];
  a.y = args->io[2];
  return weir_gpu_launch(
      args, p->body, weir_gpu_blocks(tiles * WEIR_BODY_THREADS), &a, sizeof a);
}

const weir_kernel_def weir_kernel_gpu_matmul_int = {
    .op = "matmul",
    .name = "gpu.matmul_int",
    .device = WEIR_GPU,
    .types = (unsigned)WEIR_I32 | (unsigned)WEIR_I64,
    .prepare = prepare,
    .run = run};
