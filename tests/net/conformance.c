/* SPDX-License-Identifier: Apache-2.0
 *
 * The contract of transports, test by test; those with threads and with lack of
 * memory stand in files of their own. */
#include "tests/net/conformance.h"

#include <stdlib.h>
#include <string.h>

#include "tests/net/conformance_parts.h"
#include "tests/net/peers.h"

static void connects(void **state) {
  net *n = net_open(*state, NULL);
  net_connect(n);
  assert_int_equal(n->a.incoming, 0);
  assert_int_equal(n->b.incoming, 1);
  weir_connection first = n->a.c, came = n->b.c;
  net_connect(n); /* a second one beside it */
  assert_int_not_equal(n->a.c, first);
  assert_int_not_equal(n->b.c, came);
  assert_int_equal(n->a.closed + n->b.closed, 0);
  net_close(n);
}

static void nobody_there(void **state) {
  weir_fixture *f = *state;
  net *n = net_open(f, NULL);
  weir_transport *t = n->a.t;
  assert_ok(t->vt->connect(t, weir_sv_from(f->nobody), &n->a.c, &n->err),
            &n->err);
  assert_int_not_equal(n->a.c, 0);
  assert_int_equal(n->a.closed, 0); /* only poll reports */
  net_until(n, n->a.closed == 1);
  assert_int_equal(n->a.why, WEIR_CLOSED_UNREACHABLE);
  assert_int_equal(n->a.closed_c, n->a.c);
  assert_int_equal(n->a.connected, 0);
  assert_error(peer_send(n, &n->a, "x", 1), &n->err, "W7001");
  weir_connection c = 7;
  assert_error(t->vt->connect(t, weir_sv_from(f->foreign), &c, &n->err),
               &n->err, "W7002");
  assert_int_equal(c, 0);
  assert_error(t->vt->send(t, 12345, NULL, 0, &n->err), &n->err, "W7001");
  t->vt->close(t, 12345);
  net_close(n);
}

static void listens_once(void **state) {
  weir_fixture *f = *state;
  net *n = net_open(f, NULL);
  char bound[WEIR_NET_ADDRESS_BYTES];
  weir_sv taken = weir_sv_from(n->b.address);
  assert_error(n->b.t->vt->listen(n->b.t, taken, bound, &n->err), &n->err,
               "W7002");
  assert_error(n->a.t->vt->listen(n->a.t, taken, bound, &n->err), &n->err,
               "W7002");
  assert_error(
      n->a.t->vt->listen(n->a.t, weir_sv_from(f->foreign), bound, &n->err),
      &n->err, "W7002");
  char longer[2 * WEIR_NET_ADDRESS_BYTES];
  memset(longer, 'x', sizeof longer);
  memcpy(longer, f->listen, strlen(f->listen));
  weir_sv too_long = {longer, sizeof longer};
  weir_connection c;
  assert_error(n->a.t->vt->listen(n->a.t, too_long, bound, &n->err), &n->err,
               "W7002");
  assert_error(n->a.t->vt->connect(n->a.t, too_long, &c, &n->err), &n->err,
               "W7002");
  net_connect(n); /* all of that did no harm */
  net_close(n);
}

static void other_class(void **state) {
  weir_fixture *f = *state;
  net *n = net_open(f, NULL);
  weir_transport_options bulk = {.cls = WEIR_NET_BULK};
  weir_transport_handler handler = n->a.t->handler;
  weir_transport_release(n->a.t);
  n->a.t = NULL;
  assert_ok(f->create(f, &handler, &bulk, &n->a.t, &n->err), &n->err);
  assert_ok(
      n->a.t->vt->connect(n->a.t, weir_sv_from(n->b.address), &n->a.c, &n->err),
      &n->err);
  net_until(n, n->a.closed == 1);
  assert_true(n->a.why == WEIR_CLOSED_REFUSED ||
              n->a.why == WEIR_CLOSED_UNREACHABLE);
  net_close(n);
}

static void order(void **state) {
  net *n = net_open(*state, NULL);
  net_connect(n);
  enum { FRAMES = 500 };
  for (uint32_t i = 0; i < FRAMES; i++) {
    assert_ok(peer_send(n, &n->a, &i, sizeof i), &n->err);
    assert_ok(peer_send(n, &n->b, &i, sizeof i), &n->err);
    if (i % 50 == 0) net_turn(n);
  }
  net_until(n, n->a.count == FRAMES && n->b.count == FRAMES);
  for (uint32_t i = 0; i < FRAMES; i++) {
    assert_int_equal(n->a.frames[i].size, sizeof i);
    assert_memory_equal(n->a.frames[i].bytes, &i, sizeof i);
    assert_memory_equal(n->b.frames[i].bytes, &i, sizeof i);
    assert_int_equal(n->b.frames[i].c, n->b.c);
  }
  net_close(n);
}

static void count_up(void *self) {
  atomic_fetch_add((atomic_int *)self, 1);
}

/* Frames of 0 to 6 pieces, every second one empty, lent and copied ones. */
static void pieces(void **state) {
  net *n = net_open(*state, NULL);
  net_connect(n);
  atomic_int released = 0;
  int lent = 0;
  uint8_t bytes[64], copy[64];
  pattern(bytes, sizeof bytes, 1);
  size_t sizes[200], frames = 0;
  for (size_t count = 0; count <= 6; count++) {
    for (unsigned mask = 0; mask < 1u << count; mask += count < 4 ? 1 : 3) {
      weir_net_piece list[6] = {{0}};
      size_t at = 0;
      memcpy(copy, bytes, sizeof copy);
      for (size_t i = 0; i < count; i++) {
        bool keep = mask >> i & 1;
        size_t size = (mask + i) % 2 == 0 ? 0 : 3 + i;
        list[i].data = size == 0 ? NULL : (keep ? bytes : copy) + at;
        list[i].size = size;
        list[i].released = keep ? count_up : NULL;
        list[i].self = &released;
        lent += keep;
        at += size;
      }
      assert_ok(n->a.t->vt->send(n->a.t, n->a.c, list, count, &n->err),
                &n->err);
      memset(copy, 0xee, sizeof copy); /* ours again */
      sizes[frames++] = at;
    }
  }
  net_until(n, n->b.count == frames && atomic_load(&released) == lent);
  for (size_t i = 0; i < frames; i++) {
    assert_int_equal(n->b.frames[i].size, sizes[i]);
    assert_memory_equal(n->b.frames[i].bytes, bytes, sizes[i]);
  }
  net_close(n);
  assert_int_equal(atomic_load(&released), lent);
}

static void large(void **state) {
  weir_transport_options options = {.max_frame_bytes = (size_t)9 << 20};
  net *n = net_open(*state, &options);
  net_connect(n);
  size_t sizes[] = {1, 16384, 16385, 65537, (1 << 20) + 5, 9 << 20};
  atomic_int released = 0;
  for (size_t i = 0; i < 6; i++) {
    uint8_t *bytes = malloc(sizes[i]);
    pattern(bytes, sizes[i], (uint32_t)i);
    weir_net_piece list[2] = {
        {bytes, sizes[i] / 2, count_up, &released},
        {bytes + sizes[i] / 2, sizes[i] - sizes[i] / 2, count_up, &released}};
    assert_ok(n->b.t->vt->send(n->b.t, n->b.c, list, 2, &n->err), &n->err);
    net_until(
        n, n->a.count == i + 1 && atomic_load(&released) == 2 * ((int)i + 1));
    free(bytes);
    assert_int_equal(n->a.frames[i].size, sizes[i]);
    assert_true(is_pattern(n->a.frames[i].bytes, sizes[i], (uint32_t)i));
  }
  net_close(n);
}

static void above_limit(void **state) {
  weir_transport_options options = {.max_frame_bytes = 1000};
  net *n = net_open(*state, &options);
  net_connect(n);
  uint8_t bytes[1001] = {0};
  atomic_int released = 0;
  assert_ok(peer_send(n, &n->a, bytes, 1000), &n->err);
  net_until(n, n->b.count == 1);
  weir_net_piece piece = {bytes, 1001, count_up, &released};
  weir_status s = n->a.t->vt->send(n->a.t, n->a.c, &piece, 1, &n->err);
  net_until(n, n->b.closed == 1 && n->a.closed == 1);
  assert_int_equal(n->b.count, 1);
  assert_true(n->a.why == WEIR_CLOSED_REFUSED || n->a.why == WEIR_CLOSED_RESET);
  assert_true(n->b.why == WEIR_CLOSED_REFUSED || n->b.why == WEIR_CLOSED_RESET);
  net_until(n, atomic_load(&released) == (s == WEIR_OK));
  net_connect(n); /* the transports still serve */
  net_close(n);
}

static void queue_full(void **state) {
  weir_transport_options options = {.max_queue_bytes = 100000};
  net *n = net_open(*state, &options);
  net_connect(n);
  uint8_t bytes[10000];
  int sent = 0, lent = 0;
  atomic_int released = 0;
  weir_status s = WEIR_OK;
  pattern(bytes, sizeof bytes, 3);
  weir_net_piece piece = {bytes, sizeof bytes, count_up, &released};
  while ((s = n->a.t->vt->send(n->a.t, n->a.c, &piece, 1, &n->err)) ==
         WEIR_OK) { /* b does not poll */
    lent++;
    assert_true(lent < PEER_FRAMES - 1);
  }
  sent = lent;
  assert_string_equal(n->err.id, "W7003");
  net_until(n, n->b.count > 0 && atomic_load(&released) > 0);
  while (peer_send(n, &n->a, bytes, sizeof bytes) != WEIR_OK) {
    assert_string_equal(n->err.id, "W7003");
    net_turn(n);
  }
  sent++;
  net_until(n, (int)n->b.count == sent && atomic_load(&released) == lent);
  for (size_t i = 0; i < n->b.count; i++)
    assert_true(is_pattern(n->b.frames[i].bytes, sizeof bytes, 3));
  net_close(n);
}

static void early_send(void **state) {
  net *n = net_open(*state, NULL);
  weir_transport *t = n->a.t;
  assert_ok(t->vt->connect(t, weir_sv_from(n->b.address), &n->a.c, &n->err),
            &n->err);
  for (uint32_t i = 0; i < 5; i++)
    assert_ok(peer_send(n, &n->a, &i, sizeof i), &n->err);
  net_until(n, n->a.connected == 1 && n->b.count == 5);
  assert_int_equal(n->b.connected, 1);
  for (uint32_t i = 0; i < 5; i++)
    assert_memory_equal(n->b.frames[i].bytes, &i, sizeof i);
  net_close(n);
}

static void closes_after_frames(void **state) {
  net *n = net_open(*state, NULL);
  net_connect(n);
  uint8_t bytes[5000];
  pattern(bytes, sizeof bytes, 9);
  for (int i = 0; i < 40; i++)
    assert_ok(peer_send(n, &n->a, bytes, sizeof bytes), &n->err);
  n->a.t->vt->close(n->a.t, n->a.c);
  assert_error(peer_send(n, &n->a, bytes, 1), &n->err, "W7001");
  n->a.t->vt->close(n->a.t, n->a.c); /* twice does no harm */
  net_until(n, n->b.closed == 1);
  assert_int_equal(n->b.count, 40);
  assert_int_equal(n->b.why, WEIR_CLOSED_BY_PEER);
  assert_int_equal(n->b.closed_c, n->b.c);
  assert_error(peer_send(n, &n->b, bytes, 1), &n->err, "W7001");
  assert_int_equal(n->a.closed, 0);
  net_close(n);
}

/* A callback may close; frames behind are not reported. */
static void closes_in_callback(void **state) {
  net *n = net_open(*state, NULL);
  net_connect(n);
  n->b.close_on_frame = true;
  for (int i = 0; i < 20; i++)
    assert_ok(peer_send(n, &n->a, "abc", 3), &n->err);
  net_until(n, n->a.closed == 1);
  assert_int_equal(n->b.count, 1);
  assert_int_equal(n->b.closed, 0);
  net_close(n);
}

/* Closing before anything came of the attempt. */
static void closes_attempt(void **state) {
  weir_fixture *f = *state;
  net *n = net_open(f, NULL);
  weir_connection c;
  weir_transport *t = n->a.t;
  assert_ok(t->vt->connect(t, weir_sv_from(f->nobody), &c, &n->err), &n->err);
  t->vt->close(t, c);
  assert_ok(t->vt->connect(t, weir_sv_from(n->b.address), &c, &n->err),
            &n->err);
  t->vt->close(t, c);
  n->a.c = 0;
  net_connect(n);
  assert_int_equal(n->a.connected, 1);
  assert_int_equal(n->a.closed, 0);
  net_close(n);
}

/* The peer's transport goes with frames under way, ours and its own. */
static void peer_gone(void **state) {
  net *n = net_open(*state, NULL);
  net_connect(n);
  static uint8_t bytes[50000];
  atomic_int released = 0;
  weir_net_piece piece = {bytes, sizeof bytes, count_up, &released};
  for (int i = 0; i < 20; i++)
    assert_ok(n->b.t->vt->send(n->b.t, n->b.c, &piece, 1, &n->err), &n->err);
  for (int i = 0; i < 20; i++)
    assert_ok(n->a.t->vt->send(n->a.t, n->a.c, &piece, 1, &n->err), &n->err);
  weir_transport_release(n->b.t);
  n->b.t = NULL;
  assert_true(atomic_load(&released) >= 20);
  net_until(n, n->a.closed == 1);
  assert_true(n->a.why == WEIR_CLOSED_RESET ||
              (n->a.why == WEIR_CLOSED_BY_PEER && n->a.count == 20));
  net_close(n);
  assert_int_equal(atomic_load(&released), 40);
}

/* Release of the sender calls each |released| before it returns. */
static void released_once(void **state) {
  net *n = net_open(*state, NULL);
  net_connect(n);
  uint8_t *bytes = malloc(30000);
  pattern(bytes, 30000, 4);
  atomic_int released = 0;
  weir_net_piece piece = {bytes, 30000, count_up, &released};
  for (int i = 0; i < 30; i++) {
    assert_ok(n->a.t->vt->send(n->a.t, n->a.c, &piece, 1, &n->err), &n->err);
    if (i == 10) net_turn(n);
  }
  n->a.t->vt->close(n->a.t, n->a.c); /* frames of a closed one, too */
  weir_transport_release(n->a.t);
  n->a.t = NULL;
  assert_int_equal(atomic_load(&released), 30);
  free(bytes);
  net_until(n, n->b.closed == 1);
  for (size_t i = 0; i < n->b.count; i++)
    assert_true(is_pattern(n->b.frames[i].bytes, 30000, 4));
  net_close(n);
}

static void keeps_frames(void **state) {
  net *n = net_open(*state, NULL);
  net_connect(n);
  n->b.keep = true;
  atomic_int released = 0;
  uint8_t *bytes = malloc(20000);
  pattern(bytes, 20000, 5);
  weir_net_piece piece = {bytes, 20000, count_up, &released};
  for (int i = 0; i < 10; i++)
    assert_ok(n->a.t->vt->send(n->a.t, n->a.c, &piece, 1, &n->err), &n->err);
  net_until(n, n->b.kept_count == 10 && atomic_load(&released) == 10);
  memset(bytes, 0, 20000);
  free(bytes);
  weir_transport_release(n->a.t); /* kept frames do not depend on it */
  n->a.t = NULL;
  net_until(n, n->b.closed == 1);
  for (size_t i = 0; i < 10; i++) {
    const weir_net_frame *frame = n->b.kept[i];
    uint8_t copy[20000];
    size_t at = 0;
    for (size_t k = 0; k < frame->count; k++) {
      memcpy(copy + at, frame->pieces[k].data, frame->pieces[k].size);
      at += frame->pieces[k].size;
    }
    assert_int_equal(at, 20000);
    assert_true(is_pattern(copy, at, 5));
  }
  net_close(n);
}

/* A deadline that is over, and one to come, on the env's clock. */
static void deadlines(void **state) {
  net *n = net_open(*state, NULL);
  const weir_clock *clock = n->env->clock;
  weir_transport *t = n->a.t;
  int64_t now = clock->now_ns(clock->self);
  assert_ok(t->vt->poll(t, 0, &n->err), &n->err);
  assert_ok(t->vt->poll(t, now, &n->err), &n->err);
  assert_ok(t->vt->poll(t, now - 1, &n->err), &n->err);
  for (int i = 1; i <= 3; i++) {
    int64_t until = clock->now_ns(clock->self) + i * 3000000;
    while (clock->now_ns(clock->self) < until)
      assert_ok(t->vt->poll(t, until, &n->err), &n->err);
  }
  net_close(n);
}

static void wakes(void **state) {
  net *n = net_open(*state, NULL);
  weir_transport *t = n->a.t;
  t->vt->wake(t); /* before poll: the next one ends */
  assert_ok(t->vt->poll(t, INT64_MAX, &n->err), &n->err);
  for (int i = 0; i < 100; i++) t->vt->wake(t);
  assert_ok(t->vt->poll(t, INT64_MAX, &n->err), &n->err);
  net_connect(n);
  t->vt->wake(t);
  assert_ok(peer_send(n, &n->b, "x", 1), &n->err);
  net_until(n, n->a.count == 1);
  n->b.t->vt->wake(n->b.t);
  net_close(n);
}

#define TEST(f) \
  { #f, f, NULL, NULL, NULL }

static const struct CMUnitTest kTests[] = {
    TEST(connects),
    TEST(nobody_there),
    TEST(listens_once),
    TEST(other_class),
    TEST(order),
    TEST(pieces),
    TEST(large),
    TEST(above_limit),
    TEST(queue_full),
    TEST(early_send),
    TEST(closes_after_frames),
    TEST(closes_in_callback),
    TEST(closes_attempt),
    TEST(peer_gone),
    TEST(released_once),
    TEST(keeps_frames),
    TEST(deadlines),
    TEST(wakes),
    TEST(conformance_memory),
};

/* Those that need other threads. */
static const struct CMUnitTest kThreadTests[] = {
    TEST(conformance_many_senders),
    TEST(conformance_wake_threads),
    TEST(conformance_unref_threads),
};

int weir_conformance_run(weir_fixture *f) {
  enum { ONE = sizeof kTests / sizeof *kTests };
  enum { MANY = sizeof kThreadTests / sizeof *kThreadTests };
  struct CMUnitTest tests[ONE + MANY];
  memcpy(tests, kTests, sizeof kTests);
  memcpy(tests + ONE, kThreadTests, sizeof kThreadTests);
  size_t count = f->threads ? ONE + MANY : ONE;
  for (size_t i = 0; i < count; i++) tests[i].initial_state = f;
  return _cmocka_run_group_tests(f->name, tests, count, NULL, NULL);
}
