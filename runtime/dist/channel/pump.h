/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_PUMP_H_
#define WEIR_DIST_PUMP_H_

#include "runtime/dist/channel/leave.h"
#include "runtime/dist/channel/rendezvous.h"

/* Does all work that |r| has left behind, for an owner with one thread: sends
 * frames through |out| and tells calls that have ended, until there is nothing
 * more. Not from inside a callback of itself. A peer to which nothing can be
 * sent is lost. */
void weir_rendezvous_pump(weir_rendezvous *r, const weir_wire_out *out);

/* Sends one frame. |released| is called for the chunk of a bulk frame, as
 * weir_net_piece has it, unless sending failed. */
weir_status weir_rendezvous_send_frame(const weir_wire_out *out,
                                       const weir_rendezvous_frame *frame,
                                       void (*released)(void *chunk));

#endif
