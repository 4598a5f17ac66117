/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/weir.h"
#include "tests/check.h"

/* A program that drives tasks and is one of them, and the other tasks'
 * processes, here threads with a runtime each: over gRPC and unix sockets. */

static const char kText[] =
    "weir: 1\n"
    "inputs: {x: 'f32[4]', y: 'f32[4]'}\n"
    "nodes:\n"
    "  w: var([], init=ones())\n"
    "  c: var([], init=zeros())\n"
    "  line: add(mul(x, w), c)\n"
    "  loss: mean(square(sub(line, y)))\n"
    "outputs: [line]\n"
    "data:\n"
    "  train: {source: memory, values: {x: [0, 1, 2, 3], y: [1, 3, 5, 7]}, "
    "batch: 4}\n"
    "train: {minimize: loss, optimizer: sgd(lr=0.1), steps: 3}\n";

enum { TASKS = 2 };

typedef struct process {
  weir_runtime *runtime;
  weir_task_server *server;
  pthread_t thread;
  weir_status status;
} process;

static char dir[64] = "/tmp/weir-api-XXXXXX";
static char addresses[TASKS][96];
static const char *list[TASKS];

static int setup(void **state) {
  (void)state;
  if (mkdtemp(dir) == NULL) return 1;
  for (int i = 0; i < TASKS; i++) {
    snprintf(addresses[i], sizeof addresses[i], "unix:%s/%d", dir, i);
    list[i] = addresses[i];
  }
  return 0;
}

static int teardown(void **state) {
  (void)state;
  for (int i = 0; i < TASKS; i++) {
    char path[160];
    snprintf(path, sizeof path, "%s/%d", dir, i);
    unlink(path);
    snprintf(path, sizeof path, "%s/%d.bulk", dir, i);
    unlink(path);
    snprintf(path, sizeof path, "%s/%d.lock", dir, i);
    unlink(path);
    snprintf(path, sizeof path, "%s/%d.bulk.lock", dir, i);
    unlink(path);
  }
  return rmdir(dir);
}

static weir_runtime *a_runtime(void) {
  weir_runtime_opts opts = {.struct_size = sizeof opts, .threads = 1};
  weir_runtime *runtime = NULL;
  assert_int_equal(weir_runtime_create(&opts, &runtime, NULL), WEIR_OK);
  return runtime;
}

static weir_graph *a_graph(weir_runtime *runtime, bool keep_files) {
  weir_load_opts opts = {.struct_size = sizeof opts, .keep_files = keep_files};
  weir_graph *graph = NULL;
  weir_error err = WEIR_ERROR_INIT;
  weir_status s = weir_graph_load_buffer(runtime, kText, sizeof kText - 1, "g",
                                         &opts, &graph, &err);
  if (s != WEIR_OK) print_error("%s %s\n", err.id, err.message);
  assert_int_equal(s, WEIR_OK);
  return graph;
}

static void *serve(void *self) {
  process *s = self;
  s->status = weir_task_server_run(s->server, NULL);
  return NULL;
}

/* |runtime|: of a driver that is a task too; NULL: one of its own. */
static void start(process *s, weir_runtime *runtime, uint32_t index) {
  weir_error err = WEIR_ERROR_INIT;
  weir_task_opts opts = {.struct_size = sizeof opts,
                         .cluster = "worker=2",
                         .job = "worker",
                         .index = index,
                         .address = addresses[index]};
  s->runtime = runtime == NULL ? a_runtime() : NULL;
  if (runtime == NULL) runtime = s->runtime;
  if (weir_task_server_create(runtime, &opts, &s->server, &err) != WEIR_OK)
    fail_msg("%s %s", err.id, err.message);
  assert_string_equal(weir_task_server_address(s->server), addresses[index]);
  assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void stop(process *s) {
  weir_task_server_stop(s->server);
  pthread_join(s->thread, NULL);
  assert_int_equal(s->status, WEIR_OK);
  weir_task_server_release(s->server);
  weir_runtime_release(s->runtime);
}

static weir_tasks_opts the_opts(void) {
  return (weir_tasks_opts){.struct_size = sizeof(weir_tasks_opts),
                           .cluster = "worker=2",
                           .addresses = list,
                           .address_count = TASKS};
}

static void assert_id(weir_status s, const weir_error *err, const char *id,
                      const char *part) {
  assert_int_not_equal(s, WEIR_OK);
  assert_string_equal(err->id, id);
  if (strstr(err->message, part) == NULL)
    fail_msg("\"%s\" lacks \"%s\"", err->message, part);
}

static void test_refused(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_tasks *tasks = NULL;
  weir_task_server *server = NULL;
  weir_runtime *runtime = a_runtime();
  weir_tasks_opts o = the_opts();
  o.address_count = 1;
  assert_id(weir_tasks_open(runtime, NULL, &o, &tasks, &err), &err, "W0002",
            "2 tasks, and 1 addresses");
  o.addresses = NULL;
  o.address_count = 0;
  assert_id(weir_tasks_open(runtime, NULL, &o, &tasks, &err), &err, "W0002",
            "no address of task worker:0");
  o.cluster = NULL;
  assert_id(weir_tasks_open(runtime, NULL, &o, &tasks, &err), &err, "W0002",
            "no graph");
  o.cluster = "worker=none";
  assert_id(weir_tasks_open(runtime, NULL, &o, &tasks, &err), &err, "W3020",
            "worker=none");
  assert_null(tasks);
  weir_task_opts t = {.struct_size = sizeof t, .cluster = "worker=2"};
  t.job = "ps";
  assert_id(weir_task_server_create(runtime, &t, &server, &err), &err, "W0002",
            "no job ps");
  t.job = "worker";
  t.index = 2;
  assert_id(weir_task_server_create(runtime, &t, &server, &err), &err, "W0002",
            "index 2");
  t.index = 0;
  assert_id(weir_task_server_create(runtime, &t, &server, &err), &err, "W0002",
            "no address of task worker:0");
  assert_null(server);
  weir_runtime_release(runtime);
}

static void test_missing(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_tasks *tasks = NULL;
  weir_runtime *runtime = a_runtime();
  weir_tasks_opts o = the_opts();
  process worker;
  start(&worker, NULL, 0);
  o.start_timeout_ns = 300000000;
  assert_id(weir_tasks_open(runtime, NULL, &o, &tasks, &err), &err, "W7022",
            "worker:1");
  assert_non_null(strstr(err.message, addresses[1]));
  assert_int_equal(weir_error_exit_code(err.id), 138);
  stop(&worker);
  weir_runtime_release(runtime);
}

/* The outputs and, after a training, the variables. */
typedef struct result {
  float line[4], w, c;
} result;

static weir_status run(weir_runtime *runtime, const weir_graph *graph,
                       const weir_session_opts *opts, result *out,
                       weir_error *err) {
  weir_session *session = NULL;
  weir_tensor *x = NULL;
  const int64_t dims[] = {4};
  const float values[] = {3, 1, 4, 1.5F};
  weir_fetch fetch = WEIR_FETCH("line");
  weir_status s = weir_tensor_create(runtime, WEIR_F32, 1, dims, &x, err);
  if (s == WEIR_OK) memcpy(weir_tensor_mutable_data(x), values, sizeof values);
  weir_feed feed = WEIR_FEED("x", x);
  weir_run_request request = WEIR_RUN_REQUEST(&feed, 1, &fetch, 1);
  if (s == WEIR_OK)
    s = weir_session_create(runtime, graph, opts, &session, err);
  if (s == WEIR_OK) s = weir_session_run(session, &request, NULL, err);
  if (s == WEIR_OK)
    memcpy(out->line, weir_tensor_data(fetch.tensor), sizeof out->line);
  weir_tensor_release(fetch.tensor);
  weir_tensor_release(x);
  weir_session_release(session);
  return s;
}

static weir_status value_of(weir_trainer *trainer, const char *name, float *out,
                            weir_error *err) {
  weir_tensor *tensor = NULL;
  weir_status s = weir_trainer_variable_get(trainer, name, &tensor, err);
  if (s == WEIR_OK) memcpy(out, weir_tensor_data(tensor), sizeof *out);
  weir_tensor_release(tensor);
  return s;
}

static weir_status train(weir_runtime *runtime, const weir_graph *graph,
                         const weir_session_opts *session, result *out,
                         weir_error *err) {
  weir_trainer *trainer = NULL;
  weir_train_end end;
  weir_train_opts opts = {.struct_size = sizeof opts, .session = session};
  weir_status s = weir_trainer_create(runtime, graph, &opts, &trainer, err);
  if (s == WEIR_OK) s = weir_trainer_run(trainer, &end, err);
  if (s == WEIR_OK) s = value_of(trainer, "w", &out->w, err);
  if (s == WEIR_OK) s = value_of(trainer, "c", &out->c, err);
  weir_trainer_release(trainer);
  return s;
}

static void test_run_and_train(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  process workers[TASKS];
  weir_tasks *tasks = NULL;
  weir_runtime *runtime = a_runtime();
  weir_graph *graph = a_graph(runtime, true), *bare = a_graph(runtime, false);
  result one = {{0}, 0, 0}, many = {{0}, 0, 0};
  for (uint32_t i = 0; i < TASKS; i++)
    start(&workers[i], i == 0 ? runtime : NULL, i);
  weir_tasks_opts o = the_opts();
  if (weir_tasks_open(runtime, NULL, &o, &tasks, &err) != WEIR_OK)
    fail_msg("%s %s", err.id, err.message);
  weir_plan_opts place = {.struct_size = sizeof place, .placer = "round_robin"};
  weir_session_opts on = {
      .struct_size = sizeof on, .place = &place, .tasks = tasks};
  assert_id(run(runtime, bare, &on, &many, &err), &err, "W0004", "keep_files");
  place.cluster = "worker=3";
  assert_id(run(runtime, graph, &on, &many, &err), &err, "W0004", "cluster");
  place.cluster = NULL;
  for (int i = 0; i < 2; i++) { /* the tasks serve one session, then the next */
    weir_status s = run(runtime, graph, NULL, &one, &err);
    if (s == WEIR_OK) s = run(runtime, graph, &on, &many, &err);
    if (s == WEIR_OK) s = train(runtime, graph, NULL, &one, &err);
    if (s == WEIR_OK) s = train(runtime, graph, &on, &many, &err);
    if (s != WEIR_OK) fail_msg("%s %s", err.id, err.message);
    assert_memory_equal(&one, &many, sizeof one);
  }
  /* Outputs of four floats, losses and variables, twice. */
  assert_true(weir_tasks_values(tasks) >= 4);
  assert_true(weir_tasks_value_bytes(tasks) >= 2 * sizeof one.line);
  weir_graph_release(bare);
  weir_graph_release(graph);
  weir_tasks_release(tasks);
  weir_runtime_release(runtime);
  for (uint32_t i = 0; i < TASKS; i++) stop(&workers[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_refused),
      cmocka_unit_test(test_missing),
      cmocka_unit_test(test_run_and_train),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
