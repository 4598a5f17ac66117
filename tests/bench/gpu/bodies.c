/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "kernels/cuda/ew.h"
#include "kernels/cuda/rows.h"
#include "kernels/gpu/gpu.h"
#include "tests/bench/gpu/bench.h"

/* Bodies whose time is that of memory, as a share of a copy's speed, and the
 * time of a launch. Operands are as large as the random data. */

typedef struct launch {
  bench *b;
  const weir_device_body *body;
  weir_device_grid grid;
  const void *args;
  size_t bytes;
} launch;

static weir_status run(void *self, weir_error *err) {
  const launch *l = self;
  weir_device *d = l->b->device;
  return d->vt->launch(d, l->b->queue, l->body, &l->grid, l->args, l->bytes,
                       err);
}

static launch launch_of(bench *b, const char *body, uint32_t blocks,
                        const void *args, size_t bytes) {
  weir_error err = WEIR_ERROR_INIT;
  launch l = {.b = b,
              .grid = {{blocks, 1, 1}, WEIR_BODY_THREADS, 0},
              .args = args,
              .bytes = bytes};
  bench_ok(b->device->vt->body(b->device, body, &l.body, &err), &err);
  return l;
}

/* |bytes|: that one run reads and writes at least. */
static void measure(bench *b, const char *name, launch l, double bytes) {
  double seconds[2];
  bench_time(b, (const bench_fn[]){run, NULL}, &l, seconds);
  bench_row row = {.s = seconds[0],
                   .work = bytes,
                   .unit = "GB/s",
                   .scale = 1e9,
                   .share = bytes / seconds[0] / b->copy_rate};
  snprintf(row.name, sizeof row.name, "%s", name);
  bench_add(b, &row);
}

static void measure_elements(bench *b, const weir_device_buffer m[3]) {
  int64_t n = (int64_t)(b->random_bytes / sizeof(float));
  double bytes = (double)b->random_bytes;
  weir_fill_args fill = {.y = m[2].handle, .n = n, .value = 7, .size = 4};
  weir_unary_args unary = {.y = m[2].handle, .x = m[0].handle, .n = n};
  weir_binary_args add = {.y = m[2].handle,
                          .in = {m[0].handle, m[1].handle},
                          .n = n,
                          .strides = {{1}, {1}},
                          .op = WEIR_BINARY_ADD};
  measure(b, "fill",
          launch_of(b, "fill", weir_gpu_blocks(n), &fill, sizeof fill), bytes);
  static const struct {
    const char *name;
    weir_unary_op op;
  } kOps[] = {{"relu", WEIR_UNARY_relu},
              {"exp", WEIR_UNARY_exp},
              {"gelu", WEIR_UNARY_gelu}};
  for (size_t i = 0; i < sizeof kOps / sizeof kOps[0]; i++) {
    unary.op = (int32_t)kOps[i].op;
    measure(b, kOps[i].name,
            launch_of(b, "unary_f32", weir_gpu_blocks(n), &unary, sizeof unary),
            2 * bytes);
  }
  measure(b, "add",
          launch_of(b, "binary_f32", weir_gpu_blocks(n), &add, sizeof add),
          3 * bytes);
}

static void measure_rows(bench *b, const weir_device_buffer m[3]) {
  int64_t n = (int64_t)(b->random_bytes / sizeof(float));
  double bytes = (double)b->random_bytes;
  for (int64_t cols = 256; cols <= (b->small ? 256 : 16384); cols *= 8) {
    weir_rows_args args = {m[2].handle, m[0].handle, n / cols, cols};
    uint32_t blocks = weir_gpu_blocks(n / cols * WEIR_BODY_THREADS);
    char name[32];
    snprintf(name, sizeof name, "sum rows of %d", (int)cols);
    measure(b, name, launch_of(b, "sum_rows_f32", blocks, &args, sizeof args),
            bytes + (double)(n / cols) * sizeof(float));
    snprintf(name, sizeof name, "softmax of %d", (int)cols);
    measure(b, name,
            launch_of(b, "softmax_rows_f32", blocks, &args, sizeof args),
            2 * bytes);
  }
}

/* 10,000 launches of one element, put into the queue and waited for. */
static void measure_launch(bench *b, const weir_device_buffer *m) {
  enum { kLaunches = 10000 };
  weir_error err = WEIR_ERROR_INIT;
  weir_device *d = b->device;
  weir_fill_args args = {.y = m->handle, .n = 1, .value = 7, .size = 4};
  launch l = launch_of(b, "fill", 1, &args, sizeof args);
  int launches = b->small ? 100 : kLaunches;
  double put_s = 0, all_s = 0;
  for (int turn = 0; turn < 3; turn++) { /* the last one counts */
    double start = bench_now_s();
    for (int i = 0; i < launches; i++) bench_ok(run(&l, &err), &err);
    put_s = bench_now_s() - start;
    bench_ok(d->vt->record(d, b->queue, b->event, &err), &err);
    bench_ok(d->vt->wait(d, b->event, &err), &err);
    all_s = bench_now_s() - start;
  }
  bench_row row = {.name = "launch",
                   .s = all_s / launches,
                   .work = 1,
                   .unit = "k/s",
                   .scale = 1e3};
  bench_add(b, &row);
  row.s = put_s / launches;
  snprintf(row.name, sizeof row.name, "launch, the host's part");
  bench_add(b, &row);
}

void bench_bodies(bench *b) {
  weir_device_buffer m[3];
  for (int i = 0; i < 3; i++) m[i] = bench_buffer(b, b->random_bytes);
  measure_elements(b, m);
  measure_rows(b, m);
  measure_launch(b, &m[2]);
  for (int i = 0; i < 3; i++) b->device->vt->free(b->device, &m[i]);
}
