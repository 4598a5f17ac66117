/* SPDX-License-Identifier: Apache-2.0 */
/* A link beside a scripted peer: each way in which a Hello can be wrong, second
 * connections, silence, dialling, a reset, and lack of memory. */
#include "runtime/dist/link/link.h"

#include "runtime/net/local.h"
#include "runtime/net/wire.h"
#include "runtime/net/wire_error.h"
#include "tests/check.h"

enum { SECOND = 1000000000 };

typedef struct scene {
  weir_counted_allocator counted;
  weir_env env;
  int64_t now;
  weir_net_hub *hub;
  weir_transport *mine, *bulk, *other; /* the link's two, the peer's */
  weir_link *link;
  char address[WEIR_NET_ADDRESS_BYTES];
  int up, lost, messages;
  weir_error why;
  weir_connection c; /* the peer's */
  bool connected, closed;
  int replies;
  char refused[8];
} scene;

static int64_t now_ns(void *self) {
  return ((scene *)self)->now;
}

static void on_up(void *self, weir_peer *peer) {
  (void)peer;
  ((scene *)self)->up++;
}
static void on_message(void *self, weir_peer *peer,
                       const Weir__V1__Control *m) {
  (void)peer, (void)m;
  ((scene *)self)->messages++;
}
static void on_lost(void *self, weir_peer *peer, const weir_error *why) {
  (void)peer;
  scene *s = self;
  s->lost++;
  weir_error_copy(&s->why, why);
}

static void mine_connected(void *self, weir_connection c, weir_sv peer,
                           bool incoming) {
  scene *s = self;
  weir_link_on_connected(s->link, s->now, c, peer, incoming);
}
static void mine_frame(void *self, weir_connection c, weir_net_frame *frame) {
  scene *s = self;
  weir_link_on_frame(s->link, s->now, c, frame);
}
static void mine_closed(void *self, weir_connection c, weir_close_reason why,
                        weir_sv text) {
  scene *s = self;
  weir_link_on_closed(s->link, s->now, c, why, text);
}

static void other_connected(void *self, weir_connection c, weir_sv peer,
                            bool incoming) {
  (void)peer, (void)incoming;
  scene *s = self;
  s->connected = true;
  s->c = c;
}
static void reply(scene *s, weir_connection c, const Weir__V1__Control *m);
static void other_frame(void *self, weir_connection c, weir_net_frame *frame) {
  scene *s = self;
  weir_wire_message m;
  weir_error err = WEIR_ERROR_INIT;
  if (weir_wire_unpack(weir_allocator_system(), frame, &m, &err) == WEIR_OK &&
      m.control->body_case == WEIR__V1__CONTROL__BODY_HELLO_REPLY) {
    s->replies++;
    s->refused[0] = '\0';
    if (weir_wire_error_is(m.control->hello_reply->refused))
      snprintf(s->refused, sizeof s->refused, "%s",
               m.control->hello_reply->refused->id);
  } else if (m.control != NULL &&
             m.control->body_case == WEIR__V1__CONTROL__BODY_HELLO) {
    reply(s, c, m.control);
  }
  weir_wire_message_release(&m);
}
static void other_closed(void *self, weir_connection c, weir_close_reason why,
                         weir_sv text) {
  (void)c, (void)why, (void)text;
  ((scene *)self)->closed = true;
}

static void no_connect(void *self, uint64_t tag, const char *address) {
  (void)self, (void)tag, (void)address;
}
static void no_close(void *self, weir_connection c) {
  (void)self, (void)c;
}
static void no_opened(void *self, weir_connection c, weir_peer *peer) {
  (void)self, (void)c, (void)peer;
}

static const weir_clock *clock_of(scene *s, weir_clock *clock) {
  *clock = (weir_clock){s, now_ns};
  return clock;
}

/* Worker 0, without bulk connections. False: no memory. */
static bool open_scene(scene *s, weir_clock *clock, uint64_t fail_at) {
  weir_error err = WEIR_ERROR_INIT;
  memset(s, 0, sizeof *s);
  weir_counted_allocator_init(&s->counted, NULL);
  s->env.alloc = weir_allocator_system();
  s->env.clock = clock_of(s, clock);
  s->now = SECOND;
  s->why = (weir_error)WEIR_ERROR_INIT;
  weir_transport_options o = {.cls = WEIR_NET_CONTROL};
  weir_transport_handler mine = {s, mine_connected, mine_frame, mine_closed};
  weir_transport_handler other = {s, other_connected, other_frame,
                                  other_closed};
  assert_ok(weir_net_hub_create(&s->env, &s->hub, &err), &err);
  assert_ok(weir_transport_local_create(s->hub, &mine, &o, &s->mine, &err),
            &err);
  assert_ok(weir_transport_local_create(s->hub, &other, &o, &s->other, &err),
            &err);
  assert_ok(
      s->mine->vt->listen(s->mine, WEIR_SV_LIT("local:"), s->address, &err),
      &err);
  s->counted.fail_at = fail_at;
  weir_link_self self = {.job = "worker",
                         .incarnation = 5,
                         .cluster_hash = 9,
                         .protocol_min = 2,
                         .protocol_max = 3,
                         .build = "me",
                         .one_job = true};
  weir_link_events events = {s, on_up, on_message, on_lost};
  weir_link_bulk bulk = {s, s->mine, no_connect, no_close, no_opened};
  weir_link_options options = {.probes = true};
  return weir_link_create(&s->counted.base, &self, &options, &events, s->mine,
                          &bulk, &s->link) == WEIR_OK;
}

static void close_scene(scene *s) {
  weir_link_release(s->link);
  weir_transport_release(s->mine);
  weir_transport_release(s->other);
  weir_net_hub_release(s->hub);
  assert_int_equal(atomic_load(&s->counted.live_blocks), 0);
}

static void settle(scene *s) {
  weir_error err = WEIR_ERROR_INIT;
  for (int i = 0; i < 6; i++) {
    assert_ok(s->mine->vt->poll(s->mine, 0, &err), &err);
    (void)weir_link_tick(s->link, s->now);
    assert_ok(s->other->vt->poll(s->other, 0, &err), &err);
  }
}

static void send_message(scene *s, Weir__V1__Control *m) {
  weir_error err = WEIR_ERROR_INIT;
  weir_bytes frame;
  assert_ok(weir_wire_pack(weir_allocator_system(), m, &frame, &err), &err);
  weir_net_piece piece = {.data = frame.data, .size = frame.size};
  (void)s->other->vt->send(s->other, s->c, &piece, 1, &err);
  weir_wire_free(weir_allocator_system(), frame);
}

/* The changes of a script to a Hello that is right. */
typedef struct hello_case {
  const char *job;
  uint32_t index, to, min, max;
  size_t job_id;
  uint8_t job_byte;
  uint64_t incarnation, cluster;
  const char *refused;
  bool observes;
} hello_case;

static const hello_case kRight = {"worker", 1, 0, 1, 2, 16, 0, 77, 9, ""};

static void dial(scene *s) {
  weir_error err = WEIR_ERROR_INIT;
  s->connected = s->closed = false;
  assert_ok(
      s->other->vt->connect(s->other, weir_sv_from(s->address), &s->c, &err),
      &err);
  settle(s);
}

static void say_hello(scene *s, const hello_case *c) {
  uint8_t id[32] = {0};
  id[0] = c->job_byte;
  Weir__V1__Task from = WEIR__V1__TASK__INIT, to = WEIR__V1__TASK__INIT;
  Weir__V1__Hello hello = WEIR__V1__HELLO__INIT;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  from.job = (char *)c->job;
  from.index = c->index;
  to.job = (char *)"worker";
  to.index = c->to;
  hello.protocol_min = c->min;
  hello.protocol_max = c->max;
  hello.job_id.data = id;
  hello.job_id.len = c->job_id;
  hello.from = &from;
  hello.to = &to;
  hello.incarnation = c->incarnation;
  hello.cluster_hash = c->cluster;
  hello.observes = c->observes;
  m.body_case = WEIR__V1__CONTROL__BODY_HELLO;
  m.hello = &hello;
  send_message(s, &m);
  settle(s);
}

static void hellos(void **state) {
  (void)state;
  const hello_case cases[] = {
      kRight,
      {"", 0, 0, 1, 9, 16, 0, 78, 9, ""},              /* a driver */
      {"", 0, 0, 1, 9, 16, 0, 78, 9, "", true},        /* an observer */
      {"ps", 0, 0, 1, 2, 16, 0, 77, 9, "W7023", true}, /* a task is none */
      {"worker", 1, 0, 4, 9, 16, 0, 77, 9, "W7023"},   /* too new */
      {"worker", 1, 0, 0, 1, 16, 0, 77, 9, "W7023"},   /* too old */
      {"worker", 1, 0, 1, 2, 16, 1, 77, 9, "W7023"},   /* another job */
      {"worker", 1, 7, 1, 2, 16, 0, 77, 9, "W7023"},   /* not for us */
      {"worker", 1, 0, 1, 2, 16, 0, 77, 8, "W7023"},   /* another cluster */
      {"worker", 1, 0, 1, 2, 16, 0, 0, 9, "W7023"},    /* no number */
      {"worker", 1, 0, 1, 2, 16, 0, 5, 9, "W7023"},    /* ourselves */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    scene s;
    weir_clock clock;
    assert_true(open_scene(&s, &clock, 0));
    dial(&s);
    say_hello(&s, &cases[i]);
    assert_int_equal(s.replies, 1);
    assert_string_equal(s.refused, cases[i].refused);
    assert_int_equal(s.up, cases[i].refused[0] == '\0');
    assert_int_equal(weir_link_count(s.link), cases[i].refused[0] == '\0');
    close_scene(&s);
  }
}

/* Another process of a task waits until the older one is known to be gone, and
 * then the older one is refused for good. */
static void incarnations(void **state) {
  (void)state;
  scene s;
  weir_clock clock;
  hello_case young = kRight;
  young.incarnation = 78;
  assert_true(open_scene(&s, &clock, 0));
  dial(&s);
  say_hello(&s, &kRight);
  dial(&s);
  say_hello(&s, &young);
  assert_string_equal(s.refused, "W7024");
  for (int i = 0; i < 6; i++) { /* silence */
    s.now += SECOND;
    settle(&s);
  }
  dial(&s);
  say_hello(&s, &young);
  assert_string_equal(s.refused, "");
  assert_int_equal(s.lost, 1);
  assert_string_equal(s.why.id, "W7020");
  dial(&s);
  say_hello(&s, &kRight);
  assert_string_equal(s.refused, "W7023");
  close_scene(&s);
}

/* The same process dials again: its older connection is lost. */
static void second_connection(void **state) {
  (void)state;
  scene s;
  weir_clock clock;
  assert_true(open_scene(&s, &clock, 0));
  dial(&s);
  say_hello(&s, &kRight);
  dial(&s);
  say_hello(&s, &kRight);
  assert_string_equal(s.refused, "");
  assert_int_equal(s.up, 2);
  assert_int_equal(s.lost, 1);
  close_scene(&s);
}

static void out_of_turn(void **state) {
  (void)state;
  scene s;
  weir_clock clock;
  assert_true(open_scene(&s, &clock, 0));
  Weir__V1__End end = WEIR__V1__END__INIT;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  m.body_case = WEIR__V1__CONTROL__BODY_END;
  m.end = &end;
  dial(&s); /* no Hello */
  send_message(&s, &m);
  settle(&s);
  assert_true(s.closed);
  assert_int_equal(s.up + s.lost, 0);
  dial(&s);
  say_hello(&s, &kRight);
  send_message(&s, &m);
  settle(&s);
  assert_int_equal(s.messages, 1);
  say_hello(&s, &kRight); /* twice on one connection */
  assert_int_equal(s.lost, 1);
  dial(&s); /* silence instead of a Hello */
  s.now += 6 * (int64_t)SECOND;
  settle(&s);
  assert_true(s.closed);
  assert_int_equal(weir_link_count(s.link), 0);
  close_scene(&s);
}

/* Nobody is there: attempts go on until the time is over, then words. */
static void nobody(void **state) {
  (void)state;
  scene s;
  weir_clock clock;
  weir_error err = WEIR_ERROR_INIT;
  weir_peer *peer = NULL;
  assert_true(open_scene(&s, &clock, 0));
  weir_link_target target = {"worker", 1, "local:none",
                             s.now + 10 * (int64_t)SECOND};
  assert_ok(weir_link_dial(s.link, s.now, &target, &peer, &err), &err);
  uint32_t attempts = 0;
  for (int i = 0; i < 400 && s.lost == 0; i++) {
    int64_t next = weir_link_tick(s.link, s.now);
    if (s.lost == 0) attempts = peer->attempts;
    assert_ok(s.mine->vt->poll(s.mine, 0, &err), &err);
    int64_t after = s.lost == 0 ? weir_link_tick(s.link, s.now) : next;
    s.now = after > s.now && after != INT64_MAX ? after : s.now + 1;
  }
  assert_int_equal(s.lost, 1);
  /* 0.1 + 0.2 + 0.4 + 0.8 s, then each second. */
  assert_in_range(attempts, 11, 14);
  assert_string_equal(s.why.id, "W7001");
  close_scene(&s);
}

/* ---- A peer that is dialled and reset */

/* Answers a Hello as worker 1. */
static void reply(scene *s, weir_connection c, const Weir__V1__Control *m) {
  Weir__V1__Hello self = *m->hello;
  Weir__V1__HelloReply body = WEIR__V1__HELLO_REPLY__INIT;
  Weir__V1__Control out = WEIR__V1__CONTROL__INIT;
  self.from = m->hello->to;
  self.to = m->hello->from;
  self.incarnation = 77;
  body.protocol = 2;
  body.self = &self;
  out.body_case = WEIR__V1__CONTROL__BODY_HELLO_REPLY;
  out.hello_reply = &body;
  s->c = c;
  send_message(s, &out);
}

/* Another process of the hub, which listens at |address|. */
static weir_transport *listener(scene *s, const char *address) {
  weir_transport *t = NULL;
  weir_error err = WEIR_ERROR_INIT;
  char bound[WEIR_NET_ADDRESS_BYTES];
  weir_transport_options o = {.cls = WEIR_NET_CONTROL};
  weir_transport_handler h = {s, other_connected, other_frame, other_closed};
  assert_ok(weir_transport_local_create(s->hub, &h, &o, &t, &err), &err);
  assert_ok(t->vt->listen(t, weir_sv_from(address), bound, &err), &err);
  return t;
}

/* The link has dialled worker 1. */
static weir_peer *dialled(scene *s, weir_clock *clock) {
  weir_error err = WEIR_ERROR_INIT;
  weir_peer *peer = NULL;
  assert_true(open_scene(s, clock, 0));
  weir_transport_release(s->other);
  s->other = listener(s, "local:peer");
  weir_link_target target = {"worker", 1, "local:peer",
                             s->now + 10 * (int64_t)SECOND};
  assert_ok(weir_link_dial(s->link, s->now, &target, &peer, &err), &err);
  (void)weir_link_tick(s->link, s->now);
  settle(s);
  assert_int_equal(s->up, 1);
  return peer;
}

/* It ends then: its connection is reset. */
static void dialled_and_reset(scene *s, weir_clock *clock) {
  (void)dialled(s, clock);
  weir_transport_release(s->other);
  s->other = NULL;
}

static void poll_mine(scene *s) {
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(s->mine->vt->poll(s->mine, 0, &err), &err);
}

static void lost_with(scene *s, const char *words) {
  (void)weir_link_tick(s->link, s->now);
  assert_int_equal(s->lost, 1);
  assert_string_equal(s->why.id, "W7020");
  assert_non_null(strstr(s->why.message, "worker:1: the connection was reset"));
  assert_non_null(strstr(s->why.message, words));
  assert_int_equal(weir_link_count(s->link), 0);
}

static void a_reset_is_probed(void **state) {
  (void)state;
  scene s;
  weir_clock clock;
  dialled_and_reset(&s, &clock); /* the process is gone */
  poll_mine(&s);
  assert_int_equal(s.lost, 0); /* not before the answer */
  poll_mine(&s);
  lost_with(&s, "it is not there any more: nobody listens there");
  close_scene(&s);

  dialled_and_reset(&s, &clock); /* it listens */
  s.other = listener(&s, "local:peer");
  for (int i = 0; i < 3 && s.lost == 0; i++) settle(&s);
  lost_with(&s, "somebody listens there: the link was cut");
  close_scene(&s);

  dialled_and_reset(&s, &clock); /* no answer */
  s.other = listener(&s, "local:peer");
  poll_mine(&s);
  assert_int_equal(weir_link_tick(s.link, s.now), s.now + SECOND);
  assert_int_equal(s.lost, 0);
  s.now += SECOND;
  lost_with(&s, "nothing answers there any more: 1.0 s");
  close_scene(&s);
}

/* One that closes itself is probed, too, unless its end is awaited. */
static void a_close_is_probed(void **state) {
  (void)state;
  for (int parting = 0; parting < 2; parting++) {
    scene s;
    weir_clock clock;
    weir_peer *peer = dialled(&s, &clock);
    peer->parting = parting == 1;
    s.other->vt->close(s.other, s.c);
    poll_mine(&s);
    (void)weir_link_tick(s.link, s.now);
    assert_int_equal(s.lost, parting);
    s.connected = false;
    settle(&s);
    assert_int_equal(s.connected, !parting);
    assert_int_equal(s.lost, 1);
    assert_string_equal(s.why.message,
                        "worker:1: it has closed the connection");
    close_scene(&s);
  }
}

static void no_memory(void **state) {
  (void)state;
  for (int once = 0; once < 2; once++) {
    bool good = false;
    for (uint64_t k = 1; !good; k++) {
      scene s;
      weir_clock clock;
      assert_true(k < 200);
      if (open_scene(&s, &clock, k)) {
        s.counted.fail_forever = once == 0;
        dial(&s);
        say_hello(&s, &kRight);
        good = s.up == 1 && atomic_load(&s.counted.calls) < k;
      }
      close_scene(&s);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(hellos),
      cmocka_unit_test(incarnations),
      cmocka_unit_test(second_connection),
      cmocka_unit_test(out_of_turn),
      cmocka_unit_test(nobody),
      cmocka_unit_test(a_reset_is_probed),
      cmocka_unit_test(a_close_is_probed),
      cmocka_unit_test(no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
