/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_GRPC_LOCK_H_
#define WEIR_NET_GRPC_LOCK_H_

#include "runtime/net/grpc/grpc_internal.h"

/* The lock of a unix socket that is listened at: gRPC would take over the path
 * of one that is in use. */

enum { WEIR_GRPC_LOCK_BYTES = WEIR_GRPC_PATH_BYTES + 8 };

/* Locks |path|.lock, whose path goes to |out_lock|, by |*out_fd|. Errors: W7002
 * (another process listens there). */
weir_status weir_grpc_lock_path(const weir_module_host *host, const char *path,
                                char out_lock[WEIR_GRPC_LOCK_BYTES],
                                int *out_fd, weir_error *err);
/* Gives it back and removes it; nothing for |fd| -1. */
void weir_grpc_unlock_path(const char *lock, int fd);

#endif
