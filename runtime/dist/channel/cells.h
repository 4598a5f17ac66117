/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_CELLS_H_
#define WEIR_DIST_CELLS_H_

#include "runtime/dist/channel/rendezvous.h"
#include "runtime/dist/channel/step_set.h"
#include "runtime/net/wire_batch.h"

/* The memory of a rendezvous: cells, one for each value that is under way, and
 * a table that finds them by name. Shared by its files alone. */

/* Kinds of values that belong to a step. */
static inline bool weir_slot_is_of_step(const weir_slot *slot) {
  return slot->kind <= WEIR__V1__VALUE_KIND__FETCH;
}

/* The reason why cells failed; several may share one. */
typedef struct weir_why {
  weir_error err;
  uint32_t refs;
  struct weir_why *next; /* in the list of free ones */
} weir_why;

/* A value under way. Its name stands in the table as long as |named|. */
struct weir_cell {
  struct weir_cell *chain; /* in the table */
  struct weir_cell *link;  /* free, or ended, or waiting to be sent */
  struct weir_cell *all;   /* of all that were ever made */
  weir_slot slot;
  uint32_t peer; /* place in weir_rendezvous.peers */
  uint32_t busy; /* pieces at the transport, or copies under way */
  uint32_t cost; /* early: bytes that it counts */
  bool incoming, named;
  bool local;   /* our side has called: |done| will be told */
  bool ready;   /* incoming: Ready was said; outgoing: it was heard */
  bool queued;  /* outgoing: in the peer's queue */
  bool early;   /* the peer made it: counted in its limits */
  bool owned;   /* incoming: |dst| is ours until it is handed over */
  bool deliver; /* ended: |data| goes to |sink| before |done| is told */
  int64_t since_ns;
  weir_channel_done *done;
  const uint8_t *src;
  uint8_t *dst;
  weir_rendezvous_sink sink; /* in place of |dst| */
  weir_bytes *out;           /* owned: where it is handed over */
  uint64_t bytes, at;        /* of the value; sent or here so far */
  uint64_t limit;            /* owned */
  weir_why *why;             /* it failed, or the sender did */
  bool has_data;             /* |data| holds the value */
  uint8_t *data;             /* kept with the cell; WEIR_WIRE_VALUE_BYTES or
                                less: |data_capacity| */
  uint32_t data_capacity;
};

/* The other side of a pair of tasks. */
typedef struct weir_rendezvous_peer {
  weir_why *lost;
  weir_wire_batch values, ready;
  uint32_t under_way; /* batches that have gone and not left */
  bool flush, dirty, cutting;
  bool broken;     /* not yet reported to the owner */
  uint64_t credit; /* bytes that we may send */
  uint64_t owed;   /* bytes taken over, not yet credited */
  uint32_t early_count;
  uint64_t early_bytes;
  uint64_t cuts[WEIR_STEP_SET_ITEMS]; /* to be sent */
  uint32_t cut_count;
  weir_step_set unwanted;         /* steps that the peer has cut */
  struct weir_cell *first, *last; /* values to be sent in chunks, in turn */
  struct weir_rendezvous_peer *next_dirty;
} weir_rendezvous_peer;

/* A piece of a value at the transport. */
struct weir_chunk {
  weir_rendezvous *rendezvous;
  struct weir_cell *cell;
  struct weir_chunk *next; /* free */
};

struct weir_rendezvous {
  const weir_allocator *alloc;
  weir_rendezvous_options options;
  uint32_t peer_count; /* with the driver, the last */
  weir_rendezvous_peer *peers;
  int64_t now_ns;
  /* cells */
  struct weir_cell **table;
  size_t table_size; /* a power of two */
  size_t named;
  struct weir_cell *all, *unused;
  size_t busy; /* cells that are not named but wait for a copy to end */
  struct weir_cell *ended, *ended_last;
  weir_channel_done *refused; /* ended for lack of memory, without a cell */
  /* chunks, reasons */
  struct weir_chunk *free_chunks;
  weir_why *free_whys, no_memory;
  weir_why *last_drop; /* of |last_dropped| */
  uint64_t last_dropped;
  weir_step_set dropped;
  weir_why *aborted;
  weir_rendezvous_peer *dirty, *dirty_last;
  bool broken;           /* some peer is */
  weir_wire_batch spare; /* the batch that is being sent */
  uint8_t small[WEIR_WIRE_SMALL_BYTES];
};

/* ---- Cells */

/* The cell of that name, or NULL. */
weir_cell *weir_cell_find(const weir_rendezvous *r, uint32_t peer,
                          bool incoming, const weir_slot *slot);
/* A new one in the table, zero but for its name. NULL: out of memory. */
weir_cell *weir_cell_make(weir_rendezvous *r, uint32_t peer, bool incoming,
                          const weir_slot *slot);
/* Copies |bytes|, at most WEIR_WIRE_VALUE_BYTES, into the cell. */
bool weir_cell_keep(weir_rendezvous *r, weir_cell *cell, weir_bytes bytes);
/* Counts the cell, which a peer made and which has |cost| bytes, in the peer's
 * limits; false when they are passed. */
bool weir_cell_count(weir_rendezvous *r, weir_cell *cell, uint32_t cost);
/* Our side has called: the cell counts no more. */
void weir_cell_uncount(weir_rendezvous *r, weir_cell *cell);
/* The cell is over: without a name, and told when nothing is busy with it, or
 * free at once when nobody is to be told. |why| NULL: it went well; a reference
 * is taken. */
void weir_cell_end(weir_rendezvous *r, weir_cell *cell, weir_why *why);
/* To the free ones. */
void weir_cell_free(weir_rendezvous *r, weir_cell *cell);
/* One copy less under way. */
void weir_cell_unbusy(weir_rendezvous *r, weir_cell *cell);
/* Puts an outgoing cell at the end of its peer's queue, and takes it out. */
void weir_cell_queue(weir_rendezvous *r, weir_cell *cell);
void weir_cell_unqueue(weir_rendezvous *r, weir_cell *cell);

/* ---- Reasons */

/* A reason with one reference; never NULL: without memory it is W6001. */
weir_why *weir_why_of(weir_rendezvous *r, const weir_error *err);
void weir_why_drop(weir_rendezvous *r, weir_why *why); /* NULL-safe */

/* ---- Peers */

/* The place of a peer by its number, or peer_count. */
uint32_t weir_peer_place(const weir_rendezvous *r, uint32_t peer);
/* A frame for the peer is to be made. */
void weir_peer_dirty(weir_rendezvous *r, weir_rendezvous_peer *peer);

/* ---- The whole */

void weir_cells_release(weir_rendezvous *r);

#endif
