/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "tests/bench/gpu/bare.h"

/* Square products through gemm.h beside a bare loop of cuBLASLt on the same
 * matrices. */

typedef struct sides {
  bench *b;
  const weir_gemm_plan *plan;
  weir_gemm_operands operands;
  const bare_product *bare;
} sides;

static weir_status run_weir(void *self, weir_error *err) {
  sides *s = self;
  weir_device *d = s->b->device;
  return d->vt->gemm->run(d, s->plan, s->b->queue, &s->operands, err);
}

static weir_status run_bare(void *self, weir_error *err) {
  sides *s = self;
  (void)err;
  bare_product_run(s->bare);
  return WEIR_OK;
}

/* The floats of |buffer|'s start as as many bf16, rounded to zero. */
static void halve(bench *b, const weir_device_buffer *buffer, int64_t n) {
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = b->device;
  void *halves;
  size_t bytes = (size_t)n * sizeof(uint16_t);
  bench_ok(d->vt->host_alloc(d, bytes, &halves, &err), &err);
  for (int64_t i = 0; i < n; i++)
    memcpy((uint16_t *)halves + i, (const uint16_t *)(b->random + i) + 1, 2);
  const weir_device_place start = {buffer, 0};
  bench_ok(d->vt->copy_in(d, b->queue, start, halves, bytes, &err), &err);
  bench_ok(d->vt->record(d, b->queue, b->event, &err), &err);
  bench_ok(d->vt->wait(d, b->event, &err), &err);
  d->vt->host_free(d, halves);
}

static void measure(bench *b, weir_gemm_type type, const char *name,
                    int64_t n) {
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = b->device;
  const weir_gemm_matrix matrix = {.ld = n};
  const weir_gemm_desc desc = {.type = type,
                               .m = n,
                               .n = n,
                               .k = n,
                               .batch = 1,
                               .a = matrix,
                               .b = matrix,
                               .d = matrix,
                               .alpha = 1,
                               .align_bytes = WEIR_GEMM_MOST_ALIGN_BYTES};
  weir_gemm_plan *plan;
  size_t scratch_bytes, size = type == WEIR_GEMM_BF16 ? 2 : 4;
  weir_device_buffer m[3], scratch;
  void *memory[3];
  for (int i = 0; i < 3; i++) {
    m[i] = bench_buffer(b, (size_t)(n * n) * size);
    if (type == WEIR_GEMM_BF16) halve(b, &m[i], n * n);
    memory[i] = m[i].handle;
  }
  bench_ok(d->vt->gemm->plan(d, &desc, &plan, &scratch_bytes, &err), &err);
  scratch = bench_buffer(b, scratch_bytes);
  bare_product *bare = bare_product_make(b, type, n, memory);
  sides s = {.b = b,
             .plan = plan,
             .operands = {.a = {&m[0], 0},
                          .b = {&m[1], 0},
                          .d = {&m[2], 0},
                          .workspace = {&scratch, 0}},
             .bare = bare};
  double seconds[2];
  bench_time(b, (const bench_fn[]){run_weir, run_bare}, &s, seconds);
  bench_row row = {.s = seconds[0],
                   .bare_s = seconds[1],
                   .work = 2.0 * (double)n * (double)n * (double)n,
                   .unit = "TFLOP/s",
                   .scale = 1e12,
                   .share = seconds[1] / seconds[0]};
  snprintf(row.name, sizeof row.name, "matmul %s %d", name, (int)n);
  bench_add(b, &row);
  bare_product_release(b, bare);
  d->vt->gemm->release(d, plan);
  d->vt->free(d, &scratch);
  for (int i = 0; i < 3; i++) d->vt->free(d, &m[i]);
}

void bench_products(bench *b) {
  static const struct {
    weir_gemm_type type;
    const char *name;
  } kTypes[] = {{WEIR_GEMM_F32, "f32"},
                {WEIR_GEMM_F32_TF32, "tf32"},
                {WEIR_GEMM_BF16, "bf16"}};
  int64_t first = b->small ? 16 : 1024, last = b->small ? 32 : 8192;
  for (int i = 0; i < 3; i++)
    for (int64_t n = first; n <= last; n *= 2)
      measure(b, kTypes[i].type, kTypes[i].name, n);
}
