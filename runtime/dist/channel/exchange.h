/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_EXCHANGE_H_
#define WEIR_DIST_EXCHANGE_H_

#include "runtime/dist/channel/arrive.h"
#include "runtime/dist/channel/rendezvous.h"

/* A rendezvous for the threads of a task, and channels over it.
 *
 * One weir_exchange serves a session; each program has a channel, which knows
 * the program's edges. Any thread calls anything but release. Frames leave
 * through |out|, on the thread whose call made them, or on that which is
 * sending already; calls that end are told on the thread that ended them; both
 * with no lock held. Bytes of chunks are copied without the lock.
 *
 * Small values are collected. With |collected| that is called, with no lock
 * held, when the first comes: the owner lets them go by weir_exchange_flush
 * when it is a good time. Without it the first goes at once, and those that
 * come until it has left |out| go together then; if |out| does not tell that,
 * each goes at once. */

typedef struct weir_exchange weir_exchange;

typedef struct weir_exchange_options {
  weir_rendezvous_options rendezvous; /* its owner is not used */
  const weir_wire_out *out;           /* lent */
  void (*collected)(void *self);      /* may be NULL */
  void *self;
} weir_exchange_options;

/* |env| is lent. Errors: W6001, W6003. */
weir_status weir_exchange_create(const weir_env *env,
                                 const weir_exchange_options *options,
                                 weir_exchange **out_exchange, weir_error *err);
/* When it is empty, all channels are released and no call is under way. Frames
 * may still be on their way out: |out| is no longer called. NULL-safe. */
void weir_exchange_release(weir_exchange *exchange);

/* ---- As those of rendezvous.h, from any thread. */

void weir_exchange_send(weir_exchange *exchange, uint32_t peer,
                        const weir_slot *slot, weir_bytes data,
                        weir_channel_done *done);
void weir_exchange_send_error(weir_exchange *exchange, uint32_t peer,
                              const weir_slot *slot, const weir_error *why);
void weir_exchange_recv(weir_exchange *exchange, uint32_t peer,
                        const weir_slot *slot, void *dst, size_t bytes,
                        weir_channel_done *done);
void weir_exchange_recv_pieces(weir_exchange *exchange, uint32_t peer,
                               const weir_slot *slot, size_t bytes,
                               const weir_rendezvous_sink *sink,
                               weir_channel_done *done);
void weir_exchange_recv_owned(weir_exchange *exchange, uint32_t peer,
                              const weir_slot *slot, uint64_t limit,
                              weir_bytes *out, weir_channel_done *done);
void weir_exchange_drop(weir_exchange *exchange, uint64_t step,
                        const weir_error *why);
void weir_exchange_finish(weir_exchange *exchange, uint64_t step);
void weir_exchange_lost(weir_exchange *exchange, uint32_t peer,
                        const weir_error *why);
void weir_exchange_abort(weir_exchange *exchange, const weir_error *why);
void weir_exchange_flush(weir_exchange *exchange);
bool weir_exchange_is_empty(weir_exchange *exchange);
size_t weir_exchange_pending(weir_exchange *exchange,
                             weir_rendezvous_wait *waits, size_t capacity);

/* ---- Frames from peers. After an error the owner ends the connection and
 * calls weir_exchange_lost. */

/* A message: Values, Ready or Cut. Errors: W7011. */
weir_status weir_exchange_on_control(weir_exchange *exchange, uint32_t peer,
                                     const Weir__V1__Control *message,
                                     weir_error *err);
/* A bulk frame; one thread at a time for each peer. Errors: W7010, W7011. */
weir_status weir_exchange_on_bulk(weir_exchange *exchange, uint32_t peer,
                                  const weir_net_frame *frame, weir_error *err);

/* ---- Channels */

/* Bytes of an edge that the two ends know and the table does not. */
#define WEIR_EXCHANGE_ANY_BYTES SIZE_MAX

/* An edge between this task and a peer. */
typedef struct weir_exchange_edge {
  uint32_t peer;
  bool outgoing;
  size_t bytes;
} weir_exchange_edge;

/* A channel over |edges|, copied; their numbers are places in that table, and
 * name values of kind EDGE. An edge of no peer, or in the other direction, is
 * W9001 for |done|, and so are collectives: those over several tasks are made
 * of sends before. abort() aborts the whole |exchange|, drop() drops the step
 * of it. Errors: W6001. */
weir_status weir_exchange_channel_create(weir_exchange *exchange,
                                         const weir_exchange_edge *edges,
                                         size_t count,
                                         weir_channel **out_channel,
                                         weir_error *err);

#endif
