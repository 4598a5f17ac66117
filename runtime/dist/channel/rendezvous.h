/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_RENDEZVOUS_H_
#define WEIR_DIST_RENDEZVOUS_H_

#include "runtime/base/env.h"
#include "runtime/dist/channel/wire_out.h"
#include "runtime/exec/channel/channel.h"
#include "runtime/net/wire_batch.h"
#include "runtime/net/wire_bulk.h"

/* Rendezvous: values between this task and its peers, in one session.
 *
 * A value has a name, its slot: (kind, id, step). One side sends it once, the
 * other receives it once, in any order of calls and arrivals. Small values (up
 * to WEIR_WIRE_VALUE_BYTES) go at once and are kept where they arrive early, in
 * bounded memory. A large value waits at its sender until the receiver has said
 * Ready, and then goes in chunks straight into the receiver's memory; several
 * large values take turns. At most |credit| bytes are under way to a peer: the
 * receiver gives credit back for the bytes that it has taken over, with its own
 * chunks or alone, where the chunks came: so one thread does all that large
 * values need, and a message to another one is not their price.
 *
 *   sender                                 receiver
 *   send(slot, 1 MB)                       recv(slot, dst, 1 MB)
 *                     <- Ready {slot}
 *                     Bulk {slot, 0..1MB} ->     copied into dst
 *                     <- Bulk {credit 1 MB}
 *
 * Senders of large fetches, variables and blobs announce them, by a Value with
 * |total|, and Ready is the answer. So their receiver need not know the size
 * (recv_owned).
 *
 * This is a core without lock, thread or clock. Calls change its state and
 * leave work behind: frames to be sent and calls that have ended. The owner
 * does that work afterwards, with no lock held: pump.h for an owner with one
 * thread, exchange.h for the threads of a task. The same object files run in
 * the simulator.
 *
 * Peers are not trusted: a frame that is late is ignored if its step was
 * dropped or its epoch is old; else a frame that does not fit (twice, another
 * size, a wrong offset, more than was allowed) is W7011 with a sentence. The
 * owner then ends the connection and calls weir_rendezvous_lost. Frames come
 * here checked (wire.h, wire_bulk.h). */

typedef struct weir_rendezvous weir_rendezvous;
typedef struct weir_cell weir_cell;

/* 0 means the default. */
typedef struct weir_rendezvous_options {
  uint64_t epoch;       /* of the session; others are not ours */
  uint32_t tasks;       /* peers 0 to tasks - 1, and the driver */
  uint64_t credit;      /* bytes under way to a peer: 8 MiB */
  uint32_t chunk;       /* bytes of a bulk frame: 1 MiB, at most */
  uint32_t early_count; /* values of a peer kept for later: 65,536 */
  uint64_t early_bytes; /* and their bytes: 16 MiB */
  bool crc;             /* bulk frames have a checksum */
  void *owner;          /* for the owner's callbacks */
} weir_rendezvous_options;

/* Takes a value as it comes: pieces without gaps or overlaps, in order; |data|
 * is lent for the call. */
typedef struct weir_rendezvous_sink {
  void (*consume)(void *self, size_t offset, const void *data, size_t size);
  void *self;
} weir_rendezvous_sink;

/* An empty rendezvous of one session. Errors: W6001. */
weir_status weir_rendezvous_create(const weir_allocator *alloc,
                                   const weir_rendezvous_options *options,
                                   weir_rendezvous **out_rendezvous,
                                   weir_error *err);
/* Not before weir_rendezvous_is_empty. NULL-safe. */
void weir_rendezvous_release(weir_rendezvous *r);

/* The time from here on, for weir_rendezvous_pending. */
void weir_rendezvous_set_now(weir_rendezvous *r, int64_t now_ns);

/* ---- The local side. |done| is told by the owner, later, once for each call.
 * Memory must stay until then. Lack of memory, a dropped step and a lost peer
 * are errors of |done|. */

/* Ends when |data| may be written again. */
void weir_rendezvous_send(weir_rendezvous *r, uint32_t peer,
                          const weir_slot *slot, weir_bytes data,
                          weir_channel_done *done);
/* Instead of a send: the receiver fails with |why|. */
void weir_rendezvous_send_error(weir_rendezvous *r, uint32_t peer,
                                const weir_slot *slot, const weir_error *why);
/* Ends when |dst| holds the value, of |bytes| bytes. */
void weir_rendezvous_recv(weir_rendezvous *r, uint32_t peer,
                          const weir_slot *slot, void *dst, size_t bytes,
                          weir_channel_done *done);
/* The same, into |sink|, which is copied. A receive that fails may have
 * consumed some. */
void weir_rendezvous_recv_pieces(weir_rendezvous *r, uint32_t peer,
                                 const weir_slot *slot, size_t bytes,
                                 const weir_rendezvous_sink *sink,
                                 weir_channel_done *done);
/* The same for a value whose size the sender knows, at most |limit|. Before
 * |done| is told of success, |*out| gets the value, which is the caller's, by
 * the allocator of create. Errors besides: W7012. */
void weir_rendezvous_recv_owned(weir_rendezvous *r, uint32_t peer,
                                const weir_slot *slot, uint64_t limit,
                                weir_bytes *out, weir_channel_done *done);

/* Small values and Ready are collected; this lets them go. Until then they go
 * when WEIR_WIRE_BATCH_BYTES of them are there. */
void weir_rendezvous_flush(weir_rendezvous *r);
/* Whether something is collected. */
bool weir_rendezvous_collects(const weir_rendezvous *r);

/* Whether nothing is under way, kept or to be told. */
bool weir_rendezvous_is_empty(const weir_rendezvous *r);

/* A call that has not ended. */
typedef struct weir_rendezvous_wait {
  weir_slot slot;
  uint32_t peer; /* its sender, or its receiver */
  bool incoming;
  int64_t since_ns;      /* by weir_rendezvous_set_now */
  uint64_t bytes, total; /* here or sent so far; 0: not known */
} weir_rendezvous_wait;

/* Fills at most |capacity|, the oldest first; returns how many there are. */
size_t weir_rendezvous_pending(const weir_rendezvous *r,
                               weir_rendezvous_wait *waits, size_t capacity);

#endif
