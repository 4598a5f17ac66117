/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_GRPC_TLS_CHECK_H_
#define WEIR_NET_GRPC_TLS_CHECK_H_

#include "runtime/net/grpc/tls/pems.h"

/* OpenSSL's word on certificates, in ours. */

enum { WEIR_GRPC_FAULT_TEXT = 256 };

/* Why a certificate is not taken. */
typedef enum weir_grpc_fault {
  WEIR_GRPC_SOUND,
  WEIR_GRPC_FOREIGN, /* of no authority that we know, or broken */
  WEIR_GRPC_EXPIRED, /* or not valid yet */
  WEIR_GRPC_UNFIT,   /* for this use */
  WEIR_GRPC_NO_PEM,
  WEIR_GRPC_FAULTS
} weir_grpc_fault;

/* Checks a chain, the leaf first, against the authorities |ca|, both in PEM,
 * for the side that listens (|listens|) or dials. |out| gets the end of the
 * sentence "the certificate ..." where it is not sound. Any thread. */
weir_grpc_fault weir_grpc_check_chain(const char *ca, const char *chain,
                                      bool listens,
                                      char out[WEIR_GRPC_FAULT_TEXT]);

/* Checks this process's own files: PEM, a key that fits, the name, and the
 * chain for the side |listens|. Without a name the authorities are those of
 * clients alone, and of our own chain only its times and uses are looked at.
 * Errors: W7060. */
weir_status weir_grpc_check_own(const weir_grpc_owner *owner,
                                const weir_grpc_pems *pems, bool listens,
                                weir_error *err);

#endif
