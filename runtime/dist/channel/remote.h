/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_REMOTE_H_
#define WEIR_DIST_REMOTE_H_

#include "runtime/dist/channel/arrive.h"
#include "runtime/dist/channel/rendezvous.h"

/* A rendezvous for the threads of a task, and channels over it.
 *
 * One weir_remote serves a session; each program has a channel, which knows the
 * program's edges. Any thread calls anything but release. Frames leave through
 * |out|, on the thread whose call made them, or on that which is sending
 * already; calls that end are told on the thread that ended them; both with no
 * lock held. Bytes of chunks are copied without the lock.
 *
 * Small values are collected. With |collected| that is called, with no lock
 * held, when the first comes: the owner lets them go by weir_remote_flush when
 * it is a good time. Without it the first goes at once, and those that come
 * until it has left |out| go together then; if |out| does not tell that, each
 * goes at once. */

typedef struct weir_remote weir_remote;

typedef struct weir_remote_options {
  weir_rendezvous_options rendezvous; /* its owner is not used */
  const weir_wire_out *out;           /* lent */
  void (*collected)(void *self);      /* may be NULL */
  void *self;
} weir_remote_options;

/* |env| is lent. Errors: W6001, W6003. */
weir_status weir_remote_create(const weir_env *env,
                               const weir_remote_options *options,
                               weir_remote **out_remote, weir_error *err);
/* When it is empty, all channels are released and no call is under way. Frames
 * may still be on their way out: |out| is no longer called. NULL-safe. */
void weir_remote_release(weir_remote *remote);

/* ---- As those of rendezvous.h, from any thread. */

void weir_remote_send(weir_remote *remote, uint32_t peer, const weir_slot *slot,
                      weir_bytes data, weir_channel_done *done);
void weir_remote_send_error(weir_remote *remote, uint32_t peer,
                            const weir_slot *slot, const weir_error *why);
void weir_remote_recv(weir_remote *remote, uint32_t peer, const weir_slot *slot,
                      void *dst, size_t bytes, weir_channel_done *done);
void weir_remote_recv_pieces(weir_remote *remote, uint32_t peer,
                             const weir_slot *slot, size_t bytes,
                             const weir_rendezvous_sink *sink,
                             weir_channel_done *done);
void weir_remote_recv_owned(weir_remote *remote, uint32_t peer,
                            const weir_slot *slot, uint64_t limit,
                            weir_bytes *out, weir_channel_done *done);
void weir_remote_drop(weir_remote *remote, uint64_t step,
                      const weir_error *why);
void weir_remote_finish(weir_remote *remote, uint64_t step);
void weir_remote_lost(weir_remote *remote, uint32_t peer,
                      const weir_error *why);
void weir_remote_abort(weir_remote *remote, const weir_error *why);
void weir_remote_flush(weir_remote *remote);
bool weir_remote_is_empty(weir_remote *remote);
size_t weir_remote_pending(weir_remote *remote, weir_rendezvous_wait *waits,
                           size_t capacity);

/* ---- Frames from peers. After an error the owner ends the connection and
 * calls weir_remote_lost. */

/* A message: Values, Ready, Credit or Cut. Errors: W7011. */
weir_status weir_remote_on_control(weir_remote *remote, uint32_t peer,
                                   const Weir__V1__Control *message,
                                   weir_error *err);
/* A bulk frame; one thread at a time for each peer. Errors: W7010, W7011. */
weir_status weir_remote_on_bulk(weir_remote *remote, uint32_t peer,
                                const weir_net_frame *frame, weir_error *err);

/* ---- Channels */

/* Bytes of an edge that the two ends know and the table does not. */
#define WEIR_REMOTE_ANY_BYTES SIZE_MAX

/* An edge between this task and a peer. */
typedef struct weir_remote_edge {
  uint32_t peer;
  bool outgoing;
  size_t bytes;
} weir_remote_edge;

/* A channel over |edges|, copied; their numbers are places in that table, and
 * name values of kind EDGE. An edge of no peer, or in the other direction, is
 * W9001 for |done|, and so are collectives: those over several tasks are made
 * of sends before. abort() aborts the whole |remote|, drop() drops the step of
 * it. Errors: W6001. */
weir_status weir_remote_channel_create(weir_remote *remote,
                                       const weir_remote_edge *edges,
                                       size_t count, weir_channel **out_channel,
                                       weir_error *err);

#endif
