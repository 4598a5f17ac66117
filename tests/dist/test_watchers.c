/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that watch a server's health: what they are told and when, how many
 * there may be, and that each is let go. */
#include "runtime/base/bytes/proto.h"
#include "runtime/base/env_system.h"
#include "runtime/dist/predict/watchers.h"
#include "tests/dist/rpc_fake.h"

enum { MOST = WEIR_PREDICT_WATCHERS };

typedef struct scene {
  fake_rpc rpc;
  weir_counted_allocator memory;
  weir_predict_watchers w;
  fake_call calls[MOST + 1];
  weir_error err;
} scene;

static void begin(scene *s) {
  const weir_rpc_handler handler = {NULL, NULL};
  const weir_rpc_options options = {.methods = NULL};
  weir_rpc_server *server;
  memset(s, 0, sizeof *s);
  s->err = (weir_error)WEIR_ERROR_INIT;
  weir_counted_allocator_init(&s->memory, NULL);
  fake_init(&s->rpc, weir_env_system());
  assert_ok(s->rpc.maker.create(&s->rpc, &handler, &options, &server, &s->err),
            &s->err);
  s->w = (weir_predict_watchers){.rpc = server, .alloc = &s->memory.base};
}

static void end(scene *s) {
  assert_int_equal(s->w.count, 0);
  assert_int_equal(atomic_load(&s->memory.live_blocks), 0);
}

/* A message of call |i|, about |service|; NULL: the call comes again. */
static weir_status come(scene *s, int i, const char *service) {
  fake_call *c = &s->calls[i];
  weir_strbuf request;
  weir_strbuf_init(&request, weir_allocator_system());
  weir_strbuf_init(&c->answer, weir_allocator_system());
  if (service != NULL) weir_proto_put_bytes(&request, 1, weir_sv_from(service));
  const weir_rpc_message m = {
      .call = (weir_rpc_call *)c,
      .bytes = {(const uint8_t *)weir_strbuf_view(&request).data, request.size},
      .again = service == NULL};
  c->done = false;
  weir_status status = weir_predict_watchers_message(&s->w, &m, &s->err);
  weir_strbuf_release(&request);
  return status;
}

/* The state in the answer of call |i|; 0: it has none. */
static int told(scene *s, int i) {
  fake_call *c = &s->calls[i];
  weir_reader r =
      weir_reader_of((const uint8_t *)c->answer.data, c->answer.size);
  weir_proto_field f;
  int state = 0;
  if (!c->done || c->status != WEIR_OK) return 0;
  while (weir_proto_next(&r, &f))
    if (f.number == 1) state = (int)f.value;
  weir_strbuf_release(&c->answer);
  return state;
}

static void assert_let_go(scene *s, int i) {
  assert_true(s->calls[i].done);
  assert_int_equal(s->calls[i].status, WEIR_UNAVAILABLE);
  assert_string_equal(s->calls[i].text, "W7078: the server stops");
}

static void test_states(void **state) {
  scene s;
  (void)state;
  begin(&s);
  assert_ok(come(&s, 0, ""), &s.err);
  assert_int_equal(told(&s, 0), 1);
  assert_ok(come(&s, 1, "weir.v1.Predict"), &s.err);
  assert_int_equal(told(&s, 1), 1);
  assert_ok(come(&s, 2, "nothing"), &s.err);
  assert_int_equal(told(&s, 2), 3);
  for (int i = 0; i < 3; i++) { /* there is no news */
    assert_ok(come(&s, i, NULL), &s.err);
    assert_false(s.calls[i].done);
  }
  weir_predict_watchers_stop(&s.w);
  assert_int_equal(told(&s, 0), 2);
  assert_int_equal(told(&s, 1), 2);
  assert_false(s.calls[2].done); /* which is as unknown as before */
  assert_ok(come(&s, 0, NULL), &s.err);
  assert_ok(come(&s, 1, NULL), &s.err);
  assert_ok(come(&s, 3, ""), &s.err); /* one that comes late */
  assert_int_equal(told(&s, 3), 2);
  assert_ok(come(&s, 3, NULL), &s.err);
  weir_predict_watchers_end(&s.w);
  for (int i = 0; i < 4; i++) assert_let_go(&s, i);
  end(&s);
}

/* The stop comes while an answer is on its way. */
static void test_news_wait(void **state) {
  scene s;
  (void)state;
  begin(&s);
  assert_ok(come(&s, 0, ""), &s.err);
  assert_int_equal(told(&s, 0), 1);
  s.calls[0].done = false;
  weir_predict_watchers_stop(&s.w);
  assert_false(s.calls[0].done);
  assert_ok(come(&s, 0, NULL), &s.err);
  assert_int_equal(told(&s, 0), 2);
  s.calls[0].done = false;
  weir_predict_watchers_end(&s.w); /* the server of calls ends it */
  assert_false(s.calls[0].done);
  assert_int_equal(s.w.count, 1);
  assert_ok(come(&s, 0, NULL), &s.err);
  weir_predict_watchers_end(&s.w);
  assert_let_go(&s, 0);
  end(&s);
}

static void test_limit_and_leaving(void **state) {
  scene s;
  (void)state;
  begin(&s);
  for (int i = 0; i < MOST; i++) {
    assert_ok(come(&s, i, ""), &s.err);
    assert_int_equal(told(&s, i), 1);
    assert_ok(come(&s, i, NULL), &s.err);
  }
  assert_error(come(&s, MOST, ""), &s.err, "W7077");
  assert_false(s.calls[MOST].done); /* the caller's to answer */
  weir_predict_watchers_look(&s.w);
  assert_int_equal(s.w.count, MOST);
  atomic_store(&s.calls[5].gone, true);
  weir_predict_watchers_look(&s.w);
  assert_let_go(&s, 5);
  assert_ok(come(&s, MOST, ""), &s.err);
  assert_int_equal(told(&s, MOST), 1);
  assert_ok(come(&s, MOST, NULL), &s.err);
  weir_predict_watchers_end(&s.w);
  end(&s);
}

static void test_bad_request(void **state) {
  scene s;
  (void)state;
  begin(&s);
  assert_error(come(&s, 0, "\xff"), &s.err, "W7075");
  assert_false(s.calls[0].done);
  end(&s);
}

/* Whom nothing can be told, for lack of memory, is let go. */
static void test_memory(void **state) {
  scene s;
  (void)state;
  begin(&s);
  s.memory.fail_at = atomic_load(&s.memory.calls) + 1;
  assert_ok(come(&s, 0, ""), &s.err);
  assert_let_go(&s, 0);
  end(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_states),
      cmocka_unit_test(test_news_wait),
      cmocka_unit_test(test_limit_and_leaving),
      cmocka_unit_test(test_bad_request),
      cmocka_unit_test(test_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
