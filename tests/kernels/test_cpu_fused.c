/* SPDX-License-Identifier: Apache-2.0 */
/* Broadcasting and chains of cpu.fused and the single element-wise kernels. */
#include <stdlib.h>
#include <string.h>

#include "kernels/registry.h"
#include "tests/kernels/bed.h"

/* Operands of a three-operand chain: dims of the output, and for each operand
 * which dims it has (1) and which it is repeated over (0). */
typedef struct pattern {
  int rank;
  int64_t dims[4];
  int keep[3][4];
} pattern;

static const pattern patterns[] = {
    {0, {0}, {{0}, {0}, {0}}},
    {1, {7}, {{1}, {1}, {0}}},
    {1, {5000}, {{1}, {0}, {1}}},
    {2, {33, 10}, {{1, 1}, {0, 1}, {1, 0}}},
    {2, {10, 2000}, {{1, 1}, {0, 1}, {1, 0}}},
    {2, {3, 513}, {{0, 1}, {1, 0}, {0, 0}}},
    {3, {5, 6, 49}, {{1, 1, 1}, {0, 1, 0}, {1, 0, 1}}},
    {4, {2, 3, 4, 5}, {{1, 0, 1, 0}, {0, 1, 0, 1}, {1, 1, 1, 1}}},
    {4, {64, 6, 14, 14}, {{1, 1, 1, 1}, {0, 1, 0, 0}, {0, 0, 0, 0}}},
    {3, {0, 4, 5}, {{1, 1, 1}, {0, 1, 0}, {1, 0, 1}}},
    {2, {300, 400}, {{1, 1}, {0, 1}, {1, 1}}}};
enum { PATTERNS = sizeof patterns / sizeof patterns[0] };

static weir_operand operand(const pattern *p, int i) {
  int64_t dims[4];
  for (int d = 0; d < p->rank; d++) dims[d] = p->keep[i][d] ? p->dims[d] : 1;
  return bed_operand(WEIR_F32, p->rank, dims);
}

/* y = min(a + b, c) and its sum with a kept: two outputs, by single reference
 * kernels and by the group. */
static void check_chain(const pattern *p) {
  weir_operand in[3] = {operand(p, 0), operand(p, 1), operand(p, 2)};
  weir_operand full = bed_operand(WEIR_F32, p->rank, p->dims);
  /* The first call's operands must fill the output's shape between them. */
  for (int d = 0; d < p->rank; d++)
    if (!p->keep[0][d] && !p->keep[1][d]) in[0] = full;
  weir_operand out[2] = {full, full}, second[2] = {full, in[2]};
  weir_call calls[2] = {{.op = bed_op("add"),
                         .in = in,
                         .out = &out[0],
                         .in_count = 2,
                         .out_count = 1},
                        {.op = bed_op("mul"),
                         .in = second,
                         .out = &out[1],
                         .in_count = 2,
                         .out_count = 1}};
  weir_group_ref r0[2] = {{false, 0}, {false, 1}};
  weir_group_ref r1[2] = {{true, 0}, {false, 2}};
  const weir_group_ref *refs[2] = {r0, r1};
  uint32_t out_calls[2] = {0, 1};
  weir_group group = {.call_count = 2,
                      .in_count = 3,
                      .out_count = 2,
                      .calls = calls,
                      .refs = refs,
                      .in = in,
                      .out = out,
                      .out_calls = out_calls};
  size_t bytes = (size_t)full.elements * 4;
  float *x[3], *y[4];
  for (int i = 0; i < 3; i++) x[i] = bed_numbers(in[i].elements, 5 + i);
  for (int i = 0; i < 4; i++) y[i] = bed_memory(bytes);
  bed_run_ref(&calls[0], (void *[]){x[0], x[1], y[0]});
  bed_run_ref(&calls[1], (void *[]){y[0], x[2], y[1]});
  for (int order = 0; order < 2; order++) {
    bed_run_group(bed_group("cpu.fused"), &group,
                  (void *[]){x[0], x[1], x[2], y[2], y[3]}, (bed_order)order);
    assert_memory_equal(y[2], y[0], bytes);
    assert_memory_equal(y[3], y[1], bytes);
    /* The product alone: the sum stays in scratch memory. */
    memset(y[3], 0, bytes);
    weir_group one = group;
    one.out_count = 1;
    one.out = &out[1];
    one.out_calls = &out_calls[1];
    bed_run_group(bed_group("cpu.fused"), &one,
                  (void *[]){x[0], x[1], x[2], y[3]}, (bed_order)order);
    assert_memory_equal(y[3], y[1], bytes);
    memset(y[2], 0, bytes);
    bed_run_kernel(bed_kernel("cpu.add"), &calls[0],
                   (void *[]){x[0], x[1], y[2]}, (bed_order)order);
    assert_memory_equal(y[2], y[0], bytes);
  }
  for (int i = 0; i < 3; i++) free(x[i]);
  for (int i = 0; i < 4; i++) free(y[i]);
}

static void test_patterns(void **state) {
  (void)state;
  for (int i = 0; i < PATTERNS; i++) check_chain(&patterns[i]);
}

/* Forty steps do not fit one program, and a refusal has words. */
static void test_refusals(void **state) {
  (void)state;
  int64_t dims[1] = {3};
  weir_operand x = bed_operand(WEIR_F32, 1, dims);
  weir_call calls[40];
  weir_group_ref refs[40][1];
  const weir_group_ref *rows[40];
  for (uint32_t c = 0; c < 40; c++) {
    calls[c] = (weir_call){.op = bed_op("relu"),
                           .in = &x,
                           .out = &x,
                           .in_count = 1,
                           .out_count = 1};
    refs[c][0] = (weir_group_ref){c > 0, c > 0 ? c - 1 : 0};
    rows[c] = refs[c];
  }
  uint32_t out_calls[1] = {39};
  weir_group group = {.call_count = 40,
                      .in_count = 1,
                      .out_count = 1,
                      .calls = calls,
                      .refs = rows,
                      .in = &x,
                      .out = &x,
                      .out_calls = out_calls};
  weir_why why = {{0}};
  assert_false(bed_group("cpu.fused")->accepts(&group, &why));
  assert_string_equal(why.text, "40 steps, at most 32");
  group.call_count = 30;
  out_calls[0] = 29;
  assert_true(bed_group("cpu.fused")->accepts(&group, &why));
}

/* One element takes the kernels without state. */
static void test_scalar(void **state) {
  (void)state;
  weir_operand x[2] = {bed_operand(WEIR_F32, 0, NULL),
                       bed_operand(WEIR_F32, 0, NULL)};
  weir_call call = {
      .op = bed_op("add"), .in = x, .out = x, .in_count = 2, .out_count = 1};
  const weir_kernel_def *k = weir_kernel_choose(weir_builtin_registry(), &call,
                                                WEIR_CPU, false, NULL, 0);
  assert_string_equal(k->name, "cpu.add.scalar");
  float a = 1.5f, b = 2.25f, y = 0;
  bed_run_kernel(k, &call, (void *[]){&a, &b, &y}, BED_SERIAL);
  assert_true(y == 3.75f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_patterns),
                                     cmocka_unit_test(test_refusals),
                                     cmocka_unit_test(test_scalar)};
  BED_RUN(tests);
}
