/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_RPC_SERVICES_H_
#define WEIR_NET_RPC_SERVICES_H_

#include "runtime/base/strbuf.h"
#include "runtime/net/rpc/rpc_server.h"

/* The services that every server has: reflection, by which clients learn the
 * others, and health. Pure functions of bytes; requests are anybody's. */

/* The files of ../proto that clients may ask for, and the symbols in them, in
 * the order of their names; both end with a NULL name. Made by describe.py. */
typedef struct weir_rpc_file {
  const char *name; /* "weir/v1/predict.proto" */
  const uint8_t *data;
  size_t size;
} weir_rpc_file;

typedef struct weir_rpc_symbol {
  const char *name; /* "weir.v1.Predict" */
  uint32_t file;
  bool service;
} weir_rpc_symbol;

extern const weir_rpc_file weir_rpc_files[];
extern const weir_rpc_symbol weir_rpc_symbols[];

/* Their methods: rows for weir_rpc_options.methods. */
#define WEIR_RPC_SERVICE_METHODS                                            \
  {"/grpc.health.v1.Health/Check", false, false},                           \
      {"/grpc.health.v1.Health/Watch", false, true},                        \
      {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", true,   \
       false},                                                              \
  {                                                                         \
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", true, \
        false                                                               \
  }

/* Appends to |answer|, which is empty, the answer to a request of reflection.
 * Errors: W7075 (the request cannot be read), W6001. */
weir_status weir_rpc_reflect(weir_bytes request, weir_strbuf *answer,
                             weir_error *err);

/* States of a service, as the protocol numbers them. */
typedef enum weir_rpc_health_state {
  WEIR_RPC_SERVING = 1,
  WEIR_RPC_NOT_SERVING,
  WEIR_RPC_SERVICE_UNKNOWN
} weir_rpc_health_state;

/* The same for health's Check; |serving|: no stop is under way. A service that
 * is not there is W7076. */
weir_status weir_rpc_health(weir_bytes request, bool serving,
                            weir_strbuf *answer, weir_error *err);

/* For Watch: whether the service that |request| names is there. Errors: W7075.
 */
weir_status weir_rpc_health_known(weir_bytes request, bool *out_known,
                                  weir_error *err);
/* Appends an answer of Watch. Errors: W6001. */
weir_status weir_rpc_health_tell(weir_rpc_health_state state,
                                 weir_strbuf *answer, weir_error *err);

#endif
