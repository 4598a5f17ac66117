/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_LEAVE_H_
#define WEIR_DIST_LEAVE_H_

#include "runtime/dist/channel/rendezvous.h"

/* The work that a rendezvous leaves behind: frames to be sent, calls that have
 * ended. Its owner takes it piece by piece and does it without its lock. */

typedef struct weir_chunk weir_chunk;

/* A frame to be sent: a control message, or a bulk frame. */
typedef struct weir_rendezvous_frame {
  uint32_t peer;
  weir_bytes control; /* size 0: a bulk frame; lent until the next call */
  bool batch;         /* a control message of what was collected */
  uint8_t header[WEIR_BULK_HEADER_BYTES];
  size_t header_bytes;
  weir_bytes payload; /* the sender's memory, until the chunk is given back */
  weir_chunk *chunk;  /* NULL: a bulk frame without one, of credit */
} weir_rendezvous_frame;

/* The next frame; false when there is none. Frames of one peer must be sent in
 * this order: one thread at a time takes and sends. */
bool weir_rendezvous_next_frame(weir_rendezvous *r,
                                weir_rendezvous_frame *out_frame);
/* The batch in a frame to |peer| is with the transport, and has left it. */
void weir_rendezvous_batch_goes(weir_rendezvous *r, uint32_t peer);
void weir_rendezvous_batch_left(weir_rendezvous *r, uint32_t peer);
/* As weir_rendezvous_flush, for peers to which no batch is under way. */
void weir_rendezvous_flush_free(weir_rendezvous *r);
/* The transport has released the payload, or never took it. */
void weir_rendezvous_released(weir_chunk *chunk);
/* The options' owner, of a chunk. */
void *weir_chunk_owner(const weir_chunk *chunk);

/* |peer| waits for something that will never go: it is lost, and its owner is
 * to be told, once, so that the peer hears of it. */
void weir_rendezvous_break(weir_rendezvous *r, uint32_t peer,
                           const weir_error *why);
bool weir_rendezvous_next_broken(weir_rendezvous *r, uint32_t *out_peer);

/* A call that has ended. */
typedef struct weir_rendezvous_end {
  weir_channel_done *done;
  weir_cell *cell;       /* to be given back; may be NULL */
  const weir_error *err; /* NULL: it went well; lent until given back */
} weir_rendezvous_end;

/* The next call that has ended; false when there is none. The owner tells it
 * without its lock, then gives it back. Any number of threads may. */
bool weir_rendezvous_next_end(weir_rendezvous *r, weir_rendezvous_end *out_end);
/* Hands a kept value to its sink, and calls |done|. */
void weir_rendezvous_tell(const weir_rendezvous_end *end);
void weir_rendezvous_give_back(weir_rendezvous *r,
                               const weir_rendezvous_end *end);

#endif
