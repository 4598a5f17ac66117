/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_GRPC_LOG_H_
#define WEIR_NET_GRPC_LOG_H_

#include <stddef.h>

/* gRPC's log: it prints unless it is told otherwise, and some reasons are
 * nowhere else. */

/* Takes gRPC's log of this process: from now on it prints nothing. */
void weir_grpc_log_take(void);

/* Between begin and end, lines of this thread that are errors go to |text|, of
 * |room| bytes: the last one stays. */
void weir_grpc_log_begin(char *text, size_t room);
void weir_grpc_log_end(void);

#endif
