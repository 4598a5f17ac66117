/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/ps/generation.h"

/* Going on from a generation: generation.h says why it is sound. */

/* The highest mark of a worker's incarnation over all servers, and the number
 * of its pushes that some servers have and others do not. */
static weir_ps_op marks_of(const weir_ps_state *states, uint32_t count,
                           uint32_t worker, uint64_t incarnation) {
  weir_ps_op op = {.kind = WEIR_PS_OP_RESOLVE, .worker = worker};
  uint64_t low = UINT64_MAX, high = 0;
  for (uint32_t s = 0; s < count; s++) {
    const weir_ps_mark *m = &states[s].marks[worker];
    uint64_t seq = m->incarnation == incarnation ? m->seq : 0;
    if (seq < low) low = seq;
    if (seq <= high) continue;
    high = seq;
    op.lease = m->lease;
    op.run = m->run;
  }
  op.partial = high - (low < high ? low : high);
  return op;
}

/* The runs that were dealt do not depend on who was there: members of slots
 * that the new job does not have are resolved in a ledger of the old size. */
weir_status weir_ps_generation_settle(const weir_ps_state *states,
                                      uint32_t count, weir_ps_ledger *ledger,
                                      weir_error *err) {
  if (count == 0 || count > WEIR_PS_SERVERS || states[0].ledger == NULL)
    return weir_fail(err, WEIR_W7091, NULL, "a generation without a ledger");
  const weir_ps_ledger *src = states[0].ledger;
  const weir_ps_config *want = &ledger->config;
  bool sync = src->config.mode == WEIR_PS_SYNC;
  for (uint32_t s = 0; s < count; s++)
    if (states[s].generation != states[0].generation ||
        (sync && states[s].version != states[0].version))
      return weir_fail(err, WEIR_W7091, NULL,
                       "server %u's state is of another generation", s);
  if (want->mode != src->config.mode ||
      want->aggregate != src->config.aggregate)
    return weir_fail(err, WEIR_W7091, NULL,
                     "the generation is of a job in another mode");
  weir_ps_ledger *old = NULL;
  weir_status status =
      weir_ps_ledger_create(ledger->alloc, &src->config, src->limit, &old, err);
  if (status == WEIR_OK) status = weir_ps_ledger_copy(old, src, err);
  for (uint32_t w = 0; status == WEIR_OK && w < src->config.workers; w++) {
    if (old->members[w].state == WEIR_PS_OUT) continue;
    weir_ps_op op =
        sync ? (weir_ps_op){.kind = WEIR_PS_OP_RESOLVE, .worker = w}
             : marks_of(states, count, w, old->members[w].incarnation);
    status = weir_ps_ledger_apply(old, &op, err);
  }
  if (status == WEIR_OK)
    status = weir_ps_ledger_settle(old, states[0].version, err);
  if (status == WEIR_OK) {
    weir_ps_ledger view = *old;
    view.config = *want; /* other numbers of servers and workers */
    view.members = ledger->members;
    /* Whoever did them, it was not a worker of this job. */
    view.earlier = sync ? 0 : weir_ps_ledger_runs(old);
    status = weir_ps_ledger_copy(ledger, &view, err);
  }
  weir_ps_ledger_release(old);
  return status;
}

uint64_t weir_ps_generation_version(const weir_ps_state *states, uint32_t count,
                                    uint32_t index) {
  return states[index < count ? index : 0].version;
}
