/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/net/peers.h"

#include <stdlib.h>
#include <string.h>

static void on_connected(void *self, weir_connection c, weir_sv address,
                         bool incoming) {
  peer *p = self;
  assert_true(p->in_poll);
  assert_true(address.size > 0);
  p->connected++;
  p->incoming += incoming;
  if (!incoming) assert_int_equal(c, p->c);
  p->c = c;
}

static void gather(const weir_net_frame *frame, uint8_t *bytes) {
  size_t at = 0;
  for (size_t i = 0; i < frame->count; i++) {
    assert_true(frame->pieces[i].size <= frame->size - at);
    if (frame->pieces[i].size > 0)
      memcpy(bytes + at, frame->pieces[i].data, frame->pieces[i].size);
    at += frame->pieces[i].size;
  }
  assert_int_equal(at, frame->size);
}

static void on_frame(void *self, weir_connection c, weir_net_frame *frame) {
  peer *p = self;
  assert_true(p->in_poll);
  if (p->keep) {
    weir_net_frame_ref(frame);
    p->kept[p->kept_count++] = frame;
    return;
  }
  assert_true(p->count < PEER_FRAMES);
  seen_frame *seen = &p->frames[p->count++];
  *seen = (seen_frame){c, malloc(frame->size + 1), frame->size};
  gather(frame, seen->bytes);
  if (p->close_on_frame) p->t->vt->close(p->t, c);
}

static void on_closed(void *self, weir_connection c, weir_close_reason why,
                      weir_sv text) {
  peer *p = self;
  assert_true(p->in_poll);
  assert_true(text.size == 0 || text.data != NULL);
  p->closed++;
  p->closed_c = c;
  p->why = why;
}

static weir_status make(net *n, peer *p,
                        const weir_transport_options *options) {
  weir_transport_handler handler = {p, on_connected, on_frame, on_closed};
  weir_transport_options none = {0};
  return n->f->create(n->f, &handler, options != NULL ? options : &none, &p->t,
                      &n->err);
}

weir_status net_try(net *n, weir_fixture *f,
                    const weir_transport_options *options) {
  n->f = f;
  WEIR_TRY(f->open(f, &n->counted.base, &n->env, &n->err));
  WEIR_TRY(make(n, &n->a, options));
  WEIR_TRY(make(n, &n->b, options));
  return n->b.t->vt->listen(n->b.t, weir_sv_from(f->listen), n->b.address,
                            &n->err);
}

net *net_open(weir_fixture *f, const weir_transport_options *options) {
  net *n = calloc(1, sizeof *n);
  weir_counted_allocator_init(&n->counted, NULL);
  assert_ok(net_try(n, f, options), &n->err);
  return n;
}

void peer_free(peer *p) {
  for (size_t i = 0; i < p->kept_count; i++) weir_net_frame_unref(p->kept[i]);
  for (size_t i = 0; i < p->count; i++) free(p->frames[i].bytes);
  p->count = p->kept_count = 0;
  weir_transport_release(p->t);
  p->t = NULL;
}

void net_close(net *n) {
  peer_free(&n->a);
  peer_free(&n->b);
  n->f->close(n->f);
  assert_int_equal(atomic_load(&n->counted.live_blocks), 0);
  free(n);
}

weir_status peer_poll(net *n, peer *p, bool wait) {
  if (p->t == NULL) return WEIR_OK;
  const weir_clock *clock = n->env->clock;
  int64_t deadline = wait ? clock->now_ns(clock->self) + 1000000 : 0;
  p->in_poll = true;
  weir_status s = p->t->vt->poll(p->t, deadline, &n->err);
  p->in_poll = false;
  return s;
}

void net_turn(net *n) {
  assert_ok(peer_poll(n, &n->a, true), &n->err);
  assert_ok(peer_poll(n, &n->b, true), &n->err);
}

void net_connect(net *n) {
  int a = n->a.connected, b = n->b.connected;
  assert_ok(
      n->a.t->vt->connect(n->a.t, weir_sv_from(n->b.address), &n->a.c, &n->err),
      &n->err);
  net_until(n, n->a.connected > a && n->b.connected > b);
}

void pattern(uint8_t *bytes, size_t size, uint32_t seed) {
  for (size_t i = 0; i < size; i++)
    bytes[i] = (uint8_t)((i * 31 + seed * 7 + (i >> 8)) & 0xff);
}

bool is_pattern(const uint8_t *bytes, size_t size, uint32_t seed) {
  for (size_t i = 0; i < size; i++)
    if (bytes[i] != (uint8_t)((i * 31 + seed * 7 + (i >> 8)) & 0xff))
      return false;
  return true;
}

weir_status peer_send(net *n, peer *p, const void *bytes, size_t size) {
  weir_net_piece piece = {.data = bytes, .size = size};
  return p->t->vt->send(p->t, p->c, &piece, 1, &n->err);
}
