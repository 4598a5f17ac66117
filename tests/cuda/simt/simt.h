/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CUDA_SIMT_SIMT_H_
#define TESTS_CUDA_SIMT_SIMT_H_

#include <stdbool.h>
#include <stddef.h>

/* Bodies of GPUs on the host: the .cu files compiled as C++ (kernel.h), each
 * thread of a block a fiber, the blocks one after the other.
 *
 * A thread runs until it ends or waits for its warp or its block. Nothing else
 * is told apart, so two threads that touch a byte with no barrier between show
 * only by the order: run each launch in both orders and compare the bits. A
 * block's shared memory begins as 0xa5. One launch at a time; the caller has a
 * lock. */

#if defined(__cplusplus)
extern "C" {
#endif

typedef struct simt_body {
  const char *symbol; /* of bodies.def: "weir_body_" and the name */
  size_t args_bytes;
  void (*run)(const void *args); /* as one thread */
} simt_body;

/* All there are; ended by a NULL symbol. */
extern const simt_body simt_bodies[];

typedef struct simt_grid {
  unsigned blocks[3], threads;
} simt_grid;

enum { SIMT_THREADS = 1024, SIMT_LANES = 32 };

typedef enum simt_result {
  SIMT_OK,
  SIMT_DIVERGED, /* lanes of a warp that are not at the same operation */
  SIMT_BARRIER,  /* a barrier that not all threads of a block reach */
  SIMT_MEMORY    /* none for the fibers */
} simt_result;

/* Runs |body| on every thread of |grid|, at most SIMT_THREADS a block. |last|:
 * blocks, warps and lanes from the last to the first. */
simt_result simt_launch(const simt_body *body, const simt_grid *grid,
                        const void *args, bool last);

/* For kernel.h: where the running thread is. */
typedef struct simt_place {
  unsigned x, y, z;
} simt_place;
extern simt_place simt_thread, simt_block, simt_block_dim, simt_grid_dim;

/* For kernel.h: waits for the block's other threads. */
void simt_barrier(void);

/* For kernel.h: all lanes of the warp give a |value| of at most 8 bytes, and
 * each gets that of lane |from|. */
void simt_exchange(void *value, size_t bytes, unsigned from);

#if defined(__cplusplus)
}
#endif

#endif
