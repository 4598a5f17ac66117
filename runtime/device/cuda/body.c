/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/cuda/body.h"

#include <string.h>

#include "runtime/base/size.h"
#include "runtime/device/cuda/fail.h"
#include "runtime/device/cuda/gpu.h"

/* A file is one library of CUDA's, a body one kernel. Neither belongs to a GPU
 * for CUDA, but a device loads its own: then nothing is shared, and what one
 * device unloads no other one uses. */

struct weir_device_body {
  cudaKernel_t kernel;
  const weir_cuda_body_def *def;
};

/* Of every GPU; a launch that asks for more is a mistake of the caller. */
enum { kMostThreads = 1024, kMostBlocksX = 0x7fffffff, kMostBlocks = 0xffff };

static size_t count_files(void) {
  size_t n = 0;
  while (weir_cuda_fatbins[n].file != NULL) n++;
  return n;
}

static size_t count_bodies(void) {
  size_t n = 0;
  while (weir_cuda_bodies[n].file != NULL) n++;
  return n;
}

/* Before there is a device every failure is that there is none. */
static weir_status check(weir_cuda_device *gpu, cudaError_t e, const char *what,
                         const char *name, weir_error *err) {
  if (e == cudaSuccess) return WEIR_OK;
  const char *id = e == cudaErrorMemoryAllocation ? "W6001" : "W6004";
  return weir_cuda_fail(gpu->host, err, id, "GPU %d cannot load %s %s: %s",
                        gpu->gpu, what, name, gpu->api.cudaGetErrorString(e));
}

static weir_status load_files(weir_cuda_device *gpu, weir_error *err) {
  for (size_t i = 0; weir_cuda_fatbins[i].file != NULL; i++) {
    cudaLibrary_t library = NULL;
    cudaError_t e = gpu->api.cudaLibraryLoadData(
        &library, weir_cuda_fatbins[i].code, NULL, NULL, 0, NULL, NULL, 0);
    WEIR_TRY(check(gpu, e, "the bodies of", weir_cuda_fatbins[i].file, err));
    gpu->loaded.libraries[i] = library;
  }
  return WEIR_OK;
}

/* NULL: the module has no such file. */
static cudaLibrary_t library_of(const weir_cuda_device *gpu, const char *file) {
  for (size_t i = 0; weir_cuda_fatbins[i].file != NULL; i++)
    if (strcmp(weir_cuda_fatbins[i].file, file) == 0)
      return (cudaLibrary_t)gpu->loaded.libraries[i];
  return NULL;
}

static weir_status find_bodies(weir_cuda_device *gpu, weir_error *err) {
  for (size_t i = 0; weir_cuda_bodies[i].file != NULL; i++) {
    const weir_cuda_body_def *def = &weir_cuda_bodies[i];
    weir_device_body *body = &gpu->loaded.bodies[i];
    cudaLibrary_t library = library_of(gpu, def->file);
    cudaError_t e = cudaErrorSymbolNotFound;
    if (library != NULL)
      e = gpu->api.cudaLibraryGetKernel(&body->kernel, library, def->symbol);
    WEIR_TRY(check(gpu, e, "the body", def->name, err));
    body->def = def;
  }
  return WEIR_OK;
}

/* |count| elements of |size| bytes, all zero; NULL when there is no memory. */
static void *zeroed(weir_cuda_device *gpu, size_t count, size_t size) {
  size_t bytes;
  if (!weir_size_mul(count, size, &bytes)) return NULL;
  void *data = gpu->host->alloc(gpu->env, bytes);
  return data != NULL ? memset(data, 0, bytes) : NULL;
}

weir_status weir_cuda_body_open(weir_cuda_device *gpu, weir_error *err) {
  weir_cuda_loaded *l = &gpu->loaded;
  l->libraries = zeroed(gpu, count_files(), sizeof *l->libraries);
  l->bodies = zeroed(gpu, count_bodies(), sizeof *l->bodies);
  if (l->libraries == NULL || l->bodies == NULL)
    return weir_cuda_fail(gpu->host, err, "W6001",
                          "no memory of the host for the bodies of GPU %d",
                          gpu->gpu);
  WEIR_TRY(load_files(gpu, err));
  return find_bodies(gpu, err);
}

void weir_cuda_body_close(weir_cuda_device *gpu) {
  void **libraries = gpu->loaded.libraries;
  for (size_t i = 0; libraries != NULL && weir_cuda_fatbins[i].file; i++)
    if (libraries[i] != NULL)
      weir_cuda_gpu_note(
          gpu, gpu->api.cudaLibraryUnload((cudaLibrary_t)libraries[i]));
  gpu->host->free(gpu->env, libraries);
  gpu->host->free(gpu->env, gpu->loaded.bodies);
  gpu->loaded = (weir_cuda_loaded){0};
}

weir_status weir_cuda_body_find(weir_device *device, const char *name,
                                const weir_device_body **out_body,
                                weir_error *err) {
  weir_cuda_device *gpu = (weir_cuda_device *)device;
  *out_body = NULL;
  for (size_t i = 0; weir_cuda_bodies[i].file != NULL; i++) {
    if (strcmp(weir_cuda_bodies[i].name, name) != 0) continue;
    *out_body = &gpu->loaded.bodies[i];
    return WEIR_OK;
  }
  return weir_cuda_fail(gpu->host, err, "W9001",
                        "the module for GPUs has no body %s", name);
}

static weir_status check_launch(weir_cuda_device *gpu,
                                const weir_device_body *body,
                                const weir_device_grid *grid, size_t bytes,
                                weir_error *err) {
  const char *name = body->def->name;
  const uint32_t *n = grid->blocks;
  if (bytes != body->def->args_bytes)
    return weir_cuda_fail(gpu->host, err, "W9001",
                          "the body %s takes %zu bytes, not %zu", name,
                          body->def->args_bytes, bytes);
  if (grid->threads == 0 || grid->threads > kMostThreads)
    return weir_cuda_fail(gpu->host, err, "W9001",
                          "%u threads in a block of %s: 1 to %d can be",
                          grid->threads, name, kMostThreads);
  if (n[0] > kMostBlocksX || n[1] > kMostBlocks || n[2] > kMostBlocks)
    return weir_cuda_fail(gpu->host, err, "W9001",
                          "a grid of %u x %u x %u blocks for %s: %d x %d x %d "
                          "can be",
                          n[0], n[1], n[2], name, kMostBlocksX, kMostBlocks,
                          kMostBlocks);
  return WEIR_OK;
}

weir_status weir_cuda_body_launch(weir_device *device, weir_queue *queue,
                                  const weir_device_body *body,
                                  const weir_device_grid *grid,
                                  const void *args, size_t bytes,
                                  weir_error *err) {
  weir_cuda_device *gpu = (weir_cuda_device *)device;
  const uint32_t *n = grid->blocks;
  WEIR_TRY(check_launch(gpu, body, grid, bytes, err));
  WEIR_TRY(weir_cuda_gpu_enter(gpu, err));
  if (n[0] == 0 || n[1] == 0 || n[2] == 0) return WEIR_OK;
  const cudaLaunchConfig_t config = {
      .gridDim = {n[0], n[1], n[2]},
      .blockDim = {grid->threads, 1, 1},
      .dynamicSmemBytes = grid->shared_bytes,
      .stream = (cudaStream_t)queue,
  };
  void *pointers[] = {(void *)(uintptr_t)args}; /* CUDA copies it */
  cudaError_t e = gpu->api.cudaLaunchKernelExC(
      &config, (const void *)body->kernel, pointers);
  return weir_cuda_gpu_check(gpu, e, "cudaLaunchKernelExC", err);
}
