/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CLUSTER_OPENSSL_H_
#define CLI_CLUSTER_OPENSSL_H_

#include <stdint.h>

#include "runtime/weir.h"

/* The command openssl, started without a shell. */

/* A certificate to be made with its key, by openssl. All paths are lent. */
typedef struct cli_certificate {
  const char *config;  /* a file of `openssl req`, with a section `ext` */
  const char *out_pem; /* written */
  const char *out_key; /* written, for this user alone */
  const char *ca_pem;  /* who signs; NULL: it signs itself */
  const char *ca_key;
  int64_t days;
} cli_certificate;

/* Waits for openssl to end. Errors: W0005 (it is not there, or fails: its last
 * line), W6003. */
weir_status cli_openssl_certify(const cli_certificate *it, weir_error *err);

#endif
