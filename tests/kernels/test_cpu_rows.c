/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels on rows at sizes that are cut into blocks: against the reference
 * kernels, and the same bits with blocks out of order on three workers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/bed.h"

enum { MOST = 6 };

/* Inputs have the dims of x but for those given. */
typedef struct run {
  const char *op, *kernel;
  weir_attr attrs[4];
  weir_operand in[MOST], out;
  uint32_t in_count;
} run;

static const weir_attr none = {.kind = WEIR_ATTR_NONE};

static weir_attr integer(int64_t i) {
  return (weir_attr){.kind = WEIR_ATTR_INT, .i = i};
}

static weir_attr integers(uint32_t count, const weir_dim *dims) {
  return (weir_attr){.kind = WEIR_ATTR_INTS, .count = count, .dims = dims};
}

static weir_attr boolean(bool b) {
  return (weir_attr){.kind = WEIR_ATTR_BOOL, .b = b};
}

static weir_attr number(double f) {
  return (weir_attr){.kind = WEIR_ATTR_FLOAT, .f = f};
}

#define SHAPE(...)                                            \
  bed_operand(WEIR_F32, sizeof((int64_t[]){__VA_ARGS__}) / 8, \
              (int64_t[]){__VA_ARGS__})
#define SCALAR bed_operand(WEIR_F32, 0, NULL)
#define DIMS(...)                                              \
  integers(sizeof((int64_t[]){__VA_ARGS__}) / 8,               \
           as_dims(dims, sizeof((int64_t[]){__VA_ARGS__}) / 8, \
                   (int64_t[]){__VA_ARGS__}))

static const weir_dim *as_dims(weir_dim *out, size_t n, const int64_t *dims) {
  for (size_t i = 0; i < n; i++) out[i] = weir_dim_of(dims[i]);
  return out;
}

static void check(const run *r, float rtol) {
  weir_call call = {.op = bed_op(r->op),
                    .attrs = r->attrs,
                    .in = r->in,
                    .out = &r->out,
                    .in_count = r->in_count,
                    .out_count = 1};
  void *io[MOST + 1];
  for (uint32_t i = 0; i < r->in_count; i++)
    io[i] = bed_numbers(r->in[i].elements, i + 1);
  if (strcmp(r->op, "batch_norm") == 0) /* variances */
    for (int64_t i = 0; i < r->in[4].elements; i++)
      ((float *)io[4])[i] = fabsf(((float *)io[4])[i]);
  size_t bytes = (size_t)r->out.elements * weir_dtype_size(r->out.dtype);
  void *want = bed_memory(bytes), *y = bed_memory(bytes),
       *z = bed_memory(bytes);
  io[r->in_count] = want;
  bed_run_ref(&call, io);
  io[r->in_count] = y;
  bed_run_kernel(bed_kernel(r->kernel), &call, io, BED_SERIAL);
  io[r->in_count] = z;
  bed_run_kernel(bed_kernel(r->kernel), &call, io, BED_SCRAMBLED);
  assert_memory_equal(y, z, bytes);
  if (r->out.dtype == WEIR_F32)
    bed_check_near(y, want, r->out.elements, rtol);
  else
    assert_memory_equal(y, want, bytes);
  for (uint32_t i = 0; i < r->in_count; i++) free(io[i]);
  free(want);
  free(y);
  free(z);
}

static void test_softmax(void **state) {
  (void)state;
  static const int64_t widths[] = {1, 7, 16, 33, 128, 5000};
  for (int i = 0; i < 6; i++) {
    run r = {.op = "softmax",
             .kernel = "cpu.softmax",
             .attrs = {integer(-1)},
             .in_count = 1};
    r.in[0] = r.out = SHAPE(3, 300, widths[i]);
    if (widths[i] == 5000) r.in[0] = r.out = SHAPE(3, 10, widths[i]);
    check(&r, 1e-6f);
    r.op = "log_softmax";
    r.kernel = "cpu.log_softmax";
    check(&r, 1e-6f);
  }
}

static void test_norms(void **state) {
  (void)state;
  run layer = {.op = "layer_norm",
               .kernel = "cpu.layer_norm",
               .attrs = {integer(-1), number(1e-5)},
               .in_count = 3};
  layer.in[0] = layer.out = SHAPE(200, 770);
  layer.in[1] = layer.in[2] = SHAPE(770);
  check(&layer, 1e-6f);
  run batch = {.op = "batch_norm",
               .kernel = "cpu.batch_norm",
               .attrs = {number(1e-5)},
               .in_count = 5};
  batch.in[0] = batch.out = SHAPE(30, 7, 45, 21);
  for (int i = 1; i < 5; i++) batch.in[i] = SHAPE(7);
  check(&batch, 1e-5f);
}

static void check_reduce(const char *name, weir_operand x, weir_attr axis,
                         weir_operand y) {
  char kernel[32];
  snprintf(kernel, sizeof kernel, "cpu.%s", name);
  run r = {.op = name,
           .kernel = kernel,
           .attrs = {axis, boolean(false)},
           .in_count = 1};
  r.in[0] = x;
  r.out = y;
  check(&r, 1e-5f);
}

static void test_reductions(void **state) {
  (void)state;
  static const char *const names[] = {"reduce_sum", "reduce_mean", "reduce_max",
                                      "reduce_min", "reduce_prod"};
  weir_dim dims[4];
  for (int i = 0; i < 5; i++) {
    check_reduce(names[i], SHAPE(300000), none, SCALAR);
    check_reduce(names[i], SHAPE(70, 1300), DIMS(0), SHAPE(1300));
    check_reduce(names[i], SHAPE(700, 130), DIMS(1), SHAPE(700));
    check_reduce(names[i], SHAPE(33, 6, 14, 15), DIMS(0, 2, 3), SHAPE(6));
    check_reduce(names[i], SHAPE(5, 60, 3, 70), DIMS(1, 3), SHAPE(5, 3));
    check_reduce(names[i], SHAPE(5, 60, 3, 70), DIMS(-4, -2), SHAPE(60, 70));
    check_reduce(names[i], SHAPE(1, 1), none, SCALAR);
  }
}

static void test_arg(void **state) {
  (void)state;
  run r = {.op = "argmax",
           .kernel = "cpu.argmax",
           .attrs = {integer(-1), boolean(false)},
           .in_count = 1};
  r.in[0] = SHAPE(900, 77);
  r.out = bed_operand(WEIR_I64, 1, (int64_t[]){900});
  check(&r, 0);
  r.op = "argmin";
  r.kernel = "cpu.argmin";
  check(&r, 0);
}

static void test_transpose(void **state) {
  (void)state;
  weir_dim dims[4];
  run r = {.op = "transpose", .kernel = "cpu.transpose", .in_count = 1};
  r.attrs[0] = none;
  r.in[0] = SHAPE(333, 517);
  r.out = SHAPE(517, 333);
  check(&r, 0);
  r.attrs[0] = DIMS(0, 2, 1, 3);
  r.in[0] = SHAPE(2, 128, 12, 64);
  r.out = SHAPE(2, 12, 128, 64);
  check(&r, 0);
  r.attrs[0] = DIMS(3, 1, 0, 2);
  r.in[0] = SHAPE(17, 5, 40, 33);
  r.out = SHAPE(33, 5, 17, 40);
  check(&r, 0);
}

static void check_pool(const char *name, weir_operand x, weir_operand y,
                       int64_t kernel, int64_t stride, int64_t pad) {
  char text[32];
  weir_dim dims[3] = {weir_dim_of(kernel), weir_dim_of(stride),
                      weir_dim_of(pad)};
  snprintf(text, sizeof text, "cpu.%s", name);
  run r = {.op = name, .kernel = text, .in_count = 1, .out = y};
  r.in[0] = x;
  for (uint32_t i = 0; i < 3; i++) r.attrs[i] = integers(1, &dims[i]);
  r.attrs[3] = boolean(false);
  check(&r, 1e-6f);
}

static void test_pools(void **state) {
  (void)state;
  static const char *const names[] = {"max_pool", "avg_pool"};
  for (int i = 0; i < 2; i++) {
    check_pool(names[i], SHAPE(20, 16, 28, 27), SHAPE(20, 16, 14, 13), 2, 2, 0);
    check_pool(names[i], SHAPE(3, 2, 9, 40), SHAPE(3, 2, 9, 40), 3, 1, 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_softmax),    cmocka_unit_test(test_norms),
      cmocka_unit_test(test_reductions), cmocka_unit_test(test_arg),
      cmocka_unit_test(test_transpose),  cmocka_unit_test(test_pools)};
  BED_RUN(tests);
}
