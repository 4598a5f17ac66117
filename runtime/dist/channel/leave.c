/* SPDX-License-Identifier: Apache-2.0
 *
 * The frames that leave a rendezvous.
 *
 * Peers with something to send are in a list, and take turns; within a peer
 * small frames go before chunks, and large values take turns chunk by chunk, so
 * that none waits for another to end. A batch that is being sent changes places
 * with a spare one, so the owner may send it without its lock while others
 * collect.
 *
 * An owner that hears when a batch has left sends the next one then: the first
 * value goes at once, those made meanwhile gather, and each waits as long as it
 * would have waited in the transport's queue (Nagle's rule, RFC 896, by the
 * sender's own end instead of the peer's answer). So 1,000 values that are
 * ready together go in a few messages.
 *
 * Invariant: a value of the sender's ends when all of it was cut into chunks
 * and the transport has released each. */
#include "runtime/dist/channel/leave.h"

#include <assert.h>

#include "runtime/dist/channel/cells.h"
#include "runtime/dist/channel/ends.h"

/* ---- Frames */

static bool small_frame(weir_rendezvous *r, Weir__V1__Control *control,
                        weir_rendezvous_frame *out) {
  control->epoch = r->options.epoch;
  out->control =
      (weir_bytes){r->small, weir_wire_pack_small(control, r->small)};
  assert(out->control.size > 0);
  return true;
}

/* |bulk| with all credit that the peer is owed. */
static void write_header(weir_rendezvous *r, weir_rendezvous_peer *p,
                         weir_bulk *bulk, weir_rendezvous_frame *out) {
  bulk->epoch = r->options.epoch;
  bulk->credit = p->owed;
  p->owed = 0;
  out->header_bytes =
      weir_bulk_write(bulk, out->payload.data, r->options.crc, out->header);
}

static bool credit_frame(weir_rendezvous *r, weir_rendezvous_peer *p,
                         weir_rendezvous_frame *out) {
  weir_bulk bulk = {0};
  write_header(r, p, &bulk, out);
  return true;
}

static bool cut_frame(weir_rendezvous *r, weir_rendezvous_peer *p,
                      weir_rendezvous_frame *out) {
  Weir__V1__Cut cut = WEIR__V1__CUT__INIT;
  Weir__V1__Control control = WEIR__V1__CONTROL__INIT;
  cut.step = p->cuts[--p->cut_count];
  control.body_case = WEIR__V1__CONTROL__BODY_CUT;
  control.cut = &cut;
  return small_frame(r, &control, out);
}

/* The batch becomes the spare one. */
static bool batch_frame(weir_rendezvous *r, weir_wire_batch *batch,
                        weir_rendezvous_frame *out) {
  weir_wire_batch full = *batch;
  uint32_t body = full.body;
  weir_wire_batch_clear(&r->spare);
  *batch = r->spare;
  batch->body = body;
  r->spare = full;
  out->control = weir_wire_batch_frame(&r->spare, r->options.epoch);
  out->batch = true;
  return true;
}

static weir_chunk *make_chunk(weir_rendezvous *r, weir_cell *cell) {
  weir_chunk *chunk = r->free_chunks;
  if (chunk != NULL)
    r->free_chunks = chunk->next;
  else
    chunk = weir_alloc(r->alloc, sizeof *chunk);
  if (chunk != NULL) *chunk = (weir_chunk){.rendezvous = r, .cell = cell};
  return chunk;
}

/* The next chunk of the value whose turn it is. Without memory the value
 * fails; its receiver is told. */
static bool chunk_frame(weir_rendezvous *r, weir_rendezvous_peer *p,
                        weir_rendezvous_frame *out) {
  weir_cell *c = p->first;
  uint64_t size = c->bytes - c->at;
  if (size > r->options.chunk) size = r->options.chunk;
  if (size > p->credit) return false;
  weir_chunk *chunk = make_chunk(r, c);
  if (chunk == NULL) {
    weir_rendezvous_break(r, out->peer, &r->no_memory.err);
    return false;
  }
  weir_bulk bulk = {.kind = c->slot.kind,
                    .id = c->slot.id,
                    .step = c->slot.step,
                    .offset = c->at,
                    .total = c->bytes,
                    .size = (size_t)size};
  out->payload = (weir_bytes){c->src + c->at, (size_t)size};
  out->chunk = chunk;
  write_header(r, p, &bulk, out);
  p->credit -= size;
  c->at += size;
  c->busy++;
  weir_cell_unqueue(r, c);
  if (c->at < c->bytes)
    weir_cell_queue(r, c);
  else
    weir_cell_end(r, c, NULL); /* told when the last chunk is released */
  return true;
}

static bool peer_frame(weir_rendezvous *r, weir_rendezvous_peer *p,
                       weir_rendezvous_frame *out) {
  if (p->lost != NULL) return false;
  if (p->cut_count > 0) return cut_frame(r, p, out);
  if (p->owed >= r->options.credit / 8) return credit_frame(r, p, out);
  if (p->flush && p->ready.count > 0) return batch_frame(r, &p->ready, out);
  if (p->flush && p->values.count > 0) return batch_frame(r, &p->values, out);
  p->flush = false;
  return p->first != NULL && chunk_frame(r, p, out);
}

bool weir_rendezvous_next_frame(weir_rendezvous *r,
                                weir_rendezvous_frame *out) {
  for (weir_rendezvous_peer *p; (p = r->dirty) != NULL;) {
    uint32_t place = (uint32_t)(p - r->peers);
    out->peer = place == r->peer_count - 1 ? WEIR_PEER_DRIVER : place;
    out->control = out->payload = (weir_bytes){0};
    out->batch = false;
    out->chunk = NULL;
    bool more = peer_frame(r, p, out);
    r->dirty = p->next_dirty;
    p->dirty = false;
    if (!more) continue;
    weir_peer_dirty(r, p); /* at the end: others have their turn */
    return true;
  }
  return false;
}

void weir_rendezvous_batch_goes(weir_rendezvous *r, uint32_t peer) {
  r->peers[weir_peer_place(r, peer)].under_way++;
}

void weir_rendezvous_batch_left(weir_rendezvous *r, uint32_t peer) {
  weir_rendezvous_peer *p = &r->peers[weir_peer_place(r, peer)];
  assert(p->under_way > 0);
  p->under_way--;
}

void weir_rendezvous_flush_free(weir_rendezvous *r) {
  for (uint32_t i = 0; i < r->peer_count; i++) {
    weir_rendezvous_peer *p = &r->peers[i];
    if (p->under_way > 0 || p->values.count + p->ready.count == 0) continue;
    p->flush = true;
    weir_peer_dirty(r, p);
  }
}

void *weir_chunk_owner(const weir_chunk *chunk) {
  return chunk->rendezvous->options.owner;
}

void weir_rendezvous_released(weir_chunk *chunk) {
  weir_rendezvous *r = chunk->rendezvous;
  weir_cell_unbusy(r, chunk->cell);
  chunk->next = r->free_chunks;
  r->free_chunks = chunk;
}

/* ---- Peers that wait for something that will never go */

void weir_rendezvous_break(weir_rendezvous *r, uint32_t peer,
                           const weir_error *err) {
  uint32_t place = weir_peer_place(r, peer);
  if (place == r->peer_count) return;
  if (r->peers[place].lost == NULL) r->broken = r->peers[place].broken = true;
  weir_rendezvous_lost(r, peer, err);
}

bool weir_rendezvous_next_broken(weir_rendezvous *r, uint32_t *out_peer) {
  for (uint32_t i = 0; r->broken && i < r->peer_count; i++) {
    if (!r->peers[i].broken) continue;
    r->peers[i].broken = false;
    *out_peer = i == r->peer_count - 1 ? WEIR_PEER_DRIVER : i;
    return true;
  }
  r->broken = false;
  return false;
}

/* ---- Ends */

bool weir_rendezvous_next_end(weir_rendezvous *r, weir_rendezvous_end *out) {
  weir_cell *c = r->ended;
  *out = (weir_rendezvous_end){.cell = c};
  if (c != NULL) {
    r->ended = c->link;
    out->done = c->done;
    out->err = c->why != NULL ? &c->why->err : NULL;
    if (c->owned && c->why == NULL) {
      *c->out = (weir_bytes){c->dst, (size_t)c->bytes};
      c->owned = false;
    }
    return true;
  }
  out->done = r->refused;
  if (out->done == NULL) return false;
  r->refused = out->done->next;
  out->err = &r->no_memory.err;
  return true;
}

void weir_rendezvous_tell(const weir_rendezvous_end *end) {
  const weir_cell *c = end->cell;
  if (c != NULL && c->deliver && c->bytes > 0 && end->err == NULL)
    c->sink.consume(c->sink.self, 0, c->data, (size_t)c->bytes);
  end->done->fn(end->done->self, end->err != NULL ? end->err->code : WEIR_OK,
                end->err);
}

void weir_rendezvous_give_back(weir_rendezvous *r,
                               const weir_rendezvous_end *end) {
  if (end->cell == NULL) return;
  r->busy--;
  weir_cell_free(r, end->cell);
}
