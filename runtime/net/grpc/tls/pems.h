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

/* The text of each file, with a NUL behind it; NULL: there is none. */
typedef struct weir_grpc_pems {
  char *text[WEIR_GRPC_PEMS];
  size_t size[WEIR_GRPC_PEMS];
} weir_grpc_pems;

/* Whose files they are. */
typedef struct weir_grpc_owner {
  const weir_module_host *host;
  const weir_env *env;
  const weir_net_tls *files; /* lent */
} weir_grpc_owner;

/* The path of |file| in |tls|; NULL: there is none. */
const char *weir_grpc_pems_path(const weir_net_tls *tls, weir_grpc_pem file);

/* Reads the files of |owner| into |out|, which is to be released also after a
 * failure. They are plain files of at most 1 MiB. Errors: W7060, W6001. */
weir_status weir_grpc_pems_read(const weir_grpc_owner *owner,
                                weir_grpc_pems *out, weir_error *err);
bool weir_grpc_pems_equal(const weir_grpc_pems *a, const weir_grpc_pems *b);
/* Wipes and frees; zeros stay. */
void weir_grpc_pems_release(const weir_grpc_owner *owner, weir_grpc_pems *pems);

#endif
