/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_GRPC_WORDS_H_
#define WEIR_NET_GRPC_WORDS_H_

#include "runtime/net/grpc/grpc_internal.h"

/* gRPC's messages, in words for people. */

enum { WEIR_GRPC_WORDS = 256 };

/* Why |link|, which has ended, did so; |out| gets the words, "" after a
 * goodbye. |open|: whether it had begun. */
weir_close_reason weir_grpc_words_of_end(const weir_grpc_link *link, bool open,
                                         char out[WEIR_GRPC_WORDS]);

/* Why gRPC cannot listen at |address|; |log| is its last log line. */
void weir_grpc_words_of_listen(const weir_grpc_address *address,
                               const char *log, char out[WEIR_GRPC_WORDS]);

/* Reads |text|. W7002 when it is no address, or one that only |insecure|
 * permits. */
weir_status weir_grpc_check_address(const weir_grpc *t, weir_sv text,
                                    weir_grpc_address *out, weir_error *err);

/* Fills |err|. */
weir_status weir_grpc_host_fail(const weir_module_host *host, weir_error *err,
                                const char *id, const char *fmt, ...)
    WEIR_PRINTF(4, 5);
/* The same, for a transport. */
weir_status weir_grpc_fail(const weir_grpc *t, weir_error *err, const char *id,
                           const char *fmt, ...) WEIR_PRINTF(4, 5);
/* Fills |err| with W6001. */
weir_status weir_grpc_fail_memory(const weir_grpc *t, weir_error *err,
                                  size_t bytes);

#endif
