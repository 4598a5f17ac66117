/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_NET_GRPC_NET_H_
#define TESTS_NET_GRPC_NET_H_

#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/env_system.h"
#include "runtime/net/grpc.h"
#include "tests/net/conformance.h"

/* Transports over sockets as a network of the suite. */

typedef struct grpc_net {
  weir_env env;
  weir_module_handle module;
  const weir_net_tls *tls; /* of all transports; NULL: none */
} grpc_net;

static inline weir_status grpc_net_open(weir_fixture *f,
                                        const weir_allocator *alloc,
                                        const weir_env **out_env,
                                        weir_error *err) {
  grpc_net *net = f->self;
  net->env = *weir_env_system();
  net->env.alloc = alloc;
  *out_env = &net->env;
  return weir_transport_grpc_load(&net->module, getenv("WEIR_BUILD_ROOT"), err);
}

static inline void grpc_net_close(weir_fixture *f) {
  (void)f;
}

static inline weir_status grpc_net_create(weir_fixture *f,
                                          const weir_transport_handler *handler,
                                          const weir_transport_options *options,
                                          weir_transport **out_transport,
                                          weir_error *err) {
  grpc_net *net = f->self;
  weir_transport_options o = *options;
  o.tls = net->tls;
  return weir_transport_grpc_create(&net->env, &net->module, handler, &o,
                                    out_transport, err);
}

static inline weir_fixture grpc_net_fixture(grpc_net *net, const char *listen) {
  return (weir_fixture){.name = "grpc",
                        .self = net,
                        .threads = true,
                        .listen = listen,
                        .nobody = "127.0.0.1:1",
                        .foreign = "127.0.0.1:80000",
                        .open = grpc_net_open,
                        .close = grpc_net_close,
                        .create = grpc_net_create};
}

#endif
