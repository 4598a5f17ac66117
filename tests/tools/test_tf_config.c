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

/* Processes of a sparseCluster, and what they know in the end. */
static void a_sparse_cluster_follows_from_names(void **state) {
  (void)state;
  static const char kFirst[] =
      "{\"sparseCluster\": {\"worker\": {\"0\": \"j-ps-worker-0.n:2\"}, "
      "\"ps\": "
      "[\"j-ps-0.n:2\", \"j-ps-1.n:2\"]}, \"task\": {\"type\": \"worker\", "
      "\"index\": 0}}";
  static const char kLate[] =
      "{\"task\": {\"type\": \"worker\", \"index\": 12}, \"sparseCluster\": "
      "{\"ps\": [\"p:1\"], \"worker\": {\"12\": \"j-worker-12-worker-12:2\"}}}";
  static const char kServer[] =
      "{\"sparseCluster\": {\"worker\": {}, \"ps\": [\"j-ps-1.n:2\"]}, "
      "\"task\": {\"type\": \"ps\", \"index\": 1}}";
  static const struct {
    const char *text;
    uint32_t servers;
    const char *cluster, *addresses[3];
  } cases[] = {{kFirst,
                0,
                "ps=2,worker=1",
                {"j-ps-0.n:2", "j-ps-1.n:2", "j-ps-worker-0.n:2"}},
               {kFirst,
                2,
                "ps=2,worker=1",
                {"j-ps-0.n:2", "j-ps-1.n:2", "j-ps-worker-0.n:2"}},
               {kLate, 0, "ps=1,worker=1", {"p:1", "j-worker-12-worker-0:2"}},
               {kServer,
                2,
                "ps=2,worker=1",
                {"j-ps-0.n:2", "j-ps-1.n:2", "j-worker-0.n:2"}}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_tools_tf_config *it = NULL;
    assert_ok(weir_tools_tf_config_read(cases[i].text, &it, &err), &err);
    assert_true(it->sparse);
    assert_ok(weir_tools_tf_config_fill(it, cases[i].servers, &err), &err);
    assert_string_equal(it->cluster, cases[i].cluster);
    for (size_t k = 0; k < it->address_count; k++)
      assert_string_equal(it->addresses[k], cases[i].addresses[k]);
    weir_tools_tf_config_release(it);
  }
  static const struct {
    const char *text;
    uint32_t servers;
    const char *says;
  } bad[] = {
      {kFirst, 1, "--servers 1, and the sparseCluster has 2 ps"},
      {kServer, 0, "does not say how many there are"},
      {kServer, 1, "does not say how many there are"},
      {"{\"sparseCluster\": {\"ps\": [\"a:1\"]}, \"task\": {\"type\": \"ps\"}}",
       0, "at a:1, which has no -ps-0: the address of worker 0"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_tools_tf_config *it = NULL;
    assert_ok(weir_tools_tf_config_read(bad[i].text, &it, &err), &err);
    assert_error(weir_tools_tf_config_fill(it, bad[i].servers, &err), &err,
                 "W7081");
    if (strstr(err.message, bad[i].says) == NULL) fail_msg("%s", err.message);
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
      {"{" CLUSTER ", \"sparseCluster\": {}}", 1, 34, "and a \"sparseC"},
      {"{\"sparseCluster\": {}, " CLUSTER "}", 1, 23, "stands twice"},
      {"{\"sparseCluster\": {}}", 0, 0, "no use without \"task\""},
      {"{\"sparseCluster\": []}", 1, 19, "is to be an object"},
      {"{\"sparseCluster\": {\"chief\": []}}", 1, 20, "worker and ps"},
      {"{\"sparseCluster\": {\"ps\": {}}}", 1, 26, "is to be an array"},
      {"{\"sparseCluster\": {\"ps\": [1]}}", 1, 27, "is to be a string"},
      {"{\"sparseCluster\": {\"ps\": [\"a\"]}}", 1, 27, "HOST:PORT"},
      {"{\"sparseCluster\": {\"ps\": [], \"ps\": []}}", 1, 30, "twice"},
      {"{\"sparseCluster\": {\"worker\": [\"a:1\"]}}", 1, 30, "an object"},
      {"{\"sparseCluster\": {\"worker\": {\"x\": \"a:1\"}}}", 1, 31,
       "its index"},
      {"{\"sparseCluster\": {\"worker\": {\"0\": \"a:1\", \"1\": \"b:1\"}}}", 1,
       43, "one worker"},
      {"{\"task\": {\"type\": \"chief\"}, \"sparseCluster\": {}}", 1, 19,
       "worker 0 leads"},
      {"{\"task\": {\"type\": \"ps\"}, \"sparseCluster\": {}}", 1, 19,
       "this ps alone"},
      {"{\"task\": {\"type\": \"worker\"}, \"sparseCluster\": {}}", 1, 19,
       "not name this worker"},
      {"{\"task\": {\"type\": \"worker\"}, \"sparseCluster\": {\"worker\": "
       "{\"0\": \"a:1\"}}}",
       1, 19, "names no ps"},
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
      cmocka_unit_test(a_sparse_cluster_follows_from_names),
      cmocka_unit_test(a_process_may_be_none_of_them),
      cmocka_unit_test(mistakes_have_a_place),
      cmocka_unit_test(any_bytes_are_read_or_refused),
      cmocka_unit_test(no_lack_of_memory_leaves_anything),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
