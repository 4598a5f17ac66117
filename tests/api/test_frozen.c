/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/api/frozen/weir_0_1.h"
/* After the frozen header: it takes its status.h from there. */
#include "tests/check.h"

/* A program that was built with weir.h of version 0.1. It is linked twice:
 * against the library, and against one in which every public struct has grown.
 * It must get the same results, and no byte past its own structs may change. */

static const char kText[] =
    "weir: 1\n"
    "params: {a: 1, b: 1}\n"
    "dims: [n]\n"
    "inputs: {x: 'f32[n]', y: 'f32[n]'}\n"
    "nodes:\n"
    "  w: var([], init=zeros())\n"
    "  c: var([], init=zeros())\n"
    "  line: add(mul(x, w), c)\n"
    "  loss: mean(square(sub(line, y)))\n"
    "  sum: add(mul(x, a), mul(y, b))\n"
    "  s: state([])\n"
    "  seen: assign(s, reduce_sum(x))\n"
    "outputs: [line, sum]\n"
    "data:\n"
    "  train: {source: memory, values: {x: [0, 1, 2, 3], y: [1, 3, 5, 7]}, "
    "batch: 4}\n"
    "train:\n"
    "  minimize: loss\n"
    "  optimizer: momentum(lr=0.05, momentum=0.8)\n"
    "  steps: 200\n"
    "  eval: {data: train, metrics: [loss]}\n";

/* A struct with bytes behind it that nobody may write. */
#define GUARDED(type)         \
  struct {                    \
    type it;                  \
    unsigned char guard[256]; \
  }
#define GUARD(g)                                 \
  do {                                           \
    memset(&(g), 0xa5, sizeof(g));               \
    memset(&(g).it, 0, sizeof(g).it);            \
    (g).it.struct_size = (uint32_t)sizeof(g).it; \
  } while (0)
#define assert_guarded(g)                               \
  do {                                                  \
    assert_int_equal((g).it.struct_size, sizeof(g).it); \
    for (size_t i_ = 0; i_ < sizeof(g).guard; i_++)     \
      assert_int_equal((g).guard[i_], 0xa5);            \
  } while (0)

static weir_runtime *runtime;
static weir_graph *graph;
static size_t allocations;

static void *count_alloc(void *self, size_t bytes, size_t align) {
  ++*(size_t *)self;
  void *p = NULL;
  return posix_memalign(&p, align < sizeof p ? sizeof p : align, bytes) == 0
             ? p
             : NULL;
}

static void count_free(void *self, void *ptr) {
  (void)self;
  free(ptr);
}

static int setup(void **state) {
  (void)state;
  GUARDED(weir_error) err;
  GUARD(err);
  weir_allocator_hook hook = {.struct_size = sizeof hook,
                              .self = &allocations,
                              .alloc = count_alloc,
                              .free = count_free};
  weir_runtime_opts opts = {
      .struct_size = sizeof opts, .threads = 2, .allocator = &hook};
  /* An array: the second is found by the first one's size. */
  weir_param params[] = {{sizeof *params, "a", "2"},
                         {sizeof *params, "b", "10"}};
  weir_load_opts load = {
      .struct_size = sizeof load, .params = params, .param_count = 2};
  weir_status s = weir_runtime_create(&opts, &runtime, &err.it);
  if (s == WEIR_OK)
    s = weir_graph_load_buffer(runtime, kText, sizeof kText - 1, "g", &load,
                               &graph, &err.it);
  if (s != WEIR_OK) print_error("%s %s\n", err.it.id, err.it.message);
  return s != WEIR_OK || allocations == 0;
}

static int teardown(void **state) {
  (void)state;
  weir_graph_release(graph);
  weir_runtime_release(runtime);
  return 0;
}

static weir_tensor *vector(float a, float b) {
  const float data[] = {a, b};
  const int64_t dims[] = {2};
  weir_tensor_spec spec = WEIR_TENSOR_SPEC(WEIR_F32, 1, dims, sizeof data);
  weir_tensor *t = NULL;
  assert_int_equal(weir_tensor_from_data(runtime, &spec, data, &t, NULL),
                   WEIR_OK);
  return t;
}

static void test_descriptions(void **state) {
  (void)state;
  GUARDED(weir_io_desc) desc;
  GUARDED(weir_tensor_info) info;
  GUARDED(weir_error) err;
  GUARD(desc);
  GUARD(info);
  GUARD(err);
  assert_ok(weir_graph_io(graph, WEIR_INPUT, 1, &desc.it, &err.it), &err.it);
  assert_string_equal(desc.it.type, "f32[n]");
  assert_guarded(desc);
  weir_tensor *t = vector(1, 2);
  assert_ok(weir_tensor_desc(t, &info.it), &err.it);
  assert_int_equal(info.it.bytes, 8);
  assert_guarded(info);
  weir_tensor_release(t);
  assert_error(weir_graph_io(graph, WEIR_INPUT, 9, &desc.it, &err.it), &err.it,
               "W0004");
  assert_guarded(err);
}

static bool append(void *self, const char *data, size_t size) {
  (void)data;
  *(size_t *)self += size;
  return true;
}

static void test_list(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  const char *names[] = {"a", "b"};
  weir_tensor *t = vector(1, 2);
  const weir_tensor *tensors[] = {t, t};
  weir_tensor_list list = WEIR_TENSOR_LIST(2, names, tensors);
  size_t size = 0;
  assert_ok(weir_tensor_write_stream(runtime, WEIR_FILE_SAFETENSORS, &list,
                                     append, &size, &err),
            &err);
  assert_true(size > 16);
  weir_tensor_release(t);
}

static void on_value(void *self, const char *node, size_t size, uint32_t port,
                     const weir_tensor *tensor) {
  (void)node;
  (void)size;
  (void)port;
  (void)tensor;
  ++*(int *)self;
}

static void check_run(weir_session *session) {
  weir_error err = WEIR_ERROR_INIT;
  GUARDED(weir_error) own;
  GUARD(own);
  int seen = 0;
  const char *target = "seen", *dump = "sum";
  weir_tensor *x = vector(1, 2), *y = vector(3, 4);
  weir_feed feeds[] = {WEIR_FEED("x", x), WEIR_FEED("y", y)};
  weir_fetch fetches[] = {WEIR_FETCH("line"), WEIR_FETCH("sum")};
  fetches[1].error = &own.it;
  weir_run_request request = WEIR_RUN_REQUEST(feeds, 2, fetches, 2);
  weir_run_opts opts = {.struct_size = sizeof opts,
                        .dump = &dump,
                        .dump_count = 1,
                        .on_value = on_value,
                        .self = &seen};
  request.targets = &target;
  request.target_count = 1;
  assert_ok(weir_session_run(session, &request, &opts, &err), &err);
  const float *sum = weir_tensor_data(fetches[1].tensor);
  assert_true(sum[0] == 32 && sum[1] == 44);
  assert_int_equal(seen, 3); /* the fetches and the dump */
  assert_guarded(own);
  weir_tensor *s = NULL;
  assert_ok(weir_session_variable_get(session, "s", &s, &err), &err);
  assert_true(*(const float *)weir_tensor_data(s) == 3);
  weir_tensor_release(s);
  weir_bound *bound = NULL;
  GUARDED(weir_run_stats) stats;
  GUARD(stats);
  request.target_count = 0;
  for (int i = 0; i < 2; i++) weir_tensor_release(fetches[i].tensor);
  for (int i = 0; i < 2; i++) fetches[i].tensor = NULL;
  assert_ok(weir_session_bind(session, &request, &bound, &err), &err);
  ((float *)weir_tensor_mutable_data(x))[0] = 5;
  assert_ok(weir_bound_stats(bound, &stats.it, &err), &err);
  assert_true(stats.it.nodes > 0);
  assert_guarded(stats);
  assert_ok(weir_bound_run(bound, NULL, &err), &err);
  sum = weir_tensor_data(fetches[1].tensor);
  const float *line = weir_tensor_data(fetches[0].tensor);
  assert_true(sum[0] == 40 && line[0] == 0);
  weir_bound_release(bound);
  for (int i = 0; i < 2; i++) weir_tensor_release(fetches[i].tensor);
  /* An error of a feed. */
  feeds[1].name = "nobody";
  assert_error(weir_session_run(session, &request, NULL, &own.it), &own.it,
               "W4011");
  assert_guarded(own);
  weir_tensor_release(x);
  weir_tensor_release(y);
}

static void test_session(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_session *session = NULL;
  weir_session_opts opts = {.struct_size = sizeof opts, .no_fusion = true};
  assert_ok(weir_session_create(runtime, graph, &opts, &session, &err), &err);
  check_run(session);
  weir_session_release(session);
}

static void on_step(void *self, const weir_train_progress *progress) {
  assert_true(progress->struct_size >= sizeof *progress);
  *(double *)self = progress->loss;
}

static void test_trainer(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_trainer *trainer = NULL;
  weir_train_end end;
  double loss = -1;
  GUARDED(weir_train_progress) progress;
  GUARDED(weir_train_report) report;
  GUARD(progress);
  GUARD(report);
  weir_session_opts session = {.struct_size = sizeof session};
  weir_train_callbacks calls = {
      .struct_size = sizeof calls, .self = &loss, .step = on_step};
  weir_train_opts opts = {
      .struct_size = sizeof opts, .session = &session, .callbacks = &calls};
  assert_ok(weir_trainer_create(runtime, graph, &opts, &trainer, &err), &err);
  assert_ok(weir_trainer_run(trainer, &end, &err), &err);
  assert_int_equal(end, WEIR_TRAIN_END_STEPS);
  assert_ok(weir_trainer_progress(trainer, &progress.it, &err), &err);
  assert_int_equal(progress.it.step, 200);
  assert_true(loss >= 0 && loss < 0.01);
  assert_guarded(progress);
  assert_ok(weir_trainer_eval(trainer, NULL, &report.it, &err), &err);
  assert_int_equal(report.it.value_count, 1);
  assert_true(report.it.values[0].value < 0.01);
  assert_guarded(report);
  weir_trainer_release(trainer);
}

static weir_plan_answer go_on(void *self, const weir_plan_progress *progress) {
  assert_true(progress->struct_size >= sizeof *progress);
  (void)self;
  return WEIR_PLAN_GO_ON;
}

static void check_rows(const weir_plan *plan) {
  weir_error err = WEIR_ERROR_INIT;
  GUARDED(weir_plan_node) node;
  GUARDED(weir_plan_device) device;
  GUARDED(weir_plan_part) part;
  GUARDED(weir_plan_figure) figure;
  GUARDED(weir_plan_summary) summary;
  GUARDED(weir_plan_item) item;
  GUARDED(weir_plan_alternative) other;
  GUARD(node);
  GUARD(device);
  GUARD(part);
  GUARD(figure);
  GUARD(summary);
  GUARD(item);
  GUARD(other);
  assert_ok(weir_plan_node_at(plan, 0, &node.it, &err), &err);
  assert_true(node.it.end_ns >= node.it.start_ns && node.it.members > 0);
  assert_non_null(node.it.reason_why);
  assert_ok(weir_plan_device_at(plan, 1, &device.it, &err), &err);
  assert_true(device.it.name.size > 10);
  assert_ok(weir_plan_part_at(plan, 0, &part.it, &err), &err);
  assert_ok(weir_plan_figure_at(plan, 0, &figure.it, &err), &err);
  assert_ok(weir_plan_summarise(plan, &summary.it, &err), &err);
  assert_int_equal(figure.it.value, summary.it.step_ns);
  assert_ok(weir_plan_item_at(plan, 0, WEIR_PLAN_ITEM_NODES, 0, &item.it, &err),
            &err);
  assert_ok(weir_plan_alternative_at(plan, 0, 0, &other.it, &err), &err);
  assert_non_null(other.it.why);
  assert_guarded(node);
  assert_guarded(device);
  assert_guarded(part);
  assert_guarded(figure);
  assert_guarded(summary);
  assert_guarded(item);
  assert_guarded(other);
}

static void check_ways(const weir_plan *plan) {
  weir_error err = WEIR_ERROR_INIT;
  GUARDED(weir_plan_copy) copy;
  GUARDED(weir_plan_edge) edge;
  GUARD(copy);
  GUARD(edge);
  assert_ok(weir_plan_copy_at(plan, 0, &copy.it, &err), &err);
  assert_true(copy.it.end_ns > copy.it.start_ns);
  assert_ok(weir_plan_edge_at(plan, 0, &edge.it, &err), &err);
  assert_true(edge.it.from != edge.it.to && edge.it.readers > 0);
  assert_guarded(copy);
  assert_guarded(edge);
}

static void test_plan(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *x = vector(1, 2), *y = vector(3, 4);
  weir_feed feeds[] = {WEIR_FEED("x", x), WEIR_FEED("y", y)};
  weir_plan_opts opts = {.struct_size = sizeof opts,
                         .cluster = "worker=2",
                         .placer = "round_robin",
                         .inference = true,
                         .feeds = feeds,
                         .feed_count = 2,
                         .on_progress = go_on};
  weir_session_opts by = {.struct_size = sizeof by};
  weir_plan *plan = NULL;
  weir_session *session = NULL;
  GUARDED(weir_variable_desc) variable;
  GUARD(variable);
  assert_ok(weir_plan_create(runtime, graph, &opts, &plan, &err), &err);
  check_rows(plan);
  check_ways(plan);
  by.plan = plan;
  assert_ok(weir_session_create(runtime, graph, &by, &session, &err), &err);
  check_run(session);
  assert_ok(weir_session_variable_at(session, 0, &variable.it, &err), &err);
  assert_true(variable.it.trained && variable.it.home.size > 0);
  assert_guarded(variable);
  weir_session_release(session);
  weir_plan_release(plan);
  weir_tensor_release(x);
  weir_tensor_release(y);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_descriptions), cmocka_unit_test(test_list),
      cmocka_unit_test(test_session), cmocka_unit_test(test_plan),
      cmocka_unit_test(test_trainer)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
