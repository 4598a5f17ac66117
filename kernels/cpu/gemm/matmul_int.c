/* SPDX-License-Identifier: Apache-2.0 */
/* matmul of integers: rows of b times numbers, added up with wrap-around. Sums
 * in unsigned types are exact modulo 2^32 or 2^64, so no order of them matters;
 * the inner loop runs along a row of b and y, which compilers turn into
 * vectors. */
#include <string.h>

#include "kernels/cpu/gemm/matmul_shape.h"

enum { ROWS = 16 }; /* of a block */

typedef struct job {
  const weir_gemm_shape *s;
  const weir_args *args;
} job;

#define PRODUCT(name, type)                                                    \
  static void name(const weir_gemm_shape *s, const type *a, const type *b,     \
                   type *y, int64_t rows) {                                    \
    for (int64_t i = 0; i < rows; i++, a += s->a_row, y += s->n) {             \
      memset(y, 0, (size_t)s->n * sizeof *y);                                  \
      for (int64_t p = 0; p < s->k; p++) {                                     \
        const type x = a[p * s->a_k], *row = b + p * s->b_k;                   \
        if (s->b_column == 1)                                                  \
          for (int64_t j = 0; j < s->n; j++) y[j] += x * row[j];               \
        else                                                                   \
          for (int64_t j = 0; j < s->n; j++) y[j] += x * row[j * s->b_column]; \
      }                                                                        \
    }                                                                          \
  }
PRODUCT(product_32, uint32_t)
PRODUCT(product_64, uint64_t)

static int64_t row_blocks(const weir_gemm_shape *s) {
  return (s->m + ROWS - 1) / ROWS;
}

static void run_block(void *arg, int64_t block, int worker) {
  const job *j = arg;
  const weir_gemm_shape *s = j->s;
  int64_t batch = block / row_blocks(s), i = block % row_blocks(s) * ROWS;
  int64_t rows = s->m - i < ROWS ? s->m - i : ROWS, a_at, b_at;
  int64_t y_at = (batch * s->m + i) * s->n;
  void *const *io = j->args->io;
  (void)worker;
  weir_gemm_batch(s, batch, &a_at, &b_at);
  a_at += i * s->a_row;
  if (s->dtype == WEIR_I32)
    product_32(s, (const uint32_t *)io[0] + a_at,
               (const uint32_t *)io[1] + b_at, (uint32_t *)io[2] + y_at, rows);
  else
    product_64(s, (const uint64_t *)io[0] + a_at,
               (const uint64_t *)io[1] + b_at, (uint64_t *)io[2] + y_at, rows);
}

static weir_status run(const weir_args *args) {
  const weir_gemm_shape *s = args->state;
  job j = {s, args};
  int64_t blocks = s->batches * row_blocks(s);
  if (blocks == 0 || s->n == 0) return WEIR_OK;
  if ((double)s->m * (double)s->n * (double)s->k * (double)s->batches < 1e5)
    for (int64_t b = 0; b < blocks; b++) run_block(&j, b, 0);
  else
    weir_parallel_for(args, blocks, run_block, &j);
  return WEIR_OK;
}

static weir_status prepare(const weir_call *call, weir_prepared *out,
                           weir_error *err) {
  weir_gemm_shape *s = weir_arena_alloc(out->arena, sizeof *s);
  if (!s) return weir_fail_memory(err, sizeof *s);
  weir_matmul_shape(call, s);
  out->state = s;
  out->algorithm = "rows times numbers";
  return WEIR_OK;
}

const weir_kernel_def weir_kernel_cpu_matmul_int = {
    .op = "matmul",
    .name = "cpu.matmul_int",
    .device = WEIR_CPU,
    .types = (unsigned)WEIR_I32 | (unsigned)WEIR_I64,
    .prepare = prepare,
    .run = run};
