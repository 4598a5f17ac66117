/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_GRPC_TLS_PEMS_H_
#define WEIR_NET_GRPC_TLS_PEMS_H_

#include "runtime/net/grpc/grpc_internal.h"

/* The files of a process's certificates, as texts. */

typedef enum weir_grpc_pem {
  WEIR_GRPC_CA,
  WEIR_GRPC_CERT,
  WEIR_GRPC_KEY,
  WEIR_GRPC_PEMS
} weir_grpc_pem;

/* The text of each file, with a NUL behind it; zeros: none. */
typedef struct weir_grpc_pems {
  char *text[WEIR_GRPC_PEMS];
  size_t size[WEIR_GRPC_PEMS];
} weir_grpc_pems;

/* The path of |file| in |tls|. */
const char *weir_grpc_pems_path(const weir_net_tls *tls, weir_grpc_pem file);

/* Reads the files of |tls| into |out|, which is to be released also after a
 * failure. They are plain files of at most 1 MiB. Errors: W7060, W6001. */
weir_status weir_grpc_pems_read(weir_grpc *t, const weir_net_tls *tls,
                                weir_grpc_pems *out, weir_error *err);
bool weir_grpc_pems_equal(const weir_grpc_pems *a, const weir_grpc_pems *b);
/* Wipes and frees; zeros stay. */
void weir_grpc_pems_release(weir_grpc *t, weir_grpc_pems *pems);

#endif
