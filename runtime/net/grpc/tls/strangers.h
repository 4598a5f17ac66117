/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_GRPC_TLS_STRANGERS_H_
#define WEIR_NET_GRPC_TLS_STRANGERS_H_

#include "runtime/net/grpc/tls/pems.h"

/* Processes that are refused in the handshake: a line in the log for each, at
 * most one a second. */

/* A line of gRPC's log, on the thread that polls |self|, a weir_grpc. */
void weir_grpc_strangers_line(void *self, const char *file, const char *text);

/* Says that |who| was refused, for the reason in |text| of gRPC's; within a
 * second of the last line it is counted for the next one. */
void weir_grpc_strangers_say(weir_grpc_refused *refused,
                             const weir_grpc_owner *owner, const char *who,
                             const char *text);
/* Whether the line of gRPC's log says that a handshake with a peer who dialled
 * us has failed. */
bool weir_grpc_strangers_is_end(const char *file, const char *text);

#endif
