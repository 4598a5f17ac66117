/* SPDX-License-Identifier: Apache-2.0
 *
 * The local side of a rendezvous: calls of this task.
 *
 * A large edge or feed that is received says Ready at once, for its memory is
 * there. A fetch, variable or blob says it as the answer to the announcement,
 * never before: the announcement could else be overtaken by chunks, on their
 * other connection, and find its receiver gone. Ready and small values are
 * collected per peer. */
#include "runtime/dist/channel/rendezvous.h"

#include <assert.h>
#include <inttypes.h>

#include "runtime/dist/channel/cells.h"
#include "runtime/dist/channel/leave.h"
#include "runtime/dist/channel/rendezvous_internal.h"

enum { kCredit = 8 << 20, kEarlyCount = 65536, kEarlyBytes = 16 << 20 };

/* ---- The whole */

static void put_defaults(weir_rendezvous_options *o) {
  if (o->credit == 0) o->credit = kCredit;
  if (o->chunk == 0 || o->chunk > WEIR_BULK_CHUNK_BYTES)
    o->chunk = WEIR_BULK_CHUNK_BYTES;
  if (o->chunk > o->credit / 2) o->chunk = (uint32_t)(o->credit / 2);
  if (o->early_count == 0) o->early_count = kEarlyCount;
  if (o->early_bytes == 0) o->early_bytes = kEarlyBytes;
}

weir_status weir_rendezvous_create(const weir_allocator *alloc,
                                   const weir_rendezvous_options *options,
                                   weir_rendezvous **out_rendezvous,
                                   weir_error *err) {
  *out_rendezvous = NULL;
  weir_rendezvous *r = weir_alloc_array(alloc, 1, sizeof *r);
  if (r == NULL) return weir_fail_memory(err, sizeof *r);
  r->alloc = alloc;
  r->options = *options;
  put_defaults(&r->options);
  r->peer_count = options->tasks + 1;
  r->no_memory = (weir_why){.err = WEIR_ERROR_INIT, .refs = 1};
  weir_fail_memory(&r->no_memory.err, sizeof(weir_cell));
  weir_wire_batch_init(&r->spare, alloc, WEIR__V1__CONTROL__BODY_VALUES);
  r->peers = weir_alloc_array(alloc, r->peer_count, sizeof *r->peers);
  if (r->peers == NULL) {
    weir_free(alloc, r);
    return weir_fail_memory(err, sizeof *r->peers);
  }
  for (uint32_t i = 0; i < r->peer_count; i++) {
    weir_rendezvous_peer *p = &r->peers[i];
    p->credit = r->options.credit;
    weir_wire_batch_init(&p->values, alloc, WEIR__V1__CONTROL__BODY_VALUES);
    weir_wire_batch_init(&p->ready, alloc, WEIR__V1__CONTROL__BODY_READY);
  }
  *out_rendezvous = r;
  return WEIR_OK;
}

void weir_rendezvous_release(weir_rendezvous *r) {
  if (r == NULL) return;
  assert(weir_rendezvous_is_empty(r));
  for (uint32_t i = 0; i < r->peer_count; i++) {
    weir_wire_batch_release(&r->peers[i].values);
    weir_wire_batch_release(&r->peers[i].ready);
    weir_why_drop(r, r->peers[i].lost);
  }
  weir_wire_batch_release(&r->spare);
  weir_why_drop(r, r->last_drop);
  weir_why_drop(r, r->aborted);
  weir_cells_release(r);
  weir_free(r->alloc, r->peers);
  weir_free(r->alloc, r);
}

void weir_rendezvous_set_now(weir_rendezvous *r, int64_t now_ns) {
  r->now_ns = now_ns;
}

bool weir_rendezvous_is_empty(const weir_rendezvous *r) {
  return r->named == 0 && r->busy == 0 && r->refused == NULL;
}

/* ---- Shared by all calls */

static bool is_small(uint64_t bytes) {
  return bytes <= WEIR_WIRE_VALUE_BYTES;
}

/* Kinds whose large values are announced; Ready is the answer. */
static bool is_announced(const weir_slot *slot) {
  return slot->kind >= WEIR__V1__VALUE_KIND__FETCH;
}

/* Ends a call that has no cell. */
static void refuse(weir_rendezvous *r, weir_channel_done *done) {
  done->next = r->refused;
  r->refused = done;
}

/* A reason why nothing can be done for |slot|, with a reference, or NULL. */
static weir_why *over(weir_rendezvous *r, uint32_t place,
                      const weir_slot *slot) {
  weir_why *why = r->aborted;
  weir_error err = WEIR_ERROR_INIT;
  if (why == NULL && place == r->peer_count) {
    weir_fail(&err, WEIR_W7001, NULL, "there is no such peer");
    return weir_why_of(r, &err);
  }
  if (why == NULL) why = r->peers[place].lost;
  if (why == NULL && weir_slot_is_of_step(slot) &&
      weir_step_set_has(&r->dropped, slot->step)) {
    if (r->last_drop == NULL || r->last_dropped != slot->step) {
      weir_fail(&err, WEIR_W5005, NULL, "step %" PRIu64 " was given up earlier",
                slot->step);
      return weir_why_of(r, &err);
    }
    why = r->last_drop;
  }
  if (why != NULL) why->refs++;
  return why;
}

/* Ends |done| with |why|, NULL: well. */
static void end_now(weir_rendezvous *r, uint32_t place, const weir_slot *slot,
                    weir_channel_done *done, weir_why *why) {
  weir_cell *c =
      weir_cell_make(r, place < r->peer_count ? place : 0, false, slot);
  if (c == NULL) {
    refuse(r, done);
    return;
  }
  c->done = done;
  c->local = true;
  weir_cell_end(r, c, why);
}

static void end_with(weir_rendezvous *r, uint32_t place, const weir_slot *slot,
                     weir_channel_done *done, const weir_error *err) {
  weir_why *why = weir_why_of(r, err);
  end_now(r, place, slot, done, why);
  weir_why_drop(r, why);
}

/* A second call for the same slot. */
static void end_twice(weir_rendezvous *r, uint32_t place, const weir_slot *slot,
                      weir_channel_done *done) {
  weir_error err = WEIR_ERROR_INIT;
  weir_fail(&err, WEIR_W9001, NULL,
            "value %" PRIu32 " of kind %" PRIu32
            " was asked for twice in step "
            "%" PRIu64,
            slot->id, slot->kind, slot->step);
  end_with(r, place, slot, done, &err);
}

/* The peer would wait for ever for what there is no memory to send. */
static void give_up(weir_rendezvous *r, uint32_t place) {
  uint32_t peer = place == r->peer_count - 1 ? WEIR_PEER_DRIVER : place;
  weir_rendezvous_break(r, peer, &r->no_memory.err);
}

/* Something was added to a batch, or was not for lack of memory. */
static void added(weir_rendezvous *r, uint32_t place, bool ok) {
  weir_rendezvous_peer *p = &r->peers[place];
  if (!ok) {
    give_up(r, place);
  } else if (weir_wire_batch_is_full(&p->values) ||
             weir_wire_batch_is_full(&p->ready)) {
    p->flush = true;
    weir_peer_dirty(r, p);
  }
}

/* ---- Sending */

static void send_small(weir_rendezvous *r, uint32_t place,
                       const weir_slot *slot, weir_bytes data,
                       weir_channel_done *done) {
  bool ok = weir_wire_batch_value(&r->peers[place].values, slot, data);
  end_now(r, place, slot, done, ok ? NULL : &r->no_memory);
  added(r, place, ok);
}

static void send_large(weir_rendezvous *r, uint32_t place,
                       const weir_slot *slot, weir_bytes data,
                       weir_channel_done *done) {
  weir_cell *c = weir_cell_find(r, place, false, slot);
  if (c != NULL && c->local) {
    end_twice(r, place, slot, done);
    return;
  }
  if (c == NULL && (c = weir_cell_make(r, place, false, slot)) == NULL) {
    refuse(r, done);
    /* Who receives it would wait for ever. */
    added(r, place,
          weir_wire_batch_error(&r->peers[place].values, slot,
                                &r->no_memory.err));
    return;
  }
  weir_cell_uncount(r, c);
  c->local = true;
  c->done = done;
  c->src = data.data;
  c->bytes = data.size;
  c->since_ns = r->now_ns;
  if (c->ready) weir_cell_queue(r, c);
  if (is_announced(slot))
    added(r, place,
          weir_wire_batch_total(&r->peers[place].values, slot, data.size));
}

void weir_rendezvous_send(weir_rendezvous *r, uint32_t peer,
                          const weir_slot *slot, weir_bytes data,
                          weir_channel_done *done) {
  uint32_t place = weir_peer_place(r, peer);
  weir_why *why = over(r, place, slot);
  if (why != NULL)
    end_now(r, place, slot, done, why);
  else if (weir_slot_is_of_step(slot) &&
           weir_step_set_has(&r->peers[place].unwanted, slot->step))
    end_now(r, place, slot, done, NULL); /* nobody waits for it */
  else if (is_small(data.size))
    send_small(r, place, slot, data, done);
  else
    send_large(r, place, slot, data, done);
  weir_why_drop(r, why);
}

void weir_rendezvous_send_error(weir_rendezvous *r, uint32_t peer,
                                const weir_slot *slot, const weir_error *why) {
  uint32_t place = weir_peer_place(r, peer);
  weir_why *gone = over(r, place, slot);
  weir_why_drop(r, gone);
  if (gone != NULL) return;
  weir_cell *c = weir_cell_find(r, place, false, slot);
  if (c != NULL && !c->local) weir_cell_end(r, c, NULL);
  added(r, place, weir_wire_batch_error(&r->peers[place].values, slot, why));
}

/* ---- Receiving */

static void say_ready(weir_rendezvous *r, weir_cell *c) {
  uint32_t place = c->peer;
  c->ready = true;
  added(r, place, weir_wire_batch_slot(&r->peers[place].ready, &c->slot));
}

static bool has_sink(const weir_cell *c) {
  return c->sink.consume != NULL;
}

static weir_status check_total(const weir_cell *c, uint64_t total,
                               weir_error *err) {
  if (c->out != NULL && total > c->limit)
    return weir_fail(err, WEIR_W7012, NULL,
                     "value %" PRIu32 " of kind %" PRIu32 " has %" PRIu64
                     " bytes, at most %" PRIu64 " are taken",
                     c->slot.id, c->slot.kind, total, c->limit);
  if (c->out == NULL && total != c->bytes)
    return weir_fail(err, WEIR_W7011, NULL,
                     "value %" PRIu32 " of kind %" PRIu32 " has %" PRIu64
                     " bytes, %" PRIu64 " are wanted",
                     c->slot.id, c->slot.kind, total, c->bytes);
  return WEIR_OK;
}

/* Memory for an owned value, once its size is known. */
static bool take_memory(weir_rendezvous *r, weir_cell *c, uint64_t total) {
  if (c->out == NULL) return true;
  c->dst = weir_alloc_aligned(r->alloc, (size_t)total, 64);
  c->owned = c->dst != NULL;
  c->bytes = total;
  return c->owned;
}

bool weir_rendezvous_announced(weir_rendezvous *r, weir_cell *c, uint64_t total,
                               weir_error *err) {
  if (check_total(c, total, err) != WEIR_OK) return false;
  if (!take_memory(r, c, total)) {
    weir_cell_end(r, c, &r->no_memory);
  } else if (!c->ready) {
    say_ready(r, c);
  }
  return true;
}

bool weir_rendezvous_deliver(weir_rendezvous *r, weir_cell *c, weir_bytes data,
                             weir_error *err) {
  if (check_total(c, data.size, err) != WEIR_OK) return false;
  if (has_sink(c) && data.data != c->data) {
    if (!weir_cell_keep(r, c, data)) {
      weir_cell_end(r, c, &r->no_memory);
      return true;
    }
  } else if (!has_sink(c)) {
    if (!take_memory(r, c, data.size)) {
      weir_cell_end(r, c, &r->no_memory);
      return true;
    }
    if (data.size > 0) memcpy(c->dst, data.data, data.size);
  }
  c->at = c->bytes = data.size;
  c->deliver = has_sink(c);
  weir_cell_end(r, c, NULL);
  return true;
}

/* The receiver of a value that has come, or been told of, before. */
static void take_early(weir_rendezvous *r, weir_cell *c, uint64_t total) {
  weir_error err = WEIR_ERROR_INIT;
  bool ok = true;
  if (c->why != NULL)
    weir_cell_end(r, c, NULL); /* the sender's error */
  else if (c->has_data)
    ok = weir_rendezvous_deliver(r, c, (weir_bytes){c->data, total}, &err);
  else
    ok = weir_rendezvous_announced(r, c, total, &err);
  if (ok) return;
  weir_why *why = weir_why_of(r, &err);
  weir_cell_end(r, c, why);
  weir_why_drop(r, why);
}

/* The memory that a receiver gives. */
typedef struct receiver {
  void *dst;
  size_t bytes;
  const weir_rendezvous_sink *sink;
  uint64_t limit;
  weir_bytes *out;
} receiver;

static void receive(weir_rendezvous *r, uint32_t peer, const weir_slot *slot,
                    const receiver *to, weir_channel_done *done) {
  uint32_t place = weir_peer_place(r, peer);
  weir_why *why = over(r, place, slot);
  if (why != NULL) {
    end_now(r, place, slot, done, why);
    weir_why_drop(r, why);
    return;
  }
  weir_cell *c = weir_cell_find(r, place, true, slot);
  if (c != NULL && c->local) {
    end_twice(r, place, slot, done);
    return;
  }
  bool came = c != NULL;
  if (!came && (c = weir_cell_make(r, place, true, slot)) == NULL) {
    refuse(r, done);
    /* Another task would wait for Ready; feeds and fetches go with the step. */
    if (slot->kind == WEIR__V1__VALUE_KIND__EDGE) give_up(r, place);
    return;
  }
  uint64_t total = c->bytes;
  weir_cell_uncount(r, c);
  c->local = true;
  c->done = done;
  c->dst = to->dst;
  c->bytes = to->bytes;
  c->out = to->out;
  c->limit = to->limit;
  if (to->sink != NULL) c->sink = *to->sink;
  c->since_ns = r->now_ns;
  if (came)
    take_early(r, c, total);
  else if (!is_announced(slot) && !is_small(to->bytes))
    say_ready(r, c);
}

void weir_rendezvous_recv(weir_rendezvous *r, uint32_t peer,
                          const weir_slot *slot, void *dst, size_t bytes,
                          weir_channel_done *done) {
  receive(r, peer, slot, &(receiver){.dst = dst, .bytes = bytes}, done);
}

void weir_rendezvous_recv_pieces(weir_rendezvous *r, uint32_t peer,
                                 const weir_slot *slot, size_t bytes,
                                 const weir_rendezvous_sink *sink,
                                 weir_channel_done *done) {
  receive(r, peer, slot, &(receiver){.sink = sink, .bytes = bytes}, done);
}

void weir_rendezvous_recv_owned(weir_rendezvous *r, uint32_t peer,
                                const weir_slot *slot, uint64_t limit,
                                weir_bytes *out, weir_channel_done *done) {
  *out = (weir_bytes){0};
  receive(r, peer, slot, &(receiver){.out = out, .limit = limit}, done);
}

/* ---- Collected frames, questions */

bool weir_rendezvous_collects(const weir_rendezvous *r) {
  for (uint32_t i = 0; i < r->peer_count; i++)
    if (r->peers[i].values.count + r->peers[i].ready.count > 0) return true;
  return false;
}

void weir_rendezvous_flush(weir_rendezvous *r) {
  for (uint32_t i = 0; i < r->peer_count; i++) {
    weir_rendezvous_peer *p = &r->peers[i];
    if (p->values.count + p->ready.count == 0) continue;
    p->flush = true;
    weir_peer_dirty(r, p);
  }
}

size_t weir_rendezvous_pending(const weir_rendezvous *r,
                               weir_rendezvous_wait *waits, size_t capacity) {
  size_t count = 0;
  for (const weir_cell *c = r->all; c != NULL; c = c->all) {
    if (!c->named || !c->local) continue;
    bool driver = c->peer == r->peer_count - 1;
    size_t at = count < capacity ? count : capacity;
    while (at > 0 && waits[at - 1].since_ns > c->since_ns) {
      if (at < capacity) waits[at] = waits[at - 1];
      at--;
    }
    count++;
    if (at == capacity) continue;
    waits[at] =
        (weir_rendezvous_wait){.slot = c->slot,
                               .peer = driver ? WEIR_PEER_DRIVER : c->peer,
                               .incoming = c->incoming,
                               .since_ns = c->since_ns,
                               .bytes = c->at,
                               .total = c->bytes};
  }
  return count;
}
