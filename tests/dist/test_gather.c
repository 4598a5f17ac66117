/* SPDX-License-Identifier: Apache-2.0
 *
 * Small values that are ready together travel together: the messages of a
 * remote whose transport tells when a frame has left it. */
#include "runtime/base/env_system.h"
#include "runtime/dist/channel/exchange.h"
#include "runtime/net/wire.h"
#include "tests/check.h"
#include "tests/counted.h"

enum { kMany = 1000, kFrames = 64 };

/* The transport: messages as they came, none of them has left. */
typedef struct wire {
  int count;
  size_t values[kFrames]; /* per message */
  uint32_t next_id;       /* of the values, which keep their order */
  void (*sent[kFrames])(void *token);
  void *tokens[kFrames];
  bool at_once, refuses;
} wire;

static void note(wire *w, weir_bytes bytes) {
  weir_error err = WEIR_ERROR_INIT;
  weir_wire_message m;
  weir_net_frame frame = {&bytes, 1, bytes.size, NULL, NULL};
  assert_ok(weir_wire_unpack(weir_allocator_system(), &frame, &m, &err), &err);
  assert_int_equal(m.control->body_case, WEIR__V1__CONTROL__BODY_VALUES);
  assert_true(w->count < kFrames);
  w->values[w->count] = m.control->values->n_values;
  for (size_t i = 0; i < m.control->values->n_values; i++)
    assert_int_equal(m.control->values->values[i]->id, w->next_id++);
  weir_wire_message_release(&m);
}

static weir_status on_control(void *self, uint32_t peer, const void *bytes,
                              size_t size) {
  (void)peer;
  wire *w = self;
  note(w, (weir_bytes){bytes, size});
  w->count++;
  return WEIR_OK;
}

static weir_status on_watched(void *self, uint32_t peer, weir_bytes frame,
                              void (*sent)(void *token), void *token) {
  (void)peer;
  wire *w = self;
  if (w->refuses) return WEIR_UNAVAILABLE;
  note(w, frame);
  w->sent[w->count] = sent;
  w->tokens[w->count++] = token;
  if (w->at_once) sent(token);
  return WEIR_OK;
}

static weir_status on_bulk(void *self, uint32_t peer,
                           const weir_net_piece *pieces, size_t count) {
  (void)self, (void)peer, (void)pieces, (void)count;
  fail_msg("no value is large");
  return WEIR_OK;
}

static void leaves(const wire *w, int frame) {
  w->sent[frame](w->tokens[frame]);
}

static void told(void *self, weir_status status, const weir_error *err) {
  (void)err;
  *(int *)self += status == WEIR_OK;
}

static weir_exchange *a_remote(const weir_env *env, const weir_wire_out *out) {
  weir_error err = WEIR_ERROR_INIT;
  weir_exchange_options options = {.rendezvous = {.epoch = 3, .tasks = 2},
                                   .out = out};
  weir_exchange *m;
  assert_ok(weir_exchange_create(env, &options, &m, &err), &err);
  return m;
}

/* Sends |count| values of |bytes| each to |peer|, numbered from |first|; how
 * many of them went well. */
static int send_to(weir_exchange *m, uint32_t peer, uint32_t first,
                   uint32_t count, size_t bytes) {
  static const uint8_t data[WEIR_WIRE_VALUE_BYTES];
  weir_channel_done done[kMany];
  int ended = 0;
  for (uint32_t i = 0; i < count; i++) {
    weir_slot slot = {WEIR__V1__VALUE_KIND__EDGE, first + i, 1};
    done[i] = (weir_channel_done){.fn = told, .self = &ended};
    weir_exchange_send(m, peer, &slot, (weir_bytes){data, bytes}, &done[i]);
  }
  return ended;
}

static void test_gather(void **state) {
  (void)state;
  wire w = {.count = 0};
  weir_wire_out out = {&w, on_control, on_bulk, on_watched};
  weir_exchange *m = a_remote(weir_env_system(), &out);
  /* The first goes at once, all others when it has left. */
  assert_int_equal(send_to(m, 1, 0, kMany, 4), kMany);
  assert_int_equal(w.count, 1);
  assert_int_equal(w.values[0], 1);
  leaves(&w, 0);
  assert_int_equal(w.count, 2);
  assert_int_equal(w.values[1], kMany - 1);
  leaves(&w, 1);
  assert_int_equal(w.count, 2);
  /* The link is free again. */
  assert_int_equal(send_to(m, 1, kMany, 1, 4), 1);
  assert_int_equal(w.count, 3);
  leaves(&w, 2);
  weir_exchange_release(m);
}

/* Each peer has a link of its own, and the driver too. */
static void test_peers(void **state) {
  (void)state;
  wire w = {.count = 0};
  weir_wire_out out = {&w, on_control, on_bulk, on_watched};
  weir_exchange *m = a_remote(weir_env_system(), &out);
  assert_int_equal(send_to(m, 0, 0, 1, 4), 1);
  assert_int_equal(send_to(m, 1, 1, 1, 4), 1);
  assert_int_equal(send_to(m, WEIR_PEER_DRIVER, 2, 1, 4), 1);
  assert_int_equal(w.count, 3);
  assert_int_equal(send_to(m, WEIR_PEER_DRIVER, 3, 2, 4), 2);
  leaves(&w, 0);
  leaves(&w, 1);
  assert_int_equal(w.count, 3);
  leaves(&w, 2);
  assert_int_equal(w.count, 4);
  assert_int_equal(w.values[3], 2);
  leaves(&w, 3);
  weir_exchange_release(m);
}

/* What gathers is bounded: a full message does not wait. */
static void test_full(void **state) {
  (void)state;
  enum { kLarge = 40, kEach = WEIR_WIRE_BATCH_BYTES / WEIR_WIRE_VALUE_BYTES };
  wire w = {.count = 0};
  weir_wire_out out = {&w, on_control, on_bulk, on_watched};
  weir_exchange *m = a_remote(weir_env_system(), &out);
  assert_int_equal(send_to(m, 1, 0, 1 + kLarge, WEIR_WIRE_VALUE_BYTES),
                   1 + kLarge);
  assert_int_equal(w.count, 1 + kLarge / kEach);
  for (int i = 1; i < w.count; i++) assert_int_equal(w.values[i], kEach);
  for (int i = 0; i < w.count; i++) leaves(&w, i);
  weir_exchange_release(m);
}

/* Without word of the ends, and when they are told at once, nothing waits. */
static void test_at_once(void **state) {
  (void)state;
  wire w = {.at_once = true};
  weir_wire_out out = {&w, on_control, on_bulk, on_watched};
  weir_exchange *m = a_remote(weir_env_system(), &out);
  assert_int_equal(send_to(m, 1, 0, 5, 4), 5);
  assert_int_equal(w.count, 5);
  weir_exchange_release(m);
  out.watched = NULL;
  m = a_remote(weir_env_system(), &out);
  assert_int_equal(send_to(m, 1, 5, 5, 4), 5);
  assert_int_equal(w.count, 10);
  weir_exchange_release(m);
}

/* A peer that is lost takes nothing more; its link's ends still come. */
static void test_lost(void **state) {
  (void)state;
  weir_error why = WEIR_ERROR_INIT;
  wire w = {.count = 0};
  weir_wire_out out = {&w, on_control, on_bulk, on_watched};
  weir_exchange *m = a_remote(weir_env_system(), &out);
  assert_int_equal(send_to(m, 1, 0, 3, 4), 3);
  weir_fail(&why, WEIR_W7020, NULL, "gone");
  weir_exchange_lost(m, 1, &why);
  leaves(&w, 0);
  assert_int_equal(w.count, 1);
  w.refuses = true;
  assert_int_equal(send_to(m, 0, 1, 1, 4), 1); /* taken, and then lost */
  assert_int_equal(send_to(m, 0, 2, 1, 4), 0);
  weir_exchange_release(m);
}

/* Whether all went well with |env|. Frames leave after the remote was released:
 * nothing is sent then. */
static bool gather_once(const weir_env *env) {
  weir_error err = WEIR_ERROR_INIT;
  wire w = {.count = 0};
  weir_wire_out out = {&w, on_control, on_bulk, on_watched};
  weir_exchange_options options = {.rendezvous = {.epoch = 3, .tasks = 2},
                                   .out = &out};
  weir_exchange *m;
  if (weir_exchange_create(env, &options, &m, &err) != WEIR_OK) {
    assert_string_equal(err.id, "W6001");
    return false;
  }
  int sent = send_to(m, 1, 0, 1, 4) + send_to(m, 1, 1, 3, 4);
  int count = w.count;
  weir_exchange_release(m);
  for (int i = 0; i < count; i++) leaves(&w, i);
  assert_int_equal(w.count, count);
  return sent == 4;
}

static void test_no_memory(void **state) {
  (void)state;
  for (int forever = 0; forever < 2; forever++) {
    bool ok = false;
    for (uint64_t at = 1; !ok; at++) {
      weir_counted_allocator counted;
      weir_env env = *weir_env_system();
      weir_counted_allocator_init(&counted, NULL);
      counted.fail_at = at;
      counted.fail_forever = forever != 0;
      env.alloc = &counted.base;
      ok = gather_once(&env) && atomic_load(&counted.calls) < at;
      assert_int_equal(atomic_load(&counted.live_blocks), 0);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_gather), cmocka_unit_test(test_peers),
      cmocka_unit_test(test_full),   cmocka_unit_test(test_at_once),
      cmocka_unit_test(test_lost),   cmocka_unit_test(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
