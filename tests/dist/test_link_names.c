/* SPDX-License-Identifier: Apache-2.0 */
/* Names in certificates: two links over transports in memory whose peers show
 * the names that a case gives them, on each of the two connections, on either
 * side. */
#include "runtime/dist/link/link.h"

#include <stdlib.h>

#include "runtime/net/local.h"
#include "tests/check.h"

enum { SECOND = 1000000000, CONTROL = 0, BULK = 1 };

typedef struct side {
  struct scene *scene;
  weir_transport *transports[2];
  weir_transport_vtable vt[2]; /* the local one's, with names */
  const char *shown[2];        /* of its peer; NULL: without certificates */
  weir_link *link;
  uint64_t tag;
  weir_connection dialled; /* its bulk connection */
  int up, lost, refused;
  weir_error why;
} side;

typedef struct scene {
  weir_env env;
  int64_t now;
  weir_net_hub *hub;
  side a, b; /* a dials b */
} scene;

static int64_t now_ns(void *self) {
  return ((scene *)self)->now;
}

static void on_up(void *self, weir_peer *peer) {
  (void)peer;
  ((side *)self)->up++;
}
static void on_message(void *self, weir_peer *peer,
                       const struct Weir__V1__Control *m) {
  (void)self, (void)peer, (void)m;
}
static void on_lost(void *self, weir_peer *peer, const weir_error *why) {
  (void)peer;
  side *s = self;
  s->lost++;
  weir_error_copy(&s->why, why);
}
static void on_refused(void *self, const char *text) {
  side *s = self;
  s->refused++;
  assert_non_null(strstr(text, "its certificate is of"));
}

static void on_connected(void *self, weir_connection c, weir_sv peer,
                         bool incoming) {
  side *s = self;
  weir_link_on_connected(s->link, s->scene->now, c, peer, incoming);
}
static void on_frame(void *self, weir_connection c, weir_net_frame *frame) {
  side *s = self;
  weir_link_on_frame(s->link, s->scene->now, c, frame);
}
static void on_closed(void *self, weir_connection c, weir_close_reason why,
                      weir_sv text) {
  side *s = self;
  weir_link_on_closed(s->link, s->scene->now, c, why, text);
}
static void bulk_connected(void *self, weir_connection c, weir_sv peer,
                           bool incoming) {
  (void)peer;
  side *s = self;
  weir_link_bulk_on_connected(s->link, s->scene->now, incoming ? 0 : s->tag, c);
}
static void bulk_frame(void *self, weir_connection c, weir_net_frame *frame) {
  side *s = self;
  weir_link_bulk_on_frame(s->link, s->scene->now, c, frame);
}
static void bulk_closed(void *self, weir_connection c, weir_close_reason why,
                        weir_sv text) {
  side *s = self;
  weir_link_bulk_on_closed(s->link, s->scene->now, c, why, text);
}

static void link_connect(void *self, uint64_t tag, const char *address) {
  side *s = self;
  weir_error err = WEIR_ERROR_INIT;
  weir_transport *t = s->transports[BULK];
  s->tag = tag;
  assert_ok(t->vt->connect(t, weir_sv_from(address), &s->dialled, &err), &err);
}
static void link_close(void *self, weir_connection c) {
  weir_transport *t = ((side *)self)->transports[BULK];
  t->vt->close(t, c);
}
static void link_opened(void *self, weir_connection c, weir_peer *peer) {
  (void)self, (void)c, (void)peer;
}

static bool names_of(const char *shown, char out[WEIR_NET_NAMES_BYTES]) {
  if (shown != NULL) snprintf(out, WEIR_NET_NAMES_BYTES, "%s", shown);
  return shown != NULL;
}
static bool names(weir_transport *t, weir_connection c,
                  char out[WEIR_NET_NAMES_BYTES]) {
  (void)c;
  const side *s = t->handler.self;
  return names_of(s->shown[t->options.cls], out);
}

static void open_side(scene *sc, side *s, const weir_link_self *self,
                      const char *listen) {
  weir_error err = WEIR_ERROR_INIT;
  weir_link_self me = *self;
  weir_transport_handler handlers[2] = {
      {s, on_connected, on_frame, on_closed},
      {s, bulk_connected, bulk_frame, bulk_closed}};
  s->scene = sc;
  s->why = (weir_error)WEIR_ERROR_INIT;
  for (int i = 0; i < 2; i++) {
    weir_transport_options o = {.cls = (weir_net_class)i};
    weir_transport **t = &s->transports[i];
    assert_ok(weir_transport_local_create(sc->hub, &handlers[i], &o, t, &err),
              &err);
    s->vt[i] = *(*t)->vt;
    s->vt[i].names = names;
    (*t)->vt = &s->vt[i];
  }
  if (listen != NULL) {
    char bound[WEIR_NET_ADDRESS_BYTES];
    weir_transport **t = s->transports;
    assert_ok(t[0]->vt->listen(t[0], weir_sv_from(listen), bound, &err), &err);
    assert_ok(
        t[1]->vt->listen(t[1], WEIR_SV_LIT("local:"), me.bulk_address, &err),
        &err);
  }
  weir_link_events events = {s, on_up, on_message, on_lost, on_refused};
  weir_link_bulk bulk = {s, s->transports[BULK], link_connect, link_close,
                         link_opened};
  assert_int_equal(weir_link_create(weir_allocator_system(), &me, NULL, &events,
                                    s->transports[CONTROL], &bulk, &s->link),
                   WEIR_OK);
}

/* The names that each side sees on control and bulk, and what comes of it. */
typedef struct name_case {
  const char *job; /* of a; "": a driver */
  uint32_t index;
  const char *a[2], *b[2];
  int up, a_lost, b_refused;
  const char *says; /* a's error, or b's */
} name_case;

#define W0 "weir://worker/0 "
#define W1 "weir://worker/1 "
#define DR "weir://driver "

static const name_case kCases[] = {
    {"worker", 1, {NULL, NULL}, {NULL, NULL}, 1, 0, 0, ""},
    {"worker", 1, {W0, W0}, {W1, W1}, 1, 0, 0, ""},
    {"", 0, {W0, W0}, {DR, DR}, 1, 0, 0, ""},
    {"", 0, {W1 W0, W1 W0}, {W1 DR, W1 DR}, 1, 0, 0, ""},
    /* A task cannot drive, a driver is no task. */
    {"",
     0,
     {W0, W0},
     {W1, W1},
     0,
     1,
     1,
     "the driver: its certificate is of weir://worker/1, not of weir://driver"},
    {"worker",
     1,
     {W0, W0},
     {DR, DR},
     0,
     1,
     1,
     "worker:1: its certificate is of weir://driver, not of weir://worker/1"},
    {"worker",
     1,
     {W0, W0},
     {"weir://worker/11 ", W1},
     0,
     1,
     1,
     "is of weir://worker/11, not of weir://worker/1"},
    {"worker", 1, {W0, W0}, {"xweir://worker/1 ", W1}, 0, 1, 1, "is of xweir"},
    {"worker", 1, {W0, W0}, {"", ""}, 0, 1, 1, "is of no task, not of"},
    /* The side that dials sees it before it says a word. */
    {"worker",
     1,
     {W1, W1},
     {W1, W1},
     0,
     1,
     0,
     "worker:0: its certificate is of weir://worker/1, not of "
     "weir://worker/0"},
    {"worker", 1, {W0, W1}, {W1, W1}, 0, 1, 0, "not of weir://worker/0"},
    {"worker", 1, {W0, W0}, {W1, W0}, 0, 0, 1, ""},
};

static void run(const name_case *c) {
  weir_error err = WEIR_ERROR_INIT;
  scene *s = calloc(1, sizeof *s);
  weir_clock clock = {s, now_ns};
  s->env.alloc = weir_allocator_system();
  s->env.clock = &clock;
  s->now = SECOND;
  assert_ok(weir_net_hub_create(&s->env, &s->hub, &err), &err);
  weir_link_self self = {.job = "worker",
                         .incarnation = 5,
                         .protocol_min = 1,
                         .protocol_max = 1,
                         .build = "b"};
  open_side(s, &s->b, &self, "local:b");
  snprintf(self.job, sizeof self.job, "%s", c->job);
  self.index = c->index;
  self.incarnation = 6;
  open_side(s, &s->a, &self, NULL);
  for (int i = 0; i < 2; i++) {
    s->a.shown[i] = c->a[i];
    s->b.shown[i] = c->b[i];
  }
  weir_link_target target = {"worker", 0, "local:b", s->now + 20LL * SECOND};
  weir_peer *peer;
  assert_ok(weir_link_dial(s->a.link, s->now, &target, &peer, &err), &err);
  side *sides[2] = {&s->a, &s->b};
  for (int n = 0; n < 20; n++)
    for (int i = 0; i < 2; i++) {
      (void)weir_link_tick(sides[i]->link, s->now);
      for (int k = 0; k < 2; k++) {
        weir_transport *t = sides[i]->transports[k];
        assert_ok(t->vt->poll(t, 0, &err), &err);
      }
    }
  assert_int_equal(s->a.up, c->up);
  assert_int_equal(s->b.up, c->up);
  assert_int_equal(s->a.lost, c->a_lost);
  assert_int_equal(s->b.refused, c->b_refused);
  if (c->a_lost > 0) assert_string_equal(s->a.why.id, "W7063");
  if (strstr(s->a.why.message, c->says) == NULL)
    fail_msg("%s", s->a.why.message);
  for (int i = 0; i < 2; i++) {
    weir_link_release(sides[i]->link);
    for (int k = 0; k < 2; k++) weir_transport_release(sides[i]->transports[k]);
  }
  weir_net_hub_release(s->hub);
  free(s);
}

static void each_name(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof kCases / sizeof kCases[0]; i++) {
    print_message("case %zu\n", i);
    run(&kCases[i]);
  }
}

/* Errors of certificates keep their id, whoever passes them on. */
static void ids(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  assert_int_equal(weir_link_id_of(&err, WEIR_W7022), WEIR_W7022);
  weir_fail(&err, WEIR_W7001, NULL, "x");
  assert_int_equal(weir_link_id_of(&err, WEIR_W7022), WEIR_W7022);
  for (int i = WEIR_W7060; i <= WEIR_W7065; i++) {
    weir_fail(&err, (weir_error_id)i, NULL, "x");
    assert_int_equal(weir_link_id_of(&err, WEIR_W7022), i);
    assert_int_equal(err.code, WEIR_UNAUTHENTICATED);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_name),
                                     cmocka_unit_test(ids)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
