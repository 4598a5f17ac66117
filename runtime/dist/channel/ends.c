/* SPDX-License-Identifier: Apache-2.0
 *
 * What ends many calls of a rendezvous at once: a step that is given up or
 * over, a peer that is lost, the end of all. */
#include "runtime/dist/channel/ends.h"

#include <inttypes.h>

#include "runtime/dist/channel/cells.h"

/* Takes back the Ready for values of |step|. With too many at once the peer is
 * not told of the oldest: it hears of it from the driver too. */
static void cut(weir_rendezvous *r, uint32_t place, uint64_t step) {
  weir_rendezvous_peer *p = &r->peers[place];
  for (uint32_t i = 0; i < p->cut_count; i++)
    if (p->cuts[i] == step) return;
  if (p->lost != NULL || p->cut_count == WEIR_STEP_SET_ITEMS) return;
  p->cuts[p->cut_count++] = step;
  weir_peer_dirty(r, p);
}

void weir_rendezvous_drop(weir_rendezvous *r, uint64_t step,
                          const weir_error *err) {
  if (weir_step_set_has(&r->dropped, step)) return;
  weir_step_set_add(&r->dropped, step);
  weir_why_drop(r, r->last_drop);
  r->last_drop = weir_why_of(r, err);
  r->last_dropped = step;
  for (weir_cell *c = r->all; c != NULL; c = c->all) {
    if (!c->named || c->slot.step != step || !weir_slot_is_of_step(&c->slot))
      continue;
    if (c->incoming && c->ready) cut(r, c->peer, step);
    weir_cell_end(r, c, r->last_drop);
  }
}

void weir_rendezvous_finish(weir_rendezvous *r, uint64_t step) {
  weir_why *why = NULL;
  weir_error err = WEIR_ERROR_INIT;
  weir_step_set_below(&r->dropped, step);
  for (uint32_t i = 0; i < r->peer_count; i++)
    weir_step_set_below(&r->peers[i].unwanted, step);
  for (weir_cell *c = r->named > 0 ? r->all : NULL; c != NULL; c = c->all) {
    if (!c->named || c->slot.step >= step || !weir_slot_is_of_step(&c->slot))
      continue;
    if (why == NULL) {
      weir_fail(&err, WEIR_W5005, NULL,
                "all steps below %" PRIu64 " have ended", step);
      why = weir_why_of(r, &err);
    }
    weir_cell_end(r, c, why);
  }
  weir_why_drop(r, why);
}

void weir_rendezvous_lost(weir_rendezvous *r, uint32_t peer,
                          const weir_error *err) {
  uint32_t place = weir_peer_place(r, peer);
  if (place == r->peer_count || r->peers[place].lost != NULL) return;
  weir_rendezvous_peer *p = &r->peers[place];
  p->lost = weir_why_of(r, err);
  p->cut_count = 0;
  weir_wire_batch_clear(&p->values);
  weir_wire_batch_clear(&p->ready);
  for (weir_cell *c = p->first, *next; c != NULL; c = next) {
    next = c->link;
    c->queued = false;
    c->link = NULL;
  }
  p->first = p->last = NULL;
  for (weir_cell *c = r->all; c != NULL; c = c->all)
    if (c->named && c->peer == place) weir_cell_end(r, c, p->lost);
}

void weir_rendezvous_abort(weir_rendezvous *r, const weir_error *err) {
  if (r->aborted != NULL) return;
  r->aborted = weir_why_of(r, err);
  for (uint32_t i = 0; i + 1 < r->peer_count; i++)
    weir_rendezvous_lost(r, i, err);
  weir_rendezvous_lost(r, WEIR_PEER_DRIVER, err);
}
