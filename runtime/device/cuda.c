/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/cuda.h"

/* The core's side of the CUDA device: finds the module. */

weir_status weir_device_cuda_load(weir_module_handle *module,
                                  const char *folder, weir_error *err) {
  const weir_module_want want = {.name = "cuda",
                                 .version = WEIR_CUDA_VERSION,
                                 .error = WEIR_W6004,
                                 .folder = folder};
  return weir_module_open(module, &want, err);
}

weir_status weir_device_cuda_find(weir_module_handle *module,
                                  const char *runtime_folder,
                                  weir_cuda_found *out_found, weir_error *err) {
  *out_found = (weir_cuda_found){0};
  WEIR_TRY(weir_device_cuda_load(module, NULL, err));
  const weir_cuda_functions *cuda = module->functions;
  return cuda->find(&module->host, runtime_folder, out_found, err);
}

weir_status weir_device_cuda_create(const weir_env *env,
                                    weir_module_handle *module,
                                    const weir_device_name *name,
                                    const weir_cuda_options *options,
                                    weir_device **out_device, weir_error *err) {
  *out_device = NULL;
  WEIR_TRY(weir_device_cuda_load(module, NULL, err));
  const weir_cuda_functions *cuda = module->functions;
  return cuda->create(&module->host, env, name, options, out_device, err);
}
