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

/* The steps of it: a listener without a server; its server at |address|, none
 * after an error (W7002); no more connections, those that are there go on. */
weir_grpc_listener *weir_grpc_server_create(weir_grpc *t);
weir_status weir_grpc_server_open(weir_grpc_listener *l,
                                  const weir_grpc_address *address,
                                  weir_error *err);
void weir_grpc_server_retire(weir_grpc_listener *l);

#endif
