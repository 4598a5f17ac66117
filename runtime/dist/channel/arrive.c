/* SPDX-License-Identifier: Apache-2.0
 *
 * The remote side of a rendezvous.
 *
 * A frame either meets a cell that our side has made, or makes one that waits
 * for our side (early), within the peer's limits, or belongs to a step that is
 * over here, or breaks the protocol. Control and bulk frames come on two
 * connections, so the order between them is not known: nothing here relies on
 * it. Chunks of one value come in order. */
#include "runtime/dist/channel/arrive.h"

#include <inttypes.h>

#include "runtime/dist/channel/cells.h"
#include "runtime/dist/channel/rendezvous_internal.h"
#include "runtime/net/wire_error.h"

static const char *const kKinds[] = {"edge", "feed", "fetch", "variable",
                                     "blob"};

static weir_status broken(const weir_slot *slot, const char *why,
                          weir_error *err) {
  const char *kind = slot->kind < sizeof kKinds / sizeof kKinds[0]
                         ? kKinds[slot->kind]
                         : "value";
  return weir_fail(err, WEIR_W7011, NULL,
                   "%s %" PRIu32 " of step %" PRIu64 " %s", kind, slot->id,
                   slot->step, why);
}

/* Whether frames for |slot| are late: its step was given up here. */
static bool is_late(const weir_rendezvous *r, const weir_slot *slot) {
  return weir_slot_is_of_step(slot) &&
         weir_step_set_has(&r->dropped, slot->step);
}

/* A cell that the peer makes. */
static weir_status make_early(weir_rendezvous *r, uint32_t place, bool incoming,
                              const weir_slot *slot, weir_cell **out_cell,
                              weir_error *err) {
  weir_cell *c = weir_cell_make(r, place, incoming, slot);
  *out_cell = c;
  return c != NULL ? WEIR_OK : weir_fail_memory(err, sizeof *c);
}

static weir_status count(weir_rendezvous *r, weir_cell *c, uint32_t cost,
                         weir_error *err) {
  if (weir_cell_count(r, c, cost)) return WEIR_OK;
  return weir_fail(err, WEIR_W7011, NULL,
                   "more than %" PRIu32 " values or %" PRIu64
                   " bytes came that nobody waits for yet",
                   r->options.early_count, r->options.early_bytes);
}

/* ---- Values */

static weir_status keep_early(weir_rendezvous *r, uint32_t place,
                              const weir_slot *slot, const Weir__V1__Value *v,
                              weir_error *err) {
  weir_cell *c;
  WEIR_TRY(make_early(r, place, true, slot, &c, err));
  if (weir_wire_error_is(v->error)) {
    weir_error why = WEIR_ERROR_INIT;
    (void)weir_wire_error_get(v->error, &why);
    c->why = weir_why_of(r, &why);
    return count(r, c, sizeof *c->why, err);
  }
  if (v->total != 0) {
    c->bytes = v->total;
    return count(r, c, 0, err);
  }
  WEIR_TRY(count(r, c, (uint32_t)v->data.len, err));
  if (weir_cell_keep(r, c, (weir_bytes){v->data.data, v->data.len}))
    return WEIR_OK;
  return weir_fail_memory(err, v->data.len);
}

/* The peer's error, for a receiver that waits. */
static void fail_cell(weir_rendezvous *r, weir_cell *c,
                      const Weir__V1__Error *error) {
  weir_error err = WEIR_ERROR_INIT;
  (void)weir_wire_error_get(error, &err);
  weir_why *why = weir_why_of(r, &err);
  weir_cell_end(r, c, why);
  weir_why_drop(r, why);
}

static weir_status on_value(weir_rendezvous *r, uint32_t place,
                            const Weir__V1__Value *v, weir_error *err) {
  weir_slot slot = {v->kind, v->id, v->step};
  if (is_late(r, &slot)) return WEIR_OK;
  if (v->total != 0 &&
      (v->total <= WEIR_WIRE_VALUE_BYTES || v->total > PTRDIFF_MAX))
    return broken(&slot, "is announced with a size that no large value has",
                  err);
  weir_cell *c = weir_cell_find(r, place, true, &slot);
  if (c == NULL) return keep_early(r, place, &slot, v, err);
  if (!c->local || c->at > 0 || c->busy > 0)
    return broken(&slot, "came twice", err);
  if (weir_wire_error_is(v->error)) {
    fail_cell(r, c, v->error);
    return WEIR_OK;
  }
  weir_error why = WEIR_ERROR_INIT;
  if (v->total != 0) {
    if (c->ready || slot.kind < WEIR__V1__VALUE_KIND__FETCH)
      return broken(&slot, "is announced twice, or needs it not", err);
    if (weir_rendezvous_announced(r, c, v->total, &why)) return WEIR_OK;
  } else {
    if (c->ready)
      return broken(&slot, "is large, and came as a small one", err);
    if (weir_rendezvous_deliver(r, c, (weir_bytes){v->data.data, v->data.len},
                                &why))
      return WEIR_OK;
  }
  if (c->out == NULL) {
    weir_error_copy(err, &why);
    return why.code;
  }
  weir_why *shared = weir_why_of(r, &why); /* the receiver takes less */
  weir_cell_end(r, c, shared);
  weir_why_drop(r, shared);
  return WEIR_OK;
}

/* ---- Ready, Cut */

static weir_status on_ready(weir_rendezvous *r, uint32_t place,
                            const Weir__V1__Slot *s, weir_error *err) {
  weir_slot slot = {s->kind, s->id, s->step};
  weir_rendezvous_peer *p = &r->peers[place];
  if (is_late(r, &slot) || (weir_slot_is_of_step(&slot) &&
                            weir_step_set_has(&p->unwanted, slot.step)))
    return WEIR_OK;
  weir_cell *c = weir_cell_find(r, place, false, &slot);
  if (c != NULL && c->ready) return broken(&slot, "was Ready twice", err);
  if (c == NULL && slot.kind >= WEIR__V1__VALUE_KIND__FETCH)
    return broken(&slot, "was Ready before it was announced", err);
  if (c == NULL) {
    WEIR_TRY(make_early(r, place, false, &slot, &c, err));
    c->ready = true;
    return count(r, c, 0, err);
  }
  c->ready = true;
  weir_cell_queue(r, c);
  return WEIR_OK;
}

/* The peer wants nothing of |step| any more: values on their way to it count as
 * gone. */
static void on_cut(weir_rendezvous *r, uint32_t place, uint64_t step) {
  weir_step_set_add(&r->peers[place].unwanted, step);
  for (weir_cell *c = r->all; c != NULL; c = c->all)
    if (c->named && !c->incoming && c->peer == place && c->slot.step == step &&
        weir_slot_is_of_step(&c->slot))
      weir_cell_end(r, c, NULL);
}

static weir_status check_epoch(const weir_rendezvous *r, uint64_t epoch,
                               weir_error *err) {
  if (epoch <= r->options.epoch) return WEIR_OK;
  return weir_fail(err, WEIR_W7011, NULL,
                   "a frame of epoch %" PRIu64 ", it is %" PRIu64 " here",
                   epoch, r->options.epoch);
}

weir_status weir_rendezvous_control(weir_rendezvous *r, uint32_t peer,
                                    const Weir__V1__Control *m,
                                    weir_error *err) {
  uint32_t place = weir_peer_place(r, peer);
  weir_status s = check_epoch(r, m->epoch, err);
  if (s != WEIR_OK || m->epoch < r->options.epoch || place == r->peer_count ||
      r->peers[place].lost != NULL)
    return s;
  switch (m->body_case) {
    case WEIR__V1__CONTROL__BODY_VALUES:
      for (size_t i = 0; s == WEIR_OK && i < m->values->n_values; i++)
        s = on_value(r, place, m->values->values[i], err);
      break;
    case WEIR__V1__CONTROL__BODY_READY:
      for (size_t i = 0; s == WEIR_OK && i < m->ready->n_slots; i++)
        s = on_ready(r, place, m->ready->slots[i], err);
      break;
    case WEIR__V1__CONTROL__BODY_CUT:
      on_cut(r, place, m->cut->step);
      break;
    default:
      break;
  }
  return s;
}

/* ---- Chunks */

static weir_status on_credit(weir_rendezvous *r, uint32_t place, uint64_t bytes,
                             weir_error *err) {
  weir_rendezvous_peer *p = &r->peers[place];
  if (bytes > r->options.credit - p->credit)
    return weir_fail(err, WEIR_W7011, NULL,
                     "credit for %" PRIu64 " bytes, %" PRIu64 " are under way",
                     bytes, r->options.credit - p->credit);
  p->credit += bytes;
  if (bytes > 0) weir_peer_dirty(r, p);
  return WEIR_OK;
}

/* Bytes that were taken over; each eighth of the credit is told. */
static void take_over(weir_rendezvous *r, uint32_t place, size_t bytes) {
  weir_rendezvous_peer *p = &r->peers[place];
  p->owed += bytes;
  if (p->owed >= r->options.credit / 8) weir_peer_dirty(r, p);
}

static weir_status check_chunk(const weir_cell *c, const weir_bulk *b,
                               const weir_slot *slot, weir_error *err) {
  if (c == NULL || !c->local || !c->ready)
    return broken(slot, "came without being asked for", err);
  if (b->total != c->bytes)
    return weir_fail(err, WEIR_W7011, NULL,
                     "a chunk is of %" PRIu64 " bytes, %" PRIu64 " are wanted",
                     b->total, c->bytes);
  if (c->busy > 0 || b->offset != c->at || b->size > c->bytes - c->at)
    return weir_fail(err, WEIR_W7011, NULL,
                     "a chunk begins at byte %" PRIu64 ", %" PRIu64
                     " of %" PRIu64 " are here",
                     b->offset, c->at, c->bytes);
  return WEIR_OK;
}

weir_status weir_rendezvous_bulk_begin(weir_rendezvous *r, uint32_t peer,
                                       const weir_bulk *b,
                                       weir_rendezvous_place *out,
                                       weir_error *err) {
  uint32_t place = weir_peer_place(r, peer);
  weir_slot slot = {b->kind, b->id, b->step};
  *out = (weir_rendezvous_place){.peer = place};
  WEIR_TRY(check_epoch(r, b->epoch, err));
  if (b->epoch < r->options.epoch || place == r->peer_count ||
      r->peers[place].lost != NULL)
    return WEIR_OK;
  WEIR_TRY(on_credit(r, place, b->credit, err));
  if (b->size == 0) return WEIR_OK;
  weir_cell *c = weir_cell_find(r, place, true, &slot);
  if (is_late(r, &slot)) {
    take_over(r, place, b->size);
    return WEIR_OK;
  }
  WEIR_TRY(check_chunk(c, b, &slot, err));
  c->busy++;
  out->cell = c;
  out->dst = c->dst != NULL ? c->dst + b->offset : NULL;
  out->sink = c->sink;
  out->offset = (size_t)b->offset;
  out->size = b->size;
  return WEIR_OK;
}

void weir_rendezvous_bulk_copy(const weir_rendezvous_place *place,
                               weir_bulk_payload payload) {
  weir_bytes piece;
  size_t at = 0;
  while (place->cell != NULL && weir_bulk_next(&payload, &piece)) {
    if (place->dst != NULL)
      memcpy(place->dst + at, piece.data, piece.size);
    else
      place->sink.consume(place->sink.self, place->offset + at, piece.data,
                          piece.size);
    at += piece.size;
  }
}

void weir_rendezvous_bulk_end(weir_rendezvous *r,
                              const weir_rendezvous_place *place) {
  weir_cell *c = place->cell;
  if (c == NULL) return;
  take_over(r, place->peer, place->size);
  c->at += place->size;
  weir_cell_unbusy(r, c);
  if (c->named && c->at == c->bytes) weir_cell_end(r, c, NULL);
}
