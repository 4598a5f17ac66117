/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tools/tf_config.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/mix.h"
#include "tests/check.h"
#include "tests/counted.h"

/* TF_CONFIG: what is read, what is refused and where, and any bytes at all. */

static const char kWhole[] =
    "{\"cluster\": {\"worker\": [\"c:1\", \"d:1\"], \"chief\": [\"a:1\"],\n"
    "  \"ps\": [\"b:1\"], \"evaluator\": [\"e:1\"]},\n"
    " \"task\": {\"type\": \"worker\", \"index\": 1, \"trial\": \"3\"},\n"
    " \"environment\": \"cloud\", \"job\": {\"a\": [1, {}]}}";

static void the_whole_is_read(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_tools_tf_config *it = NULL;
  assert_ok(weir_tools_tf_config_read(kWhole, &it, &err), &err);
  assert_string_equal(it->cluster, "ps=1,worker=2");
  assert_int_equal(it->address_count, 3);
  assert_string_equal(it->addresses[0], "b:1");
  assert_string_equal(it->addresses[2], "d:1");
  assert_string_equal(it->role, "worker");
  assert_int_equal(it->index, 1);
  assert_true(it->has_chief);
  assert_string_equal(weir_tools_tf_config_address(it, "worker", 1), "d:1");
  assert_string_equal(weir_tools_tf_config_address(it, "ps", 0), "b:1");
  assert_null(weir_tools_tf_config_address(it, "ps", 1));
  assert_null(weir_tools_tf_config_address(it, "nobody", 0));
  weir_tools_tf_config_release(it);
  weir_tools_tf_config_release(NULL);
}

static void a_process_may_be_none_of_them(void **state) {
  (void)state;
  static const char *const texts[] = {
      "{\"cluster\": {\"ps\": [\"[::1]:1\"]}}",
      "{\"task\": {}, \"cluster\": {\"ps\": [\"b:1\"]}}"};
  for (size_t i = 0; i < 2; i++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_tools_tf_config *it = NULL;
    assert_ok(weir_tools_tf_config_read(texts[i], &it, &err), &err);
    assert_null(it->role);
    assert_string_equal(it->cluster, "ps=1");
    weir_tools_tf_config_release(it);
  }
}

#define CLUSTER "\"cluster\": {\"worker\": [\"a:1\"]}"

static void mistakes_have_a_place(void **state) {
  (void)state;
  static const struct {
    const char *text;
    uint32_t line, column; /* 0: it is of the whole */
    const char *says;
  } cases[] = {
      {"", 0, 0, "is no JSON"},
      {"{\"cluster\": ", 0, 0, "is no JSON"},
      {"[]", 1, 1, "is to be an object"},
      {"{}", 0, 0, "has no \"cluster\""},
      {"{" CLUSTER "} 1", 0, 0, "is no JSON"},
      {"{\"cluster\": 3}", 1, 13, "\"cluster\" is to be an object"},
      {"{\"cluster\": {}}", 0, 0, "no ps and no worker"},
      {"{\"cluster\": {\"chief\": [\"a:1\"]}}", 0, 0, "nobody computes"},
      {"{\"cluster\":\n {\"boss\": [\"a:1\"]}}", 2, 3, "\"boss\" is no role"},
      {"{\"cluster\": {\"master\": [\"a:1\"]}}", 1, 14, "is no role"},
      {"{\"cluster\": {\"worker\": \"a:1\"}}", 1, 24, "is to be an array"},
      {"{\"cluster\": {\"worker\": {\"0\": \"a:1\"}}}", 1, 24, "an array"},
      {"{\"cluster\": {\"worker\": [1]}}", 1, 25, "is to be a string"},
      {"{\"cluster\": {\"worker\": [\"a\"]}}", 1, 25, "HOST:PORT"},
      {"{\"cluster\": {\"worker\": [\"a:\"]}}", 1, 25, "HOST:PORT"},
      {"{\"cluster\": {\"worker\": [\":1\"]}}", 1, 25, "HOST:PORT"},
      {"{\"cluster\": {\"worker\": [\"a:1x\"]}}", 1, 25, "HOST:PORT"},
      {"{\"cluster\": {\"worker\": [\"a\\u0000:1\"]}}", 1, 25, "HOST:PORT"},
      {"{\"cluster\": {\"worker\": []}}", 1, 25, "without processes"},
      {"{\"cluster\": {\"worker\": [\"a:1\", \"a:1\"]}}", 1, 32, "are at a:1"},
      {"{\"cluster\": {\"ps\": [\"a:1\"], \"worker\": [\"a:1\"]}}", 1, 40,
       "two processes"},
      {"{\"cluster\": {\"ps\": [\"a:1\"], \"ps\": [\"b:1\"]}}", 1, 29, "twice"},
      {"{\"cluster\": {\"chief\": [\"a:1\", \"b:1\"]}}", 1, 36, "one chief"},
      {"{" CLUSTER ", " CLUSTER "}", 1, 34, "\"cluster\" stands twice"},
      {"{" CLUSTER ", \"sparseCluster\": {}}", 1, 34, "come and go"},
      {"{" CLUSTER ", \"task\": 7}", 1, 42, "\"task\" is to be an object"},
      {"{" CLUSTER ", \"task\": {\"type\": \"boss\"}}", 1, 51, "no role"},
      {"{" CLUSTER ", \"task\": {\"index\": 0}}", 1, 53, "no type"},
      {"{" CLUSTER ", \"task\": {\"type\": \"worker\", \"index\": \"0\"}}", 1,
       70, "is to be a number"},
      {"{" CLUSTER ", \"task\": {\"type\": \"worker\", \"index\": 0.5}}", 1, 70,
       "whole number"},
      {"{" CLUSTER ", \"task\": {\"type\": \"worker\", \"index\": -1}}", 1, 70,
       "whole number"},
      {"{" CLUSTER ", \"task\": {\"type\": \"worker\", \"index\": 1}}", 1, 70,
       "this process is worker 1"},
      {"{" CLUSTER ", \"task\": {\"type\": \"ps\"}}", 1, 51, "has none"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_tools_tf_config *it = NULL;
    assert_error(weir_tools_tf_config_read(cases[i].text, &it, &err), &err,
                 "W7081");
    assert_null(it);
    if (strstr(err.message, cases[i].says) == NULL ||
        err.line != cases[i].line || err.col != cases[i].column)
      fail_msg("%s: %u:%u %s", cases[i].text, err.line, err.col, err.message);
  }
}

/* Parts of it, and it with bytes changed: read or refused, and no more. */
static void any_bytes_are_read_or_refused(void **state) {
  (void)state;
  enum { ROUNDS = 20000 };
  char text[sizeof kWhole];
  uint64_t seed = 7;
  uint32_t refused = 0;
  for (size_t round = 0; round < ROUNDS; round++) {
    memcpy(text, kWhole, sizeof kWhole);
    if (round < sizeof kWhole) {
      text[round] = '\0';
    } else {
      for (int k = 0; k < 3; k++) {
        seed = weir_mix(seed + round);
        text[seed % (sizeof kWhole - 1)] =
            seed & 256 ? kWhole[(seed >> 9) % (sizeof kWhole - 1)]
                       : (char)(seed >> 40);
      }
    }
    weir_error err = WEIR_ERROR_INIT;
    weir_tools_tf_config *it = NULL;
    if (weir_tools_tf_config_read(text, &it, &err) != WEIR_OK) {
      assert_string_equal(err.id, "W7081");
      refused++;
    } else {
      assert_true(it->address_count > 0);
    }
    weir_tools_tf_config_release(it);
  }
  assert_in_range(refused, sizeof kWhole - 1, ROUNDS - 1);
}

static void no_lack_of_memory_leaves_anything(void **state) {
  (void)state;
  for (int forever = 0; forever < 2; forever++) {
    weir_counted_allocator memory;
    weir_status s = WEIR_RESOURCE_EXHAUSTED;
    for (uint64_t at = 1; s != WEIR_OK; at++) {
      weir_error err = WEIR_ERROR_INIT;
      weir_tools_tf_config *it = NULL;
      weir_counted_allocator_init(&memory, NULL);
      memory.fail_at = at;
      memory.fail_forever = forever;
      s = weir_tf_config_read(&memory.base, kWhole, &it, &err);
      if (s != WEIR_OK) assert_string_equal(err.id, "W6001");
      weir_tools_tf_config_release(it);
      assert_int_equal(memory.live_blocks, 0);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_whole_is_read),
      cmocka_unit_test(a_process_may_be_none_of_them),
      cmocka_unit_test(mistakes_have_a_place),
      cmocka_unit_test(any_bytes_are_read_or_refused),
      cmocka_unit_test(no_lack_of_memory_leaves_anything),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
