/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_GRPC_LINK_H_
#define WEIR_NET_GRPC_LINK_H_

#include "runtime/net/grpc/grpc_internal.h"

/* Connections: their life from the first batch to the last. */

/* The table: finds |id|, NULL when it has ended. With the mutex held. */
weir_grpc_link *weir_grpc_link_find(weir_grpc *t, weir_connection id);

/* A connection in the table, without a call. NULL when out of memory. */
weir_grpc_link *weir_grpc_link_create(weir_grpc *t, bool incoming);
/* Takes out and frees a connection that has no batch under way. */
void weir_grpc_link_destroy(weir_grpc_link *link);

/* Starts the batches of a call that was dialled or accepted, and with the
 * latter reports it. */
void weir_grpc_link_begin(weir_grpc_link *link);

/* Counts a batch as ended, and frees a link that has ended and was waiting for
 * that. */
void weir_grpc_link_drop_op(weir_grpc_link *link);

/* Ends it after its frames; nothing of it is reported from now on. */
void weir_grpc_link_close(weir_grpc_link *link);
/* Ends it now. */
void weir_grpc_link_cancel(weir_grpc_link *link);
/* Ends those whose time is over; returns the next deadline. */
int64_t weir_grpc_link_expire(weir_grpc *t);

#endif
