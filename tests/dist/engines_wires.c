/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/dist/engines.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/net/wire.h"

/* ---- Wires */

static void push(office *o, office_item item) {
  office_item *i = malloc(sizeof *i);
  *i = item;
  i->next = NULL;
  pthread_mutex_lock(&o->lock);
  if (o->first == NULL)
    o->first = i;
  else
    o->last->next = i;
  o->last = i;
  pthread_cond_signal(&o->more);
  pthread_mutex_unlock(&o->lock);
}

static uint32_t end_of(uint32_t peer) {
  return peer == WEIR_PEER_DRIVER ? ENGINES : peer;
}

static weir_status out_control(void *self, uint32_t peer, const void *bytes,
                               size_t size) {
  office_end *e = self;
  office_item item = {.from = e->id, .to = end_of(peer), .size = size};
  item.bytes = malloc(size);
  memcpy(item.bytes, bytes, size);
  push(e->office, item);
  return WEIR_OK;
}

static weir_status out_bulk(void *self, uint32_t peer,
                            const weir_net_piece *pieces, size_t count) {
  office_end *e = self;
  office_item item = {.from = e->id, .to = end_of(peer), .bulk = true};
  for (size_t i = 0; i < count; i++) item.size += pieces[i].size;
  item.bytes = malloc(item.size);
  size_t at = 0;
  for (size_t i = 0; i < count; i++) {
    memcpy(item.bytes + at, pieces[i].data, pieces[i].size);
    at += pieces[i].size;
  }
  push(e->office, item);
  for (size_t i = 0; i < count; i++)
    if (pieces[i].released != NULL) pieces[i].released(pieces[i].self);
  return WEIR_OK;
}

static void post_event(void *self, weir_engine_event *event) {
  office_end *e = self;
  push(e->office, (office_item){.to = e->id, .event = event});
}

static void told(void *self, weir_status status, const weir_error *err) {
  (void)self, (void)status, (void)err;
}

void office_send(office *o, uint32_t place, const weir_slot *slot,
                 weir_bytes bytes) {
  weir_channel_done *d = &o->sent[o->sends++ % 64];
  *d = (weir_channel_done){.fn = told};
  weir_exchange_send(o->remote, place, slot, bytes, d);
}

/* The bytes of that name; |o->bad| ones of a file. */
static weir_bytes find_blob(office *o, const uint8_t *name) {
  for (size_t i = 0; i < o->blobs.rows.count; i++) {
    weir_bundle_blob *b = &o->blobs.rows.items[i];
    if (memcmp(name, b->name, sizeof b->name) != 0) continue;
    if (o->bad == BLOBS_LOST) return (weir_bytes){NULL, 0};
    if (o->bad == BLOBS_GOOD) return b->bytes;
    o->spoilt = realloc(o->spoilt, b->bytes.size);
    memcpy(o->spoilt, b->bytes.data, b->bytes.size);
    o->spoilt[b->bytes.size - 1] ^= 1;
    return (weir_bytes){o->spoilt, b->bytes.size};
  }
  bool bundle = memcmp(name, o->bundle_name, sizeof o->bundle_name) == 0;
  const weir_strbuf *s = bundle ? &o->bundle : &o->plan_bytes;
  return (weir_bytes){(const uint8_t *)s->data, s->size};
}

static void answer_want(office *o, office_end *e, weir_engine_event *event) {
  weir_slot slot = {WEIR__V1__VALUE_KIND__BLOB, event->number, 0};
  weir_bytes bytes = find_blob(o, event->blob);
  weir_error none = WEIR_ERROR_INIT;
  e->wants++;
  e->blob_bytes += bytes.size;
  weir_fail(&none, WEIR_W7051, NULL, "the test has no such blob");
  if (bytes.data == NULL)
    weir_exchange_send_error(o->remote, e->id, &slot, &none);
  else
    office_send(o, e->id, &slot, bytes);
}

static void keep_fetches(office *o, const weir_engine_event *event) {
  for (size_t i = 0; i < event->fetch_count; i++) {
    const weir_engine_value *v = &event->fetches[i];
    uint8_t *copy = weir_alloc(o->world.env.alloc, v->size + 1);
    memcpy(copy, v->data, v->size);
    assert_null(o->got[v->id].data);
    o->got[v->id] = (weir_bytes){copy, v->size};
  }
}

static void take_event(office *o, office_end *e, weir_engine_event *event) {
  switch (event->kind) {
    case WEIR_ENGINE_WANT:
      answer_want(o, e, event);
      break;
    case WEIR_ENGINE_ADDED:
      e->added = true;
      e->error = event->error;
      e->hashes = (weir_plan_hashes){event->graph_hash, event->plan_hash,
                                     event->partition_hash};
      break;
    case WEIR_ENGINE_STEP:
      assert_int_equal(event->step, o->step);
      e->stepped = true;
      e->prepared = event->prepared;
      if (event->failure_count > 0) e->error = *event->failures[0].error;
      keep_fetches(o, event);
      break;
    case WEIR_ENGINE_VARIABLES:
      e->told = true;
      e->error = event->error;
      break;
    case WEIR_ENGINE_REPLY:
      fail_msg("nobody asks for a checkpoint here");
      break;
    case WEIR_ENGINE_ENDED:
      e->ended = true;
      break;
  }
  event->release(event);
}

static void take_frame(office *o, const office_item *i) {
  weir_error err = WEIR_ERROR_INIT;
  weir_bytes piece = {i->bytes, i->size};
  weir_net_frame frame = {&piece, 1, i->size, NULL, NULL};
  uint32_t from = i->from == ENGINES ? WEIR_PEER_DRIVER : i->from;
  office_end *e = &o->ends[i->to];
  if (i->bulk) {
    assert_ok(e->id == ENGINES
                  ? weir_exchange_on_bulk(o->remote, from, &frame, &err)
                  : weir_run_engine_bulk(e->engine, from, &frame, &err),
              &err);
    return;
  }
  weir_wire_message m;
  assert_ok(weir_wire_unpack(weir_allocator_system(), &frame, &m, &err), &err);
  if (e->id == ENGINES)
    assert_ok(weir_exchange_on_control(o->remote, from, m.control, &err), &err);
  else if (e->live)
    assert_ok(e->engine->vt->control(e->engine, from, m.control, &err), &err);
  weir_wire_message_release(&m);
}

void office_pump(office *o) {
  pthread_mutex_lock(&o->lock);
  while (o->first == NULL) pthread_cond_wait(&o->more, &o->lock);
  office_item *i = o->first;
  o->first = i->next;
  pthread_mutex_unlock(&o->lock);
  if (i->event != NULL)
    take_event(o, &o->ends[i->to], i->event);
  else
    take_frame(o, i);
  free(i->bytes);
  free(i);
}

void office_end_init(office *o, uint32_t id) {
  office_end *e = &o->ends[id];
  *e = (office_end){.office = o, .id = id, .error = WEIR_ERROR_INIT};
  e->out = (weir_wire_out){e, out_control, out_bulk};
  e->events = (weir_engine_events){e, post_event};
}
