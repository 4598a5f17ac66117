/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_GRPC_LIMITS_H_
#define WEIR_NET_GRPC_LIMITS_H_

#include "runtime/net/grpc/grpc_internal.h"

/* Limits of what peers may take of a transport. docs/distributed.md has the
 * table of all. */

enum {
  WEIR_GRPC_INCOMING = 4096, /* connections that came in, of one transport */
  WEIR_GRPC_STREAMS = 16,    /* of those by one connection of TCP */
  WEIR_GRPC_REFUSALS = 64,   /* calls that are being refused with a word */
  WEIR_GRPC_FIRST_MS = 5000, /* for a handshake, and without any call */
  WEIR_GRPC_METADATA = 8192, /* bytes of a call's headers */
  WEIR_GRPC_WORDS_MIB = 256  /* of copied frames that wait, for all peers */
};

/* Bytes of a call's headers, as HTTP/2 counts them. */
size_t weir_grpc_limits_headers(const grpc_metadata_array *metadata);

/* Whether one more call from |peer| is taken; if not, |words| says why. */
bool weir_grpc_limits_admit(const weir_grpc *t, const char *peer,
                            size_t headers, char words[WEIR_NET_ADDRESS_BYTES]);

/* Whether |bytes| more that are copied may wait for |link|. With the mutex
 * held. */
bool weir_grpc_limits_queue(const weir_grpc_link *link, size_t bytes);

/* The first frame of |link| has come: the fence moves out of its way. */
void weir_grpc_limits_heard(weir_grpc_link *link);
/* Sets the fence of a new transport. */
void weir_grpc_limits_fence(weir_grpc *t);

#endif
