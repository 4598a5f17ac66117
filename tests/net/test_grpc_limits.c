/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/net/grpc_net.h"

/* Limits of the gRPC transport that need no stranger: peers that do not read,
 * and one beside them that does. */

enum { SLOW = 5, MIB = 1 << 20 };

typedef struct end {
  weir_transport *t;
  weir_connection c, incoming[SLOW + 1];
  int connected, came, frames;
  weir_error err;
} end;

static grpc_net shared;
static weir_fixture fixture;
static weir_counted_allocator counted;

static void on_connected(void *self, weir_connection c, weir_sv peer,
                         bool incoming) {
  end *e = self;
  (void)peer;
  if (incoming) e->incoming[e->came++] = c;
  e->connected += !incoming;
}
static void on_frame(void *self, weir_connection c, weir_net_frame *frame) {
  (void)c, (void)frame;
  ((end *)self)->frames++;
}
static void on_closed(void *self, weir_connection c, weir_close_reason why,
                      weir_sv text) {
  (void)self, (void)c, (void)why, (void)text;
}

static void begin(end *e) {
  weir_transport_options none = {0};
  weir_transport_handler handler = {e, on_connected, on_frame, on_closed};
  *e = (end){.err = WEIR_ERROR_INIT};
  assert_ok(grpc_net_create(&fixture, &handler, &none, &e->t, &e->err),
            &e->err);
}

static void turn(end *e) {
  int64_t now = shared.env.clock->now_ns(NULL);
  assert_ok(e->t->vt->poll(e->t, now + 1000000, &e->err), &e->err);
}

static void dial(end *from, end *to, const char *address) {
  int connected = from->connected, came = to->came;
  assert_ok(from->t->vt->connect(from->t, weir_sv_from(address), &from->c,
                                 &from->err),
            &from->err);
  while (from->connected == connected || to->came == came) turn(from), turn(to);
}

/* Frames of a MiB, until one is refused; how many were taken. */
static int fill(end *e, weir_connection c, const uint8_t *bytes) {
  weir_net_piece piece = {.data = bytes, .size = MIB};
  for (int n = 0;; n++)
    if (e->t->vt->send(e->t, c, &piece, 1, &e->err) != WEIR_OK) return n;
}

static void assert_says(const end *e, const char *says) {
  assert_string_equal(e->err.id, "W7003");
  if (strstr(e->err.message, says) == NULL) fail_msg("%s", e->err.message);
}

/* Peers that do not read take their own queues, and together no more than the
 * bound of all; one that reads is served meanwhile. */
static void slow_readers(void **state) {
  (void)state;
  end slow, quick, b;
  static uint8_t bytes[MIB];
  char bound[WEIR_NET_ADDRESS_BYTES];
  begin(&slow), begin(&quick), begin(&b);
  assert_ok(b.t->vt->listen(b.t, WEIR_SV_LIT("127.0.0.1:0"), bound, &b.err),
            &b.err);
  for (int i = 0; i < SLOW; i++) dial(&slow, &b, bound);
  dial(&quick, &b, bound);
  int taken = 0;
  for (int i = 0; i < SLOW; i++) {
    int more = fill(&b, b.incoming[i], bytes);
    taken += more;
    if (i == 0) assert_says(&b, "its queue takes 67108864");
    if (i == SLOW - 1)
      assert_says(&b, "its share of the 256 MiB that may wait for all peers");
    if (i == SLOW - 1) assert_in_range(more, 30, 63);
    weir_net_piece piece = {.data = bytes, .size = MIB};
    assert_ok(b.t->vt->send(b.t, b.incoming[SLOW], &piece, 1, &b.err), &b.err);
    while (quick.frames == i) turn(&b), turn(&quick);
  }
  assert_in_range(taken, 256, 340);
  weir_transport_release(slow.t);
  weir_transport_release(quick.t);
  weir_transport_release(b.t);
  assert_int_equal(atomic_load(&counted.live_blocks), 0);
}

int main(void) {
  setenv("GRPC_POLL_STRATEGY", "poll", 0);
  fixture = grpc_net_fixture(&shared, "127.0.0.1:0");
  weir_counted_allocator_init(&counted, NULL);
  const weir_env *env;
  weir_error err = WEIR_ERROR_INIT;
  if (grpc_net_open(&fixture, &counted.base, &env, &err) != WEIR_OK) {
    fprintf(stderr, "%s\n", err.message);
    return 1;
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(slow_readers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
