/* SPDX-License-Identifier: Apache-2.0 */
/* The server of calls on gRPC core, asked by a client on it: messages, streams,
 * statuses, limits, clients that leave. One thread polls both in turn. */
#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <grpc/support/time.h>
#include <stdlib.h>

#include "runtime/base/env_system.h"
#include "runtime/net/grpc.h"
#include "runtime/net/transport.h"
#include "tests/check.h"

enum { MOST = 1 << 20 };

static const weir_rpc_method kMethods[] = {{"/t/One", false, false},
                                           {"/t/Many", true, false},
                                           {"/t/Watch", false, true}};

/* The echo of what comes, or, with |keep|, nothing yet. */
typedef struct scene {
  weir_counted_allocator memory;
  weir_env env;
  weir_module_handle module;
  weir_rpc_server *server;
  char address[WEIR_NET_ADDRESS_BYTES];
  bool keep, again;
  weir_rpc_call *kept;
  int messages;
  grpc_completion_queue *queue;
  grpc_channel *channel;
  weir_error err;
} scene;

static void on_message(void *self, const weir_rpc_message *m) {
  scene *s = self;
  s->messages++;
  s->again = m->again;
  if (s->keep) {
    s->kept = m->call;
    return;
  }
  const weir_rpc_reply reply = {.pieces = &m->bytes, .count = 1};
  s->server->vt->reply(s->server, m->call, &reply);
}

static grpc_channel *dial(const scene *s) {
  grpc_arg own = {.type = GRPC_ARG_INTEGER,
                  .key = (char *)(uintptr_t)GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL,
                  .value = {.integer = 1}};
  const grpc_channel_args args = {1, &own};
  grpc_channel_credentials *plain = grpc_insecure_credentials_create();
  grpc_channel *channel = grpc_channel_create(s->address, plain, &args);
  grpc_channel_credentials_release(plain);
  return channel;
}

static void begin(scene *s, uint32_t max_calls, int64_t idle_ns) {
  memset(s, 0, sizeof *s);
  s->err = (weir_error)WEIR_ERROR_INIT;
  weir_counted_allocator_init(&s->memory, NULL);
  s->env = *weir_env_system();
  s->env.alloc = &s->memory.base;
  const weir_rpc_handler handler = {s, on_message};
  const weir_rpc_options options = {.methods = kMethods,
                                    .method_count = 3,
                                    .max_message_bytes = MOST,
                                    .max_calls = max_calls,
                                    .idle_ns = idle_ns};
  assert_ok(
      weir_transport_grpc_load(&s->module, getenv("WEIR_BUILD_ROOT"), &s->err),
      &s->err);
  assert_ok(weir_rpc_server_grpc_create(&s->env, &s->module, &handler, &options,
                                        &s->server, &s->err),
            &s->err);
  assert_ok(s->server->vt->listen(s->server, WEIR_SV_LIT("127.0.0.1:0"),
                                  s->address, &s->err),
            &s->err);
  grpc_init();
  s->queue = grpc_completion_queue_create_for_next(NULL);
  s->channel = dial(s);
}

/* One event of the client's queue, if there is one, after the server's turn. */
static void *turn(scene *s) {
  (void)s->server->vt->poll(s->server, s->env.clock->now_ns(NULL) + 1000000,
                            &s->err);
  grpc_event e = grpc_completion_queue_next(
      s->queue, gpr_time_0(GPR_CLOCK_MONOTONIC), NULL);
  return e.type == GRPC_OP_COMPLETE ? e.tag : NULL;
}

static void await(scene *s, void *tag) {
  while (turn(s) != tag) {
  }
}

static void end(scene *s) {
  grpc_channel_destroy(s->channel);
  grpc_completion_queue_shutdown(s->queue);
  while (grpc_completion_queue_next(s->queue,
                                    gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL)
             .type != GRPC_QUEUE_SHUTDOWN) {
  }
  grpc_completion_queue_destroy(s->queue);
  weir_rpc_server_release(s->server);
  grpc_shutdown();
  assert_int_equal(atomic_load(&s->memory.live_blocks), 0);
}

/* ---- A client's call */

typedef struct call {
  grpc_call *call;
  grpc_metadata_array first, last;
  grpc_status_code code;
  grpc_slice words;
  char text[200];
} call;

/* Begins a call whose end is the tag |c|. */
static void call_begin(scene *s, grpc_channel *channel, const char *path,
                       call *c) {
  memset(c, 0, sizeof *c);
  c->call = grpc_channel_create_call(channel, NULL, 0, s->queue,
                                     grpc_slice_from_copied_string(path), NULL,
                                     gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
  grpc_op ops[3] = {{.op = GRPC_OP_SEND_INITIAL_METADATA},
                    {.op = GRPC_OP_RECV_INITIAL_METADATA},
                    {.op = GRPC_OP_RECV_STATUS_ON_CLIENT}};
  ops[1].data.recv_initial_metadata.recv_initial_metadata = &c->first;
  ops[2].data.recv_status_on_client.trailing_metadata = &c->last;
  ops[2].data.recv_status_on_client.status = &c->code;
  ops[2].data.recv_status_on_client.status_details = &c->words;
  assert_int_equal(grpc_call_start_batch(c->call, ops, 3, c, NULL), 0);
}

static void batch(call *c, grpc_op op) {
  assert_int_equal(grpc_call_start_batch(c->call, &op, 1, &c->call, NULL), 0);
}

static void send(scene *s, call *c, const void *data, size_t size, bool wait) {
  grpc_slice slice = grpc_slice_from_copied_buffer(data, size);
  grpc_byte_buffer *out = grpc_raw_byte_buffer_create(&slice, 1);
  grpc_op op = {.op = GRPC_OP_SEND_MESSAGE};
  op.data.send_message.send_message = out;
  batch(c, op);
  if (wait) await(s, &c->call);
  grpc_byte_buffer_destroy(out);
  grpc_slice_unref(slice);
}

static void half_close(scene *s, call *c) {
  batch(c, (grpc_op){.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT});
  await(s, &c->call);
}

/* The next answer is these bytes; NULL: there is none. */
static void check_answer(scene *s, call *c, const void *data, size_t size) {
  grpc_byte_buffer *in = NULL;
  grpc_op op = {.op = GRPC_OP_RECV_MESSAGE};
  op.data.recv_message.recv_message = &in;
  batch(c, op);
  await(s, &c->call);
  assert_int_equal(in != NULL, data != NULL);
  if (in == NULL) return;
  grpc_byte_buffer_reader r;
  assert_true(grpc_byte_buffer_reader_init(&r, in));
  grpc_slice all = grpc_byte_buffer_reader_readall(&r);
  assert_int_equal(GRPC_SLICE_LENGTH(all), size);
  assert_memory_equal(GRPC_SLICE_START_PTR(all), data, size);
  grpc_slice_unref(all);
  grpc_byte_buffer_reader_destroy(&r);
  grpc_byte_buffer_destroy(in);
}

/* Frees the call, whose end has come. */
static void call_free(call *c) {
  size_t n = GRPC_SLICE_LENGTH(c->words);
  if (n >= sizeof c->text) n = sizeof c->text - 1;
  memcpy(c->text, GRPC_SLICE_START_PTR(c->words), n);
  c->text[n] = '\0';
  grpc_slice_unref(c->words);
  grpc_metadata_array_destroy(&c->first);
  grpc_metadata_array_destroy(&c->last);
  grpc_call_unref(c->call);
}

static void check_end(scene *s, call *c, grpc_status_code code,
                      const char *text) {
  await(s, c);
  call_free(c);
  assert_int_equal(c->code, code);
  if (text != NULL) assert_string_equal(c->text, text);
}

/* ---- Tests */

static void test_echo(void **state) {
  static uint8_t large[MOST - 100];
  scene s;
  call c;
  (void)state;
  for (size_t i = 0; i < sizeof large; i++) large[i] = (uint8_t)(i * 7 >> 3);
  begin(&s, 10, INT64_MAX / 4);
  for (int i = 0; i < 3; i++) {
    size_t size = i == 0 ? 0 : i == 1 ? 5 : sizeof large;
    call_begin(&s, s.channel, "/t/One", &c);
    send(&s, &c, large, size, false);
    await(&s, &c.call);
    check_answer(&s, &c, large, size);
    check_end(&s, &c, GRPC_STATUS_OK, "");
  }
  assert_int_equal(s.messages, 3);
  end(&s);
}

static void test_stream(void **state) {
  scene s;
  call c;
  (void)state;
  begin(&s, 10, INT64_MAX / 4);
  call_begin(&s, s.channel, "/t/Many", &c);
  for (int i = 0; i < 3; i++) {
    send(&s, &c, "abc", (size_t)i + 1, true);
    check_answer(&s, &c, "abc", (size_t)i + 1);
  }
  half_close(&s, &c);
  check_answer(&s, &c, NULL, 0);
  check_end(&s, &c, GRPC_STATUS_OK, "");
  end(&s);
}

static void test_statuses(void **state) {
  static uint8_t large[2 * MOST];
  scene s;
  call c;
  (void)state;
  begin(&s, 10, INT64_MAX / 4);
  call_begin(&s, s.channel, "/t/Two", &c);
  check_end(&s, &c, GRPC_STATUS_UNIMPLEMENTED, "no such method");
  call_begin(&s, s.channel, "/t/One", &c);
  half_close(&s, &c);
  check_end(&s, &c, GRPC_STATUS_INVALID_ARGUMENT, "the call has no message");
  call_begin(&s, s.channel, "/t/One", &c);
  send(&s, &c, large, sizeof large, true);
  check_end(&s, &c, GRPC_STATUS_RESOURCE_EXHAUSTED, NULL);
  assert_int_equal(s.messages, 0);
  end(&s);
}

/* A call that brings no message, and more calls than there may be. */
static void test_limits(void **state) {
  scene s;
  call idle, more;
  (void)state;
  begin(&s, 1, 1);
  call_begin(&s, s.channel, "/t/One", &idle);
  check_end(&s, &idle, GRPC_STATUS_DEADLINE_EXCEEDED, NULL);
  end(&s);
  begin(&s, 1, INT64_MAX / 4);
  s.keep = true;
  call_begin(&s, s.channel, "/t/One", &idle);
  send(&s, &idle, "a", 1, true);
  while (s.messages == 0) (void)turn(&s);
  grpc_channel *second = dial(&s);
  call_begin(&s, second, "/t/One", &more);
  check_end(&s, &more, GRPC_STATUS_RESOURCE_EXHAUSTED,
            "too many calls are open");
  grpc_channel_destroy(second);
  const weir_rpc_reply refused = {.status = WEIR_UNAVAILABLE,
                                  .text = "not now"};
  s.server->vt->reply(s.server, s.kept, &refused);
  check_end(&s, &idle, GRPC_STATUS_UNAVAILABLE, "not now");
  end(&s);
}

/* The client leaves while its message is worked on: the answer goes nowhere. */
static void test_client_leaves(void **state) {
  scene s;
  call c;
  (void)state;
  begin(&s, 10, INT64_MAX / 4);
  s.keep = true;
  call_begin(&s, s.channel, "/t/One", &c);
  send(&s, &c, "a", 1, true);
  while (s.messages == 0) (void)turn(&s);
  assert_false(s.server->vt->gone(s.server, s.kept));
  grpc_call_cancel(c.call, NULL);
  check_end(&s, &c, GRPC_STATUS_CANCELLED, NULL);
  while (!s.server->vt->gone(s.server, s.kept)) (void)turn(&s);
  const weir_rpc_reply late = {.pieces = &(weir_bytes){(uint8_t *)"b", 1},
                               .count = 1};
  s.server->vt->reply(s.server, s.kept, &late);
  end(&s);
}

static void tell(scene *s, const char *text) {
  const weir_rpc_reply news = {
      .pieces = &(weir_bytes){(const uint8_t *)text, strlen(text)}, .count = 1};
  s->server->vt->reply(s->server, s->kept, &news);
}

static void tell_when_there(scene *s) {
  while (s->messages == 0) (void)turn(s);
  tell(s, "news");
}

/* A watch is its owner's again after each answer, until that one ends it. */
static void test_watch(void **state) {
  scene s;
  call c;
  (void)state;
  begin(&s, 10, 1); /* nobody waits for a message of it */
  s.keep = true;
  call_begin(&s, s.channel, "/t/Watch", &c);
  send(&s, &c, "a", 1, true);
  while (s.messages == 0) (void)turn(&s);
  assert_false(s.again);
  for (int i = 1; i <= 3; i++) {
    tell(&s, "xyz");
    check_answer(&s, &c, "xyz", 3);
    while (s.messages == i) (void)turn(&s);
    assert_int_equal(s.messages, i + 1);
    assert_true(s.again);
  }
  const weir_rpc_reply over = {.status = WEIR_UNAVAILABLE, .text = "over"};
  s.server->vt->reply(s.server, s.kept, &over);
  check_answer(&s, &c, NULL, 0);
  check_end(&s, &c, GRPC_STATUS_UNAVAILABLE, "over");
  end(&s);
}

/* The client of a watch leaves: a poll that waits for ever ends. */
static void test_watcher_leaves(void **state) {
  scene s;
  call c;
  (void)state;
  begin(&s, 10, INT64_MAX / 4);
  s.keep = true;
  call_begin(&s, s.channel, "/t/Watch", &c);
  send(&s, &c, "a", 1, true);
  tell_when_there(&s);
  check_answer(&s, &c, "news", 4);
  while (s.messages == 1) (void)turn(&s);
  grpc_call_cancel(c.call, NULL);
  check_end(&s, &c, GRPC_STATUS_CANCELLED, NULL);
  while (!s.server->vt->gone(s.server, s.kept))
    (void)s.server->vt->poll(s.server, INT64_MAX, &s.err);
  const weir_rpc_reply over = {.status = WEIR_CANCELLED, .text = "gone"};
  s.server->vt->reply(s.server, s.kept, &over);
  end(&s);
}

/* The server ends while news are on their way: the client gets both, the news
 * and the end. */
static void test_release_with_a_watch(void **state) {
  scene s;
  call c;
  grpc_byte_buffer *in = NULL;
  (void)state;
  begin(&s, 10, INT64_MAX / 4);
  s.keep = true;
  call_begin(&s, s.channel, "/t/Watch", &c);
  send(&s, &c, "a", 1, true);
  tell_when_there(&s);
  weir_rpc_server_release(s.server);
  s.server = NULL;
  grpc_op op = {.op = GRPC_OP_RECV_MESSAGE};
  op.data.recv_message.recv_message = &in;
  batch(&c, op);
  for (int left = 2; left > 0; left--)
    (void)grpc_completion_queue_next(s.queue,
                                     gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
  assert_non_null(in);
  grpc_byte_buffer_destroy(in);
  call_free(&c);
  assert_int_equal(c.code, GRPC_STATUS_UNAVAILABLE);
  assert_string_equal(c.text, "the server stops");
  end(&s);
}

/* The server ends while a client waits, and without any. */
static void test_release(void **state) {
  scene s;
  call c;
  (void)state;
  begin(&s, 10, INT64_MAX / 4);
  call_begin(&s, s.channel, "/t/Many", &c);
  send(&s, &c, "a", 1, true);
  check_answer(&s, &c, "a", 1);
  weir_rpc_server_release(s.server);
  s.server = NULL;
  grpc_event e = grpc_completion_queue_next(
      s.queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
  assert_ptr_equal(e.tag, &c);
  call_free(&c);
  assert_int_equal(c.code, GRPC_STATUS_UNAVAILABLE);
  end(&s);
}

/* Each allocation of a call fails once: the client gets a status, and the next
 * call is answered. */
static void test_memory(void **state) {
  static uint8_t large[MOST / 2];
  (void)state;
  for (uint64_t k = 1; k <= 2; k++) {
    scene s;
    call c;
    begin(&s, 10, INT64_MAX / 4);
    s.memory.fail_at = atomic_load(&s.memory.calls) + k;
    call_begin(&s, s.channel, "/t/One", &c);
    send(&s, &c, large, sizeof large, true);
    check_end(&s, &c,
              k == 1 ? GRPC_STATUS_CANCELLED : GRPC_STATUS_RESOURCE_EXHAUSTED,
              k == 1 ? NULL : "out of memory");
    assert_string_equal(s.err.id, "W6001");
    call_begin(&s, s.channel, "/t/One", &c);
    send(&s, &c, "a", 1, true);
    check_answer(&s, &c, "a", 1);
    check_end(&s, &c, GRPC_STATUS_OK, "");
    end(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_echo),
      cmocka_unit_test(test_stream),
      cmocka_unit_test(test_statuses),
      cmocka_unit_test(test_limits),
      cmocka_unit_test(test_client_leaves),
      cmocka_unit_test(test_release),
      cmocka_unit_test(test_watch),
      cmocka_unit_test(test_watcher_leaves),
      cmocka_unit_test(test_release_with_a_watch),
      cmocka_unit_test(test_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
