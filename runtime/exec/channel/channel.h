/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_CHANNEL_H_
#define WEIR_EXEC_CHANNEL_H_

#include "runtime/base/env.h"
#include "runtime/base/status.h"
#include "runtime/tensor/dtype.h"

/* Channels: the links that SEND, RECV and COLLECTIVE instructions use.
 *
 * A program is cut where its nodes sit on different devices or tasks; each cut
 * edge has a number. For every step, the sender gives the edge's bytes once and
 * the receiver takes them once; steps of one edge are a bounded FIFO. Steps of
 * one channel are numbered upwards, below 2^63; numbers from there on are of
 * turns of loops, in no order. A channel serves many steps at once. Nothing
 * blocks: each call names a function that is called when it has ended, perhaps
 * before the call returns, perhaps on another thread, with no lock held. So an
 * executor with one thread can run both ends.
 *
 *   sender:   ch->vt->send(ch, 7, step, src, bytes, &sent);
 *   receiver: ch->vt->recv(ch, 7, step, dst, bytes, &received);
 *
 * The caller's memory and the weir_channel_done must stay until |fn| is called;
 * a failed call too ends with |fn|, once. drop() ends all calls of one step and
 * fails its later ones; it is how a cancelled or late run gets every waiting
 * instruction moving, and the other steps go on. abort() does so for the whole
 * channel: a lost peer.
 *
 * A run with a failed node is not dropped by the processes that run it: the
 * readers of the node are told (send_error), and its other values still go
 * where they are wanted. The caller that numbers the steps drops it when all
 * have heard of it.
 *
 * Callers: the instructions of a running program (instr_comm.c), on any thread.
 * Implementations: `local` (one process) and `null` (to be copied). */

typedef struct weir_channel weir_channel;

/* How a call ended. |err| is lent for the call; NULL when |status| is OK. */
typedef struct weir_channel_done {
  void (*fn)(void *self, weir_status status, const weir_error *err);
  void *self;
  /* The channel's own until |fn| is called. */
  struct weir_channel_done *next;
  weir_status status;
} weir_channel_done;

typedef enum weir_collective_kind {
  WEIR_ALL_REDUCE,     /* dst[i] = sum over ranks of src[i] */
  WEIR_REDUCE_SCATTER, /* rank r's dst = part r of that sum */
  WEIR_ALL_GATHER,     /* dst = every rank's src, by rank */
  WEIR_ALL_TO_ALL,     /* part s of rank r's dst = part r of rank s's src */
  WEIR_BROADCAST       /* dst = rank 0's src */
} weir_collective_kind;

/* One rank's part in a collective. Sums are made in rank order, so every rank
 * gets the same bits. |count| is of elements of the larger side: dst for
 * ALL_GATHER, else src; REDUCE_SCATTER, ALL_GATHER and ALL_TO_ALL want it to be
 * a multiple of |ranks|. src and dst may be the same memory for ALL_REDUCE. */
typedef struct weir_collective {
  weir_collective_kind kind;
  weir_dtype dtype; /* f32, f64, i32, i64; sums of bool and u8 are refused */
  uint32_t group;   /* number of the group of ranks */
  uint32_t rank, ranks;
  int64_t count;
  const void *src;
  void *dst;
} weir_collective;

/* Takes the bytes of a receive as they come: pieces that do not overlap, from
 * the first byte on, together all of the edge's; |data| is lent for the call.
 * One call at a time, on any thread, without a lock held. */
typedef struct weir_channel_sink {
  void (*consume)(void *self, size_t offset, const void *data, size_t size);
  void *self;
} weir_channel_sink;

typedef struct weir_channel_vtable {
  void (*release)(weir_channel *channel);
  /* Ends when the bytes are taken over: |src| may be written again then. Waits
   * while the edge's FIFO is full. */
  void (*send)(weir_channel *channel, uint32_t edge, uint64_t step,
               const void *src, size_t bytes, weir_channel_done *done);
  /* Instead of a send: the receiver of this step fails with |why|, a copy of
   * which is kept. Ends at once, with a full FIFO too. */
  void (*send_error)(weir_channel *channel, uint32_t edge, uint64_t step,
                     const weir_error *why);
  /* Ends when |dst| holds the edge's bytes of this step. Fails with W9001 if
   * the sender sent another size, with the sender's error if there is one. */
  void (*recv)(weir_channel *channel, uint32_t edge, uint64_t step, void *dst,
               size_t bytes, weir_channel_done *done);
  /* The same without memory of the receiver's: each piece goes to |sink|, which
   * must stay as long as |done|. A failed receive may have consumed some. */
  void (*recv_pieces)(weir_channel *channel, uint32_t edge, uint64_t step,
                      size_t bytes, const weir_channel_sink *sink,
                      weir_channel_done *done);
  /* Ends when this rank's dst is complete and its src no longer read. |part|
   * must stay until then. */
  void (*collective)(weir_channel *channel, uint64_t step,
                     const weir_collective *part, weir_channel_done *done);
  /* Forgets |step|: its calls under way end with |why|, a copy of which is kept
   * for those that come later; its bytes that nobody took are gone, and so are
   * those that arrive late. May be called again, and for a step that has ended
   * or not begun. Steps that are very old when it is called may count as
   * dropped too. */
  void (*drop)(weir_channel *channel, uint64_t step, const weir_error *why);
  void (*abort)(weir_channel *channel, const weir_error *why);
} weir_channel_vtable;

/* Every channel starts with this. */
struct weir_channel {
  const weir_channel_vtable *vt;
};

/* The number of turn |turns| (a hash of the turns of all loops around) of step
 * |step|. */
uint64_t weir_channel_turn(uint64_t step, uint64_t turns);

void weir_channel_release(weir_channel *channel); /* NULL-safe */

#endif
