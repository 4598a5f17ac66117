/* SPDX-License-Identifier: Apache-2.0 */
/* Where the tasks are that a net dials: for good, or as a book says. */
#include "runtime/dist/psnet/psnet_address.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

weir_status weir_ps_net_seat_address(weir_ps_net *net, weir_ps_seat *seat,
                                     const char *address, weir_error *err) {
  if (net->book == NULL &&
      (address == NULL || strlen(address) >= WEIR_NET_ADDRESS_BYTES))
    return weir_fail(
        err, WEIR_W7002, NULL, "%s:%" PRIu32 " has no address, or a long one",
        seat->task.role == WEIR_PS_SERVER ? "ps" : "chief", seat->task.index);
  size_t room =
      net->book != NULL ? WEIR_NET_ADDRESS_BYTES : strlen(address) + 1;
  seat->address = weir_arena_array(&net->arena, room, 1);
  if (seat->address == NULL) return weir_fail_memory(err, room);
  if (net->book != NULL)
    weir_ps_book_get(net->book, seat->task, seat->address);
  else
    memcpy(seat->address, address, room);
  return WEIR_OK;
}

/* A task that moved is dialled there at once. A link that is still up is left
 * alone: it ends by itself when nobody is behind it. */
static void read_seat(weir_ps_net *net, weir_ps_seat *seat) {
  char now[WEIR_NET_ADDRESS_BYTES];
  weir_ps_book_get(net->book, seat->task, now);
  if (strcmp(now, seat->address) == 0) return;
  snprintf(seat->address, WEIR_NET_ADDRESS_BYTES, "%s", now);
  if (seat->link != NULL) return;
  weir_link_drop(seat->peer);
  seat->peer = NULL;
  seat->next_ns = seat->pause_ns = 0;
}

static void read_book(void *self, bool runs) {
  weir_ps_net *net = self;
  pthread_mutex_lock(&net->lock);
  net->reads = false;
  pthread_mutex_unlock(&net->lock);
  for (uint32_t i = 0; runs && i < net->seat_count; i++)
    if (net->seats[i].address != NULL) read_seat(net, &net->seats[i]);
}

static void book_changed(void *self) {
  weir_ps_net *net = self;
  pthread_mutex_lock(&net->lock);
  bool post = !net->reads && !net->stopped;
  net->reads = net->reads || post;
  if (post) weir_wires_post(net->wires, &net->read);
  pthread_mutex_unlock(&net->lock);
}

void weir_ps_net_book_begin(weir_ps_net *net) {
  net->read = (weir_node_call){.fn = read_book, .self = net};
  weir_ps_book_listen(net->book, WEIR_PS_READER_NET, book_changed, net);
  weir_ps_book_set(net->book, net->self, net->address);
  book_changed(net); /* what came since create */
}

void weir_ps_net_book_end(weir_ps_net *net) {
  weir_ps_book_listen(net->book, WEIR_PS_READER_NET, NULL, NULL);
}
