/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/dist/ps/server_internal.h"

/* Server 0's part as keeper: epochs, the ledger, generations.
 *
 * Epochs: a chief claims one and gets a number above all before it, which is on
 * disk before it is granted. From then on messages with an older one are
 * refused, so at most one chief changes the ledger. Like the fencing tokens of
 * leases (Gray and Cheriton, SOSP 1989).
 *
 * Generations: the ledger is taken first; ops wait until all servers have taken
 * their states, and an update that is under way is waited for: it writes over
 * slots, so what it began with is gone. Sync: the order "save version v" goes
 * to the others between the commits of steps v-1 and v, and links keep the
 * order, so all states are of one version. The generation counts when all
 * states are on disk and it is sealed. */

static void reply(weir_ps_server *s, weir_ps_task chief, weir_ps_message *m) {
  m->epoch = s->epoch;
  weir_ps_server_send(s, chief, m);
}

/* ---- Epochs */

static void refuse(weir_ps_server *s, weir_ps_task chief) {
  weir_ps_message m = {.kind = WEIR_PS_REFUSED};
  reply(s, chief, &m);
}

/* A new chief is granted an epoch, and so is the last one that was; one that
 * was replaced is told so. */
static void claim(weir_ps_server *s, weir_ps_task from,
                  const weir_ps_message *m) {
  weir_ps_keeper *k = &s->keeper;
  if (weir_ps_server_dies(s, WEIR_PS_FP_KEEPER_CLAIM)) return;
  if (m->epoch != 0 && m->epoch < s->epoch && m->incarnation != k->owner) {
    refuse(s, from);
    return;
  }
  if (k->claiming) {
    /* The later one is granted the later epoch. */
    k->claim_waits = true;
    k->waiter = from;
    k->wait_claim = *m;
    return;
  }
  k->claiming = true;
  k->claimant = from;
  k->owner = m->incarnation;
  k->claim_epoch = (m->seq > s->epoch ? m->seq : s->epoch) + 1;
  s->calls.keep(s->calls.self, k->claim_epoch, k->owner);
}

void weir_ps_server_kept(weir_ps_server *s, uint64_t epoch) {
  weir_ps_keeper *k = &s->keeper;
  if (s->dead || !k->claiming || epoch != k->claim_epoch) return;
  k->claiming = false;
  if (epoch > s->epoch) s->epoch = epoch;
  if (s->chief != k->claimant.index)
    refuse(s, (weir_ps_task){WEIR_PS_CHIEF, s->chief});
  s->chief = k->claimant.index;
  k->held = false; /* of an older epoch */
  if (weir_ps_server_dies(s, WEIR_PS_FP_KEEPER_GRANT)) return;
  k->ledger->epoch = s->epoch;
  weir_ps_message m = {.kind = WEIR_PS_GRANTED,
                       .generation = k->sealed,
                       .version = s->version,
                       .life = s->life,
                       .ledger = s->life != 0 ? k->ledger : NULL};
  reply(s, k->claimant, &m);
  if (k->claim_waits) {
    k->claim_waits = false;
    claim(s, k->waiter, &k->wait_claim);
  }
}

/* ---- The ledger */

static void record(weir_ps_server *s, weir_ps_task from,
                   const weir_ps_message *m) {
  weir_error err = WEIR_ERROR_INIT;
  if (weir_ps_server_dies(s, WEIR_PS_FP_KEEPER_RECORD)) return;
  bool ok = s->life != 0 && m->op != NULL &&
            weir_ps_ledger_apply(s->keeper.ledger, m->op, &err) == WEIR_OK;
  if (weir_ps_server_dies(s, WEIR_PS_FP_KEEPER_RECORDED)) return;
  weir_ps_message r = {.kind = WEIR_PS_RECORDED,
                       .seq = m->seq,
                       .lease = s->keeper.ledger->next_lease,
                       .incarnation = s->keeper.ledger->next_incarnation,
                       .ok = ok};
  reply(s, from, &r);
  weir_ps_sync_spares(s);
}

static void record_held(weir_ps_server *s) {
  weir_ps_keeper *k = &s->keeper;
  if (!k->held) return;
  k->held = false;
  k->record.op = &k->op;
  record(s, k->recorder, &k->record);
}

void weir_ps_keeper_restored(weir_ps_server *s, const weir_ps_ledger *ledger) {
  weir_ps_keeper *k = &s->keeper;
  weir_error err = WEIR_ERROR_INIT;
  weir_ps_ledger *l = k->ledger;
  k->held = false;
  if (ledger != NULL && weir_ps_ledger_copy(l, ledger, &err) != WEIR_OK) {
    s->life = 0; /* without a ledger there is no state */
    return;
  }
  if (ledger == NULL) {
    l->pool_count = l->lease_count = 0;
    l->cursor = l->base = l->partial = l->earlier = 0;
    l->limit = s->options.limit;
    l->over = l->failed = false;
    for (uint32_t i = 0; i < s->workers; i++) {
      l->members[i].state = WEIR_PS_OUT;
      l->members[i].runs = 0;
    }
  }
  l->epoch = s->epoch;
  l->life = s->life;
  l->generation = k->sealed;
  /* Above all that were given out before. */
  if (l->next_incarnation < s->life << 24) l->next_incarnation = s->life << 24;
}

void weir_ps_keeper_committed(weir_ps_server *s) {
  if (s->dead) return;
  weir_ps_message m = {.kind = WEIR_PS_COMMITTED, .version = s->version};
  reply(s, (weir_ps_task){WEIR_PS_CHIEF, s->chief}, &m);
}

/* ---- Generations */

static void end_saving(weir_ps_server *s, uint64_t generation, bool ok) {
  weir_ps_keeper *k = &s->keeper;
  k->saving = 0;
  k->sealing = false;
  /* An earlier chief asked for it, or this one before it was granted again: it
   * is not what they ask for now, which may be the last one. */
  bool asked = k->save_epoch == s->epoch;
  weir_ps_message m = {.kind = WEIR_PS_GENERATION,
                       .generation = generation,
                       .seq = asked ? k->save_seq : 0,
                       .ok = ok};
  reply(s, (weir_ps_task){WEIR_PS_CHIEF, s->chief}, &m);
  record_held(s);
}

static void refuse_save(weir_ps_server *s, const weir_ps_message *order) {
  weir_ps_message no = {.kind = WEIR_PS_GENERATION, .seq = order->seq};
  if (order->epoch == s->epoch) /* else its chief is no more */
    reply(s, (weir_ps_task){WEIR_PS_CHIEF, s->chief}, &no);
}

void weir_ps_keeper_abandon(weir_ps_server *s) {
  weir_ps_keeper *k = &s->keeper;
  if (k->order_waits) refuse_save(s, &k->order);
  k->order_waits = false;
  if (k->saving != 0 && !k->sealing) end_saving(s, k->saving, false);
}

static void begin_saving(weir_ps_server *s, const weir_ps_message *order) {
  weir_ps_keeper *k = &s->keeper;
  uint64_t others = UINT64_MAX;
  if (s->servers < 64) others = (UINT64_C(1) << s->servers) - 1;
  others &= ~UINT64_C(1);
  if (k->saving != 0 || s->life == 0 || (s->up & others) != others) {
    refuse_save(s, order);
    return;
  }
  if (!weir_ps_server_settled(s)) {
    k->order_waits = true;
    k->order = *order;
    return;
  }
  k->saving = k->next_generation++;
  k->save_epoch = s->epoch;
  k->save_seq = order->seq;
  k->saved_version = s->version;
  k->taken = 1;
  k->saved = 0;
  if (s->round.missing < s->options.config.aggregate &&
      weir_ps_server_bug(s, WEIR_PS_FP_BUG_MIXED))
    s->saving = k->saving; /* at the next version */
  else
    weir_ps_server_save(s, k->saving);
  for (uint32_t i = 1; i < s->servers; i++) {
    weir_ps_message m = {
        .kind = WEIR_PS_SAVE, .generation = k->saving, .version = s->version};
    weir_ps_server_send(s, weir_ps_server_of(i), &m);
  }
}

void weir_ps_keeper_settle(weir_ps_server *s) {
  weir_ps_keeper *k = &s->keeper;
  if (!k->order_waits) return;
  k->order_waits = false;
  if (k->order.epoch == s->epoch) begin_saving(s, &k->order);
}

void weir_ps_keeper_note(weir_ps_server *s, weir_ps_kind kind, uint32_t from,
                         const weir_ps_message *m) {
  weir_ps_keeper *k = &s->keeper;
  if (k->saving == 0 || m->generation != k->saving || k->sealing) return;
  if (!m->ok) {
    weir_ps_keeper_abandon(s);
    return;
  }
  if (kind == WEIR_PS_TAKEN) {
    k->taken |= UINT64_C(1) << from;
    if (weir_ps_set_full(k->taken, s->servers)) record_held(s);
    return;
  }
  if (weir_ps_server_dies(s, WEIR_PS_FP_KEEPER_SAVED)) return;
  k->saved |= UINT64_C(1) << from;
  if (!weir_ps_set_full(k->saved, s->servers)) return;
  k->sealing = true;
  s->calls.seal(s->calls.self, k->saving);
}

void weir_ps_server_sealed(weir_ps_server *s, uint64_t generation, bool ok) {
  weir_ps_keeper *k = &s->keeper;
  if (s->dead || !k->sealing || generation != k->saving) return;
  if (weir_ps_server_dies(s, WEIR_PS_FP_KEEPER_SEALED)) return;
  if (ok) k->sealed = k->ledger->generation = generation;
  end_saving(s, generation, ok);
}

/* ---- Messages */

void weir_ps_keeper_message(weir_ps_server *s, weir_ps_task from,
                            const weir_ps_message *m) {
  weir_ps_keeper *k = &s->keeper;
  switch (m->kind) {
    case WEIR_PS_CLAIM:
      claim(s, from, m);
      return;
    case WEIR_PS_RECORD:
      if (k->saving != 0 && !weir_ps_set_full(k->taken, s->servers) &&
          m->op != NULL) {
        k->held = true;
        k->record = *m;
        k->op = *m->op;
        k->recorder = from;
        return;
      }
      record(s, from, m);
      return;
    case WEIR_PS_SAVE:
      begin_saving(s, m);
      return;
    default:
      return;
  }
}
