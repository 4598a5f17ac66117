/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_GRPC_RELISTEN_H_
#define WEIR_NET_GRPC_RELISTEN_H_

#include "runtime/net/grpc/grpc_internal.h"

/* Listens again at the addresses of |t| if gRPC has given up listening. Returns
 * when it wants to be called again, or INT64_MAX. */
int64_t weir_grpc_relisten(weir_grpc *t);

#endif
