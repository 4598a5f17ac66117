/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_GRPC_LOG_H_
#define WEIR_NET_GRPC_LOG_H_

#include <stdbool.h>
#include <stddef.h>

/* gRPC's log: it prints unless it is told otherwise, and some reasons are
 * nowhere else. */

/* Takes gRPC's log of this process: from now on it prints nothing. */
void weir_grpc_log_take(void);

/* Between begin and end, lines of this thread that are errors go to |text|, of
 * |room| bytes: the last one stays. */
void weir_grpc_log_begin(char *text, size_t room);
void weir_grpc_log_end(void);

/* Sets |*deaf| when a line on this thread says that no connection can be
 * accepted any more; NULL: no longer. */
void weir_grpc_log_accepts(bool *deaf);

/* From begin to end, lines of this thread go to |line| as well, with the name
 * of the file of gRPC that says them. */
typedef void (*weir_grpc_log_fn)(void *self, const char *file,
                                 const char *text);
void weir_grpc_log_watch(weir_grpc_log_fn line, void *self);
void weir_grpc_log_unwatch(void);

#endif
