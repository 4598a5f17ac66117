/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of a link: connections that came in, before and after their Hello, and
 * the lines about those refused. The transport is a script: connections are
 * numbers, and what the link does with them is written down. */
#include "runtime/dist/link/link.h"
#include "runtime/net/wire.h"
#include "runtime/net/wire_error.h"
#include "tests/check.h"

enum { SECOND = 1000000000, MOST = 8 };

typedef struct scene {
  weir_transport transport; /* of both kinds */
  weir_counted_allocator counted;
  weir_link *link;
  int64_t now;
  weir_connection last; /* the last one that came in */
  weir_connection closed;
  int closes, bulk_closes, lines, up;
  char line[1024];
  char refused[8], words[600];
} scene;

static weir_status t_send(weir_transport *t, weir_connection c,
                          const weir_net_piece *pieces, size_t count,
                          weir_error *err) {
  scene *s = (scene *)t;
  weir_wire_message m;
  weir_bytes bytes = {pieces[0].data, pieces[0].size};
  weir_net_frame frame = {&bytes, count, bytes.size, NULL, NULL};
  (void)c;
  assert_ok(weir_wire_unpack(weir_allocator_system(), &frame, &m, err), err);
  const Weir__V1__HelloReply *r = m.control->hello_reply;
  s->refused[0] = '\0';
  if (m.control->body_case == WEIR__V1__CONTROL__BODY_HELLO_REPLY &&
      weir_wire_error_is(r->refused)) {
    snprintf(s->refused, sizeof s->refused, "%s", r->refused->id);
    snprintf(s->words, sizeof s->words, "%s", r->refused->message);
  }
  weir_wire_message_release(&m);
  return WEIR_OK;
}

static void t_close(weir_transport *t, weir_connection c) {
  ((scene *)t)->closed = c;
  ((scene *)t)->closes++;
}

static const weir_transport_vtable kScript = {.send = t_send, .close = t_close};

static void on_up(void *self, weir_peer *peer) {
  (void)peer;
  ((scene *)self)->up++;
}
static void on_message(void *self, weir_peer *peer,
                       const Weir__V1__Control *m) {
  (void)self, (void)peer, (void)m;
}
static void on_lost(void *self, weir_peer *peer, const weir_error *why) {
  (void)self, (void)peer, (void)why;
}
static void on_refused(void *self, const char *text) {
  scene *s = self;
  s->lines++;
  snprintf(s->line, sizeof s->line, "%s", text);
}
static void bulk_connect(void *self, uint64_t tag, const char *address) {
  (void)self, (void)tag, (void)address;
}
static void bulk_close(void *self, weir_connection c) {
  ((scene *)self)->closed = c;
  ((scene *)self)->bulk_closes++;
}
static void bulk_opened(void *self, weir_connection c, weir_peer *peer) {
  (void)self, (void)c, (void)peer;
}

static bool open_scene(scene *s, uint64_t fail_at) {
  memset(s, 0, sizeof *s);
  s->transport.vt = &kScript;
  s->now = SECOND;
  weir_counted_allocator_init(&s->counted, NULL);
  s->counted.fail_at = fail_at;
  weir_link_self self = {.job = "worker",
                         .incarnation = 5,
                         .protocol_min = 1,
                         .protocol_max = 1,
                         .build = "me"};
  weir_link_events events = {s, on_up, on_message, on_lost, on_refused};
  weir_link_bulk bulk = {s, &s->transport, bulk_connect, bulk_close,
                         bulk_opened};
  weir_link_options options = {.max_peers = MOST, .max_greeting = MOST};
  return weir_link_create(&s->counted.base, &self, &options, &events,
                          &s->transport, &bulk, &s->link) == WEIR_OK;
}

static void close_scene(scene *s) {
  weir_link_release(s->link);
  assert_int_equal(atomic_load(&s->counted.live_blocks), 0);
}

static weir_connection come(scene *s) {
  char address[64];
  snprintf(address, sizeof address, "127.0.0.1:%d", (int)++s->last);
  weir_link_on_connected(s->link, s->now, s->last, weir_sv_from(address), true);
  return s->last;
}

/* A Hello of worker |index|, or of a driver for |job| "". */
static void say_hello(scene *s, weir_connection c, const char *job,
                      uint32_t index, uint64_t incarnation) {
  uint8_t id[16] = {0};
  Weir__V1__Task from = WEIR__V1__TASK__INIT, to = WEIR__V1__TASK__INIT;
  Weir__V1__Hello hello = WEIR__V1__HELLO__INIT;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  weir_error err = WEIR_ERROR_INIT;
  from.job = (char *)job;
  from.index = index;
  to.job = (char *)"worker";
  hello.protocol_min = hello.protocol_max = 1;
  hello.job_id.data = id;
  hello.job_id.len = sizeof id;
  hello.from = &from;
  hello.to = &to;
  hello.incarnation = incarnation;
  m.body_case = WEIR__V1__CONTROL__BODY_HELLO;
  m.hello = &hello;
  weir_bytes bytes;
  assert_ok(weir_wire_pack(weir_allocator_system(), &m, &bytes, &err), &err);
  weir_net_frame frame = {&bytes, 1, bytes.size, NULL, NULL};
  weir_link_on_frame(s->link, s->now, c, &frame);
  weir_wire_free(weir_allocator_system(), bytes);
}

static void assert_says(const char *text, const char *says) {
  if (strstr(text, says) == NULL) fail_msg("no '%s' in: %s", says, text);
}

/* As many drivers as may come, and one more: refused with a sentence. One that
 * leaves makes room; the same process again takes its own place. */
static void peers_are_counted(void **state) {
  (void)state;
  scene s;
  assert_true(open_scene(&s, 0));
  for (uint64_t i = 0; i < MOST; i++) say_hello(&s, come(&s), "", 0, 100 + i);
  assert_int_equal(s.up, MOST);
  weir_connection more = come(&s);
  say_hello(&s, more, "", 0, 200);
  assert_string_equal(s.refused, "W7030");
  assert_says(s.words,
              "8 processes are connected to worker:0, which takes at "
              "most 8");
  assert_int_equal(s.closed, more);
  assert_int_equal(weir_link_count(s.link), MOST);
  say_hello(&s, come(&s), "", 0, 100);
  assert_string_equal(s.refused, "");
  (void)weir_link_tick(s.link, s.now);
  weir_link_on_closed(s.link, s.now, 2, WEIR_CLOSED_BY_PEER, WEIR_SV_LIT(""));
  (void)weir_link_tick(s.link, s.now);
  say_hello(&s, come(&s), "", 0, 200);
  assert_string_equal(s.refused, "");
  close_scene(&s);
}

/* Many that connect and say nothing: the oldest goes, the newest has its turn,
 * and after 5 s all are gone. One line a second tells of them. */
static void the_silent_make_room(void **state) {
  (void)state;
  scene s;
  assert_true(open_scene(&s, 0));
  for (int i = 0; i < 3 * MOST; i++) {
    weir_connection c = come(&s);
    assert_int_equal(s.closes, i < MOST ? 0 : i - MOST + 1);
    if (i >= MOST) assert_int_equal(s.closed, c - MOST);
    s.now++;
  }
  assert_int_equal(weir_link_count(s.link), MOST);
  say_hello(&s, come(&s), "", 0, 100);
  assert_int_equal(s.up, 1);
  (void)weir_link_tick(s.link, s.now);
  assert_int_equal(s.lines, 1);
  assert_says(s.line,
              "refused 127.0.0.1:1: more than 8 connections have said "
              "no Hello yet");
  assert_says(s.line, "; and 16 more");
  s.now += 6 * (int64_t)SECOND;
  (void)weir_link_tick(s.link, s.now);
  assert_int_equal(weir_link_count(s.link), 1); /* the one that has spoken */
  assert_int_equal(s.lines, 2);
  assert_says(s.line, "it said no Hello within 5 s");
  close_scene(&s);
}

static void bulk_connections_too(void **state) {
  (void)state;
  scene s;
  assert_true(open_scene(&s, 0));
  for (int i = 0; i < 2 * MOST; i++) {
    weir_link_bulk_on_connected(s.link, s.now, 0, (uint64_t)i + 1);
    assert_int_equal(s.bulk_closes, i < MOST ? 0 : i - MOST + 1);
    if (i >= MOST) assert_int_equal(s.closed, i - MOST + 1);
    s.now++;
  }
  s.now += 6 * (int64_t)SECOND;
  (void)weir_link_tick(s.link, s.now);
  assert_int_equal(s.bulk_closes, 2 * MOST);
  assert_says(s.line, "refused a bulk connection: ");
  assert_says(s.line, "; and 15 more");
  close_scene(&s);
}

/* Lines: at most one a second, and none for a peer that leaves by itself. */
static void lines_are_few(void **state) {
  (void)state;
  scene s;
  assert_true(open_scene(&s, 0));
  weir_link_on_closed(s.link, s.now, come(&s), WEIR_CLOSED_BY_PEER,
                      WEIR_SV_LIT(""));
  (void)weir_link_tick(s.link, s.now);
  assert_int_equal(s.lines, 0);
  for (int i = 0; i < 5; i++) {
    weir_bytes junk = {(const uint8_t *)"junk", 4};
    weir_net_frame frame = {&junk, 1, 4, NULL, NULL};
    weir_link_on_frame(s.link, s.now, come(&s), &frame);
    int64_t next = weir_link_tick(s.link, s.now);
    assert_int_equal(s.lines, 1);
    if (i == 0) assert_says(s.line, "does not begin with its checksum");
    if (i > 0) assert_int_equal(next, 2 * (int64_t)SECOND);
  }
  s.now = 2 * (int64_t)SECOND;
  assert_int_equal(weir_link_tick(s.link, s.now), INT64_MAX);
  assert_int_equal(s.lines, 2);
  assert_says(s.line, "refused 127.0.0.1:3: ");
  assert_says(s.line, "; and 3 more");
  close_scene(&s);
}

/* Names of tasks that were here are kept, a bounded number of them. */
static void tasks_are_counted(void **state) {
  (void)state;
  scene s;
  assert_true(open_scene(&s, 0));
  for (uint32_t i = 1; i <= 4097; i++) {
    weir_connection c = come(&s);
    say_hello(&s, c, "worker", i, 100 + i);
    assert_string_equal(s.refused, i <= 4096 ? "" : "W7030");
    weir_link_on_closed(s.link, s.now, c, WEIR_CLOSED_BY_PEER, WEIR_SV_LIT(""));
    (void)weir_link_tick(s.link, s.now);
  }
  assert_says(s.words, "4096 tasks have been here");
  close_scene(&s);
}

static void no_memory(void **state) {
  (void)state;
  for (int once = 0; once < 2; once++) {
    bool good = false;
    for (uint64_t k = 1; !good; k++) {
      scene s;
      assert_true(k < 300);
      if (open_scene(&s, k)) {
        s.counted.fail_forever = once == 0;
        for (int i = 0; i < MOST + 2; i++)
          say_hello(&s, come(&s), "", 0, 100 + (uint64_t)i);
        for (int i = 0; i < MOST + 2; i++) {
          (void)come(&s);
          weir_link_bulk_on_connected(s.link, s.now, 0, 1000 + (uint64_t)i);
        }
        s.now += 6 * (int64_t)SECOND;
        (void)weir_link_tick(s.link, s.now);
        good = s.up == MOST && atomic_load(&s.counted.calls) < k;
      }
      close_scene(&s);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(peers_are_counted),
      cmocka_unit_test(the_silent_make_room),
      cmocka_unit_test(bulk_connections_too),
      cmocka_unit_test(lines_are_few),
      cmocka_unit_test(tasks_are_counted),
      cmocka_unit_test(no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
