/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_GRPC_TLS_TLS_H_
#define WEIR_NET_GRPC_TLS_TLS_H_

#include <grpc/grpc_security.h>

#include "runtime/net/grpc/tls/check.h"

/* Credentials of a transport: of each connection, from the files as they are
 * when it begins. */

typedef struct weir_grpc_tls weir_grpc_tls;

/* What became of the other side's certificate in a connection that we dialled.
 * It belongs to the connection and to gRPC. */
typedef struct weir_grpc_verdict weir_grpc_verdict;

/* Reads and checks the files of |owner|, whose host, env and files are lent for
 * the life. Errors: W7060, W6001. */
weir_status weir_grpc_tls_create(const weir_grpc_owner *owner,
                                 weir_grpc_tls **out_tls, weir_error *err);
/* After all of gRPC's threads are out of it. NULL-safe. */
void weir_grpc_tls_release(weir_grpc_tls *tls);

/* Credentials to dial with. The certificate is checked once more, for it may
 * have expired. Errors: W7060, W6001. */
weir_status weir_grpc_tls_dial(weir_grpc_tls *tls,
                               grpc_channel_credentials **out,
                               weir_grpc_verdict **out_verdict,
                               weir_error *err);
/* Credentials to listen with: each connection asks for the present files, and
 * its client for a certificate where there are authorities. |seen| is gRPC's
 * until its server is gone. Errors: W7060. */
weir_status weir_grpc_tls_listen(weir_grpc_tls *tls, weir_grpc_tls_seen *seen,
                                 grpc_server_credentials **out,
                                 weir_error *err);

/* The verdict, NULL: nothing is known. SOUND: the certificate was taken.
 * |out_seen| false: none was seen. */
weir_grpc_fault weir_grpc_verdict_read(const weir_grpc_verdict *verdict,
                                       bool *out_seen,
                                       char out[WEIR_GRPC_FAULT_TEXT]);
void weir_grpc_verdict_release(weir_grpc_verdict *verdict); /* NULL-safe */

/* The names of weir, "weir://worker/0", of the other side's certificate, each
 * followed by a space; |out| is "" where there are none. */
void weir_grpc_tls_names(grpc_call *call, char out[WEIR_NET_NAMES_BYTES]);

#endif
