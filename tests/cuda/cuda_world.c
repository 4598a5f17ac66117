/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/cuda_world.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>

#include "runtime/base/env_system.h"

weir_module_handle cuda_module;
const standin_control *standin;
char standin_folder[PATH_MAX];
static weir_env env;

int cuda_world_open(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  const char *root = getenv("WEIR_BUILD_ROOT");
  char path[PATH_MAX + 32];
  assert_non_null(root);
  snprintf(standin_folder, sizeof standin_folder, "%s/tests/cuda/standin",
           root);
  snprintf(path, sizeof path, "%s/libcudart.so.13", standin_folder);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fail_msg("%s", dlerror());
  standin = dlsym(library, "standin_functions");
  assert_non_null(standin);
  assert_ok(weir_device_cuda_load(&cuda_module, root, &err), &err);
  return 0;
}

weir_status cuda_world_create(const weir_allocator *alloc,
                              const weir_device_name *name, size_t limit_bytes,
                              weir_device **out_device, weir_error *err) {
  env = *weir_env_system();
  env.alloc = alloc;
  const weir_cuda_options o = {.runtime_folder = standin_folder,
                               .gpu = name->index.first,
                               .limit_bytes = limit_bytes};
  return weir_device_cuda_create(&env, &cuda_module, name, &o, out_device, err);
}

weir_device *cuda_world_device(int32_t gpu, size_t limit_bytes) {
  weir_error err = WEIR_ERROR_INIT;
  weir_device *device = NULL;
  weir_device_name name = weir_device_name_any();
  name.index = (weir_index_range){gpu, gpu};
  assert_ok(cuda_world_create(weir_allocator_system(), &name, limit_bytes,
                              &device, &err),
            &err);
  return device;
}

void cuda_world_check_clean(void) {
  standin->reset(); /* looks at freed memory */
  standin_counts n = standin->counts();
  assert_int_equal(n.blocks, 0);
  assert_int_equal(n.block_bytes, 0);
  assert_int_equal(n.host_blocks, 0);
  assert_int_equal(n.streams, 0);
  assert_int_equal(n.libraries, 0);
  assert_int_equal(n.events, 0);
  assert_int_equal(n.works, 0);
  assert_int_equal(n.written_after_free, 0);
}
