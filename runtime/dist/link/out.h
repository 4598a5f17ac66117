/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_LINK_OUT_H_
#define WEIR_DIST_LINK_OUT_H_

#include <stdatomic.h>

#include "runtime/dist/channel/wire_out.h"
#include "runtime/dist/link/link.h"

/* A session's way out: frames by place, for the rendezvous.
 *
 * The control thread says which connections a place has; any thread sends.
 * A connection is given once and taken once: a peer that is lost stays lost for
 * its session. */

typedef struct weir_link_out {
  weir_wire_out base; /* give this to the rendezvous */
  const weir_allocator *alloc;
  weir_transport *control, *bulk;
  uint32_t places;
  struct weir_link_out_place {
    _Atomic weir_connection control, bulk; /* 0: none */
    atomic_bool broken;
    weir_peer *peer;  /* control thread */
  } * at;             /* the driver is the last */
  atomic_bool broken; /* one of them is */
} weir_link_out;

/* Errors: W6001. The transports are lent. */
weir_status weir_link_out_create(const weir_allocator *alloc,
                                 weir_transport *control, weir_transport *bulk,
                                 uint32_t places, weir_link_out **out,
                                 weir_error *err);
void weir_link_out_release(weir_link_out *out); /* NULL-safe */
/* The connections of |place| (WEIR_PEER_DRIVER: the driver) are |peer|'s; NULL:
 * it has none. Control thread. */
void weir_link_out_set(weir_link_out *out, uint32_t place, weir_peer *peer);
/* Gives up the peers whose values cannot go on; false: there are none. The
 * control thread is woken for it, and the link's next tick tells of them.
 * NULL-safe. */
bool weir_link_out_tick(weir_link_out *out);

#endif
