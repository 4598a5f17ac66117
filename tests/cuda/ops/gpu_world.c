/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/ops/gpu_world.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/env_system.h"

static weir_status find_standin(gpu_world *w, const char *root,
                                weir_error *err) {
  char path[sizeof w->folder + 32];
  snprintf(w->folder, sizeof w->folder, "%s/tests/cuda/standin", root);
  snprintf(path, sizeof path, "%s/libcudart.so.13", w->folder);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library != NULL) w->standin = dlsym(library, "standin_functions");
  if (w->standin == NULL)
    return weir_fail(err, WEIR_W6004, NULL, "%s", dlerror());
  w->standin->set_check_launches(true);
  return WEIR_OK;
}

weir_status gpu_world_open(gpu_world *w, weir_error *err) {
  const char *root = getenv("WEIR_BUILD_ROOT");
  const char *folder = getenv("WEIR_CUDA_FOLDER");
  weir_device_name name = weir_device_name_any();
  name.index = (weir_index_range){0, 0};
  *w = (gpu_world){0};
  if (root == NULL)
    return weir_fail(err, WEIR_W6004, NULL, "WEIR_BUILD_ROOT is not set");
  if (folder != NULL)
    snprintf(w->folder, sizeof w->folder, "%s", folder);
  else
    WEIR_TRY(find_standin(w, root, err));
  WEIR_TRY(weir_device_cuda_load(&w->module, root, err));
  const weir_cuda_options o = {.runtime_folder = w->folder};
  WEIR_TRY(weir_device_cuda_create(weir_env_system(), &w->module, &name, &o,
                                   &w->device, err));
  WEIR_TRY(w->device->vt->queue_create(w->device, &w->queue, err));
  WEIR_TRY(w->device->vt->event_create(w->device, &w->event, err));
  return weir_gpu_open(w->device, &w->gpu, err);
}

bool gpu_world_close(gpu_world *w, char *why, size_t capacity) {
  if (w->device != NULL) {
    w->device->vt->queue_release(w->device, w->queue);
    w->device->vt->event_release(w->device, w->event);
  }
  weir_device_release(w->device);
  if (w->standin == NULL) return true;
  w->standin->reset(); /* looks at freed memory */
  standin_counts n = w->standin->counts();
  if (n.blocks + n.streams + n.events + n.works + n.libraries == 0 &&
      n.written_after_free == 0)
    return true;
  snprintf(why, capacity,
           "%" PRIu64 " blocks, %" PRIu64 " streams, %" PRIu64
           " events, %" PRIu64 " works, %" PRIu64 " libraries live; %" PRIu64
           " blocks were written after they were freed",
           n.blocks, n.streams, n.events, n.works, n.libraries,
           n.written_after_free);
  return false;
}

weir_status gpu_world_wait(gpu_world *w, weir_error *err) {
  const weir_device_vtable *vt = w->device->vt;
  WEIR_TRY(vt->record(w->device, w->queue, w->event, err));
  return vt->wait(w->device, w->event, err);
}
