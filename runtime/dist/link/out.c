/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/link/out.h"

static struct weir_link_out_place *place_of(const weir_link_out *out,
                                            uint32_t place) {
  if (place == WEIR_PEER_DRIVER) return &out->at[out->places];
  return place < out->places ? &out->at[place] : NULL;
}

static weir_status send_control(void *self, uint32_t peer, const void *bytes,
                                size_t size) {
  const weir_link_out *out = self;
  const struct weir_link_out_place *p = place_of(out, peer);
  weir_connection c = p != NULL ? atomic_load(&p->control) : 0;
  weir_net_piece piece = {.data = bytes, .size = size};
  if (c == 0) return WEIR_UNAVAILABLE;
  return out->control->vt->send(out->control, c, &piece, 1, NULL);
}

static weir_status send_watched(void *self, uint32_t peer, weir_bytes frame,
                                void (*sent)(void *token), void *token) {
  const weir_link_out *out = self;
  const struct weir_link_out_place *p = place_of(out, peer);
  weir_connection c = p != NULL ? atomic_load(&p->control) : 0;
  /* The bytes are copied; a piece without bytes tells the end. */
  weir_net_piece pieces[] = {{.data = frame.data, .size = frame.size},
                             {.released = sent, .self = token}};
  if (c == 0) return WEIR_UNAVAILABLE;
  return out->control->vt->send(out->control, c, pieces, 2, NULL);
}

static weir_status send_bulk(void *self, uint32_t peer,
                             const weir_net_piece *pieces, size_t count) {
  const weir_link_out *out = self;
  const struct weir_link_out_place *p = place_of(out, peer);
  weir_connection c = p != NULL ? atomic_load(&p->bulk) : 0;
  if (c == 0) return WEIR_UNAVAILABLE;
  return out->bulk->vt->send(out->bulk, c, pieces, count, NULL);
}

static void broken(void *self, uint32_t peer) {
  weir_link_out *out = self;
  struct weir_link_out_place *p = place_of(out, peer);
  if (p == NULL) return;
  atomic_store(&p->broken, true);
  atomic_store(&out->broken, true);
  out->control->vt->wake(out->control);
}

weir_status weir_link_out_create(const weir_allocator *alloc,
                                 weir_transport *control, weir_transport *bulk,
                                 uint32_t places, weir_link_out **out,
                                 weir_error *err) {
  weir_link_out *o = weir_alloc_array(alloc, 1, sizeof *o);
  *out = NULL;
  if (o == NULL) return weir_fail_memory(err, sizeof *o);
  o->at = weir_alloc_array(alloc, (size_t)places + 1, sizeof *o->at);
  if (o->at == NULL) {
    weir_free(alloc, o);
    return weir_fail_memory(err, places * sizeof *o->at);
  }
  for (uint32_t i = 0; i <= places; i++) {
    atomic_init(&o->at[i].control, 0);
    atomic_init(&o->at[i].bulk, 0);
    atomic_init(&o->at[i].broken, false);
  }
  o->base = (weir_wire_out){o, send_control, send_bulk, send_watched, broken};
  o->alloc = alloc;
  o->control = control;
  o->bulk = bulk;
  o->places = places;
  *out = o;
  return WEIR_OK;
}

void weir_link_out_release(weir_link_out *out) {
  if (out == NULL) return;
  weir_free(out->alloc, out->at);
  weir_free(out->alloc, out);
}

void weir_link_out_set(weir_link_out *out, uint32_t place, weir_peer *peer) {
  struct weir_link_out_place *p = place_of(out, place);
  if (p == NULL) return;
  p->peer = peer;
  atomic_store(&p->control, peer != NULL ? peer->control : 0);
  atomic_store(&p->bulk, peer != NULL ? peer->bulk : 0);
}

bool weir_link_out_tick(weir_link_out *out) {
  weir_error err = WEIR_ERROR_INIT;
  if (out == NULL || !atomic_exchange(&out->broken, false)) return false;
  weir_fail(&err, WEIR_W7001, NULL, "a frame to it could not be sent");
  for (uint32_t i = 0; i <= out->places; i++) {
    struct weir_link_out_place *p = &out->at[i];
    if (atomic_exchange(&p->broken, false) && p->peer != NULL)
      weir_link_give_up(p->peer, &err);
  }
  return true;
}
