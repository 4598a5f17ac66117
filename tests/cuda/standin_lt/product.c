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

/* Element (row, col) of op(matrix), of one of the batch. */
static double factor(const lt_product *p, const lt_layout *l, const void *data,
                     int32_t op, int64_t at[3]) {
  int64_t row = op == CUBLAS_OP_N ? at[0] : at[1];
  int64_t col = op == CUBLAS_OP_N ? at[1] : at[0];
  double x = load(l->type, data, at[2] * l->stride + col * l->ld + row);
  if (p->op.compute == CUBLAS_COMPUTE_32F_FAST_TF32)
    x = (double)tf32_of((float)x);
  return x;
}

static double sum(const lt_product *p, int64_t row, int64_t col,
                  int64_t batch) {
  int64_t k = (int64_t)(p->op.a == CUBLAS_OP_N ? p->a.cols : p->a.rows);
  double s = 0, first = 0;
  for (int64_t i = 0; i < k; i++) {
    if (p->splits && i == k / 2) {
      first = rounded(p->d.type, s);
      s = 0;
    }
    s += factor(p, &p->a, p->a_data, p->op.a, (int64_t[]){row, i, batch}) *
         factor(p, &p->b, p->b_data, p->op.b, (int64_t[]){i, col, batch});
    if (p->op.scale == CUDA_R_32F) s = (double)(float)s;
  }
  return p->splits ? first + rounded(p->d.type, s) : s;
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
static void element(const lt_product *p, int64_t row, int64_t col,
                    int64_t batch) {
  double x = p->alpha * sum(p, row, col, batch);
  if (lt_reads_c(p))
    x += p->beta *
         load(p->c.type, p->c_data, batch * p->c.stride + col * p->c.ld + row);
  if (p->op.epilogue & CUBLASLT_EPILOGUE_BIAS)
    x += load(p->d.type, p->op.bias, row);
  store(p->d.type, p->d_data, batch * p->d.stride + col * p->d.ld + row,
        p->alpha != 0 ? finished(p->op.epilogue, x) : x);
}

void lt_product_run(void *arg, bool done) {
  lt_product *p = arg;
  if (done) {
    if (p->workspace_bytes > 0) /* an algorithm may write all of it: NaN */
      memset(p->workspace, 0xFF, p->workspace_bytes);
    for (int64_t batch = 0; batch < p->d.batch; batch++)
      for (int64_t col = 0; col < (int64_t)p->d.cols; col++)
        for (int64_t row = 0; row < (int64_t)p->d.rows; row++)
          element(p, row, col, batch);
  }
  free(p);
}

void *lt_product_clone(const void *arg) {
  lt_product *copy = malloc(sizeof *copy);
  if (copy != NULL) *copy = *(const lt_product *)arg;
  return copy;
}
