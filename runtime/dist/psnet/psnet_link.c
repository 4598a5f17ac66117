/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/psnet/psnet_link.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/size.h"
#include "runtime/dist/psnet/psnet_transfer.h"

/* A link that is up.
 *
 * Each has a rendezvous of its own, so nothing of an earlier link can be taken
 * for something of this one. Messages that come wait in a list; the receiver is
 * asked for places when a message is the first there, and hears of it when all
 * its values are in them. So it has the places of one message of a link at a
 * time, and large values of the next ones wait at their sender. Values within
 * a message are read where they came, unless it has to wait.
 *
 * A link is held by its seat, by each transfer and by each bulk frame that is
 * being read. The one that lets it go last puts it in a list, for the control
 * thread to free: a transport may hold bytes of values for long after the end.
 *
 * Invariant: |in| is the transfer of |first|, and |data| its place's. */

/* Of a peer whose values do not come, while its messages do. */
enum { kWaiting = 65536, kWaitingBytes = 64 << 20 };
/* Values that come before their message is the first: 8 KiB of each at most. */
enum { kEarlyBytes = 64 << 20 };
/* Of frames: each link has its own connections, so it need not change. */
enum { kEpoch = 1 };

/* ---- Life */

weir_status weir_ps_link_create(weir_ps_net *net, weir_ps_seat *seat,
                                weir_peer *peer, weir_error *err) {
  weir_ps_link *link = weir_alloc_array(net->env->alloc, 1, sizeof *link);
  if (link == NULL) return weir_fail_memory(err, sizeof *link);
  link->net = net;
  link->seat = seat;
  link->peer = peer;
  link->number = ++net->links;
  link->uses = 1;
  weir_status s = weir_link_out_create(
      net->env->alloc, weir_wires_transport(net->wires, WEIR_NET_CONTROL),
      weir_wires_transport(net->wires, WEIR_NET_BULK), 1, &link->out, err);
  if (s == WEIR_OK) {
    const weir_exchange_options options = {
        .rendezvous = {.epoch = kEpoch,
                       .tasks = 1,
                       .early_bytes = kEarlyBytes,
                       .crc = !weir_wires_is_here(peer->address)},
        .out = &link->out->base};
    s = weir_exchange_create(net->env, &options, &link->values, err);
  }
  if (s != WEIR_OK) {
    weir_ps_link_release(link);
    return s;
  }
  weir_link_out_set(link->out, 0, peer);
  pthread_mutex_lock(&net->lock);
  seat->link = link;
  pthread_mutex_unlock(&net->lock);
  peer->owner = link;
  peer->lane = link->number;
  weir_wires_place(net->wires, peer, (uint32_t)(seat - net->seats));
  return WEIR_OK;
}

void weir_ps_link_release(weir_ps_link *link) {
  weir_exchange_release(link->values);
  weir_link_out_release(link->out);
  weir_free(link->net->env->alloc, link);
}

static void count_uses(weir_ps_link *link, bool more) {
  weir_ps_net *net = link->net;
  pthread_mutex_lock(&net->lock);
  link->uses += more ? 1 : UINT32_MAX;
  if (link->uses == 0) {
    link->next = net->dead;
    net->dead = link;
    weir_ps_net_wake(net);
  }
  pthread_mutex_unlock(&net->lock);
}

void weir_ps_link_hold(weir_ps_link *link) {
  count_uses(link, true);
}

void weir_ps_link_let_go(weir_ps_link *link) {
  count_uses(link, false);
}

static void pop_first(weir_ps_link *link) {
  weir_ps_parcel *p = link->first;
  link->first = p->next;
  link->waiting--;
  link->waiting_bytes -= p->arena.used_bytes;
  weir_ps_parcel_release(p);
}

void weir_ps_link_end(weir_ps_link *link, const weir_error *why) {
  weir_ps_net *net = link->net;
  pthread_mutex_lock(&net->lock);
  link->seat->link = NULL;
  pthread_mutex_unlock(&net->lock);
  link->peer->owner = NULL;
  link->peer = NULL;
  weir_link_out_set(link->out, 0, NULL);
  weir_exchange_lost(link->values, 0, why);
  if (link->in != NULL) {
    weir_ps_transfer_wait(link->in);
    link->in = NULL;
    net->events.unreceived(net->events.self, link->data);
  }
  while (link->first != NULL) pop_first(link);
  weir_ps_link_let_go(link);
}

static void give_up(weir_ps_link *link, const weir_error *why) {
  weir_link_give_up(link->peer, why);
}

static bool is_up(const weir_ps_link *link) {
  return link->peer != NULL && link->peer->state == WEIR_PEER_UP;
}

/* ---- Out */

/* |body| with the sizes of |values|, or without values. */
static weir_status announce(weir_ps_link *link, weir_ps_frame *frame,
                            const weir_ps_values *values, weir_error *err) {
  Weir__V1__PsMessage *body = &frame->body;
  if (values == NULL) return WEIR_OK;
  body->transfer = link->sent;
  body->sizes =
      weir_arena_array(&frame->arena, values->count, sizeof *body->sizes);
  if (body->sizes == NULL) return weir_fail_memory(err, values->count);
  for (uint32_t i = 0; i < values->count; i++)
    body->sizes[i] = values->pieces[i].bytes;
  body->n_sizes = values->count;
  return WEIR_OK;
}

/* Whether |values| go within the message. */
static bool goes_along(const weir_ps_values *values) {
  size_t bytes = 0;
  if (values == NULL || values->count == 0) return false;
  for (uint32_t i = 0; i < values->count; i++)
    if (!weir_size_add(bytes, values->pieces[i].bytes, &bytes)) return false;
  return bytes <= WEIR_WIRE_PS_BYTES;
}

static weir_status put_along(weir_ps_frame *frame, const weir_ps_values *values,
                             weir_error *err) {
  Weir__V1__PsMessage *body = &frame->body;
  body->values =
      weir_arena_array(&frame->arena, values->count, sizeof *body->values);
  if (body->values == NULL) return weir_fail_memory(err, values->count);
  for (uint32_t i = 0; i < values->count; i++)
    body->values[i] =
        (ProtobufCBinaryData){values->pieces[i].bytes, values->pieces[i].data};
  body->n_values = values->count;
  return WEIR_OK;
}

static weir_status send_numbers(weir_ps_link *link, const weir_ps_message *m,
                                const weir_ps_values *values, weir_error *err) {
  weir_ps_frame frame;
  Weir__V1__Control control = WEIR__V1__CONTROL__INIT;
  weir_status s = weir_ps_message_encode(link->net->env->alloc, m, &frame, err);
  if (s == WEIR_OK)
    s = goes_along(values) ? put_along(&frame, values, err)
                           : announce(link, &frame, values, err);
  if (s == WEIR_OK) {
    control.body_case = WEIR__V1__CONTROL__BODY_PS_MESSAGE;
    control.ps_message = &frame.body;
    weir_link_send(link->peer, kEpoch, &control); /* tells of its failure */
  }
  weir_ps_frame_release(&frame);
  return s;
}

bool weir_ps_link_send(weir_ps_link *link, const weir_ps_message *m,
                       weir_ps_values *values) {
  weir_error err = WEIR_ERROR_INIT;
  weir_ps_transfer *t = NULL;
  weir_status s = WEIR_OK;
  if (!is_up(link)) return false;
  if (values != NULL && !goes_along(values)) {
    link->sent++;
    s = weir_ps_transfer_create(link, link->sent, values, NULL, &t, &err);
  }
  if (s == WEIR_OK) s = send_numbers(link, m, values, &err);
  if (s != WEIR_OK) give_up(link, &err);
  if (t != NULL && is_up(link)) {
    weir_ps_transfer_begin(t);
    return true;
  }
  if (t != NULL) weir_ps_transfer_release(t);
  return values == NULL;
}

/* ---- In */

static weir_status unfit(weir_ps_link *link, const weir_ps_parcel *p,
                         weir_error *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static weir_status unfit(weir_ps_link *link, const weir_ps_parcel *p,
                         weir_error *err, const char *format, ...) {
  char text[128];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return weir_fail(err, WEIR_W7011, NULL, "%s of %s %s",
                   weir_ps_kind_name(p->m.kind), link->peer->name, text);
}

static weir_status check_sizes(weir_ps_link *link, const weir_ps_parcel *p,
                               const weir_ps_place *place, weir_error *err) {
  if (place->count != p->pieces)
    return unfit(link, p, err,
                 "comes with %" PRIu32 " values, %" PRIu32 " are wanted",
                 p->pieces, place->count);
  for (uint32_t i = 0; i < p->pieces; i++)
    if (place->pieces[i].bytes != p->sizes[i])
      return unfit(link, p, err,
                   "comes with %" PRIu64 " bytes as value %" PRIu32
                   ", %zu are wanted",
                   p->sizes[i], i, place->pieces[i].bytes);
  return WEIR_OK;
}

/* Asks for the places of the first message's values, which fit them. */
static weir_status ask_place(weir_ps_link *link, weir_ps_place *out,
                             weir_error *err) {
  const weir_ps_net_events *to = &link->net->events;
  const weir_ps_parcel *p = link->first;
  *out = (weir_ps_place){0};
  if (to->receive == NULL)
    return unfit(link, p, err, "comes with values, none are wanted");
  WEIR_TRY(to->receive(to->self, link->seat->task, &p->m, out, err));
  weir_status s = check_sizes(link, p, out, err);
  if (s != WEIR_OK) to->unreceived(to->self, out->data);
  return s;
}

/* Begins to receive into the places of the first message. */
static weir_status begin_values(weir_ps_link *link, weir_error *err) {
  const weir_ps_net_events *to = &link->net->events;
  weir_ps_place place;
  WEIR_TRY(ask_place(link, &place, err));
  weir_status s = weir_ps_transfer_create(link, link->first->transfer, NULL,
                                          &place, &link->in, err);
  if (s != WEIR_OK) {
    to->unreceived(to->self, place.data);
    return s;
  }
  link->data = place.data;
  weir_ps_transfer_begin(link->in);
  return WEIR_OK;
}

static void deliver_first(weir_ps_link *link, void *data);

/* Values that came within the first message go to their places. */
static weir_status take_along(weir_ps_link *link, weir_error *err) {
  const weir_ps_parcel *p = link->first;
  weir_ps_place place;
  WEIR_TRY(ask_place(link, &place, err));
  for (uint32_t i = 0; i < p->pieces; i++)
    if (p->sizes[i] > 0)
      memcpy(place.pieces[i].data, p->values[i], place.pieces[i].bytes);
  deliver_first(link, place.data);
  return WEIR_OK;
}

static void deliver_first(weir_ps_link *link, void *data) {
  const weir_ps_net_events *to = &link->net->events;
  weir_ps_message *m = &link->first->m;
  m->data = data;
  to->message(to->self, link->seat->task, m);
  pop_first(link);
}

/* Delivers what can be, up to the next message with values. */
static void deliver(weir_ps_link *link) {
  weir_error err = WEIR_ERROR_INIT;
  while (is_up(link) && link->first != NULL && link->in == NULL) {
    weir_status s = WEIR_OK;
    if (link->first->values != NULL)
      s = take_along(link, &err);
    else if (link->first->transfer != 0)
      s = begin_values(link, &err);
    else
      deliver_first(link, NULL);
    if (s != WEIR_OK) give_up(link, &err);
  }
}

void weir_ps_link_arrived(weir_ps_link *link) {
  const weir_ps_net_events *to = &link->net->events;
  weir_ps_transfer *t = link->in;
  void *data = link->data;
  link->in = NULL;
  if (t->status == WEIR_OK && is_up(link)) {
    weir_ps_transfer_scatter(t);
    deliver_first(link, data);
    deliver(link);
    return;
  }
  to->unreceived(to->self, data);
  if (is_up(link)) give_up(link, &t->err);
}

static weir_status keep(weir_ps_link *link, weir_ps_parcel *p,
                        weir_error *err) {
  if (p->transfer != 0 && p->transfer != link->came + 1)
    return unfit(link, p, err,
                 "has the values %" PRIu64 ", %" PRIu64 " are the next",
                 p->transfer, link->came + 1);
  if (link->waiting >= kWaiting ||
      link->waiting_bytes + p->arena.used_bytes > kWaitingBytes)
    return unfit(link, p, err, "is one of %zu messages that wait for values",
                 link->waiting);
  if (p->transfer != 0) link->came++;
  link->heard = true;
  if (link->first == NULL)
    link->first = p;
  else
    link->last->next = p;
  link->last = p;
  link->waiting++;
  link->waiting_bytes += p->arena.used_bytes;
  return WEIR_OK;
}

static weir_status take_numbers(weir_ps_link *link,
                                const Weir__V1__PsMessage *body,
                                weir_error *err) {
  const weir_ps_net *net = link->net;
  weir_ps_parcel *p;
  WEIR_TRY(weir_ps_message_decode(net->env->alloc, body, &net->config,
                                  link->peer->name, &p, err));
  weir_status s = WEIR_OK;
  if (link->first != NULL) s = weir_ps_parcel_keep(p, err);
  if (s == WEIR_OK && (p->m.kind == WEIR_PS_KV) != net->keys)
    s = unfit(link, p, err, "is of another kind of job");
  else if (s == WEIR_OK)
    s = keep(link, p, err);
  if (s != WEIR_OK)
    weir_ps_parcel_release(p);
  else if (link->first == p)
    deliver(link);
  return s;
}

void weir_ps_link_message(weir_ps_link *link,
                          const Weir__V1__Control *message) {
  weir_error err = WEIR_ERROR_INIT;
  weir_status s;
  if (!is_up(link)) return;
  if (message->body_case == WEIR__V1__CONTROL__BODY_PS_MESSAGE)
    s = take_numbers(link, message->ps_message, &err);
  else if (message->body_case == WEIR__V1__CONTROL__BODY_VALUES ||
           message->body_case == WEIR__V1__CONTROL__BODY_READY)
    s = weir_exchange_on_control(link->values, 0, message, &err);
  else
    s = weir_fail(&err, WEIR_W7011, NULL,
                  "%s sends a message that tasks of such a job do not send",
                  link->peer->name);
  if (s != WEIR_OK && is_up(link)) give_up(link, &err);
}
