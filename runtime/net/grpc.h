/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_GRPC_H_
#define WEIR_NET_GRPC_H_

#include "runtime/base/module.h"
#include "runtime/net/rpc/rpc_server.h"
#include "runtime/net/transport.h"

/* The transport over sockets, by gRPC core: loopback and unix sockets; other
 * machines as well with |options->tls|, or with |options->insecure|, where
 * frames are not encrypted.
 *
 * It lives in a module, libweir_grpc.so, which is loaded by the first of these
 * calls; |module| is the caller's and outlives all transports. No process may
 * fork between the first transport and the end of the last one, unless it
 * executes another program at once. gRPC works best with
 * GRPC_POLL_STRATEGY=poll in the environment before it is loaded, and with
 * malloc kept from returning memory (M_TRIM_THRESHOLD, M_TOP_PAD): both are a
 * program's to choose.
 *
 * A peer that dies is seen at once when its system closes its sockets, and
 * within 3 s otherwise. A memory of gRPC's own is not counted by |env->alloc|,
 * and gRPC ends the process when malloc gives it nothing. Its log, of the whole
 * process, is silenced. */

/* Of weir_grpc_functions and of the structs of its arguments. */
enum { WEIR_GRPC_VERSION = 3 };

/* The functions of the module. |options| have their defaults put in; |host| and
 * |env| outlive the transport. */
typedef struct weir_grpc_functions {
  weir_status (*create)(const weir_module_host *host, const weir_env *env,
                        const weir_transport_handler *handler,
                        const weir_transport_options *options,
                        weir_transport **out_transport, weir_error *err);
  const char *(*grpc_version)(void); /* "1.51.1" without its name; static */
  weir_status (*create_rpc)(const weir_module_host *host, const weir_env *env,
                            const weir_rpc_handler *handler,
                            const weir_rpc_options *options,
                            weir_rpc_server **out_server, weir_error *err);
} weir_grpc_functions;

/* Loads the module, from |folder| if it is there (an absolute path; NULL: from
 * the usual places alone). Errors: W7004. */
weir_status weir_transport_grpc_load(weir_module_handle *module,
                                     const char *folder, weir_error *err);

/* A transport over sockets; loads the module if need be. Errors: W7004, W6001.
 */
weir_status weir_transport_grpc_create(const weir_env *env,
                                       weir_module_handle *module,
                                       const weir_transport_handler *handler,
                                       const weir_transport_options *options,
                                       weir_transport **out_transport,
                                       weir_error *err);

/* A server of calls (rpc/rpc_server.h) for programs of others; loads the module
 * if need be. Clients on other machines need |options->tls|, whose files are
 * checked here, or |options->insecure|. What is said above of memory, fork and
 * the environment holds for it. Errors: W7004, W7060, W6001. */
weir_status weir_rpc_server_grpc_create(const weir_env *env,
                                        weir_module_handle *module,
                                        const weir_rpc_handler *handler,
                                        const weir_rpc_options *options,
                                        weir_rpc_server **out_server,
                                        weir_error *err);

#endif
