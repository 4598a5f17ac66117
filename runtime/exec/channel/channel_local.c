/* SPDX-License-Identifier: Apache-2.0
 *
 * All ends in one process: a table of edges, each a list of cells, one for each
 * step under way, and a table of groups, each a list of meetings (meeting.c).
 *
 * One lock; bytes are copied under it, and callbacks are made after it, because
 * a callback may call the channel again. A waiting receiver gets the bytes
 * straight from the sender; else they are copied twice, through the cell. A
 * receiver that takes pieces gets one, all of the edge's, after the lock: until
 * it has returned the sender has not ended, or the cell is without its buffer.
 *
 * Invariant: a step of an edge has at most one cell in use, and at most |depth|
 * cells hold bytes; senders beyond wait and are admitted by step. Cells and
 * meetings are reused, so a steady step allocates nothing; finding one is a
 * scan of the few steps that are under way. */
#include "runtime/exec/channel/channel_local.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "runtime/base/vec.h"
#include "runtime/exec/channel/channel.h"
#include "runtime/exec/channel/dropped.h"
#include "runtime/exec/channel/ended.h"
#include "runtime/exec/channel/meeting.h"

enum { kDefaultDepth = 2 };

/* One step of an edge: bytes that wait for a receiver, or a receiver or sender
 * that waits. */
typedef struct cell {
  bool full, waiting_recv, waiting_send;
  weir_error *failed; /* full: in place of bytes; owned */
  uint64_t step;
  size_t bytes, capacity;
  void *data; /* kept from step to step */
  void *dst;
  const weir_channel_sink *sink; /* in place of |dst|; or NULL */
  const void *src;
  weir_channel_done *done;
} cell;

typedef WEIR_VEC(cell) cell_list;

typedef struct local_channel {
  weir_channel base;
  const weir_allocator *alloc;
  pthread_mutex_t lock;
  uint32_t depth;
  WEIR_VEC(cell_list) edges; /* by edge number */
  weir_meetings meetings;
  bool aborted;
  weir_error why;
  weir_dropped dropped;
} local_channel;

static void ended_memory(weir_ended *out, weir_channel_done *done,
                         size_t bytes) {
  weir_ended_add(out, done, weir_fail_memory(&out->err, bytes));
}

/* Whether calls of |step| fail at once, then with out->err. */
static bool is_over(const local_channel *ch, uint64_t step, weir_ended *out) {
  if (ch->aborted) out->err = ch->why;
  return ch->aborted || weir_dropped_find(&ch->dropped, step, &out->err);
}

/* Bytes that go to a sink when the lock is given back. */
typedef struct handover {
  const weir_channel_sink *sink; /* NULL: none do */
  weir_bytes bytes;
  void *buffer; /* of a cell, to be given back; or NULL */
  size_t capacity;
  uint32_t edge;
  size_t cell;
} handover;

/* Where a receive's bytes go. */
typedef struct target {
  void *dst;
  const weir_channel_sink *sink;
  size_t bytes;
} target;

/* The receiver's end: fails when the sizes differ. */
static void received(weir_ended *out, handover *hand, weir_channel_done *done,
                     uint32_t edge, target to, weir_bytes sent) {
  if (sent.size != to.bytes) {
    weir_ended_add(out, done,
                   weir_fail(&out->err, WEIR_W9001, NULL,
                             "edge %u: %zu bytes were sent, %zu wanted", edge,
                             sent.size, to.bytes));
    return;
  }
  if (to.sink != NULL)
    *hand = (handover){.sink = to.sink, .bytes = sent};
  else if (sent.size > 0)
    memcpy(to.dst, sent.data, sent.size);
  weir_ended_add(out, done, WEIR_OK);
}

/* Without the lock: pieces first, then the ends. */
static void deliver(local_channel *ch, const handover *hand,
                    const weir_ended *out) {
  if (hand->sink != NULL)
    hand->sink->consume(hand->sink->self, 0, hand->bytes.data,
                        hand->bytes.size);
  if (hand->buffer != NULL) {
    pthread_mutex_lock(&ch->lock);
    cell *c = &ch->edges.items[hand->edge].items[hand->cell];
    void *spare = c->data == NULL ? NULL : hand->buffer;
    if (c->data == NULL) {
      c->data = hand->buffer;
      c->capacity = hand->capacity;
    }
    pthread_mutex_unlock(&ch->lock);
    weir_free(ch->alloc, spare);
  }
  weir_ended_tell(out);
}

/* ---- Edges */

static cell_list *edge_cells(local_channel *ch, uint32_t edge) {
  while (ch->edges.count <= edge)
    if (!weir_vec_push(ch->alloc, &ch->edges, (cell_list){0})) return NULL;
  return &ch->edges.items[edge];
}

/* The cell of |step| that is in use, or NULL; counts those that hold bytes. */
static cell *find_cell(cell_list *cells, uint64_t step, uint32_t *full) {
  cell *found = NULL;
  *full = 0;
  for (size_t i = 0; i < cells->count; i++) {
    cell *c = &cells->items[i];
    *full += c->full;
    if ((c->full || c->waiting_recv || c->waiting_send) && c->step == step)
      found = c;
  }
  return found;
}

static cell *free_cell(local_channel *ch, cell_list *cells, uint64_t step) {
  for (size_t i = 0; i < cells->count; i++) {
    cell *c = &cells->items[i];
    if (c->full || c->waiting_recv || c->waiting_send) continue;
    c->step = step;
    return c;
  }
  if (!weir_vec_push(ch->alloc, cells, (cell){.step = step})) return NULL;
  return &cells->items[cells->count - 1];
}

static bool fill(local_channel *ch, cell *c, const void *src, size_t bytes) {
  assert(!c->full && !c->waiting_recv && c->failed == NULL);
  if (bytes > c->capacity || c->data == NULL) {
    void *data = weir_alloc_aligned(ch->alloc, bytes, 64);
    if (data == NULL) return false;
    weir_free(ch->alloc, c->data);
    c->data = data;
    c->capacity = bytes;
  }
  if (bytes > 0) memcpy(c->data, src, bytes);
  c->bytes = bytes;
  c->full = true;
  return true;
}

static void local_send(weir_channel *channel, uint32_t edge, uint64_t step,
                       const void *src, size_t bytes, weir_channel_done *done) {
  local_channel *ch = (local_channel *)channel;
  weir_ended out = {.err = WEIR_ERROR_INIT};
  handover hand = {.sink = NULL};
  uint32_t full = 0;
  pthread_mutex_lock(&ch->lock);
  bool over = is_over(ch, step, &out);
  cell_list *cells = over ? NULL : edge_cells(ch, edge);
  cell *c = cells != NULL ? find_cell(cells, step, &full) : NULL;
  if (over) {
    weir_ended_add(&out, done, out.err.code);
  } else if (c != NULL && c->waiting_recv) {
    c->waiting_recv = false;
    received(&out, &hand, c->done, edge, (target){c->dst, c->sink, c->bytes},
             (weir_bytes){src, bytes});
    weir_ended_add(&out, done, WEIR_OK);
  } else if (cells == NULL || (c = free_cell(ch, cells, step)) == NULL) {
    ended_memory(&out, done, sizeof(cell));
  } else if (full >= ch->depth && (bytes > 0 || ch->depth > 0)) {
    /* wait for room, or for the receiver; tokens need none */
    c->waiting_send = true;
    c->src = src;
    c->bytes = bytes;
    c->done = done;
  } else if (fill(ch, c, src, bytes)) {
    weir_ended_add(&out, done, WEIR_OK);
  } else {
    ended_memory(&out, done, bytes);
  }
  pthread_mutex_unlock(&ch->lock);
  deliver(ch, &hand, &out);
}

/* After a step left the FIFO: the waiting sender of the smallest step goes in,
 * since its receiver is the first that will come. */
static void admit_sender(local_channel *ch, cell_list *cells, weir_ended *out) {
  cell *next = NULL;
  for (size_t i = 0; i < cells->count && ch->depth > 0; i++) {
    cell *c = &cells->items[i];
    if (c->waiting_send && (next == NULL || c->step < next->step)) next = c;
  }
  if (next == NULL) return;
  next->waiting_send = false;
  if (fill(ch, next, next->src, next->bytes))
    weir_ended_add(out, next->done, WEIR_OK);
  else
    ended_memory(out, next->done, next->bytes);
}

/* Hands the error of a cell that is not read yet to |done|. */
static void take_error(local_channel *ch, cell *c, weir_ended *out,
                       weir_channel_done *done) {
  out->err = *c->failed;
  weir_free(ch->alloc, c->failed);
  c->failed = NULL;
  weir_ended_add(out, done, out->err.code);
}

/* Out of memory here aborts the channel: without a report of the failure
 * a receiver would wait for ever. */
static void local_send_error(weir_channel *channel, uint32_t edge,
                             uint64_t step, const weir_error *why) {
  local_channel *ch = (local_channel *)channel;
  weir_ended out = {.err = *why};
  uint32_t full = 0;
  bool kept = true;
  pthread_mutex_lock(&ch->lock);
  weir_ended late = {.err = WEIR_ERROR_INIT};
  bool over = is_over(ch, step, &late);
  cell_list *cells = over ? NULL : edge_cells(ch, edge);
  cell *c = cells != NULL ? find_cell(cells, step, &full) : NULL;
  if (over) {
    kept = true;
  } else if (c != NULL && c->waiting_recv) {
    c->waiting_recv = false;
    weir_ended_add(&out, c->done, why->code);
  } else {
    c = cells != NULL ? free_cell(ch, cells, step) : NULL;
    if (c != NULL) c->failed = weir_alloc(ch->alloc, sizeof *c->failed);
    kept = c != NULL && c->failed != NULL;
    if (kept) {
      *c->failed = *why;
      c->full = true;
    }
  }
  pthread_mutex_unlock(&ch->lock);
  weir_ended_tell(&out);
  if (!kept) channel->vt->abort(channel, why);
}

/* A cell's bytes go to the receiver; a sink gets them after the lock, so the
 * cell does without its buffer meanwhile. */
static void take_bytes(cell_list *cells, cell *c, uint32_t edge, target to,
                       weir_ended *out, handover *hand,
                       weir_channel_done *done) {
  received(out, hand, done, edge, to, (weir_bytes){c->data, c->bytes});
  if (hand->sink == NULL) return;
  hand->buffer = c->data;
  hand->capacity = c->capacity;
  hand->edge = edge;
  hand->cell = (size_t)(c - cells->items);
  c->data = NULL;
  c->capacity = 0;
}

/* Out of memory aborts the channel: the sender may wait for this end. */
static void receive(local_channel *ch, uint32_t edge, uint64_t step, target to,
                    weir_channel_done *done) {
  weir_ended out = {.err = WEIR_ERROR_INIT};
  handover hand = {.sink = NULL};
  uint32_t full = 0;
  bool lost = false;
  pthread_mutex_lock(&ch->lock);
  bool over = is_over(ch, step, &out);
  cell_list *cells = over ? NULL : edge_cells(ch, edge);
  cell *c = cells != NULL ? find_cell(cells, step, &full) : NULL;
  if (over) {
    weir_ended_add(&out, done, out.err.code);
  } else if (c != NULL && c->full) {
    c->full = false;
    if (c->failed != NULL)
      take_error(ch, c, &out, done);
    else
      take_bytes(cells, c, edge, to, &out, &hand, done);
    admit_sender(ch, cells, &out);
  } else if (c != NULL && c->waiting_send) { /* past the FIFO's end */
    c->waiting_send = false;
    received(&out, &hand, done, edge, to, (weir_bytes){c->src, c->bytes});
    weir_ended_add(&out, c->done, WEIR_OK);
  } else if (cells == NULL || (c = free_cell(ch, cells, step)) == NULL) {
    ended_memory(&out, done, sizeof(cell));
    lost = true;
  } else {
    c->waiting_recv = true;
    c->dst = to.dst;
    c->sink = to.sink;
    c->bytes = to.bytes;
    c->done = done;
  }
  pthread_mutex_unlock(&ch->lock);
  weir_error why = out.err; /* |done| may be gone after the call */
  deliver(ch, &hand, &out);
  if (lost) ch->base.vt->abort(&ch->base, &why);
}

static void local_recv(weir_channel *channel, uint32_t edge, uint64_t step,
                       void *dst, size_t bytes, weir_channel_done *done) {
  receive((local_channel *)channel, edge, step,
          (target){.dst = dst, .bytes = bytes}, done);
}

static void local_recv_pieces(weir_channel *channel, uint32_t edge,
                              uint64_t step, size_t bytes,
                              const weir_channel_sink *sink,
                              weir_channel_done *done) {
  receive((local_channel *)channel, edge, step,
          (target){.sink = sink, .bytes = bytes}, done);
}

static void local_collective(weir_channel *channel, uint64_t step,
                             const weir_collective *part,
                             weir_channel_done *done) {
  local_channel *ch = (local_channel *)channel;
  weir_ended out = {.err = WEIR_ERROR_INIT};
  pthread_mutex_lock(&ch->lock);
  if (is_over(ch, step, &out))
    weir_ended_add(&out, done, out.err.code);
  else
    weir_meetings_join(&ch->meetings, step, part, done, &out);
  pthread_mutex_unlock(&ch->lock);
  weir_ended_tell(&out);
}

/* ---- The rest */

/* Ends the cells of |*step|, or all that wait (NULL), with out->err. A cell
 * that leaves a FIFO makes room for senders of other steps. */
static void end_cells(local_channel *ch, const uint64_t *step, weir_ended *out,
                      weir_ended *room) {
  for (size_t e = 0; e < ch->edges.count; e++) {
    cell_list *cells = &ch->edges.items[e];
    for (size_t i = 0; i < cells->count; i++) {
      cell *c = &cells->items[i];
      if (step != NULL && c->step != *step) continue;
      if (c->waiting_recv || c->waiting_send)
        weir_ended_add(out, c->done, out->err.code);
      c->waiting_recv = c->waiting_send = false;
      if (step == NULL || !c->full) continue;
      c->full = false;
      weir_free(ch->alloc, c->failed);
      c->failed = NULL;
      admit_sender(ch, cells, room);
    }
  }
}

static void local_drop(weir_channel *channel, uint64_t step,
                       const weir_error *why) {
  local_channel *ch = (local_channel *)channel;
  weir_ended out = {.err = *why}, room = {.err = WEIR_ERROR_INIT};
  pthread_mutex_lock(&ch->lock);
  weir_dropped_add(&ch->dropped, step, why);
  end_cells(ch, &step, &out, &room);
  weir_meetings_end(&ch->meetings, &step, &out);
  pthread_mutex_unlock(&ch->lock);
  weir_ended_tell(&out);
  weir_ended_tell(&room);
}

static void local_abort(weir_channel *channel, const weir_error *why) {
  local_channel *ch = (local_channel *)channel;
  weir_ended out = {.err = *why};
  pthread_mutex_lock(&ch->lock);
  if (!ch->aborted) ch->why = *why;
  ch->aborted = true;
  end_cells(ch, NULL, &out, NULL);
  weir_meetings_end(&ch->meetings, NULL, &out);
  pthread_mutex_unlock(&ch->lock);
  weir_ended_tell(&out);
}

static void local_release(weir_channel *channel) {
  local_channel *ch = (local_channel *)channel;
  for (size_t e = 0; e < ch->edges.count; e++) {
    cell_list *cells = &ch->edges.items[e];
    for (size_t i = 0; i < cells->count; i++) {
      weir_free(ch->alloc, cells->items[i].data);
      weir_free(ch->alloc, cells->items[i].failed);
    }
    weir_vec_free(ch->alloc, cells);
  }
  weir_vec_free(ch->alloc, &ch->edges);
  weir_meetings_release(&ch->meetings);
  pthread_mutex_destroy(&ch->lock);
  weir_free(ch->alloc, ch);
}

static const weir_channel_vtable kLocal = {
    .release = local_release,
    .send = local_send,
    .send_error = local_send_error,
    .recv = local_recv,
    .recv_pieces = local_recv_pieces,
    .collective = local_collective,
    .drop = local_drop,
    .abort = local_abort,
};

weir_status weir_channel_local_create(const weir_env *env, uint32_t depth,
                                      weir_channel **out_channel,
                                      weir_error *err) {
  *out_channel = NULL;
  local_channel *ch = weir_alloc_array(env->alloc, 1, sizeof *ch);
  if (ch == NULL) return weir_fail_memory(err, sizeof *ch);
  ch->base.vt = &kLocal;
  ch->alloc = ch->meetings.alloc = env->alloc;
  ch->depth = depth == 0                   ? kDefaultDepth
              : depth == WEIR_CHANNEL_MEET ? 0
                                           : depth;
  pthread_mutex_init(&ch->lock, NULL);
  *out_channel = &ch->base;
  return WEIR_OK;
}
