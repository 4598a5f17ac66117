/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/env_system.h"
#include "runtime/net/local.h"
#include "runtime/train/ps/server.h"
#include "tests/graph/split_pair.h"
#include "tests/train/ps_check.h"

/* Parameter servers over the net, within one process: a chief and a worker of
 * the test speak to them over links. Their values are those of one process. */

enum { SERVERS = 2, AGGREGATE = 2, PIECES = 256 };

/* A message that an end has heard, with its values. */
typedef struct heard {
  weir_ps_message m;
  weir_ps_task from;
  uint32_t count;
  weir_ps_piece pieces[PIECES];
  struct heard *next;
} heard;

struct job_world;

/* The chief, or the worker. */
typedef struct side {
  struct job_world *world;
  weir_ps_net *net;
  heard *first, *last; /* under the world's lock */
  uint32_t up, returned;
} side;

typedef struct serving {
  struct job_world *world;
  weir_ps_serve *serve;
  pthread_t thread;
  bool over;
  weir_status status;
  weir_error err;
} serving;

typedef struct job_world {
  split_pair pair;
  weir_ps_job *job;
  weir_net_hub *hub;
  weir_transports transports;
  const char *dir;
  const char *servers[SERVERS];
  pthread_mutex_t lock;
  pthread_cond_t changed;
  serving serves[SERVERS];
  side chief, worker;
  uint64_t epoch;
  weir_error err;
} job_world;

static char folder[64];

static int setup(void **state) {
  (void)state;
  strcpy(folder, "/tmp/weir-ps-XXXXXX");
  return mkdtemp(folder) == NULL;
}

static int teardown(void **state) {
  char command[128];
  (void)state;
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command) != 0;
}

static void lock(job_world *w) {
  pthread_mutex_lock(&w->lock);
}

static void unlock(job_world *w) {
  pthread_cond_broadcast(&w->changed);
  pthread_mutex_unlock(&w->lock);
}

/* ---- The ends of links */

static void forget(heard *h) {
  for (uint32_t i = 0; i < h->count; i++) free(h->pieces[i].data);
  free(h);
}

static void on_up(void *self, weir_ps_task peer) {
  side *s = self;
  lock(s->world);
  s->up += peer.role == WEIR_PS_SERVER;
  unlock(s->world);
}

static void on_lost(void *self, weir_ps_task peer, const weir_error *why) {
  side *s = self;
  (void)why;
  lock(s->world);
  s->up -= peer.role == WEIR_PS_SERVER;
  unlock(s->world);
}

/* All that a server holds, or all that is pulled. */
static weir_status on_receive(void *self, weir_ps_task from,
                              const weir_ps_message *m, weir_ps_place *out,
                              weir_error *err) {
  side *s = self;
  const weir_ps_job *job = s->world->job;
  const weir_ps_lists *l = &job->servers[from.index];
  heard *h = calloc(1, sizeof *h);
  (void)err;
  bool all = m->kind == WEIR_PS_FETCHED;
  h->count = all ? l->held_count : l->pull_count;
  for (uint32_t i = 0; i < h->count; i++) {
    size_t bytes = weir_ps_var_bytes(job, all ? l->held[i] : l->pulls[i]);
    h->pieces[i] = (weir_ps_piece){malloc(bytes + 1), bytes};
  }
  *out = (weir_ps_place){h->pieces, h->count, h};
  return WEIR_OK;
}

static void on_unreceived(void *self, void *data) {
  (void)self;
  forget(data);
}

static void on_message(void *self, weir_ps_task from,
                       const weir_ps_message *m) {
  side *s = self;
  heard *h = m->data != NULL ? m->data : calloc(1, sizeof *h);
  h->m = *m;
  h->m.ledger = NULL;
  h->from = from;
  lock(s->world);
  if (s->last != NULL)
    s->last->next = h;
  else
    s->first = h;
  s->last = h;
  unlock(s->world);
}

static heard *expect(side *s, weir_ps_kind kind) {
  job_world *w = s->world;
  heard *found = NULL;
  lock(w);
  while (found == NULL) {
    heard *before = NULL, *h = s->first;
    while (h != NULL && h->m.kind != kind) {
      before = h;
      h = h->next;
    }
    if (h != NULL) {
      *(before != NULL ? &before->next : &s->first) = h->next;
      if (s->last == h) s->last = before;
      found = h;
    } else {
      pthread_cond_wait(&w->changed, &w->lock);
    }
  }
  pthread_mutex_unlock(&w->lock);
  return found;
}

typedef struct sending {
  side *s;
  weir_ps_task to;
  weir_ps_message m;
  weir_ps_values values, *with;
  weir_ps_piece pieces[PIECES];
  bool done, returned;
  weir_node_call call;
} sending;

static void values_sent(weir_ps_values *values) {
  sending *d = values->owner;
  lock(d->s->world);
  d->returned = true;
  unlock(d->s->world);
}

static void send_now(void *self, bool runs) {
  sending *d = self;
  assert_true(runs);
  weir_ps_net_send(d->s->net, d->to, &d->m, d->with);
  lock(d->s->world);
  d->done = true;
  unlock(d->s->world);
}

/* Waits until it is sent, and until its values have come back. */
static void send_all(sending *d) {
  d->call = (weir_node_call){.fn = send_now, .self = d};
  d->returned = d->with == NULL;
  weir_ps_net_post(d->s->net, &d->call);
  lock(d->s->world);
  while (!d->done || !d->returned)
    pthread_cond_wait(&d->s->world->changed, &d->s->world->lock);
  pthread_mutex_unlock(&d->s->world->lock);
}

static void send_to(side *s, uint32_t server, weir_ps_message m) {
  sending d = {.s = s, .to = {WEIR_PS_SERVER, server}, .m = m};
  send_all(&d);
}

static void open_side(job_world *w, side *s, weir_ps_role role) {
  weir_ps_net_events events = {.self = s,
                               .up = on_up,
                               .lost = on_lost,
                               .receive = on_receive,
                               .unreceived = on_unreceived,
                               .message = on_message};
  weir_ps_net_options o = {
      .transports = &w->transports,
      .insecure = true,
      .self = {role, 0},
      .address = role == WEIR_PS_CHIEF ? "local:chief" : NULL,
      .servers = w->servers,
      .server_count = SERVERS,
      .chief = role == WEIR_PS_WORKER ? "local:chief" : NULL,
      .job_hash = w->job->hash,
      .config = &w->job->config};
  s->world = w;
  assert_ok(
      weir_ps_net_create(&w->pair.world.env, &o, &events, &s->net, &w->err),
      &w->err);
  assert_ok(weir_ps_net_start(s->net, &w->err), &w->err);
}

static void close_side(side *s) {
  weir_ps_net_release(s->net);
  while (s->first != NULL) {
    heard *h = s->first;
    s->first = h->next;
    forget(h);
  }
}

/* ---- Servers */

static void *serve(void *self) {
  serving *s = self;
  s->status = weir_ps_serve_run(s->serve, &s->over, &s->err);
  return NULL;
}

static weir_status make_server(job_world *w, serving *s, uint32_t k) {
  weir_ps_serve_options o = {.job = w->job,
                             .index = k,
                             .pool = w->pair.pool,
                             .dir = w->dir,
                             .limit = WEIR_PS_NONE,
                             .transports = &w->transports,
                             .insecure = true,
                             .address = w->servers[k],
                             .servers = w->servers};
  *s = (serving){.world = w, .err = WEIR_ERROR_INIT};
  return weir_ps_serve_create(&w->pair.world.env, &o, &s->serve, &w->err);
}

static void start_server(job_world *w, uint32_t k) {
  serving *s = &w->serves[k];
  assert_ok(make_server(w, s, k), &w->err);
  assert_string_equal(weir_ps_serve_address(s->serve), w->servers[k]);
  assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

/* |over|: as the chief's word has ended it; else it is stopped. */
static void end_server(job_world *w, uint32_t k, bool over) {
  serving *s = &w->serves[k];
  if (!over) weir_ps_serve_stop(s->serve);
  pthread_join(s->thread, NULL);
  assert_ok(s->status, &s->err);
  assert_int_equal(s->over, over);
  weir_ps_serve_release(s->serve);
}

static weir_status create(void *self, const weir_transport_handler *handler,
                          const weir_transport_options *options,
                          weir_transport **out, weir_error *err) {
  return weir_transport_local_create(((job_world *)self)->hub, handler, options,
                                     out, err);
}

static void open_world(job_world *w) {
  split_pair_options o = {
      .text = PS_NET "  mode: sync(aggregate=2)\n  ps: {split: 40B}\n",
      .threads = 2,
      .split = {.servers = SERVERS, .aggregate = AGGREGATE, .split = 40}};
  memset(w, 0, sizeof *w);
  w->err = (weir_error)WEIR_ERROR_INIT;
  pair_open(&w->pair, &o);
  weir_ps_job_options job = {SERVERS, 1, 1};
  assert_ok(weir_ps_job_create(&w->pair.world.env, w->pair.graph, w->pair.spec,
                               &job, &w->job, &w->err),
            &w->err);
  assert_ok(weir_net_hub_create(weir_env_system(), &w->hub, &w->err), &w->err);
  w->transports = (weir_transports){w, create};
  w->servers[0] = "local:s0";
  w->servers[1] = "local:s1";
  w->dir = folder;
  pthread_mutex_init(&w->lock, NULL);
  pthread_cond_init(&w->changed, NULL);
}

static void close_world(job_world *w) {
  weir_net_hub_release(w->hub);
  weir_ps_job_release(w->job);
  pthread_cond_destroy(&w->changed);
  pthread_mutex_destroy(&w->lock);
  pair_close(&w->pair);
}

static void start_all(job_world *w) {
  for (uint32_t k = 0; k < SERVERS; k++) start_server(w, k);
  open_side(w, &w->chief, WEIR_PS_CHIEF);
  open_side(w, &w->worker, WEIR_PS_WORKER);
}

static void await_links(job_world *w) {
  lock(w);
  while (w->chief.up < SERVERS || w->worker.up < SERVERS)
    pthread_cond_wait(&w->changed, &w->lock);
  pthread_mutex_unlock(&w->lock);
}

/* ---- What a chief and a worker do */

/* All servers at the last generation, whose number it gives. */
static uint64_t begin(job_world *w, uint64_t incarnation) {
  await_links(w);
  weir_ps_message claim = {.kind = WEIR_PS_CLAIM, .incarnation = incarnation};
  send_to(&w->chief, 0, claim);
  heard *granted = expect(&w->chief, WEIR_PS_GRANTED);
  weir_ps_message restore = {.kind = WEIR_PS_RESTORE,
                             .epoch = granted->m.epoch,
                             .generation = granted->m.generation};
  w->epoch = granted->m.epoch;
  forget(granted);
  for (uint32_t k = 0; k < SERVERS; k++) {
    send_to(&w->chief, k, restore);
    heard *h = expect(&w->chief, WEIR_PS_RESTORED);
    assert_true(h->m.ok);
    forget(h);
  }
  return restore.generation;
}

static void push(job_world *w, uint32_t server, weir_ps_message m,
                 const weir_exec_fetch *computed) {
  const weir_ps_lists *l = &w->job->servers[server];
  sending d = {.s = &w->worker, .to = {WEIR_PS_SERVER, server}, .m = m};
  d.values = (weir_ps_values){
      .pieces = d.pieces, .count = l->push_count, .sent = values_sent};
  for (uint32_t i = 0; i < l->push_count; i++) {
    const weir_tensor *t = computed[l->pushes[i] + 1].tensor;
    const weir_split_push *p = &w->job->split->pushes[l->pushes[i]];
    d.pieces[i] =
        (weir_ps_piece){(char *)t->data + p->rows.offset, (size_t)p->bytes};
  }
  d.values.owner = &d;
  d.with = &d.values;
  send_all(&d);
}

static void step(job_world *w) {
  split_pair *p = &w->pair;
  uint64_t t = p->runs / AGGREGATE;
  for (uint32_t k = 0; k < AGGREGATE; k++) {
    weir_exec_feed joined[18], worker[18 + PAIR_VALUES];
    weir_exec_fetch out[PAIR_VALUES];
    uint32_t count = pair_feeds(p, joined, worker);
    weir_tensor_unref(pair_run_joined(p, joined, count));
    pair_compute(p, worker, count, out);
    weir_ps_message m = {.kind = WEIR_PS_PUSH,
                         .life = w->epoch,
                         .incarnation = 1 + (w->epoch << 24),
                         .lease = 1,
                         .run = p->runs,
                         .step = t,
                         .k = k,
                         .version = t};
    for (uint32_t s = 0; s < SERVERS; s++) {
      pair_push(p, s, out);
      push(w, s, m, out);
    }
    for (uint32_t i = 0; i <= w->job->split->push_count; i++)
      weir_tensor_unref(out[i].tensor);
    for (uint32_t i = 0; i < count; i++) weir_tensor_unref(joined[i].tensor);
    p->runs++;
  }
  forget(expect(&w->chief, WEIR_PS_COMMITTED));
}

/* A pull of that version is answered once it is there. */
static void pull(job_world *w, uint32_t server, uint64_t version) {
  weir_ps_message m = {.kind = WEIR_PS_PULL,
                       .life = w->epoch,
                       .incarnation = 1 + (w->epoch << 24),
                       .step = version,
                       .version = WEIR_PS_NONE};
  send_to(&w->worker, server, m);
  heard *h = expect(&w->worker, WEIR_PS_PULLED);
  assert_int_equal(h->m.version, version);
  assert_int_equal(h->count, w->job->servers[server].pull_count);
  forget(h);
}

static void compare(job_world *w, uint64_t version) {
  const weir_split *s = w->job->split;
  for (uint32_t k = 0; k < SERVERS; k++) {
    const weir_ps_lists *l = &w->job->servers[k];
    weir_ps_message m = {.kind = WEIR_PS_FETCH, .epoch = w->epoch};
    pull(w, k, version);
    send_to(&w->chief, k, m);
    heard *h = expect(&w->chief, WEIR_PS_FETCHED);
    assert_int_equal(h->count, l->held_count);
    for (uint32_t i = 0; i < h->count; i++) {
      const weir_split_var *v = &s->vars[l->held[i]];
      weir_tensor *want = NULL;
      weir_node_id id = weir_graph_find_node(w->pair.joined->graph, v->name);
      assert_ok(weir_exec_variable_get(w->pair.one, id, &want, &w->err),
                &w->err);
      if (memcmp((char *)want->data + v->rows.offset, h->pieces[i].data,
                 v->bytes) != 0)
        fail_msg("version %d: %.*s differs", (int)version, WEIR_SV(v->label));
      weir_tensor_unref(want);
    }
    forget(h);
  }
}

static void say_over(job_world *w) {
  for (uint32_t k = 0; k < SERVERS; k++) {
    weir_ps_message m = {.kind = WEIR_PS_OVER, .epoch = w->epoch};
    send_to(&w->chief, k, m);
  }
}

/* ---- Tests */

static void a_job_over_the_net(void **state) {
  (void)state;
  job_world w;
  open_world(&w);
  start_all(&w);
  assert_int_equal(begin(&w, 7), 0);
  for (uint64_t t = 0; t < 4; t++) {
    step(&w);
    compare(&w, t + 1);
  }
  say_over(&w);
  for (uint32_t k = 0; k < SERVERS; k++) end_server(&w, k, true);
  close_side(&w.chief);
  close_side(&w.worker);
  close_world(&w);
}

/* A server that is stopped and started again, at the same address. */
static void a_server_comes_back(void **state) {
  (void)state;
  job_world w;
  open_world(&w);
  start_all(&w);
  assert_int_equal(begin(&w, 7), 0);
  step(&w);
  weir_ps_message save = {.kind = WEIR_PS_SAVE, .epoch = w.epoch};
  heard *h = NULL;
  do { /* until the servers' own link is up */
    if (h != NULL) forget(h);
    send_to(&w.chief, 0, save);
    h = expect(&w.chief, WEIR_PS_GENERATION);
  } while (!h->m.ok);
  uint64_t generation = h->m.generation;
  forget(h);
  for (uint32_t k = 0; k < SERVERS; k++) {
    end_server(&w, k, false);
    lock(&w);
    while (w.chief.up == SERVERS || w.worker.up == SERVERS)
      pthread_cond_wait(&w.changed, &w.lock);
    pthread_mutex_unlock(&w.lock);
    start_server(&w, k);
    assert_int_equal(begin(&w, 8 + k), generation);
    compare(&w, 1);
  }
  step(&w);
  compare(&w, 2);
  close_side(&w.worker); /* links that end first are no trouble */
  for (uint32_t k = 0; k < SERVERS; k++) end_server(&w, k, false);
  close_side(&w.chief);
  close_world(&w);
}

static void an_address_is_taken_once(void **state) {
  (void)state;
  job_world w;
  open_world(&w);
  w.dir = NULL;
  start_server(&w, 0);
  assert_error(make_server(&w, &w.serves[1], 0), &w.err, "W7002");
  assert_null(w.serves[1].serve);
  end_server(&w, 0, false);
  close_world(&w);
}

#define PS_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {PS_TEST(a_job_over_the_net),
                                     PS_TEST(a_server_comes_back),
                                     PS_TEST(an_address_is_taken_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
