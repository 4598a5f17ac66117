/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/dist/script_task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/dist/channel/exchange.h"
#include "runtime/dist/engine.h"
#include "runtime/dist/link/out.h"
#include "runtime/net/wire.h"
#include "runtime/net/wire_error.h"
#include "tests/check.h"

enum { BULKS = 4, WAITS = 64 };

typedef enum wait_kind { BLOB, FEED, VARIABLE, SENT } wait_kind;

/* A value under way, and the message to send when it is here. */
typedef struct waiting {
  bool used;
  atomic_bool ended;
  weir_status status;
  wait_kind kind;
  weir_channel_done done;
  weir_bytes bytes; /* owned by the env's allocator */
  uint64_t step;    /* of a feed; the request of a variable */
  uint32_t program, left;
} waiting;

typedef struct script_program {
  uint32_t number, feeds, fetches;
  bool writes;
  size_t feed_bytes;
} script_program;

struct script_task {
  script_options options;
  weir_transport *transports[2];
  weir_link *link;
  weir_link_out *out;
  struct weir_exchange *values;
  weir_peer *driver;
  uint64_t epoch;
  char address[WEIR_NET_ADDRESS_BYTES];
  pthread_t thread;
  atomic_bool stop;
  struct {
    weir_connection c;
    bool greeted;
  } bulks[BULKS];
  waiting waits[WAITS];
  script_program programs[16];
  uint32_t program_count, blob_number;
  uint8_t *variable;
  script_heard heard;
};

static int64_t now_of(const script_task *t) {
  return t->options.env->clock->now_ns(t->options.env->clock->self);
}

static void send_message(script_task *t, Weir__V1__Control__BodyCase kind,
                         void *body) {
  Weir__V1__Control m = WEIR__V1__CONTROL__INIT;
  m.body_case = kind;
  m.hello = body; /* a union of pointers */
  weir_link_send(t->driver, t->epoch, &m);
}

static void wait_ended(void *self, weir_status status, const weir_error *err) {
  (void)err;
  waiting *w = self;
  w->status = status;
  atomic_store(&w->ended, true);
}

static waiting *new_wait(script_task *t, wait_kind kind) {
  for (int i = 0; i < WAITS; i++) {
    waiting *w = &t->waits[i];
    if (w->used) continue;
    memset(w, 0, sizeof *w);
    w->used = true;
    w->kind = kind;
    w->done = (weir_channel_done){.fn = wait_ended, .self = w};
    return w;
  }
  fail_msg("too much is under way");
  return NULL;
}

/* ---- Programs: the bundle and the plan are fetched, then the answer */

static void program_is_here(script_task *t, uint32_t program) {
  Weir__V1__RegisterReply reply = WEIR__V1__REGISTER_REPLY__INIT;
  reply.program = program;
  for (uint32_t i = 0; i < t->program_count; i++)
    if (t->programs[i].number == program)
      reply.writes = t->programs[i].writes && strcmp(t->options.job, "ps") == 0;
  atomic_fetch_add(&t->heard.programs, 1);
  send_message(t, WEIR__V1__CONTROL__BODY_REGISTER_REPLY, &reply);
}

static void on_register(script_task *t, const Weir__V1__Register *r) {
  script_program *p = &t->programs[t->program_count++ % 16];
  *p = (script_program){.number = r->program,
                        .feeds = (uint32_t)r->n_feeds,
                        .fetches = (uint32_t)r->n_fetches};
  for (size_t i = 0; i < r->n_fetches; i++)
    p->writes |= r->fetches[i] == t->options.written;
  p->feed_bytes = 4;
  for (size_t i = 0; r->n_feeds > 0 && i < r->feeds[0]->shape->n_dims; i++)
    p->feed_bytes *= (size_t)r->feeds[0]->shape->dims[i];
  const ProtobufCBinaryData *name = r->plan.len > 0 ? &r->plan : &r->bundle;
  assert_int_equal(name->len, WEIR_BLOB_NAME_BYTES);
  waiting *w = new_wait(t, BLOB);
  w->program = r->program;
  Weir__V1__BlobWant want = WEIR__V1__BLOB_WANT__INIT;
  want.hash = *name;
  want.number = ++t->blob_number;
  weir_slot slot = {WEIR__V1__VALUE_KIND__BLOB, want.number, 0};
  weir_exchange_recv_owned(t->values, WEIR_PEER_DRIVER, &slot, 1 << 24,
                           &w->bytes, &w->done);
  send_message(t, WEIR__V1__CONTROL__BODY_BLOB_WANT, &want);
}

/* ---- Steps */

static const script_program *program_of(const script_task *t, uint32_t number) {
  for (uint32_t i = 0; i < t->program_count; i++)
    if (t->programs[i].number == number) return &t->programs[i];
  return NULL;
}

static void reply(script_task *t, const script_program *p, uint64_t step,
                  weir_bytes value) {
  Weir__V1__StepReply body = WEIR__V1__STEP_REPLY__INIT;
  Weir__V1__Value row = WEIR__V1__VALUE__INIT, *rows[1] = {&row};
  Weir__V1__Failure failure = WEIR__V1__FAILURE__INIT,
                    *failures[1] = {&failure};
  Weir__V1__Error words = WEIR__V1__ERROR__INIT;
  weir_error err = WEIR_ERROR_INIT;
  body.step = step;
  if (t->options.fails) {
    weir_fail(&err, WEIR_W5004, NULL, "node 7 fails");
    weir_wire_error_put(&err, &words);
    failure.order = 7;
    failure.error = &words;
    body.failures = failures;
    body.n_failures = 1;
  } else {
    body.prepared = p->writes && strcmp(t->options.job, "ps") == 0;
    if (value.size > 0 && value.size <= WEIR_WIRE_VALUE_BYTES) {
      row.kind = WEIR__V1__VALUE_KIND__FETCH;
      row.step = step;
      row.data.data = (uint8_t *)(uintptr_t)value.data;
      row.data.len = value.size;
      body.fetches = rows;
      body.n_fetches = 1;
    } else if (value.size > 0 && !t->options.mute) {
      waiting *w = new_wait(t, SENT);
      uint8_t *copy = weir_alloc(t->options.env->alloc, value.size);
      memcpy(copy, value.data, value.size);
      w->bytes = (weir_bytes){copy, value.size};
      weir_slot slot = {WEIR__V1__VALUE_KIND__FETCH, 0, step};
      weir_exchange_send(t->values, WEIR_PEER_DRIVER, &slot, w->bytes,
                         &w->done);
    }
  }
  send_message(t, WEIR__V1__CONTROL__BODY_STEP_REPLY, &body);
}

static void on_step(script_task *t, const Weir__V1__RunStep *r) {
  const script_program *p = program_of(t, r->program);
  bool ps = strcmp(t->options.job, "ps") == 0;
  atomic_fetch_add(&t->heard.steps, 1);
  assert_non_null(p);
  if (t->options.stuck) return;
  if (p->writes) {
    size_t count = t->options.variable_bytes / 4;
    float *made = weir_alloc(t->options.env->alloc, count * 4);
    for (size_t i = 0; i < count; i++) made[i] = (float)r->step;
    reply(t, p, r->step,
          (weir_bytes){(const uint8_t *)made, ps ? count * 4 : 0});
    weir_free(t->options.env->alloc, made);
  } else if (r->n_feeds > 0) {
    reply(t, p, r->step,
          (weir_bytes){r->feeds[0]->data.data, r->feeds[0]->data.len});
  } else {
    waiting *w = new_wait(t, FEED);
    w->program = r->program;
    w->step = r->step;
    weir_slot slot = {WEIR__V1__VALUE_KIND__FEED, 0, r->step};
    uint8_t *data = weir_alloc(t->options.env->alloc, p->feed_bytes);
    w->bytes = (weir_bytes){data, p->feed_bytes};
    weir_exchange_recv(t->values, WEIR_PEER_DRIVER, &slot, data, p->feed_bytes,
                       &w->done);
  }
}

static void confirm(script_task *t, uint64_t step) {
  Weir__V1__CommitReply body = WEIR__V1__COMMIT_REPLY__INIT;
  body.step = step;
  send_message(t, WEIR__V1__CONTROL__BODY_COMMIT_REPLY, &body);
}

/* ---- Variables */

static void variables_are_done(script_task *t, uint64_t request) {
  Weir__V1__VariableReply body = WEIR__V1__VARIABLE_REPLY__INIT;
  body.request = request;
  send_message(t, WEIR__V1__CONTROL__BODY_VARIABLE_REPLY, &body);
}

static void on_variable(script_task *t, uint64_t request, uint32_t node,
                        bool set) {
  weir_slot slot = {WEIR__V1__VALUE_KIND__VARIABLE, node, request};
  waiting *w = new_wait(t, set ? VARIABLE : SENT);
  w->step = request;
  if (set) {
    weir_exchange_recv_owned(t->values, WEIR_PEER_DRIVER, &slot,
                             t->options.variable_bytes, &w->bytes, &w->done);
    return;
  }
  uint8_t *copy = weir_alloc(t->options.env->alloc, t->options.variable_bytes);
  memcpy(copy, t->variable, t->options.variable_bytes);
  w->bytes = (weir_bytes){copy, t->options.variable_bytes};
  weir_exchange_send(t->values, WEIR_PEER_DRIVER, &slot, w->bytes, &w->done);
  variables_are_done(t, request);
}

/* ---- Values that have come */

static void take(script_task *t, waiting *w) {
  const script_program *p = program_of(t, w->program);
  bool good = w->status == WEIR_OK && t->driver != NULL;
  if (good && w->kind == BLOB) {
    atomic_fetch_add(&t->heard.blobs, 1);
    program_is_here(t, w->program);
  } else if (good && w->kind == FEED) {
    reply(t, p, w->step, w->bytes);
  } else if (good && w->kind == VARIABLE) {
    memcpy(t->variable, w->bytes.data, w->bytes.size);
    variables_are_done(t, w->step);
  }
  weir_free(t->options.env->alloc, (void *)(uintptr_t)w->bytes.data);
  w->used = false;
}

static void take_all(script_task *t) {
  for (int i = 0; i < WAITS; i++)
    if (t->waits[i].used && atomic_load(&t->waits[i].ended))
      take(t, &t->waits[i]);
}

/* ---- The session */

static void on_begin(script_task *t, weir_peer *peer,
                     const Weir__V1__Control *m) {
  Weir__V1__BeginReply body = WEIR__V1__BEGIN_REPLY__INIT;
  weir_error err = WEIR_ERROR_INIT;
  t->driver = peer;
  t->epoch = m->epoch;
  assert_ok(weir_link_out_create(t->options.env->alloc, t->transports[0],
                                 t->transports[1], (uint32_t)m->begin->n_tasks,
                                 &t->out, &err),
            &err);
  weir_link_out_set(t->out, WEIR_PEER_DRIVER, peer);
  weir_exchange_options options = {
      .rendezvous = {.epoch = t->epoch, .tasks = (uint32_t)m->begin->n_tasks},
      .out = &t->out->base};
  assert_ok(weir_exchange_create(t->options.env, &options, &t->values, &err),
            &err);
  send_message(t, WEIR__V1__CONTROL__BODY_BEGIN_REPLY, &body);
}

static void link_up(void *self, weir_peer *peer) {
  (void)self, (void)peer;
}

static void link_lost(void *self, weir_peer *peer, const weir_error *why) {
  script_task *t = self;
  if (peer != t->driver) return;
  t->driver = NULL;
  weir_link_out_set(t->out, WEIR_PEER_DRIVER, NULL);
  weir_exchange_abort(t->values, why);
}

static void link_message(void *self, weir_peer *peer,
                         const Weir__V1__Control *m) {
  script_task *t = self;
  weir_error err = WEIR_ERROR_INIT;
  switch (m->body_case) {
    case WEIR__V1__CONTROL__BODY_BEGIN:
      on_begin(t, peer, m);
      break;
    case WEIR__V1__CONTROL__BODY_REGISTER:
      on_register(t, m->register_);
      break;
    case WEIR__V1__CONTROL__BODY_RUN_STEP:
      if (m->run_step->committed != 0) atomic_fetch_add(&t->heard.commits, 1);
      on_step(t, m->run_step);
      break;
    case WEIR__V1__CONTROL__BODY_COMMIT:
      atomic_fetch_add(&t->heard.commits, 1);
      if (t->options.confirms) confirm(t, m->commit->step);
      break;
    case WEIR__V1__CONTROL__BODY_ABORT:
      atomic_fetch_add(&t->heard.aborts, 1);
      weir_fail(&err, WEIR_W7027, NULL, "given up");
      weir_exchange_drop(t->values, m->abort->step, &err);
      break;
    case WEIR__V1__CONTROL__BODY_VARIABLE_GET:
      on_variable(t, m->variable_get->request, m->variable_get->nodes[0],
                  false);
      break;
    case WEIR__V1__CONTROL__BODY_VARIABLE_SET:
      on_variable(t, m->variable_set->request, m->variable_set->nodes[0], true);
      break;
    case WEIR__V1__CONTROL__BODY_END:
      atomic_fetch_add(&t->heard.ends, 1);
      weir_fail(&err, WEIR_W7027, NULL, "the session is over");
      weir_link_drop(peer);
      link_lost(t, peer, &err);
      break;
    case WEIR__V1__CONTROL__BODY_VALUES:
    case WEIR__V1__CONTROL__BODY_READY:
    case WEIR__V1__CONTROL__BODY_CUT:
      (void)weir_exchange_on_control(t->values, WEIR_PEER_DRIVER, m, &err);
      break;
    default:
      break;
  }
}

/* ---- Transports */

static void on_connected(void *self, weir_connection c, weir_sv peer,
                         bool incoming) {
  script_task *t = self;
  weir_link_on_connected(t->link, now_of(t), c, peer, incoming);
}

static void on_frame(void *self, weir_connection c, weir_net_frame *frame) {
  script_task *t = self;
  weir_link_on_frame(t->link, now_of(t), c, frame);
}

static void on_closed(void *self, weir_connection c, weir_close_reason why,
                      weir_sv text) {
  script_task *t = self;
  weir_link_on_closed(t->link, now_of(t), c, why, text);
}

static void on_bulk_connected(void *self, weir_connection c, weir_sv peer,
                              bool incoming) {
  (void)peer, (void)incoming;
  script_task *t = self;
  for (int i = 0; i < BULKS; i++)
    if (t->bulks[i].c == 0) {
      t->bulks[i].c = c;
      t->bulks[i].greeted = false;
      weir_link_bulk_on_connected(t->link, now_of(t), 0, c);
      return;
    }
}

static void on_bulk_frame(void *self, weir_connection c,
                          weir_net_frame *frame) {
  script_task *t = self;
  weir_error err = WEIR_ERROR_INIT;
  for (int i = 0; i < BULKS; i++) {
    if (t->bulks[i].c != c) continue;
    if (!t->bulks[i].greeted)
      weir_link_bulk_on_frame(t->link, now_of(t), c, frame);
    else if (t->values != NULL)
      (void)weir_exchange_on_bulk(t->values, WEIR_PEER_DRIVER, frame, &err);
    t->bulks[i].greeted = true;
  }
}

static void on_bulk_closed(void *self, weir_connection c, weir_close_reason why,
                           weir_sv text) {
  script_task *t = self;
  for (int i = 0; i < BULKS; i++)
    if (t->bulks[i].c == c) t->bulks[i].c = 0;
  weir_link_bulk_on_closed(t->link, now_of(t), c, why, text);
}

static void no_connect(void *self, uint64_t tag, const char *address) {
  (void)self, (void)tag, (void)address;
}

static void close_bulk(void *self, weir_connection c) {
  script_task *t = self;
  for (int i = 0; i < BULKS; i++)
    if (t->bulks[i].c == c) t->bulks[i].c = 0;
  t->transports[1]->vt->close(t->transports[1], c);
}

static void no_opened(void *self, weir_connection c, weir_peer *peer) {
  (void)self, (void)c, (void)peer;
}

static void *live(void *self) {
  script_task *t = self;
  weir_error err = WEIR_ERROR_INIT;
  while (!atomic_load(&t->stop)) {
    for (int i = 0; i < 2; i++)
      (void)t->transports[i]->vt->poll(t->transports[i], now_of(t) + 500000,
                                       &err);
    take_all(t);
    (void)weir_link_tick(t->link, now_of(t));
  }
  return NULL;
}

static void make_link(script_task *t, const char *bulk_address) {
  const script_options *o = &t->options;
  weir_link_self self = {.index = o->index,
                         .incarnation = 1000 + o->index,
                         .profile = 0x10101,
                         .protocol_min = 1,
                         .protocol_max = 1,
                         .build = "script"};
  snprintf(self.job, sizeof self.job, "%s", o->job);
  snprintf(self.bulk_address, sizeof self.bulk_address, "%s", bulk_address);
  weir_link_events events = {t, link_up, link_message, link_lost};
  weir_link_bulk bulk = {t, t->transports[1], no_connect, close_bulk,
                         no_opened};
  assert_int_equal(weir_link_create(o->env->alloc, &self, NULL, &events,
                                    t->transports[0], &bulk, &t->link),
                   WEIR_OK);
}

script_task *script_task_start(const script_options *options) {
  weir_error err = WEIR_ERROR_INIT;
  char bulk[WEIR_NET_ADDRESS_BYTES];
  script_task *t = calloc(1, sizeof *t);
  assert_non_null(t);
  t->options = *options;
  t->variable = calloc(1, options->variable_bytes + 1);
  assert_non_null(t->variable);
  weir_transport_handler handlers[2] = {
      {t, on_connected, on_frame, on_closed},
      {t, on_bulk_connected, on_bulk_frame, on_bulk_closed}};
  for (int i = 0; i < 2; i++) {
    weir_transport_options o = {.cls = (weir_net_class)i};
    assert_ok(weir_transport_local_create(options->hub, &handlers[i], &o,
                                          &t->transports[i], &err),
              &err);
    assert_ok(
        t->transports[i]->vt->listen(t->transports[i], weir_sv_from("local:"),
                                     i == 0 ? t->address : bulk, &err),
        &err);
  }
  make_link(t, bulk);
  assert_int_equal(pthread_create(&t->thread, NULL, live, t), 0);
  return t;
}

const char *script_task_address(const script_task *task) {
  return task->address;
}

script_heard *script_task_heard(script_task *task) {
  return &task->heard;
}

void script_task_stop(script_task *t) {
  weir_error why = WEIR_ERROR_INIT;
  if (t == NULL) return;
  atomic_store(&t->stop, true);
  pthread_join(t->thread, NULL);
  weir_fail(&why, WEIR_W7027, NULL, "it stops");
  if (t->out != NULL) weir_link_out_set(t->out, WEIR_PEER_DRIVER, NULL);
  if (t->values != NULL) weir_exchange_abort(t->values, &why);
  weir_link_release(t->link);
  for (int i = 0; i < 2; i++) weir_transport_release(t->transports[i]);
  take_all(t);
  weir_exchange_release(t->values);
  weir_link_out_release(t->out);
  free(t->variable);
  free(t);
}
