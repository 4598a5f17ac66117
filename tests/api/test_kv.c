/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/weir.h"
#include "tests/api/host.h"
#include "tests/check.h"

/* Keys of a host program: servers and workers are threads with a runtime each,
 * over gRPC and unix sockets. */

enum { SERVERS = 2, WORKERS = 2, TASKS = SERVERS + WORKERS };

static char dir[64] = "/tmp/weir-kv-XXXXXX";
static char addresses[TASKS][96];
static const char *list[TASKS];

static int setup(void **state) {
  (void)state;
  if (mkdtemp(dir) == NULL) return 1;
  for (int i = 0; i < TASKS; i++) {
    snprintf(addresses[i], sizeof addresses[i], "unix:%s/%d", dir, i);
    list[i] = i < SERVERS ? addresses[i] : "";
  }
  return 0;
}

static int teardown(void **state) {
  char command[96];
  (void)state;
  snprintf(command, sizeof command, "rm -r %s", dir);
  return system(command);
}

static weir_runtime *a_runtime(host *memory) {
  weir_allocator_hook hook = {
      .struct_size = sizeof hook,
      .self = memory,
      .alloc = host_alloc,
      .free = host_free,
  };
  weir_runtime_opts opts = {.struct_size = sizeof opts, .threads = 1};
  weir_runtime *runtime = NULL;
  if (memory != NULL) opts.allocator = &hook;
  assert_int_equal(weir_runtime_create(&opts, &runtime, NULL), WEIR_OK);
  return runtime;
}

static weir_kv_opts the_opts(const char *job, uint32_t index) {
  return (weir_kv_opts){.struct_size = sizeof(weir_kv_opts),
                        .cluster = "ps=2,worker=2",
                        .addresses = list,
                        .address_count = TASKS,
                        .job = job,
                        .index = index,
                        .split_bytes = 64,
                        .heartbeat_ns = 60000000000,
                        .module_folder = getenv("WEIR_BUILD_ROOT")};
}

/* ---- Servers */

typedef struct server {
  pthread_t thread;
  weir_runtime *runtime;
  weir_kv_server *kv;
  weir_status status;
  weir_error err;
} server;

static void *serve(void *self) {
  server *s = self;
  s->status = weir_kv_server_run(s->kv, &s->err);
  return NULL;
}

static void start_server(server *s, uint32_t index) {
  weir_kv_opts o = the_opts("ps", index);
  o.lost_after_ns = 1;
  *s = (server){.runtime = a_runtime(NULL), .err = WEIR_ERROR_INIT};
  assert_ok(weir_kv_server_create(s->runtime, &o, &s->kv, &s->err), &s->err);
  assert_string_equal(weir_kv_server_address(s->kv), addresses[index]);
  assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void stop_server(server *s) {
  weir_kv_server_stop(s->kv);
  pthread_join(s->thread, NULL);
  assert_ok(s->status, &s->err);
  assert_error(weir_kv_server_run(s->kv, &s->err), &s->err, "W0004");
  weir_kv_server_release(s->kv);
  weir_runtime_release(s->runtime);
}

/* ---- Workers */

typedef struct world {
  server servers[SERVERS];
  weir_runtime *runtime;
  weir_kv *kv[WORKERS];
} world;

static void open_world(world *w) {
  weir_error err = WEIR_ERROR_INIT;
  w->runtime = a_runtime(NULL);
  for (uint32_t i = 0; i < WORKERS; i++) { /* before there are servers */
    weir_kv_opts o = the_opts("worker", i);
    assert_ok(weir_kv_open(w->runtime, &o, &w->kv[i], &err), &err);
  }
  for (uint32_t i = 0; i < SERVERS; i++) start_server(&w->servers[i], i);
}

static void close_world(world *w) {
  for (int i = 0; i < WORKERS; i++) weir_kv_close(w->kv[i]);
  for (int i = 0; i < SERVERS; i++) stop_server(&w->servers[i]);
  weir_runtime_release(w->runtime);
}

static weir_kv_key_opts key_of(weir_dtype dtype, int32_t rank,
                               const int64_t *dims, const char *rule) {
  return (weir_kv_key_opts){.struct_size = sizeof(weir_kv_key_opts),
                            .dtype = dtype,
                            .rank = rank,
                            .dims = dims,
                            .rule = rule,
                            .timeout_ns = -1};
}

static void declare(world *w, const char *name, const weir_kv_key_opts *key) {
  weir_error err = WEIR_ERROR_INIT;
  for (int i = 0; i < WORKERS; i++)
    assert_ok(weir_kv_declare(w->kv[i], name, key, &err), &err);
}

static weir_tensor *tensor_of(world *w, weir_dtype dtype, int32_t rank,
                              const int64_t *dims, const void *data) {
  weir_tensor *t = NULL;
  weir_tensor_info info = {.struct_size = sizeof info};
  assert_int_equal(weir_tensor_create(w->runtime, dtype, rank, dims, &t, NULL),
                   WEIR_OK);
  weir_tensor_desc(t, &info);
  if (data != NULL) memcpy(weir_tensor_mutable_data(t), data, info.bytes);
  return t;
}

static weir_kv_result finish(weir_status s, weir_kv_handle *h,
                             const weir_error *begun) {
  weir_error err = WEIR_ERROR_INIT;
  weir_kv_result result = {.struct_size = sizeof result};
  assert_ok(s, begun);
  assert_ok(weir_kv_wait(h, -1, &result, &err), &err);
  weir_kv_handle_release(h);
  return result;
}

static weir_kv_result push(world *w, int worker, const char *name,
                           weir_tensor *t, weir_tensor *ids) {
  weir_error err = WEIR_ERROR_INIT;
  weir_kv_handle *h = NULL;
  weir_kv_op_opts o = {.struct_size = sizeof o, .ids = ids};
  weir_status s = weir_kv_push(w->kv[worker], name, t, &o, &h, &err);
  return finish(s, h, &err);
}

static weir_kv_result pull(world *w, int worker, const char *name,
                           weir_tensor *t, const weir_kv_op_opts *o) {
  weir_error err = WEIR_ERROR_INIT;
  weir_kv_handle *h = NULL;
  weir_status s = weir_kv_pull(w->kv[worker], name, t, o, &h, &err);
  return finish(s, h, &err);
}

/* ---- */

static void pushes_add_and_pulls_see_them(void **state) {
  (void)state;
  world w;
  const int64_t dims[] = {3};
  const float one[] = {1, 2, 3};
  float want[] = {2, 4, 6};
  open_world(&w);
  weir_kv_key_opts key = key_of(WEIR_F32, 1, dims, NULL);
  weir_tensor *a = tensor_of(&w, WEIR_F32, 1, dims, one);
  weir_tensor *b = tensor_of(&w, WEIR_F32, 1, dims, NULL);
  key.first = a;
  declare(&w, "v", &key); /* the second one's first values do not count */
  assert_int_equal(push(&w, 0, "v", a, NULL).version, 1);
  weir_kv_result r = pull(&w, 1, "v", b, NULL);
  assert_int_equal(r.version, 1);
  assert_true(r.newer);
  assert_memory_equal(weir_tensor_data(b), want, sizeof want);
  weir_kv_op_opts newer = {
      .struct_size = sizeof newer, .if_newer = true, .newer_than = 1};
  memset(weir_tensor_mutable_data(b), 0, sizeof want);
  r = pull(&w, 1, "v", b, &newer);
  assert_false(r.newer);
  assert_int_equal(r.version, 1);
  assert_true(((const float *)weir_tensor_data(b))[0] == 0);
  newer.newer_than = 0;
  assert_true(pull(&w, 1, "v", b, &newer).newer);
  assert_memory_equal(weir_tensor_data(b), want, sizeof want);
  weir_kv_handle *h = NULL;
  weir_error err = WEIR_ERROR_INIT;
  weir_status s = weir_kv_push_pull(w.kv[1], "v", a, b, NULL, &h, &err);
  assert_int_equal(finish(s, h, &err).version, 2);
  for (int i = 0; i < 3; i++) want[i] += one[i];
  assert_memory_equal(weir_tensor_data(b), want, sizeof want);
  weir_tensor_release(a);
  weir_tensor_release(b);
  close_world(&w);
}

/* A table of 40 rows lies on both servers; rows come twice, or not at all. */
static void rows_of_a_table_on_two_servers(void **state) {
  (void)state;
  world w;
  const int64_t dims[] = {40, 2}, some[] = {4, 2}, none[] = {0, 2};
  const int64_t ids[] = {39, 1, 39, 20};
  const float rows[] = {1, 2, 3, 4, 10, 20, 7, 8};
  const float want[] = {11, 22, 3, 4, 11, 22, 7, 8};
  open_world(&w);
  weir_kv_key_opts key = key_of(WEIR_F32, 2, dims, "add");
  declare(&w, "table", &key);
  weir_tensor *i = tensor_of(&w, WEIR_I64, 1, some, ids);
  weir_tensor *x = tensor_of(&w, WEIR_F32, 2, some, rows);
  weir_tensor *y = tensor_of(&w, WEIR_F32, 2, some, NULL);
  weir_tensor *all = tensor_of(&w, WEIR_F32, 2, dims, NULL);
  weir_tensor *no_i = tensor_of(&w, WEIR_I64, 1, none, NULL);
  weir_tensor *no_x = tensor_of(&w, WEIR_F32, 2, none, NULL);
  weir_kv_op_opts by_row = {.struct_size = sizeof by_row, .ids = i};
  assert_int_equal(push(&w, 0, "table", x, i).version, 1);
  assert_int_equal(push(&w, 0, "table", no_x, no_i).version, 2);
  assert_int_equal(pull(&w, 1, "table", y, &by_row).version, 2);
  assert_memory_equal(weir_tensor_data(y), want, sizeof want);
  assert_int_equal(pull(&w, 1, "table", all, NULL).version, 2);
  const float *t = weir_tensor_data(all);
  float sum = 0;
  for (int k = 0; k < 80; k++) sum += t[k];
  assert_true(sum == 55 && t[78] == 11 && t[2] == 3 && t[41] == 8);
  assert_int_equal(push(&w, 1, "table", all, NULL).version, 3);
  weir_kv_op_opts newer = {
      .struct_size = sizeof newer, .if_newer = true, .newer_than = 2};
  assert_true(pull(&w, 0, "table", all, &newer).newer);
  assert_true(t[78] == 22 && t[2] == 6 && t[41] == 16);
  newer.newer_than = 3;
  assert_false(pull(&w, 0, "table", all, &newer).newer);
  /* Of `assign` the last counts. */
  key.rule = "assign";
  declare(&w, "set", &key);
  assert_int_equal(push(&w, 0, "set", x, i).version, 1);
  (void)pull(&w, 1, "set", y, &by_row);
  assert_true(((const float *)weir_tensor_data(y))[0] == 10);
  weir_tensor *const used[] = {i, x, y, all, no_i, no_x};
  for (int k = 0; k < 6; k++) weir_tensor_release(used[k]);
  close_world(&w);
}

/* sgd and adam, by hand: dense and by rows; of other types and shapes. */
static void rules_update_as_optimizers_do(void **state) {
  (void)state;
  world w;
  const int64_t two[] = {2}, one[] = {1};
  const double g[] = {0.5, -2};
  const int64_t second[] = {1};
  open_world(&w);
  weir_kv_key_opts key = key_of(WEIR_F64, 1, two, "sgd(lr=0.1)");
  weir_tensor *grad = tensor_of(&w, WEIR_F64, 1, two, g);
  weir_tensor *row = tensor_of(&w, WEIR_F64, 1, one, g);
  weir_tensor *id = tensor_of(&w, WEIR_I64, 1, one, second);
  weir_tensor *out = tensor_of(&w, WEIR_F64, 1, two, NULL);
  const double *x = weir_tensor_data(out);
  declare(&w, "sgd", &key);
  push(&w, 0, "sgd", grad, NULL);
  push(&w, 1, "sgd", row, id);
  pull(&w, 0, "sgd", out, NULL);
  assert_float_equal(x[0], -0.05, 1e-12);
  assert_float_equal(x[1], 0.15, 1e-12);
  key.rule = "adam(lr=0.01)";
  declare(&w, "adam", &key);
  push(&w, 0, "adam", grad, NULL); /* the first step is lr in size */
  pull(&w, 0, "adam", out, NULL);
  assert_float_equal(x[0], -0.01, 1e-6);
  assert_float_equal(x[1], 0.01, 1e-6);
  key.rule = "adagrad(lr=1, initial=0.75)";
  declare(&w, "adagrad", &key);
  push(&w, 0, "adagrad", grad, NULL);
  pull(&w, 0, "adagrad", out, NULL);
  assert_float_equal(x[0], -0.5, 1e-6); /* 0.5 / sqrt(0.75 + 0.25) */
  key.rule = "rms_prop(lr=0.1, momentum=0.5, centered=true)";
  declare(&w, "rms", &key);
  push(&w, 0, "rms", grad, NULL);
  pull(&w, 0, "rms", out, NULL);
  assert_true(x[0] < 0 && x[1] > 0);
  const int64_t n = 7, *none = NULL;
  weir_kv_key_opts scalar = key_of(WEIR_I64, 0, none, "add");
  weir_tensor *c = tensor_of(&w, WEIR_I64, 0, NULL, &n);
  declare(&w, "count", &scalar);
  push(&w, 0, "count", c, NULL);
  push(&w, 1, "count", c, NULL);
  pull(&w, 1, "count", c, NULL);
  assert_int_equal(*(const int64_t *)weir_tensor_data(c), 14);
  weir_tensor *const used[] = {grad, row, id, out, c};
  for (int k = 0; k < 5; k++) weir_tensor_release(used[k]);
  close_world(&w);
}

static void bad_input_is_told(void **state) {
  (void)state;
  world w;
  const int64_t dims[] = {40, 2}, other[] = {2, 2}, one[] = {1};
  const int64_t bad[] = {40}, huge[] = {INT64_MAX, INT64_MAX};
  weir_error err = WEIR_ERROR_INIT;
  weir_kv_handle *h = NULL;
  open_world(&w);
  weir_kv *kv = w.kv[0];
  weir_tensor *t = tensor_of(&w, WEIR_F32, 2, dims, NULL);
  weir_tensor *wrong = tensor_of(&w, WEIR_F32, 2, other, NULL);
  weir_tensor *type = tensor_of(&w, WEIR_F64, 2, dims, NULL);
  weir_tensor *id = tensor_of(&w, WEIR_I64, 1, one, bad);
  assert_error(weir_kv_push(kv, "x", t, NULL, &h, &err), &err, "W7111");
  weir_kv_key_opts key = key_of(WEIR_F32, 2, dims, "add");
  declare(&w, "x", &key);
  assert_error(weir_kv_push(kv, "x", wrong, NULL, &h, &err), &err, "W7113");
  assert_error(weir_kv_pull(kv, "x", type, NULL, &h, &err), &err, "W7113");
  weir_kv_op_opts o = {.struct_size = sizeof o, .ids = id};
  assert_error(weir_kv_push(kv, "x", t, &o, &h, &err), &err, "W7113");
  assert_string_equal(err.message,
                      "push of key `x` names row 40, it has rows 0 to 39");
  o = (weir_kv_op_opts){.struct_size = sizeof o, .if_newer = true};
  assert_error(weir_kv_push(kv, "x", t, &o, &h, &err), &err, "W0002");
  o = (weir_kv_op_opts){.struct_size = sizeof o, .newer_than = 3};
  assert_error(weir_kv_pull(kv, "x", t, &o, &h, &err), &err, "W0002");
  key.rule = "assign"; /* another rule, type, shape than the first one's */
  assert_error(weir_kv_declare(w.kv[1], "x", &key, &err), &err, "W7112");
  key.rule = "add";
  key.dims = other;
  assert_error(weir_kv_declare(w.kv[1], "x", &key, &err), &err, "W7112");
  key.dims = huge;
  assert_error(weir_kv_declare(kv, "y", &key, &err), &err, "W7113");
  key.dims = dims;
  key.first = wrong;
  assert_error(weir_kv_declare(kv, "y", &key, &err), &err, "W7113");
  key.first = NULL;
  static const char *const kRules[] = {
      "",          "adam",        "adam(lr=-1)",      "adam(lr=0.1, x=2)",
      "multiply",  "sgd(lr=1",    "sgd(lr=0.1)) y(",  "sgd(lr=[1])",
      "sgd(lr==)", "sgd(lr=nan)", "sgd(initial=0.1)", "add(lr=1)"};
  for (size_t i = 0; i < sizeof kRules / sizeof kRules[0]; i++) {
    key.rule = kRules[i];
    assert_error(weir_kv_declare(kv, "z", &key, &err), &err, "W7117");
  }
  key.dtype = WEIR_I32;
  key.rule = "sgd(lr=0.1)";
  assert_error(weir_kv_declare(kv, "z", &key, &err), &err, "W7117");
  assert_error(weir_kv_declare(kv, "", &key, &err), &err, "W7113");
  weir_tensor *const used[] = {t, wrong, type, id};
  for (int k = 0; k < 4; k++) weir_tensor_release(used[k]);
  close_world(&w);
}

/* ---- Barriers, ends */

static void barriers_pass_and_break(void **state) {
  (void)state;
  world w;
  weir_kv_handle *a = NULL, *b = NULL;
  weir_error err = WEIR_ERROR_INIT;
  const uint32_t self[] = {0}, alien[] = {0, 9}, others[] = {1};
  open_world(&w);
  assert_ok(weir_kv_barrier(w.kv[0], "x", NULL, &a, &err), &err);
  assert_error(weir_kv_wait(a, 0, NULL, &err), &err, "W7116");
  assert_error(weir_kv_wait(a, 1000000, NULL, &err), &err, "W7116");
  assert_ok(weir_kv_barrier(w.kv[1], "x", NULL, &b, &err), &err);
  finish(WEIR_OK, a, &err);
  finish(WEIR_OK, b, &err);
  weir_kv_group o = {sizeof o, self, 1};
  weir_status s = weir_kv_barrier(w.kv[0], "x", &o, &a, &err);
  finish(s, a, &err);
  o.members = alien;
  o.member_count = 2;
  assert_error(weir_kv_barrier(w.kv[0], "x", &o, &a, &err), &err, "W0002");
  o.members = others;
  o.member_count = 1;
  assert_error(weir_kv_barrier(w.kv[0], "x", &o, &a, &err), &err, "W0002");
  assert_ok(weir_kv_barrier(w.kv[0], "y", NULL, &a, &err), &err);
  weir_kv_close(w.kv[1]);
  w.kv[1] = NULL;
  assert_error(weir_kv_wait(a, -1, NULL, &err), &err, "W7115");
  assert_non_null(strstr(err.message, "worker:1"));
  weir_kv_handle_release(a);
  close_world(&w);
}

/* What is under way when the worker closes ends with a name; handles may live
 * longer than what they came from. */
static void closing_ends_what_is_under_way(void **state) {
  (void)state;
  world w;
  const int64_t dims[] = {3};
  weir_kv_handle *waits = NULL, *late = NULL;
  weir_error err = WEIR_ERROR_INIT;
  open_world(&w);
  weir_kv_key_opts key = key_of(WEIR_F32, 1, dims, "add");
  declare(&w, "v", &key);
  assert_ok(weir_kv_barrier(w.kv[0], "x", NULL, &waits, &err), &err);
  for (int i = 0; i < SERVERS; i++) stop_server(&w.servers[i]);
  weir_tensor *t = tensor_of(&w, WEIR_F32, 1, dims, NULL);
  assert_ok(weir_kv_push(w.kv[0], "v", t, NULL, &late, &err), &err);
  assert_error(weir_kv_wait(late, 0, NULL, &err), &err, "W7116");
  weir_tensor_release(t); /* the op holds it */
  for (int i = 0; i < WORKERS; i++) weir_kv_close(w.kv[i]);
  weir_runtime_release(w.runtime);
  assert_error(weir_kv_wait(waits, -1, NULL, &err), &err, "W7118");
  assert_error(weir_kv_wait(late, -1, NULL, &err), &err, "W7118");
  weir_kv_handle_release(waits);
  weir_kv_handle_release(late);
}

/* A server that is started anew has lost its keys: no zeros, an error. */
static void a_restarted_server_is_told_by_name(void **state) {
  (void)state;
  world w;
  const int64_t dims[] = {40, 2};
  weir_kv_handle *h = NULL;
  weir_error err = WEIR_ERROR_INIT;
  open_world(&w);
  weir_kv_key_opts key = key_of(WEIR_F32, 2, dims, "add");
  declare(&w, "table", &key);
  weir_tensor *t = tensor_of(&w, WEIR_F32, 2, dims, NULL);
  push(&w, 0, "table", t, NULL);
  stop_server(&w.servers[1]);
  start_server(&w.servers[1], 1);
  assert_ok(weir_kv_pull(w.kv[0], "table", t, NULL, &h, &err), &err);
  assert_error(weir_kv_wait(h, -1, NULL, &err), &err, "W7114");
  assert_non_null(strstr(err.message, "ps:1"));
  weir_kv_handle_release(h);
  weir_kv_close(w.kv[1]); /* a process that comes back declares anew */
  weir_kv_opts o = the_opts("worker", 1);
  assert_ok(weir_kv_open(w.runtime, &o, &w.kv[1], &err), &err);
  assert_ok(weir_kv_declare(w.kv[1], "table", &key, &err), &err);
  assert_int_equal(push(&w, 1, "table", t, NULL).version, 1);
  weir_tensor_release(t);
  close_world(&w);
}

static void options_are_checked(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_runtime *runtime = a_runtime(NULL);
  weir_kv *kv = NULL;
  weir_kv_server *s = NULL;
  weir_kv_opts o = the_opts("ps", 0);
  assert_error(weir_kv_open(runtime, &o, &kv, &err), &err, "W0002");
  o = the_opts("worker", 2);
  assert_error(weir_kv_open(runtime, &o, &kv, &err), &err, "W0002");
  o = the_opts("worker", 0);
  assert_error(weir_kv_server_create(runtime, &o, &s, &err), &err, "W0002");
  o.lost_after_ns = 5;
  assert_error(weir_kv_open(runtime, &o, &kv, &err), &err, "W0002");
  o = the_opts("worker", 0);
  o.cluster = "worker=4";
  assert_error(weir_kv_open(runtime, &o, &kv, &err), &err, "W0002");
  o = the_opts("worker", 0);
  o.address_count = 1;
  assert_error(weir_kv_open(runtime, &o, &kv, &err), &err, "W0002");
  o = the_opts("worker", 0);
  o.job = NULL;
  assert_error(weir_kv_open(runtime, &o, &kv, &err), &err, "W0004");
  weir_kv_close(NULL);
  weir_kv_handle_release(NULL);
  weir_kv_server_stop(NULL);
  weir_kv_server_release(NULL);
  weir_runtime_release(runtime);
}

/* A worker whose k-th allocation fails: calls fail with W6001, or links end and
 * ops are sent again; the pushes that were answered count, once. */
static void lack_of_memory_loses_nothing(void **state) {
  (void)state;
  world w;
  const int64_t dims[] = {40, 2}, one[] = {1, 2}, zero = 0;
  const float ones[] = {1, 1};
  float want = 0;
  open_world(&w);
  weir_kv_key_opts key = key_of(WEIR_F32, 2, dims, "add");
  declare(&w, "table", &key);
  weir_tensor *x = tensor_of(&w, WEIR_F32, 2, one, ones);
  weir_tensor *i = tensor_of(&w, WEIR_I64, 1, one, &zero);
  weir_kv_close(w.kv[1]);
  w.kv[1] = NULL;
  bool through = false;
  for (long k = 1; !through && k < 400; k += k < 40 ? 1 : 7) {
    host memory = {.fail_at = 0};
    weir_error err = WEIR_ERROR_INIT;
    weir_runtime *runtime = a_runtime(&memory);
    weir_kv_opts o = the_opts("worker", 1);
    weir_kv *kv = NULL;
    weir_kv_handle *h = NULL;
    weir_kv_op_opts by_row = {.struct_size = sizeof by_row, .ids = i};
    memory.fail_at = atomic_load(&memory.calls) + k;
    weir_status s = weir_kv_open(runtime, &o, &kv, &err);
    if (s == WEIR_OK) s = weir_kv_declare(kv, "table", &key, &err);
    if (s == WEIR_OK) s = weir_kv_push(kv, "table", x, &by_row, &h, &err);
    if (s == WEIR_OK) s = weir_kv_wait(h, -1, NULL, &err);
    if (s == WEIR_OK) want++;
    if (s != WEIR_OK) assert_int_equal(s, WEIR_RESOURCE_EXHAUSTED);
    weir_kv_handle_release(h);
    weir_kv_close(kv);
    weir_runtime_release(runtime);
    assert_int_equal(atomic_load(&memory.live), 0);
    through = atomic_load(&memory.calls) < memory.fail_at;
  }
  assert_true(through && want > 0);
  pull(&w, 0, "table", x,
       &(weir_kv_op_opts){.struct_size = sizeof(weir_kv_op_opts), .ids = i});
  assert_true(((const float *)weir_tensor_data(x))[0] == want);
  weir_tensor_release(x);
  weir_tensor_release(i);
  close_world(&w);
}

typedef struct failing_server {
  server base;
  atomic_bool ended;
} failing_server;

static void *serve_failing(void *self) {
  failing_server *s = self;
  s->base.status = weir_kv_server_run(s->base.kv, &s->base.err);
  atomic_store(&s->ended, true);
  return NULL;
}

/* A declaration and a push; false: the server has ended. */
static bool use_failing(failing_server *s, weir_kv *kv,
                        const weir_kv_key_opts *key, const weir_tensor *x) {
  weir_error err = WEIR_ERROR_INIT;
  weir_kv_handle *h = NULL;
  weir_status status;
  do {
    status = weir_kv_declare(kv, "v", key, &err);
    if (atomic_load(&s->ended)) return false;
  } while (status != WEIR_OK);
  do {
    weir_kv_handle_release(h);
    h = NULL;
    assert_ok(weir_kv_push(kv, "v", x, NULL, &h, &err), &err);
    do status = weir_kv_wait(h, 20000000, NULL, &err);
    while (status == WEIR_DEADLINE_EXCEEDED && !atomic_load(&s->ended));
  } while (status != WEIR_OK && !atomic_load(&s->ended));
  weir_kv_handle_release(h);
  return status == WEIR_OK;
}

/* A server whose k-th allocation fails: it does not open or run, refuses with
 * W6001, or its link ends and the op comes again; it counts once. */
static void lack_of_memory_at_a_server(void **state) {
  (void)state;
  const int64_t dims[] = {3};
  const float one[] = {1, 2, 3};
  bool through = false;
  for (long k = 1; !through && k < 2000; k += k < 20 ? 1 : 23) {
    host memory = {.fail_at = 0};
    weir_error err = WEIR_ERROR_INIT;
    failing_server s = {.base = {.err = WEIR_ERROR_INIT}};
    weir_kv_opts o = the_opts("ps", 0), w = the_opts("worker", 0);
    o.cluster = w.cluster = "ps=1,worker=1";
    o.address_count = w.address_count = 2;
    s.base.runtime = a_runtime(&memory);
    memory.fail_at = atomic_load(&memory.calls) + k;
    if (weir_kv_server_create(s.base.runtime, &o, &s.base.kv, &err) !=
        WEIR_OK) {
      assert_int_equal(err.code, WEIR_RESOURCE_EXHAUSTED);
      weir_runtime_release(s.base.runtime);
      assert_int_equal(atomic_load(&memory.live), 0);
      continue;
    }
    assert_int_equal(pthread_create(&s.base.thread, NULL, serve_failing, &s),
                     0);
    world alone = {.runtime = a_runtime(NULL)};
    assert_ok(weir_kv_open(alone.runtime, &w, &alone.kv[0], &err), &err);
    weir_kv_key_opts key = key_of(WEIR_F32, 1, dims, "sgd(lr=1)");
    key.timeout_ns = 2000000000;
    weir_tensor *x = tensor_of(&alone, WEIR_F32, 1, dims, one);
    if (use_failing(&s, alone.kv[0], &key, x)) {
      weir_kv_result r = pull(&alone, 0, "v", x, NULL);
      assert_int_equal(r.version, 1);
      assert_true(((const float *)weir_tensor_data(x))[2] == -3);
    }
    weir_tensor_release(x);
    weir_kv_close(alone.kv[0]);
    weir_runtime_release(alone.runtime);
    weir_kv_server_stop(s.base.kv);
    pthread_join(s.base.thread, NULL);
    weir_kv_server_release(s.base.kv);
    weir_runtime_release(s.base.runtime);
    assert_int_equal(atomic_load(&memory.live), 0);
    through = atomic_load(&memory.calls) < memory.fail_at;
  }
  assert_true(through);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pushes_add_and_pulls_see_them),
      cmocka_unit_test(rows_of_a_table_on_two_servers),
      cmocka_unit_test(rules_update_as_optimizers_do),
      cmocka_unit_test(bad_input_is_told),
      cmocka_unit_test(barriers_pass_and_break),
      cmocka_unit_test(closing_ends_what_is_under_way),
      cmocka_unit_test(a_restarted_server_is_told_by_name),
      cmocka_unit_test(options_are_checked),
      cmocka_unit_test(lack_of_memory_loses_nothing),
      cmocka_unit_test(lack_of_memory_at_a_server),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
