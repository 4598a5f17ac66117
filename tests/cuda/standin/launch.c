/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/body.h"
#include "tests/cuda/simt/simt.h"
#include "tests/cuda/standin/standin_internal.h"

/* Libraries of bodies, and launches. A kernel's handle is its simt_body: the
 * machine code of a library is looked at no further than its first bytes. In a
 * build without fibers every name is there, and no launch succeeds. */

enum { kFatbinMagic = 0x50, kMostShared = 48 << 10, kMostBlocks = 0xffff };

struct CUlib_st {
  int unused;
};

#if !defined(STANDIN_BODIES)
const simt_body simt_bodies[] = {{0}};
static const simt_body kNoBody = {0};
simt_result simt_launch(const simt_body *body, const simt_grid *grid,
                        const void *args, bool last) {
  (void)body, (void)grid, (void)args, (void)last;
  return SIMT_MEMORY;
}
#endif

cudaError_t cudaLibraryLoadData(cudaLibrary_t *out, const void *code,
                                enum cudaJitOption *jit, void **jit_values,
                                unsigned jit_count,
                                enum cudaLibraryOption *options, void **values,
                                unsigned count) {
  cudaError_t e = standin_begin();
  (void)jit, (void)jit_values, (void)options, (void)values;
  if (e == cudaSuccess && (jit_count != 0 || count != 0))
    e = cudaErrorInvalidValue;
  if (e == cudaSuccess && *(const unsigned char *)code != kFatbinMagic)
    e = cudaErrorInvalidKernelImage;
  struct CUlib_st *l = e == cudaSuccess ? malloc(sizeof *l) : NULL;
  if (e == cudaSuccess && l == NULL) e = cudaErrorMemoryAllocation;
  if (e == cudaSuccess) {
    *out = l;
    standin.counts.libraries++;
  }
  return standin_end(e);
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  cudaError_t e = standin_begin();
  free(library);
  standin.counts.libraries--;
  return standin_end(e);
}

/* Names come in the order of the list: the search goes on from the last one. */
static const simt_body *find(const char *name) {
  if (standin.hidden != NULL && strcmp(name, standin.hidden) == 0) return NULL;
#if defined(STANDIN_BODIES)
  static const simt_body *last = simt_bodies;
  const simt_body *b = last;
  do {
    b = b->symbol != NULL ? b + 1 : simt_bodies;
    if (b->symbol != NULL && strcmp(b->symbol, name) == 0) return last = b;
  } while (b != last);
  return NULL;
#else
  return &kNoBody;
#endif
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *out, cudaLibrary_t library,
                                 const char *name) {
  cudaError_t e = standin_begin();
  const simt_body *body = find(name);
  if (e == cudaSuccess && library == NULL) e = cudaErrorInvalidResourceHandle;
  if (e == cudaSuccess && body == NULL) e = cudaErrorSymbolNotFound;
  if (e == cudaSuccess) *out = (cudaKernel_t)(uintptr_t)body;
  return standin_end(e);
}

size_t standin_launch_bytes(const standin_launch *l) {
  return sizeof *l + l->body->args_bytes;
}

static bool is_grid(const cudaLaunchConfig_t *c) {
  const dim3 *g = &c->gridDim, *b = &c->blockDim;
  return g->x > 0 && g->x <= 0x7fffffff && g->y > 0 && g->y <= kMostBlocks &&
         g->z > 0 && g->z <= kMostBlocks && b->x > 0 && b->x <= SIMT_THREADS &&
         b->y == 1 && b->z == 1;
}

/* The device's first block that the argument has an address of; NULL: none. */
static const standin_block *block_of(const standin_launch *l) {
  for (size_t at = 0; at + sizeof(void *) <= l->body->args_bytes;
       at += sizeof(void *)) {
    const void *word;
    memcpy(&word, l->args + at, sizeof word);
    const standin_block *b = standin_block_at(word);
    if (b != NULL && b->device >= 0) return b;
  }
  return NULL;
}

/* Fewer blocks by one, of the first dimension that has more. */
static void drop_last_block(unsigned blocks[3]) {
  for (int i = 0; i < 3; i++)
    if (blocks[i] > 1) {
      blocks[i]--;
      return;
    }
}

static cudaError_t put_launch(const cudaLaunchConfig_t *c,
                              const simt_body *body, const void *args) {
  if (!is_grid(c)) return cudaErrorInvalidConfiguration;
  if (c->dynamicSmemBytes > kMostShared) return cudaErrorInvalidValue;
  if (c->blockDim.x > WEIR_BODY_THREADS) /* their launch bounds */
    return cudaErrorLaunchOutOfResources;
  if (body->run == NULL) return cudaErrorNotSupported;
  standin_launch *l = malloc(sizeof *l + body->args_bytes);
  if (l == NULL) return cudaErrorMemoryAllocation;
  *l = (standin_launch){
      body, {c->gridDim.x, c->gridDim.y, c->gridDim.z}, c->blockDim.x};
  memcpy(l->args, args, body->args_bytes);
  if (standin_has(STANDIN_BUG_last_block)) drop_last_block(l->blocks);
  cudaError_t e = standin_put_launch(c->stream, l);
  if (e != cudaSuccess)
    free(l);
  else if (standin_has(STANDIN_BUG_freed_in_flight))
    standin_free_early(block_of(l));
  return e;
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config,
                                const void *function, void **args) {
  cudaError_t e = standin_begin();
  if (e == cudaSuccess) e = put_launch(config, function, args[0]);
  if (standin_has(STANDIN_BUG_launch_unchecked)) e = cudaSuccess;
  return standin_end(e);
}

static simt_result run(const standin_launch *l, bool last) {
  const simt_grid grid = {{l->blocks[0], l->blocks[1], l->blocks[2]},
                          l->threads};
  return simt_launch(l->body, &grid, l->args, last);
}

/* The memory that a launch has addresses of, before it and after it; under the
 * lock, as all of this. */
static standin_copy before, after;

/* On memory as it was, in the opposite order: whether the bits are those of
 * the usual one. */
static const char *run_again(const standin_launch *l) {
  if (!standin_memory_save(&after)) return "no memory";
  standin_memory_load(&before);
  if (run(l, true) != SIMT_OK) return "the opposite order fails";
  return standin_memory_is(&after) ? NULL
                                   : "the bits depend on the order of threads";
}

/* Names the blocks of the addresses in the argument. Whether one was freed. A
 * number that looks like an address is unlikely: blocks are the process's own
 * memory. */
static bool is_stale(const standin_launch *l) {
  bool stale = false;
  standin_memory_name_none();
  for (size_t at = 0; at + sizeof(void *) <= l->body->args_bytes;
       at += sizeof(void *)) {
    const void *word;
    memcpy(&word, l->args + at, sizeof word);
    const standin_block *b = standin_memory_name(word);
    stale |= b != NULL && b->freed;
  }
  return stale;
}

void standin_launch_run(const standin_launch *l) {
  static const char *const kFaults[] = {
      [SIMT_OK] = NULL,
      [SIMT_DIVERGED] = "lanes of a warp are apart",
      [SIMT_BARRIER] = "threads ended before a barrier of their block",
      [SIMT_MEMORY] = "no memory"};
  const char *fault = NULL;
  bool twice = standin.check_launches;
  if (is_stale(l)) {
    standin.lost = cudaErrorIllegalAddress;
    return;
  }
  if (twice && !standin_memory_save(&before)) fault = "no memory";
  if (fault == NULL) fault = kFaults[run(l, false)];
  if (fault == NULL && twice) fault = run_again(l);
  standin.counts.launches++;
  standin.fault = fault;
  if (fault != NULL) standin.lost = cudaErrorLaunchFailure;
}
