/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/net/grpc/link.h"

#include "runtime/base/size.h"
#include "runtime/net/grpc/in.h"
#include "runtime/net/grpc/limits.h"
#include "runtime/net/grpc/queue.h"
#include "runtime/net/grpc/tls/tls.h"
#include "runtime/net/grpc/words.h"

/* The life of a connection, which is one call of gRPC.
 *
 *   dialled:  start, headers, status -> headers came: open -> receive ...
 *   accepted: start, status, receive; open at once
 *
 * Each name is a batch with one tag. It has ended when `status` has come back
 * and no `receive` is under way: gRPC gives the last message to the latter, so
 * all frames have been reported by then. It is freed when no batch at all is
 * under way. One batch that sends is under way at most (`sending`): the thread
 * that takes that slot, in send or poll, starts the next one.
 *
 * The side that accepted sends a marker with its headers, since gRPC reports
 * empty headers for a call that failed as well. */

enum { SLOT_BITS = 20, LINGER_S = 5 };

/* ---- The table. The low bits of an id are a place in it. */

weir_grpc_link *weir_grpc_link_find(weir_grpc *t, weir_connection id) {
  size_t slot = id & ((1u << SLOT_BITS) - 1);
  weir_grpc_link *link = slot < t->link_room ? t->links[slot] : NULL;
  return link != NULL && link->id == id ? link : NULL;
}

static bool grow(weir_grpc *t) {
  size_t room = t->link_room == 0 ? 16 : 2 * t->link_room, bytes;
  if (room > 1u << SLOT_BITS || !weir_size_mul(room, sizeof *t->links, &bytes))
    return false;
  weir_grpc_link **links = weir_grpc_alloc(t, bytes);
  if (links == NULL) return false;
  weir_grpc_lock(t);
  weir_grpc_link **old = t->links;
  if (old != NULL) memcpy(links, old, t->link_room * sizeof *links);
  t->links = links;
  t->link_room = room;
  weir_grpc_unlock(t);
  weir_grpc_free(t, old);
  return true;
}

static void enter(weir_grpc *t, weir_grpc_link *link) {
  size_t slot = 0;
  weir_grpc_lock(t);
  while (t->links[slot] != NULL) slot++;
  t->links[slot] = link;
  t->link_count++;
  link->id = ++t->serial << SLOT_BITS | slot;
  weir_grpc_unlock(t);
}

static void set_deadline(weir_grpc_link *link, int64_t after_ns) {
  weir_grpc *t = link->transport;
  bool had = link->deadline_ns != INT64_MAX, has = after_ns != INT64_MAX;
  int64_t now = has ? weir_grpc_now(t) : 0;
  link->deadline_ns =
      has && after_ns < INT64_MAX - now ? now + after_ns : INT64_MAX;
  has = link->deadline_ns != INT64_MAX;
  t->timed += (unsigned)has - (unsigned)had;
}

/* ---- Its end */

/* Counts a batch as ended, and frees a link that was waiting for that. */
void weir_grpc_link_drop_op(weir_grpc_link *link) {
  weir_grpc *t = link->transport;
  weir_grpc_lock(t);
  bool last = --link->ops == 0 && link->ended;
  weir_grpc_unlock(t);
  if (last) weir_grpc_link_destroy(link);
}

/* Reports the end when it is there. */
static void check_end(weir_grpc_link *link) {
  weir_grpc *t = link->transport;
  if (!link->status_came || link->receiving) return;
  weir_grpc_lock(t);
  bool open = link->open;
  link->ended = true;
  weir_grpc_out *rest = weir_grpc_queue_take(link);
  weir_grpc_unlock(t);
  weir_grpc_queue_drop(rest);
  if (link->silent) return;
  link->silent = true;
  char words[WEIR_GRPC_WORDS];
  weir_close_reason why = weir_grpc_words_of_end(link, open, words);
  t->reported++;
  t->base.handler.on_closed(t->base.handler.self, link->id, why,
                            weir_sv_from(words));
}

/* ---- Batches that have ended, in poll */

static bool start(weir_grpc_link *link, const grpc_op *ops, size_t count,
                  weir_grpc_tag *tag) {
  weir_grpc_lock(link->transport);
  link->ops++;
  weir_grpc_unlock(link->transport);
  if (weir_grpc_start(link->call, ops, count, tag)) return true;
  weir_grpc_lock(link->transport);
  link->ops--;
  weir_grpc_unlock(link->transport);
  return false;
}

static void start_receive(weir_grpc_link *link) {
  grpc_op op = {.op = GRPC_OP_RECV_MESSAGE};
  op.data.recv_message.recv_message = &link->received;
  link->received = NULL;
  link->receiving = true;
  if (start(link, &op, 1, &link->receive)) return;
  link->receiving = false;
  weir_grpc_link_cancel(link);
}

static void on_started(void *self, bool ok) {
  (void)ok; /* `status` tells more */
  weir_grpc_link_drop_op(self);
}

static bool has_marker(const weir_grpc_link *link) {
  for (size_t i = 0; i < link->metadata.count; i++)
    if (grpc_slice_str_cmp(link->metadata.metadata[i].key, "weir") == 0)
      return true;
  return false;
}

static void report_open(weir_grpc_link *link) {
  weir_grpc *t = link->transport;
  char names[WEIR_NET_NAMES_BYTES] = "";
  set_deadline(link, INT64_MAX);
  if (t->tls != NULL) weir_grpc_tls_names(link->call, names);
  weir_grpc_lock(t);
  memcpy(link->names, names, sizeof names);
  link->open = true;
  weir_grpc_unlock(t);
  if (!link->silent && !t->releasing) {
    t->reported++;
    t->base.handler.on_connected(t->base.handler.self, link->id,
                                 weir_sv_from(link->peer), link->incoming);
  } else if (!t->releasing) {
    set_deadline(link, (int64_t)LINGER_S * 1000000000);
  }
}

static void on_headers(void *self, bool ok) {
  weir_grpc_link *link = self;
  if (ok && has_marker(link)) {
    report_open(link);
    start_receive(link);
    weir_grpc_queue_advance(link);
  } else {
    /* Or it failed: then `status` comes soon. */
    link->foreign = !link->timed_out;
  }
  weir_grpc_link_drop_op(link);
}

static void on_status(void *self, bool ok) {
  weir_grpc_link *link = self;
  (void)ok; /* always */
  link->status_came = true;
  set_deadline(link, INT64_MAX);
  check_end(link);
  weir_grpc_link_drop_op(link);
}

static void deliver(weir_grpc_link *link, grpc_byte_buffer *buffer) {
  weir_grpc *t = link->transport;
  size_t wanted;
  weir_net_frame *frame = weir_grpc_in_create(t, buffer, &wanted);
  if (frame == NULL) {
    t->wanted = wanted;
    link->broken = true;
    weir_grpc_link_cancel(link);
    return;
  }
  weir_grpc_limits_heard(link);
  t->reported++;
  t->base.handler.on_frame(t->base.handler.self, link->id, frame);
  weir_net_frame_unref(frame);
}

static void on_received(void *self, bool ok) {
  weir_grpc_link *link = self;
  weir_grpc *t = link->transport;
  grpc_byte_buffer *buffer = link->received;
  (void)ok; /* the end of a stream is a message that is not there */
  link->received = NULL;
  link->receiving = false;
  if (buffer == NULL) {
    weir_grpc_lock(t);
    link->peer_done = true; /* of a dialled one `status` follows */
    weir_grpc_unlock(t);
    weir_grpc_queue_advance(link);
    check_end(link);
  } else {
    if (link->silent || link->broken || t->releasing)
      grpc_byte_buffer_destroy(buffer);
    else
      deliver(link, buffer);
    start_receive(link);
  }
  weir_grpc_link_drop_op(link);
}

/* ---- Beginning and ending */

weir_grpc_link *weir_grpc_link_create(weir_grpc *t, bool incoming) {
  bool full = t->link_count == t->link_room;
  weir_grpc_link *link = weir_grpc_alloc(t, sizeof *link);
  if (link == NULL) return NULL;
  if (full && !grow(t)) {
    weir_grpc_free(t, link);
    return NULL;
  }
  link->transport = t;
  link->incoming = incoming;
  link->deadline_ns = INT64_MAX;
  link->details = grpc_empty_slice();
  grpc_metadata_array_init(&link->metadata);
  grpc_metadata_array_init(&link->trailers);
  link->start = (weir_grpc_tag){on_started, link};
  link->headers = (weir_grpc_tag){on_headers, link};
  link->status = (weir_grpc_tag){on_status, link};
  link->receive = (weir_grpc_tag){on_received, link};
  link->send = (weir_grpc_tag){weir_grpc_queue_on_sent, link};
  link->end = (weir_grpc_tag){weir_grpc_queue_on_ended, link};
  enter(t, link);
  return link;
}

void weir_grpc_link_destroy(weir_grpc_link *link) {
  weir_grpc *t = link->transport;
  weir_grpc_lock(t);
  t->links[link->id & ((1u << SLOT_BITS) - 1)] = NULL;
  t->link_count--;
  weir_grpc_unlock(t);
  t->heard -= link->heard;
  set_deadline(link, INT64_MAX);
  grpc_slice_unref(link->details);
  grpc_metadata_array_destroy(&link->metadata);
  grpc_metadata_array_destroy(&link->trailers);
  if (link->call != NULL) grpc_call_unref(link->call);
  if (link->channel != NULL) grpc_channel_destroy(link->channel);
  weir_grpc_verdict_release(link->verdict);
  weir_grpc_free(t, link);
}

static void begin_dialled(weir_grpc_link *link) {
  grpc_op op = {.op = GRPC_OP_RECV_STATUS_ON_CLIENT};
  op.data.recv_status_on_client.trailing_metadata = &link->trailers;
  op.data.recv_status_on_client.status = &link->code;
  op.data.recv_status_on_client.status_details = &link->details;
  start(link, &op, 1, &link->status);
  op = (grpc_op){.op = GRPC_OP_SEND_INITIAL_METADATA};
  start(link, &op, 1, &link->start);
  op = (grpc_op){.op = GRPC_OP_RECV_INITIAL_METADATA};
  op.data.recv_initial_metadata.recv_initial_metadata = &link->metadata;
  start(link, &op, 1, &link->headers);
  set_deadline(link, link->transport->base.options.connect_ns);
}

void weir_grpc_link_begin(weir_grpc_link *link) {
  if (!link->incoming) {
    begin_dialled(link);
    return;
  }
  grpc_op op = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER};
  op.data.recv_close_on_server.cancelled = &link->cancelled;
  start(link, &op, 1, &link->status);
  link->marker.key = grpc_slice_from_static_string("weir");
  link->marker.value = grpc_slice_from_static_string("1");
  op = (grpc_op){.op = GRPC_OP_SEND_INITIAL_METADATA};
  op.data.send_initial_metadata.count = 1;
  op.data.send_initial_metadata.metadata = &link->marker;
  start(link, &op, 1, &link->start);
  report_open(link);
  start_receive(link);
  weir_grpc_queue_advance(link);
}

void weir_grpc_link_cancel(weir_grpc_link *link) {
  (void)grpc_call_cancel(link->call, NULL);
}

void weir_grpc_link_close(weir_grpc_link *link) {
  weir_grpc *t = link->transport;
  link->silent = true;
  weir_grpc_lock(t);
  /* One that came in and said nothing gets no goodbye, for which it might make
   * us wait. */
  bool mute = link->incoming && !link->heard;
  bool now = (mute || !link->open) && link->first == NULL;
  link->closing = true;
  bool open = link->open;
  weir_grpc_unlock(t);
  if (open) set_deadline(link, (int64_t)LINGER_S * 1000000000);
  if (now)
    weir_grpc_link_cancel(link);
  else
    weir_grpc_queue_advance(link);
}

int64_t weir_grpc_link_expire(weir_grpc *t) {
  int64_t next = INT64_MAX;
  if (t->timed == 0) return next;
  int64_t now = weir_grpc_now(t);
  for (size_t i = 0; i < t->link_room; i++) {
    weir_grpc_link *link = t->links[i]; /* poll alone changes the table */
    if (link == NULL || link->deadline_ns == INT64_MAX) continue;
    if (link->deadline_ns > now) {
      if (link->deadline_ns < next) next = link->deadline_ns;
      continue;
    }
    link->timed_out = true;
    set_deadline(link, INT64_MAX);
    weir_grpc_link_cancel(link);
  }
  return next;
}
