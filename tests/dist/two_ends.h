/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_DIST_TWO_ENDS_H_
#define TESTS_DIST_TWO_ENDS_H_

#include <stdlib.h>

#include "runtime/base/mix.h"
#include "runtime/base/vec.h"
#include "runtime/dist/channel/arrive.h"
#include "runtime/dist/channel/pump.h"
#include "runtime/dist/channel/rendezvous.h"
#include "runtime/net/wire.h"
#include "tests/check.h"

/* Two rendezvous in one thread, tasks 0 and 1, with a wire between them that
 * keeps the order of control frames and of bulk frames, and no order between
 * both. Chunks are released when they are delivered. */

typedef struct two_frame {
  uint8_t *data;
  size_t size;
  const weir_net_piece *none;
  void (*released)(void *self);
  void *self;
} two_frame;

typedef struct two_queue {
  WEIR_VEC(two_frame) frames;
  size_t next;
} two_queue;

typedef struct two_side {
  weir_rendezvous *r;
  weir_wire_out out;
  two_queue control, bulk; /* on their way to the other side */
  struct two_ends *ends;
  size_t control_frames, bulk_frames;
  uint64_t under_way, most_under_way; /* bytes of bulk frames */
  bool broken;                        /* it has given up the other side */
} two_side;

typedef struct two_ends {
  const weir_allocator *alloc; /* of the rendezvous */
  two_side side[2];
  bool refuse; /* sending fails */
} two_ends;

static inline weir_status two_control(void *self, uint32_t peer,
                                      const void *bytes, size_t size) {
  two_side *s = self;
  assert_int_equal(peer, s == &s->ends->side[0]);
  if (s->ends->refuse) return WEIR_UNAVAILABLE;
  two_frame f = {.data = malloc(size), .size = size};
  memcpy(f.data, bytes, size);
  assert_true(weir_vec_push(weir_allocator_system(), &s->control.frames, f));
  s->control_frames++;
  return WEIR_OK;
}

static inline weir_status two_bulk(void *self, uint32_t peer,
                                   const weir_net_piece *pieces, size_t count) {
  two_side *s = self;
  assert_int_equal(peer, s == &s->ends->side[0]);
  assert_in_range(count, 1, 2);
  if (s->ends->refuse) return WEIR_UNAVAILABLE;
  weir_net_piece payload = count == 2 ? pieces[1] : (weir_net_piece){0};
  two_frame f = {.size = pieces[0].size + payload.size,
                 .released = payload.released,
                 .self = payload.self};
  f.data = malloc(f.size);
  memcpy(f.data, pieces[0].data, pieces[0].size);
  if (payload.size > 0)
    memcpy(f.data + pieces[0].size, payload.data, payload.size);
  assert_true(weir_vec_push(weir_allocator_system(), &s->bulk.frames, f));
  s->bulk_frames += count == 2;
  return WEIR_OK;
}

static inline void two_broken(void *self, uint32_t peer) {
  two_side *s = self;
  assert_int_equal(peer, s == &s->ends->side[0]);
  s->broken = true;
}

static inline weir_wire_out two_out(two_side *s) {
  return (weir_wire_out){.self = s,
                         .control = two_control,
                         .bulk = two_bulk,
                         .broken = two_broken};
}

static inline void two_begin(two_ends *t, const weir_allocator *alloc,
                             weir_rendezvous_options options) {
  weir_error err = WEIR_ERROR_INIT;
  *t = (two_ends){.alloc = alloc};
  if (options.epoch == 0) options.epoch = 7;
  options.tasks = 2;
  for (int i = 0; i < 2; i++) {
    two_side *s = &t->side[i];
    s->ends = t;
    s->out = two_out(s);
    assert_ok(weir_rendezvous_create(alloc, &options, &s->r, &err), &err);
  }
}

static inline void two_pump(two_ends *t) {
  for (int i = 0; i < 2; i++) {
    weir_rendezvous_flush(t->side[i].r);
    weir_rendezvous_pump(t->side[i].r, &t->side[i].out);
  }
}

static inline bool two_pop(two_queue *q, two_frame *out) {
  if (q->next == q->frames.count) {
    q->next = q->frames.count = 0;
    return false;
  }
  *out = q->frames.items[q->next++];
  return true;
}

/* Gives a control frame to side |to|. */
static inline weir_status two_give_control(two_ends *t, int to,
                                           weir_bytes bytes, weir_error *err) {
  weir_net_frame frame = {&bytes, 1, bytes.size, NULL, NULL};
  weir_wire_message m;
  assert_ok(weir_wire_unpack(weir_allocator_system(), &frame, &m, err), err);
  weir_status s =
      weir_rendezvous_control(t->side[to].r, (uint32_t)!to, m.control, err);
  weir_wire_message_release(&m);
  return s;
}

/* Gives a bulk frame to side |to|, in two pieces. */
static inline weir_status two_give_bulk(two_ends *t, int to, weir_bytes bytes,
                                        weir_error *err) {
  size_t cut = bytes.size / 3;
  weir_bytes pieces[] = {{bytes.data, cut},
                         {bytes.data + cut, bytes.size - cut}};
  weir_net_frame frame = {pieces, 2, bytes.size, NULL, NULL};
  weir_bulk bulk;
  weir_bulk_payload payload;
  weir_rendezvous_place place;
  assert_ok(weir_bulk_read(&frame, &bulk, &payload, err), err);
  WEIR_TRY(weir_rendezvous_bulk_begin(t->side[to].r, (uint32_t)!to, &bulk,
                                      &place, err));
  weir_rendezvous_bulk_copy(&place, payload);
  weir_rendezvous_bulk_end(t->side[to].r, &place);
  return WEIR_OK;
}

/* Delivers one frame of side |from|; false when there was none. */
static inline bool two_deliver(two_ends *t, int from, bool bulk) {
  weir_error err = WEIR_ERROR_INIT;
  two_side *s = &t->side[from];
  two_frame f;
  if (!two_pop(bulk ? &s->bulk : &s->control, &f)) return false;
  weir_bytes bytes = {f.data, f.size};
  if (bulk)
    assert_ok(two_give_bulk(t, !from, bytes, &err), &err);
  else
    assert_ok(two_give_control(t, !from, bytes, &err), &err);
  if (f.released != NULL) f.released(f.self);
  free(f.data);
  return true;
}

/* Delivers all, in an order that |seed| chooses. */
static inline void two_settle(two_ends *t, uint64_t *seed) {
  bool moved = true;
  while (moved) {
    two_pump(t);
    moved = false;
    uint32_t first = weir_mix_below(seed, 4);
    for (uint32_t i = 0; i < 4 && !moved; i++)
      moved = two_deliver(t, (int)((first + i) & 1), ((first + i) & 2) != 0);
  }
}

/* Loses all frames under way. */
static inline void two_lose(two_ends *t) {
  for (int i = 0; i < 2; i++) {
    two_frame f;
    for (int bulk = 0; bulk < 2; bulk++)
      while (two_pop(bulk ? &t->side[i].bulk : &t->side[i].control, &f)) {
        if (f.released != NULL) f.released(f.self);
        free(f.data);
      }
  }
}

static inline void two_end(two_ends *t) {
  two_lose(t);
  two_pump(t);
  two_lose(t);
  for (int i = 0; i < 2; i++) {
    assert_true(weir_rendezvous_is_empty(t->side[i].r));
    weir_rendezvous_release(t->side[i].r);
    weir_vec_free(weir_allocator_system(), &t->side[i].control.frames);
    weir_vec_free(weir_allocator_system(), &t->side[i].bulk.frames);
  }
}

/* A call: how it ended. */
typedef struct two_call {
  weir_channel_done done;
  int told;
  weir_status status;
  char id[8];
  char message[256];
} two_call;

static inline void two_told(void *self, weir_status status,
                            const weir_error *err) {
  two_call *c = self;
  c->told++;
  c->status = status;
  snprintf(c->id, sizeof c->id, "%s", err != NULL ? err->id : "");
  snprintf(c->message, sizeof c->message, "%.255s",
           err != NULL ? err->message : "");
}

static inline weir_channel_done *two_done(two_call *c) {
  *c = (two_call){.done = {.fn = two_told, .self = c}};
  return &c->done;
}

#endif
