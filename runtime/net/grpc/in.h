/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_GRPC_IN_H_
#define WEIR_NET_GRPC_IN_H_

#include "runtime/net/grpc/grpc_internal.h"

/* Frames that came in. */

/* The frame of |buffer|, which it takes over, also when it fails: then NULL and
 * |out_wanted| bytes were not there. Its first reference is the caller's. */
weir_net_frame *weir_grpc_in_create(weir_grpc *t, grpc_byte_buffer *buffer,
                                    size_t *out_wanted);

#endif
