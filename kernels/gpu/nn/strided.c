/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices are read as strides: a transposed one is one whose other stride is
 * 1, a vector a matrix of one row or column. A product of the library has one
 * step from a matrix to the next, so the batch's dimensions are joined as far
 * as both operands go on by equal steps; for what is left there is a run of the
 * same plan for each of its elements. */
#include "kernels/gpu/nn/strided.h"

#include <assert.h>

#include "kernels/registry.h"

enum {
  kAlign = 16, /* of an operand's first byte */
  kMostRuns = 4096
};

static void join_batches(const weir_gemm_shape *s, weir_gpu_batches *out) {
  *out = (weir_gpu_batches){0};
  for (int32_t d = 0; d < s->batch_rank; d++) {
    int64_t dim = s->batch_dims[d];
    int32_t last = out->rank - 1;
    if (dim == 1) continue;
    bool join = last >= 0 && out->a[last] == s->a_batch[d] * dim &&
                out->b[last] == s->b_batch[d] * dim;
    if (!join) last = out->rank++;
    out->dims[last] = join ? out->dims[last] * dim : dim;
    out->a[last] = s->a_batch[d];
    out->b[last] = s->b_batch[d];
  }
}

/* A matrix of |rows| and |columns| by its two strides. */
static void describe(int64_t rows, int64_t columns, int64_t row, int64_t column,
                     bool *transposed, weir_gemm_matrix *out) {
  *transposed = column != 1;
  int64_t ld = *transposed ? column : row;
  int64_t least = *transposed ? rows : columns;
  assert(column == 1 || row == 1);
  out->ld = ld > least ? ld : least; /* one row, or one column, has no step */
}

/* Takes the last of |b| as the library's batch. */
static void take_batch(const weir_gemm_shape *s, weir_gpu_batches *b,
                       weir_gemm_desc *desc) {
  desc->batch = 1;
  if (b->rank == 0) return;
  int32_t last = --b->rank;
  desc->batch = b->dims[last];
  desc->a.stride = b->a[last];
  desc->b.stride = b->b[last];
  desc->d.stride = s->m * s->n;
}

/* The promised alignment: runs begin at whole steps. */
static uint32_t alignment(const weir_gemm_shape *s,
                          const weir_gpu_batches *outer, int64_t d_step) {
  int64_t size = (int64_t)weir_dtype_size(s->dtype);
  bool whole = outer->rank == 0 || d_step * size % kAlign == 0;
  for (int32_t d = 0; d < outer->rank; d++)
    whole = whole && outer->a[d] * size % kAlign == 0 &&
            outer->b[d] * size % kAlign == 0;
  return whole ? kAlign : (uint32_t)size;
}

static weir_gemm_desc describe_all(const weir_gemm_shape *s,
                                   weir_gpu_batches *outer, int64_t *d_step) {
  weir_gemm_desc desc = {.type = weir_gpu_gemm_type(s->dtype),
                         .m = s->m,
                         .n = s->n,
                         .k = s->k,
                         .alpha = 1,
                         .d = {.ld = s->n > 0 ? s->n : 1}};
  describe(s->m, s->k, s->a_row, s->a_k, &desc.a_transposed, &desc.a);
  describe(s->k, s->n, s->b_k, s->b_column, &desc.b_transposed, &desc.b);
  join_batches(s, outer);
  take_batch(s, outer, &desc);
  *d_step = desc.batch * s->m * s->n;
  desc.align_bytes = alignment(s, outer, *d_step);
  return desc;
}

static int64_t runs_of(const weir_gpu_batches *outer) {
  int64_t runs = 1;
  for (int32_t d = 0; d < outer->rank; d++) runs *= outer->dims[d];
  return runs;
}

bool weir_gpu_strided_accepts(const weir_gemm_shape *shape, weir_why *why) {
  weir_gpu_batches outer;
  int64_t d_step;
  describe_all(shape, &outer, &d_step);
  int64_t runs = runs_of(&outer);
  return runs <= kMostRuns ||
         weir_no(why, "%lld batches that no steps join, at most %d",
                 (long long)runs, kMostRuns);
}

weir_status weir_gpu_strided_plan(const weir_prepared *in,
                                  const weir_gemm_shape *shape,
                                  weir_gemm_epilogue epilogue,
                                  weir_gpu_strided *out, weir_error *err) {
  int64_t elements = shape->m * shape->n;
  for (int32_t d = 0; d < shape->batch_rank; d++)
    elements *= shape->batch_dims[d];
  *out = (weir_gpu_strided){.size = weir_dtype_size(shape->dtype)};
  weir_gemm_desc desc = describe_all(shape, &out->outer, &out->d_step);
  out->runs = runs_of(&out->outer);
  desc.epilogue = epilogue;
  assert(desc.k > 0 || epilogue == WEIR_GEMM_NONE);
  if (desc.k == 0)
    out->zeros = (weir_fill_args){.n = elements, .size = (int32_t)out->size};
  else if (elements > 0)
    return weir_gpu_product_plan(in, &desc, &out->product, err);
  out->runs = 0;
  return WEIR_OK;
}

void weir_gpu_strided_release(weir_gpu_strided *product) {
  weir_gpu_product_release(&product->product);
}

/* Elements before run |r| of a and b. */
static void offsets(const weir_gpu_batches *outer, int64_t r, int64_t *a,
                    int64_t *b) {
  *a = *b = 0;
  for (int32_t d = outer->rank - 1; d >= 0; d--) {
    int64_t here = r % outer->dims[d];
    r /= outer->dims[d];
    *a += here * outer->a[d];
    *b += here * outer->b[d];
  }
}

weir_status weir_gpu_strided_run(const weir_args *args,
                                 const weir_gpu_strided *p,
                                 const weir_gpu_matrices *m) {
  weir_fill_args zeros = p->zeros;
  zeros.y = m->d;
  WEIR_TRY(weir_gpu_launch(args, WEIR_GPU_fill, weir_gpu_blocks(zeros.n),
                           &zeros, sizeof zeros));
  for (int64_t r = 0; r < p->runs; r++) {
    weir_gpu_matrices here = *m;
    int64_t a, b;
    offsets(&p->outer, r, &a, &b);
    here.a = (const char *)m->a + a * (int64_t)p->size;
    here.b = (const char *)m->b + b * (int64_t)p->size;
    here.d = (char *)m->d + r * p->d_step * (int64_t)p->size;
    WEIR_TRY(weir_gpu_product_run(args, &p->product, &here));
  }
  return WEIR_OK;
}
