/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/cuda_world.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>

#include "runtime/base/env_system.h"

/* Some of a program's tests: WEIR_TEST_FILTER, a pattern of their names. */
__attribute__((constructor)) static void read_filter(void) {
  cmocka_set_test_filter(getenv("WEIR_TEST_FILTER"));
}

weir_module_handle cuda_module;
const standin_control *standin;
char cuda_folder[PATH_MAX];
static weir_env env;
static int32_t gpu_count;

int cuda_world_open(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  const char *root = getenv("WEIR_BUILD_ROOT");
  const char *real = getenv("WEIR_CUDA_FOLDER");
  char path[PATH_MAX + 32];
  assert_non_null(root);
  snprintf(cuda_folder, sizeof cuda_folder, "%s%s", real != NULL ? real : root,
           real != NULL ? "" : "/tests/cuda/standin");
  snprintf(path, sizeof path, "%s/libcudart.so.13", cuda_folder);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fail_msg("%s", dlerror());
  standin = dlsym(library, "standin_functions");
  assert_true(standin != NULL || real != NULL);
  assert_ok(weir_device_cuda_load(&cuda_module, root, &err), &err);
  if (standin != NULL) return 0;
  weir_cuda_found found;
  assert_ok(weir_device_cuda_find(&cuda_module, cuda_folder, &found, &err),
            &err);
  gpu_count = (int32_t)found.gpu_count;
  return 0;
}

int cuda_world_gpus(void) {
  return standin != NULL ? 2 : gpu_count;
}

void cuda_world_needs_standin(const char *why) {
  if (standin != NULL) return;
  print_message("skipped, this needs the stand-in: %s\n", why);
  skip();
}

int cuda_world_skip_program(const char *why) {
  const char *real = getenv("WEIR_CUDA_FOLDER");
  char path[PATH_MAX + 32];
  if (real == NULL) return 0;
  snprintf(path, sizeof path, "%s/libcudart.so.13", real);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  bool controlled =
      library != NULL && dlsym(library, "standin_functions") != NULL;
  if (!controlled) printf("skipped, this needs the stand-in: %s\n", why);
  return controlled ? 0 : 77;
}

const char *cuda_world_fault(void) {
  return standin != NULL ? standin->fault() : "";
}

weir_status cuda_world_create(const weir_allocator *alloc,
                              const weir_device_name *name, size_t limit_bytes,
                              weir_device **out_device, weir_error *err) {
  env = *weir_env_system();
  env.alloc = alloc;
  int32_t gpu = name->index.first;
  const weir_cuda_options o = {.runtime_folder = cuda_folder,
                               .gpu = gpu_count > 0 ? gpu % gpu_count : gpu,
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
  if (standin == NULL) return;
  standin->reset(); /* looks at freed memory */
  standin_counts n = standin->counts();
  assert_int_equal(n.blocks, 0);
  assert_int_equal(n.block_bytes, 0);
  assert_int_equal(n.host_blocks, 0);
  assert_int_equal(n.streams, 0);
  assert_int_equal(n.libraries, 0);
  assert_int_equal(n.events, 0);
  assert_int_equal(n.works, 0);
  assert_int_equal(n.graphs, 0);
  assert_int_equal(n.written_after_free, 0);
}
