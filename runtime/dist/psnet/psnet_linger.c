/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/psnet/psnet_linger.h"

#include <limits.h>

#include "runtime/exec/futex.h"

/* The last words of a process: "the job is over", "I leave".
 *
 * Transports may lose what they have not sent when they are released. They keep
 * the order of frames and tell when one has left, so each link gets one more
 * frame, a Pong that nobody asked for and that the other side passes over; when
 * all of them have left, so has everything before. */

static void one_left(void *self) {
  weir_ps_net *net = self;
  if (atomic_fetch_sub(&net->leaving, 1) == 1)
    weir_futex_wake(&net->leaving, INT_MAX);
}

static void send_mark(weir_ps_net *net, const weir_ps_link *link) {
  const weir_wire_out *out = &link->out->base;
  Weir__V1__Pong body = WEIR__V1__PONG__INIT;
  Weir__V1__Control control = WEIR__V1__CONTROL__INIT;
  weir_bytes frame;
  control.body_case = WEIR__V1__CONTROL__BODY_PONG;
  control.pong = &body;
  if (weir_wire_pack(net->env->alloc, &control, &frame, NULL) != WEIR_OK)
    return; /* its messages go without it, perhaps too late */
  atomic_fetch_add(&net->leaving, 1);
  if (out->watched(out->self, 0, frame, one_left, net) != WEIR_OK)
    one_left(net);
  weir_wire_free(net->env->alloc, frame);
}

static void send_marks(void *self, bool runs) {
  weir_ps_net *net = self;
  for (uint32_t i = 0; runs && i < net->seat_count; i++)
    if (net->seats[i].link != NULL) send_mark(net, net->seats[i].link);
  one_left(net);
}

void weir_ps_linger(weir_ps_net *net) {
  int64_t now = weir_ps_net_now(net), until = now + net->linger_ns;
  unsigned left;
  atomic_store(&net->leaving, 1);
  net->linger = (weir_node_call){.fn = send_marks, .self = net};
  weir_wires_post(net->wires, &net->linger);
  while ((left = atomic_load(&net->leaving)) != 0 && now < until) {
    weir_futex_wait(&net->leaving, left, until - now);
    now = weir_ps_net_now(net);
  }
}
