/* SPDX-License-Identifier: Apache-2.0
 * Gradients of convolutions and poolings in both layouts, against the
 * reference kernels, with serial and scrambled blocks. Values in the lanes
 * of images that are not there must not count. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/bed.h"

typedef struct shape {
  int64_t n, c, h, w, oc, kh, kw, stride, pad, dilation;
} shape;

static int64_t out_dim(const shape *s, int64_t in, int64_t k) {
  return (in + 2 * s->pad - s->dilation * (k - 1) - 1) / s->stride + 1;
}

/* Plain to N16 with NaN in the lanes that do not count. */
static float *to_n16(const float *x, const weir_operand *o) {
  int64_t n = o->dims[0], image = o->elements / n, blocks = (n + 15) / 16;
  float *y = bed_memory((size_t)(blocks * image * 16) * sizeof *y);
  for (int64_t i = 0; i < blocks * image * 16; i++) y[i] = NAN;
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < image; k++)
      y[((i / 16) * image + k) * 16 + i % 16] = x[i * image + k];
  return y;
}

static float *from_n16(const float *x, const weir_operand *o) {
  int64_t n = o->dims[0], image = o->elements / n;
  float *y = bed_memory((size_t)o->elements * sizeof *y);
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < image; k++)
      y[i * image + k] = x[((i / 16) * image + k) * 16 + i % 16];
  return y;
}

/* Runs |kernel| with operands whose bit in |n16| is set (inputs, then the
 * output) in the N16 layout; the result in rows. |second|: the second output,
 * NULL: nobody reads it. */
static float *run(const char *kernel, weir_call *call, weir_operand *operands,
                  float *const *plain, unsigned n16, bed_order order,
                  float *second) {
  uint32_t count = call->in_count + 1;
  float *made[4];
  void *io[5] = {NULL, NULL, NULL, NULL, NULL};
  io[count] = second;
  for (uint32_t i = 0; i < count; i++) {
    weir_operand *o = &operands[i];
    bool images = (n16 >> i & 1) != 0;
    o->layout = images ? WEIR_LAYOUT_N16 : WEIR_LAYOUT_PLAIN;
    size_t room = (size_t)(o->elements / o->dims[0]) *
                  (size_t)((o->dims[0] + 15) / 16 * 16) * sizeof(float);
    if (i == call->in_count)
      made[i] = bed_memory(room);
    else
      made[i] = images ? to_n16(plain[i], o) : NULL;
    io[i] = made[i] != NULL ? made[i] : plain[i];
  }
  bed_run_kernel(bed_kernel(kernel), call, io, order);
  float *y = made[count - 1];
  if (n16 >> call->in_count & 1) {
    y = from_n16(made[count - 1], &operands[count - 1]);
    free(made[count - 1]);
  }
  for (uint32_t i = 0; i < call->in_count; i++) free(made[i]);
  for (uint32_t i = 0; i < count; i++) operands[i].layout = WEIR_LAYOUT_PLAIN;
  return y;
}

static void check(const char *kernel, weir_call *call, weir_operand *operands,
                  const unsigned *layouts, int layout_count, float rtol) {
  float *plain[3] = {NULL, NULL, NULL};
  weir_operand *y = &operands[call->in_count];
  void *io[5] = {NULL, NULL, NULL, NULL, NULL};
  int64_t channels = call->out_count > 1 ? call->out[1].elements : 0;
  float *want_second = bed_memory((size_t)channels * sizeof(float));
  float *second = bed_memory((size_t)channels * sizeof(float));
  for (uint32_t i = 0; i < call->in_count; i++)
    io[i] = plain[i] = bed_numbers(operands[i].elements, 17 + i);
  float *want = bed_memory((size_t)y->elements * sizeof *want);
  io[call->in_count] = want;
  io[call->in_count + 1] = channels > 0 ? want_second : NULL;
  bed_run_ref(call, io);
  for (int k = 0; k < layout_count; k++) {
    float *a = run(kernel, call, operands, plain, layouts[k], BED_SERIAL,
                   channels > 0 ? second : NULL);
    float *b =
        run(kernel, call, operands, plain, layouts[k], BED_SCRAMBLED, NULL);
    bed_check_near(a, want, y->elements, rtol);
    bed_check_near(second, want_second, channels, rtol);
    assert_memory_equal(a, b, (size_t)y->elements * sizeof *a);
    free(a);
    free(b);
  }
  for (uint32_t i = 0; i < call->in_count; i++) free(plain[i]);
  free(want);
  free(second);
  free(want_second);
}

static weir_attr ints(uint32_t count, const weir_dim *dims) {
  return (weir_attr){.kind = WEIR_ATTR_INTS, .count = count, .dims = dims};
}

typedef struct conv_attrs {
  weir_dim shape[4], stride, pad, dilation;
  weir_attr list[6]; /* the last, padding, is not given */
} conv_attrs;

static void fill_attrs(conv_attrs *a, const shape *s, const weir_operand *o) {
  for (int d = 0; d < 4; d++) a->shape[d] = weir_dim_of(o->dims[d]);
  a->stride = weir_dim_of(s->stride);
  a->pad = weir_dim_of(s->pad);
  a->dilation = weir_dim_of(s->dilation);
  a->list[0] = ints(4, a->shape);
  a->list[1] = ints(1, &a->stride);
  a->list[2] = ints(1, &a->pad);
  a->list[3] = ints(1, &a->dilation);
  a->list[4] = (weir_attr){.kind = WEIR_ATTR_INT, .i = 1};
  a->list[5] = (weir_attr){.kind = WEIR_ATTR_NONE};
}

static const shape kShapes[] = {
    {64, 1, 28, 28, 6, 5, 5, 1, 2, 1}, {32, 6, 14, 14, 16, 5, 5, 1, 0, 1},
    {17, 3, 9, 7, 5, 3, 3, 1, 1, 1},   {40, 5, 6, 30, 7, 1, 4, 1, 0, 1},
    {16, 2, 4, 3, 3, 2, 2, 1, 1, 1},   {1040, 2, 3, 3, 3, 3, 3, 1, 1, 1}};

static void test_weight(void **state) {
  (void)state;
  static const shape kMore[] = {{20, 4, 11, 11, 3, 3, 7, 2, 1, 1},
                                {33, 2, 9, 9, 3, 2, 3, 1, 0, 2}};
  static const unsigned kLayouts[] = {0, 1, 2, 3};
  for (size_t i = 0; i < 8; i++) {
    const shape *s = i < 6 ? &kShapes[i] : &kMore[i - 6];
    weir_operand o[4];
    int64_t oh = out_dim(s, s->h, s->kh), ow = out_dim(s, s->w, s->kw);
    o[0] = bed_operand(WEIR_F32, 4, (int64_t[]){s->n, s->c, s->h, s->w});
    o[1] = bed_operand(WEIR_F32, 4, (int64_t[]){s->n, s->oc, oh, ow});
    o[2] = bed_operand(WEIR_F32, 4, (int64_t[]){s->oc, s->c, s->kh, s->kw});
    o[3] = bed_operand(WEIR_F32, 1, &s->oc);
    conv_attrs attrs;
    fill_attrs(&attrs, s, &o[2]);
    weir_call call = {.op = bed_op("conv2d_grad_weight"),
                      .attrs = attrs.list,
                      .in = o,
                      .out = &o[2],
                      .in_count = 2,
                      .out_count = 2};
    check("cpu.conv2d_grad_weight.direct", &call, o, kLayouts, 4, 1e-4f);
  }
}

static void test_input(void **state) {
  (void)state;
  static const unsigned kLayouts[] = {0, 2, 4, 6};
  for (size_t i = 0; i < 6; i++) {
    const shape *s = &kShapes[i];
    weir_operand o[3];
    int64_t oh = out_dim(s, s->h, s->kh), ow = out_dim(s, s->w, s->kw);
    o[0] = bed_operand(WEIR_F32, 4, (int64_t[]){s->oc, s->c, s->kh, s->kw});
    o[1] = bed_operand(WEIR_F32, 4, (int64_t[]){s->n, s->oc, oh, ow});
    o[2] = bed_operand(WEIR_F32, 4, (int64_t[]){s->n, s->c, s->h, s->w});
    conv_attrs attrs;
    fill_attrs(&attrs, s, &o[2]);
    weir_call call = {.op = bed_op("conv2d_grad_input"),
                      .attrs = attrs.list,
                      .in = o,
                      .out = &o[2],
                      .in_count = 2,
                      .out_count = 1};
    check("cpu.conv2d_grad_input.direct", &call, o, kLayouts, 4, 1e-5f);
  }
}

typedef struct pool_shape {
  int64_t n, c, h, w, kernel, stride, pad;
} pool_shape;

static const pool_shape kPools[] = {{64, 6, 28, 28, 2, 2, 0},
                                    {17, 3, 7, 9, 3, 2, 1},
                                    {33, 2, 5, 5, 2, 1, 0},
                                    {16, 4, 7, 7, 2, 2, 0}};

static void pool_operands(const pool_shape *s, weir_operand *x,
                          weir_operand *dy) {
  int64_t oh = (s->h + 2 * s->pad - s->kernel) / s->stride + 1;
  int64_t ow = (s->w + 2 * s->pad - s->kernel) / s->stride + 1;
  *x = bed_operand(WEIR_F32, 4, (int64_t[]){s->n, s->c, s->h, s->w});
  *dy = bed_operand(WEIR_F32, 4, (int64_t[]){s->n, s->c, oh, ow});
}

static void test_avg_pool(void **state) {
  (void)state;
  static const unsigned kLayouts[] = {0, 2, 3};
  for (int i = 0; i < 8; i++) {
    const pool_shape *s = &kPools[i / 2];
    weir_operand o[2];
    pool_operands(s, &o[1], &o[0]);
    weir_dim all[4], dims[3] = {weir_dim_of(s->kernel), weir_dim_of(s->stride),
                                weir_dim_of(s->pad)};
    for (int d = 0; d < 4; d++) all[d] = weir_dim_of(o[1].dims[d]);
    weir_attr attrs[6] = {ints(4, all),
                          ints(1, dims),
                          ints(1, dims + 1),
                          ints(1, dims + 2),
                          {.kind = WEIR_ATTR_BOOL, .b = i % 2 == 1}};
    weir_call call = {.op = bed_op("avg_pool_grad"),
                      .attrs = attrs,
                      .in = o,
                      .out = &o[1],
                      .in_count = 1,
                      .out_count = 1};
    check("cpu.avg_pool_grad", &call, o, kLayouts, 3, 1e-6f);
  }
}

static void test_max_pool(void **state) {
  (void)state;
  static const unsigned kLayouts[] = {0, 5, 7};
  for (int i = 0; i < 4; i++) {
    const pool_shape *s = &kPools[i];
    weir_operand o[3];
    pool_operands(s, &o[0], &o[1]);
    o[2] = o[0];
    weir_dim dims[3] = {weir_dim_of(s->kernel), weir_dim_of(s->stride),
                        weir_dim_of(s->pad)};
    weir_attr attrs[4] = {ints(1, dims), ints(1, dims + 1), ints(1, dims + 2)};
    weir_call call = {.op = bed_op("max_pool_grad"),
                      .attrs = attrs,
                      .in = o,
                      .out = &o[2],
                      .in_count = 2,
                      .out_count = 1};
    check("cpu.max_pool_grad", &call, o, kLayouts, 3, 1e-6f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_weight), cmocka_unit_test(test_input),
      cmocka_unit_test(test_avg_pool), cmocka_unit_test(test_max_pool)};
  BED_RUN(tests);
}
