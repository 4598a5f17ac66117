/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/weir.h"
#include "tests/check.h"

/* A program that serves predictions: over gRPC and a unix socket. What clients
 * see is tested with a stock one, in tests/cli/test_serve.py. */

static const char kText[] =
    "weir: 1\n"
    "dims: [n]\n"
    "inputs: {x: 'f32[n, 2]'}\n"
    "nodes: {w: 'var([2, 1], init=ones())', y: 'matmul(x, w)'}\n"
    "outputs: [y]\n";

typedef struct scene {
  weir_runtime *runtime;
  weir_graph *graph;
  weir_session *session;
  weir_predict_server *server;
  pthread_t thread;
  char dir[64], address[96];
  char events[4][200];
  int event_count;
} scene;

static void on_event(void *self, const char *text) {
  scene *s = self;
  if (s->event_count < 4)
    snprintf(s->events[s->event_count++], sizeof s->events[0], "%s", text);
}

static void begin(scene *s) {
  weir_runtime_opts opts = {.struct_size = sizeof opts, .threads = 1};
  weir_error err = WEIR_ERROR_INIT;
  memset(s, 0, sizeof *s);
  snprintf(s->dir, sizeof s->dir, "/tmp/weir-serve-XXXXXX");
  assert_non_null(mkdtemp(s->dir));
  snprintf(s->address, sizeof s->address, "unix:%s/s", s->dir);
  assert_ok(weir_runtime_create(&opts, &s->runtime, &err), &err);
  assert_ok(weir_graph_load_buffer(s->runtime, kText, sizeof kText - 1, "g",
                                   NULL, &s->graph, &err),
            &err);
  assert_ok(weir_session_create(s->runtime, s->graph, NULL, &s->session, &err),
            &err);
}

static void end(scene *s) {
  char path[160];
  weir_session_release(s->session);
  weir_graph_release(s->graph);
  weir_runtime_release(s->runtime);
  snprintf(path, sizeof path, "%s/s", s->dir);
  unlink(path);
  snprintf(path, sizeof path, "%s/s.lock", s->dir);
  unlink(path);
  assert_int_equal(rmdir(s->dir), 0);
}

static weir_serve_opts the_opts(scene *s) {
  return (weir_serve_opts){.struct_size = sizeof(weir_serve_opts),
                           .address = s->address,
                           .batch = 8,
                           .on_event = on_event,
                           .on_event_self = s,
                           .module_folder = getenv("WEIR_BUILD_ROOT")};
}

static void *run(void *self) {
  scene *s = self;
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(weir_predict_server_run(s->server, &err), &err);
  return NULL;
}

static void test_life(void **state) {
  scene s;
  weir_error err = WEIR_ERROR_INIT;
  weir_serve_stats stats = {.struct_size = sizeof stats};
  char text[200];
  (void)state;
  begin(&s);
  weir_serve_opts opts = the_opts(&s);
  assert_ok(weir_predict_server_create(s.session, &opts, &s.server, &err),
            &err);
  assert_string_equal(weir_predict_server_address(s.server), s.address);
  weir_predict_server *second = NULL; /* while the first one listens */
  assert_error(weir_predict_server_create(s.session, &opts, &second, &err),
               &err, "W7002");
  assert_null(second);
  assert_int_equal(pthread_create(&s.thread, NULL, run, &s), 0);
  weir_predict_server_stop(s.server);
  pthread_join(s.thread, NULL);
  snprintf(text, sizeof text, "listening at %s, batches of 8 rows", s.address);
  assert_string_equal(s.events[0], text);
  assert_string_equal(s.events[1],
                      "stopping: requests that were accepted are answered");
  assert_ok(weir_predict_server_stat(s.server, &stats, &err), &err);
  assert_int_equal(stats.batch_rows, 8);
  assert_int_equal(stats.answered, 0);
  weir_session_release(s.session); /* the server has its own */
  s.session = NULL;
  weir_predict_server_release(s.server);
  end(&s);
}

static void test_refusals(void **state) {
  scene s;
  weir_error err = WEIR_ERROR_INIT;
  (void)state;
  begin(&s);
  weir_serve_opts opts = the_opts(&s);
  opts.address = NULL;
  assert_error(weir_predict_server_create(s.session, &opts, &s.server, &err),
               &err, "W0004");
  opts.address = "192.0.2.1:0";
  assert_error(weir_predict_server_create(s.session, &opts, &s.server, &err),
               &err, "W7002");
  assert_non_null(strstr(err.message, "not encrypted"));
  opts.address = "here";
  assert_error(weir_predict_server_create(s.session, &opts, &s.server, &err),
               &err, "W7002");
  opts.batch_wait_ns = -1;
  assert_error(weir_predict_server_create(s.session, &opts, &s.server, &err),
               &err, "W0002");
  end(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_life),
      cmocka_unit_test(test_refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
