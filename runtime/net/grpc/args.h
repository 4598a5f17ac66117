/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_GRPC_ARGS_H_
#define WEIR_NET_GRPC_ARGS_H_

#include "runtime/net/grpc/grpc_internal.h"

/* The settings of gRPC's channels and servers. */

enum { WEIR_GRPC_ARGS = 32 };

typedef struct weir_grpc_args {
  grpc_arg items[WEIR_GRPC_ARGS];
  grpc_channel_args list;
} weir_grpc_args;

/* Fills |args| for the dialling or the listening side of |t|. */
void weir_grpc_args_init(weir_grpc_args *args, weir_grpc *t, bool server);

/* The method of frames of |cls|. Static text. */
const char *weir_grpc_method(weir_net_class cls);

#endif
