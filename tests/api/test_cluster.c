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

/* A training between graphs. */
static const char kApart[] =
    "weir: 1\n"
    "inputs: {x: 'f32[4]'}\n"
    "nodes: {w: 'var([], init=ones())', loss: 'mean(mul(x, w))'}\n"
    "outputs: [loss]\n"
    "data:\n"
    "  train: {source: memory, values: {x: [0, 1, 2, 3]}, batch: 4}\n"
    "train: {minimize: loss, optimizer: sgd(lr=0.1), steps: 3, mode: async}\n";

enum { TASKS = 2 };

/* States as a line: "0 |", "1 worker:0|", ... */
typedef struct heard {
  pthread_mutex_t lock;
  char line[400], why[400]; /* why: the text of the last one that has some */
} heard;

static void hear(void *self, const weir_cluster_state *state) {
  heard *h = self;
  assert_int_equal(state->struct_size, sizeof *state);
  pthread_mutex_lock(&h->lock);
  size_t n = strlen(h->line);
  snprintf(h->line + n, sizeof h->line - n, "%d %s|", (int)state->event,
           state->peer);
  if (state->text[0] != '\0')
    snprintf(h->why, sizeof h->why, "%s", state->text);
  pthread_mutex_unlock(&h->lock);
}

/* Waits until |part| was heard. */
static void wait_for(heard *h, const char *part) {
  for (int i = 0; i < 12000; i++) { /* two minutes */
    pthread_mutex_lock(&h->lock);
    bool there = strstr(h->line, part) != NULL;
    pthread_mutex_unlock(&h->lock);
    if (there) return;
    usleep(10000);
  }
  fail_msg("\"%s\" lacks \"%s\"", h->line, part);
}

typedef struct process {
  weir_runtime *runtime;
  weir_task_server *server;
  pthread_t thread;
  weir_status status;
  heard heard;
} process;

static char dir[64] = "/tmp/weir-api-XXXXXX";
static char addresses[TASKS][96];
static const char *list[TASKS];
static const weir_tls_opts *certificates; /* of all processes; NULL: none */

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

static weir_graph *a_graph_of(weir_runtime *runtime, const char *text,
                              bool keep_files) {
  weir_load_opts opts = {.struct_size = sizeof opts, .keep_files = keep_files};
  weir_graph *graph = NULL;
  weir_error err = WEIR_ERROR_INIT;
  weir_status s = weir_graph_load_buffer(runtime, text, strlen(text), "g",
                                         &opts, &graph, &err);
  if (s != WEIR_OK) print_error("%s %s\n", err.id, err.message);
  assert_int_equal(s, WEIR_OK);
  return graph;
}

static weir_graph *a_graph(weir_runtime *runtime, bool keep_files) {
  return a_graph_of(runtime, kText, keep_files);
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
                         .address = addresses[index],
                         .on_state = hear,
                         .on_state_self = &s->heard,
                         .tls = certificates};
  s->heard = (heard){.lock = PTHREAD_MUTEX_INITIALIZER};
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
                           .address_count = TASKS,
                           .tls = certificates};
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
  weir_tls_opts tls = {.struct_size = sizeof tls, .ca = "a", .cert = "b"};
  o = the_opts();
  o.tls = &tls;
  assert_id(weir_tasks_open(runtime, NULL, &o, &tasks, &err), &err, "W0004",
            "weir_tls_opts");
  tls.key = "c";
  assert_id(weir_tasks_open(runtime, NULL, &o, &tasks, &err), &err, "W7060",
            "a cannot be read");
  assert_int_equal(weir_error_exit_code(err.id), 9);
  o.insecure = true;
  assert_id(weir_tasks_open(runtime, NULL, &o, &tasks, &err), &err, "W0002",
            "exclude each other");
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
  weir_graph *apart = a_graph_of(runtime, kApart, true);
  assert_id(train(runtime, apart, &on, &many, &err), &err, "W1136",
            "have no driver");
  weir_graph_release(apart);
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

/* Two drivers train one model together. */
static void test_shared(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  process workers[TASKS];
  weir_tasks *tasks[2] = {NULL, NULL}, *third = NULL;
  weir_runtime *runtimes[2] = {a_runtime(), a_runtime()};
  result one = {{0}, 0, 0}, both = {{0}, 0, 0};
  weir_plan_opts place = {.struct_size = sizeof place, .placer = "round_robin"};
  weir_tasks_opts o = the_opts();
  o.share = "a/b";
  assert_id(weir_tasks_open(runtimes[0], NULL, &o, &third, &err), &err, "W7089",
            "a/b");
  o.share = "both";
  o.stop = true;
  assert_id(weir_tasks_open(runtimes[0], NULL, &o, &third, &err), &err, "W0002",
            "share");
  o.stop = false;
  for (uint32_t i = 0; i < TASKS; i++) start(&workers[i], NULL, i);
  for (int i = 0; i < 2; i++) {
    if (weir_tasks_open(runtimes[i], NULL, &o, &tasks[i], &err) != WEIR_OK)
      fail_msg("%s %s", err.id, err.message);
    weir_graph *graph = a_graph(runtimes[i], true);
    weir_session_opts on = {
        .struct_size = sizeof on, .place = &place, .tasks = tasks[i]};
    weir_status s = train(runtimes[i], graph, NULL, &one, &err);
    if (s == WEIR_OK) s = train(runtimes[i], graph, &on, &both, &err);
    if (s != WEIR_OK) fail_msg("%s %s", err.id, err.message);
    /* The second one goes on where the first one has ended. */
    assert_true((one.w == both.w) == (i == 0));
    weir_graph_release(graph);
  }
  o.share = NULL;
  assert_id(weir_tasks_open(runtimes[0], NULL, &o, &third, &err), &err, "W7024",
            "in share both");
  for (int i = 0; i < 2; i++) weir_tasks_release(tasks[i]);
  for (int i = 0; i < 2; i++) weir_runtime_release(runtimes[i]);
  for (uint32_t i = 0; i < TASKS; i++) stop(&workers[i]);
}

/* Each worker has the whole graph; a run is one worker's. */
static void test_dealt(void **state) {
  (void)state;
  enum { RUNS = 6 };
  weir_error err = WEIR_ERROR_INIT;
  process workers[TASKS];
  weir_tasks *tasks = NULL;
  weir_runtime *runtime = a_runtime();
  weir_graph *graph = a_graph(runtime, true);
  result one = {{0}, 0, 0}, dealt = {{0}, 0, 0};
  weir_tasks_opts o = the_opts();
  uint64_t runs = 0;
  o.deal = true;
  assert_id(weir_tasks_open(runtime, NULL, &o, &tasks, &err), &err, "W0004",
            "graph");
  for (uint32_t i = 0; i < TASKS; i++) start(&workers[i], NULL, i);
  if (weir_tasks_open(runtime, graph, &o, &tasks, &err) != WEIR_OK)
    fail_msg("%s %s", err.id, err.message);
  weir_plan_opts place = {.struct_size = sizeof place};
  weir_session_opts on = {
      .struct_size = sizeof on, .place = &place, .tasks = tasks};
  assert_id(run(runtime, graph, &on, &dealt, &err), &err, "W0004", "place");
  on.place = NULL;
  for (int i = 0; i < RUNS; i++) {
    weir_status s = run(runtime, graph, NULL, &one, &err);
    if (s == WEIR_OK) s = run(runtime, graph, &on, &dealt, &err);
    if (s != WEIR_OK) fail_msg("%s %s", err.id, err.message);
    assert_memory_equal(&one, &dealt, sizeof one);
  }
  assert_int_equal(weir_tasks_worker_count(tasks), TASKS);
  for (size_t i = 0; i < TASKS; i++) {
    weir_tasks_worker w = {.struct_size = sizeof w};
    assert_int_equal(weir_tasks_worker_at(tasks, i, &w, &err), WEIR_OK);
    assert_int_equal(w.task.size, strlen("worker:0"));
    assert_memory_equal(w.task.data, i == 0 ? "worker:0" : "worker:1", 8);
    assert_false(w.lost || w.unused);
    runs += w.runs;
  }
  assert_int_equal(runs, RUNS);
  assert_int_equal(weir_tasks_values(tasks), RUNS);
  weir_graph_release(graph);
  weir_tasks_release(tasks);
  weir_runtime_release(runtime);
  for (uint32_t i = 0; i < TASKS; i++) stop(&workers[i]);
}

/* ---- States */

static void test_states(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  process workers[TASKS];
  heard driver = {.lock = PTHREAD_MUTEX_INITIALIZER};
  weir_tasks_opts o = the_opts();
  o.on_state = hear;
  o.on_state_self = &driver;
  weir_tasks *tasks = NULL;
  weir_runtime *runtime = a_runtime();
  for (uint32_t i = 0; i < TASKS; i++) start(&workers[i], NULL, i);
  wait_for(&workers[0].heard, "0 |");
  assert_string_equal(workers[0].heard.why, addresses[0]);
  if (weir_tasks_open(runtime, NULL, &o, &tasks, &err) != WEIR_OK)
    fail_msg("%s %s", err.id, err.message);
  wait_for(&driver, "2 |");
  wait_for(&workers[0].heard, "0 |1 the driver|2 |");
  weir_tasks_release(tasks); /* a natural end */
  wait_for(&driver, "|3 |");
  wait_for(&workers[0].heard, "|3 |");
  if (weir_tasks_open(runtime, NULL, &o, &tasks, &err) != WEIR_OK)
    fail_msg("%s %s", err.id, err.message);
  stop(&workers[1]); /* a lost one */
  wait_for(&driver, "4 worker:1|");
  wait_for(&driver, "2 |4 worker:1|3 |");
  assert_non_null(strstr(driver.why, "worker:1"));
  assert_non_null(strstr(driver.line, "1 worker:0|"));
  assert_non_null(strstr(driver.line, "1 worker:1|"));
  weir_tasks_release(tasks);
  stop(&workers[0]);
  weir_runtime_release(runtime);
}

/* ---- Ops of the programs */

static bool twice(void *self, const weir_op_use *use, char *why,
                  size_t why_size) {
  const float *x = use->in[0]->data;
  float *y = use->out[0]->data;
  (void)self, (void)why, (void)why_size;
  for (int64_t i = 0; i < use->out[0]->elements; i++) y[i] = 2 * x[i];
  return true;
}

/* |version| 0: none is registered. */
static void add_op(weir_runtime *runtime, uint32_t version) {
  weir_op_port x = {.struct_size = sizeof x, .name = "x"};
  weir_op_spec op = {.struct_size = sizeof op,
                     .version = version,
                     .types = WEIR_F32,
                     .name = "twice",
                     .inputs = &x,
                     .input_count = 1,
                     .outputs = &x,
                     .output_count = 1,
                     .run = twice};
  weir_error err = WEIR_ERROR_INIT;
  if (version != 0 && weir_op_register(runtime, &op, &err) != WEIR_OK)
    fail_msg("%s %s", err.id, err.message);
}

/* A driver and two tasks with versions of an op; the outputs are of a node of
 * each task. */
static weir_status run_twice(const uint32_t versions[1 + TASKS], result *out,
                             weir_error *err) {
  static const char text[] =
      "weir: 1\n"
      "inputs: {x: 'f32[4]'}\n"
      "nodes:\n"
      "  a: {op: twice, in: x, device: '/job:worker/task:0'}\n"
      "  line: {op: twice, in: a, device: '/job:worker/task:1'}\n"
      "outputs: [line]\n";
  process workers[TASKS];
  weir_tasks *tasks = NULL;
  weir_graph *graph = NULL;
  weir_runtime *runtime = a_runtime();
  add_op(runtime, versions[0]);
  for (uint32_t i = 0; i < TASKS; i++) {
    weir_runtime *of_task = a_runtime();
    add_op(of_task, versions[1 + i]);
    start(&workers[i], of_task, i);
    weir_runtime_release(of_task);
  }
  weir_tasks_opts o = the_opts();
  weir_load_opts load = {.struct_size = sizeof load, .keep_files = true};
  weir_status s = weir_tasks_open(runtime, NULL, &o, &tasks, err);
  weir_plan_opts place = {.struct_size = sizeof place};
  weir_session_opts on = {
      .struct_size = sizeof on, .place = &place, .tasks = tasks};
  if (s == WEIR_OK)
    s = weir_graph_load_buffer(runtime, text, sizeof text - 1, "g", &load,
                               &graph, err);
  if (s == WEIR_OK) s = run(runtime, graph, &on, out, err);
  weir_graph_release(graph);
  weir_tasks_release(tasks);
  weir_runtime_release(runtime);
  for (uint32_t i = 0; i < TASKS; i++) stop(&workers[i]);
  return s;
}

static void test_ops(void **state) {
  (void)state;
  static const struct {
    uint32_t versions[1 + TASKS];
    const char *id, *part;
  } kCases[] = {
      {{1, 1, 1}, "", ""},
      {{1, 1, 0},
       "W7085",
       "the driver has registered the op twice, and this task has not"},
      {{1, 2, 1},
       "W7085",
       "the op twice of the driver is `version 1 (x: T) -> (x: T); T: f32`, of "
       "this task `version 2 (x: T)"},
  };
  for (size_t i = 0; i < sizeof kCases / sizeof *kCases; i++) {
    weir_error err = WEIR_ERROR_INIT;
    result got = {{0}, 0, 0};
    weir_status s = run_twice(kCases[i].versions, &got, &err);
    if (kCases[i].id[0] != '\0') {
      assert_id(s, &err, kCases[i].id, kCases[i].part);
      continue;
    }
    if (s != WEIR_OK) fail_msg("%s %s", err.id, err.message);
    assert_true(got.line[0] == 12 && got.line[3] == 6);
  }
}

/* The same with certificates: one that has the names of all processes. */
static void test_certificates(void **state) {
  char line[512], pem[80], key[80];
  snprintf(pem, sizeof pem, "%s/pem", dir);
  snprintf(key, sizeof key, "%s/key", dir);
  snprintf(line, sizeof line,
           "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 "
           "-nodes -subj /CN=test -addext subjectAltName=URI:weir://worker/0,"
           "URI:weir://worker/1,URI:weir://driver -days 2 -keyout %s -out %s "
           "2>/dev/null",
           key, pem);
  if (system("openssl version >/dev/null 2>&1") != 0) skip();
  assert_int_equal(system(line), 0);
  weir_tls_opts tls = {
      .struct_size = sizeof tls, .ca = pem, .cert = pem, .key = key};
  certificates = &tls;
  test_run_and_train(state);
  certificates = NULL;
  unlink(pem);
  unlink(key);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_refused),       cmocka_unit_test(test_missing),
      cmocka_unit_test(test_run_and_train), cmocka_unit_test(test_dealt),
      cmocka_unit_test(test_shared),        cmocka_unit_test(test_states),
      cmocka_unit_test(test_ops),           cmocka_unit_test(test_certificates),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
