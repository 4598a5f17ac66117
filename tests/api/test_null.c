/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/dlpack.h"
#include "runtime/weir.h"
#include "tests/check.h"

/* Every exported function with all arguments NULL and zero, and with each
 * pointer NULL in turn: it fails with W0004 or answers with nothing, and never
 * crashes. null_calls.py makes the calls from weir.h and weir.map; here are
 * their arguments. */

static const char kText[] =
    "weir: 1\n"
    "dims: [n]\n"
    "inputs: {x: 'f32[n]', y: 'f32[n]'}\n"
    "nodes:\n"
    "  v: var([], init=zeros())\n"
    "  line: mul(x, v)\n"
    "  loss: mean(square(sub(line, y)))\n"
    "outputs: [line]\n"
    "data:\n"
    "  train: {source: memory, values: {x: [0, 1], y: [1, 3]}, batch: 2}\n"
    "train: {minimize: loss, optimizer: sgd(lr=0.1), steps: 2}\n";

static struct {
  weir_runtime *runtime;
  weir_graph *graph;
  weir_session *session;
  weir_bound *bound;
  weir_tensor *tensor;
  weir_trainer *trainer;
  const weir_diag *diag;
  weir_plan *plan;
  weir_trace *trace;
  weir_plan_opts plan_opts;
  weir_plan_text plan_text;
  weir_predict_opts predict_opts;
  weir_tasks_opts tasks_opts;
  weir_op_spec op_spec;
  weir_serve_opts predict_server_opts;
  weir_train_part_opts train_part_opts;
  weir_kv_opts kv_opts;
  weir_kv_key_opts kv_key_opts;
  weir_kv_op_opts kv_op_opts;
  weir_kv_group kv_group;
  weir_task_opts task_opts;
  char buffer[64];
  weir_error error;
  char dir[64], path[96];
  float bytes[2];
  int64_t dims[1];
  const char *names[1];
  const weir_tensor *tensors[1];
  weir_feed feed;
  weir_fetch fetch;
  weir_run_request request;
  weir_run_opts run_opts;
  weir_tensor_spec spec;
  weir_tensor_list list;
  weir_load_opts load_opts;
  weir_runtime_opts runtime_opts;
  weir_session_opts session_opts;
  weir_train_opts train_opts;
} fix = {.dir = "/tmp/weir-null-XXXXXX",
         .error = WEIR_ERROR_INIT,
         .bytes = {1, 2},
         .dims = {2},
         .names = {"v"}};

static const char *function, *null_argument;
static int calls;

static void begin(const char *name, const char *null) {
  function = name;
  null_argument = null;
  calls++;
  fix.fetch.tensor = NULL;
}

static void check_status(weir_status s, const weir_error *err, bool needed) {
  if (s == WEIR_OK && needed)
    fail_msg("%s succeeds with %s NULL", function, null_argument);
  if (needed && s != WEIR_INVALID_ARGUMENT)
    fail_msg("%s with %s NULL gives %s", function, null_argument,
             weir_status_name(s));
  if (needed && err != NULL && strcmp(err->id, "W0004") != 0 &&
      strcmp(function, "weir_tensor_desc") != 0)
    fail_msg("%s with %s NULL gives %s %s", function, null_argument, err->id,
             err->message);
  weir_tensor_release(fix.fetch.tensor);
  fix.fetch.tensor = NULL;
}

static void check_neutral(bool neutral, bool needed) {
  if (needed && !neutral)
    fail_msg("%s with %s NULL gives something", function, null_argument);
}

static bool take(void *self, const char *data, size_t size) {
  (void)self;
  (void)data;
  (void)size;
  return true;
}

static bool see(void *self, const weir_prediction *p) {
  (void)self;
  return p->rows > 0;
}

static size_t no_source(void *self, const char *file, const char **out_text) {
  (void)self;
  (void)file;
  *out_text = NULL;
  return 0;
}

static struct DLManagedTensorVersioned *a_managed(void) {
  struct DLManagedTensorVersioned *m = NULL;
  assert_int_equal(weir_tensor_to_dlpack(fix.tensor, &m, NULL), WEIR_OK);
  return m;
}

static void drop_managed(struct DLManagedTensorVersioned *m) {
  if (m != NULL) m->deleter(m);
}

#include "null_calls.inc"

static void fill_structs(void) {
  fix.feed = (weir_feed)WEIR_FEED("x", fix.tensor);
  fix.fetch = (weir_fetch)WEIR_FETCH("line");
  fix.request = (weir_run_request)WEIR_RUN_REQUEST(&fix.feed, 1, &fix.fetch, 1);
  fix.run_opts.struct_size = sizeof fix.run_opts;
  fix.spec = (weir_tensor_spec)WEIR_TENSOR_SPEC(WEIR_F32, 1, fix.dims,
                                                sizeof fix.bytes);
  fix.tensors[0] = fix.tensor;
  fix.list = (weir_tensor_list)WEIR_TENSOR_LIST(1, fix.names, fix.tensors);
  fix.load_opts.struct_size = sizeof fix.load_opts;
  fix.runtime_opts.struct_size = sizeof fix.runtime_opts;
  fix.session_opts.struct_size = sizeof fix.session_opts;
  fix.train_opts.struct_size = sizeof fix.train_opts;
  fix.plan_opts.struct_size = sizeof fix.plan_opts;
  fix.plan_opts.cluster = "worker=2";
  fix.plan_opts.placer = "round_robin"; /* so that there are edges */
  fix.tasks_opts.struct_size = sizeof fix.tasks_opts;
  fix.op_spec.struct_size = sizeof fix.op_spec; /* without a name */
  fix.tasks_opts.cluster = "worker=1";          /* without an address */
  fix.task_opts.struct_size = sizeof fix.task_opts;
  fix.task_opts.cluster = "worker=1";
  fix.task_opts.job = "worker";
  fix.train_part_opts.struct_size = sizeof fix.train_part_opts;
  fix.train_part_opts.cluster = "worker=1"; /* without a ps */
  fix.train_part_opts.job = "worker";
  fix.kv_opts.struct_size = sizeof fix.kv_opts;
  fix.kv_opts.cluster = "worker=1"; /* without a ps */
  fix.kv_opts.job = "worker";
  fix.kv_key_opts.struct_size = sizeof fix.kv_key_opts;
  fix.kv_op_opts.struct_size = sizeof fix.kv_op_opts;
  fix.kv_group.struct_size = sizeof fix.kv_group;
  fix.plan_text = (weir_plan_text){sizeof fix.plan_text, "{}", 2, NULL};
  fix.predict_opts = (weir_predict_opts){
      .struct_size = sizeof fix.predict_opts, .data = "train", .batch = see};
}

static int setup(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  if (mkdtemp(fix.dir) == NULL) return 1;
  snprintf(fix.path, sizeof fix.path, "%s/x.npy", fix.dir);
  weir_status s = weir_runtime_create(NULL, &fix.runtime, &err);
  if (s == WEIR_OK)
    s = weir_graph_load_buffer(fix.runtime, kText, sizeof kText - 1, "g", NULL,
                               &fix.graph, &err);
  if (s == WEIR_OK)
    s = weir_session_create(fix.runtime, fix.graph, NULL, &fix.session, &err);
  if (s == WEIR_OK)
    s = weir_trainer_create(fix.runtime, fix.graph, NULL, &fix.trainer, &err);
  if (s == WEIR_OK)
    s = weir_tensor_create(fix.runtime, WEIR_F32, 1, fix.dims, &fix.tensor,
                           &err);
  if (s != WEIR_OK) return print_error("%s %s\n", err.id, err.message), 1;
  memcpy(weir_tensor_mutable_data(fix.tensor), fix.bytes, sizeof fix.bytes);
  fill_structs();
  s = weir_plan_create(fix.runtime, fix.graph, &fix.plan_opts, &fix.plan, &err);
  if (s == WEIR_OK) s = weir_trace_create(fix.runtime, 8, &fix.trace, &err);
  if (s == WEIR_OK)
    s = weir_session_bind(fix.session, &fix.request, &fix.bound, &err);
  if (s != WEIR_OK) return print_error("%s %s\n", err.id, err.message), 1;
  weir_tensor_release(fix.fetch.tensor);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  weir_bound_release(fix.bound);
  weir_plan_release(fix.plan);
  weir_trace_release(fix.trace);
  weir_tensor_release(fix.tensor);
  weir_trainer_release(fix.trainer);
  weir_session_release(fix.session);
  weir_graph_release(fix.graph);
  weir_runtime_release(fix.runtime);
  unlink(fix.path);
  return rmdir(fix.dir);
}

static void run_diag_cases(void *self, const weir_diag *diag) {
  (void)self;
  fix.diag = diag;
  for (size_t i = 0; i < sizeof diag_cases / sizeof *diag_cases; i++)
    diag_cases[i]();
}

static void test_calls(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) cases[i]();
  assert_true(calls > FUNCTION_COUNT);
}

/* A diagnostic is lent for the call, so its functions are called there. */
static void test_diag_calls(void **state) {
  (void)state;
  weir_graph *graph = NULL;
  weir_load_opts opts = {.struct_size = sizeof opts, .on_diag = run_diag_cases};
  assert_int_not_equal(weir_graph_load_buffer(fix.runtime, "weir: 2\n", 8,
                                              "bad", &opts, &graph, NULL),
                       WEIR_OK);
  assert_non_null(fix.diag);
  assert_null(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_calls),
                                     cmocka_unit_test(test_diag_calls)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
