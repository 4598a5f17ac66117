/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/net/grpc.h"

/* The core's side of the gRPC transport: finds the module. */

weir_status weir_transport_grpc_load(weir_module_handle *module,
                                     const char *folder, weir_error *err) {
  const weir_module_want want = {.name = "grpc",
                                 .version = WEIR_GRPC_VERSION,
                                 .error = WEIR_W7004,
                                 .folder = folder};
  return weir_module_open(module, &want, err);
}

weir_status weir_transport_grpc_create(const weir_env *env,
                                       weir_module_handle *module,
                                       const weir_transport_handler *handler,
                                       const weir_transport_options *options,
                                       weir_transport **out_transport,
                                       weir_error *err) {
  weir_transport defaults;
  *out_transport = NULL;
  WEIR_TRY(weir_transport_grpc_load(module, NULL, err));
  weir_transport_init(&defaults, NULL, env, handler, options);
  const weir_grpc_functions *grpc = module->functions;
  return grpc->create(&module->host, env, handler, &defaults.options,
                      out_transport, err);
}

weir_status weir_rpc_server_grpc_create(const weir_env *env,
                                        weir_module_handle *module,
                                        const weir_rpc_handler *handler,
                                        const weir_rpc_options *options,
                                        weir_rpc_server **out_server,
                                        weir_error *err) {
  *out_server = NULL;
  WEIR_TRY(weir_transport_grpc_load(module, NULL, err));
  const weir_grpc_functions *grpc = module->functions;
  return grpc->create_rpc(&module->host, env, handler, options, out_server,
                          err);
}
