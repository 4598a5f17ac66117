/* SPDX-License-Identifier: Apache-2.0 */
#include <grpc/grpc.h>

#include "runtime/net/grpc.h"
#include "runtime/net/grpc/grpc_transport.h"
#include "runtime/net/grpc/rpc/rpc.h"

/* The one symbol of libweir_grpc.so. */

static const weir_grpc_functions kFunctions = {
    weir_grpc_create, grpc_version_string, weir_rpc_grpc_create};

extern const weir_module_head weir_module;
WEIR_API const weir_module_head weir_module = {
    WEIR_MODULE_VERSION, WEIR_GRPC_VERSION, "grpc", &kFunctions};
