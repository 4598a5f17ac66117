/* SPDX-License-Identifier: Apache-2.0 */
/* conv2d as a product against the reference kernel, alone and with bias,
 * residual and relu after it. Numbers are multiples of 1/64, so sums of f32 are
 * exact and the results must be the same bits. */
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/bed.h"

typedef struct shape {
  int64_t n, c, h, w, oc, kh, kw; /* c: of all groups */
  int64_t stride[2], pad[4], dilation, groups;
  bool bias;
} shape;

static const shape shapes[] = {
    {1, 1, 1, 1, 1, 1, 1, {1, 1}, {0}, 1, 1, false},
    {2, 5, 9, 9, 7, 1, 1, {1, 1}, {0}, 1, 1, true},
    {1, 3, 20, 41, 13, 3, 3, {1, 1}, {1, 1, 1, 1}, 1, 1, true},
    {2, 40, 14, 14, 25, 3, 3, {1, 1}, {1, 1, 1, 1}, 1, 1, false},
    {3, 8, 7, 7, 16, 5, 3, {2, 2}, {2, 0, 1, 3}, 1, 1, true},
    {2, 6, 12, 10, 9, 3, 3, {1, 3}, {0, 1, 2, 0}, 2, 3, true},
    {1, 12, 9, 8, 12, 3, 3, {1, 1}, {1, 1, 1, 1}, 1, 12, false},
    {1, 2, 4, 3, 5, 2, 2, {3, 1}, {5, 6, 5, 6}, 1, 1, false},
    {1, 30, 5, 6, 400, 3, 3, {1, 1}, {1, 1, 1, 1}, 1, 1, true},
    {1, 4, 30, 70, 3, 2, 4, {1, 1}, {0}, 1, 1, true}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

typedef struct setup {
  weir_dim stride[2], pad[4], dilation[2];
  weir_attr attrs[5]; /* the last, padding, is not given */
  weir_operand in[5], product, out;
  weir_call call;
  float *data[5]; /* x, w, bias, bias after, residual */
} setup;

static int64_t places(const shape *s, int side, int64_t in, int64_t kernel) {
  int64_t padded = in + s->pad[side] + s->pad[side + 2];
  return (padded - (kernel - 1) * s->dilation - 1) / s->stride[side] + 1;
}

static void ints(weir_attr *attr, weir_dim *dims, const int64_t *from,
                 uint32_t count) {
  for (uint32_t i = 0; i < count; i++) dims[i] = weir_dim_of(from[i]);
  *attr = (weir_attr){.kind = WEIR_ATTR_INTS, .count = count, .dims = dims};
}

static void setup_make(setup *t, const shape *s) {
  int64_t x[4] = {s->n, s->c, s->h, s->w};
  int64_t w[4] = {s->oc, s->c / s->groups, s->kh, s->kw};
  int64_t y[4] = {s->n, s->oc, places(s, 0, s->h, s->kh),
                  places(s, 1, s->w, s->kw)};
  int64_t after[3] = {s->oc, 1, 1}, both[2] = {s->dilation, s->dilation};
  memset(t, 0, sizeof *t);
  ints(&t->attrs[0], t->stride, s->stride, 2);
  ints(&t->attrs[1], t->pad, s->pad, 4);
  ints(&t->attrs[2], t->dilation, both, 2);
  t->attrs[3] = (weir_attr){.kind = WEIR_ATTR_INT, .i = s->groups};
  t->in[0] = bed_operand(WEIR_F32, 4, x);
  t->in[1] = bed_operand(WEIR_F32, 4, w);
  if (s->bias) t->in[2] = bed_operand(WEIR_F32, 1, &s->oc);
  t->in[3] = bed_operand(WEIR_F32, 3, after);
  t->in[4] = t->product = t->out = bed_operand(WEIR_F32, 4, y);
  for (int i = 0; i < 5; i++)
    t->data[i] = bed_numbers(t->in[i].elements, (uint64_t)i + 1);
  t->call = (weir_call){.op = bed_op("conv2d"),
                        .attrs = t->attrs,
                        .in = t->in,
                        .out = &t->out,
                        .in_count = 3,
                        .out_count = 1};
}

static void setup_release(setup *t) {
  for (int i = 0; i < 5; i++) free(t->data[i]);
}

static void test_alone(void **state) {
  (void)state;
  for (int i = 0; i < SHAPES; i++) {
    setup t;
    setup_make(&t, &shapes[i]);
    size_t bytes = (size_t)t.out.elements * sizeof(float);
    float *y = bed_memory(bytes), *want = bed_memory(bytes);
    void *io[4] = {t.data[0], t.data[1], shapes[i].bias ? t.data[2] : NULL,
                   want};
    bed_run_ref(&t.call, io);
    io[3] = y;
    for (bed_order order = BED_SERIAL; order <= BED_SCRAMBLED; order++) {
      memset(y, 0xC5, bytes);
      bed_run_kernel(bed_kernel("cpu.conv2d.gemm"), &t.call, io, order);
      assert_memory_equal(y, want, bytes);
    }
    free(y);
    free(want);
    setup_release(&t);
  }
}

/* relu(conv) alone: rows of the follower are longer than a channel. */
static void check_relu(const shape *s) {
  setup t;
  setup_make(&t, s);
  size_t bytes = (size_t)t.out.elements * sizeof(float);
  float *y = bed_memory(bytes), *want = bed_memory(bytes);
  weir_call calls[2] = {t.call,
                        {.op = bed_op("relu"),
                         .in = &t.product,
                         .out = &t.out,
                         .in_count = 1,
                         .out_count = 1}};
  weir_group_ref r0[3] = {{false, 0}, {false, 1}, {false, 2}};
  weir_group_ref r1[1] = {{true, 0}};
  const weir_group_ref *refs[2] = {r0, r1};
  uint32_t out_calls[1] = {1};
  weir_group group = {.call_count = 2,
                      .in_count = 3,
                      .out_count = 1,
                      .calls = calls,
                      .refs = refs,
                      .in = t.in,
                      .out = &t.out,
                      .out_calls = out_calls};
  void *io[4] = {t.data[0], t.data[1], s->bias ? t.data[2] : NULL, want};
  bed_run_ref(&t.call, io);
  for (int64_t i = 0; i < t.out.elements; i++)
    if (want[i] < 0) want[i] = 0;
  io[3] = y;
  bed_run_group(bed_group("cpu.conv2d_gemm_fused"), &group, io, BED_SCRAMBLED);
  assert_memory_equal(y, want, bytes);
  free(y);
  free(want);
  setup_release(&t);
}

/* relu(conv + bias[oc, 1, 1] + residual) */
static void check_group(const shape *s) {
  setup t;
  setup_make(&t, s);
  size_t bytes = (size_t)t.out.elements * sizeof(float);
  float *y = bed_memory(bytes), *want = bed_memory(bytes);
  weir_operand add_in[2] = {t.product, t.in[3]};
  weir_operand residual_in[2] = {t.in[4], t.product};
  weir_call calls[4] = {t.call,
                        {.op = bed_op("add"),
                         .in = add_in,
                         .out = &t.product,
                         .in_count = 2,
                         .out_count = 1},
                        {.op = bed_op("add"),
                         .in = residual_in,
                         .out = &t.product,
                         .in_count = 2,
                         .out_count = 1},
                        {.op = bed_op("relu"),
                         .in = &t.product,
                         .out = &t.out,
                         .in_count = 1,
                         .out_count = 1}};
  weir_group_ref r0[3] = {{false, 0}, {false, 1}, {false, 2}};
  weir_group_ref r1[2] = {{true, 0}, {false, 3}};
  weir_group_ref r2[2] = {{false, 4}, {true, 1}}, r3[1] = {{true, 2}};
  const weir_group_ref *refs[4] = {r0, r1, r2, r3};
  uint32_t out_calls[1] = {3};
  weir_group group = {.call_count = 4,
                      .in_count = 5,
                      .out_count = 1,
                      .calls = calls,
                      .refs = refs,
                      .in = t.in,
                      .out = &t.out,
                      .out_calls = out_calls};
  void *io[6] = {t.data[0], t.data[1], t.data[2], t.data[3], t.data[4], y};
  void *alone[4] = {t.data[0], t.data[1], s->bias ? t.data[2] : NULL, want};
  int64_t plane = t.out.dims[2] * t.out.dims[3];
  bed_run_ref(&t.call, alone);
  for (int64_t i = 0; i < t.out.elements; i++) {
    float v = want[i] + t.data[3][i / plane % s->oc] + t.data[4][i];
    want[i] = v > 0 ? v : 0;
  }
  for (bed_order order = BED_SERIAL; order <= BED_SCRAMBLED; order++) {
    memset(y, 0xC5, bytes);
    bed_run_group(bed_group("cpu.conv2d_gemm_fused"), &group, io, order);
    assert_memory_equal(y, want, bytes);
  }
  free(y);
  free(want);
  setup_release(&t);
}

static void test_group(void **state) {
  (void)state;
  for (int i = 0; i < SHAPES; i++) {
    check_group(&shapes[i]);
    check_relu(&shapes[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_alone),
                                     cmocka_unit_test(test_group)};
  BED_RUN(tests);
}
