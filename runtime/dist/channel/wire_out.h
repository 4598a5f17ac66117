/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_WIRE_OUT_H_
#define WEIR_DIST_WIRE_OUT_H_

#include "runtime/net/transport.h"

/* How frames leave for a peer. */

/* Peers are places in Begin.tasks; this is the driver. */
#define WEIR_PEER_DRIVER UINT32_MAX

/* Any thread; never waits. After an error nothing was sent, no |released| is
 * called, and the peer is taken to be lost. */
typedef struct weir_wire_out {
  void *self;
  /* A whole control message. |bytes| are copied before it returns. */
  weir_status (*control)(void *self, uint32_t peer, const void *bytes,
                         size_t size);
  /* A bulk frame; the pieces are as for weir_transport's send. */
  weir_status (*bulk)(void *self, uint32_t peer, const weir_net_piece *pieces,
                      size_t count);
  /* As control; |sent| is called when the frame has left, or never will: once,
   * on any thread, with no lock held, perhaps before the return. NULL: the
   * frames' ends are not known here. */
  weir_status (*watched)(void *self, uint32_t peer, weir_bytes frame,
                         void (*sent)(void *token), void *token);
  /* The values of |peer| cannot go on: a frame was not sent, or memory for one
   * is missing. It would wait for ever, so its connections are to be ended.
   * NULL: |peer| is told by other means. */
  void (*broken)(void *self, uint32_t peer);
} weir_wire_out;

#endif
