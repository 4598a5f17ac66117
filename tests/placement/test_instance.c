/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "placement/bench/instance.h"
#include "tests/check.h"

static const weir_instance_options plain = {0};

static weir_place_problem *read_text(const char *text) {
  weir_error err = WEIR_ERROR_INIT;
  weir_place_problem *p = NULL;
  assert_ok(weir_instance_read(weir_allocator_system(), weir_sv_from(text), "x",
                               &plain, &p, &err),
            &err);
  return p;
}

/* ---- dag-bench: b and c after a; the edges come before the tasks. */

static const char dagbench[] =
    "{\"name\": \"x\", \"network\": {\n"
    "  \"nodes\": [{\"name\": \"fast\", \"speed\": 4.0},\n"
    "            {\"name\": \"slow\", \"speed\": 0.5}],\n"
    "  \"edges\": [{\"source\": \"fast\", \"target\": \"fast\", \"speed\": "
    "1e9},\n"
    "            {\"source\": \"slow\", \"target\": \"fast\", \"speed\": "
    "100}]},"
    "\n"
    " \"task_graph\": {\n"
    "  \"dependencies\": [{\"source\": \"a\", \"target\": \"b\", \"size\": "
    "2},\n"
    "                   {\"source\": \"a\", \"target\": \"\\u0063\", \"size\": "
    "0.5}],\n"
    "  \"tasks\": [{\"name\": \"c\", \"cost\": 3}, {\"name\": \"b\", \"cost\": "
    "1.5},\n"
    "            {\"cost\": 8, \"name\": \"a\", \"more\": [1, {}]}]}}\n";

static void a_dagbench_file_is_read(void **state) {
  (void)state;
  weir_place_problem *p = read_text(dagbench);
  assert_int_equal(p->node_count, 3);
  assert_int_equal(p->device_count, 2);
  assert_int_equal(p->class_count, 2);
  assert_true(weir_sv_is(p->names[0], "a"));
  assert_int_equal(weir_place_cost(p, 0, 0), 2000000);
  assert_int_equal(weir_place_cost(p, 0, 1), 16000000);
  assert_int_equal(p->tensor_count, 2); /* one per dependency */
  assert_int_equal(p->tensor_bytes[0], 2000);
  assert_int_equal(p->tensor_bytes[1], 500);
  const weir_place_link *l = &p->links[p->link_of[1]];
  assert_int_equal(p->link_of[1], p->link_of[2]); /* both ways */
  assert_false(l->exclusive);
  assert_int_equal(weir_place_copy_ns(l, 2000), 20000);
  weir_place_problem_release(p);
}

/* ---- dnn-partitioning */

static const char dnn[] =
    "{\"maxSizePerFPGA\": 1000.0, \"maxFPGAs\": 2, \"maxCPUs\": 1,\n"
    " \"nodes\": [\n"
    "  {\"id\": 7, \"supportedOnFpga\": 1, \"cpuLatency\": 10.0, "
    "\"fpgaLatency\": 1.0, \"isBackwardNode\": 0, \"colorClass\": 5, "
    "\"size\": 600},\n"
    "  {\"id\": 3, \"supportedOnFpga\": false, \"cpuLatency\": 2, "
    "\"fpgaLatency\": 0, \"colorClass\": -9, \"size\": 1},\n"
    "  {\"id\": 9, \"supportedOnFpga\": true, \"cpuLatency\": 30, "
    "\"fpgaLatency\": 3, \"colorClass\": 5, \"size\": 400}],\n"
    " \"edges\": [{\"sourceId\": 3, \"destId\": 7, \"cost\": 0.25},\n"
    "  {\"sourceId\": 7, \"destId\": 9, \"cost\": 0.5},\n"
    "  {\"sourceId\": 3, \"destId\": 9, \"cost\": 0.25}]}\n";

static void a_dnn_file_is_read(void **state) {
  (void)state;
  weir_place_problem *p = read_text(dnn);
  assert_int_equal(p->node_count, 3);
  assert_int_equal(p->device_count, 3);
  assert_true(weir_sv_is(p->names[0], "3"));
  assert_true(weir_sv_is(p->names[1], "7"));
  assert_int_equal(weir_place_cost(p, 0, 0), 2000000);
  assert_true(weir_place_cost(p, 0, 1) == WEIR_PLACE_NO_KERNEL);
  assert_int_equal(weir_place_cost(p, 1, 2), 1000000);
  assert_int_equal(p->group[1], p->group[2]);
  assert_int_not_equal(p->group[0], p->group[1]);
  assert_int_equal(p->resident_bytes[1], 600);
  assert_int_equal(p->devices[1].memory_bytes, 1000);
  assert_true(p->devices[0].memory_bytes == INT64_MAX);
  assert_true(p->no_copy_load[0]);
  assert_false(p->no_copy_load[1]);
  assert_int_equal(p->tensor_count, 2); /* one per node that has uses */
  const weir_place_link *l = &p->links[p->link_of[1]];
  assert_int_equal(weir_place_copy_ns(l, p->tensor_bytes[0]), 250000);
  weir_place_problem_release(p);
}

/* ---- Refusals, and their places */

#define TASKS(t) "{\"task_graph\": {\"tasks\": [" t "],"
#define DEPS(d) "\"dependencies\": [" d "]},"
#define NET(n, e) "\"network\": {\"nodes\": [" n "], \"edges\": [" e "]}}"
#define ONE "{\"name\": \"m\", \"speed\": 1}"
#define A "{\"name\": \"a\", \"cost\": 1}"
#define B "{\"name\": \"b\", \"cost\": 1}"
#define DNN(n, e)                                                       \
  "{\"maxSizePerFPGA\": 9, \"maxFPGAs\": 1, \"maxCPUs\": 1, \"nodes\":" \
  "\n[" n "], \"edges\":\n[" e "]}"
#define N(id) "{\"id\": " id ", \"cpuLatency\": 1, \"fpgaLatency\": 1}"

static const struct {
  const char *text, *id, *says;
  uint32_t line, col;
} refused[] = {
    {"{}", "W3015", "neither", 1, 1},
    {"[]", "W4013", "", 1, 1},
    {"{\"task_graph\": 3}", "W3015", "must be an object", 1, 16},
    {"{\"task_graph\": {", "W4013", "", 1, 17},
    {TASKS("") DEPS("") NET("", ""), "W3015", "no machine", 1, 1},
    {TASKS("\n{\"name\": \"a\"}") DEPS("") NET(ONE, ""), "W3015", "a name and",
     2, 1},
    {TASKS("\n{\"name\": 5}") DEPS("") NET(ONE, ""), "W3015", "must be a", 2,
     10},
    {TASKS("\n{\"cost\": -1}") DEPS("") NET(ONE, ""), "W3015", "cost is -1", 2,
     10},
    {TASKS("7") DEPS("") NET(ONE, ""), "W3015", "must hold objects", 1, 27},
    {TASKS(A ",\n " A) DEPS("") NET(ONE, ""), "W3015", "second node", 2, 2},
    {TASKS(A) DEPS("\n{\"source\": \"a\", \"target\": \"z\"}") NET(ONE, ""),
     "W3015", "no node is called z", 2, 1},
    {TASKS(A) DEPS("\n{\"source\": \"a\"}") NET(ONE, ""), "W3015",
     "without both", 2, 1},
    {TASKS(A ",\n" B) DEPS("{\"source\": \"a\", \"target\": \"b\"},"
                           "{\"source\": \"b\", \"target\": \"a\"}")
         NET(ONE, ""),
     "W3015", "cycle", 1, 0},
    {TASKS(A) DEPS("{\"source\": \"a\", \"target\": \"a\"}") NET(ONE, ""),
     "W3015", "cycle", 1, 27},
    {TASKS(A) DEPS("") NET("\n{\"name\": \"m\", \"speed\": 0}", ""), "W3015",
     "speed is 0", 2, 24},
    {TASKS(A) DEPS("") NET(ONE ",\n" ONE, ""), "W3015", "second machine", 2, 1},
    {TASKS(A) DEPS("")
         NET(ONE, "\n{\"source\": \"m\", \"target\": \"q\", \"speed\": 1}"),
     "W3015", "no machine is called q", 2, 1},
    {TASKS(A) DEPS("") NET(ONE, "\n{\"source\": \"m\"}"), "W3015",
     "source, target", 2, 1},
    {TASKS("\n{\"name\": \"a\", \"cost\": 1e12}") DEPS("")
         NET("{\"name\": \"m\", \"speed\": 1e-6}", ""),
     "W3015", "3 years", 2, 1},
    {"{\"nodes\": []}", "W3015", "are needed", 1, 13},
    {"{\"nodes\": [], \"maxFPGAs\": 2000}", "W3015", "maxFPGAs is 2000", 1, 27},
    {"{\"nodes\": [], \"maxFPGAs\": 1.5}", "W3015", "an integer", 1, 27},
    {DNN("{\"id\": 1.5}", ""), "W3015", "id must be an integer", 2, 9},
    {DNN("{\"id\": 1}", ""), "W3015", "cpuLatency and", 2, 2},
    {DNN("{\"supportedOnFpga\": 2}", ""), "W3015", "0 or 1", 2, 22},
    {DNN(N("1") "," N("1"), ""), "W3015", "second node is called 1", 2, 47},
    {DNN(N("1"), "{\"sourceId\": 1, \"destId\": 2, \"cost\": 1}"), "W3015",
     "no node is called 2", 3, 2},
    {DNN(N("1"), "{\"sourceId\": 1, \"destId\": 1}"), "W3015", "a cost", 3, 2},
    {DNN(N("1") "," N("2") "," N("3"),
         "{\"sourceId\": 1, \"destId\": 2, \"cost\": 1},"
         "{\"sourceId\": 1, \"destId\": 3, \"cost\": 2}"),
     "W3015", "differs", 3, 42},
    {DNN("{\"id\": 1, \"cpuLatency\": 1, \"fpgaLatency\": 1, \"size\": 1e18},"
         "\n{\"id\": 2, \"cpuLatency\": 1, \"fpgaLatency\": 1, \"size\": 1e18}",
         ""),
     "W3015", "1e18 bytes", 3, 1},
};

static void bad_files_are_refused_with_their_place(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_place_problem *p = NULL;
    weir_status s = weir_instance_read(weir_allocator_system(),
                                       weir_sv_from(refused[i].text), "f.json",
                                       &plain, &p, &err);
    if (s == WEIR_OK || strcmp(err.id, refused[i].id) != 0 ||
        strstr(err.message, refused[i].says) == NULL ||
        strcmp(err.file, "f.json") != 0 || err.line != refused[i].line ||
        (refused[i].col != 0 && err.col != refused[i].col))
      fail_msg("%s\n%s %s:%u:%u %s", refused[i].text, err.id, err.file,
               err.line, err.col, err.message);
    assert_null(p);
  }
}

static void a_cut_file_never_reads(void **state) {
  (void)state;
  const char *const texts[] = {dagbench, dnn};
  for (int i = 0; i < 2; i++)
    for (size_t cut = 0; cut + 2 < strlen(texts[i]); cut++) {
      weir_error err = WEIR_ERROR_INIT;
      weir_place_problem *p = NULL;
      assert_true(weir_instance_read(weir_allocator_system(),
                                     (weir_sv){texts[i], cut}, "x", &plain, &p,
                                     &err) != WEIR_OK);
      assert_null(p);
    }
}

/* ---- Faults */

static weir_status read_both(const weir_allocator *a, weir_error *err) {
  const char *const texts[] = {dagbench, dnn};
  weir_status s = WEIR_OK;
  for (int i = 0; i < 2 && s == WEIR_OK; i++) {
    weir_place_problem *p = NULL;
    s = weir_instance_read(a, weir_sv_from(texts[i]), "x", &plain, &p, err);
    weir_place_problem_release(p);
  }
  return s;
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  weir_counted_allocator c;
  for (int forever = 0; forever < 2; forever++)
    for (uint64_t k = 1;; k++) {
      weir_error err = WEIR_ERROR_INIT;
      weir_counted_allocator_init(&c, NULL);
      c.fail_at = k;
      c.fail_forever = forever != 0;
      weir_status s = read_both(&c.base, &err);
      assert_int_equal(atomic_load(&c.live_bytes), 0);
      if (s == WEIR_OK) break;
      assert_string_equal(err.id, "W6001");
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_dagbench_file_is_read),
      cmocka_unit_test(a_dnn_file_is_read),
      cmocka_unit_test(bad_files_are_refused_with_their_place),
      cmocka_unit_test(a_cut_file_never_reads),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
