/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/net/grpc/queue.h"

#include "runtime/base/size.h"
#include "runtime/net/grpc/limits.h"
#include "runtime/net/grpc/link.h"
#include "runtime/net/grpc/out.h"
#include "runtime/net/grpc/words.h"

/* gRPC takes one message at a time. A thread in send or poll that finds the
 * slot free (`sending`) takes it and starts the next batch without the mutex;
 * the event of that batch gives it back. A batch under way keeps its link, so
 * after the mutex is let go only the thread with the slot touches the link. */

/* The next batch that sends: a frame, the goodbye, or none. */
typedef struct batch {
  weir_grpc_out *frame;
  bool more; /* another frame waits behind it */
  bool end;
} batch;

/* Takes the slot if it is free and needed. With the mutex held. */
static batch next_batch(weir_grpc_link *link) {
  batch b = {NULL, false, false};
  if (!link->open || link->sending || link->ended) return b;
  b.frame = link->first;
  if (b.frame != NULL) {
    link->first = b.frame->next;
    if (link->first == NULL) link->last = NULL;
    b.more = link->first != NULL;
    link->in_flight = b.frame;
  } else if (!link->end_sent &&
             (link->closing || (link->incoming && link->peer_done))) {
    link->end_sent = b.end = true;
  }
  if (b.frame != NULL || b.end) link->sending = true, link->ops++;
  return b;
}

static void start_batch(weir_grpc_link *link, const batch *b) {
  grpc_op op = {.op = GRPC_OP_SEND_MESSAGE};
  weir_grpc_tag *tag = &link->send;
  if (b->frame != NULL) {
    op.data.send_message.send_message = b->frame->buffer;
    if (b->more) op.flags = GRPC_WRITE_BUFFER_HINT;
  } else if (b->end) {
    tag = &link->end;
    op.op = link->incoming ? GRPC_OP_SEND_STATUS_FROM_SERVER
                           : GRPC_OP_SEND_CLOSE_FROM_CLIENT;
    if (link->incoming) op.data.send_status_from_server.status = GRPC_STATUS_OK;
  } else {
    return;
  }
  if (weir_grpc_start(link->call, &op, 1, tag))
    return; /* the link may be gone by now */
  /* Cannot be, by gRPC's rules; then it comes back as if it had failed. */
  weir_grpc_link_cancel(link);
  (void)weir_grpc_start(link->call, NULL, 0, tag);
}

/* |frame| waits no more. With the mutex held. */
static void uncount(weir_grpc_link *link, const weir_grpc_out *frame) {
  link->queued_bytes -= frame->bytes;
  link->copied_bytes -= frame->copied;
  link->transport->copied_bytes -= frame->copied;
}

weir_grpc_out *weir_grpc_queue_take(weir_grpc_link *link) {
  weir_grpc_out *first = link->first;
  for (weir_grpc_out *f = first; f != NULL; f = f->next) uncount(link, f);
  link->first = link->last = NULL;
  return first;
}

void weir_grpc_queue_drop(weir_grpc_out *first) {
  while (first != NULL) {
    weir_grpc_out *next = first->next;
    weir_grpc_out_release(first, false);
    first = next;
  }
}

void weir_grpc_queue_advance(weir_grpc_link *link) {
  weir_grpc_out *unwanted = NULL;
  weir_grpc_lock(link->transport);
  /* A peer that said goodbye takes nothing more. */
  if (link->incoming && link->peer_done) unwanted = weir_grpc_queue_take(link);
  batch b = next_batch(link);
  weir_grpc_unlock(link->transport);
  weir_grpc_queue_drop(unwanted);
  start_batch(link, &b);
}

void weir_grpc_queue_on_sent(void *self, bool ok) {
  weir_grpc_link *link = self;
  weir_grpc_out *rest = NULL;
  weir_grpc_lock(link->transport);
  weir_grpc_out *frame = link->in_flight;
  link->in_flight = NULL;
  uncount(link, frame);
  link->sending = false;
  if (!ok) rest = weir_grpc_queue_take(link); /* `status` is on its way */
  weir_grpc_unlock(link->transport);
  weir_grpc_queue_advance(link);
  weir_grpc_out_release(frame, false);
  weir_grpc_queue_drop(rest);
  weir_grpc_link_drop_op(link);
}

void weir_grpc_queue_on_ended(void *self, bool ok) {
  (void)ok;
  weir_grpc_link_drop_op(self);
}

/* Puts |frame| at the end of the queue if there is room, and takes the slot. */
static weir_status enqueue(weir_grpc_link *link, weir_grpc_out *frame,
                           batch *out_batch, size_t *out_queued) {
  if (link == NULL || link->ended || link->closing) return WEIR_UNAVAILABLE;
  size_t most = link->transport->base.options.max_queue_bytes;
  *out_queued = link->queued_bytes;
  if (link->queued_bytes > most || frame->bytes > most - link->queued_bytes)
    return WEIR_RESOURCE_EXHAUSTED;
  if (!weir_grpc_limits_queue(link, frame->copied)) return WEIR_OUT_OF_RANGE;
  if (link->last != NULL)
    link->last->next = frame;
  else
    link->first = frame;
  link->last = frame;
  link->queued_bytes += frame->bytes;
  link->copied_bytes += frame->copied;
  link->transport->copied_bytes += frame->copied;
  *out_batch = next_batch(link);
  return WEIR_OK;
}

static bool sum(const weir_net_piece *pieces, size_t count, size_t *out_bytes) {
  *out_bytes = 0;
  for (size_t i = 0; i < count; i++)
    if (!weir_size_add(*out_bytes, pieces[i].size, out_bytes)) return false;
  return *out_bytes <= UINT32_MAX; /* gRPC cuts off more, without a word */
}

weir_status weir_grpc_queue_send(weir_transport *base, weir_connection c,
                                 const weir_net_piece *pieces, size_t count,
                                 weir_error *err) {
  weir_grpc *t = (weir_grpc *)base;
  size_t bytes, queued = 0, most = base->options.max_queue_bytes;
  if (!sum(pieces, count, &bytes))
    return weir_grpc_fail(t, err, "W7003", "a frame is larger than 4 GiB");
  weir_grpc_out *frame = weir_grpc_out_create(t, pieces, count);
  if (frame == NULL) return weir_grpc_fail_memory(t, err, bytes);
  batch b = {NULL, false, false};
  weir_grpc_lock(t);
  weir_grpc_link *link = weir_grpc_link_find(t, c);
  weir_status s = enqueue(link, frame, &b, &queued);
  weir_grpc_unlock(t);
  if (s == WEIR_OK) {
    start_batch(link, &b);
    return s;
  }
  weir_grpc_out_release(frame, true);
  if (s == WEIR_UNAVAILABLE)
    return weir_grpc_fail(t, err, "W7001", "the connection has ended");
  if (s == WEIR_OUT_OF_RANGE)
    return weir_grpc_fail(t, err, "W7003",
                          "%zu bytes wait for this peer, more than its share "
                          "of the %d MiB that may wait for all peers",
                          queued, WEIR_GRPC_WORDS_MIB);
  return weir_grpc_fail(t, err, "W7003",
                        "%zu bytes wait for this peer, and its queue takes "
                        "%zu: there is no room for %zu more",
                        queued, most, bytes);
}
