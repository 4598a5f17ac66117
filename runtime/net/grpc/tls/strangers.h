/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_GRPC_TLS_STRANGERS_H_
#define WEIR_NET_GRPC_TLS_STRANGERS_H_

#include "runtime/net/grpc/grpc_internal.h"

/* Processes that are refused in the handshake: a line in the log for each, at
 * most one a second. */

/* A line of gRPC's log, on the thread that polls |self|, a weir_grpc. */
void weir_grpc_strangers_line(void *self, const char *file, const char *text);

#endif
