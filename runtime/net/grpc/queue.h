/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_GRPC_QUEUE_H_
#define WEIR_NET_GRPC_QUEUE_H_

#include "runtime/net/grpc/grpc_internal.h"

/* Frames that wait for their connection. */

/* weir_transport_vtable.send. */
weir_status weir_grpc_queue_send(weir_transport *base, weir_connection c,
                                 const weir_net_piece *pieces, size_t count,
                                 weir_error *err);

/* Sends the next frame of |link|, or the goodbye, if it is time for one. */
void weir_grpc_queue_advance(weir_grpc_link *link);

/* Takes out all frames that wait, as a list. With the mutex held. */
weir_grpc_out *weir_grpc_queue_take(weir_grpc_link *link);
/* Lets go of a list. No lock may be held. */
void weir_grpc_queue_drop(weir_grpc_out *first);

/* The batches `send` and `end` of a link have come back. */
void weir_grpc_queue_on_sent(void *link, bool ok);
void weir_grpc_queue_on_ended(void *link, bool ok);

#endif
