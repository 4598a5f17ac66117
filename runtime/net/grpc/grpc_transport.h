/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_GRPC_GRPC_TRANSPORT_H_
#define WEIR_NET_GRPC_GRPC_TRANSPORT_H_

#include "runtime/net/grpc/grpc_internal.h"

/* The transport as a whole; weir_grpc_functions.create (runtime/net/grpc.h). */
weir_status weir_grpc_create(const weir_module_host *host, const weir_env *env,
                             const weir_transport_handler *handler,
                             const weir_transport_options *options,
                             weir_transport **out_transport, weir_error *err);

#endif
