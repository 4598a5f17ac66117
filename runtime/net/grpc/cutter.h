/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_GRPC_CUTTER_H_
#define WEIR_NET_GRPC_CUTTER_H_

#include "runtime/net/grpc/grpc_internal.h"

/* Connections that begin one call after the other, which none of ours does. */

/* Most calls that one connection of TCP may begin. */
enum { WEIR_GRPC_CALLS = 256 };

/* Counts a call of |peer|, "127.0.0.1:40123", that came to |bound|. True: it
 * was one too many, and the connection is cut. */
bool weir_grpc_cutter_count(weir_grpc_cutter *cutter, const char *peer,
                            const char *bound);

#endif
