/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/env_system.h"
#include "runtime/base/vec.h"
#include "runtime/dist/ps/coordinator.h"
#include "runtime/dist/ps/server.h"
#include "runtime/dist/ps/worker.h"
#include "runtime/dist/psnet/psnet.h"
#include "tests/check.h"
#include "tests/dist/local_transports.h"

/* Jobs of parameter servers over links: the real machines, each with its net
 * and threads, and hosts whose values are a few bytes that tell the run. A
 * worker is taken away half way, and comes again. */

enum { SERVERS = 2, WORKERS = 2, TASKS = 1 + SERVERS + WORKERS, LIMIT = 40 };
enum { AGGREGATE = 4, RUNS = LIMIT * AGGREGATE, BYTES = 9000 };

typedef enum call {
  APPLIED,
  ADDED,
  NORMED,
  FINISHED,
  SAVED,
  RESTORED,
  KEPT,
  SEALED,
  COMPUTED
} call;

/* A call of a machine that has ended: told to it in the next turn. */
typedef struct event {
  call call;
  uint64_t number;
} event;

typedef struct job job;

typedef struct host {
  job *job;
  weir_ps_task self;
  weir_ps_net *net;
  weir_ps_server *server;
  weir_ps_worker *worker;
  weir_ps_coordinator *chief;
  WEIR_VEC(event) events;
  uint32_t times[RUNS]; /* a server: how often each run was applied or added */
  uint64_t version, reached;
} host;

struct job {
  weir_net_hub *hub;
  weir_transports transports;
  weir_ps_config config;
  char addresses[1 + SERVERS][WEIR_NET_ADDRESS_BYTES];
  host *hosts[TASKS]; /* servers, the chief, workers */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  /* Under the lock: */
  uint32_t counted; /* pushes that any server has taken */
  bool chief_over, worker_over[WORKERS];
  weir_ps_account account;
};

static void later(host *h, call c, uint64_t number) {
  assert_true(
      weir_vec_push(weir_allocator_system(), &h->events, (event){c, number}));
}

/* ---- Values: the run or version, and bytes that follow from it */

typedef struct load {
  weir_ps_values values;
  weir_ps_piece pieces[2];
  uint64_t number;
  uint8_t bytes[BYTES];
} load;

static load *make_load(uint64_t number) {
  load *l = calloc(1, sizeof *l);
  l->number = number;
  memset(l->bytes, (int)(number & 255), BYTES);
  l->pieces[0] = (weir_ps_piece){&l->number, sizeof l->number};
  l->pieces[1] = (weir_ps_piece){l->bytes, BYTES};
  return l;
}

static void load_sent(weir_ps_values *values) {
  free(values->owner);
}

static void check_load(const load *l, uint64_t number) {
  assert_int_equal(l->number, number);
  for (int i = 0; i < BYTES; i++) assert_int_equal(l->bytes[i], number & 255);
}

static void on_send(void *self, weir_ps_task to, const weir_ps_message *m) {
  host *h = self;
  load *l = NULL;
  if (m->kind == WEIR_PS_PUSH)
    l = make_load(m->run);
  else if (m->kind == WEIR_PS_NORM)
    l = make_load(m->step);
  else if (m->newer) /* PULLED, PUSHED */
    l = make_load(m->version);
  if (l != NULL)
    l->values = (weir_ps_values){
        .pieces = l->pieces, .count = 2, .sent = load_sent, .owner = l};
  weir_ps_net_send(h->net, to, m, l != NULL ? &l->values : NULL);
}

static weir_status receive(void *self, weir_ps_task from,
                           const weir_ps_message *m, weir_ps_place *out,
                           weir_error *err) {
  (void)self, (void)from, (void)m, (void)err;
  load *l = make_load(0);
  *out = (weir_ps_place){l->pieces, 2, l};
  return WEIR_OK;
}

static void unreceived(void *self, void *data) {
  (void)self;
  free(data);
}

/* ---- Calls of the machines */

static void take_push(host *h, const weir_ps_message *push) {
  check_load(push->data, push->run);
  free(push->data);
  assert_true(push->run < RUNS);
  h->times[push->run]++;
  pthread_mutex_lock(&h->job->lock);
  h->job->counted++;
  pthread_cond_broadcast(&h->job->changed);
  pthread_mutex_unlock(&h->job->lock);
}

static void on_apply(void *self, uint64_t ticket, const weir_ps_message *push) {
  take_push(self, push);
  later(self, APPLIED, ticket);
}

static void on_add(void *self, uint64_t ticket, const weir_ps_message *push) {
  take_push(self, push);
  later(self, ADDED, ticket);
}

static void on_norm(void *self, uint64_t ticket, uint64_t step) {
  (void)step;
  later(self, NORMED, ticket);
}

static void on_finish(void *self, uint64_t ticket, uint64_t step) {
  (void)step;
  later(self, FINISHED, ticket);
}

static void on_publish(void *self, uint64_t version) {
  ((host *)self)->version = version;
}

static void on_drop(void *self, void *data) {
  (void)self;
  free(data);
}

static void on_save(void *self, const weir_ps_state *state) {
  later(self, SAVED, state->generation);
}

static void on_restore(void *self, uint64_t ticket, uint64_t generation) {
  assert_int_equal(generation, 0); /* no server ends */
  later(self, RESTORED, ticket);
}

static void on_keep(void *self, uint64_t epoch, uint64_t chief) {
  (void)chief;
  later(self, KEPT, epoch);
}

static void on_seal(void *self, uint64_t generation) {
  later(self, SEALED, generation);
}

static void on_compute(void *self, uint64_t ticket, const weir_ps_work *work) {
  (void)work;
  later(self, COMPUTED, ticket);
}

static void on_forget(void *self, uint64_t run) {
  (void)self, (void)run;
}

static void on_reset(void *self) {
  (void)self;
}

static void tell(host *h, bool *flag) {
  pthread_mutex_lock(&h->job->lock);
  *flag = true;
  if (h->chief != NULL)
    h->job->account = *weir_ps_coordinator_account(h->chief);
  pthread_cond_broadcast(&h->job->changed);
  pthread_mutex_unlock(&h->job->lock);
}

static void on_worker_over(void *self, bool drained) {
  host *h = self;
  assert_false(drained);
  tell(h, &h->job->worker_over[h->self.index]);
}

static void on_running(void *self, uint64_t generation, uint64_t step) {
  (void)self, (void)generation, (void)step;
}

static void on_reached(void *self, uint64_t step) {
  ((host *)self)->reached = step;
}

static void on_generation(void *self, uint64_t generation, bool ok) {
  (void)self, (void)generation, (void)ok;
}

static void on_member(void *self, uint32_t worker, bool in, bool drained) {
  (void)self, (void)worker, (void)in, (void)drained;
}

static void on_over(void *self, bool failed, uint64_t run) {
  host *h = self;
  (void)run;
  assert_false(failed);
  tell(h, &h->job->chief_over);
}

static void on_fenced(void *self, uint64_t epoch) {
  (void)self, (void)epoch;
  fail();
}

static int64_t now_of(void) {
  const weir_clock *clock = weir_env_system()->clock;
  return clock->now_ns(clock->self);
}

static void up(void *self, weir_ps_task peer) {
  host *h = self;
  if (h->server != NULL) weir_ps_server_up(h->server, peer);
  if (h->worker != NULL) weir_ps_worker_up(h->worker, peer);
  if (h->chief != NULL) weir_ps_coordinator_up(h->chief, now_of(), peer);
}

static void lost(void *self, weir_ps_task peer, const weir_error *why) {
  host *h = self;
  (void)why;
  if (h->server != NULL) weir_ps_server_lost(h->server, peer);
  if (h->worker != NULL) weir_ps_worker_lost(h->worker, peer);
  if (h->chief != NULL) weir_ps_coordinator_lost(h->chief, now_of(), peer);
}

static void message(void *self, weir_ps_task from, const weir_ps_message *m) {
  host *h = self;
  if (m->data != NULL && m->kind != WEIR_PS_PUSH) {
    check_load(m->data, m->kind == WEIR_PS_NORM ? m->step : m->version);
    free(m->data);
  }
  weir_ps_message numbers = *m;
  if (m->kind != WEIR_PS_PUSH) numbers.data = NULL;
  if (h->server != NULL) weir_ps_server_message(h->server, from, &numbers);
  if (h->worker != NULL) weir_ps_worker_message(h->worker, from, &numbers);
  if (h->chief != NULL)
    weir_ps_coordinator_message(h->chief, now_of(), from, &numbers);
}

static void server_event(weir_ps_server *s, const event *e) {
  switch (e->call) {
    case APPLIED:
      weir_ps_server_applied(s, e->number);
      return;
    case ADDED:
      weir_ps_server_added(s, e->number);
      return;
    case NORMED:
      weir_ps_server_normed(s, e->number);
      return;
    case FINISHED:
      weir_ps_server_finished(s, e->number);
      return;
    case SAVED:
      weir_ps_server_saved(s, e->number, true);
      return;
    case RESTORED:
      weir_ps_server_restored(s, e->number, 0, NULL, true);
      return;
    case KEPT:
      weir_ps_server_kept(s, e->number);
      return;
    case SEALED:
      weir_ps_server_sealed(s, e->number, true);
      return;
    case COMPUTED:
      fail();
  }
}

static int64_t step(void *self, int64_t now_ns) {
  host *h = self;
  int64_t next = INT64_MAX;
  for (size_t i = 0; i < h->events.count; i++) {
    const event e = h->events.items[i];
    if (h->server != NULL)
      server_event(h->server, &e);
    else
      weir_ps_worker_computed(h->worker, e.number, true);
  }
  h->events.count = 0;
  if (h->chief == NULL) return next;
  next = weir_ps_coordinator_tick(h->chief, now_ns);
  if (h->reached == 0) return next;
  weir_ps_coordinator_stop(h->chief, now_ns, h->reached);
  h->reached = 0;
  return weir_ps_coordinator_tick(h->chief, now_ns);
}

/* ---- Hosts */

static weir_status make_machine(host *h, weir_error *err) {
  const weir_allocator *alloc = weir_allocator_system();
  const weir_ps_config *config = &h->job->config;
  if (h->self.role == WEIR_PS_SERVER) {
    const weir_ps_server_options o = {
        .config = *config, .index = h->self.index, .limit = LIMIT};
    const weir_ps_server_calls calls = {
        h,          on_send, on_apply, on_add,     on_norm, on_finish,
        on_publish, on_drop, on_save,  on_restore, on_keep, on_seal};
    return weir_ps_server_create(alloc, &o, &calls, &h->server, err);
  }
  if (h->self.role == WEIR_PS_WORKER) {
    const weir_ps_worker_options o = {.config = *config,
                                      .index = h->self.index};
    const weir_ps_worker_calls calls = {h,         on_send,  on_compute,
                                        on_forget, on_reset, on_worker_over};
    return weir_ps_worker_create(alloc, &o, &calls, &h->worker, err);
  }
  const weir_ps_coordinator_options o = {.config = *config,
                                         .incarnation = 1,
                                         .rejoin_ns = 50000000,
                                         .save_every = 7};
  const weir_ps_coordinator_calls calls = {
      h,         on_send, on_running, on_reached, on_generation,
      on_member, on_over, on_fenced};
  return weir_ps_coordinator_create(alloc, &o, &calls, &h->chief, err);
}

static void open_host(job *j, uint32_t at, weir_ps_role role, uint32_t index) {
  weir_error err = WEIR_ERROR_INIT;
  host *h = calloc(1, sizeof *h);
  const char *const servers[] = {j->addresses[1], j->addresses[2]};
  h->job = j;
  h->self = (weir_ps_task){role, index};
  j->hosts[at] = h;
  assert_ok(make_machine(h, &err), &err);
  const weir_ps_net_options o = {.transports = &j->transports,
                                 .self = h->self,
                                 .address = "local:",
                                 .servers = servers,
                                 .server_count = SERVERS,
                                 .chief = j->addresses[0],
                                 .job_hash = 3,
                                 .config = &j->config};
  const weir_ps_net_events events = {.self = h,
                                     .up = up,
                                     .lost = lost,
                                     .receive = receive,
                                     .unreceived = unreceived,
                                     .message = message,
                                     .step = step};
  assert_ok(weir_ps_net_create(weir_env_system(), &o, &events, &h->net, &err),
            &err);
  if (role != WEIR_PS_WORKER)
    strcpy(j->addresses[role == WEIR_PS_CHIEF ? 0 : 1 + index],
           weir_ps_net_address(h->net));
  assert_ok(weir_ps_net_start(h->net, &err), &err);
}

/* What the servers have counted goes to |times|. */
static void close_host(job *j, uint32_t at, uint32_t times[RUNS]) {
  host *h = j->hosts[at];
  weir_ps_net_stop(h->net);
  weir_ps_server_release(h->server); /* gives back by drop */
  weir_ps_worker_release(h->worker);
  weir_ps_coordinator_release(h->chief);
  weir_ps_net_release(h->net);
  if (times != NULL) memcpy(times, h->times, sizeof h->times);
  weir_vec_free(weir_allocator_system(), &h->events);
  free(h);
  j->hosts[at] = NULL;
}

static void await_counted(job *j, uint32_t count) {
  pthread_mutex_lock(&j->lock);
  while (j->counted < count) pthread_cond_wait(&j->changed, &j->lock);
  pthread_mutex_unlock(&j->lock);
}

static void await_end(job *j) {
  pthread_mutex_lock(&j->lock);
  while (!j->chief_over || !j->worker_over[0] || !j->worker_over[1])
    pthread_cond_wait(&j->changed, &j->lock);
  pthread_mutex_unlock(&j->lock);
}

static void give_up_now(void *self, bool runs) {
  host *h = self;
  weir_error err = WEIR_ERROR_INIT;
  weir_fail(&err, WEIR_W7020, NULL, "cut by the test");
  for (uint32_t i = 0; runs && i < WORKERS; i++)
    weir_ps_net_give_up(h->net, (weir_ps_task){WEIR_PS_WORKER, i}, &err);
}

/* Each run counts once on each server. Async: those of a worker that ended
 * between two servers may be missing on one of them, and are counted. */
static void check_times(const job *j, const uint32_t times[SERVERS][RUNS]) {
  uint64_t partial = 0;
  bool sync = j->config.mode == WEIR_PS_SYNC;
  for (uint32_t r = 0; r < RUNS; r++) {
    uint32_t most = 0, least = 9;
    for (uint32_t s = 0; s < SERVERS; s++) {
      if (times[s][r] > most) most = times[s][r];
      if (times[s][r] < least) least = times[s][r];
    }
    assert_int_equal(most, r < LIMIT * j->config.aggregate);
    partial += most != least;
  }
  if (sync) assert_int_equal(partial, 0);
  assert_int_equal(partial, j->account.partial);
}

static void run_job(weir_ps_mode mode) {
  job j = {.config = {.mode = mode,
                      .servers = SERVERS,
                      .workers = WORKERS,
                      .aggregate = mode == WEIR_PS_SYNC ? AGGREGATE : 1,
                      .window = mode == WEIR_PS_ASYNC ? 2 : 0,
                      .staleness = mode == WEIR_PS_BOUNDED ? 2 : 0,
                      .norm = mode == WEIR_PS_SYNC,
                      .lease_steps = 3}};
  weir_error err = WEIR_ERROR_INIT;
  static uint32_t times[SERVERS][RUNS];
  pthread_mutex_init(&j.lock, NULL);
  pthread_cond_init(&j.changed, NULL);
  assert_ok(weir_net_hub_create(weir_env_system(), &j.hub, &err), &err);
  j.transports = local_transports(j.hub);
  for (uint32_t i = 0; i < SERVERS; i++) open_host(&j, i, WEIR_PS_SERVER, i);
  open_host(&j, SERVERS, WEIR_PS_CHIEF, 0);
  for (uint32_t i = 0; i < WORKERS; i++)
    open_host(&j, SERVERS + 1 + i, WEIR_PS_WORKER, i);
  await_counted(&j, LIMIT / 4);
  weir_node_call cut = {.fn = give_up_now, .self = j.hosts[1]};
  weir_ps_net_post(j.hosts[1]->net, &cut); /* both workers' links to ps:1 */
  await_counted(&j, LIMIT / 2);
  close_host(&j, SERVERS + WORKERS, NULL);
  open_host(&j, SERVERS + WORKERS, WEIR_PS_WORKER, WORKERS - 1);
  await_end(&j);
  for (uint32_t i = TASKS; i-- > 0;)
    close_host(&j, i, i < SERVERS ? times[i] : NULL);
  check_times(&j, (const uint32_t(*)[RUNS])times);
  weir_net_hub_release(j.hub);
  pthread_cond_destroy(&j.changed);
  pthread_mutex_destroy(&j.lock);
}

static void async_jobs_end(void **state) {
  (void)state;
  run_job(WEIR_PS_ASYNC);
}

static void sync_jobs_end(void **state) {
  (void)state;
  run_job(WEIR_PS_SYNC);
}

static void bounded_jobs_end(void **state) {
  (void)state;
  run_job(WEIR_PS_BOUNDED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(async_jobs_end),
      cmocka_unit_test(sync_jobs_end),
      cmocka_unit_test(bounded_jobs_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
