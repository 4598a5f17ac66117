/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/tools/tools.h"
#include "tests/api/host.h"

/* The canonical form when memory is short: every allocation fails in turn, once
 * and from then on; nothing is left. And text that does not go out. */

static const char source[] =
    "weir:   1\n"
    "inputs:\n"
    "    x:  'f32[ 2,3 ]'   # an input\n"
    "nodes:\n"
    "    y: &a relu( x )\n"
    "    z: {op: add, in: [ *a,y ],\n"
    "      after: [y]}  # behind\n"
    "x-text: |\n"
    "    free\n"
    "placement:\n"
    "- {match: '*'}\n";
static const char wanted[] =
    "weir: 1\n"
    "inputs:\n"
    "  x: \"f32[2, 3]\"     # an input\n"
    "nodes:\n"
    "  y: &a relu(x)\n"
    "  z: {op: add, in: [*a, y],\n"
    "    after: [y]}  # behind\n"
    "x-text: |\n"
    "    free\n"
    "placement:\n"
    "  - {match: \"*\"}\n";

typedef struct text {
  char data[1024];
  size_t size;
  bool full;
} text;

static bool keep(void *self, const char *data, size_t size) {
  text *t = self;
  if (t->full || t->size + size >= sizeof t->data) return false;
  memcpy(t->data + t->size, data, size);
  t->size += size;
  t->data[t->size] = '\0';
  return true;
}

static weir_status format(host *h, text *out, weir_error *err) {
  weir_allocator_hook hook = {sizeof hook, h, host_alloc, host_free};
  weir_runtime_opts opts = {
      .struct_size = sizeof opts, .threads = 1, .allocator = &hook};
  weir_runtime *runtime = NULL;
  weir_status s = weir_runtime_create(&opts, &runtime, err);
  if (s == WEIR_OK)
    s = weir_tools_fmt(runtime, "g", source, strlen(source), keep, out, err);
  weir_runtime_release(runtime);
  return s;
}

static void test_form(void **state) {
  (void)state;
  host h = {0};
  text out = {.size = 0};
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(format(&h, &out, &err), &err);
  assert_string_equal(out.data, wanted);
  assert_int_equal(h.live, 0);
}

static void each_fails(bool for_ever) {
  for (long k = 1;; k++) {
    host h = {.fail_at = k, .for_ever = for_ever};
    text out = {.size = 0};
    weir_error err = WEIR_ERROR_INIT;
    weir_status s = format(&h, &out, &err);
    assert_int_equal(h.live, 0);
    if (s == WEIR_OK) assert_string_equal(out.data, wanted);
    if (s == WEIR_OK && h.calls < k) {
      assert_true(k > 10);
      return;
    }
    if (s != WEIR_OK) {
      assert_string_equal(err.id, "W6001");
      assert_int_equal(out.size, 0);
    }
  }
}

static void test_each_allocation_fails(void **state) {
  (void)state;
  each_fails(false);
  each_fails(true);
}

static void test_full_disk(void **state) {
  (void)state;
  host h = {0};
  text out = {.full = true};
  weir_error err = WEIR_ERROR_INIT;
  assert_int_not_equal(format(&h, &out, &err), WEIR_OK);
  assert_string_equal(err.id, "W5009");
  assert_int_equal(h.live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_form), cmocka_unit_test(test_each_allocation_fails),
      cmocka_unit_test(test_full_disk)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
