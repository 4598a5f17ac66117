/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_GRPC_SERVER_H_
#define WEIR_NET_GRPC_SERVER_H_

#include "runtime/net/grpc/grpc_internal.h"

/* Listening. */

/* weir_transport_vtable.listen. */
weir_status weir_grpc_listen(weir_transport *base, weir_sv address,
                             char out_bound[WEIR_NET_ADDRESS_BYTES],
                             weir_error *err);
/* Stops accepting and cuts accepted connections; later polls make ops 0. */
void weir_grpc_server_stop(weir_grpc_listener *listener);
/* Frees a listener without batches under way. */
void weir_grpc_server_destroy(weir_grpc_listener *listener);

#endif
