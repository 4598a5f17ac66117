/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "kernels/cuda/ew.h"
#include "kernels/gpu/rows/reduce.h"
#include "kernels/gpu/rows/softmax.h"
#include "tests/bench/gpu/bench.h"

/* Bodies whose time is that of memory, as a share of a copy's speed, and the
 * time of a launch. Operands are as large as the random data. */

static const char *const kBodies[] = {
#define WEIR_CUDA_BODY(file, name, args) #name,
#include "kernels/cuda/bodies.def"
#undef WEIR_CUDA_BODY
};

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
  weir_fill_args fill = {
      .y = m[2].handle, .n = n, .value = 7, .size = 4, .wide = 1};
  weir_unary_args unary = {
      .y = m[2].handle, .x = m[0].handle, .n = n, .fours = 1};
  weir_binary_args add = {.y = m[2].handle,
                          .in = {m[0].handle, m[1].handle},
                          .n = n,
                          .strides = {{4}, {4}},
                          .op = WEIR_BINARY_ADD,
                          .fours = 1};
  measure(b, "fill",
          launch_of(b, "fill", weir_gpu_blocks(n / 4), &fill, sizeof fill),
          bytes);
  static const struct {
    const char *name;
    weir_unary_op op;
  } kOps[] = {{"relu", WEIR_UNARY_relu},
              {"exp", WEIR_UNARY_exp},
              {"gelu", WEIR_UNARY_gelu}};
  for (size_t i = 0; i < sizeof kOps / sizeof kOps[0]; i++) {
    unary.op = (int32_t)kOps[i].op;
    measure(
        b, kOps[i].name,
        launch_of(b, "unary_f32", weir_gpu_blocks(n / 4), &unary, sizeof unary),
        2 * bytes);
  }
  measure(b, "add",
          launch_of(b, "binary_f32", weir_gpu_blocks(n / 4), &add, sizeof add),
          3 * bytes);
}

/* As the kernels plan them. */
static void measure_rows_of(bench *b, const weir_device_buffer m[3],
                            int64_t cols) {
  int64_t n = (int64_t)(b->random_bytes / sizeof(float)), rows = n / cols;
  double bytes = (double)b->random_bytes;
  weir_gpu_reduced r = {0};
  weir_gpu_reduce sum;
  weir_gpu_softmax softmax;
  char name[32];
  weir_gpu_reduced_add(&r, rows, false);
  weir_gpu_reduced_add(&r, cols, true);
  weir_gpu_reduce_plan(&r, WEIR_F32, WEIR_REDUCE_SUM, false, &sum);
  sum.args[0].y = m[2].handle;
  sum.args[0].x = m[0].handle;
  snprintf(name, sizeof name, "sum rows of %d", (int)cols);
  if (sum.blocks[1] == 0) /* one launch */
    measure(b, name,
            launch_of(b, "reduce_rows_f32", sum.blocks[0], &sum.args[0],
                      sizeof sum.args[0]),
            bytes + (double)rows * sizeof(float));
  weir_gpu_softmax_plan(&(weir_gpu_lanes){rows, cols, 1}, false, &softmax);
  softmax.args.y = m[2].handle;
  softmax.args.x = m[0].handle;
  snprintf(name, sizeof name, "softmax of %d", (int)cols);
  measure(b, name,
          launch_of(b, kBodies[softmax.body], softmax.blocks, &softmax.args,
                    sizeof softmax.args),
          2 * bytes);
}

static void measure_rows(bench *b, const weir_device_buffer m[3]) {
  static const int64_t kCols[] = {32, 256, 2048, 8192, 16384, 131072};
  int count = b->small ? 2 : sizeof kCols / sizeof kCols[0];
  for (int i = 0; i < count; i++) measure_rows_of(b, m, kCols[i]);
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
