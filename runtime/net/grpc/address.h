/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_GRPC_ADDRESS_H_
#define WEIR_NET_GRPC_ADDRESS_H_

#include "runtime/base/sv.h"
#include "runtime/net/transport.h"

/* Addresses, checked before gRPC sees them: it takes port 80000 for 14464 and
 * no port for 443. */

enum { WEIR_GRPC_TARGET_BYTES = 512, WEIR_GRPC_PATH_BYTES = 108 };

typedef struct weir_grpc_address {
  char text[WEIR_NET_ADDRESS_BYTES];   /* as it was given */
  char host[WEIR_NET_ADDRESS_BYTES];   /* "127.0.0.1", "[::1]", "name"; "" */
  char path[WEIR_GRPC_PATH_BYTES];     /* of a unix socket; "" */
  unsigned port;                       /* 0..65535 */
  bool local;                          /* no other machine can listen in */
  char target[WEIR_GRPC_TARGET_BYTES]; /* for a channel */
} weir_grpc_address;

/* Reads "host:port", "[::1]:port" or "unix:path". Returns NULL, or the fault of
 * |text| in words (static). */
const char *weir_grpc_address_read(weir_sv text, weir_grpc_address *out);

#endif
