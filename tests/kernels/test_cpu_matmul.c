/* SPDX-License-Identifier: Apache-2.0 */
/* cpu.matmul against the reference kernel, plain, packed and with followers;
 * blocks out of order on three workers must give the same bits. */
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/bed.h"

typedef struct problem {
  int64_t batch, m, n, k;
  bool a_t, b_t, b_batched;
} problem;

static const problem problems[] = {
    {1, 1, 1, 1, false, false, false},     {1, 4, 4, 4, false, true, false},
    {1, 1, 120, 400, false, true, false},  {1, 64, 84, 120, true, false, false},
    {1, 200, 33, 70, true, true, false},   {3, 17, 9, 31, false, false, true},
    {3, 17, 9, 31, false, false, false},   {12, 64, 64, 32, false, true, true},
    {1, 8, 8, 9001, false, false, false},  {1, 5, 3, 8200, true, true, false},
    {1, 130, 650, 40, false, true, false}, {2, 3, 4, 0, false, false, true},
    {1, 300, 520, 65, false, false, false}};
enum { PROBLEMS = sizeof problems / sizeof problems[0] };

typedef struct setup {
  weir_operand in[4], product, out;
  weir_attr attrs[2];
  weir_call call;
  float *a, *b, *bias, *residual, *y, *want;
} setup;

static void setup_make(setup *s, const problem *p, bool constant) {
  int64_t a[3] = {p->batch, p->a_t ? p->k : p->m, p->a_t ? p->m : p->k};
  int64_t b[3] = {p->batch, p->b_t ? p->n : p->k, p->b_t ? p->k : p->n};
  int64_t y[3] = {p->batch, p->m, p->n};
  int skip = p->batch == 1, b_skip = !p->b_batched;
  memset(s, 0, sizeof *s);
  s->in[0] = bed_operand(WEIR_F32, 3 - skip, a + skip);
  s->in[1] = bed_operand(WEIR_F32, 3 - b_skip, b + b_skip);
  s->in[2] = bed_operand(WEIR_F32, 1, &p->n);
  s->out = s->product = s->in[3] = bed_operand(WEIR_F32, 3 - skip, y + skip);
  s->a = bed_numbers(s->in[0].elements, 1);
  s->b = bed_numbers(s->in[1].elements, 2);
  s->bias = bed_numbers(p->n, 3);
  s->residual = bed_numbers(s->out.elements, 4);
  s->y = bed_memory((size_t)s->out.elements * 4);
  s->want = bed_memory((size_t)s->out.elements * 4);
  if (constant) s->in[1].value = s->b;
  s->attrs[0] = (weir_attr){.kind = WEIR_ATTR_BOOL, .b = p->a_t};
  s->attrs[1] = (weir_attr){.kind = WEIR_ATTR_BOOL, .b = p->b_t};
  s->call = (weir_call){.op = bed_op("matmul"),
                        .attrs = s->attrs,
                        .in = s->in,
                        .out = &s->out,
                        .in_count = 2,
                        .out_count = 1};
}

static void setup_release(setup *s) {
  free(s->a);
  free(s->b);
  free(s->bias);
  free(s->residual);
  free(s->y);
  free(s->want);
}

static void check_plain(const problem *p, bool constant) {
  setup s;
  setup_make(&s, p, constant);
  void *io[3] = {s.a, s.b, s.want};
  bed_run_ref(&s.call, io);
  io[2] = s.y;
  bed_run_kernel(bed_kernel("cpu.matmul"), &s.call, io, BED_SERIAL);
  bed_check_near(s.y, s.want, s.out.elements, 1e-5f);
  memcpy(s.want, s.y, (size_t)s.out.elements * 4);
  bed_run_kernel(bed_kernel("cpu.matmul"), &s.call, io, BED_SCRAMBLED);
  assert_memory_equal(s.y, s.want, (size_t)s.out.elements * 4);
  setup_release(&s);
}

static void test_plain(void **state) {
  (void)state;
  for (int i = 0; i < PROBLEMS; i++) check_plain(&problems[i], false);
}

static void test_constant(void **state) {
  (void)state;
  for (int i = 0; i < PROBLEMS; i++) check_plain(&problems[i], true);
}

/* relu(a b + bias) + residual, a group of four, and by single kernels. */
static void check_group(const problem *p, bool constant) {
  setup s;
  setup_make(&s, p, constant);
  weir_operand product_bias[2] = {s.product, s.in[2]};
  weir_operand relu_in[1] = {s.product};
  weir_operand sum_in[2] = {s.in[3], s.product};
  weir_call calls[4] = {s.call,
                        {.op = bed_op("add"),
                         .in = product_bias,
                         .out = &s.product,
                         .in_count = 2,
                         .out_count = 1},
                        {.op = bed_op("relu"),
                         .in = relu_in,
                         .out = &s.product,
                         .in_count = 1,
                         .out_count = 1},
                        {.op = bed_op("add"),
                         .in = sum_in,
                         .out = &s.out,
                         .in_count = 2,
                         .out_count = 1}};
  weir_group_ref r0[2] = {{false, 0}, {false, 1}};
  weir_group_ref r1[2] = {{true, 0}, {false, 2}}, r2[1] = {{true, 1}};
  weir_group_ref r3[2] = {{false, 3}, {true, 2}};
  const weir_group_ref *refs[4] = {r0, r1, r2, r3};
  uint32_t out_calls[1] = {3};
  weir_group group = {.call_count = 4,
                      .in_count = 4,
                      .out_count = 1,
                      .calls = calls,
                      .refs = refs,
                      .in = s.in,
                      .out = &s.out,
                      .out_calls = out_calls};
  void *io[5] = {s.a, s.b, s.bias, s.residual, s.y};
  bed_run_group(bed_group("cpu.matmul_fused"), &group, io, BED_SERIAL);
  void *product[3] = {s.a, s.b, s.want};
  bed_run_kernel(bed_kernel("cpu.matmul"), &s.call, product, BED_SERIAL);
  for (int64_t i = 0; i < s.out.elements; i++) {
    float v = s.want[i] + s.bias[i % p->n];
    s.want[i] = s.residual[i] + (v > 0 ? v : 0);
  }
  assert_memory_equal(s.y, s.want, (size_t)s.out.elements * 4);
  bed_run_group(bed_group("cpu.matmul_fused"), &group, io, BED_SCRAMBLED);
  assert_memory_equal(s.y, s.want, (size_t)s.out.elements * 4);
  setup_release(&s);
}

static void test_group(void **state) {
  (void)state;
  for (int i = 0; i < PROBLEMS; i++) {
    check_group(&problems[i], false);
    check_group(&problems[i], true);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_plain),
                                     cmocka_unit_test(test_constant),
                                     cmocka_unit_test(test_group)};
  BED_RUN(tests);
}
