/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TRAIN_PS_HUB_H_
#define TESTS_TRAIN_PS_HUB_H_

#include <stdlib.h>
#include <unistd.h>

#include "runtime/train/ps/server_host.h"
#include "tests/graph/split_pair.h"

/* Hosts of parameter servers without a network. The test's thread is the
 * control thread of all of them, the chief and the workers: it takes what is
 * posted and sent, one at a time, in order. Beside the hosts the same batches
 * go through tests/graph/split_pair.h, whose values are what is wanted. */

enum { HUB_SERVERS = 4, HUB_WORKERS = 2 };

/* A message of a host that the test has not looked at. */
typedef struct hub_letter {
  uint32_t from;
  weir_ps_task to;
  weir_ps_message m;
  weir_ps_ledger *ledger; /* a copy */
  weir_ps_values *values; /* lent until hub_done */
  struct hub_letter *next;
} hub_letter;

struct hub;

typedef struct hub_port {
  struct hub *hub;
  uint32_t index;
  weir_ps_host *host; /* NULL: it is down */
  weir_ps_net_events events;
  weir_node_call *first, *last; /* under the hub's lock */
  int over, gave_up;
  weir_error failure;
} hub_port;

typedef struct hub {
  split_pair pair;
  weir_ps_job *job;
  uint32_t servers;
  bool async;
  const char *dir; /* of generations; NULL: none */
  weir_fs fs;
  weir_error err;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  hub_port ports[HUB_SERVERS];
  hub_letter *first, *last;
  uint64_t epoch, generation; /* granted */
  char log[4096];
  size_t log_used;
} hub;

/* ---- The net's calls */

static inline void hub_post(void *self, weir_node_call *call) {
  hub_port *p = self;
  pthread_mutex_lock(&p->hub->lock);
  call->next = NULL;
  if (p->last != NULL)
    p->last->next = call;
  else
    p->first = call;
  p->last = call;
  pthread_cond_broadcast(&p->hub->changed);
  pthread_mutex_unlock(&p->hub->lock);
}

static inline void hub_send(void *self, weir_ps_task to,
                            const weir_ps_message *m, weir_ps_values *values) {
  hub_port *p = self;
  hub *h = p->hub;
  hub_letter *letter = calloc(1, sizeof *letter);
  assert_non_null(letter);
  *letter = (hub_letter){.from = p->index, .to = to, .m = *m, .values = values};
  if (m->ledger != NULL) {
    assert_ok(weir_ps_ledger_create(weir_allocator_system(), &h->job->config, 0,
                                    &letter->ledger, &h->err),
              &h->err);
    assert_ok(weir_ps_ledger_copy(letter->ledger, m->ledger, &h->err), &h->err);
  }
  letter->m.ledger = letter->ledger;
  letter->m.op = NULL;
  if (h->last != NULL)
    h->last->next = letter;
  else
    h->first = letter;
  h->last = letter;
}

static inline void hub_give_up(void *self, weir_ps_task peer,
                               const weir_error *why) {
  hub_port *p = self;
  (void)peer;
  p->gave_up++;
  p->failure = *why;
}

static inline void hub_over(void *self, const weir_error *failure) {
  hub_port *p = self;
  p->over++;
  if (failure != NULL) p->failure = *failure;
}

static inline void hub_log(void *self, const char *text) {
  hub *h = ((hub_port *)self)->hub;
  size_t n = strlen(text);
  if (h->log_used + n + 2 > sizeof h->log) return;
  memcpy(h->log + h->log_used, text, n);
  h->log_used += n;
  h->log[h->log_used++] = '\n';
  h->log[h->log_used] = '\0';
}

/* ---- Start and end of hosts */

static inline weir_status hub_create(hub *h, uint32_t k) {
  hub_port *p = &h->ports[k];
  weir_ps_host_net net = {p, hub_send, hub_give_up, hub_post};
  weir_ps_host_options options = {.job = h->job,
                                  .index = k,
                                  .pool = h->pair.pool,
                                  .dir = h->dir,
                                  .limit = WEIR_PS_NONE,
                                  .over = hub_over,
                                  .log = hub_log,
                                  .self = p};
  p->hub = h;
  p->index = k;
  p->over = p->gave_up = 0;
  p->failure = (weir_error)WEIR_ERROR_INIT;
  return weir_ps_host_create(&h->pair.world.env, &options, &net, &p->host,
                             &h->err);
}

static inline weir_ps_task hub_task(weir_ps_role role, uint32_t index) {
  return (weir_ps_task){role, index};
}

static inline void hub_start(hub *h, uint32_t k) {
  hub_port *p = &h->ports[k];
  assert_ok(hub_create(h, k), &h->err);
  p->events = weir_ps_host_events(p->host);
  p->events.up(p->events.self, hub_task(WEIR_PS_CHIEF, 0));
  for (uint32_t i = 0; i < HUB_WORKERS; i++)
    p->events.up(p->events.self, hub_task(WEIR_PS_WORKER, i));
  for (uint32_t i = 0; i < h->servers; i++) {
    hub_port *other = &h->ports[i];
    if (i == k || other->host == NULL) continue;
    p->events.up(p->events.self, hub_task(WEIR_PS_SERVER, i));
    other->events.up(other->events.self, hub_task(WEIR_PS_SERVER, k));
  }
}

static inline void hub_start_all(hub *h) {
  for (uint32_t k = 0; k < h->servers; k++) hub_start(h, k);
}

/* The values of a letter were sent, and it is gone. */
static inline void hub_done(hub_letter *letter) {
  if (letter->values != NULL) letter->values->sent(letter->values);
  weir_ps_ledger_release(letter->ledger);
  free(letter);
}

static inline void hub_drop_letters(hub *h, uint32_t from) {
  hub_letter **at = &h->first;
  h->last = NULL;
  while (*at != NULL) {
    hub_letter *letter = *at;
    if (letter->from == from) {
      *at = letter->next;
      hub_done(letter);
      continue;
    }
    h->last = letter;
    at = &letter->next;
  }
}

/* As a process that ends: what it has not sent is gone. */
static inline void hub_kill(hub *h, uint32_t k) {
  hub_port *p = &h->ports[k];
  weir_error why = WEIR_ERROR_INIT;
  if (p->host == NULL) return;
  weir_ps_host_stop(p->host);
  while (p->first != NULL) {
    weir_node_call *call = p->first;
    p->first = call->next;
    call->fn(call->self, false);
  }
  p->last = NULL;
  hub_drop_letters(h, k);
  weir_ps_host_release(p->host);
  p->host = NULL;
  for (uint32_t i = 0; i < h->servers; i++)
    if (h->ports[i].host != NULL)
      h->ports[i].events.lost(h->ports[i].events.self,
                              hub_task(WEIR_PS_SERVER, k), &why);
}

/* |split| is what |mode| asks for. */
static inline void hub_open_as(hub *h, const char *text, const char *mode,
                               weir_split_options split) {
  char all[4096];
  memset(h, 0, sizeof *h);
  h->err = (weir_error)WEIR_ERROR_INIT;
  h->async = split.given_step;
  h->servers = split.servers;
  snprintf(all, sizeof all, "%s  mode: %s\n  ps: {split: %d}\n", text, mode,
           (int)split.split);
  split_pair_options o = {.text = all, .threads = 2, .split = split};
  pair_open(&h->pair, &o);
  h->fs = weir_system_fs;
  h->pair.world.env.fs = &h->fs;
  weir_ps_job_options job = {split.servers, HUB_WORKERS, 1};
  assert_ok(weir_ps_job_create(&h->pair.world.env, h->pair.graph, h->pair.spec,
                               &job, &h->job, &h->err),
            &h->err);
  pthread_mutex_init(&h->lock, NULL);
  pthread_cond_init(&h->changed, NULL);
}

/* |aggregate| 0: async. */
/* Variables of more than |cut| bytes are cut; 0: none is. */
static inline void hub_open_cut(hub *h, const char *text, uint32_t servers,
                                uint32_t aggregate, uint32_t cut) {
  bool async = aggregate == 0;
  char mode[64];
  snprintf(mode, sizeof mode, async ? "async" : "sync(aggregate=%u)",
           aggregate);
  hub_open_as(h, text, mode,
              (weir_split_options){.servers = servers,
                                   .aggregate = async ? 1 : aggregate,
                                   .clip_at_worker = async,
                                   .given_step = async,
                                   .split = cut});
}

static inline void hub_open(hub *h, const char *text, uint32_t servers,
                            uint32_t aggregate) {
  hub_open_cut(h, text, servers, aggregate, 0);
}

static inline void hub_close(hub *h) {
  for (uint32_t k = 0; k < h->servers; k++) hub_kill(h, k);
  assert_null(h->first);
  weir_ps_job_release(h->job);
  pthread_cond_destroy(&h->changed);
  pthread_mutex_destroy(&h->lock);
  pair_close(&h->pair);
}

/* ---- Events */

static inline weir_node_call *hub_call(hub *h) {
  for (uint32_t k = 0; k < h->servers; k++) {
    hub_port *p = &h->ports[k];
    weir_node_call *call = p->first;
    if (call == NULL) continue;
    p->first = call->next;
    if (p->first == NULL) p->last = NULL;
    return call;
  }
  return NULL;
}

/* A letter for |role| of |kind|, the first; NULL: there is none. */
static inline hub_letter *hub_find(hub *h, weir_ps_role role,
                                   weir_ps_kind kind) {
  for (hub_letter **at = &h->first; *at != NULL; at = &(*at)->next) {
    hub_letter *letter = *at;
    if (letter->to.role != role ||
        (kind != WEIR_PS_KIND_COUNT && letter->m.kind != kind))
      continue;
    *at = letter->next;
    h->last = NULL;
    for (hub_letter *l = h->first; l != NULL; l = l->next) h->last = l;
    return letter;
  }
  return NULL;
}

static inline bool hub_deliver(hub *h) {
  hub_letter *letter = hub_find(h, WEIR_PS_SERVER, WEIR_PS_KIND_COUNT);
  if (letter == NULL) return false;
  hub_port *p = &h->ports[letter->to.index];
  weir_ps_task from = hub_task(WEIR_PS_SERVER, letter->from);
  weir_ps_place place = {0};
  if (p->host != NULL && letter->values != NULL) {
    assert_ok(
        p->events.receive(p->events.self, from, &letter->m, &place, &h->err),
        &h->err);
    assert_int_equal(place.count, letter->values->count);
    for (uint32_t i = 0; i < place.count; i++) {
      const weir_ps_piece *piece = &letter->values->pieces[i];
      assert_int_equal(place.pieces[i].bytes, piece->bytes);
      memcpy(place.pieces[i].data, piece->data, piece->bytes);
    }
    letter->m.data = place.data;
  }
  if (p->host != NULL) p->events.message(p->events.self, from, &letter->m);
  hub_done(letter);
  return true;
}

/* Does the next event; waits for one. */
static inline void hub_step(hub *h) {
  if (hub_deliver(h)) return;
  pthread_mutex_lock(&h->lock);
  weir_node_call *call = hub_call(h);
  while (call == NULL) {
    pthread_cond_wait(&h->changed, &h->lock);
    call = hub_call(h);
  }
  pthread_mutex_unlock(&h->lock);
  call->fn(call->self, true);
}

/* The next letter of |kind| to the chief or a worker; the caller's. */
static inline hub_letter *hub_expect(hub *h, weir_ps_role role,
                                     weir_ps_kind kind) {
  hub_letter *letter = hub_find(h, role, kind);
  while (letter == NULL) {
    hub_step(h);
    letter = hub_find(h, role, kind);
  }
  return letter;
}

static inline void hub_wait(hub *h, weir_ps_role role, weir_ps_kind kind) {
  hub_done(hub_expect(h, role, kind));
}

static inline void hub_tell(hub *h, weir_ps_role role, uint32_t from,
                            uint32_t server, const weir_ps_message *m) {
  hub_port *p = &h->ports[server];
  p->events.message(p->events.self, hub_task(role, from), m);
}

/* ---- The chief */

static inline void hub_claim(hub *h, uint64_t incarnation) {
  weir_ps_message m = {.kind = WEIR_PS_CLAIM, .incarnation = incarnation};
  hub_tell(h, WEIR_PS_CHIEF, 0, 0, &m);
  hub_letter *letter = hub_expect(h, WEIR_PS_CHIEF, WEIR_PS_GRANTED);
  assert_true(letter->m.epoch > h->epoch);
  h->epoch = letter->m.epoch;
  h->generation = letter->m.generation;
  hub_done(letter);
}

/* Tells server |k| to restore; the answer is the caller's. */
static inline hub_letter *hub_restore(hub *h, uint32_t k) {
  weir_ps_message m = {
      .kind = WEIR_PS_RESTORE, .epoch = h->epoch, .generation = h->generation};
  hub_tell(h, WEIR_PS_CHIEF, 0, k, &m);
  return hub_expect(h, WEIR_PS_CHIEF, WEIR_PS_RESTORED);
}

/* A new chief, and all servers at the last generation. */
static inline void hub_begin(hub *h) {
  hub_claim(h, 77 + h->epoch);
  for (uint32_t k = 0; k < h->servers; k++) {
    hub_letter *letter = hub_restore(h, k);
    if (!letter->m.ok) fail_msg("not restored: %s", h->log);
    assert_int_equal(letter->m.life, h->epoch);
    hub_done(letter);
  }
}

/* A generation; whether it is complete. */
static inline bool hub_save(hub *h) {
  weir_ps_message m = {.kind = WEIR_PS_SAVE, .epoch = h->epoch};
  hub_tell(h, WEIR_PS_CHIEF, 0, 0, &m);
  hub_letter *letter = hub_expect(h, WEIR_PS_CHIEF, WEIR_PS_GENERATION);
  bool ok = letter->m.ok;
  if (ok) h->generation = letter->m.generation;
  hub_done(letter);
  return ok;
}

/* All that server |k| holds; the caller's. */
static inline hub_letter *hub_fetch(hub *h, uint32_t k) {
  weir_ps_message m = {.kind = WEIR_PS_FETCH, .epoch = h->epoch, .request = 9};
  hub_tell(h, WEIR_PS_CHIEF, 0, k, &m);
  hub_letter *letter = hub_expect(h, WEIR_PS_CHIEF, WEIR_PS_FETCHED);
  assert_int_equal(letter->m.request, 9);
  assert_int_equal(letter->from, k);
  return letter;
}

/* ---- Workers */

/* Values of a push are there: fetches of pair_compute. */
static inline void hub_push(hub *h, uint32_t server, weir_ps_message m,
                            const weir_exec_fetch *computed) {
  const weir_ps_lists *l = &h->job->servers[server];
  hub_port *p = &h->ports[server];
  weir_ps_place place = {0};
  m.kind = WEIR_PS_PUSH;
  m.life = h->epoch;
  if (l->push_count > 0) {
    weir_status s =
        p->events.receive(p->events.self, hub_task(WEIR_PS_WORKER, m.worker),
                          &m, &place, &h->err);
    assert_ok(s, &h->err);
    assert_int_equal(place.count, l->push_count);
    for (uint32_t i = 0; i < place.count; i++) {
      const weir_tensor *t = computed[l->pushes[i] + 1].tensor;
      const weir_split_push *push = &h->job->split->pushes[l->pushes[i]];
      assert_int_equal(push->bytes, place.pieces[i].bytes);
      memcpy(place.pieces[i].data, (char *)t->data + push->rows.offset,
             push->bytes);
    }
    m.data = place.data;
  }
  hub_tell(h, WEIR_PS_WORKER, m.worker, server, &m);
}

/* Runs the next batch in one process, and gives what a worker computes. */
static inline void hub_compute(hub *h, weir_exec_fetch *out) {
  weir_exec_feed joined[18], worker[18 + PAIR_VALUES];
  split_pair *p = &h->pair;
  uint32_t count = pair_feeds(p, joined, worker);
  weir_tensor *loss = pair_run_joined(p, joined, count);
  pair_compute(p, worker, count, out);
  pair_same(out[0].tensor, loss, WEIR_SV_LIT("the loss"), p->runs);
  for (uint32_t k = 0; k < h->servers; k++) pair_push(p, k, out);
  for (uint32_t i = 0; i < count; i++) weir_tensor_unref(joined[i].tensor);
  weir_tensor_unref(loss);
  p->runs++;
}

static inline void hub_forget(hub *h, weir_exec_fetch *out) {
  for (uint32_t i = 0; i <= h->job->split->push_count; i++)
    weir_tensor_unref(out[i].tensor);
}

/* A batch that hosts do not see. */
static inline void hub_skip(hub *h) {
  weir_exec_fetch out[PAIR_VALUES];
  hub_compute(h, out);
  hub_forget(h, out);
}

/* Async: a batch of worker |worker|, applied by all servers in turn. */
static inline void hub_run(hub *h, uint32_t worker, uint64_t seq) {
  weir_exec_fetch out[PAIR_VALUES];
  uint64_t run = h->pair.runs, age = (uint64_t)h->pair.staleness;
  hub_compute(h, out);
  for (uint32_t k = 0; k < h->servers; k++) {
    weir_ps_message m = {.worker = worker,
                         .incarnation = 1 + worker + (h->epoch << 24),
                         .seq = seq,
                         .lease = 1,
                         .run = run,
                         .step = run,
                         .version = run - age,
                         .lr_version = run};
    hub_push(h, k, m, out);
    hub_letter *letter = hub_expect(h, WEIR_PS_WORKER, WEIR_PS_PUSHED);
    assert_int_equal(letter->m.verdict, WEIR_PS_APPLIED);
    assert_int_equal(letter->m.staleness, age);
    hub_done(letter);
  }
  hub_forget(h, out);
}

/* Sync: the step of |aggregate| batches, whose pushes come in an order that is
 * not theirs. */
static inline void hub_step_of(hub *h, uint32_t aggregate) {
  weir_exec_fetch out[8][PAIR_VALUES];
  uint64_t step = h->pair.runs / aggregate;
  assert_true(aggregate <= 8);
  for (uint32_t i = 0; i < aggregate; i++) hub_compute(h, out[i]);
  for (uint32_t i = 0; i < aggregate; i++)
    for (uint32_t s = 0; s < h->servers; s++) {
      uint32_t k = (aggregate - 1 - i + s) % aggregate;
      weir_ps_message m = {.worker = k % HUB_WORKERS,
                           .incarnation = 1 + (h->epoch << 24),
                           .lease = 1,
                           .run = step * aggregate + k,
                           .step = step,
                           .k = k,
                           .version = step};
      hub_push(h, s, m, out[k]);
    }
  hub_wait(h, WEIR_PS_CHIEF, WEIR_PS_COMMITTED);
  while (hub_deliver(h)) {
  }
  for (uint32_t i = 0; i < aggregate; i++) hub_forget(h, out[i]);
}

/* ---- Comparing */

/* Whether all that the hosts hold are the values of one process, and
 * |version| is the number of updates. */
static inline void hub_compare(hub *h, uint64_t version) {
  const weir_split *s = h->job->split;
  for (uint32_t k = 0; k < h->servers; k++) {
    hub_letter *letter = hub_fetch(h, k);
    const weir_ps_lists *l = &h->job->servers[k];
    assert_true(letter->m.newer);
    assert_int_equal(letter->m.version, version);
    uint32_t have = letter->values != NULL ? letter->values->count : 0;
    assert_int_equal(have, l->held_count);
    for (uint32_t i = 0; i < l->held_count; i++) {
      const weir_split_var *v = &s->vars[l->held[i]];
      weir_tensor *want = NULL;
      weir_node_id id = weir_graph_find_node(h->pair.joined->graph, v->name);
      assert_ok(weir_exec_variable_get(h->pair.one, id, &want, &h->err),
                &h->err);
      assert_int_equal(v->bytes, letter->values->pieces[i].bytes);
      if (memcmp((char *)want->data + v->rows.offset,
                 letter->values->pieces[i].data, v->bytes) != 0)
        fail_msg("version %d: %.*s differs", (int)version, WEIR_SV(v->label));
      weir_tensor_unref(want);
    }
    hub_done(letter);
  }
}

#endif
