/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/weir.h"
#include "tests/check.h"

/* A program that trains between graphs: a server, a worker and the chief, here
 * threads with a runtime each, over gRPC and unix sockets. */

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
    "train: {minimize: loss, optimizer: sgd(lr=0.01), steps: 6, mode: "
    "sync(aggregate=2)}\n";
static const char kAlone[] = "accumulate: 2";

enum { PARTS = 3 };
static const struct {
  const char *job;
  uint32_t index;
} kParts[PARTS] = {{"ps", 0}, {"worker", 0}, {"worker", 1}};

static char dir[64] = "/tmp/weir-part-XXXXXX";
static char addresses[PARTS][96];
static const char *list[PARTS];

static int setup(void **state) {
  (void)state;
  if (mkdtemp(dir) == NULL) return 1;
  for (int i = 0; i < PARTS; i++) {
    snprintf(addresses[i], sizeof addresses[i], "unix:%s/%d", dir, i);
    list[i] = addresses[i];
  }
  return 0;
}

static int teardown(void **state) {
  char command[96];
  (void)state;
  snprintf(command, sizeof command, "rm -r %s", dir);
  return system(command);
}

static weir_runtime *a_runtime(void) {
  weir_runtime_opts opts = {.struct_size = sizeof opts, .threads = 1};
  weir_runtime *runtime = NULL;
  assert_int_equal(weir_runtime_create(&opts, &runtime, NULL), WEIR_OK);
  return runtime;
}

static weir_graph *a_graph(weir_runtime *runtime, const char *text) {
  weir_graph *graph = NULL;
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(weir_graph_load_buffer(runtime, text, strlen(text), "g", NULL,
                                   &graph, &err),
            &err);
  return graph;
}

static weir_train_part_opts the_opts(int i) {
  return (weir_train_part_opts){.struct_size = sizeof(weir_train_part_opts),
                                .cluster = "ps=1,worker=2",
                                .addresses = list,
                                .address_count = PARTS,
                                .job = kParts[i].job,
                                .index = kParts[i].index,
                                .module_folder = getenv("WEIR_BUILD_ROOT")};
}

typedef struct process {
  int at;
  pthread_t thread;
  weir_runtime *runtime;
  weir_graph *graph;
  weir_train_part *part;
  weir_status status;
  weir_error err;
} process;

static void open_part(process *p, int at) {
  weir_train_part_opts o = the_opts(at);
  *p = (process){.at = at, .err = WEIR_ERROR_INIT};
  p->runtime = a_runtime();
  p->graph = a_graph(p->runtime, kText);
  assert_ok(weir_train_part_create(p->runtime, p->graph, &o, &p->part, &p->err),
            &p->err);
}

static void close_part(process *p) {
  weir_train_part_release(p->part);
  weir_graph_release(p->graph);
  weir_runtime_release(p->runtime);
}

static void *run(void *self) {
  process *p = self;
  p->status = weir_train_part_run(p->part, NULL, &p->err);
  return NULL;
}

static float value_of(weir_trainer *trainer, const char *name) {
  weir_tensor *tensor = NULL;
  weir_error err = WEIR_ERROR_INIT;
  float out;
  assert_ok(weir_trainer_variable_get(trainer, name, &tensor, &err), &err);
  memcpy(&out, weir_tensor_data(tensor), sizeof out);
  weir_tensor_release(tensor);
  return out;
}

/* w and c after the training that |opts| ask for. */
static void train(weir_runtime *runtime, const weir_graph *graph,
                  const weir_train_opts *opts, float out[2]) {
  weir_trainer *trainer = NULL;
  weir_error err = WEIR_ERROR_INIT;
  weir_train_end end;
  assert_ok(weir_trainer_create(runtime, graph, opts, &trainer, &err), &err);
  assert_ok(weir_trainer_run(trainer, &end, &err), &err);
  assert_int_equal(end, WEIR_TRAIN_END_STEPS);
  out[0] = value_of(trainer, "w");
  out[1] = value_of(trainer, "c");
  weir_trainer_release(trainer);
}

static void train_alone(float out[2]) {
  char text[sizeof kText + 32];
  size_t n = (size_t)(strstr(kText, "mode:") - kText);
  snprintf(text, sizeof text, "%.*s%s}\n", (int)n, kText, kAlone);
  weir_runtime *runtime = a_runtime();
  weir_graph *graph = a_graph(runtime, text);
  train(runtime, graph, NULL, out);
  weir_graph_release(graph);
  weir_runtime_release(runtime);
}

static void test_job(void **state) {
  (void)state;
  process p[PARTS];
  float one[2], many[2];
  for (int i = 0; i < PARTS; i++) open_part(&p[i], i);
  assert_false(weir_train_part_is_chief(p[0].part));
  assert_true(weir_train_part_is_chief(p[1].part));
  assert_false(weir_train_part_is_chief(p[2].part));
  for (int i = 0; i < PARTS; i += 2)
    assert_int_equal(pthread_create(&p[i].thread, NULL, run, &p[i]), 0);
  weir_train_opts opts = {.struct_size = sizeof opts, .part = p[1].part};
  train(p[1].runtime, p[1].graph, &opts, many);
  for (int i = 0; i < PARTS; i += 2) {
    pthread_join(p[i].thread, NULL);
    assert_ok(p[i].status, &p[i].err);
  }
  for (int i = 0; i < PARTS; i++) close_part(&p[i]);
  train_alone(one);
  assert_memory_equal(one, many, sizeof one);
}

/* A part that nobody answers ends when it is told to. */
static void test_stop(void **state) {
  (void)state;
  process p[2];
  for (int i = 0; i < 2; i++) {
    open_part(&p[i], i * 2);
    assert_int_equal(pthread_create(&p[i].thread, NULL, run, &p[i]), 0);
  }
  for (int i = 0; i < 2; i++) {
    weir_train_part_stop(p[i].part);
    pthread_join(p[i].thread, NULL);
    assert_ok(p[i].status, &p[i].err);
    close_part(&p[i]);
  }
}

static void assert_id(weir_status status, const weir_error *err, const char *id,
                      const char *says) {
  assert_int_not_equal(status, WEIR_OK);
  assert_string_equal(err->id, id);
  if (strstr(err->message, says) == NULL)
    fail_msg("\"%s\" lacks \"%s\"", err->message, says);
}

static void refuse(const weir_train_part_opts *o, const char *id,
                   const char *says) {
  weir_error err = WEIR_ERROR_INIT;
  weir_train_part *part = NULL;
  weir_runtime *runtime = a_runtime();
  weir_graph *graph = a_graph(runtime, kText);
  assert_id(weir_train_part_create(runtime, graph, o, &part, &err), &err, id,
            says);
  assert_null(part);
  weir_graph_release(graph);
  weir_runtime_release(runtime);
}

static void test_refusals(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_train_part_opts o = the_opts(0);
  process p;
  o.index = 1;
  refuse(&o, "W0002", "no task ps:1");
  o = the_opts(0);
  o.address_count = 2;
  refuse(&o, "W0002", "2 addresses");
  o = the_opts(0);
  o.addresses = NULL;
  refuse(&o, "W0002", "address");
  o = the_opts(1);
  o.cluster = "worker=3";
  refuse(&o, "W0002", "need tasks of job ps");
  o = the_opts(1);
  o.job = NULL;
  refuse(&o, "W0004", "job");
  open_part(&p, 1);
  assert_id(weir_train_part_run(p.part, NULL, &err), &err, "W0004", "trainer");
  close_part(&p);
  open_part(&p, 0);
  weir_trainer *trainer = NULL;
  weir_train_opts opts = {.struct_size = sizeof opts, .part = p.part};
  assert_id(weir_trainer_create(p.runtime, p.graph, &opts, &trainer, &err),
            &err, "W0004", "not the chief's");
  close_part(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_job),
      cmocka_unit_test(test_stop),
      cmocka_unit_test(test_refusals),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
