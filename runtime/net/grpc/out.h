/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_GRPC_OUT_H_
#define WEIR_NET_GRPC_OUT_H_

#include "runtime/net/grpc/grpc_internal.h"

/* Frames on their way out. */

struct weir_grpc_out {
  weir_grpc_out *next; /* in the queue of a link */
  weir_grpc *transport;
  grpc_byte_buffer *buffer;
  size_t bytes, copied; /* |copied| of them are copies */
  atomic_size_t users;  /* pieces in use, and the owner of |buffer| */
  bool forget;          /* call no |released| */
  size_t count;
  struct weir_grpc_held {
    weir_grpc_out *frame; /* NULL: an empty piece, which gRPC does not get */
    void (*released)(void *self);
    void *self;
  } held[];
};

/* A frame of |pieces|; those with |released| are not copied. NULL when out of
 * memory, or when a size is too large. */
weir_grpc_out *weir_grpc_out_create(weir_grpc *t, const weir_net_piece *pieces,
                                    size_t count);
/* Lets go of the bytes; each |released| is called when gRPC has let go of them
 * as well, perhaps from here, unless |forget|. No lock may be held. */
void weir_grpc_out_release(weir_grpc_out *frame, bool forget);

#endif
