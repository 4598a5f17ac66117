/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/env_system.h"
#include "runtime/net/local.h"
#include "tests/net/conformance.h"

typedef struct local_net {
  weir_env env;
  weir_net_hub *hub;
} local_net;

static weir_status open_hub(weir_fixture *f, const weir_allocator *alloc,
                            const weir_env **out_env, weir_error *err) {
  local_net *net = f->self;
  net->env = *weir_env_system();
  net->env.alloc = alloc;
  *out_env = &net->env;
  return weir_net_hub_create(&net->env, &net->hub, err);
}

static void close_hub(weir_fixture *f) {
  local_net *net = f->self;
  weir_net_hub_release(net->hub);
  net->hub = NULL;
}

static weir_status create(weir_fixture *f,
                          const weir_transport_handler *handler,
                          const weir_transport_options *options,
                          weir_transport **out_transport, weir_error *err) {
  local_net *net = f->self;
  return weir_transport_local_create(net->hub, handler, options, out_transport,
                                     err);
}

int main(void) {
  local_net net = {0};
  weir_fixture fixture = {.name = "local",
                          .self = &net,
                          .threads = true,
                          .listen = "local:",
                          .nobody = "local:nobody",
                          .foreign = "127.0.0.1:1",
                          .open = open_hub,
                          .close = close_hub,
                          .create = create};
  return weir_conformance_run(&fixture);
}
