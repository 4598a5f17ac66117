/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "runtime/weir.h"
#include "tests/check.h"

/* A program's view of its runs: statistics, traces, predictions, trained
 * variables, facts. */

static const char kText[] =
    "weir: 1\n"
    "dims: [n]\n"
    "inputs: {x: 'f32[n]', label: 'i64[n]'}\n"
    "nodes:\n"
    "  a: var([], init=ones())\n"
    "  still: var([2], trainable=false, init=ones())\n"
    "  seen: state([3])\n"
    "  line: add(mul(x, a), reduce_sum(still))\n"
    "  loss: mean(square(sub(line, cast(label, f32))))\n"
    "outputs: [line]\n"
    "data:\n"
    "  few: {source: memory, values: {x: [0, 1, 2, 3, 4], "
    "label: [1, 0, 1, 0, 1]}, batch: 2, columns: {label: {dtype: i64}}}\n"
    "train: {minimize: loss, optimizer: sgd(lr=0.1), steps: 1, data: few}\n";

static weir_runtime *runtime;
static weir_graph *graph;
static weir_session *session;

static int setup(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_status s = weir_runtime_create(NULL, &runtime, &err);
  if (s == WEIR_OK)
    s = weir_graph_load_buffer(runtime, kText, sizeof kText - 1, "g", NULL,
                               &graph, &err);
  if (s == WEIR_OK)
    s = weir_session_create(runtime, graph, NULL, &session, &err);
  if (s != WEIR_OK) print_error("%s %s\n", err.id, err.message);
  return s != WEIR_OK;
}

static int teardown(void **state) {
  (void)state;
  weir_session_release(session);
  weir_graph_release(graph);
  weir_runtime_release(runtime);
  return 0;
}

static bool is(weir_text text, const char *want) {
  return text.size == strlen(want) && memcmp(text.data, want, text.size) == 0;
}

static void test_variables(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  const struct {
    const char *name, *type;
    bool trained;
  } want[] = {{"a", "f32[]", true},
              {"still", "f32[2]", false},
              {"seen", "f32[3]", false}};
  weir_variable_desc v = {.struct_size = sizeof v};
  assert_int_equal(weir_session_variable_count(session), 3);
  for (size_t i = 0; i < 3; i++) {
    assert_ok(weir_session_variable_at(session, i, &v, &err), &err);
    assert_true(is(v.name, want[i].name) && is(v.home, ""));
    assert_string_equal(v.type, want[i].type);
    assert_int_equal(v.trained, want[i].trained);
    assert_int_equal(v.dtype, WEIR_F32);
  }
  assert_int_equal(v.rank, 1);
  assert_int_equal(v.dims[0], 3);
  assert_int_equal(v.bytes, 12);
}

typedef struct text {
  char data[65536];
  size_t size;
} text;

static bool append(void *self, const char *data, size_t size) {
  text *t = self;
  if (t->size + size >= sizeof t->data) return false;
  memcpy(t->data + t->size, data, size);
  t->size += size;
  t->data[t->size] = '\0';
  return true;
}

static void test_stats_and_trace(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  const int64_t dims[] = {4};
  weir_tensor *x = NULL;
  weir_bound *bound = NULL;
  weir_trace *trace = NULL;
  weir_run_stats stats = {.struct_size = sizeof stats};
  weir_fetch y = WEIR_FETCH("line");
  static text out;
  assert_ok(weir_tensor_create(runtime, WEIR_F32, 1, dims, &x, &err), &err);
  memset(weir_tensor_mutable_data(x), 0, 16);
  weir_feed feed = WEIR_FEED("x", x);
  weir_run_request request = WEIR_RUN_REQUEST(&feed, 1, &y, 1);
  assert_ok(weir_session_bind(session, &request, &bound, &err), &err);
  assert_ok(weir_bound_stats(bound, &stats, &err), &err);
  assert_true(stats.nodes >= 3 && stats.instructions > 0);
  assert_true(stats.bytes > 0);
  assert_ok(weir_trace_create(runtime, 64, &trace, &err), &err);
  weir_run_opts opts = {.struct_size = sizeof opts, .trace = trace};
  assert_ok(weir_bound_run(bound, &opts, &err), &err);
  assert_true(weir_trace_write(trace, append, &out));
  assert_non_null(strstr(out.data, "line"));
  weir_trace_release(trace);
  weir_bound_release(bound);
  weir_tensor_release(y.tensor);
  weir_tensor_release(x);
}

typedef struct seen {
  int64_t rows;
  uint64_t last;
  int batches, stop;
} seen;

static bool on_batch(void *self, const weir_prediction *p) {
  seen *s = self;
  const float *line = weir_tensor_data(p->outputs[0]);
  assert_non_null(p->labels);
  for (int64_t i = 0; i < p->rows; i++)
    assert_true(line[i] == (float)(p->first + (uint64_t)i) + 2);
  s->rows += p->rows;
  s->last = p->first;
  return ++s->batches != s->stop;
}

static void test_predict(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  seen s = {0};
  weir_predict_opts opts = {
      .struct_size = sizeof opts, .data = "few", .batch = on_batch, .self = &s};
  assert_ok(weir_session_predict(session, &opts, &err), &err);
  assert_int_equal(s.rows, 5);
  assert_int_equal(s.batches, 3);
  assert_int_equal(s.last, 4);
  s = (seen){.stop = 1};
  assert_error(weir_session_predict(session, &opts, &err), &err, "W5009");
  assert_int_equal(s.batches, 1);
  s = (seen){0};
  opts.take = 3;
  assert_ok(weir_session_predict(session, &opts, &err), &err);
  assert_int_equal(s.rows, 3);
  opts.data = "nobody";
  assert_error(weir_session_predict(session, &opts, &err), &err, "W4023");
}

static void test_facts(void **state) {
  (void)state;
  const char *name;
  char value[256];
  size_t count = 0;
  bool version = false;
  while (weir_fact(count, &name, value, sizeof value)) {
    assert_true(name[0] != '\0');
    version |=
        strcmp(name, "version") == 0 && strcmp(value, weir_version_text()) == 0;
    count++;
  }
  assert_true(version && count >= 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_variables), cmocka_unit_test(test_stats_and_trace),
      cmocka_unit_test(test_predict), cmocka_unit_test(test_facts)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
