/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/train/ps_cluster.h"

#include <assert.h>

static void lock(cluster *c) {
  pthread_mutex_lock(&c->lock);
}

static void unlock(cluster *c) {
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->lock);
}

/* ---- Servers: their net is there before the host, which has the events. */

static void server_up(void *self, weir_ps_task peer) {
  const weir_ps_net_events *e = &((cluster_server *)self)->events;
  e->up(e->self, peer);
}

static void server_lost(void *self, weir_ps_task peer, const weir_error *why) {
  const weir_ps_net_events *e = &((cluster_server *)self)->events;
  e->lost(e->self, peer, why);
}

static weir_status server_receive(void *self, weir_ps_task from,
                                  const weir_ps_message *m, weir_ps_place *out,
                                  weir_error *err) {
  const weir_ps_net_events *e = &((cluster_server *)self)->events;
  return e->receive(e->self, from, m, out, err);
}

static void server_unreceived(void *self, void *data) {
  const weir_ps_net_events *e = &((cluster_server *)self)->events;
  e->unreceived(e->self, data);
}

static void server_message(void *self, weir_ps_task from,
                           const weir_ps_message *m) {
  const weir_ps_net_events *e = &((cluster_server *)self)->events;
  e->message(e->self, from, m);
}

static int64_t server_step(void *self, int64_t now_ns) {
  const weir_ps_net_events *e = &((cluster_server *)self)->events;
  return e->step != NULL ? e->step(e->self, now_ns) : INT64_MAX;
}

static void port_send(void *self, weir_ps_task to, const weir_ps_message *m,
                      weir_ps_values *values) {
  weir_ps_net_send(((cluster_server *)self)->net, to, m, values);
}

static void port_give_up(void *self, weir_ps_task peer, const weir_error *why) {
  weir_ps_net_give_up(((cluster_server *)self)->net, peer, why);
}

static void port_post(void *self, weir_node_call *call) {
  weir_ps_net_post(((cluster_server *)self)->net, call);
}

static void server_over(void *self, const weir_error *failure) {
  cluster_server *s = self;
  if (failure != NULL) fprintf(stderr, "server: %s\n", failure->message);
  assert(failure == NULL);
  lock(s->of);
  s->over = true;
  unlock(s->of);
}

static void make_values(cluster *c, cluster_server *s) {
  const weir_split *split = c->w.job->split;
  const weir_ps_lists *l = &c->w.job->servers[s->index];
  s->values = calloc(l->held_count + 1u, sizeof *s->values);
  s->pieces = calloc(l->held_count + 1u, sizeof *s->pieces);
  for (uint32_t i = 0; i < l->held_count; i++) {
    const weir_graph *g = split->train->graph;
    const weir_split_var *var = &split->vars[l->held[i]];
    const weir_value *v = &g->values[g->nodes[var->node].first_output];
    weir_shape shape = *v->shape;
    if (var->rows.all > 0) shape.dims[0].value = var->rows.count;
    assert_ok(weir_tensor_create_shaped(c->w.world.env.alloc, v->dtype, &shape,
                                        &s->values[i], &c->w.err),
              &c->w.err);
    s->pieces[i] = (weir_ps_piece){s->values[i]->data, s->values[i]->bytes};
  }
}

void cluster_start_server(cluster *c, uint32_t i) {
  cluster_server *s = &c->servers[i];
  *s = (cluster_server){.of = c, .index = i};
  weir_ps_net_events events = {.self = s,
                               .up = server_up,
                               .lost = server_lost,
                               .receive = server_receive,
                               .unreceived = server_unreceived,
                               .message = server_message,
                               .step = server_step};
  weir_ps_net_options net = {.transports = &c->transports,
                             .self = {WEIR_PS_SERVER, i},
                             .address = i == 0 ? "local:s0" : "local:s1",
                             .servers = c->addresses,
                             .server_count = c->server_count,
                             .job_hash = c->w.job->hash,
                             .config = &c->w.job->config,
                             .heartbeat_ns = INT64_C(20000000000)};
  weir_ps_host_net port = {s, port_send, port_give_up, port_post};
  weir_ps_host_options host = {.job = c->w.job,
                               .index = i,
                               .pool = c->pool,
                               .dir = c->dir,
                               .limit = i > 0          ? 0
                                        : c->pause > 0 ? c->pause
                                                       : c->limit,
                               .over = server_over,
                               .self = s};
  assert_ok(
      weir_ps_net_create(&c->w.world.env, &net, &events, &s->net, &c->w.err),
      &c->w.err);
  assert_ok(
      weir_ps_host_create(&c->w.world.env, &host, &port, &s->host, &c->w.err),
      &c->w.err);
  s->events = weir_ps_host_events(s->host);
  make_values(c, s);
  assert_ok(weir_ps_net_start(s->net, &c->w.err), &c->w.err);
}

void cluster_kill_server(cluster *c, uint32_t i) {
  cluster_server *s = &c->servers[i];
  weir_ps_net_stop(s->net);
  weir_ps_host_stop(s->host);
  weir_ps_net_release(s->net);
  weir_ps_host_release(s->host);
  for (uint32_t k = 0; k < c->w.job->servers[i].held_count; k++)
    weir_tensor_unref(s->values[k]);
  free(s->values);
  free(s->pieces);
}

/* ---- The chief's calls */

static void chief_send(void *self, weir_ps_task to, const weir_ps_message *m) {
  weir_ps_net_send(((cluster *)self)->net, to, m, NULL);
}

/* Also when servers were restored: all begins anew from there. */
static void chief_running(void *self, uint64_t generation, uint64_t step) {
  cluster *c = self;
  (void)generation, (void)step;
  c->fetching = c->stopping = false;
  c->reached = 0;
  for (uint32_t i = 0; i < c->server_count; i++) c->servers[i].fetched = false;
}

static void chief_reached(void *self, uint64_t step) {
  ((cluster *)self)->reached = step;
}

static void chief_generation(void *self, uint64_t generation, bool ok) {
  (void)self, (void)generation, (void)ok;
}

static void chief_member(void *self, uint32_t worker, bool in, bool drained) {
  cluster *c = self;
  (void)worker, (void)drained;
  lock(c);
  *(in ? &c->joined : &c->left) += 1;
  unlock(c);
}

static void chief_over(void *self, bool failed, uint64_t run) {
  cluster *c = self;
  weir_ps_message m = {.kind = WEIR_PS_OVER,
                       .epoch = weir_ps_coordinator_ledger(c->chief)->epoch};
  for (uint32_t i = 0; i < c->server_count; i++)
    weir_ps_net_send(c->net, (weir_ps_task){WEIR_PS_SERVER, i}, &m, NULL);
  lock(c);
  c->over = true;
  c->failed = failed;
  c->failed_run = run;
  unlock(c);
}

static void chief_fenced(void *self, uint64_t epoch) {
  (void)self, (void)epoch;
  assert(false);
}

/* ---- The chief's net */

static int64_t now_of(const cluster *c) {
  return c->w.world.clock.now_ns(c->w.world.clock.self);
}

static void chief_up(void *self, weir_ps_task peer) {
  cluster *c = self;
  weir_ps_coordinator_up(c->chief, now_of(c), peer);
}

static void chief_lost(void *self, weir_ps_task peer, const weir_error *why) {
  cluster *c = self;
  (void)why;
  weir_ps_coordinator_lost(c->chief, now_of(c), peer);
}

static weir_status chief_receive(void *self, weir_ps_task from,
                                 const weir_ps_message *m, weir_ps_place *out,
                                 weir_error *err) {
  cluster *c = self;
  (void)err;
  if (m->kind == WEIR_PS_REPORT) {
    c->report = (weir_ps_piece){
        c->numbers, weir_ps_report_count(c->w.job) * sizeof(double)};
    *out = (weir_ps_place){.pieces = &c->report, .count = 1};
    return WEIR_OK;
  }
  assert(m->kind == WEIR_PS_FETCHED);
  *out = (weir_ps_place){.pieces = c->servers[from.index].pieces,
                         .count = c->w.job->servers[from.index].held_count};
  return WEIR_OK;
}

static void chief_unreceived(void *self, void *data) {
  (void)self, (void)data;
}

static void chief_message(void *self, weir_ps_task from,
                          const weir_ps_message *m) {
  cluster *c = self;
  if (m->kind == WEIR_PS_REPORT) {
    lock(c);
    assert(m->run < CLUSTER_RUNS);
    c->reports[m->run]++;
    c->report_count++;
    unlock(c);
  } else if (m->kind == WEIR_PS_FETCHED) {
    c->servers[from.index].fetched = true;
  } else {
    weir_ps_coordinator_message(c->chief, now_of(c), from, m);
  }
}

/* At the pause: waits there, or goes on. */
static int64_t pass(cluster *c, int64_t now_ns, int64_t due) {
  lock(c);
  c->paused = true;
  bool go = c->released;
  unlock(c);
  if (!go) return due;
  c->reached = 0;
  weir_ps_coordinator_go(c->chief, now_ns, c->limit);
  return weir_ps_coordinator_tick(c->chief, now_ns);
}

static int64_t chief_step(void *self, int64_t now_ns) {
  cluster *c = self;
  int64_t due = weir_ps_coordinator_tick(c->chief, now_ns);
  if (c->reached == 0 || c->stopping) return due;
  if (c->reached < c->limit) return pass(c, now_ns, due);
  bool all = true;
  for (uint32_t i = 0; i < c->server_count; i++) {
    weir_ps_message m = {.kind = WEIR_PS_FETCH,
                         .epoch = weir_ps_coordinator_ledger(c->chief)->epoch,
                         .life = weir_ps_coordinator_life(c->chief)};
    if (c->w.job->config.mode == WEIR_PS_SYNC) m.version = c->reached;
    if (!c->fetching)
      weir_ps_net_send(c->net, (weir_ps_task){WEIR_PS_SERVER, i}, &m, NULL);
    all = all && c->servers[i].fetched;
  }
  c->fetching = true;
  if (!all) return due;
  c->stopping = true;
  weir_ps_coordinator_stop(c->chief, now_ns, c->reached);
  return weir_ps_coordinator_tick(c->chief, now_ns);
}

static void open_chief(cluster *c) {
  weir_ps_coordinator_options chief = {
      .config = c->w.job->config, .incarnation = 1, .rejoin_ns = 50 * 1000000};
  weir_ps_coordinator_calls calls = {.self = c,
                                     .send = chief_send,
                                     .running = chief_running,
                                     .reached = chief_reached,
                                     .generation = chief_generation,
                                     .member = chief_member,
                                     .over = chief_over,
                                     .fenced = chief_fenced};
  weir_ps_net_events events = {.self = c,
                               .up = chief_up,
                               .lost = chief_lost,
                               .receive = chief_receive,
                               .unreceived = chief_unreceived,
                               .message = chief_message,
                               .step = chief_step};
  weir_ps_net_options net = {.transports = &c->transports,
                             .self = {WEIR_PS_CHIEF, 0},
                             .address = "local:chief",
                             .servers = c->addresses,
                             .server_count = c->server_count,
                             .job_hash = c->w.job->hash,
                             .config = &c->w.job->config,
                             .heartbeat_ns = INT64_C(20000000000)};
  assert_ok(weir_ps_coordinator_create(c->w.world.env.alloc, &chief, &calls,
                                       &c->chief, &c->w.err),
            &c->w.err);
  assert_ok(
      weir_ps_net_create(&c->w.world.env, &net, &events, &c->net, &c->w.err),
      &c->w.err);
  assert_ok(weir_ps_net_start(c->net, &c->w.err), &c->w.err);
}

/* ---- Workers */

static void *run_worker(void *self) {
  cluster_worker *w = self;
  w->status = weir_ps_replica_run(w->replica, &w->end, &w->err);
  return NULL;
}

weir_ps_replica_options cluster_worker_options(const cluster *c, uint32_t i) {
  const char *chief = c->chief_address;
  return (weir_ps_replica_options){
      .job = c->w.job,
      .index = i,
      .pool = c->pool,
      .session = {.seed = 5},
      .data = {.seed = 5},
      .transports = &c->transports,
      .servers = c->addresses,
      .chief = chief != NULL ? chief : "local:chief",
      .heartbeat_ns = INT64_C(20000000000)};
}

void cluster_start(cluster *c, uint32_t i) {
  cluster_worker *w = &c->workers[i];
  weir_ps_replica_options o = cluster_worker_options(c, i);
  *w = (cluster_worker){.err = WEIR_ERROR_INIT};
  assert_ok(weir_ps_replica_create(&c->w.world.env, &o, &w->replica, &c->w.err),
            &c->w.err);
  assert_int_equal(pthread_create(&w->thread, NULL, run_worker, w), 0);
  w->running = true;
}

void cluster_join(cluster *c, uint32_t i) {
  cluster_worker *w = &c->workers[i];
  if (w->running) pthread_join(w->thread, NULL);
  w->running = false;
  if (w->replica != NULL)
    w->resets = weir_ps_replica_count(w->replica).runs.resets;
  weir_ps_replica_release(w->replica);
  w->replica = NULL;
}

/* ---- The job */

void cluster_open(cluster *c, const char *text, const char *more,
                  uint32_t servers, uint64_t limit) {
  char all[4096];
  pthread_mutex_init(&c->lock, NULL);
  pthread_cond_init(&c->changed, NULL);
  snprintf(all, sizeof all, "%s%s", text, more);
  ps_world_load(&c->w, all, 3);
  assert_ok(ps_world_job(&c->w, servers, CLUSTER_WORKERS, 5), &c->w.err);
  c->pool = exec_pool(&c->w.world, 4);
  assert_ok(weir_net_hub_create(&c->w.world.env, &c->hub, &c->w.err),
            &c->w.err);
  c->transports = local_transports(c->hub);
  c->server_count = servers;
  c->limit = limit;
  c->addresses[0] = "local:s0";
  c->addresses[1] = "local:s1";
  for (uint32_t i = 0; i < servers; i++) cluster_start_server(c, i);
  open_chief(c);
}

/* After it the chief's thread takes a turn. */
static void on_wake(void *self, bool runs) {
  (void)self, (void)runs;
}

void cluster_go(cluster *c) {
  lock(c);
  c->released = true;
  unlock(c);
  c->wake = (weir_node_call){.fn = on_wake, .self = c};
  weir_ps_net_post(c->net, &c->wake);
}

void cluster_end(cluster *c) {
  cluster_await(c, c->over);
  for (uint32_t i = 0; i < CLUSTER_WORKERS; i++) cluster_join(c, i);
  cluster_await(c, c->servers[0].over && c->servers[c->server_count - 1].over);
  weir_ps_net_stop(c->net);
}

void cluster_close(cluster *c) {
  weir_ps_net_release(c->net);
  weir_ps_coordinator_release(c->chief);
  for (uint32_t i = 0; i < c->server_count; i++) cluster_kill_server(c, i);
  weir_net_hub_release(c->hub);
  weir_pool_release(c->pool);
  pthread_cond_destroy(&c->changed);
  pthread_mutex_destroy(&c->lock);
  ps_world_close(&c->w);
}
