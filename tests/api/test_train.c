/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/train/progress.h"
#include "runtime/weir.h"
#include "tests/check.h"

/* A trainer step by step, its checkpoints read by sessions, a session written
 * as a graph with weights. */

static const char kText[] =
    "weir: 1\n"
    "dims: [n]\n"
    "inputs: {x: 'f32[n]', y: 'f32[n]'}\n"
    "nodes:\n"
    "  a: var([], init=zeros())\n"
    "  b: var([], init=zeros())\n"
    "  line: add(mul(x, a), b)\n"
    "  loss: mean(square(sub(line, y)))\n"
    "outputs: [line]\n"
    "data:\n"
    "  train: {source: memory, values: {x: [0, 1], y: [1, 3]}, batch: 2}\n"
    "train:\n"
    "  minimize: loss\n"
    "  optimizer: sgd(lr=0.1)\n"
    "  steps: 4\n"
    "  eval: {data: train, metrics: [loss]}\n";

static weir_runtime *runtime;
static weir_graph *graph;
static char dir[] = "/tmp/weir-api-XXXXXX";
static int loaded, saved, restored, exported_graphs; /* lines of the log */

static void on_log(void *self, weir_log_level level, const char *text) {
  (void)self;
  if (level != WEIR_LOG_INFO) return;
  loaded += strstr(text, " is loaded") != NULL;
  saved += strcmp(text, "a checkpoint of step 4 is saved") == 0;
  restored += strstr(text, " are restored from step 4 in ") != NULL;
  exported_graphs += strstr(text, " is exported to ") != NULL;
}

static int setup(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_runtime_opts opts = {.struct_size = sizeof opts, .on_log = on_log};
  if (mkdtemp(dir) == NULL) return 1;
  weir_status s = weir_runtime_create(&opts, &runtime, &err);
  if (s == WEIR_OK)
    s = weir_graph_load_buffer(runtime, kText, sizeof kText - 1, "line", NULL,
                               &graph, &err);
  if (s != WEIR_OK) print_error("%s %s\n", err.id, err.message);
  return s != WEIR_OK;
}

static int teardown(void **state) {
  (void)state;
  weir_graph_release(graph);
  weir_runtime_release(runtime);
  DIR *d = opendir(dir);
  char path[512];
  for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
    snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
    unlink(path);
  }
  if (d != NULL) closedir(d);
  return rmdir(dir);
}

static float scalar(weir_tensor *t) {
  float value = *(const float *)weir_tensor_data(t);
  weir_tensor_release(t);
  return value;
}

static float trained(weir_trainer *trainer, const char *name) {
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *t = NULL;
  assert_ok(weir_trainer_variable_get(trainer, name, &t, &err), &err);
  return scalar(t);
}

static float held(weir_session *session, const char *name) {
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *t = NULL;
  assert_ok(weir_session_variable_get(session, name, &t, &err), &err);
  return scalar(t);
}

/* Every variable of a trainer is listed and can be read by its name. */
static void check_variables(weir_trainer *trainer) {
  weir_error err = WEIR_ERROR_INIT;
  size_t count = weir_trainer_variable_count(trainer), a = 0, slots = 0;
  weir_variable_desc v = {.struct_size = sizeof v};
  for (size_t i = 0; i < count; i++) {
    char name[64];
    weir_tensor *t = NULL;
    assert_ok(weir_trainer_variable_at(trainer, i, &v, &err), &err);
    snprintf(name, sizeof name, "%.*s", (int)v.name.size, v.name.data);
    assert_ok(weir_trainer_variable_get(trainer, name, &t, &err), &err);
    weir_tensor_release(t);
    a += strcmp(name, "a") == 0 && v.trained && v.bytes == 4;
    slots += strchr(name, '/') != NULL && !v.trained;
  }
  assert_int_equal(a, 1);
  assert_true(slots > 0); /* train/global_step at least */
  assert_error(weir_trainer_variable_at(trainer, count, &v, &err), &err,
               "W0004");
}

/* Trains by hand and leaves a checkpoint in |dir|; gives the weight. */
static float train(void) {
  weir_error err = WEIR_ERROR_INIT;
  weir_trainer *trainer = NULL;
  weir_tensor *one = NULL;
  weir_train_end end = WEIR_TRAIN_END_FAILED;
  weir_train_progress now = {.struct_size = sizeof now};
  weir_train_report report = {.struct_size = sizeof report};
  weir_train_opts opts = {.struct_size = sizeof opts, .checkpoint = dir};
  assert_ok(weir_trainer_create(runtime, graph, &opts, &trainer, &err), &err);
  assert_ok(weir_tensor_create(runtime, WEIR_F32, 0, NULL, &one, &err), &err);
  *(float *)weir_tensor_mutable_data(one) = 1;
  assert_ok(weir_trainer_variable_set(trainer, "a", one, &err), &err);
  weir_tensor_release(one);
  check_variables(trainer);
  for (uint64_t i = 1; i <= 4; i++) {
    assert_ok(weir_trainer_step(trainer, &end, &err), &err);
    assert_int_equal(end, i < 4 ? WEIR_TRAIN_END_GOING : WEIR_TRAIN_END_STEPS);
    assert_ok(weir_trainer_progress(trainer, &now, &err), &err);
    assert_int_equal(now.step, i);
  }
  assert_string_equal(weir_train_end_name(end), "steps");
  assert_ok(weir_trainer_eval(trainer, NULL, &report, &err), &err);
  assert_true(report.values[0].value < now.loss);
  assert_ok(weir_trainer_save(trainer, true, &err), &err);
  assert_ok(weir_trainer_finish(trainer, &err), &err);
  float a = trained(trainer, "a");
  assert_true(a > 1);
  weir_trainer_release(trainer);
  return a;
}

/* An evaluator of the training that has left its checkpoints in |dir|. */
static void follow(void) {
  weir_error err = WEIR_ERROR_INIT;
  weir_trainer *trainer = NULL;
  weir_train_followed done = {.struct_size = sizeof done};
  weir_train_opts opts = {.struct_size = sizeof opts,
                          .checkpoint = dir,
                          .eval_only = true,
                          .follow = true};
  assert_ok(weir_trainer_create(runtime, graph, &opts, &trainer, &err), &err);
  assert_ok(weir_trainer_follow(trainer, NULL, &done, &err), &err);
  assert_int_equal(done.end, WEIR_TRAIN_END_STEPS);
  assert_int_equal(done.step, 4);
  assert_int_equal(done.evaluations, 1);
  weir_trainer_release(trainer);
}

/* The weights go from a checkpoint to a session, from there to a graph that is
 * run elsewhere, and from its weights' file to a session again. */
static void test_round(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_session *session = NULL, *again = NULL;
  weir_graph *exported = NULL;
  char path[128], weights[128];
  int64_t step = 0;
  size_t count = 0;
  float a = train();
  follow();
  snprintf(path, sizeof path, "%s/out.weir.yaml", dir);
  snprintf(weights, sizeof weights, "%s/out.safetensors", dir);
  assert_ok(weir_session_create(runtime, graph, NULL, &session, &err), &err);
  assert_true(held(session, "a") == 0);
  assert_ok(weir_session_restore(session, dir, -1, &step, &err), &err);
  assert_int_equal(step, 4);
  assert_true(held(session, "a") == a);
  assert_ok(weir_session_export(session, path, &err), &err);
  weir_session_release(session);

  assert_ok(weir_graph_load_file(runtime, path, NULL, &exported, &err), &err);
  assert_ok(weir_session_create(runtime, exported, NULL, &again, &err), &err);
  assert_true(held(again, "a") == a);
  weir_session_release(again);
  weir_graph_release(exported);

  const char *map[] = {"a=b", "b=a"};
  assert_ok(weir_session_create(runtime, graph, NULL, &again, &err), &err);
  assert_ok(weir_session_load_weights(again, weights, map, 2, &count, &err),
            &err);
  assert_int_equal(count, 2);
  assert_true(held(again, "b") == a);
  weir_session_release(again);
  assert_int_equal(loaded, 2);
  assert_int_equal(saved, 1);
  assert_int_equal(restored, 1);
  assert_int_equal(exported_graphs, 1);
}

static void test_refuses(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_session *session = NULL;
  assert_ok(weir_session_create(runtime, graph, NULL, &session, &err), &err);
  assert_error(weir_session_restore(session, "/nowhere", -1, NULL, &err), &err,
               "W4040");
  assert_error(weir_session_export(session, "x.txt", &err), &err, "W0002");
  assert_error(
      weir_session_load_weights(session, "/nowhere", NULL, 0, NULL, &err), &err,
      "W4001");
  weir_session_release(session);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_round),
                                     cmocka_unit_test(test_refuses)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
