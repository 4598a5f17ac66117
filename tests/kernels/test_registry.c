/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernels/kernel.h"
#include "kernels/registry.h"
#include "tests/check.h"

static bool is_ref(const weir_kernel_def *kernel) {
  return strncmp(kernel->name, "ref.", 4) == 0;
}

static void test_tables_are_whole(void **state) {
  const weir_registry *r = weir_builtin_registry();
  (void)state;
  assert_int_equal(r->op_count, weir_builtin_op_count);
  assert_int_equal(r->kernel_count, weir_builtin_kernel_count);
  assert_true(r->kernel_count > 0);
  assert_null(weir_builtin_kernels[weir_builtin_kernel_count]);
}

static void test_names_are_unique(void **state) {
  const weir_registry *r = weir_builtin_registry();
  (void)state;
  for (size_t i = 0; i < r->kernel_count; i++)
    for (size_t j = i + 1; j < r->kernel_count; j++)
      assert_string_not_equal(r->kernels[i]->name, r->kernels[j]->name);
}

static void test_ref_comes_last(void **state) {
  const weir_registry *r = weir_builtin_registry();
  bool seen = false;
  (void)state;
  for (size_t i = 0; i < r->kernel_count; i++) {
    if (seen) assert_true(is_ref(r->kernels[i]));
    seen = is_ref(r->kernels[i]);
  }
}

/* Each op that runs as a kernel has a reference one, for all its dtypes. */
static void test_every_op_has_ref(void **state) {
  const weir_registry *r = weir_builtin_registry();
  (void)state;
  for (size_t i = 0; i < r->op_count; i++) {
    const weir_op_def *op = r->ops[i];
    bool found = op->instr != WEIR_INSTR_KERNEL;
    for (size_t k = 0; k < r->kernel_count && !found; k++)
      found = is_ref(r->kernels[k]) && strcmp(r->kernels[k]->op, op->name) == 0;
    if (!found) fail_msg("%s has no reference kernel", op->name);
  }
}

/* One call of add on f32 scalars. */
static weir_operand scalar = {.dtype = WEIR_F32, .elements = 1};

static weir_call add_call(void) {
  static weir_operand in[2];
  const weir_op_def *op =
      weir_registry_find_op(weir_builtin_registry(), WEIR_SV_LIT("add"));
  in[0] = in[1] = scalar;
  assert_non_null(op);
  return (weir_call){
      .op = op, .in = in, .in_count = 2, .out = &scalar, .out_count = 1};
}

static bool never(const weir_call *call, weir_why *why) {
  return weir_no(why, "not today, %u inputs", call->in_count);
}

static const weir_kernel_def picky = {
    .op = "add", .name = "test.add", .types = WEIR_F32, .accepts = never};
static const weir_kernel_def whole = {
    .op = "add", .name = "test.whole", .types = WEIR_I32};
static const weir_kernel_def willing = {
    .op = "add", .name = "test.willing", .types = WEIR_F32};

static void test_choose_takes_first_and_says_why(void **state) {
  const weir_kernel_def *const kernels[] = {&picky, &whole, &willing};
  weir_registry chained = {
      .kernels = kernels, .kernel_count = 3, .next = weir_builtin_registry()};
  weir_call call = add_call();
  char why[200] = "";
  (void)state;
  const weir_kernel_def *got =
      weir_kernel_choose(&chained, &call, WEIR_CPU, false, why, sizeof why);
  assert_ptr_equal(got, &willing);
  assert_string_equal(
      why, "test.add: not today, 2 inputs; test.whole: not for f32; ");
  chained.next = NULL;
  assert_null(weir_kernel_choose(&chained, &call, WEIR_GPU, false, NULL, 0));
}

static void test_choose_ref(void **state) {
  const weir_kernel_def *const kernels[] = {&willing};
  weir_registry chained = {
      .kernels = kernels, .kernel_count = 1, .next = weir_builtin_registry()};
  weir_call call = add_call();
  (void)state;
  const weir_kernel_def *got =
      weir_kernel_choose(&chained, &call, WEIR_CPU, true, NULL, 0);
  assert_non_null(got);
  assert_string_equal(got->name, "ref.add");
}

/* A text that is too small is cut, never overrun. */
static void test_choose_cuts_reasons(void **state) {
  const weir_kernel_def *const kernels[] = {&picky, &willing};
  weir_registry own = {.kernels = kernels, .kernel_count = 2};
  weir_call call = add_call();
  char why[9] = "";
  (void)state;
  weir_kernel_choose(&own, &call, WEIR_CPU, false, why, sizeof why);
  assert_string_equal(why, "test.add");
}

static void test_layouts_are_refused(void **state) {
  weir_call call = add_call();
  weir_operand in[2] = {scalar, scalar};
  (void)state;
  in[1].layout = WEIR_LAYOUT_N16;
  call.in = in;
  assert_null(weir_kernel_choose(weir_builtin_registry(), &call, WEIR_CPU, true,
                                 NULL, 0));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tables_are_whole),
      cmocka_unit_test(test_names_are_unique),
      cmocka_unit_test(test_ref_comes_last),
      cmocka_unit_test(test_every_op_has_ref),
      cmocka_unit_test(test_choose_takes_first_and_says_why),
      cmocka_unit_test(test_choose_ref),
      cmocka_unit_test(test_choose_cuts_reasons),
      cmocka_unit_test(test_layouts_are_refused),
  };
  return cmocka_run_group_tests_name("kernels/registry", tests, NULL, NULL);
}
