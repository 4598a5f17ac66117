/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of a driver in a task: steps, feeds and programs. The link is real,
 * its transport and the engine are scripts: the engine takes all and ends
 * nothing, so that steps that write wait behind the first. */
#include "runtime/dist/link/link.h"
#include "runtime/dist/task/task.h"
#include "runtime/net/wire.h"
#include "runtime/net/wire_error.h"
#include "tests/check.h"

enum { SECOND = 1000000000, FEED = 8000, FEEDS = 200 };

typedef struct scene {
  weir_transport transport;
  weir_engine engine;
  weir_counted_allocator counted;
  weir_link *link;
  weir_task *task;
  weir_engine_event added, ended;
  int64_t now;
  bool registered, over;
  int lost, started, failed;
  weir_error why, last;
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
  if (m.control->body_case == WEIR__V1__CONTROL__BODY_STEP_REPLY) {
    const Weir__V1__StepReply *r = m.control->step_reply;
    s->failed++;
    assert_int_equal(r->n_failures, 1);
    (void)weir_wire_error_get(r->failures[0]->error, &s->last);
  }
  if (m.control->body_case == WEIR__V1__CONTROL__BODY_REGISTER_REPLY) {
    s->registered = !weir_wire_error_is(m.control->register_reply->error);
    if (!s->registered)
      (void)weir_wire_error_get(m.control->register_reply->error, &s->last);
  }
  weir_wire_message_release(&m);
  return WEIR_OK;
}
static void t_close(weir_transport *t, weir_connection c) {
  (void)t, (void)c;
}
static const weir_transport_vtable kScript = {.send = t_send, .close = t_close};

/* ---- The engine */

static void no_release(weir_engine_event *event) {
  (void)event;
}
static weir_status e_begin(weir_engine *e, const weir_engine_session *session,
                           weir_error *err) {
  (void)e, (void)session, (void)err;
  return WEIR_OK;
}
static scene *of(weir_engine *e) {
  return (scene *)((char *)e - offsetof(scene, engine));
}
static void e_end(weir_engine *e) {
  scene *s = of(e);
  s->ended =
      (weir_engine_event){.release = no_release, .kind = WEIR_ENGINE_ENDED};
  s->over = true;
}
static void e_lost(weir_engine *e, uint32_t peer, const weir_error *why) {
  (void)e, (void)peer, (void)why;
}
static weir_status e_add(weir_engine *e, const Weir__V1__Register *request,
                         weir_error *err) {
  (void)err;
  of(e)->added = (weir_engine_event){.release = no_release,
                                     .kind = WEIR_ENGINE_ADDED,
                                     .error = WEIR_ERROR_INIT,
                                     .program = request->program,
                                     .writes = true};
  return WEIR_OK;
}
static void e_remove(weir_engine *e, uint32_t program) {
  (void)e, (void)program;
}
static weir_status e_start(weir_engine *e, const weir_engine_step *step,
                           weir_error *err) {
  (void)step, (void)err;
  of(e)->started++;
  return WEIR_OK;
}
static void e_abort(weir_engine *e, uint64_t step, const weir_error *why) {
  (void)e, (void)step, (void)why;
}
static const weir_engine_vtable kEngine = {
    .begin = e_begin,
    .end = e_end,
    .lost = e_lost,
    .add = e_add,
    .remove = e_remove,
    .start = e_start,
    .abort = e_abort,
};

/* ---- The link's events and the task's calls */

static void on_up(void *self, weir_peer *peer) {
  weir_task_up(((scene *)self)->task, ((scene *)self)->now, peer);
}
static void on_message(void *self, weir_peer *peer,
                       const Weir__V1__Control *m) {
  weir_task_message(((scene *)self)->task, ((scene *)self)->now, peer, m);
}
static void on_lost(void *self, weir_peer *peer, const weir_error *why) {
  scene *s = self;
  s->lost++;
  weir_error_copy(&s->why, why);
  weir_task_lost(s->task, s->now, peer, why);
}
static void bulk_connect(void *self, uint64_t tag, const char *address) {
  (void)self, (void)tag, (void)address;
}
static void bulk_close(void *self, weir_connection c) {
  (void)self, (void)c;
}
static void bulk_opened(void *self, weir_connection c, weir_peer *peer) {
  (void)self, (void)c, (void)peer;
}
static weir_status session(void *self, uint32_t places,
                           const struct weir_wire_out **out, weir_error *err) {
  (void)self, (void)places, (void)err;
  *out = NULL;
  return WEIR_OK;
}
static void place(void *self, uint32_t at, weir_peer *peer) {
  (void)self, (void)at, (void)peer;
}
static void nothing(void *self) {
  (void)self;
}

static void say(scene *s, uint64_t epoch, Weir__V1__Control *m) {
  weir_error err = WEIR_ERROR_INIT;
  weir_bytes bytes;
  m->epoch = epoch;
  assert_ok(weir_wire_pack(weir_allocator_system(), m, &bytes, &err), &err);
  weir_net_frame frame = {&bytes, 1, bytes.size, NULL, NULL};
  weir_link_on_frame(s->link, s->now, 1, &frame);
  (void)weir_link_tick(s->link, s->now);
  weir_wire_free(weir_allocator_system(), bytes);
}

static void say_hello(scene *s) {
  uint8_t id[16] = {0};
  Weir__V1__Task from = WEIR__V1__TASK__INIT, to = WEIR__V1__TASK__INIT;
  Weir__V1__Hello hello = WEIR__V1__HELLO__INIT;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  to.job = (char *)"worker";
  hello.protocol_min = hello.protocol_max = 1;
  hello.job_id.data = id;
  hello.job_id.len = sizeof id;
  hello.from = &from;
  hello.to = &to;
  hello.incarnation = 7;
  m.body_case = WEIR__V1__CONTROL__BODY_HELLO;
  m.hello = &hello;
  weir_link_on_connected(s->link, s->now, 1, WEIR_SV_LIT("there"), true);
  say(s, 0, &m);
}

static void say_begin(scene *s) {
  Weir__V1__Task task = WEIR__V1__TASK__INIT, *tasks[] = {&task};
  char *addresses[] = {(char *)"here"};
  Weir__V1__Begin begin = WEIR__V1__BEGIN__INIT;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  task.job = (char *)"worker";
  begin.n_tasks = begin.n_addresses = 1;
  begin.tasks = tasks;
  begin.addresses = addresses;
  m.body_case = WEIR__V1__CONTROL__BODY_BEGIN;
  m.begin = &begin;
  say(s, 1, &m);
}

static void say_register(scene *s, uint32_t program) {
  Weir__V1__Register body = WEIR__V1__REGISTER__INIT;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  body.program = program;
  m.body_case = WEIR__V1__CONTROL__BODY_REGISTER;
  m.register_ = &body;
  s->registered = false;
  s->added.program = UINT32_MAX;
  say(s, 1, &m);
  if (s->added.program == program)
    weir_task_on_engine(s->task, s->now, &s->added);
}

/* |count| steps from |step| on, each with |feeds| values of FEED bytes. */
static void say_run(scene *s, uint64_t step, uint32_t count, size_t feeds) {
  static uint8_t data[FEED];
  static Weir__V1__Value values[FEEDS], *items[FEEDS];
  Weir__V1__RunStep body = WEIR__V1__RUN_STEP__INIT;
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  for (size_t i = 0; i < feeds; i++) {
    values[i] = (Weir__V1__Value)WEIR__V1__VALUE__INIT;
    values[i].kind = WEIR__V1__VALUE_KIND__FEED;
    values[i].id = (uint32_t)i;
    values[i].data = (ProtobufCBinaryData){FEED, data};
    items[i] = &values[i];
  }
  body.program = 1;
  body.step = step;
  body.count = count;
  body.n_feeds = feeds;
  body.feeds = items;
  m.body_case = WEIR__V1__CONTROL__BODY_RUN_STEP;
  m.run_step = &body;
  say(s, 1, &m);
}

/* A task with a driver's session. */
static void open_scene(scene *s) {
  memset(s, 0, sizeof *s);
  s->transport.vt = &kScript;
  s->engine.vt = &kEngine;
  s->now = SECOND;
  s->why = s->last = (weir_error)WEIR_ERROR_INIT;
  weir_counted_allocator_init(&s->counted, NULL);
  weir_link_self self = {.job = "worker",
                         .incarnation = 5,
                         .protocol_min = 1,
                         .protocol_max = 1,
                         .build = "me"};
  weir_link_events events = {s, on_up, on_message, on_lost, NULL};
  weir_link_bulk bulk = {s, &s->transport, bulk_connect, bulk_close,
                         bulk_opened};
  weir_task_calls calls = {s, session, place, nothing, nothing, NULL};
  assert_int_equal(weir_link_create(&s->counted.base, &self, NULL, &events,
                                    &s->transport, &bulk, &s->link),
                   WEIR_OK);
  assert_int_equal(weir_task_create(&s->counted.base, s->link, &s->engine, NULL,
                                    &calls, &s->task),
                   WEIR_OK);
  say_hello(s);
  say_begin(s);
  say_register(s, 1);
  assert_true(s->registered);
}

static void close_scene(scene *s) {
  weir_task_shut(s->task);
  assert_true(s->over);
  weir_task_on_engine(s->task, s->now, &s->ended);
  weir_task_release(s->task);
  weir_link_release(s->link);
  assert_int_equal(atomic_load(&s->counted.live_blocks), 0);
}

static void assert_says(const weir_error *err, const char *id,
                        const char *says) {
  assert_string_equal(err->id, id);
  if (strstr(err->message, says) == NULL)
    fail_msg("no '%s' in: %s", says, err->message);
}

static void steps_are_counted(void **state) {
  (void)state;
  scene s;
  open_scene(&s);
  say_run(&s, 1, 4096, 0);
  assert_int_equal(s.lost, 0);
  assert_int_equal(weir_task_steps(s.task), 4096);
  assert_int_equal(s.started, 1);
  say_run(&s, 5000, 1, 0);
  assert_int_equal(s.lost, 1);
  assert_says(&s.why, "W7031",
              "4096 steps are under way, at most 4096 may be, and 1 more");
  close_scene(&s);
}

/* One message for 1,000 steps of 1.6 MB: those that fit in 256 MiB wait, the
 * others fail, each with a word, and the driver is not lost. */
static void feeds_are_counted(void **state) {
  (void)state;
  scene s;
  open_scene(&s);
  say_run(&s, 1, 1000, FEEDS);
  assert_int_equal(s.lost, 0);
  size_t waiting = weir_task_steps(s.task);
  assert_in_range(waiting, 150, 170);
  assert_int_equal(s.failed, 1000 - waiting);
  assert_says(&s.last, "W7031", "at most 256 MiB may, and step 1000 has");
  assert_true(atomic_load(&s.counted.peak_bytes) < (int64_t)300 << 20);
  say_run(&s, 1001, 1, 1); /* a small one has room */
  assert_int_equal(weir_task_steps(s.task), waiting + 1);
  close_scene(&s);
}

static void programs_are_counted(void **state) {
  (void)state;
  scene s;
  open_scene(&s);
  for (uint32_t i = 2; i <= 17; i++) {
    say_register(&s, i);
    assert_int_equal(s.registered, i <= 16);
  }
  assert_says(&s.last, "W7011", "more than 16 programs");
  assert_int_equal(s.lost, 0);
  close_scene(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(steps_are_counted),
      cmocka_unit_test(feeds_are_counted),
      cmocka_unit_test(programs_are_counted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
