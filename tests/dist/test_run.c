/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/dist/engines.h"

/* Three engines compute one graph, as one process does. */

static void outputs_are_those_of_one_process(void **state) {
  (void)state;
  static const char *const graphs[] = {"lenet", "mlp_mesh", "matmul_mesh"};
  for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
    office o;
    office_open(&o, graphs[i], NULL, "round_robin", false);
    assert_true(office_crossings(&o) > 0);
    office_register(&o);
    for (uint64_t step = 0; step < 2; step++) {
      if (!office_step(&o, step, true))
        fail_msg("%s: %s %s", graphs[i], o.err.id, o.err.message);
      office_compare(&o, step);
    }
    office_close(&o);
  }
}

/* A step that is given up has changed nothing. */
static void training_commits_and_aborts(void **state) {
  (void)state;
  office o;
  office_open(&o, "mlp_train", NULL, "round_robin", true);
  assert_true(office_crossings(&o) > 0);
  office_register(&o);
  for (uint64_t step = 0; step < 4; step++) {
    bool commit = step != 2;
    if (!office_step(&o, step, commit))
      fail_msg("step %u: %s %s", (unsigned)step, o.err.id, o.err.message);
    if (commit) office_compare(&o, step);
  }
  office_compare_variables(&o);
  office_close(&o);
}

static const char kFails[] =
    "weir: 1\n"
    "inputs: {x: 'i32[4]'}\n"
    "nodes:\n"
    "  v: {op: var, attrs: {shape: [4], init: ones(), dtype: i32}, device: "
    "/job:ps}\n"
    "  d: {op: div, in: [8, x], device: '/job:worker/task:0'}\n"
    "  r: {op: add, in: [d, x], device: '/job:worker/task:1'}\n"
    "  u: assign(v, add(v, r))\n"
    "outputs: [r, u]\n";

static void a_node_that_fails_is_named(void **state) {
  (void)state;
  office o;
  office_open(&o, "fails", kFails, "search", false);
  office_register(&o);
  int32_t *x = o.feeds[0].tensor->data;
  for (uint64_t step = 0; step < 5; step++) {
    for (int k = 0; k < 4; k++) x[k] = step % 2 == 1 && k == 2 ? 0 : k + 1;
    bool ok = office_step(&o, step, true);
    assert_int_equal(ok, step % 2 == 0);
    if (ok) office_compare(&o, step);
    if (!ok) assert_string_equal(o.err.node, "d");
    o.err = (weir_error)WEIR_ERROR_INIT;
  }
  office_compare_variables(&o);
  office_close(&o);
}

/* A session may end before it did anything, and with a step prepared. */
static void a_session_may_end_at_any_time(void **state) {
  (void)state;
  office o;
  office_open(&o, "mlp", NULL, "round_robin", false);
  office_close(&o);
  office_open(&o, "mlp", NULL, "round_robin", false);
  office_register(&o);
  office_close(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(outputs_are_those_of_one_process),
      cmocka_unit_test(training_commits_and_aborts),
      cmocka_unit_test(a_node_that_fails_is_named),
      cmocka_unit_test(a_session_may_end_at_any_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
