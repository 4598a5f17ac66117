/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "runtime/dist/ps/server_internal.h"

/* The server: which message is whose, pulls, restores. server.h has the
 * contract. */

bool weir_ps_server_bug(const weir_ps_server *s, weir_ps_failpoint fp) {
  return weir_ps_hit(&s->options.failpoints, fp);
}

bool weir_ps_server_dies(weir_ps_server *s, weir_ps_failpoint fp) {
  if (!s->dead && weir_ps_hit(&s->options.failpoints, fp)) s->dead = true;
  return s->dead;
}

void weir_ps_server_send(weir_ps_server *s, weir_ps_task to,
                         weir_ps_message *m) {
  if (s->dead) return;
  if (to.role != WEIR_PS_CHIEF) m->life = s->life;
  s->calls.send(s->calls.self, to, m);
}

void weir_ps_server_drop(weir_ps_server *s, void *data) {
  if (data != NULL) s->calls.drop(s->calls.self, data);
}

static weir_status make_tables(weir_ps_server *s, weir_error *err) {
  const weir_ps_config *c = &s->options.config;
  uint32_t window = c->window > 0 ? c->window : 1;
  uint32_t n = c->aggregate;
  bool sync = s->mode == WEIR_PS_SYNC;
  s->queue_capacity = sync ? 1 : s->workers * window;
  s->marks = weir_alloc_array(s->alloc, s->workers, sizeof *s->marks);
  s->clients = weir_alloc_array(s->alloc, s->workers, sizeof *s->clients);
  s->queue = weir_alloc_array(s->alloc, s->queue_capacity, sizeof *s->queue);
  s->round.push = weir_alloc_array(s->alloc, n, sizeof *s->round.push);
  s->round.here = weir_alloc_array(s->alloc, n, sizeof *s->round.here);
  s->round.taken = weir_alloc_array(s->alloc, n, sizeof *s->round.taken);
  s->round.last = weir_alloc_array(s->alloc, n, sizeof *s->round.last);
  if (s->marks == NULL || s->clients == NULL || s->queue == NULL ||
      s->round.push == NULL || s->round.here == NULL ||
      s->round.taken == NULL || s->round.last == NULL)
    return weir_fail_memory(err, s->workers * sizeof *s->clients);
  if (s->index > 0) return WEIR_OK;
  return weir_ps_ledger_create(s->alloc, c, s->options.limit, &s->keeper.ledger,
                               err);
}

weir_status weir_ps_server_create(const weir_allocator *alloc,
                                  const weir_ps_server_options *options,
                                  const weir_ps_server_calls *calls,
                                  weir_ps_server **out_server,
                                  weir_error *err) {
  *out_server = NULL;
  WEIR_TRY(weir_ps_config_check(&options->config, err));
  if (options->index >= options->config.servers)
    return weir_fail(err, WEIR_W7090, NULL, "server %u of %u", options->index,
                     options->config.servers);
  weir_ps_server *s = weir_alloc_array(alloc, 1, sizeof *s);
  if (s == NULL) return weir_fail_memory(err, sizeof *s);
  s->alloc = alloc;
  s->options = *options;
  s->calls = *calls;
  s->workers = options->config.workers;
  s->servers = options->config.servers;
  s->index = options->index;
  s->mode = options->config.mode;
  s->epoch = options->epoch;
  s->keeper.sealed = options->generation;
  s->keeper.owner = options->chief;
  s->keeper.next_generation = options->generation + 1;
  s->round.missing = options->config.aggregate;
  weir_status status = make_tables(s, err);
  if (status != WEIR_OK) {
    weir_ps_server_release(s);
    return status;
  }
  *out_server = s;
  return WEIR_OK;
}

void weir_ps_server_release(weir_ps_server *s) {
  if (s == NULL) return;
  if (s->queue != NULL) weir_ps_async_clear(s);
  if (s->round.push != NULL && s->round.here != NULL) weir_ps_sync_clear(s);
  weir_ps_ledger_release(s->keeper.ledger);
  weir_free(s->alloc, s->marks);
  weir_free(s->alloc, s->clients);
  weir_free(s->alloc, s->queue);
  weir_free(s->alloc, s->round.push);
  weir_free(s->alloc, s->round.here);
  weir_free(s->alloc, s->round.taken);
  weir_free(s->alloc, s->round.last);
  weir_free(s->alloc, s);
}

/* ---- Pulls */

static bool must_wait(const weir_ps_server *s, const weir_ps_message *pull) {
  if (s->mode == WEIR_PS_SYNC) return s->version < pull->step;
  if (s->mode == WEIR_PS_ASYNC) return false;
  if (s->marks[pull->worker].seq < pull->seq) return true; /* own writes */
  return weir_ps_bounded_behind(s, pull) != UINT32_MAX;
}

static void answer(weir_ps_server *s, const weir_ps_message *pull,
                   bool values) {
  weir_ps_message m = {.kind = WEIR_PS_PULLED,
                       .worker = pull->worker,
                       .incarnation = pull->incarnation,
                       .request = pull->request,
                       .clock = pull->clock,
                       .version = s->version,
                       .newer = values && pull->version != s->version,
                       .ok = pull->version == WEIR_PS_NONE};
  weir_ps_server_send(s, (weir_ps_task){WEIR_PS_WORKER, pull->worker}, &m);
}

static void on_pull(weir_ps_server *s, const weir_ps_message *m) {
  weir_ps_client *c = &s->clients[m->worker];
  c->pull = *m;
  bool enters = s->mode == WEIR_PS_BOUNDED && m->clock == WEIR_PS_NONE;
  if (s->mode == WEIR_PS_BOUNDED) weir_ps_bounded_enter(s, &c->pull);
  c->parked = !enters && must_wait(s, &c->pull);
  if (c->parked)
    s->counts.parked++;
  else
    answer(s, &c->pull, !enters);
  if (s->mode == WEIR_PS_BOUNDED) weir_ps_server_wake(s);
}

bool weir_ps_server_pulls(weir_ps_server *s, const weir_ps_message *push) {
  weir_ps_client *c = &s->clients[push->worker];
  if (push->incarnation != c->incarnation || push->incarnation <= c->fenced)
    return false; /* it is out: nobody waits for it */
  c->pull = (weir_ps_message){.kind = WEIR_PS_PULL,
                              .worker = push->worker,
                              .incarnation = push->incarnation,
                              .request = push->request,
                              .seq = push->seq,
                              .version = WEIR_PS_NONE,
                              .clock = push->clock + 1};
  if (s->mode == WEIR_PS_BOUNDED) weir_ps_bounded_enter(s, &c->pull);
  c->parked = must_wait(s, &c->pull);
  if (c->parked) s->counts.parked++;
  return !c->parked;
}

void weir_ps_server_wake(weir_ps_server *s) {
  for (uint32_t i = 0; i < s->workers && !s->dead; i++) {
    weir_ps_client *c = &s->clients[i];
    if (!c->parked || must_wait(s, &c->pull)) continue;
    c->parked = false;
    answer(s, &c->pull, true);
  }
}

/* ---- Messages of workers */

static void send_mark(weir_ps_server *s, const weir_ps_message *m) {
  weir_ps_message reply = {.kind = WEIR_PS_MARK,
                           .worker = m->worker,
                           .incarnation = m->incarnation,
                           .seq = s->marks[m->worker].seq};
  weir_ps_server_send(s, (weir_ps_task){WEIR_PS_WORKER, m->worker}, &reply);
}

/* A push of a step that nobody could have pulled, or of another run than its
 * step and number say, is no worker's of this job. */
static bool fits(const weir_ps_server *s, const weir_ps_message *m) {
  uint32_t n = s->options.config.aggregate;
  if (m->kind != WEIR_PS_PUSH || s->mode != WEIR_PS_SYNC) return true;
  return m->k < n && m->step <= s->version && m->run / n == m->step &&
         m->run % n == m->k;
}

/* Nobody speaks for another worker: its slot is that of its link. */
static void on_worker(weir_ps_server *s, uint32_t from,
                      const weir_ps_message *m) {
  bool right =
      m->life == s->life || weir_ps_server_bug(s, WEIR_PS_FP_BUG_OLD_EPOCH);
  if (!right || s->life == 0 || m->worker != from || from >= s->workers ||
      !fits(s, m) || !weir_ps_async_knows(s, m)) {
    s->counts.refused++;
    weir_ps_server_drop(s, m->data);
    return;
  }
  weir_ps_client *c = &s->clients[m->worker];
  switch (m->kind) {
    case WEIR_PS_PUSH:
      if (m->life != s->life) c->received = m->seq - 1; /* planted */
      if (s->mode == WEIR_PS_SYNC)
        weir_ps_sync_push(s, m);
      else
        weir_ps_async_push(s, m);
      return;
    case WEIR_PS_PULL:
      on_pull(s, m);
      break;
    case WEIR_PS_ASK:
      send_mark(s, m);
      break;
    case WEIR_PS_REST:
      c->active = c->parked = false;
      weir_ps_server_wake(s);
      break;
    case WEIR_PS_SPARE:
      c->spare = s->index == 0 && s->mode == WEIR_PS_SYNC;
      c->spare_step = m->step;
      weir_ps_sync_spares(s);
      break;
    default:
      break;
  }
  weir_ps_server_drop(s, m->data);
}

/* ---- Messages of the chief */

static void send_chief(weir_ps_server *s, weir_ps_task chief,
                       weir_ps_message *m) {
  m->epoch = s->epoch;
  m->version = s->version;
  weir_ps_server_send(s, chief, m);
}

static void begin_restore(weir_ps_server *s, weir_ps_task from,
                          const weir_ps_message *m) {
  if (weir_ps_server_dies(s, WEIR_PS_FP_SERVER_RESTORE)) return;
  if (s->life == m->epoch && s->life != 0) { /* told twice */
    weir_ps_message reply = {
        .kind = WEIR_PS_RESTORED, .life = s->life, .ok = true};
    if (s->index == 0) reply.ledger = s->keeper.ledger;
    send_chief(s, from, &reply);
    return;
  }
  if (s->restoring == m->epoch) return;
  if (s->index == 0) weir_ps_keeper_abandon(s);
  weir_ps_async_clear(s);
  weir_ps_sync_clear(s);
  s->life = 0;
  s->saving = s->late_save = 0;
  s->restoring = m->epoch;
  memset(s->marks, 0, s->workers * sizeof *s->marks);
  memset(s->clients, 0, s->workers * sizeof *s->clients);
  s->calls.restore(s->calls.self, ++s->ticket, m->generation);
}

void weir_ps_server_restored(weir_ps_server *s, uint64_t ticket,
                             uint64_t version, const weir_ps_ledger *ledger,
                             bool ok) {
  if (s->dead || ticket != s->ticket || s->restoring == 0) return;
  uint64_t epoch = s->restoring;
  weir_ps_message reply = {.kind = WEIR_PS_RESTORED, .life = epoch, .ok = ok};
  s->restoring = 0;
  if (ok) {
    s->life = epoch;
    s->version = version;
    if (s->index == 0) {
      weir_ps_keeper_restored(s, ledger);
      reply.ledger = s->keeper.ledger;
      reply.ok = s->life != 0;
    }
  }
  send_chief(s, (weir_ps_task){WEIR_PS_CHIEF, s->chief}, &reply);
}

static void on_chief(weir_ps_server *s, weir_ps_task from,
                     const weir_ps_message *m) {
  if (m->kind != WEIR_PS_CLAIM && m->epoch < s->epoch) {
    weir_ps_message reply = {.kind = WEIR_PS_REFUSED};
    send_chief(s, from, &reply);
    return;
  }
  if (m->kind != WEIR_PS_CLAIM) {
    s->epoch = m->epoch;
    s->chief = from.index;
  }
  weir_ps_message state = {.kind = WEIR_PS_STATE, .life = s->life};
  switch (m->kind) {
    case WEIR_PS_EPOCH:
      send_chief(s, from, &state);
      break;
    case WEIR_PS_RESTORE:
      begin_restore(s, from, m);
      break;
    case WEIR_PS_FENCE:
      if (m->worker < s->workers && s->life != 0) weir_ps_async_fence(s, m);
      break;
    default:
      if (s->index == 0) weir_ps_keeper_message(s, from, m);
      break;
  }
}

/* A server's part of a generation. Sync: one version on all servers, and this
 * one may have gone on to the next. */
static void take(weir_ps_server *s, uint64_t generation, bool ok) {
  weir_ps_message taken = {.kind = WEIR_PS_TAKEN,
                           .generation = generation,
                           .version = s->version,
                           .ok = ok};
  if (ok) weir_ps_server_save(s, generation);
  weir_ps_server_send(s, weir_ps_server_of(0), &taken);
}

static void on_save(weir_ps_server *s, const weir_ps_message *m) {
  bool settled = weir_ps_server_settled(s);
  if (s->mode == WEIR_PS_SYNC)
    take(s, m->generation, settled && m->version == s->version);
  else if (settled)
    take(s, m->generation, true);
  else
    s->late_save = m->generation;
}

bool weir_ps_server_settled(const weir_ps_server *s) {
  if (!weir_ps_writes_over(&s->options.config)) return true;
  if (s->mode != WEIR_PS_SYNC) return !s->applying;
  return s->round.phase != WEIR_PS_FINISHES &&
         s->round.phase != WEIR_PS_IS_READY;
}

void weir_ps_server_settle(weir_ps_server *s) {
  uint64_t generation = s->late_save;
  s->late_save = 0;
  if (generation != 0) take(s, generation, true);
  if (s->index == 0) weir_ps_keeper_settle(s);
}

static void on_server(weir_ps_server *s, uint32_t from,
                      const weir_ps_message *m) {
  if (m->life != s->life || s->life == 0) {
    s->counts.refused++;
    return;
  }
  switch (m->kind) {
    case WEIR_PS_SAVE:
      if (from == 0) on_save(s, m);
      return;
    case WEIR_PS_TAKEN:
    case WEIR_PS_SAVED:
      if (s->index == 0) weir_ps_keeper_note(s, m->kind, from, m);
      return;
    default:
      if (s->mode == WEIR_PS_SYNC) weir_ps_sync_message(s, from, m);
      return;
  }
}

void weir_ps_server_message(weir_ps_server *s, weir_ps_task from,
                            const weir_ps_message *m) {
  if (s->dead) return weir_ps_server_drop(s, m->data);
  if (from.role == WEIR_PS_WORKER) {
    on_worker(s, from.index, m);
    return;
  }
  if (from.role == WEIR_PS_CHIEF)
    on_chief(s, from, m);
  else if (from.index < s->servers)
    on_server(s, from.index, m);
  weir_ps_server_drop(s, m->data);
}

/* ---- Links, saves, looks */

void weir_ps_server_up(weir_ps_server *s, weir_ps_task peer) {
  if (peer.role != WEIR_PS_SERVER || peer.index >= s->servers) return;
  s->up |= UINT64_C(1) << peer.index;
  if (s->mode == WEIR_PS_SYNC && s->life != 0) weir_ps_sync_up(s, peer.index);
}

void weir_ps_server_lost(weir_ps_server *s, weir_ps_task peer) {
  if (peer.role == WEIR_PS_SERVER && peer.index < s->servers) {
    s->up &= ~(UINT64_C(1) << peer.index);
    if (s->index == 0 && !s->dead) weir_ps_keeper_abandon(s);
  }
  if (peer.role == WEIR_PS_WORKER && peer.index < s->workers) {
    s->clients[peer.index].parked = false;
    s->clients[peer.index].spare = false;
  }
}

void weir_ps_server_save(weir_ps_server *s, uint64_t generation) {
  if (weir_ps_server_dies(s, WEIR_PS_FP_SERVER_SAVE)) return;
  bool bare = weir_ps_server_bug(s, WEIR_PS_FP_BUG_NO_MARK);
  weir_ps_state state = {generation, s->version, bare ? NULL : s->marks,
                         s->index == 0 ? s->keeper.ledger : NULL};
  s->calls.save(s->calls.self, &state);
}

void weir_ps_server_saved(weir_ps_server *s, uint64_t generation, bool ok) {
  if (s->dead) return;
  weir_ps_message m = {.kind = WEIR_PS_SAVED,
                       .generation = generation,
                       .version = s->version,
                       .ok = ok};
  if (s->index == 0)
    weir_ps_keeper_note(s, WEIR_PS_SAVED, 0, &m);
  else
    weir_ps_server_send(s, weir_ps_server_of(0), &m);
}

weir_ps_server_counts weir_ps_server_count(const weir_ps_server *s) {
  weir_ps_server_counts counts = s->counts;
  counts.version = s->version;
  counts.life = s->life;
  counts.epoch = s->epoch;
  return counts;
}

weir_ps_wait weir_ps_server_wait(const weir_ps_server *s, uint32_t worker) {
  weir_ps_wait wait = {.worker = UINT32_MAX};
  if (worker >= s->workers || !s->clients[worker].parked) return wait;
  wait.parked = true;
  wait.step = s->version;
  if (s->mode == WEIR_PS_BOUNDED)
    wait.worker = weir_ps_bounded_behind(s, &s->clients[worker].pull);
  while (s->mode == WEIR_PS_SYNC && wait.k + 1 < s->options.config.aggregate &&
         s->round.here[wait.k])
    wait.k++;
  return wait;
}
