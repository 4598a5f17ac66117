/* SPDX-License-Identifier: Apache-2.0
 *
 * A rendezvous for the threads of a task.
 *
 * One mutex around the core. After each call the thread does the work that the
 * core has left behind: it takes a frame or an end under the lock, gives the
 * lock back, and sends or tells. One thread at a time sends, so that the frames
 * of a peer keep their order; another that finds it sending leaves its frames
 * to it. Any thread tells the ends of calls.
 *
 * Invariant: when no thread is in here, no frame and no end is left: a thread
 * that stops sending has seen under the lock that there is none, and one that
 * makes a frame later sees under the lock that nobody sends.
 *
 * The transport reports each batch that has left it, by the token of its peer,
 * on a thread of its own, perhaps after the owner has released all this: each
 * such batch holds the memory, and touches the core only before |closed|. */
#include "runtime/dist/channel/exchange.h"

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/base/size.h"
#include "runtime/dist/channel/ends.h"
#include "runtime/dist/channel/pump.h"

/* A peer, for the end of batches to it. */
typedef struct batch_token {
  weir_exchange *exchange;
  uint32_t peer;
} batch_token;

struct weir_exchange {
  const weir_env *env;
  const weir_allocator *alloc;
  atomic_uint refs; /* the owner's, each batch under way */
  weir_exchange_options options;
  pthread_mutex_t lock;
  weir_rendezvous *r;
  bool sending;
  bool told; /* |collected| was called, no flush has come since */
  bool closed;
  uint32_t inside; /* calls and tokens that have not left: see release */
  pthread_cond_t left;
  batch_token tokens[]; /* of the tasks, then the driver's */
};

static void unref(weir_exchange *m) {
  if (atomic_fetch_sub(&m->refs, 1) != 1) return;
  pthread_cond_destroy(&m->left);
  pthread_mutex_destroy(&m->lock);
  weir_free(m->alloc, m);
}

static weir_exchange *make(const weir_allocator *alloc, uint32_t tasks) {
  size_t bytes;
  if (!weir_size_mul((size_t)tasks + 1, sizeof(batch_token), &bytes) ||
      !weir_size_add(bytes, sizeof(weir_exchange), &bytes))
    return NULL;
  weir_exchange *m = weir_alloc(alloc, bytes);
  if (m == NULL) return NULL;
  memset(m, 0, bytes);
  m->alloc = alloc;
  atomic_init(&m->refs, 1);
  for (uint32_t i = 0; i <= tasks; i++)
    m->tokens[i] = (batch_token){m, i < tasks ? i : WEIR_PEER_DRIVER};
  return m;
}

weir_status weir_exchange_create(const weir_env *env,
                                 const weir_exchange_options *options,
                                 weir_exchange **out_exchange,
                                 weir_error *err) {
  *out_exchange = NULL;
  weir_exchange *m = make(env->alloc, options->rendezvous.tasks);
  if (m == NULL) return weir_fail_memory(err, sizeof *m);
  m->env = env;
  m->options = *options;
  weir_rendezvous_options core = options->rendezvous;
  core.owner = m;
  weir_status s = weir_rendezvous_create(env->alloc, &core, &m->r, err);
  if (s == WEIR_OK && pthread_mutex_init(&m->lock, NULL) != 0) {
    weir_rendezvous_release(m->r);
    s = weir_fail(err, WEIR_W6003, NULL, "no mutex");
  } else if (s == WEIR_OK) {
    pthread_cond_init(&m->left, NULL);
  }
  if (s != WEIR_OK) {
    weir_free(env->alloc, m);
    return s;
  }
  *out_exchange = m;
  return WEIR_OK;
}

void weir_exchange_release(weir_exchange *m) {
  if (m == NULL) return;
  pthread_mutex_lock(&m->lock);
  m->closed = true;
  while (m->inside > 0) pthread_cond_wait(&m->left, &m->lock);
  pthread_mutex_unlock(&m->lock);
  weir_rendezvous_release(m->r);
  unref(m);
}

/* ---- Work. All of these are called with the lock, and have it at the end. */

static void released(void *chunk);
static void batch_left(void *token);

/* Whether the ends of batches are told, and decide when the next ones go. */
static bool gathers(const weir_exchange *m) {
  return m->options.collected == NULL && m->options.out->watched != NULL;
}

/* Sends a batch whose end is told. With the lock, which is let go meanwhile. */
static weir_status send_batch(weir_exchange *m,
                              const weir_rendezvous_frame *frame) {
  const weir_wire_out *out = m->options.out;
  uint32_t tasks = m->options.rendezvous.tasks;
  batch_token *token =
      &m->tokens[frame->peer == WEIR_PEER_DRIVER ? tasks : frame->peer];
  weir_rendezvous_batch_goes(m->r, frame->peer);
  atomic_fetch_add(&m->refs, 1);
  pthread_mutex_unlock(&m->lock);
  weir_status s =
      out->watched(out->self, frame->peer, frame->control, batch_left, token);
  pthread_mutex_lock(&m->lock);
  if (s == WEIR_OK) return s;
  weir_rendezvous_batch_left(m->r, frame->peer);
  unref(m); /* not the last: the caller is in a call */
  return s;
}

static weir_status send_frame(weir_exchange *m,
                              const weir_rendezvous_frame *frame) {
  if (frame->batch && gathers(m)) return send_batch(m, frame);
  pthread_mutex_unlock(&m->lock);
  weir_status s = weir_rendezvous_send_frame(m->options.out, frame, released);
  pthread_mutex_lock(&m->lock);
  return s;
}

static void send_all(weir_exchange *m) {
  weir_rendezvous_frame frame;
  if (m->sending) return;
  m->sending = true;
  while (weir_rendezvous_next_frame(m->r, &frame)) {
    if (send_frame(m, &frame) == WEIR_OK) continue;
    weir_error err = WEIR_ERROR_INIT;
    weir_fail(&err, WEIR_W7001, NULL, "a frame could not be sent");
    if (frame.chunk != NULL) weir_rendezvous_released(frame.chunk);
    weir_rendezvous_break(m->r, frame.peer, &err);
  }
  m->sending = false;
}

/* With the lock, which is let go meanwhile. */
static void tell_broken(weir_exchange *m) {
  const weir_wire_out *out = m->options.out;
  uint32_t peer;
  while (weir_rendezvous_next_broken(m->r, &peer)) {
    if (out->broken == NULL) continue;
    pthread_mutex_unlock(&m->lock);
    out->broken(out->self, peer);
    pthread_mutex_lock(&m->lock);
  }
}

static void tell_all(weir_exchange *m) {
  weir_rendezvous_end end;
  while (weir_rendezvous_next_end(m->r, &end)) {
    pthread_mutex_unlock(&m->lock);
    weir_rendezvous_tell(&end);
    pthread_mutex_lock(&m->lock);
    weir_rendezvous_give_back(m->r, &end);
  }
}

/* Small values lie there: lets them go, or says so once. */
static bool has_collected(weir_exchange *m) {
  if (m->told || !weir_rendezvous_collects(m->r)) return false;
  if (m->options.collected == NULL) {
    if (gathers(m))
      weir_rendezvous_flush_free(m->r);
    else
      weir_rendezvous_flush(m->r);
    return false;
  }
  m->told = true;
  return true;
}

/* The end of a value may let its owner release all this on another thread,
 * which waits until whoever told it has left. */
static void lock(weir_exchange *m) {
  pthread_mutex_lock(&m->lock);
  m->inside++;
}

static void enter(weir_exchange *m) {
  lock(m);
  const weir_clock *clock = m->env->clock;
  if (clock != NULL) weir_rendezvous_set_now(m->r, clock->now_ns(clock->self));
}

static void unlock(weir_exchange *m) {
  m->inside--;
  if (m->closed && m->inside == 0) pthread_cond_broadcast(&m->left);
  pthread_mutex_unlock(&m->lock);
}

/* Does the work that the call has made, and gives the lock back. */
static void work(weir_exchange *m) {
  send_all(m);
  tell_broken(m);
  tell_all(m);
  unlock(m);
}

static void leave(weir_exchange *m) {
  bool tell = has_collected(m);
  work(m);
  if (tell) m->options.collected(m->options.self);
}

static void released(void *chunk) {
  weir_exchange *m = weir_chunk_owner(chunk);
  lock(m);
  weir_rendezvous_released(chunk);
  leave(m);
}

static void batch_left(void *self) {
  const batch_token *token = self;
  weir_exchange *m = token->exchange;
  pthread_mutex_lock(&m->lock);
  if (!m->closed) {
    m->inside++;
    weir_rendezvous_batch_left(m->r, token->peer);
    (void)has_collected(m);
    work(m);
  } else {
    pthread_mutex_unlock(&m->lock);
  }
  unref(m);
}

/* ---- Calls */

void weir_exchange_send(weir_exchange *m, uint32_t peer, const weir_slot *slot,
                        weir_bytes data, weir_channel_done *done) {
  enter(m);
  weir_rendezvous_send(m->r, peer, slot, data, done);
  leave(m);
}

void weir_exchange_send_error(weir_exchange *m, uint32_t peer,
                              const weir_slot *slot, const weir_error *why) {
  enter(m);
  weir_rendezvous_send_error(m->r, peer, slot, why);
  leave(m);
}

void weir_exchange_recv(weir_exchange *m, uint32_t peer, const weir_slot *slot,
                        void *dst, size_t bytes, weir_channel_done *done) {
  enter(m);
  weir_rendezvous_recv(m->r, peer, slot, dst, bytes, done);
  leave(m);
}

void weir_exchange_recv_pieces(weir_exchange *m, uint32_t peer,
                               const weir_slot *slot, size_t bytes,
                               const weir_rendezvous_sink *sink,
                               weir_channel_done *done) {
  enter(m);
  weir_rendezvous_recv_pieces(m->r, peer, slot, bytes, sink, done);
  leave(m);
}

void weir_exchange_recv_owned(weir_exchange *m, uint32_t peer,
                              const weir_slot *slot, uint64_t limit,
                              weir_bytes *out, weir_channel_done *done) {
  enter(m);
  weir_rendezvous_recv_owned(m->r, peer, slot, limit, out, done);
  leave(m);
}

void weir_exchange_drop(weir_exchange *m, uint64_t step,
                        const weir_error *why) {
  enter(m);
  weir_rendezvous_drop(m->r, step, why);
  leave(m);
}

void weir_exchange_finish(weir_exchange *m, uint64_t step) {
  enter(m);
  weir_rendezvous_finish(m->r, step);
  leave(m);
}

void weir_exchange_lost(weir_exchange *m, uint32_t peer,
                        const weir_error *why) {
  enter(m);
  weir_rendezvous_lost(m->r, peer, why);
  leave(m);
}

void weir_exchange_abort(weir_exchange *m, const weir_error *why) {
  enter(m);
  weir_rendezvous_abort(m->r, why);
  leave(m);
}

void weir_exchange_flush(weir_exchange *m) {
  lock(m);
  m->told = false;
  weir_rendezvous_flush(m->r);
  work(m);
}

bool weir_exchange_is_empty(weir_exchange *m) {
  pthread_mutex_lock(&m->lock);
  bool empty = weir_rendezvous_is_empty(m->r);
  pthread_mutex_unlock(&m->lock);
  return empty;
}

size_t weir_exchange_pending(weir_exchange *m, weir_rendezvous_wait *waits,
                             size_t capacity) {
  pthread_mutex_lock(&m->lock);
  size_t count = weir_rendezvous_pending(m->r, waits, capacity);
  pthread_mutex_unlock(&m->lock);
  return count;
}

/* ---- Frames from peers */

weir_status weir_exchange_on_control(weir_exchange *m, uint32_t peer,
                                     const Weir__V1__Control *message,
                                     weir_error *err) {
  enter(m);
  weir_status s = weir_rendezvous_control(m->r, peer, message, err);
  leave(m);
  return s;
}

weir_status weir_exchange_on_bulk(weir_exchange *m, uint32_t peer,
                                  const weir_net_frame *frame,
                                  weir_error *err) {
  weir_bulk bulk;
  weir_bulk_payload payload;
  weir_rendezvous_place place;
  WEIR_TRY(weir_bulk_read(frame, &bulk, &payload, err));
  lock(m);
  weir_status s = weir_rendezvous_bulk_begin(m->r, peer, &bulk, &place, err);
  if (s == WEIR_OK && place.cell != NULL) {
    pthread_mutex_unlock(&m->lock);
    weir_rendezvous_bulk_copy(&place, payload);
    pthread_mutex_lock(&m->lock);
    weir_rendezvous_bulk_end(m->r, &place);
  }
  leave(m);
  return s;
}

/* ---- Channels */

typedef struct exchange_channel {
  weir_channel base;
  weir_exchange *exchange;
  size_t count;
  weir_exchange_edge edges[];
} exchange_channel;

/* Ends |done| with W9001. */
static void refuse(weir_channel_done *done, uint32_t edge, const char *why) {
  weir_error err = WEIR_ERROR_INIT;
  weir_status s = weir_fail(&err, WEIR_W9001, NULL, "edge %u %s", edge, why);
  done->fn(done->self, s, &err);
}

static const weir_exchange_edge *find_edge(const exchange_channel *ch,
                                           uint32_t edge, bool outgoing,
                                           size_t bytes) {
  if (edge >= ch->count) return NULL;
  const weir_exchange_edge *e = &ch->edges[edge];
  return e->outgoing == outgoing &&
                 (e->bytes == bytes || e->bytes == WEIR_EXCHANGE_ANY_BYTES)
             ? e
             : NULL;
}

static weir_slot slot_of(uint32_t edge, uint64_t step) {
  return (weir_slot){WEIR__V1__VALUE_KIND__EDGE, edge, step};
}

static void channel_release(weir_channel *channel) {
  exchange_channel *ch = (exchange_channel *)channel;
  weir_free(ch->exchange->env->alloc, ch);
}

static void channel_send(weir_channel *channel, uint32_t edge, uint64_t step,
                         const void *src, size_t bytes,
                         weir_channel_done *done) {
  exchange_channel *ch = (exchange_channel *)channel;
  const weir_exchange_edge *e = find_edge(ch, edge, true, bytes);
  weir_slot slot = slot_of(edge, step);
  if (e == NULL)
    refuse(done, edge, "is not one that is sent with these bytes");
  else
    weir_exchange_send(ch->exchange, e->peer, &slot, (weir_bytes){src, bytes},
                       done);
}

static void channel_send_error(weir_channel *channel, uint32_t edge,
                               uint64_t step, const weir_error *why) {
  exchange_channel *ch = (exchange_channel *)channel;
  weir_slot slot = slot_of(edge, step);
  if (edge < ch->count && ch->edges[edge].outgoing)
    weir_exchange_send_error(ch->exchange, ch->edges[edge].peer, &slot, why);
}

static void channel_recv(weir_channel *channel, uint32_t edge, uint64_t step,
                         void *dst, size_t bytes, weir_channel_done *done) {
  exchange_channel *ch = (exchange_channel *)channel;
  const weir_exchange_edge *e = find_edge(ch, edge, false, bytes);
  weir_slot slot = slot_of(edge, step);
  if (e == NULL)
    refuse(done, edge, "is not one that is received with these bytes");
  else
    weir_exchange_recv(ch->exchange, e->peer, &slot, dst, bytes, done);
}

static void channel_recv_pieces(weir_channel *channel, uint32_t edge,
                                uint64_t step, size_t bytes,
                                const weir_channel_sink *sink,
                                weir_channel_done *done) {
  exchange_channel *ch = (exchange_channel *)channel;
  const weir_exchange_edge *e = find_edge(ch, edge, false, bytes);
  weir_slot slot = slot_of(edge, step);
  weir_rendezvous_sink to = {sink->consume, sink->self};
  if (e == NULL)
    refuse(done, edge, "is not one that is received with these bytes");
  else
    weir_exchange_recv_pieces(ch->exchange, e->peer, &slot, bytes, &to, done);
}

static void channel_collective(weir_channel *channel, uint64_t step,
                               const weir_collective *part,
                               weir_channel_done *done) {
  (void)channel, (void)step;
  weir_error err = WEIR_ERROR_INIT;
  weir_status s = weir_fail(&err, WEIR_W9001, NULL,
                            "group %u: a collective over several tasks was "
                            "not made of sends",
                            part->group);
  done->fn(done->self, s, &err);
}

static void channel_drop(weir_channel *channel, uint64_t step,
                         const weir_error *why) {
  weir_exchange_drop(((exchange_channel *)channel)->exchange, step, why);
}

static void channel_abort(weir_channel *channel, const weir_error *why) {
  weir_exchange_abort(((exchange_channel *)channel)->exchange, why);
}

static const weir_channel_vtable kExchange = {
    .release = channel_release,
    .send = channel_send,
    .send_error = channel_send_error,
    .recv = channel_recv,
    .recv_pieces = channel_recv_pieces,
    .collective = channel_collective,
    .drop = channel_drop,
    .abort = channel_abort,
};

weir_status weir_exchange_channel_create(weir_exchange *exchange,
                                         const weir_exchange_edge *edges,
                                         size_t count,
                                         weir_channel **out_channel,
                                         weir_error *err) {
  size_t bytes;
  *out_channel = NULL;
  if (!weir_size_mul(count, sizeof *edges, &bytes) ||
      !weir_size_add(bytes, sizeof(exchange_channel), &bytes))
    return weir_fail_memory(err, SIZE_MAX);
  exchange_channel *ch = weir_alloc(exchange->env->alloc, bytes);
  if (ch == NULL) return weir_fail_memory(err, bytes);
  *ch = (exchange_channel){
      .base.vt = &kExchange, .exchange = exchange, .count = count};
  if (count > 0) memcpy(ch->edges, edges, count * sizeof *edges);
  *out_channel = &ch->base;
  return WEIR_OK;
}
