/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_GRPC_RPC_CALL_H_
#define WEIR_NET_GRPC_RPC_CALL_H_

#include "runtime/net/grpc/rpc/rpc.h"

/* Calls, from their begin to their end. */

/* Takes |call|, for the method of that path; refuses it where there is none, or
 * when there are too many. poll. */
void weir_rpc_call_begin(weir_rpc_grpc *s, grpc_call *call, weir_sv path,
                         gpr_timespec deadline);
/* weir_rpc_vtable.reply. */
void weir_rpc_call_reply(weir_rpc_server *base, weir_rpc_call *c,
                         const weir_rpc_reply *reply);
/* Ends calls whose next message has not come. poll. */
void weir_rpc_call_expire(weir_rpc_grpc *s);

#endif
