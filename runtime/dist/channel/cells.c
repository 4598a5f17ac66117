/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of a rendezvous.
 *
 * Cells are found by a hash of their name, in chains. A cell that is over goes
 * to a list of free ones and keeps its room for a small value, so that a steady
 * step allocates nothing; all are freed with the rendezvous.
 *
 * Invariant: a cell is in the table (named), or is counted by |busy| (over, but
 * a copy is under way or its end is not told), or is free. Its name is free for
 * the next cell as soon as it is over. */
#include "runtime/dist/channel/cells.h"

#include <assert.h>

#include "runtime/base/mix.h"

enum { kTable = 256, kLeastData = 64 };

/* ---- The table */

static uint64_t hash_of(uint32_t peer, bool incoming, const weir_slot *slot) {
  uint64_t h = weir_mix(slot->step ^ WEIR_MIX_STEP);
  h = weir_mix(h ^ ((uint64_t)slot->id << 32 | peer));
  return weir_mix(h ^ (slot->kind << 1 | incoming));
}

static weir_cell **chain_of(const weir_rendezvous *r, uint32_t peer,
                            bool incoming, const weir_slot *slot) {
  return &r->table[hash_of(peer, incoming, slot) & (r->table_size - 1)];
}

weir_cell *weir_cell_find(const weir_rendezvous *r, uint32_t peer,
                          bool incoming, const weir_slot *slot) {
  if (r->table_size == 0) return NULL;
  weir_cell *c = *chain_of(r, peer, incoming, slot);
  while (c != NULL && (c->peer != peer || c->incoming != incoming ||
                       c->slot.kind != slot->kind || c->slot.id != slot->id ||
                       c->slot.step != slot->step))
    c = c->chain;
  return c;
}

static void put(weir_rendezvous *r, weir_cell *cell) {
  weir_cell **chain = chain_of(r, cell->peer, cell->incoming, &cell->slot);
  cell->chain = *chain;
  *chain = cell;
}

/* Twice the table when there are as many cells as chains. */
static bool grow(weir_rendezvous *r) {
  if (r->named < r->table_size) return true;
  size_t old_size = r->table_size;
  weir_cell **old = r->table;
  size_t size = old_size > 0 ? 2 * old_size : kTable;
  weir_cell **table = weir_alloc_array(r->alloc, size, sizeof *table);
  if (table == NULL) return false;
  r->table = table;
  r->table_size = size;
  for (size_t i = 0; i < old_size; i++)
    for (weir_cell *c = old[i], *next; c != NULL; c = next) {
      next = c->chain;
      put(r, c);
    }
  weir_free(r->alloc, old);
  return true;
}

/* ---- Cells */

weir_cell *weir_cell_make(weir_rendezvous *r, uint32_t peer, bool incoming,
                          const weir_slot *slot) {
  weir_cell *c = r->unused;
  if (!grow(r)) return NULL;
  if (c != NULL) {
    r->unused = c->link;
  } else {
    c = weir_alloc_array(r->alloc, 1, sizeof *c);
    if (c == NULL) return NULL;
    c->all = r->all;
    r->all = c;
  }
  *c = (weir_cell){.all = c->all,
                   .slot = *slot,
                   .peer = peer,
                   .incoming = incoming,
                   .named = true,
                   .since_ns = r->now_ns,
                   .data = c->data,
                   .data_capacity = c->data_capacity};
  r->named++;
  put(r, c);
  return c;
}

bool weir_cell_keep(weir_rendezvous *r, weir_cell *cell, weir_bytes bytes) {
  assert(bytes.size <= WEIR_WIRE_VALUE_BYTES);
  if (bytes.size > cell->data_capacity) {
    uint32_t capacity = kLeastData;
    while (capacity < bytes.size) capacity *= 2;
    uint8_t *data = weir_alloc(r->alloc, capacity);
    if (data == NULL) return false;
    weir_free(r->alloc, cell->data);
    cell->data = data;
    cell->data_capacity = capacity;
  }
  if (bytes.size > 0) memcpy(cell->data, bytes.data, bytes.size);
  cell->bytes = cell->at = bytes.size;
  cell->has_data = true;
  return true;
}

bool weir_cell_count(weir_rendezvous *r, weir_cell *cell, uint32_t cost) {
  weir_rendezvous_peer *peer = &r->peers[cell->peer];
  cell->early = true;
  cell->cost = cost;
  peer->early_count++;
  peer->early_bytes += cost;
  return peer->early_count <= r->options.early_count &&
         peer->early_bytes <= r->options.early_bytes;
}

void weir_cell_uncount(weir_rendezvous *r, weir_cell *cell) {
  if (!cell->early) return;
  r->peers[cell->peer].early_count--;
  r->peers[cell->peer].early_bytes -= cell->cost;
  cell->early = false;
}

/* Takes the name from the table. */
static void unname(weir_rendezvous *r, weir_cell *cell) {
  assert(cell->named);
  weir_cell **at = chain_of(r, cell->peer, cell->incoming, &cell->slot);
  while (*at != cell) at = &(*at)->chain;
  *at = cell->chain;
  cell->named = false;
  r->named--;
  weir_cell_uncount(r, cell);
  if (cell->queued) weir_cell_unqueue(r, cell);
}

void weir_cell_free(weir_rendezvous *r, weir_cell *cell) {
  assert(!cell->named && cell->busy == 0);
  weir_why_drop(r, cell->why);
  cell->why = NULL;
  if (cell->owned) weir_free(r->alloc, cell->dst);
  cell->owned = false;
  cell->link = r->unused;
  r->unused = cell;
}

/* To those whose end is to be told, in their order. */
static void push_ended(weir_rendezvous *r, weir_cell *cell) {
  if (!cell->local) {
    r->busy--;
    weir_cell_free(r, cell);
    return;
  }
  cell->link = NULL;
  if (r->ended == NULL)
    r->ended = cell;
  else
    r->ended_last->link = cell;
  r->ended_last = cell;
}

void weir_cell_end(weir_rendezvous *r, weir_cell *cell, weir_why *why) {
  unname(r, cell);
  if (why != NULL && cell->why != why) {
    weir_why_drop(r, cell->why);
    why->refs++;
    cell->why = why;
  }
  r->busy++;
  if (cell->busy == 0) push_ended(r, cell);
}

void weir_cell_unbusy(weir_rendezvous *r, weir_cell *cell) {
  assert(cell->busy > 0);
  cell->busy--;
  if (cell->busy == 0 && !cell->named) push_ended(r, cell);
}

void weir_cell_queue(weir_rendezvous *r, weir_cell *cell) {
  weir_rendezvous_peer *p = &r->peers[cell->peer];
  assert(!cell->queued);
  cell->queued = true;
  cell->link = NULL;
  if (p->first == NULL)
    p->first = cell;
  else
    p->last->link = cell;
  p->last = cell;
  weir_peer_dirty(r, p);
}

void weir_cell_unqueue(weir_rendezvous *r, weir_cell *cell) {
  weir_rendezvous_peer *peer = &r->peers[cell->peer];
  weir_cell *before = NULL;
  for (weir_cell *c = peer->first; c != cell; c = c->link) before = c;
  if (before == NULL)
    peer->first = cell->link;
  else
    before->link = cell->link;
  if (peer->last == cell) peer->last = before;
  cell->queued = false;
  cell->link = NULL;
}

/* ---- Reasons */

weir_why *weir_why_of(weir_rendezvous *r, const weir_error *err) {
  weir_why *why = r->free_whys;
  if (why != NULL)
    r->free_whys = why->next;
  else
    why = weir_alloc(r->alloc, sizeof *why);
  if (why == NULL) {
    why = &r->no_memory;
    why->refs++;
    return why;
  }
  *why = (weir_why){.err = WEIR_ERROR_INIT, .refs = 1};
  weir_error_copy(&why->err, err);
  return why;
}

void weir_why_drop(weir_rendezvous *r, weir_why *why) {
  if (why == NULL || --why->refs > 0 || why == &r->no_memory) return;
  why->next = r->free_whys;
  r->free_whys = why;
}

/* ---- Peers */

uint32_t weir_peer_place(const weir_rendezvous *r, uint32_t peer) {
  if (peer == WEIR_PEER_DRIVER) return r->peer_count - 1;
  return peer < r->peer_count - 1 ? peer : r->peer_count;
}

void weir_peer_dirty(weir_rendezvous *r, weir_rendezvous_peer *peer) {
  if (peer->dirty || peer->lost != NULL) return;
  peer->dirty = true;
  peer->next_dirty = NULL;
  if (r->dirty == NULL)
    r->dirty = peer;
  else
    r->dirty_last->next_dirty = peer;
  r->dirty_last = peer;
}

/* ---- The whole */

void weir_cells_release(weir_rendezvous *r) {
  for (weir_cell *c = r->all, *next; c != NULL; c = next) {
    next = c->all;
    weir_free(r->alloc, c->data);
    weir_free(r->alloc, c);
  }
  weir_free(r->alloc, r->table);
  for (struct weir_chunk *c = r->free_chunks, *next; c != NULL; c = next) {
    next = c->next;
    weir_free(r->alloc, c);
  }
  for (weir_why *w = r->free_whys, *next; w != NULL; w = next) {
    next = w->next;
    weir_free(r->alloc, w);
  }
}
