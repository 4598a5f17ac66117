/* SPDX-License-Identifier: Apache-2.0 */
/* A session as a service, without sockets: which graphs have batches, what
 * answers hold, whom a fault touches, and how it stops. */
#include <stdlib.h>
#include <string.h>

#include "kernels/kernel.h"
#include "runtime/base/bytes/proto.h"
#include "runtime/base/env_system.h"
#include "runtime/base/mix.h"
#include "runtime/dist/predict/check_rows.h"
#include "runtime/dist/predict/service.h"
#include "runtime/exec/session/session.h"
#include "runtime/graph/load/load.h"
#include "tests/dist/rpc_fake.h"
#include "tests/exec/support.h"

enum { PREDICT, DESCRIBE, F32 = 1, I32 = 3, I64 = 4, BOOL = 6 };

static const int64_t kHour = INT64_C(3600) * 1000000000;

#define HEAD "weir: 1\ndims: [b, t, n, m]\n"
/* y[r] = 2 x[r][0] + 3 x[r][1], z = -x. */
static const char kRows[] = HEAD
    "inputs: {x: 'f32[b, 2]'}\n"
    "nodes:\n"
    "  w: const([[2], [3]], dtype=f32)\n"
    "  y: matmul(x, w)\n"
    "  z: neg(x)\n"
    "outputs: [y, z]\n";

typedef struct scene {
  exec_world world;
  weir_graph *graph;
  weir_pool *pool;
  weir_exec_session *session;
  fake_rpc rpc;
  weir_predict_service_options options;
  weir_predict_service *service;
  pthread_t thread;
  weir_error err;
} scene;

/* All but the service, whose options may be changed before it is opened.
 * |text|: a graph, or the name of one in graphs/. */
static void begin(scene *s, const char *text) {
  weir_load_options load = {.registry = weir_builtin_registry()};
  weir_session_options session = {.seed = 1};
  char path[1024];
  memset(s, 0, sizeof *s);
  s->err = (weir_error)WEIR_ERROR_INIT;
  exec_world_init(&s->world);
  weir_env env = s->world.env;
  env.fs = weir_env_system()->fs;
  snprintf(path, sizeof path, "%s/graphs/%.100s.weir.yaml",
           getenv("WEIR_SOURCE_ROOT"), text);
  bool named = strchr(text, ':') == NULL;
  assert_ok(named ? weir_graph_load(&env, path, &load, &s->graph, &s->err)
                  : weir_graph_load_text(&env, weir_sv_from(text), "g", &load,
                                         &s->graph, &s->err),
            &s->err);
  s->pool = exec_pool(&s->world, 1);
  assert_ok(weir_exec_session_create(&s->world.env, s->pool, s->graph, &session,
                                     &s->session, &s->err),
            &s->err);
  fake_init(&s->rpc, &s->world.env);
  s->options = (weir_predict_service_options){.maker = &s->rpc.maker,
                                              .address = "local:1",
                                              .session = s->session,
                                              .graph = s->graph,
                                              .rows = 8,
                                              .wait_ns = kHour};
}

static weir_status open(scene *s) {
  return weir_predict_service_create(&s->world.env, &s->options, &s->service,
                                     &s->err);
}

static void *run(void *self) {
  scene *s = self;
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(weir_predict_service_run(s->service, &err), &err);
  return NULL;
}

static void start(scene *s) {
  assert_ok(open(s), &s->err);
  assert_int_equal(pthread_create(&s->thread, NULL, run, s), 0);
}

static void stop(scene *s) {
  weir_predict_service_stop(s->service);
  pthread_join(s->thread, NULL);
}

static void end(scene *s) {
  weir_predict_service_release(s->service);
  weir_exec_session_release(s->session);
  weir_pool_release(s->pool);
  weir_graph_unref(s->graph);
  exec_world_check_empty(&s->world);
}

/* ---- Requests */

typedef struct message {
  weir_strbuf bytes;
  fake_call call;
} message;

static void put_tensor(weir_strbuf *out, const char *name, int dtype,
                       const int64_t *dims, int rank, const void *data,
                       size_t size) {
  weir_strbuf t, shape;
  weir_strbuf_init(&t, weir_allocator_system());
  weir_strbuf_init(&shape, weir_allocator_system());
  weir_proto_put_bytes(&t, 1, weir_sv_from(name));
  weir_proto_put_int(&t, 2, dtype);
  for (int i = 0; i < rank; i++)
    weir_proto_put_packed_varint(&shape, (uint64_t)dims[i]);
  weir_proto_put_bytes(&t, 3, weir_strbuf_view(&shape));
  weir_proto_put_bytes(&t, 4, (weir_sv){data, size});
  weir_proto_put_bytes(out, 1, weir_strbuf_view(&t));
  weir_strbuf_release(&t);
  weir_strbuf_release(&shape);
}

static void message_init(message *m) {
  memset(m, 0, sizeof *m);
  weir_strbuf_init(&m->bytes, weir_allocator_system());
  weir_strbuf_init(&m->call.answer, weir_allocator_system());
}

/* |rows| of kRows' x: row r is (first + r, 1). */
static void put_x(message *m, int64_t rows, float first) {
  float x[64];
  for (int64_t r = 0; r < rows; r++)
    x[2 * r] = first + (float)r, x[2 * r + 1] = 1;
  put_tensor(&m->bytes, "x", F32, (int64_t[]){rows, 2}, 2, x, (size_t)rows * 8);
}

static void send(scene *s, message *m, uint32_t method) {
  weir_sv view = weir_strbuf_view(&m->bytes);
  fake_send(&s->rpc, &m->call, method,
            (weir_bytes){(const uint8_t *)view.data, view.size});
}

static void message_release(message *m) {
  weir_strbuf_release(&m->bytes);
  weir_strbuf_release(&m->call.answer);
}

static weir_reader answer_of(const message *m) {
  return weir_reader_of(m->call.answer.data, m->call.answer.size);
}

/* The data of output |k| of an answer, |bytes| long, called |name|. */
static const uint8_t *output_of(const message *m, int k, const char *name,
                                size_t bytes) {
  weir_reader r = answer_of(m);
  weir_proto_field f, g;
  const uint8_t *data = NULL;
  while (weir_proto_next(&r, &f)) {
    if (f.number != 1 || k-- != 0) continue;
    while (weir_proto_next(&f.sub, &g)) {
      if (g.number == 1) assert_memory_equal(g.sub.data, name, strlen(name));
      if (g.number == 4) assert_int_equal(g.sub.size, bytes);
      if (g.number == 4) data = g.sub.data;
    }
  }
  assert_non_null(data);
  return data;
}

static void check_y(const message *m, int64_t rows, float first) {
  assert_int_equal(m->call.status, WEIR_OK);
  const uint8_t *y = output_of(m, 0, "y", (size_t)rows * 4);
  for (int64_t r = 0; r < rows; r++) {
    float value;
    memcpy(&value, y + 4 * r, 4);
    assert_true(value == 2 * (first + (float)r) + 3);
  }
  (void)output_of(m, 1, "z", (size_t)rows * 8);
}

/* ---- Batches */

static void test_one_batch_of_many(void **state) {
  static const int64_t kOf[] = {1, 3, 2, 1, 1}; /* 8 rows: full */
  scene s;
  message m[5];
  (void)state;
  begin(&s, kRows);
  start(&s);
  for (int i = 0; i < 5; i++) {
    message_init(&m[i]);
    put_x(&m[i], kOf[i], (float)(10 * i));
    send(&s, &m[i], PREDICT);
  }
  for (int i = 0; i < 5; i++) {
    fake_wait(&s.rpc, &m[i].call);
    check_y(&m[i], kOf[i], (float)(10 * i));
    message_release(&m[i]);
  }
  stop(&s);
  weir_predict_counts c = weir_predict_service_counts(s.service);
  assert_int_equal(c.answered, 5);
  assert_int_equal(c.batches, 1);
  assert_int_equal(c.rows, 8);
  assert_int_equal(c.largest, 5);
  assert_true(c.p50_ns > 0 && c.p99_ns >= c.p50_ns);
  end(&s);
}

/* Each size is filled up; the wanted outputs come in the wanted order. */
static void test_sizes_and_outputs(void **state) {
  scene s;
  (void)state;
  begin(&s, kRows);
  s.options.wait_ns = 0;
  start(&s);
  assert_int_equal(weir_predict_service_rows(s.service, NULL), 8);
  for (int64_t rows = 1; rows <= 8; rows++) {
    message m, z;
    message_init(&m);
    message_init(&z);
    put_x(&m, rows, 5);
    put_x(&z, rows, 5);
    weir_proto_put_bytes(&z.bytes, 2, WEIR_SV_LIT("z"));
    send(&s, &m, PREDICT);
    fake_wait(&s.rpc, &m.call);
    check_y(&m, rows, 5);
    send(&s, &z, PREDICT);
    fake_wait(&s.rpc, &z.call);
    assert_int_equal(z.call.status, WEIR_OK);
    assert_memory_equal(output_of(&z, 0, "z", (size_t)rows * 8),
                        output_of(&m, 1, "z", (size_t)rows * 8),
                        (size_t)rows * 8);
    message_release(&m);
    message_release(&z);
  }
  stop(&s);
  end(&s);
}

/* Which graphs are batched, and the words for those that are not. */
static void test_which_graphs(void **state) {
  static const char kDepend[] = "rows of a batch depend on each other";
  static const char kShapes[] =
      "not all inputs and outputs are rows of one batch, of known size";
  static const char kNone[] =
      "the outputs do not begin with the size of a batch";
  static const struct {
    const char *text, *why;
    int64_t rows, want;
  } kTable[] = {
      {kRows, "", 0, 32},
      {kRows, "", 8, 8},
      {kRows, "batches of one row are wanted", 1, 0},
      {HEAD "inputs: {x: 'f32[4, 2]'}\nnodes: {y: neg(x)}\noutputs: [y]\n", "",
       0, 4},
      {HEAD "inputs: {x: 'f32[b, 2]'}\n"
            "nodes: {a: 'mean(x, axis=0)', y: 'sub(x, a)'}\noutputs: [y]\n",
       kDepend, 8, 0},
      {HEAD "inputs: {x: 'f32[2, 2]'}\nnodes:\n"
            "  a: const([[1, 2], [3, 4]], dtype=f32)\n"
            "  y: matmul(a, x)\noutputs: [y]\n",
       kDepend, 0, 0},
      {HEAD "inputs: {x: 'f32[b, 2]', k: 'f32[] = const(3, dtype=f32)'}\n"
            "nodes: {y: 'mul(x, k)'}\noutputs: [y]\n",
       "", 8, 8},
      {HEAD "inputs: {x: 'f32[b, 2]', k: 'f32[]'}\n"
            "nodes: {y: 'mul(x, k)'}\noutputs: [y]\n",
       kShapes, 8, 0},
      {HEAD "inputs: {x: 'f32[b, t]'}\nnodes: {y: neg(x)}\noutputs: [y]\n",
       kShapes, 8, 0},
      {HEAD "inputs: {x: 'f32[b, 2]'}\nnodes: {y: mean(x)}\noutputs: [y]\n",
       kNone, 8, 0},
      {HEAD "inputs: {x: 'i32[b]', l: 'i32[b]'}\nnodes:\n"
            "  y: gather(const([1, 2, 3], dtype=f32), x)\n"
            "  s: add(l, x)\noutputs: [y]\n",
       "", 8, 8},
  };
  (void)state;
  for (size_t i = 0; i < sizeof kTable / sizeof *kTable; i++) {
    scene s;
    const char *why;
    begin(&s, kTable[i].text);
    s.options.rows = kTable[i].rows;
    assert_ok(open(&s), &s.err);
    assert_int_equal(weir_predict_service_rows(s.service, &why),
                     kTable[i].want);
    assert_string_equal(why, kTable[i].why);
    end(&s);
  }
}

/* Kernels give a row the same bits at every place and in every batch but,
 * perhaps, one of its own: a product of one row may add in another order. */
static void test_sizes_of_real_graphs(void **state) {
  static const char *const kGraphs[] = {"lenet_train", "logistic", "mlp_train",
                                        "transformer_train"};
  static const int64_t kSizes[] = {4, 16, 32};
  (void)state;
  for (size_t i = 0; i < sizeof kGraphs / sizeof *kGraphs; i++) {
    scene s;
    weir_predict_model m;
    weir_predict_slots slots;
    begin(&s, kGraphs[i]);
    const weir_allocator *a = s.world.env.alloc;
    assert_ok(weir_predict_model_init(a, s.graph, 0, &m, &s.err), &s.err);
    assert_ok(weir_predict_slots_init(a, s.session, &m, &slots, &s.err),
              &s.err);
    assert_ok(weir_predict_check_rows(&slots, &m, &s.err), &s.err);
    assert_int_equal(m.rows, 32);
    assert_in_range(m.size_count, 3, 4);
    assert_memory_equal(m.sizes + m.size_count - 3, kSizes, sizeof kSizes);
    weir_predict_slots_release(&slots);
    weir_predict_model_release(&m);
    end(&s);
  }
}

static void test_wrong_batch(void **state) {
  scene s;
  (void)state;
  begin(&s,
        HEAD "inputs: {x: 'f32[4, 2]'}\nnodes: {y: neg(x)}\noutputs: [y]\n");
  assert_error(open(&s), &s.err, "W0002");
  assert_string_equal(s.err.message,
                      "the graph is made for batches of 4 rows, 8 are wanted");
  s.options.rows = 0;
  s.options.address = "taken";
  assert_error(open(&s), &s.err, "W7002");
  end(&s);
}

/* One bad index fails its own request only. */
static void test_a_fault_stays_alone(void **state) {
  scene s;
  message m[3];
  (void)state;
  begin(&s, HEAD
        "inputs: {x: 'i32[b]'}\n"
        "nodes: {y: 'gather(const([1, 2, 3], dtype=f32), x)'}\n"
        "outputs: [y]\n");
  s.options.rows = 3;
  start(&s);
  for (int i = 0; i < 3; i++) {
    int32_t index = i == 1 ? 99 : i;
    message_init(&m[i]);
    put_tensor(&m[i].bytes, "x", I32, (int64_t[]){1}, 1, &index, 4);
    send(&s, &m[i], PREDICT);
  }
  for (int i = 0; i < 3; i++) {
    fake_wait(&s.rpc, &m[i].call);
    assert_int_equal(m[i].call.status, i == 1 ? WEIR_OUT_OF_RANGE : WEIR_OK);
    if (i == 1) {
      assert_non_null(strstr(m[i].call.text, "W5002: "));
    } else {
      float value;
      memcpy(&value, output_of(&m[i], 0, "y", 4), 4);
      assert_true(value == (float)(i + 1));
    }
    message_release(&m[i]);
  }
  stop(&s);
  assert_int_equal(weir_predict_service_counts(s.service).failed, 1);
  end(&s);
}

/* Without a batch requests have any shape that the graph takes. */
static void test_by_themselves(void **state) {
  static const float kOnes[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  scene s;
  (void)state;
  begin(&s, HEAD
        "inputs: {x: 'f32[n, m]', k: 'f32[] = const(2, dtype=f32)'}\n"
        "nodes: {y: 'mul(sum(x), k)'}\noutputs: [y]\n");
  start(&s);
  for (int64_t n = 1; n <= 3; n++) {
    message m;
    float k = 5, value;
    message_init(&m);
    put_tensor(&m.bytes, "x", F32, (int64_t[]){n, 4}, 2, kOnes, (size_t)n * 16);
    if (n == 2) put_tensor(&m.bytes, "k", F32, NULL, 0, &k, 4);
    send(&s, &m, PREDICT);
    fake_wait(&s.rpc, &m.call);
    assert_int_equal(m.call.status, WEIR_OK);
    memcpy(&value, output_of(&m, 0, "y", 4), 4);
    assert_true(value == 4 * (float)n * (n == 2 ? 5 : 2));
    message_release(&m);
  }
  stop(&s);
  end(&s);
}

/* ---- Refusals */

static void check_refused(scene *s, message *m, weir_status status,
                          const char *text) {
  send(s, m, PREDICT);
  fake_wait(&s->rpc, &m->call);
  assert_int_equal(m->call.status, status);
  assert_string_equal(m->call.text, text);
  message_release(m);
  message_init(m);
}

static void test_bad_requests(void **state) {
  static const float kX[6] = {0};
  scene s;
  message m;
  (void)state;
  begin(&s, HEAD
        "inputs: {x: 'f32[b, 2]', q: 'f32[b]', "
        "k: 'f32[] = const(3, dtype=f32)'}\n"
        "nodes: {y: 'mul(x, k)', u: neg(q)}\noutputs: [y]\n");
  start(&s);
  message_init(&m);
  check_refused(&s, &m, WEIR_INVALID_ARGUMENT,
                "W4012: input x, f32[b, 2], is missing");
  put_tensor(&m.bytes, "w", F32, (int64_t[]){1, 2}, 2, kX, 8);
  check_refused(&s, &m, WEIR_INVALID_ARGUMENT,
                "W4011: the graph has no input w");
  put_tensor(&m.bytes, "q", F32, (int64_t[]){1}, 1, kX, 4);
  check_refused(&s, &m, WEIR_INVALID_ARGUMENT,
                "W4011: no output depends on input q: leave it out");
  put_tensor(&m.bytes, "k", F32, NULL, 0, kX, 4);
  check_refused(&s, &m, WEIR_INVALID_ARGUMENT,
                "W4011: input k has a default and is not of the batch: it "
                "stays as it is while requests are batched");
  put_tensor(&m.bytes, "x", I32, (int64_t[]){1, 2}, 2, kX, 8);
  check_refused(&s, &m, WEIR_INVALID_ARGUMENT,
                "W4009: input x is f32[b, 2], the value is i32[1, 2]");
  put_tensor(&m.bytes, "x", 77, (int64_t[]){1, 2}, 2, kX, 8);
  check_refused(&s, &m, WEIR_INVALID_ARGUMENT,
                "W4009: input x is f32[b, 2], the value is ?[1, 2]");
  put_tensor(&m.bytes, "x", F32, (int64_t[]){1, 3}, 2, kX, 12);
  check_refused(&s, &m, WEIR_INVALID_ARGUMENT,
                "W4009: input x is f32[b, 2], the value is f32[1, 3]");
  put_tensor(&m.bytes, "x", F32, (int64_t[]){1, 1, 1, 1, 1, 1, 1, 1, 1}, 9, kX,
             4);
  check_refused(&s, &m, WEIR_INVALID_ARGUMENT,
                "W4009: input x is f32[b, 2], the value is f32[more than 8 "
                "dimensions]");
  put_tensor(&m.bytes, "x", F32, (int64_t[]){9, 2}, 2, kX, 8);
  check_refused(&s, &m, WEIR_INVALID_ARGUMENT,
                "W4009: input x has 9 rows, a request takes 1 to 8");
  put_tensor(&m.bytes, "x", F32, (int64_t[]){0, 2}, 2, kX, 0);
  check_refused(&s, &m, WEIR_INVALID_ARGUMENT,
                "W4009: input x has 0 rows, a request takes 1 to 8");
  put_tensor(&m.bytes, "x", F32, (int64_t[]){1, 2}, 2, kX, 7);
  check_refused(&s, &m, WEIR_INVALID_ARGUMENT,
                "W4009: input x has 7 bytes of data, its shape wants 8");
  put_x(&m, 1, 0);
  put_x(&m, 1, 0);
  check_refused(&s, &m, WEIR_INVALID_ARGUMENT, "W4009: input x is given twice");
  put_x(&m, 1, 0);
  weir_proto_put_bytes(&m.bytes, 2, WEIR_SV_LIT("u"));
  check_refused(&s, &m, WEIR_INVALID_ARGUMENT,
                "W4016: the graph has no output u");
  put_x(&m, 1, 0);
  weir_proto_put_bytes(&m.bytes, 2, WEIR_SV_LIT("y"));
  weir_proto_put_bytes(&m.bytes, 2, WEIR_SV_LIT("y"));
  check_refused(&s, &m, WEIR_INVALID_ARGUMENT,
                "W4016: output y is wanted twice");
  weir_strbuf_append(&m.bytes, "\x0a\x7f", 2);
  check_refused(&s, &m, WEIR_INVALID_ARGUMENT,
                "W7075: the request cannot be read");
  weir_strbuf_append(&m.bytes, "\x0a\x02\x0a\x7f", 4);
  check_refused(&s, &m, WEIR_INVALID_ARGUMENT,
                "W7075: an input of the request cannot be read");
  put_tensor(&m.bytes, "x", F32, (int64_t[]){-1, 2}, 2, kX, 8);
  send(&s, &m, PREDICT);
  fake_wait(&s.rpc, &m.call);
  assert_int_equal(m.call.status, WEIR_INVALID_ARGUMENT);
  message_release(&m);
  stop(&s);
  assert_int_equal(weir_predict_service_counts(s.service).wrong, 17);
  end(&s);
}

static void test_bools(void **state) {
  scene s;
  message m;
  (void)state;
  begin(&s, HEAD
        "inputs: {x: 'bool[b, 2]'}\n"
        "nodes: {y: 'cast(x, f32)'}\noutputs: [y]\n");
  start(&s);
  message_init(&m);
  put_tensor(&m.bytes, "x", BOOL, (int64_t[]){1, 2}, 2, "\x01\x02", 2);
  check_refused(&s, &m, WEIR_INVALID_ARGUMENT,
                "W4009: input x holds a bool that is neither 0 nor 1");
  stop(&s);
  end(&s);
}

/* Those that wait are answered when it stops; later ones are refused. */
static void test_queue_and_stop(void **state) {
  scene s;
  message m[4];
  (void)state;
  begin(&s, kRows);
  s.options.queue = 2;
  start(&s);
  for (int i = 0; i < 4; i++) {
    message_init(&m[i]);
    put_x(&m[i], 1, (float)i);
  }
  m[3].call.message.deadline_ns = 1;
  for (int i = 0; i < 4; i++) send(&s, &m[i], PREDICT);
  for (int i = 2; i < 4; i++) fake_wait(&s.rpc, &m[i].call);
  assert_int_equal(m[2].call.status, WEIR_RESOURCE_EXHAUSTED);
  assert_string_equal(m[2].call.text,
                      "W7077: 2 requests wait, and the queue takes 2");
  assert_int_equal(m[3].call.status, WEIR_DEADLINE_EXCEEDED);
  assert_string_equal(m[3].call.text, "W5006: the deadline is over");
  m[1].call.gone = true;
  stop(&s);
  for (int i = 0; i < 2; i++) fake_wait(&s.rpc, &m[i].call);
  check_y(&m[0], 1, 0);
  weir_predict_counts c = weir_predict_service_counts(s.service);
  assert_int_equal(c.answered, 1);
  assert_int_equal(c.refused, 1);
  assert_int_equal(c.late, 2);
  for (int i = 0; i < 4; i++) message_release(&m[i]);
  /* As if it came while the last batch ran. */
  message_init(&m[0]);
  put_x(&m[0], 1, 0);
  send(&s, &m[0], PREDICT);
  assert_int_equal(fake_poll(&s.rpc.base, 0, NULL), WEIR_OK);
  assert_int_equal(m[0].call.status, WEIR_UNAVAILABLE);
  assert_string_equal(m[0].call.text, "W7078: the server stops");
  message_release(&m[0]);
  end(&s);
}

/* A run that would never end, of a client that left; and a deadline. */
static void test_run_that_nobody_waits_for(void **state) {
  static const int64_t kForEver = INT64_C(1) << 40;
  scene s;
  message m[2];
  (void)state;
  begin(&s, HEAD
        "inputs: {k: 'i64[]'}\n"
        "nodes:\n"
        "  y:\n"
        "    while: {carry: {i: k}, cond: 'greater(i, 0)', "
        "next: {i: 'sub(i, 1)'}}\n"
        "outputs: [y]\n");
  start(&s);
  for (int i = 0; i < 2; i++) {
    message_init(&m[i]);
    put_tensor(&m[i].bytes, "k", I64, NULL, 0, &kForEver, 8);
  }
  m[0].call.gone = true;
  m[1].call.message.deadline_ns = exec_now_ns(NULL) + 50000000;
  for (int i = 0; i < 2; i++) send(&s, &m[i], PREDICT);
  for (int i = 0; i < 2; i++) fake_wait(&s.rpc, &m[i].call);
  assert_int_equal(m[0].call.status, WEIR_CANCELLED);
  assert_int_equal(m[1].call.status, WEIR_DEADLINE_EXCEEDED);
  assert_int_equal(weir_predict_service_counts(s.service).late, 2);
  for (int i = 0; i < 2; i++) message_release(&m[i]);
  stop(&s);
  end(&s);
}

static void test_describe(void **state) {
  scene s;
  message m;
  weir_proto_field f;
  int inputs = 0, outputs = 0;
  uint64_t rows = 0;
  (void)state;
  begin(&s, kRows);
  start(&s);
  message_init(&m);
  send(&s, &m, DESCRIBE);
  fake_wait(&s.rpc, &m.call);
  assert_int_equal(m.call.status, WEIR_OK);
  weir_reader r = answer_of(&m);
  while (weir_proto_next(&r, &f)) {
    inputs += f.number == 1;
    outputs += f.number == 2;
    if (f.number == 3) rows = f.value;
  }
  assert_false(r.failed);
  assert_int_equal(inputs, 1);
  assert_int_equal(outputs, 2);
  assert_int_equal(rows, 8);
  message_release(&m);
  stop(&s);
  end(&s);
}

/* ---- Bytes of anybody, memory */

/* Every cut of a sound request, and many damaged ones, are answered. */
static void test_damaged_bytes(void **state) {
  scene s;
  message sound;
  uint64_t random = 1;
  (void)state;
  begin(&s, kRows);
  s.options.wait_ns = 0;
  start(&s);
  message_init(&sound);
  put_x(&sound, 3, 1);
  weir_proto_put_bytes(&sound.bytes, 2, WEIR_SV_LIT("z"));
  size_t size = sound.bytes.size;
  for (size_t i = 0; i < 400 + size; i++) {
    message m;
    message_init(&m);
    weir_strbuf_append(&m.bytes, sound.bytes.data, i < size ? i : size);
    for (int k = 0; i >= size && k < 3; k++)
      m.bytes.data[weir_mix_below(&random, (uint32_t)size)] =
          (char)weir_mix_next(&random);
    send(&s, &m, PREDICT);
    fake_wait(&s.rpc, &m.call);
    message_release(&m);
  }
  message_release(&sound);
  stop(&s);
  end(&s);
}

/* Each allocation of a service and of a request fails, once or for ever. */
static bool sweep_once(uint64_t k, bool for_ever) {
  scene s;
  message m;
  begin(&s, kRows);
  s.options.wait_ns = 0;
  s.options.runners = 1;
  s.world.memory.fail_forever = for_ever;
  s.world.memory.fail_at = atomic_load(&s.world.memory.calls) + k;
  message_init(&m);
  put_x(&m, 2, 1);
  weir_status status = open(&s);
  if (status == WEIR_OK) {
    assert_int_equal(pthread_create(&s.thread, NULL, run, &s), 0);
    send(&s, &m, PREDICT);
    fake_wait(&s.rpc, &m.call);
    status = m.call.status;
    if (status == WEIR_OK) check_y(&m, 2, 1);
    stop(&s);
  }
  bool over = atomic_load(&s.world.memory.calls) < s.world.memory.fail_at;
  if (over) assert_int_equal(status, WEIR_OK);
  if (status != WEIR_OK) assert_int_equal(status, WEIR_RESOURCE_EXHAUSTED);
  message_release(&m);
  end(&s);
  return over;
}

static void test_memory(void **state) {
  (void)state;
  for (int for_ever = 0; for_ever < 2; for_ever++)
    for (uint64_t k = 1; !sweep_once(k, for_ever); k++) {
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_batch_of_many),
      cmocka_unit_test(test_sizes_and_outputs),
      cmocka_unit_test(test_which_graphs),
      cmocka_unit_test(test_sizes_of_real_graphs),
      cmocka_unit_test(test_wrong_batch),
      cmocka_unit_test(test_a_fault_stays_alone),
      cmocka_unit_test(test_by_themselves),
      cmocka_unit_test(test_bad_requests),
      cmocka_unit_test(test_bools),
      cmocka_unit_test(test_queue_and_stop),
      cmocka_unit_test(test_run_that_nobody_waits_for),
      cmocka_unit_test(test_describe),
      cmocka_unit_test(test_damaged_bytes),
      cmocka_unit_test(test_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
