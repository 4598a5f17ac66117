/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/mix.h"
#include "tests/sim/ps/ps_world.h"

/* The programs around the machines, with numbers for tensors, and the checkers:
 * each looks at what a machine makes its host do. */

typedef unsigned long long ull;

typedef struct host {
  ps_world *w;
  uint32_t id;
} host;

static ps_process *process_of(const host *h) {
  return &h->w->processes[h->id];
}

/* ---- The reference: one process */

static uint64_t gradient_of(const uint64_t *values, uint32_t servers,
                            uint64_t run) {
  uint64_t g = weir_mix(run + 1);
  for (uint32_t s = 0; s < servers; s++) g = weir_mix(g ^ values[s]);
  return g;
}

static uint64_t sum_of(uint64_t sum, uint64_t gradient, uint32_t server) {
  return weir_mix(sum * 3 + weir_mix(gradient ^ server));
}

static uint64_t next_of(uint64_t value, uint64_t sum, uint64_t norm) {
  return weir_mix(value ^ weir_mix(sum + norm));
}

static void make_reference(ps_world *w) {
  uint32_t n = w->config.aggregate, servers = w->config.servers;
  for (uint32_t s = 0; s < servers; s++) w->reference[0][s] = s + 1;
  for (uint64_t t = 0; t < w->total; t++) {
    uint64_t sums[PS_SERVERS] = {0}, norm = 0;
    for (uint32_t k = 0; k < n; k++) {
      uint64_t g = gradient_of(w->reference[t], servers, t * n + k);
      for (uint32_t s = 0; s < servers; s++) sums[s] = sum_of(sums[s], g, s);
    }
    for (uint32_t s = 0; s < servers; s++) norm += weir_mix(sums[s]);
    if (!w->config.norm || servers == 1) norm = 0;
    for (uint32_t s = 0; s < servers; s++)
      w->reference[t + 1][s] = next_of(w->reference[t][s], sums[s], norm);
  }
}

/* ---- Failpoints */

static bool hit(void *self, weir_ps_failpoint fp) {
  host *h = self;
  ps_world *w = h->w;
  w->result->reached[fp]++;
  if (fp >= WEIR_PS_FP_BUG_ACK_EARLY) return fp == w->plant;
  if (w->healed || h->id >= PS_PROCESSES) return false;
  for (uint32_t i = 0; i < 3; i++) {
    if (w->armed[i] != fp || ps_below(w, w->arm_one_in) != 0) continue;
    w->result->died[fp]++;
    w->result->faults[PS_DIES_AT_FAILPOINT]++;
    process_of(h)->doomed = true;
    ps_say(w, "%u: dies at %s", h->id, weir_ps_failpoint_name(fp));
    return true;
  }
  return false;
}

static void send(void *self, weir_ps_task to, const weir_ps_message *m) {
  host *h = self;
  ps_world *w = h->w;
  if (m->kind == WEIR_PS_PUSHED && m->verdict == WEIR_PS_APPLIED &&
      process_of(h)->shard.applied[m->run % PS_RUNS] == 0 && m->run != 0)
    ps_wrong(w, "server %u acknowledges run %llu, which is not applied", h->id,
             (ull)m->run);
  if (w->verbose)
    ps_say(w,
           "%u: %s to %u.%u epoch %llu life %llu inc %llu seq %llu lease %llu "
           "run %llu step %llu v %llu",
           h->id, weir_ps_kind_name(m->kind), to.role, to.index, (ull)m->epoch,
           (ull)m->life, (ull)m->incarnation, (ull)m->seq, (ull)m->lease,
           (ull)m->run, (ull)m->step, (ull)m->version);
  ps_net_send(w, h->id, to, m);
}

/* ---- Servers */

static void take_data(ps_world *w, void *data) {
  free(data);
  w->data_live--;
}

static uint64_t value_in(const weir_ps_message *m) {
  return m->data != NULL ? ((const ps_data *)m->data)->value : 0;
}

static void work_later(host *h, ps_event_kind kind, uint64_t ticket) {
  ps_event *e = ps_later(h->w, h->id, kind, 8000 * process_of(h)->slow);
  e->ticket = ticket;
  ps_push(h->w, *e);
}

/* Nothing counts that was computed on values of before a restore. */
static void check_life(const host *h, const weir_ps_message *push) {
  uint64_t life = process_of(h)->server->life;
  if (push->life != life)
    ps_wrong(h->w, "server %u takes a push of life %llu in life %llu", h->id,
             (ull)push->life, (ull)life);
}

static void server_apply(void *self, uint64_t ticket,
                         const weir_ps_message *push) {
  host *h = self;
  check_life(h, push);
  process_of(h)->spare = *push;
  take_data(h->w, push->data);
  work_later(h, PS_APPLIED, ticket);
}

static void server_add(void *self, uint64_t ticket,
                       const weir_ps_message *push) {
  host *h = self;
  ps_shard *s = &process_of(h)->shard;
  check_life(h, push);
  if (push->k == 0) {
    s->sum = 0;
    s->added = 0;
  }
  if (push->k != s->added)
    ps_wrong(h->w, "server %u adds micro-batch %u as number %u", h->id, push->k,
             s->added);
  s->added++;
  s->sum = sum_of(s->sum, value_in(push), h->id);
  take_data(h->w, push->data);
  work_later(h, PS_ADDED, ticket);
}

static void server_norm(void *self, uint64_t ticket, uint64_t step) {
  host *h = self;
  ps_shard *s = &process_of(h)->shard;
  s->share = weir_mix(s->sum);
  s->shares[h->id] = s->share;
  s->share_steps[h->id] = step;
  work_later(h, PS_NORMED, ticket);
}

static void server_finish(void *self, uint64_t ticket, uint64_t step) {
  host *h = self;
  ps_world *w = h->w;
  ps_shard *s = &process_of(h)->shard;
  uint64_t norm = 0;
  for (uint32_t i = 0;
       i < w->config.servers && w->config.norm && w->config.servers > 1; i++) {
    norm += s->shares[i];
    if (s->share_steps[i] != step)
      ps_wrong(w, "server %u finishes step %llu without the norm of server %u",
               h->id, (ull)step, i);
  }
  if (s->added != w->config.aggregate)
    ps_wrong(w, "server %u finishes step %llu with %u micro-batches", h->id,
             (ull)step, s->added);
  s->spare = next_of(s->value, s->sum, norm);
  work_later(h, PS_FINISHED, ticket);
}

static void publish_sync(host *h, uint64_t version) {
  ps_world *w = h->w;
  ps_process *p = process_of(h);
  p->shard.value = p->shard.spare;
  if (version > w->total || p->shard.value != w->reference[version][h->id])
    ps_wrong(w, "server %u has another value at version %llu than one process",
             h->id, (ull)version);
  /* A committed step is computed by all. */
  for (uint32_t i = 0; i < w->config.servers; i++) {
    const ps_process *q = &w->processes[i];
    if (!q->alive || q->server->life != p->server->life) continue;
    if (q->server->version + 1 < version ||
        (q->server->version + 1 == version && i != h->id &&
         q->server->round.phase != WEIR_PS_IS_READY))
      ps_wrong(w, "version %llu is current at server %u, not computed at %u",
               (ull)version, h->id, i);
  }
}

static void server_publish(void *self, uint64_t version) {
  host *h = self;
  ps_world *w = h->w;
  ps_process *p = process_of(h);
  w->result->pushes++;
  if (w->config.mode == WEIR_PS_SYNC) {
    publish_sync(h, version);
    return;
  }
  const weir_ps_message *m = &p->spare;
  if (m->run >= PS_RUNS || ++p->shard.applied[m->run] != 1)
    ps_wrong(w, "server %u applies run %llu again", h->id, (ull)m->run);
  if (w->config.limited && version - 1 > m->version + w->config.max_staleness)
    ps_wrong(w, "run %llu is applied %llu updates late", (ull)m->run,
             (ull)(version - 1 - m->version));
}

static void server_drop(void *self, void *data) {
  take_data(((host *)self)->w, data);
}

static ps_event *disk_later(ps_world *w, uint32_t server, ps_event_kind kind,
                            uint32_t max_us) {
  if (!w->healed && ps_below(w, 1000000) < w->slow_ppm) {
    w->result->faults[PS_DISK_SLOW]++;
    max_us = 3000000;
  }
  return ps_later(w, server, kind, max_us);
}

static bool disk_fails(ps_world *w) {
  if (w->healed || ps_below(w, 1000000) >= w->full_ppm) return false;
  w->result->faults[PS_DISK_FULL]++;
  return true;
}

static ps_generation *generation_at(ps_world *w, uint64_t number) {
  if (number >= PS_GENERATIONS) {
    ps_wrong(w, "%d generations", PS_GENERATIONS);
    return NULL;
  }
  if (w->disk[number] == NULL)
    w->disk[number] = calloc(1, sizeof(ps_generation));
  return w->disk[number];
}

/* The copy is on disk when the event comes; the state is taken now. */
static void server_save(void *self, const weir_ps_state *state) {
  host *h = self;
  ps_world *w = h->w;
  weir_error err = WEIR_ERROR_INIT;
  ps_generation *g = generation_at(w, state->generation);
  if (g == NULL) return;
  ps_saved *s = &g->saved[h->id];
  *s = (ps_saved){.birth = process_of(h)->birth,
                  .life = process_of(h)->server->life,
                  .shard = process_of(h)->shard,
                  .version = state->version};
  for (uint32_t i = 0; i < w->config.workers && state->marks != NULL; i++)
    s->marks[i] = state->marks[i];
  if (state->ledger != NULL) {
    weir_ps_ledger_release(g->ledger);
    g->ledger = NULL;
    if (weir_ps_ledger_create(weir_allocator_system(), &w->config, 0,
                              &g->ledger, &err) != WEIR_OK ||
        weir_ps_ledger_copy(g->ledger, state->ledger, &err) != WEIR_OK)
      ps_wrong(w, "no ledger: %s", err.message);
  }
  ps_event *e = disk_later(w, h->id, PS_SAVED, 60000);
  e->number = state->generation;
  e->ok = !disk_fails(w);
  ps_push(w, *e);
}

static void server_restore(void *self, uint64_t ticket, uint64_t generation) {
  host *h = self;
  ps_event *e = disk_later(h->w, h->id, PS_RESTORED, 60000);
  e->ticket = ticket;
  e->number = generation;
  ps_push(h->w, *e);
  if (generation > h->w->sealed)
    ps_wrong(h->w, "generation %llu is restored, which is not complete",
             (ull)generation);
}

static void server_keep(void *self, uint64_t epoch, uint64_t chief) {
  host *h = self;
  ps_event *e = disk_later(h->w, h->id, PS_KEPT, 10000);
  e->number = epoch;
  e->ticket = chief;
  ps_push(h->w, *e);
}

static void server_seal(void *self, uint64_t generation) {
  host *h = self;
  ps_event *e = disk_later(h->w, h->id, PS_SEALED, 10000);
  e->number = generation;
  ps_push(h->w, *e);
}

static void check_versions(ps_world *w, const ps_generation *g,
                           uint64_t number) {
  for (uint32_t i = 1; i < w->config.servers; i++)
    if (w->config.mode == WEIR_PS_SYNC &&
        g->saved[i].version != g->saved[0].version)
      ps_wrong(w, "generation %llu has versions %llu and %llu", (ull)number,
               (ull)g->saved[0].version, (ull)g->saved[i].version);
}

static uint64_t hash_of(const ps_world *w, const ps_saved *s) {
  uint64_t x = weir_mix(s->version ^ weir_mix(s->shard.value + s->life));
  for (uint32_t r = 0; r < PS_RUNS; r++)
    if (s->shard.applied[r] != 0) x = weir_mix(x + r);
  for (uint32_t i = 0; i < w->config.workers; i++)
    x = weir_mix(x ^ (weir_mix(s->marks[i].incarnation) + s->marks[i].seq));
  return x;
}

/* A restored state is a committed one: that which was sealed, of one life. */
static void check_sealed(ps_world *w, const ps_generation *g, uint64_t number) {
  for (uint32_t i = 0; i < w->config.servers; i++) {
    if (g->saved[i].life != g->saved[0].life)
      ps_wrong(w, "generation %llu is of lives %llu and %llu", (ull)number,
               (ull)g->saved[0].life, (ull)g->saved[i].life);
    if (g->sealed_as[i] != hash_of(w, &g->saved[i]))
      ps_wrong(w, "generation %llu has changed at server %u since it counts",
               (ull)number, i);
  }
}

static void seal(ps_world *w, uint64_t number) {
  ps_generation *g = generation_at(w, number);
  if (g == NULL) return;
  for (uint32_t i = 0; i < w->config.servers; i++) {
    if (!g->saved[i].here)
      ps_wrong(w, "generation %llu is sealed without server %u", (ull)number,
               i);
    g->sealed_as[i] = hash_of(w, &g->saved[i]);
  }
  w->sealed = number;
}

/* What a write leaves on disk. */
static void write_now(ps_world *w, const ps_event *e) {
  if (e->kind == PS_SAVED) {
    if (e->ok) w->disk[e->number]->saved[e->to].here = true;
  } else if (e->kind == PS_KEPT) {
    w->kept = e->number;
    w->keeper = e->ticket;
  } else {
    seal(w, e->number);
  }
}

static void crash_write(ps_world *w, const ps_event *e) {
  static const ps_fault kFates[3] = {PS_WRITE_LOST, PS_WRITE_KEPT,
                                     PS_WRITE_TORN};
  ps_fault fate = kFates[ps_below(w, 3)];
  w->result->faults[fate]++;
  if (fate == PS_WRITE_KEPT) write_now(w, e);
  /* A part that is torn has no manifest, a note that is torn is the old one. */
}

void ps_disk_crash(ps_world *w, uint32_t id) {
  const ps_process *p = &w->processes[id];
  for (size_t i = 0; i < w->heap.count + w->held.count; i++) {
    const ps_event *e = i < w->heap.count ? &w->heap.items[i]
                                          : &w->held.items[i - w->heap.count];
    bool writes =
        e->kind == PS_SAVED || e->kind == PS_KEPT || e->kind == PS_SEALED;
    if (writes && p->alive && e->to == id && e->birth == p->birth)
      crash_write(w, e);
  }
}

static void loaded(host *h, const ps_event *e) {
  ps_world *w = h->w;
  ps_process *p = process_of(h);
  weir_error err = WEIR_ERROR_INIT;
  uint32_t servers = w->config.servers;
  if (!w->kept_free && disk_fails(w)) { /* reading needs no room */
    weir_ps_server_restored(p->server, e->ticket, 0, NULL, false);
    return;
  }
  if (e->number == 0) {
    p->shard = (ps_shard){.value = h->id + 1};
    weir_ps_server_restored(p->server, e->ticket, 0, NULL, true);
    return;
  }
  const ps_generation *g = w->disk[e->number];
  weir_ps_state states[PS_SERVERS];
  for (uint32_t i = 0; i < servers; i++) {
    const ps_saved *s = &g->saved[i];
    states[i] = (weir_ps_state){e->number, s->version, s->marks,
                                i == 0 ? g->ledger : NULL};
    if (!s->here) ps_wrong(w, "generation lacks server %u", i);
  }
  check_versions(w, g, e->number);
  check_sealed(w, g, e->number);
  weir_ps_ledger *ledger = NULL;
  if (weir_ps_ledger_create(weir_allocator_system(), &w->config, 0, &ledger,
                            &err) != WEIR_OK ||
      weir_ps_generation_settle(states, servers, ledger, &err) != WEIR_OK)
    ps_wrong(w, "generation %llu: %s", (ull)e->number, err.message);
  p->shard = g->saved[h->id].shard;
  p->shard.added = 0;
  memset(p->shard.share_steps, 0xff, sizeof p->shard.share_steps);
  weir_ps_server_restored(p->server, e->ticket,
                          weir_ps_generation_version(states, servers, h->id),
                          ledger, true);
  weir_ps_ledger_release(ledger);
}

/* ---- Workers */

/* Bounded: nobody who has work is more than s clocks behind. */
static void check_clocks(ps_world *w, const ps_process *p) {
  const weir_ps_worker *a = p->worker;
  for (uint32_t s = 0; s < w->config.servers; s++) {
    const ps_process *q = &w->processes[s];
    if (!q->alive || q->server->life != a->life) continue;
    if (q->server->clients[p->task.index].incarnation != a->incarnation ||
        q->server->clients[p->task.index].fenced >= a->incarnation)
      return; /* it is out, and will be told */
  }
  for (uint32_t s = 0; s < w->config.servers; s++) {
    const ps_process *q = &w->processes[s];
    if (!q->alive || q->server->life != a->life) continue;
    for (uint32_t i = 0; i < w->config.workers; i++) {
      const weir_ps_client *c = &q->server->clients[i];
      if (i == p->task.index || !c->active) continue;
      if (c->clock + w->config.staleness < a->clock)
        ps_wrong(w, "worker %u computes at clock %llu, worker %u is at %llu",
                 p->task.index, (ull)a->clock, i, (ull)c->clock);
    }
  }
}

static void worker_compute(void *self, uint64_t ticket,
                           const weir_ps_work *work) {
  host *h = self;
  ps_world *w = h->w;
  ps_process *p = process_of(h);
  if (work->run >= w->total * w->config.aggregate) {
    ps_wrong(w, "run %llu of %llu is computed", (ull)work->run,
             (ull)(w->total * w->config.aggregate));
    return;
  }
  if (w->config.mode == WEIR_PS_SYNC)
    for (uint32_t s = 0; s < w->config.servers; s++)
      if (p->pulled_version[s] != work->step)
        ps_wrong(w, "run %llu is computed on version %llu of server %u",
                 (ull)work->run, (ull)p->pulled_version[s], s);
  if (w->config.mode == WEIR_PS_BOUNDED) check_clocks(w, p);
  p->grads[work->run] = gradient_of(p->pulled, w->config.servers, work->run);
  ps_event *e = ps_later(w, h->id, PS_COMPUTED, 10000 * p->slow);
  e->ticket = ticket;
  e->number = work->run;
  e->ok = w->healed || ps_below(w, 1000000) >= w->nan_ppm;
  if (!e->ok) w->result->faults[PS_NAN]++;
  ps_push(w, *e);
}

static void worker_forget(void *self, uint64_t run) {
  host *h = self;
  process_of(h)->have[run % PS_RUNS] = false;
}

static void worker_reset(void *self) {
  host *h = self;
  ps_process *p = process_of(h);
  memset(p->have, 0, sizeof p->have);
  memset(p->pulled_version, 0xff, sizeof p->pulled_version);
}

static void worker_over(void *self, bool drained) {
  host *h = self;
  process_of(h)->ended = true;
  ps_say(h->w, "%u: over, drained %d", h->id, drained);
}

/* ---- Chiefs */

/* Another chief may have been granted a later epoch already; this one has not
 * heard of it, and changes nothing. */
static bool is_chief(const host *h) {
  const ps_process *server = &h->w->processes[0];
  return server->alive && server->server->epoch == process_of(h)->chief->epoch;
}

static void chief_running(void *self, uint64_t generation, uint64_t step) {
  host *h = self;
  ps_say(h->w, "%u: running from generation %llu, step %llu", h->id,
         (ull)generation, (ull)step);
  if (generation < h->w->acknowledged && is_chief(h))
    ps_wrong(h->w, "the job goes on from generation %llu, the last is %llu",
             (ull)generation, (ull)h->w->acknowledged);
}

static uint32_t servers_with(const ps_world *w, uint64_t run) {
  uint32_t count = 0;
  for (uint32_t s = 0; s < w->config.servers; s++)
    count += w->processes[s].shard.applied[run] != 0;
  return count;
}

static void chief_reached(void *self, uint64_t step) {
  host *h = self;
  ps_world *w = h->w;
  ps_process *p = process_of(h);
  bool here = is_chief(h);
  for (uint32_t s = 0; s < w->config.servers; s++)
    here &=
        w->processes[s].alive && w->processes[s].server->life == p->chief->life;
  ps_say(w, "%u: reached %llu", h->id, (ull)step);
  if (here && w->config.mode == WEIR_PS_SYNC &&
      w->processes[0].server->version < step)
    ps_wrong(w, "a stop rule looks at version %llu, %llu is committed",
             (ull)step, (ull)w->processes[0].server->version);
  for (uint64_t r = 0; here && r < step && w->config.mode != WEIR_PS_SYNC; r++)
    if (servers_with(w, r) == 0)
      ps_wrong(w, "a stop rule looks at step %llu, run %llu is not applied",
               (ull)step, (ull)r);
  ps_event *e = ps_later(w, h->id, PS_DECIDE, 50000);
  e->number = step;
  ps_push(w, *e);
}

static void chief_generation(void *self, uint64_t generation, bool ok) {
  host *h = self;
  ps_say(h->w, "%u: generation %llu %s", h->id, (ull)generation,
         ok ? "complete" : "given up");
  if (!ok) return;
  h->w->result->sights[PS_SAW_GENERATION]++;
  check_versions(h->w, h->w->disk[generation], generation);
  if (generation > h->w->acknowledged) h->w->acknowledged = generation;
  if (generation > h->w->sealed)
    ps_wrong(h->w, "generation %llu is told complete, it is not",
             (ull)generation);
}

static void chief_member(void *self, uint32_t worker, bool in, bool drained) {
  host *h = self;
  if (!in && h->w->processes[PS_FIRST_WORKER + worker].paused)
    h->w->result->sights[PS_SAW_PAUSED_OUT]++;
  ps_say(h->w, "%u: worker %u %s", h->id, worker,
         in        ? "joins"
         : drained ? "has left"
                   : "is out");
}

/* A later epoch has been granted to another chief. */
static bool is_replaced(const host *h) {
  const ps_process *p = process_of(h);
  for (uint64_t e = p->chief->epoch + 1; e < PS_EPOCHS; e++)
    if (h->w->owner[e] != 0 && h->w->owner[e] != p->birth) return true;
  return false;
}

/* The end that a chief tells which was replaced, and does not know it yet, is
 * not the job's: the other one goes on, and tells it again. */
static void chief_over(void *self, bool failed, uint64_t run) {
  host *h = self;
  if (is_replaced(h)) {
    process_of(h)->ended = true;
    ps_say(h->w, "%u: over, but it was replaced", h->id);
    return;
  }
  h->w->over = true;
  h->w->failed = failed;
  h->w->unsaved = weir_ps_coordinator_account(process_of(h)->chief)->unsaved;
  h->w->result->sights[PS_SAW_UNSAVED] += h->w->unsaved;
  ps_say(h->w, "%u: over, failed %d at %llu", h->id, failed, (ull)run);
}

static void chief_fenced(void *self, uint64_t epoch) {
  host *h = self;
  h->w->result->sights[PS_SAW_SECOND_EPOCH]++;
  process_of(h)->ended = true;
  ps_say(h->w, "%u: fenced by epoch %llu", h->id, (ull)epoch);
}

/* ---- Processes */

static host *make_host(ps_world *w, uint32_t id) {
  static _Thread_local host hosts[PS_PROCESSES];
  hosts[id] = (host){w, id};
  return &hosts[id];
}

static weir_status start_server(ps_world *w, host *h, weir_error *err) {
  ps_process *p = process_of(h);
  weir_ps_server_options options = {.config = w->config,
                                    .index = h->id,
                                    .limit = w->stop_at,
                                    .failpoints = {h, hit}};
  if (h->id == 0) {
    options.epoch = w->kept;
    options.chief = w->keeper;
    options.generation = w->sealed;
  }
  weir_ps_server_calls calls = {
      h,           send,           server_apply,   server_add,
      server_norm, server_finish,  server_publish, server_drop,
      server_save, server_restore, server_keep,    server_seal};
  p->shard = (ps_shard){0};
  return weir_ps_server_create(w->alloc, &options, &calls, &p->server, err);
}

static weir_status start_worker(ps_world *w, host *h, weir_error *err) {
  ps_process *p = process_of(h);
  weir_ps_worker_options options = {
      .config = w->config, .index = p->task.index, .failpoints = {h, hit}};
  weir_ps_worker_calls calls = {
      h, send, worker_compute, worker_forget, worker_reset, worker_over};
  worker_reset(h);
  return weir_ps_worker_create(w->alloc, &options, &calls, &p->worker, err);
}

static weir_status start_chief(ps_world *w, host *h, weir_error *err) {
  weir_ps_coordinator_options options = {.config = w->config,
                                         .incarnation = process_of(h)->birth,
                                         .rejoin_ns = w->rejoin_ns,
                                         .evict_ns = w->evict_ns,
                                         .final_ns = w->final_ns,
                                         .save_every = w->save_every,
                                         .failpoints = {h, hit}};
  weir_ps_coordinator_calls calls = {h,
                                     send,
                                     chief_running,
                                     chief_reached,
                                     chief_generation,
                                     chief_member,
                                     chief_over,
                                     chief_fenced};
  return weir_ps_coordinator_create(w->alloc, &options, &calls,
                                    &process_of(h)->chief, err);
}

void ps_start(ps_world *w, uint32_t id) {
  weir_error err = WEIR_ERROR_INIT;
  ps_process *p = &w->processes[id];
  host *h = make_host(w, id);
  if (w->reference[0][0] == 0) make_reference(w);
  p->alive = true;
  p->paused = p->doomed = p->ended = false;
  p->birth = ++w->births;
  p->since_ns = w->now_ns;
  p->next_tick_ns = INT64_MAX;
  ps_say(w, "%u: starts", id);
  weir_status s;
  if (id < PS_FIRST_WORKER) {
    p->task = (weir_ps_task){WEIR_PS_SERVER, id};
    s = start_server(w, h, &err);
  } else if (id < PS_FIRST_CHIEF) {
    p->task = (weir_ps_task){WEIR_PS_WORKER, id - PS_FIRST_WORKER};
    s = start_worker(w, h, &err);
  } else {
    p->task = (weir_ps_task){WEIR_PS_CHIEF, id - PS_FIRST_CHIEF};
    p->clock_ns = 0;
    p->drift_ppm = 0;
    if (w->step_ppm > 0 && !w->healed) { /* 10 % fast or slow */
      p->drift_ppm = (int32_t)ps_below(w, 200001) - 100000;
      w->result->faults[PS_CLOCK_DRIFT]++;
    }
    s = start_chief(w, h, &err);
  }
  if (s == WEIR_OK) return;
  if (strcmp(err.id, "W6001") != 0)
    ps_wrong(w, "%u does not start: %s", id, err.message);
  p->alive = false; /* tried again */
  p->back_ns = w->now_ns + 1000000;
}

static void look_at_server(ps_world *w, const weir_ps_server *server) {
  weir_ps_server_counts c = weir_ps_server_count(server);
  w->result->sights[PS_SAW_DUPLICATE] += c.duplicates;
  w->result->sights[PS_SAW_STALE] += c.stale;
  w->result->sights[PS_SAW_PARKED] += c.parked;
  w->result->sights[PS_SAW_LATE] += c.late;
}

static void look_at_worker(ps_world *w, const weir_ps_worker *worker) {
  const weir_ps_worker_counts *c = weir_ps_worker_count(worker);
  w->result->sights[PS_SAW_RESEND] += c->resent;
  w->result->sights[PS_SAW_SPARE] += c->spares;
  w->result->sights[PS_SAW_SKIPPED] += c->skipped;
  w->result->sights[PS_SAW_REJOIN] += c->resets;
}

static void look_at_chief(ps_world *w, const weir_ps_coordinator *chief) {
  const weir_ps_account *a = weir_ps_coordinator_account(chief);
  w->result->sights[PS_SAW_ROLLBACK] += a->rollbacks;
  w->result->sights[PS_SAW_PARTIAL] += a->partial;
  w->result->sights[PS_SAW_RETURNED] += a->returned;
  w->result->sights[PS_SAW_EVICTED] += a->evicted;
}

void ps_end(ps_world *w, uint32_t id) {
  ps_process *p = &w->processes[id];
  if (p->server != NULL) look_at_server(w, p->server);
  if (p->worker != NULL) look_at_worker(w, p->worker);
  if (p->chief != NULL) look_at_chief(w, p->chief);
  weir_ps_server_release(p->server);
  weir_ps_worker_release(p->worker);
  weir_ps_coordinator_release(p->chief);
  p->server = NULL;
  p->worker = NULL;
  p->chief = NULL;
  p->alive = p->paused = false;
}

/* ---- Events */

int64_t ps_clock(const ps_world *w, const ps_process *p) {
  int64_t drift = (w->now_ns - p->since_ns) / 1000000 * p->drift_ppm;
  return w->now_ns + p->clock_ns + drift;
}

static void chief_tick(ps_world *w, ps_process *p, uint32_t id) {
  if (p->chief == NULL) return;
  int64_t now = ps_clock(w, p);
  int64_t next = weir_ps_coordinator_tick(p->chief, now);
  if (next == INT64_MAX) return;
  next = w->now_ns + (next - now); /* its clock may be slow: then once more */
  if (next >= p->next_tick_ns) return;
  if (next <= w->now_ns) next = w->now_ns + 1;
  p->next_tick_ns = next;
  ps_push(w, (ps_event){
                 .at_ns = next, .kind = PS_TICK, .to = id, .birth = p->birth});
}

static void watch(ps_world *w, const ps_process *p, const ps_event *e) {
  const weir_ps_message *m = e->message;
  if (m->kind != WEIR_PS_GRANTED || p->chief == NULL) return;
  if (m->epoch >= PS_EPOCHS) {
    ps_wrong(w, "epoch %llu", (ull)m->epoch);
    return;
  }
  if (w->owner[m->epoch] != 0 && w->owner[m->epoch] != p->birth)
    ps_wrong(w, "epoch %llu has two chiefs", (ull)m->epoch);
  w->owner[m->epoch] = p->birth;
}

static void deliver(ps_world *w, ps_process *p, ps_event *e) {
  weir_ps_task from = w->processes[e->from].task;
  weir_ps_message *m = e->message;
  if (e->kind == PS_MESSAGE) {
    if (m->kind == WEIR_PS_RECORD) m->op = &e->op;
    m->ledger = e->ledger;
    watch(w, p, e);
    if (p->server != NULL) {
      if (m->kind == WEIR_PS_NORM && from.index < PS_SERVERS &&
          m->life == p->server->life) {
        p->shard.shares[from.index] = e->value;
        p->shard.share_steps[from.index] = m->step;
      }
      weir_ps_message taken = *m;
      m->data = NULL; /* the server's */
      weir_ps_server_message(p->server, from, &taken);
    } else if (p->worker != NULL) {
      if (ps_has_values(m)) {
        p->pulled[from.index] = e->value;
        p->pulled_version[from.index] = m->version;
      }
      weir_ps_worker_message(p->worker, from, m);
    } else {
      weir_ps_coordinator_message(p->chief, ps_clock(w, p), from, m);
    }
    return;
  }
  bool up = e->kind == PS_UP;
  if (p->server != NULL)
    (up ? weir_ps_server_up : weir_ps_server_lost)(p->server, from);
  else if (p->worker != NULL)
    (up ? weir_ps_worker_up : weir_ps_worker_lost)(p->worker, from);
  else
    (up ? weir_ps_coordinator_up : weir_ps_coordinator_lost)(
        p->chief, ps_clock(w, p), from);
}

/* An epoch is tried until the disk takes it. */
static void keep_again(ps_world *w, const ps_event *e) {
  ps_event *again = ps_later(w, e->to, PS_KEPT, 200000);
  again->number = e->number;
  again->ticket = e->ticket;
  ps_push(w, *again);
}

static void on_disk(ps_world *w, ps_process *p, const ps_event *e) {
  bool room = e->kind == PS_KEPT && w->kept_free;
  bool ok = e->kind == PS_SAVED ? e->ok : room || !disk_fails(w);
  if (ok) write_now(w, e);
  if (e->kind == PS_SAVED)
    weir_ps_server_saved(p->server, e->number, ok);
  else if (e->kind == PS_SEALED)
    weir_ps_server_sealed(p->server, e->number, ok);
  else if (ok)
    weir_ps_server_kept(p->server, e->number);
  else
    keep_again(w, e);
}

static void decide(ps_world *w, ps_process *p, uint64_t step) {
  uint64_t limit = step + 1 + ps_below(w, 30);
  if (limit > w->total) limit = w->total;
  if (step < w->total && ps_below(w, 8) != 0) {
    weir_ps_coordinator_go(p->chief, ps_clock(w, p), limit);
    return;
  }
  weir_ps_coordinator_stop(p->chief, ps_clock(w, p), step);
}

void ps_host_event(ps_world *w, ps_event *e) {
  ps_process *p = &w->processes[e->to];
  host h = {w, e->to};
  switch (e->kind) {
    case PS_MESSAGE:
    case PS_UP:
    case PS_LOST:
      deliver(w, p, e);
      break;
    case PS_APPLIED:
      weir_ps_server_applied(p->server, e->ticket);
      break;
    case PS_ADDED:
      weir_ps_server_added(p->server, e->ticket);
      break;
    case PS_NORMED:
      weir_ps_server_normed(p->server, e->ticket);
      break;
    case PS_FINISHED:
      weir_ps_server_finished(p->server, e->ticket);
      break;
    case PS_SAVED:
    case PS_KEPT:
    case PS_SEALED:
      on_disk(w, p, e);
      break;
    case PS_RESTORED:
      if (e->ticket == p->server->ticket) loaded(&h, e);
      break;
    case PS_COMPUTED:
      if (e->ticket == p->worker->ticket) p->have[e->number] = true;
      weir_ps_worker_computed(p->worker, e->ticket, e->ok);
      break;
    case PS_DECIDE:
      if (!p->ended) decide(w, p, e->number);
      break;
    case PS_TICK:
      p->next_tick_ns = INT64_MAX;
      break;
    case PS_LIFE:
      break;
  }
  chief_tick(w, p, e->to);
}

/* ---- The end: what is on disk */

/* The state of all machines, for the reader of a seed's course. */
void ps_dump(ps_world *w) {
  for (uint32_t i = 0; i < PS_PROCESSES; i++) {
    const ps_process *p = &w->processes[i];
    if (!p->alive) continue;
    if (p->server != NULL)
      ps_say(w, "%u: life %llu epoch %llu version %llu saving %llu held %d", i,
             (ull)p->server->life, (ull)p->server->epoch,
             (ull)p->server->version, (ull)p->server->keeper.saving,
             p->server->keeper.held);
    if (p->worker != NULL)
      ps_say(w, "%u: state %d, joined %d, ended %d, leases %zu, sent %u", i,
             weir_ps_worker_look(p->worker, NULL, NULL), p->worker->joined,
             p->ended, p->worker->leases.count, p->worker->sent_count);
    if (p->chief == NULL) continue;
    const weir_ps_ledger *l = p->chief->ledger;
    uint64_t missing = 0;
    ps_say(w,
           "%u: state %d, epoch %llu, pending %d %d, limit %llu, cursor %llu, "
           "base %llu",
           i, weir_ps_coordinator_look(p->chief, &missing),
           (ull)p->chief->epoch, p->chief->pending, p->chief->op.kind,
           (ull)l->limit, (ull)l->cursor, (ull)l->base);
    ps_say(w, "%u: missing %llu, saving %d, reached %llu, committed %llu", i,
           (ull)missing, p->chief->saving, (ull)p->chief->reached_at,
           (ull)p->chief->committed);
    for (size_t k = 0; k < l->pool_count; k++)
      ps_say(w, "   pool %llu-%llu", (ull)l->pool[k].first,
             (ull)l->pool[k].end);
    for (size_t k = 0; k < l->lease_count; k++)
      ps_say(w, "   lease %llu %llu-%llu x %u-%u of %u", (ull)l->leases[k].id,
             (ull)l->leases[k].range.first, (ull)l->leases[k].range.end,
             l->leases[k].range.k_first, l->leases[k].range.k_end,
             l->leases[k].worker);
    for (uint32_t k = 0; k < w->config.workers; k++)
      ps_say(w, "   member %u: %d inc %llu up %d asks %d wants %d lost %lld", k,
             l->members[k].state, (ull)l->members[k].incarnation,
             p->chief->seats[k].up, p->chief->seats[k].asks,
             p->chief->seats[k].wants, (long long)p->chief->seats[k].lost_ns);
  }
}

void ps_check_end(ps_world *w) {
  const ps_generation *g = w->sealed > 0 ? w->disk[w->sealed] : NULL;
  if (w->sealed < w->acknowledged)
    ps_wrong(w, "generation %llu was told complete, the last is %llu",
             (ull)w->acknowledged, (ull)w->sealed);
  if (g != NULL) check_sealed(w, g, w->sealed);
  if (w->unsaved) {
    if (g != NULL) check_versions(w, g, w->sealed);
    return; /* the state before is kept */
  }
  if (g == NULL || g->ledger == NULL || !g->ledger->over) {
    ps_wrong(w, "the job is over, its last generation %llu is not",
             (ull)w->sealed);
    return;
  }
  const weir_ps_ledger *l = g->ledger;
  if (l->failed != w->failed) ps_wrong(w, "the end is told in two ways");
  uint64_t partial = 0;
  for (uint32_t s = 0; s < w->config.servers; s++)
    if (w->config.mode == WEIR_PS_SYNC &&
        (g->saved[s].version > w->total ||
         g->saved[s].shard.value != w->reference[g->saved[s].version][s]))
      ps_wrong(w, "server %u ends with another value", s);
  if (w->failed || w->stopped) return;
  if (w->config.mode == WEIR_PS_SYNC) {
    if (g->saved[0].version != l->limit)
      ps_wrong(w, "the job ends at version %llu of %llu",
               (ull)g->saved[0].version, (ull)l->limit);
    return;
  }
  for (uint64_t r = 0; r < PS_RUNS; r++) {
    uint32_t count = 0;
    for (uint32_t s = 0; s < w->config.servers; s++) {
      uint8_t times = g->saved[s].shard.applied[r];
      count += times != 0;
      if (times > 1) ps_wrong(w, "run %llu counts %u times", (ull)r, times);
    }
    if ((count > 0) != (r < l->limit))
      ps_wrong(w, "run %llu of %llu counts at %u servers", (ull)r,
               (ull)l->limit, count);
    if (count > 0 && count < w->config.servers) partial++;
  }
  if (partial != l->partial)
    ps_wrong(w, "%llu runs are partial, the account says %llu", (ull)partial,
             (ull)l->partial);
}
