/* SPDX-License-Identifier: Apache-2.0
 *
 * All ends in one process: a table of edges, each a list of cells, one for each
 * step under way, and a table of groups, each a list of meetings.
 *
 * One lock; bytes are copied under it, and callbacks are made after it, because
 * a callback may call the channel again. A waiting receiver gets the bytes
 * straight from the sender; else they are copied twice, through the cell.
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
#include "runtime/exec/channel/collective.h"

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
  const void *src;
  weir_channel_done *done;
} cell;

/* One step of a group: the parts that have come. */
typedef struct meeting {
  uint64_t step;
  uint32_t ranks, arrived;
  size_t scratch_bytes;
  void *scratch;
  const weir_collective **parts;
  weir_channel_done **done;
} meeting;

typedef WEIR_VEC(cell) cell_list;
typedef WEIR_VEC(meeting) meeting_list;

typedef struct local_channel {
  weir_channel base;
  const weir_allocator *alloc;
  pthread_mutex_t lock;
  uint32_t depth;
  WEIR_VEC(cell_list) edges;     /* by edge number */
  WEIR_VEC(meeting_list) groups; /* by group number */
  bool aborted;
  weir_error why;
} local_channel;

/* Calls that have ended; they are called back once the lock is given back. */
typedef struct ended_list {
  weir_channel_done *first;
  weir_error err; /* of those that failed */
} ended_list;

static void ended(ended_list *out, weir_channel_done *done,
                  weir_status status) {
  done->status = status;
  done->next = out->first;
  out->first = done;
}

static void tell(const ended_list *list) {
  weir_channel_done *next;
  for (weir_channel_done *d = list->first; d != NULL; d = next) {
    next = d->next; /* |d| may be gone after the call */
    d->fn(d->self, d->status, d->status == WEIR_OK ? NULL : &list->err);
  }
}

static void ended_memory(ended_list *out, weir_channel_done *done,
                         size_t bytes) {
  ended(out, done, weir_fail_memory(&out->err, bytes));
}

static void ended_aborted(const local_channel *ch, ended_list *out,
                          weir_channel_done *done) {
  out->err = ch->why;
  ended(out, done, ch->why.code);
}

/* The receiver's end: fails when the sizes differ. */
static void received(ended_list *out, weir_channel_done *done, uint32_t edge,
                     void *dst, size_t wanted, weir_bytes sent) {
  if (sent.size != wanted) {
    ended(out, done,
          weir_fail(&out->err, WEIR_W9001, NULL,
                    "edge %u: %zu bytes were sent, %zu wanted", edge, sent.size,
                    wanted));
    return;
  }
  if (sent.size > 0) memcpy(dst, sent.data, sent.size);
  ended(out, done, WEIR_OK);
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
  ended_list out = {.err = WEIR_ERROR_INIT};
  uint32_t full = 0;
  pthread_mutex_lock(&ch->lock);
  cell_list *cells = ch->aborted ? NULL : edge_cells(ch, edge);
  cell *c = cells != NULL ? find_cell(cells, step, &full) : NULL;
  if (ch->aborted) {
    ended_aborted(ch, &out, done);
  } else if (c != NULL && c->waiting_recv) {
    c->waiting_recv = false;
    received(&out, c->done, edge, c->dst, c->bytes, (weir_bytes){src, bytes});
    ended(&out, done, WEIR_OK);
  } else if (cells == NULL || (c = free_cell(ch, cells, step)) == NULL) {
    ended_memory(&out, done, sizeof(cell));
  } else if (full >= ch->depth && (bytes > 0 || ch->depth > 0)) {
    /* wait for room, or for the receiver; tokens need none */
    c->waiting_send = true;
    c->src = src;
    c->bytes = bytes;
    c->done = done;
  } else if (fill(ch, c, src, bytes)) {
    ended(&out, done, WEIR_OK);
  } else {
    ended_memory(&out, done, bytes);
  }
  pthread_mutex_unlock(&ch->lock);
  tell(&out);
}

/* After a step left the FIFO: the waiting sender of the smallest step goes in,
 * since its receiver is the first that will come. */
static void admit_sender(local_channel *ch, cell_list *cells, ended_list *out) {
  cell *next = NULL;
  for (size_t i = 0; i < cells->count && ch->depth > 0; i++) {
    cell *c = &cells->items[i];
    if (c->waiting_send && (next == NULL || c->step < next->step)) next = c;
  }
  if (next == NULL) return;
  next->waiting_send = false;
  if (fill(ch, next, next->src, next->bytes))
    ended(out, next->done, WEIR_OK);
  else
    ended_memory(out, next->done, next->bytes);
}

/* Hands the error of a cell that is not read yet to |done|. */
static void take_error(local_channel *ch, cell *c, ended_list *out,
                       weir_channel_done *done) {
  out->err = *c->failed;
  weir_free(ch->alloc, c->failed);
  c->failed = NULL;
  ended(out, done, out->err.code);
}

/* Out of memory here aborts the channel: without a report of the failure
 * a receiver would wait for ever. */
static void local_send_error(weir_channel *channel, uint32_t edge,
                             uint64_t step, const weir_error *why) {
  local_channel *ch = (local_channel *)channel;
  ended_list out = {.err = *why};
  uint32_t full = 0;
  bool kept = true;
  pthread_mutex_lock(&ch->lock);
  cell_list *cells = ch->aborted ? NULL : edge_cells(ch, edge);
  cell *c = cells != NULL ? find_cell(cells, step, &full) : NULL;
  if (ch->aborted) {
    kept = true;
  } else if (c != NULL && c->waiting_recv) {
    c->waiting_recv = false;
    ended(&out, c->done, why->code);
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
  tell(&out);
  if (!kept) channel->vt->abort(channel, why);
}

/* Out of memory aborts the channel: the sender may wait for this end. */
static void local_recv(weir_channel *channel, uint32_t edge, uint64_t step,
                       void *dst, size_t bytes, weir_channel_done *done) {
  local_channel *ch = (local_channel *)channel;
  ended_list out = {.err = WEIR_ERROR_INIT};
  uint32_t full = 0;
  bool lost = false;
  pthread_mutex_lock(&ch->lock);
  cell_list *cells = ch->aborted ? NULL : edge_cells(ch, edge);
  cell *c = cells != NULL ? find_cell(cells, step, &full) : NULL;
  if (ch->aborted) {
    ended_aborted(ch, &out, done);
  } else if (c != NULL && c->full) {
    c->full = false;
    if (c->failed != NULL)
      take_error(ch, c, &out, done);
    else
      received(&out, done, edge, dst, bytes, (weir_bytes){c->data, c->bytes});
    admit_sender(ch, cells, &out);
  } else if (c != NULL && c->waiting_send) { /* past the FIFO's end */
    c->waiting_send = false;
    received(&out, done, edge, dst, bytes, (weir_bytes){c->src, c->bytes});
    ended(&out, c->done, WEIR_OK);
  } else if (cells == NULL || (c = free_cell(ch, cells, step)) == NULL) {
    ended_memory(&out, done, sizeof(cell));
    lost = true;
  } else {
    c->waiting_recv = true;
    c->dst = dst;
    c->bytes = bytes;
    c->done = done;
  }
  pthread_mutex_unlock(&ch->lock);
  weir_error why = out.err; /* |done| may be gone after the call */
  tell(&out);
  if (lost) channel->vt->abort(channel, &why);
}

/* ---- Groups */

static meeting_list *group_meetings(local_channel *ch, uint32_t group) {
  while (ch->groups.count <= group)
    if (!weir_vec_push(ch->alloc, &ch->groups, (meeting_list){0})) return NULL;
  return &ch->groups.items[group];
}

static bool meeting_fits(local_channel *ch, meeting *m, uint32_t ranks,
                         size_t scratch_bytes) {
  if (m->ranks != ranks) {
    weir_free(ch->alloc, m->parts);
    weir_free(ch->alloc, m->done);
    m->parts = weir_alloc_array(ch->alloc, ranks, sizeof *m->parts);
    m->done = weir_alloc_array(ch->alloc, ranks, sizeof *m->done);
    m->ranks = m->parts != NULL && m->done != NULL ? ranks : 0;
  }
  if (m->scratch == NULL || m->scratch_bytes < scratch_bytes) {
    weir_free(ch->alloc, m->scratch);
    m->scratch = weir_alloc_aligned(ch->alloc, scratch_bytes, 64);
    m->scratch_bytes = m->scratch != NULL ? scratch_bytes : 0;
  }
  return m->ranks == ranks && m->scratch != NULL;
}

/* The meeting of |step| that has begun, else a free one. */
static meeting *find_meeting(local_channel *ch, const weir_collective *part,
                             uint64_t step, size_t scratch_bytes) {
  meeting_list *list = group_meetings(ch, part->group);
  if (list == NULL) return NULL;
  meeting *unused = NULL;
  for (size_t i = 0; i < list->count; i++) {
    meeting *m = &list->items[i];
    if (m->arrived > 0 && m->step == step) return m;
    if (m->arrived == 0 && unused == NULL) unused = m;
  }
  if (unused == NULL) {
    if (!weir_vec_push(ch->alloc, list, (meeting){0})) return NULL;
    unused = &list->items[list->count - 1];
  }
  if (!meeting_fits(ch, unused, part->ranks, scratch_bytes)) return NULL;
  unused->step = step;
  memset(unused->parts, 0, part->ranks * sizeof *unused->parts);
  return unused;
}

/* Whether |part| is another rank of the same collective. */
static weir_status join(meeting *m, const weir_collective *part,
                        weir_channel_done *done, weir_error *err) {
  for (uint32_t r = 0; m->arrived > 0 && r < m->ranks; r++) {
    const weir_collective *other = m->parts[r];
    if (other == NULL) continue;
    if (other->kind != part->kind || other->dtype != part->dtype ||
        other->count != part->count || other->ranks != part->ranks)
      return weir_fail(err, WEIR_W9001, NULL,
                       "group %u: ranks %u and %u differ in kind, dtype or "
                       "count",
                       part->group, other->rank, part->rank);
    break;
  }
  if (m->parts[part->rank] != NULL)
    return weir_fail(err, WEIR_W9001, NULL, "group %u: rank %u came twice",
                     part->group, part->rank);
  m->parts[part->rank] = part;
  m->done[part->rank] = done;
  m->arrived++;
  return WEIR_OK;
}

static void local_collective(weir_channel *channel, uint64_t step,
                             const weir_collective *part,
                             weir_channel_done *done) {
  local_channel *ch = (local_channel *)channel;
  ended_list out = {.err = WEIR_ERROR_INIT};
  size_t scratch_bytes = 0;
  meeting *m = NULL;
  weir_status s = weir_collective_check(part, &scratch_bytes, &out.err);
  pthread_mutex_lock(&ch->lock);
  if (ch->aborted) {
    out.err = ch->why;
    s = ch->why.code;
  } else if (s == WEIR_OK) {
    m = find_meeting(ch, part, step, scratch_bytes);
    s = m != NULL ? join(m, part, done, &out.err)
                  : weir_fail_memory(&out.err, scratch_bytes);
  }
  if (s != WEIR_OK) {
    ended(&out, done, s);
  } else if (m->arrived == m->ranks) { /* the last to come does the work */
    weir_collective_compute(m->parts, m->scratch);
    for (uint32_t r = 0; r < m->ranks; r++) ended(&out, m->done[r], WEIR_OK);
    m->arrived = 0;
  }
  pthread_mutex_unlock(&ch->lock);
  tell(&out);
}

/* ---- The rest */

static void local_abort(weir_channel *channel, const weir_error *why) {
  local_channel *ch = (local_channel *)channel;
  ended_list out = {.err = *why};
  pthread_mutex_lock(&ch->lock);
  if (!ch->aborted) ch->why = *why;
  ch->aborted = true;
  for (size_t e = 0; e < ch->edges.count; e++)
    for (size_t i = 0; i < ch->edges.items[e].count; i++) {
      cell *c = &ch->edges.items[e].items[i];
      if (c->waiting_recv || c->waiting_send) ended(&out, c->done, why->code);
      c->waiting_recv = c->waiting_send = false;
    }
  for (size_t g = 0; g < ch->groups.count; g++)
    for (size_t i = 0; i < ch->groups.items[g].count; i++) {
      meeting *m = &ch->groups.items[g].items[i];
      for (uint32_t r = 0; m->arrived > 0 && r < m->ranks; r++)
        if (m->parts[r] != NULL) ended(&out, m->done[r], why->code);
      m->arrived = 0;
    }
  pthread_mutex_unlock(&ch->lock);
  tell(&out);
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
  for (size_t g = 0; g < ch->groups.count; g++) {
    meeting_list *list = &ch->groups.items[g];
    for (size_t i = 0; i < list->count; i++) {
      weir_free(ch->alloc, list->items[i].scratch);
      weir_free(ch->alloc, list->items[i].parts);
      weir_free(ch->alloc, list->items[i].done);
    }
    weir_vec_free(ch->alloc, list);
  }
  weir_vec_free(ch->alloc, &ch->edges);
  weir_vec_free(ch->alloc, &ch->groups);
  pthread_mutex_destroy(&ch->lock);
  weir_free(ch->alloc, ch);
}

static const weir_channel_vtable kLocal = {
    .release = local_release,
    .send = local_send,
    .send_error = local_send_error,
    .recv = local_recv,
    .collective = local_collective,
    .abort = local_abort,
};

weir_status weir_channel_local_create(const weir_env *env, uint32_t depth,
                                      weir_channel **out_channel,
                                      weir_error *err) {
  *out_channel = NULL;
  local_channel *ch = weir_alloc_array(env->alloc, 1, sizeof *ch);
  if (ch == NULL) return weir_fail_memory(err, sizeof *ch);
  ch->base.vt = &kLocal;
  ch->alloc = env->alloc;
  ch->depth = depth == 0                   ? kDefaultDepth
              : depth == WEIR_CHANNEL_MEET ? 0
                                           : depth;
  pthread_mutex_init(&ch->lock, NULL);
  *out_channel = &ch->base;
  return WEIR_OK;
}
