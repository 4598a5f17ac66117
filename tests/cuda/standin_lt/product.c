/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "tests/cuda/standin_lt/half.h"
#include "tests/cuda/standin_lt/lt_internal.h"

/* The product itself: a sum for each element, in f32 or f64, column-major. */

size_t lt_size(cudaDataType type) {
  switch ((int)type) {
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return 2;
    case CUDA_R_32F:
      return 4;
    case CUDA_R_64F:
      return 8;
    default:
      return 0;
  }
}

static double load(cudaDataType type, const void *data, int64_t at) {
  switch ((int)type) {
    case CUDA_R_16F:
      return (double)f32_of_f16(((const uint16_t *)data)[at]);
    case CUDA_R_16BF:
      return (double)f32_of_bf16(((const uint16_t *)data)[at]);
    case CUDA_R_32F:
      return (double)((const float *)data)[at];
    default:
      return ((const double *)data)[at];
  }
}

static void store(cudaDataType type, void *data, int64_t at, double x) {
  switch ((int)type) {
    case CUDA_R_16F:
      ((uint16_t *)data)[at] = f16_of((float)x);
      break;
    case CUDA_R_16BF:
      ((uint16_t *)data)[at] = bf16_of((float)x);
      break;
    case CUDA_R_32F:
      ((float *)data)[at] = (float)x;
      break;
    default:
      ((double *)data)[at] = x;
      break;
  }
}

static double rounded(cudaDataType type, double x) {
  double cell = 0;
  store(type, &cell, 0, x);
  return load(type, &cell, 0);
}

/* The |n| factors of a sum, each |step| after the one before: a row of op(A) or
 * a column of op(B). */
static void load_line(const lt_product *p, cudaDataType type, const void *data,
                      int64_t at, int64_t step, int64_t n, double *out) {
  bool tf32 = p->op.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  for (int64_t i = 0; i < n; i++) {
    double x = load(type, data, at + i * step);
    out[i] = tf32 ? (double)tf32_of((float)x) : x;
  }
}

/* A sum from |from| on, each step rounded to what the product computes in. */
static double part(const lt_product *p, const double *a, const double *b,
                   int64_t from, int64_t to) {
  bool single = p->op.scale == CUDA_R_32F;
  double s = 0;
  for (int64_t i = from; i < to; i++) {
    s += a[i] * b[i];
    if (single) s = (double)(float)s;
  }
  return s;
}

static double sum(const lt_product *p, const double *a, const double *b,
                  int64_t k) {
  if (!p->splits) return part(p, a, b, 0, k);
  return rounded(p->d.type, part(p, a, b, 0, k / 2)) +
         rounded(p->d.type, part(p, a, b, k / 2, k));
}

static double finished(uint32_t epilogue, double x) {
  if (epilogue & CUBLASLT_EPILOGUE_RELU) return x > 0 ? x : 0;
  if (epilogue & CUBLASLT_EPILOGUE_GELU)
    return x / 2 *
           (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
  return x;
}

bool lt_reads_c(const lt_product *p) {
  return p->beta != 0 || p->c_data != p->d_data;
}

/* With alpha 0 the real library leaves the function of the epilogue out (seen
 * with 13.0 on an H100). */
static void finish(const lt_product *p, double s, int64_t row, int64_t col,
                   int64_t batch) {
  double x = p->alpha * s;
  if (lt_reads_c(p))
    x += p->beta *
         load(p->c.type, p->c_data, batch * p->c.stride + col * p->c.ld + row);
  if (p->op.epilogue & CUBLASLT_EPILOGUE_BIAS)
    x += load(p->d.type, p->op.bias, row);
  store(p->d.type, p->d_data, batch * p->d.stride + col * p->d.ld + row,
        p->alpha != 0 ? finished(p->op.epilogue, x) : x);
}

static int64_t depth(const lt_product *p) {
  return (int64_t)(p->op.a == CUBLAS_OP_N ? p->a.cols : p->a.rows);
}

/* A factor is read once, not for each sum that it is in: op(A) by rows, then
 * one column of op(B) after the other. */
static void multiply(lt_product *p, int64_t batch) {
  bool a_plain = p->op.a == CUBLAS_OP_N, b_plain = p->op.b == CUBLAS_OP_N;
  int64_t k = depth(p), rows = (int64_t)p->d.rows;
  double *b = p->factors + rows * k;
  for (int64_t row = 0; row < rows; row++)
    load_line(p, p->a.type, p->a_data,
              batch * p->a.stride + row * (a_plain ? 1 : p->a.ld),
              a_plain ? p->a.ld : 1, k, p->factors + row * k);
  for (int64_t col = 0; col < (int64_t)p->d.cols; col++) {
    load_line(p, p->b.type, p->b_data,
              batch * p->b.stride + col * (b_plain ? p->b.ld : 1),
              b_plain ? 1 : p->b.ld, k, b);
    for (int64_t row = 0; row < rows; row++)
      finish(p, sum(p, p->factors + row * k, b, k), row, col, batch);
  }
}

void lt_product_run(void *arg, bool done) {
  lt_product *p = arg;
  if (done) {
    if (p->workspace_bytes > 0) /* an algorithm may write all of it: NaN */
      memset(p->workspace, 0xFF, p->workspace_bytes);
    for (int64_t batch = 0; batch < p->d.batch; batch++) multiply(p, batch);
  }
  free(p);
}

void *lt_product_clone(const void *arg) {
  const lt_product *p = arg;
  lt_product *copy = malloc(sizeof *copy + sizeof(double) * (p->d.rows + 1) *
                                               (size_t)depth(p));
  if (copy != NULL) *copy = *p;
  return copy;
}
