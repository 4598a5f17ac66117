/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/dist/psnet_world.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/env_system.h"

static void lock(ps_world *w) {
  pthread_mutex_lock(&w->lock);
}

static void unlock(ps_world *w) {
  pthread_cond_broadcast(&w->changed);
  pthread_mutex_unlock(&w->lock);
}

/* ---- Transports */

static void clog_connected(void *self, weir_connection c, weir_sv peer,
                           bool incoming) {
  const ps_clog *clog = self;
  clog->handler.on_connected(clog->handler.self, c, peer, incoming);
}

static void clog_closed(void *self, weir_connection c, weir_close_reason why,
                        weir_sv text) {
  const ps_clog *clog = self;
  clog->handler.on_closed(clog->handler.self, c, why, text);
}

static void clog_frame(void *self, weir_connection c, weir_net_frame *frame) {
  const ps_clog *clog = self;
  ps_world *w = clog->world;
  lock(w);
  if (w->clog_at > 0 && frame->size > 4096 && ++w->bulk_frames >= w->clog_at) {
    w->clogged = true;
    pthread_cond_broadcast(&w->changed);
    while (w->clog_at > 0) pthread_cond_wait(&w->changed, &w->lock);
  }
  unlock(w);
  clog->handler.on_frame(clog->handler.self, c, frame);
}

static weir_status create(void *self, const weir_transport_handler *handler,
                          const weir_transport_options *options,
                          weir_transport **out, weir_error *err) {
  ps_world *w = self;
  weir_transport_handler through = *handler;
  if (options->cls == WEIR_NET_BULK) {
    lock(w);
    ps_clog *clog = &w->clogs[w->clog_count++ % (PS_CLOGS * PS_HOSTS)];
    *clog = (ps_clog){w, *handler};
    unlock(w);
    through =
        (weir_transport_handler){clog, clog_connected, clog_frame, clog_closed};
  }
  if (w->hub != NULL)
    return weir_transport_local_create(w->hub, &through, options, out, err);
  return weir_transport_grpc_create(weir_env_system(), &w->module, &through,
                                    options, out, err);
}

/* ---- Events */

static ps_heard *note(ps_host *h, ps_what what, weir_ps_task peer) {
  assert_true(h->heard_count < PS_HEARD);
  assert_false(h->released);
  ps_heard *e = &h->heard[h->heard_count++];
  *e = (ps_heard){.what = what, .peer = peer};
  return e;
}

static void up(void *self, weir_ps_task peer) {
  ps_host *h = self;
  lock(h->world);
  note(h, PS_UP, peer);
  unlock(h->world);
}

static void lost(void *self, weir_ps_task peer, const weir_error *why) {
  ps_host *h = self;
  lock(h->world);
  ps_heard *e = note(h, PS_LOST, peer);
  snprintf(e->why, sizeof e->why, "%s %.240s", why->id, why->message);
  unlock(h->world);
}

/* Places of a message. */
typedef struct arrival {
  weir_ps_piece pieces[PS_SIZES];
  uint32_t count;
} arrival;

static uint8_t pattern(uint64_t request, uint32_t piece, size_t at) {
  return (uint8_t)((at * 2654435761u >> 13) + request * 31 + piece);
}

static arrival *make_pieces(const size_t *sizes, uint32_t count,
                            uint64_t request) {
  arrival *a = calloc(1, sizeof *a);
  assert_true(count <= PS_SIZES);
  a->count = count;
  for (uint32_t i = 0; i < count; i++) {
    uint8_t *data = sizes[i] > 0 ? malloc(sizes[i]) : NULL;
    a->pieces[i] = (weir_ps_piece){data, sizes[i]};
    for (size_t at = 0; request != UINT64_MAX && at < sizes[i]; at++)
      data[at] = pattern(request, i, at);
  }
  return a;
}

static void free_pieces(arrival *a) {
  for (uint32_t i = 0; i < a->count; i++) {
    if (a->pieces[i].bytes > 0)
      memset(a->pieces[i].data, 0xee, a->pieces[i].bytes);
    free(a->pieces[i].data);
  }
  free(a);
}

static bool is_intact(const arrival *a, uint64_t request) {
  for (uint32_t i = 0; i < a->count; i++)
    for (size_t at = 0; at < a->pieces[i].bytes; at++)
      if (((const uint8_t *)a->pieces[i].data)[at] != pattern(request, i, at))
        return false;
  return true;
}

static weir_status receive(void *self, weir_ps_task from,
                           const weir_ps_message *m, weir_ps_place *out,
                           weir_error *err) {
  ps_host *h = self;
  const size_t few = PS_REPORT_BYTES;
  bool report = m->kind == WEIR_PS_REPORT;
  (void)from;
  lock(h->world);
  bool refuses = h->refuses;
  arrival *a = refuses  ? NULL
               : report ? make_pieces(&few, 1, UINT64_MAX)
                        : make_pieces(h->sizes, h->count, UINT64_MAX);
  unlock(h->world);
  if (refuses) return weir_fail(err, WEIR_W7011, NULL, "no room for that here");
  *out = (weir_ps_place){a->pieces, a->count, a};
  return WEIR_OK;
}

static void unreceived(void *self, void *data) {
  ps_host *h = self;
  free_pieces(data);
  lock(h->world);
  note(h, PS_UNRECEIVED, (weir_ps_task){WEIR_PS_CHIEF, 0});
  unlock(h->world);
}

static void message(void *self, weir_ps_task from, const weir_ps_message *m) {
  ps_host *h = self;
  arrival *a = m->data;
  lock(h->world);
  ps_heard *e = note(h, PS_MESSAGE, from);
  e->kind = m->kind;
  e->request = m->request;
  e->pieces = a != NULL ? a->count : 0;
  e->intact = a == NULL || is_intact(a, m->request);
  if (h->check != NULL) h->check(h->check_self, m);
  unlock(h->world);
  if (a != NULL) free_pieces(a);
}

static void say(void *self, const char *text) {
  ps_host *h = self;
  lock(h->world);
  size_t used = strlen(h->log);
  snprintf(h->log + used, sizeof h->log - used, "%s\n", text);
  unlock(h->world);
}

/* ---- Hosts */

void ps_world_open(ps_world *w, uint32_t servers, uint32_t workers, bool grpc) {
  memset(w, 0, sizeof *w);
  w->err = (weir_error)WEIR_ERROR_INIT;
  pthread_mutexattr_t again; /* ps_heard_count, within ps_await */
  pthread_mutexattr_init(&again);
  pthread_mutexattr_settype(&again, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&w->lock, &again);
  pthread_mutexattr_destroy(&again);
  pthread_cond_init(&w->changed, NULL);
  if (grpc)
    assert_ok(weir_transport_grpc_load(&w->module, getenv("WEIR_BUILD_ROOT"),
                                       &w->err),
              &w->err);
  else
    assert_ok(weir_net_hub_create(weir_env_system(), &w->hub, &w->err),
              &w->err);
  w->transports = (weir_transports){w, create};
  w->config = (weir_ps_config){.mode = WEIR_PS_ASYNC,
                               .servers = servers,
                               .workers = workers,
                               .aggregate = 1};
}

static void *failing_alloc(void *self, size_t bytes, size_t align) {
  ps_host *h = self;
  if (atomic_load(&h->fails_after) > 0 &&
      atomic_fetch_sub(&h->fails_after, 1) == 1)
    return NULL;
  return h->memory.base.alloc(h->memory.base.self, bytes, align);
}

static void failing_free(void *self, void *ptr) {
  ps_host *h = self;
  h->memory.base.free(h->memory.base.self, ptr);
}

static weir_status try_create(ps_host *h, weir_error *err) {
  ps_world *w = h->world;
  const char *servers[PS_HOSTS];
  for (uint32_t i = 0; i + 1 < PS_HOSTS; i++) servers[i] = w->addresses[i + 1];
  uint32_t at = h->self.role == WEIR_PS_CHIEF ? 0 : 1 + h->self.index;
  const char *any = w->hub != NULL ? "local:" : "127.0.0.1:0";
  bool again = h->self.role != WEIR_PS_WORKER && w->addresses[at][0] != '\0';
  const weir_ps_net_options options = {
      .transports = &w->transports,
      .self = h->self,
      .address = again ? w->addresses[at] : any,
      .servers = servers,
      .server_count = w->config.servers,
      .chief = w->addresses[0],
      .job_hash = h->hash,
      .config = &w->config};
  const weir_ps_net_events events = {.self = h,
                                     .up = up,
                                     .lost = lost,
                                     .receive = receive,
                                     .unreceived = unreceived,
                                     .message = message,
                                     .log = say};
  return weir_ps_net_create(&h->env, &options, &events, &h->net, err);
}

ps_host *ps_host_of(ps_world *w, weir_ps_role role, uint32_t index,
                    uint64_t hash) {
  ps_host *h = calloc(1, sizeof *h);
  h->world = w;
  h->self = (weir_ps_task){role, index};
  h->hash = hash;
  weir_counted_allocator_init(&h->memory, NULL);
  h->env = *weir_env_system();
  h->failing = (weir_allocator){h, failing_alloc, failing_free};
  h->env.alloc = &h->failing;
  /* Each allocation that fails ends in an error, and nothing is left. */
  for (int64_t k = 1; h->net == NULL; k++) {
    atomic_store(&h->fails_after, k);
    weir_status s = try_create(h, &w->err);
    if (s == WEIR_OK) break;
    assert_string_equal(w->err.id, "W6001");
    assert_int_equal(atomic_load(&h->memory.live_bytes), 0);
  }
  atomic_store(&h->fails_after, 0);
  uint32_t at = role == WEIR_PS_CHIEF ? 0 : 1 + index;
  if (role != WEIR_PS_WORKER)
    snprintf(w->addresses[at], sizeof w->addresses[at], "%s",
             weir_ps_net_address(h->net));
  else
    assert_string_equal(weir_ps_net_address(h->net), "");
  w->hosts[w->host_count++] = h;
  return h;
}

ps_host *ps_host_create(ps_world *w, weir_ps_role role, uint32_t index) {
  return ps_host_of(w, role, index, 7);
}

void ps_host_start(ps_host *h) {
  assert_ok(weir_ps_net_start(h->net, &h->world->err), &h->world->err);
}

void ps_host_release(ps_host *h) {
  ps_world *w = h->world;
  weir_ps_net_stop(h->net);
  lock(w);
  h->released = true; /* from here on each event fails */
  unlock(w);
  weir_ps_net_release(h->net);
  h->net = NULL;
  assert_int_equal(h->sent, h->asked);
  assert_int_equal(atomic_load(&h->memory.live_bytes), 0);
}

void ps_world_start(ps_world *w) {
  uint32_t all = w->host_count - 1;
  for (uint32_t i = 0; i < w->host_count; i++) ps_host_start(w->hosts[i]);
  for (uint32_t i = 0; i < w->host_count; i++) {
    const ps_host *h = w->hosts[i];
    uint32_t want =
        h->self.role == WEIR_PS_WORKER ? 1 + w->config.servers : all;
    ps_await(w, h->heard_count >= want);
  }
}

void ps_world_job(ps_world *w, uint32_t servers, uint32_t workers, bool grpc) {
  ps_world_open(w, servers, workers, grpc);
  for (uint32_t i = 0; i < servers; i++) ps_host_create(w, WEIR_PS_SERVER, i);
  ps_host_create(w, WEIR_PS_CHIEF, 0);
  for (uint32_t i = 0; i < workers; i++) ps_host_create(w, WEIR_PS_WORKER, i);
  ps_world_start(w);
}

void ps_world_close(ps_world *w) {
  for (uint32_t i = 0; i < w->host_count; i++) {
    if (w->hosts[i]->net != NULL) ps_host_release(w->hosts[i]);
    free(w->hosts[i]);
  }
  weir_net_hub_release(w->hub);
  pthread_cond_destroy(&w->changed);
  pthread_mutex_destroy(&w->lock);
}

/* ---- Calls */

typedef struct host_call {
  weir_node_call call;
  ps_host *host;
  void (*fn)(ps_host *h, void *arg);
  void *arg;
  bool made;
} host_call;

static void make_call(void *self, bool runs) {
  host_call *c = self;
  ps_world *w = c->host->world;
  assert_true(runs);
  c->fn(c->host, c->arg);
  lock(w);
  c->made = true;
  unlock(w);
}

void ps_host_call(ps_host *h, void (*fn)(ps_host *h, void *arg), void *arg) {
  host_call c = {.host = h, .fn = fn, .arg = arg};
  c.call = (weir_node_call){.fn = make_call, .self = &c};
  weir_ps_net_post(h->net, &c.call);
  ps_await(h->world, c.made);
}

typedef struct departure {
  weir_ps_values values;
  ps_host *host;
  arrival *pieces;
} departure;

typedef struct letter {
  weir_ps_task to;
  const weir_ps_message *m;
  departure *with;
} letter;

static void sent(weir_ps_values *values) {
  departure *d = values->owner;
  ps_host *h = d->host;
  free_pieces(d->pieces);
  free(d);
  lock(h->world);
  h->sent++;
  unlock(h->world);
}

static void send_letter(ps_host *h, void *arg) {
  const letter *l = arg;
  weir_ps_net_send(h->net, l->to, l->m,
                   l->with != NULL ? &l->with->values : NULL);
}

void ps_host_send(ps_host *h, weir_ps_task to, const weir_ps_message *m,
                  const size_t *sizes, size_t count) {
  letter l = {to, m, NULL};
  if (count != SIZE_MAX) {
    l.with = calloc(1, sizeof *l.with);
    l.with->host = h;
    l.with->pieces = make_pieces(sizes, (uint32_t)count, m->request);
    l.with->values = (weir_ps_values){.pieces = l.with->pieces->pieces,
                                      .count = (uint32_t)count,
                                      .sent = sent,
                                      .owner = l.with};
    lock(h->world);
    h->asked++;
    unlock(h->world);
  }
  ps_host_call(h, send_letter, &l);
}

typedef struct question {
  weir_ps_task peer;
  char *text;
} question;

static void describe(ps_host *h, void *arg) {
  const question *q = arg;
  weir_ps_net_describe(h->net, q->peer, q->text, 256);
}

void ps_host_describe(ps_host *h, weir_ps_task peer, char text[256]) {
  question q = {peer, text};
  ps_host_call(h, describe, &q);
}

void ps_host_wants(ps_host *h, const size_t *sizes, uint32_t count) {
  lock(h->world);
  for (uint32_t i = 0; i < count; i++) h->sizes[i] = sizes[i];
  h->count = count;
  unlock(h->world);
}

static bool is_of(const ps_heard *e, ps_what what, weir_ps_task peer) {
  return e->what == what &&
         (what == PS_UNRECEIVED ||
          (e->peer.role == peer.role && e->peer.index == peer.index));
}

uint32_t ps_heard_count(const ps_host *h, ps_what what, weir_ps_task peer) {
  uint32_t count = 0;
  pthread_mutex_lock(&h->world->lock);
  for (size_t i = 0; i < h->heard_count; i++)
    count += is_of(&h->heard[i], what, peer);
  pthread_mutex_unlock(&h->world->lock);
  return count;
}

const ps_heard *ps_heard_last(const ps_host *h, ps_what what,
                              weir_ps_task peer) {
  const ps_heard *last = NULL;
  pthread_mutex_lock(&h->world->lock);
  for (size_t i = 0; i < h->heard_count; i++)
    if (is_of(&h->heard[i], what, peer)) last = &h->heard[i];
  pthread_mutex_unlock(&h->world->lock);
  return last;
}
