/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/dist/ps/coordinator_internal.h"

/* The coordinator: claims, restores, ops, the end. coordinator.h has the
 * contract. */

static const int64_t kRejoinNs = 10 * INT64_C(1000000000);
static const int64_t kRetryNs = INT64_C(200000000);
static const int64_t kFinalNs = 60 * INT64_C(1000000000);

bool weir_ps_chief_bug(const weir_ps_coordinator *c, weir_ps_failpoint fp) {
  return weir_ps_hit(&c->options.failpoints, fp);
}

bool weir_ps_chief_dies(weir_ps_coordinator *c, weir_ps_failpoint fp) {
  if (!c->dead && weir_ps_hit(&c->options.failpoints, fp)) c->dead = true;
  return c->dead;
}

void weir_ps_chief_send(weir_ps_coordinator *c, weir_ps_task to,
                        weir_ps_message *m) {
  if (c->dead) return;
  m->epoch = c->epoch;
  c->calls.send(c->calls.self, to, m);
}

void weir_ps_chief_tell_servers(weir_ps_coordinator *c, weir_ps_message *m) {
  for (uint32_t s = 0; s < c->servers; s++)
    if ((c->up >> s & 1) != 0)
      weir_ps_chief_send(c, (weir_ps_task){WEIR_PS_SERVER, s}, m);
}

static void tell_workers(weir_ps_coordinator *c, weir_ps_kind kind) {
  for (uint32_t i = 0; i < c->workers; i++) {
    weir_ps_message m = {
        .kind = kind, .life = c->life, .version = c->committed};
    if (c->seats[i].up)
      weir_ps_chief_send(c, (weir_ps_task){WEIR_PS_WORKER, i}, &m);
  }
}

weir_status weir_ps_coordinator_create(
    const weir_allocator *alloc, const weir_ps_coordinator_options *options,
    const weir_ps_coordinator_calls *calls,
    weir_ps_coordinator **out_coordinator, weir_error *err) {
  *out_coordinator = NULL;
  WEIR_TRY(weir_ps_config_check(&options->config, err));
  weir_ps_coordinator *c = weir_alloc_array(alloc, 1, sizeof *c);
  if (c == NULL) return weir_fail_memory(err, sizeof *c);
  c->alloc = alloc;
  c->options = *options;
  if (c->options.rejoin_ns == 0) c->options.rejoin_ns = kRejoinNs;
  if (c->options.final_ns == 0) c->options.final_ns = kFinalNs;
  c->calls = *calls;
  c->servers = options->config.servers;
  c->workers = options->config.workers;
  c->mode = options->config.mode;
  c->reached_at = WEIR_PS_NONE;
  c->retry_ns = INT64_MAX;
  c->seats = weir_alloc_array(alloc, c->workers, sizeof *c->seats);
  weir_status status = WEIR_OK;
  if (c->seats == NULL)
    status = weir_fail_memory(err, c->workers * sizeof *c->seats);
  else
    status = weir_ps_ledger_create(alloc, &options->config, 0, &c->ledger, err);
  if (status != WEIR_OK) {
    weir_ps_coordinator_release(c);
    return status;
  }
  *out_coordinator = c;
  return WEIR_OK;
}

void weir_ps_coordinator_release(weir_ps_coordinator *c) {
  if (c == NULL) return;
  weir_ps_ledger_release(c->ledger);
  weir_free(c->alloc, c->seats);
  weir_free(c->alloc, c);
}

/* ---- Claims and restores */

static bool ended(const weir_ps_coordinator *c) {
  return c->dead || c->state == WEIR_PS_CHIEF_OVER ||
         c->state == WEIR_PS_CHIEF_FENCED;
}

/* What was asked of server 0 is not answered any more. */
static void forget_asked(weir_ps_coordinator *c) {
  bool was_saving = c->saving;
  c->pending = c->saving = c->final_save = false;
  c->retry_ns = INT64_MAX;
  if (was_saving) c->calls.generation(c->calls.self, 0, false);
}

static void claim(weir_ps_coordinator *c) {
  c->state = WEIR_PS_CHIEF_CLAIMS;
  forget_asked(c);
  if ((c->up & 1) != 0) {
    weir_ps_message m = {.kind = WEIR_PS_CLAIM,
                         .incarnation = c->options.incarnation,
                         .seq = c->options.epoch};
    weir_ps_chief_send(c, (weir_ps_task){WEIR_PS_SERVER, 0}, &m);
  }
}

static void run(weir_ps_coordinator *c) {
  bool rolled_back = c->ran_life != c->life;
  if (weir_ps_chief_dies(c, WEIR_PS_FP_CHIEF_RUNNING)) return;
  c->state = c->ledger->over ? WEIR_PS_CHIEF_ENDS : WEIR_PS_CHIEF_RUNS;
  c->retry_ns = INT64_MAX;
  c->committed_ns = c->ran_ns = c->now_ns;
  if (rolled_back) {
    c->account.rollbacks += c->ran_life != 0;
    c->reached_at = WEIR_PS_NONE;
    c->stop = c->stop && c->stop_kept;
    c->failed = false;
    c->new_limit = c->final_ns = 0;
  }
  c->ran_life = c->life;
  c->saved_at = c->mode == WEIR_PS_SYNC ? c->ledger->base : c->ledger->cursor;
  weir_ps_chief_seat_all(c);
  tell_workers(c, WEIR_PS_EPOCH);
  if (rolled_back) c->calls.running(c->calls.self, c->generation, c->saved_at);
}

static void tell_restore(weir_ps_coordinator *c, uint32_t server) {
  weir_ps_message m = {.kind = WEIR_PS_RESTORE, .generation = c->generation};
  if ((c->up >> server & 1) != 0)
    weir_ps_chief_send(c, (weir_ps_task){WEIR_PS_SERVER, server}, &m);
}

static void restore_all(weir_ps_coordinator *c) {
  if (weir_ps_chief_dies(c, WEIR_PS_FP_CHIEF_RESTORE)) return;
  c->state = WEIR_PS_CHIEF_RESTORES;
  c->restored = 0;
  for (uint32_t s = 0; s < c->servers; s++) tell_restore(c, s);
}

static void on_granted(weir_ps_coordinator *c, const weir_ps_message *m) {
  weir_error err = WEIR_ERROR_INIT;
  if (m->epoch <= c->epoch) return; /* of several claims the last counts */
  if (weir_ps_chief_dies(c, WEIR_PS_FP_CHIEF_GRANTED)) return;
  forget_asked(c);
  c->epoch = m->epoch;
  c->generation = m->generation;
  c->life = 0;
  if (m->ledger != NULL) {
    if (weir_ps_ledger_copy(c->ledger, m->ledger, &err) != WEIR_OK) {
      c->state = WEIR_PS_CHIEF_CLAIMS;
      c->retry_ns = c->now_ns + kRetryNs;
      return;
    }
    c->life = m->life;
    c->granted = true;
    c->committed = m->version;
  }
  c->state = WEIR_PS_CHIEF_LOOKS;
  c->looked = c->mismatched = 0;
  weir_ps_message look = {.kind = WEIR_PS_EPOCH, .life = c->life};
  weir_ps_chief_tell_servers(c, &look);
}

static void note_restored(weir_ps_coordinator *c, uint32_t server) {
  c->restored |= UINT64_C(1) << server;
  if (!weir_ps_set_full(c->restored, c->servers)) return;
  c->life = c->epoch;
  c->granted = true;
  c->committed = c->ledger->base;
  run(c);
}

static void on_state(weir_ps_coordinator *c, uint32_t server,
                     const weir_ps_message *m) {
  uint64_t bit = UINT64_C(1) << server;
  if (m->epoch != c->epoch) return;
  bool right = m->life != 0 && m->life == c->life;
  if (c->state == WEIR_PS_CHIEF_LOOKS) {
    c->looked |= bit;
    if (!right) c->mismatched |= bit;
    if (!weir_ps_set_full(c->looked, c->servers)) return;
    if (c->mismatched != 0)
      restore_all(c);
    else
      run(c);
  } else if (c->state == WEIR_PS_CHIEF_RESTORES) {
    if (m->life != c->epoch)
      tell_restore(c, server);
    else if (server != 0) /* its answer was lost with a link */
      note_restored(c, server);
  } else if (!right) {
    claim(c); /* it has lost its state: a new epoch, and all go back */
  } else {
    for (uint32_t i = 0; i < c->workers; i++) weir_ps_chief_fence(c, i, server);
  }
}

static void on_restored(weir_ps_coordinator *c, uint32_t server,
                        const weir_ps_message *m) {
  weir_error err = WEIR_ERROR_INIT;
  if (c->state != WEIR_PS_CHIEF_RESTORES || m->epoch != c->epoch ||
      m->life != c->epoch)
    return;
  bool ok = m->ok;
  if (ok && server == 0)
    ok = m->ledger != NULL &&
         weir_ps_ledger_copy(c->ledger, m->ledger, &err) == WEIR_OK;
  if (!ok) {
    c->retry_ns = c->now_ns + kRetryNs;
    return;
  }
  note_restored(c, server);
}

/* ---- Ops, generations, the end */

static uint64_t pool_runs(const weir_ps_ledger *l) {
  uint64_t runs = 0;
  for (size_t i = 0; i < l->pool_count; i++)
    runs += weir_ps_range_runs(&l->pool[i]);
  return runs;
}

static void on_recorded(weir_ps_coordinator *c, const weir_ps_message *m) {
  weir_error err = WEIR_ERROR_INIT;
  if (!c->pending || m->seq != c->op_seq || m->epoch != c->epoch) return;
  if (weir_ps_chief_dies(c, WEIR_PS_FP_CHIEF_RECORDED)) return;
  c->pending = false;
  uint64_t before = pool_runs(c->ledger);
  if (!m->ok || weir_ps_ledger_apply(c->ledger, &c->op, &err) != WEIR_OK ||
      c->ledger->next_lease != m->lease ||
      c->ledger->next_incarnation != m->incarnation) {
    claim(c); /* the copies differ: take server 0's */
    return;
  }
  uint64_t after = pool_runs(c->ledger);
  weir_ps_chief_act(c, &c->op, after > before ? after - before : 0);
  if (c->op.kind == WEIR_PS_OP_OVER) c->state = WEIR_PS_CHIEF_ENDS;
}

static void begin_save(weir_ps_coordinator *c) {
  c->saving = true;
  c->save_wanted = false;
  c->final_save = c->state == WEIR_PS_CHIEF_ENDS;
  c->saved_at = c->mode == WEIR_PS_SYNC ? c->committed : c->ledger->cursor;
  weir_ps_message m = {.kind = WEIR_PS_SAVE, .seq = ++c->save_seq};
  weir_ps_chief_send(c, (weir_ps_task){WEIR_PS_SERVER, 0}, &m);
}

static void on_generation(weir_ps_coordinator *c, const weir_ps_message *m) {
  if (!c->saving || m->epoch != c->epoch || m->seq != c->save_seq) return;
  bool last = c->final_save;
  c->saving = c->final_save = false;
  if (m->ok) {
    c->account.generations++;
    c->generation = c->ledger->generation = m->generation;
  }
  c->calls.generation(c->calls.self, m->generation, m->ok);
  if (!last) return;
  if (!m->ok && c->final_ns == 0) c->final_ns = c->now_ns;
  if (!m->ok && c->now_ns - c->final_ns < c->options.final_ns) {
    c->retry_ns = c->now_ns + kRetryNs;
    return;
  }
  c->account.unsaved = !m->ok;
  if (weir_ps_chief_dies(c, WEIR_PS_FP_CHIEF_OVER)) return;
  c->state = WEIR_PS_CHIEF_OVER;
  tell_workers(c, WEIR_PS_OVER);
  c->calls.over(c->calls.self, c->ledger->failed, c->failed_run);
}

static bool has_reached(const weir_ps_coordinator *c) {
  const weir_ps_ledger *l = c->ledger;
  if (weir_ps_chief_bug(c, WEIR_PS_FP_BUG_STOP) && l->cursor >= l->limit &&
      (c->mode != WEIR_PS_SYNC || l->base + 1 >= l->limit))
    return true; /* dealt, but not committed */
  return weir_ps_ledger_done(l);
}

/* Begins all that can be begun. */
static void work(weir_ps_coordinator *c) {
  if (ended(c)) return;
  bool runs = c->state == WEIR_PS_CHIEF_RUNS;
  for (uint32_t i = 0; i < c->workers && runs; i++)
    if (c->seats[i].asks) weir_ps_chief_greet(c, i);
  if (runs && !c->pending && weir_ps_chief_choose(c, &c->op)) {
    if (weir_ps_chief_dies(c, WEIR_PS_FP_CHIEF_PROPOSE)) return;
    c->pending = true;
    weir_ps_message m = {
        .kind = WEIR_PS_RECORD, .seq = ++c->op_seq, .op = &c->op};
    weir_ps_chief_send(c, (weir_ps_task){WEIR_PS_SERVER, 0}, &m);
  }
  uint64_t at = c->mode == WEIR_PS_SYNC ? c->committed : c->ledger->cursor;
  bool due = c->save_wanted || (c->options.save_every > 0 &&
                                at >= c->saved_at + c->options.save_every);
  if (runs && !c->saving && due) begin_save(c);
  if (c->state == WEIR_PS_CHIEF_ENDS && !c->saving && c->retry_ns == INT64_MAX)
    begin_save(c);
  if (runs && !c->pending && c->reached_at != c->ledger->limit &&
      has_reached(c)) {
    if (weir_ps_chief_dies(c, WEIR_PS_FP_CHIEF_REACHED)) return;
    c->reached_at = c->ledger->limit;
    c->calls.reached(c->calls.self, c->ledger->limit);
  }
}

/* ---- Events */

void weir_ps_coordinator_up(weir_ps_coordinator *c, int64_t now_ns,
                            weir_ps_task peer) {
  c->now_ns = now_ns;
  if (peer.role == WEIR_PS_WORKER && peer.index < c->workers) {
    c->seats[peer.index].up = true;
    c->seats[peer.index].lost_ns = now_ns; /* until it has joined */
    bool over = c->state == WEIR_PS_CHIEF_OVER;
    weir_ps_message m = {.kind = over ? WEIR_PS_OVER : WEIR_PS_EPOCH,
                         .life = c->life,
                         .version = c->committed};
    if (over || c->state == WEIR_PS_CHIEF_RUNS ||
        c->state == WEIR_PS_CHIEF_ENDS)
      weir_ps_chief_send(c, peer, &m);
  }
  if (peer.role != WEIR_PS_SERVER || peer.index >= c->servers || ended(c))
    return;
  c->up |= UINT64_C(1) << peer.index;
  if (peer.index == 0) {
    claim(c);
  } else if (c->state != WEIR_PS_CHIEF_CLAIMS) {
    weir_ps_message m = {.kind = WEIR_PS_EPOCH, .life = c->life};
    weir_ps_chief_send(c, peer, &m);
  }
}

void weir_ps_coordinator_lost(weir_ps_coordinator *c, int64_t now_ns,
                              weir_ps_task peer) {
  c->now_ns = now_ns;
  if (peer.role == WEIR_PS_WORKER && peer.index < c->workers) {
    weir_ps_seat *seat = &c->seats[peer.index];
    seat->up = seat->asks = seat->wants = false;
    seat->lost_ns = now_ns;
  }
  if (peer.role != WEIR_PS_SERVER || peer.index >= c->servers) return;
  c->up &= ~(UINT64_C(1) << peer.index);
  c->restored &= ~(UINT64_C(1) << peer.index);
  c->looked &= ~(UINT64_C(1) << peer.index);
  if (peer.index == 0 && !ended(c)) claim(c);
}

static void on_server(weir_ps_coordinator *c, uint32_t from,
                      const weir_ps_message *m) {
  switch (m->kind) {
    case WEIR_PS_GRANTED:
      if (from == 0) on_granted(c, m);
      return;
    case WEIR_PS_REFUSED:
      if (m->epoch <= c->epoch) return;
      c->state = WEIR_PS_CHIEF_FENCED;
      c->calls.fenced(c->calls.self, m->epoch);
      return;
    case WEIR_PS_STATE:
      on_state(c, from, m);
      return;
    case WEIR_PS_RESTORED:
      on_restored(c, from, m);
      return;
    case WEIR_PS_RECORDED:
      if (from == 0) on_recorded(c, m);
      return;
    case WEIR_PS_GENERATION:
      if (from == 0) on_generation(c, m);
      return;
    case WEIR_PS_COMMITTED:
      if (from != 0 || m->epoch != c->epoch || m->version <= c->committed)
        return;
      c->committed = m->version;
      c->committed_ns = c->now_ns;
      return;
    case WEIR_PS_FENCED:
      weir_ps_chief_fenced(c, from, m);
      return;
    default:
      return;
  }
}

void weir_ps_coordinator_message(weir_ps_coordinator *c, int64_t now_ns,
                                 weir_ps_task from, const weir_ps_message *m) {
  c->now_ns = now_ns;
  if (ended(c)) return;
  if (from.role == WEIR_PS_SERVER && from.index < c->servers)
    on_server(c, from.index, m);
  else if (from.role == WEIR_PS_WORKER && from.index < c->workers)
    weir_ps_chief_worker(c, from.index, m);
  work(c);
}

int64_t weir_ps_coordinator_tick(weir_ps_coordinator *c, int64_t now_ns) {
  c->now_ns = now_ns;
  if (ended(c)) return INT64_MAX;
  if (now_ns >= c->retry_ns) {
    c->retry_ns = INT64_MAX;
    if (c->state == WEIR_PS_CHIEF_CLAIMS) claim(c);
    for (uint32_t s = 0; s < c->servers; s++)
      if (c->state == WEIR_PS_CHIEF_RESTORES && (c->restored >> s & 1) == 0)
        tell_restore(c, s);
  }
  weir_ps_chief_evict(c);
  work(c);
  int64_t next = weir_ps_chief_deadline(c);
  return next < c->retry_ns ? next : c->retry_ns;
}

void weir_ps_coordinator_go(weir_ps_coordinator *c, int64_t now_ns,
                            uint64_t limit) {
  c->now_ns = now_ns;
  if (limit > c->new_limit) c->new_limit = limit;
  work(c);
}

void weir_ps_coordinator_stop(weir_ps_coordinator *c, int64_t now_ns,
                              uint64_t step) {
  c->now_ns = now_ns;
  if (step == WEIR_PS_NONE) c->stop = c->stop_kept = true;
  if (step == c->reached_at) c->stop = true;
  work(c);
}

void weir_ps_coordinator_save(weir_ps_coordinator *c, int64_t now_ns) {
  c->now_ns = now_ns;
  c->save_wanted = true;
  work(c);
}

/* ---- Looks */

weir_ps_chief_state weir_ps_coordinator_look(const weir_ps_coordinator *c,
                                             uint64_t *servers) {
  uint64_t all =
      c->servers == 64 ? UINT64_MAX : (UINT64_C(1) << c->servers) - 1;
  if (servers != NULL) {
    *servers = c->state == WEIR_PS_CHIEF_CLAIMS     ? 1
               : c->state == WEIR_PS_CHIEF_LOOKS    ? all & ~c->looked
               : c->state == WEIR_PS_CHIEF_RESTORES ? all & ~c->restored
                                                    : 0;
  }
  return c->state;
}

const weir_ps_ledger *weir_ps_coordinator_ledger(const weir_ps_coordinator *c) {
  return c->granted ? c->ledger : NULL;
}

uint64_t weir_ps_coordinator_epoch(const weir_ps_coordinator *c) {
  return c->epoch;
}

uint64_t weir_ps_coordinator_life(const weir_ps_coordinator *c) {
  return c->life;
}

const weir_ps_account *weir_ps_coordinator_account(
    const weir_ps_coordinator *c) {
  return &c->account;
}

uint64_t weir_ps_coordinator_share(const weir_ps_coordinator *c,
                                   uint32_t worker) {
  return worker < c->workers ? c->seats[worker].share : 0;
}
