/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CUDA_STANDIN_STANDIN_INTERNAL_H_
#define TESTS_CUDA_STANDIN_STANDIN_INTERNAL_H_

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>

#include "tests/cuda/standin/bugs.h"
#include "tests/cuda/standin/standin.h"

/* What the stand-in's files share. One lock for all of it: standin_begin takes
 * it, standin_end gives it back. */

typedef struct standin_state {
  uint64_t fail_at, lose_at; /* counted down to 0 */
  cudaError_t fail_code, lose_code;
  cudaError_t lost; /* the error of every call from now on */
  int driver, runtime, devices;
  size_t memory_bytes, used_bytes[16]; /* of each device */
  size_t others_bytes;                 /* of each device */
  uint64_t others_tries;               /* counted down */
  uint64_t seed;
  bool check_launches;
  bool no_ways;      /* between devices */
  uint16_t ways[16]; /* of each device, bit i: to device i, open; for ever */
  const char *hidden, *fault; /* body; launch */
  standin_counts counts;
} standin_state;

extern standin_state standin;
extern _Thread_local int standin_device; /* of cudaSetDevice */

/* Begins a call that can fail and that tests count. */
cudaError_t standin_begin(void);
/* The same for a call that is not CUDA's, and not counted. */
cudaError_t standin_begin_quietly(void);
/* Ends it: |e|, or the error that was lost on the way. */
cudaError_t standin_end(cudaError_t e);
/* Yes or no, by the seed; seed 0: no. */
bool standin_chance(void);

/* A block of a device, or of pinned memory of the host. */
typedef struct standin_block {
  struct standin_block *next;
  unsigned char *data;
  size_t bytes;
  int device; /* -1: the host's */
  bool freed; /* kept, and looked at */
  bool named; /* by the launch that is done now */
} standin_block;

/* The block, freed ones too, that has a byte at |address|; NULL: none. */
const standin_block *standin_block_at(const void *address);
/* Whether |bytes| bytes from |address| on are in one block of |device| that is
 * not freed. */
bool standin_is_live(const void *address, size_t bytes, int device);
/* Frees |block|, of a device, as if the module had; NULL: nothing. */
void standin_free_early(const standin_block *block);
/* standin_control.put. */
int standin_put(void *stream, const standin_task *task);
/* The block at |address|, which is named now; no block is named any more. */
const standin_block *standin_memory_name(const void *address);
void standin_memory_name_none(void);

/* The blocks that are named; zeros at first, kept from launch to launch. */
typedef struct standin_copy {
  unsigned char *data; /* malloc */
  size_t capacity;
} standin_copy;

/* Copies them (false: no memory); writes such a copy back; whether they are
 * what they were. */
bool standin_memory_save(standin_copy *copy);
void standin_memory_load(const standin_copy *copy);
bool standin_memory_is(const standin_copy *copy);

/* A launch: its body (simt.h), its grid and a copy of its argument. */
typedef struct standin_launch {
  const struct simt_body *body;
  unsigned blocks[3], threads;
  unsigned char args[];
} standin_launch;

size_t standin_launch_bytes(const standin_launch *launch);
/* Puts |launch| into |stream|, which owns it after a success. */
cudaError_t standin_put_launch(cudaStream_t stream, standin_launch *launch);
/* Does the work; a fault loses the device. */
void standin_launch_run(const standin_launch *launch);

/* For a call that must not be made by a thread that captures: breaks its
 * captures and is an error then. */
cudaError_t standin_unsafe(void);

/* Looks at freed blocks and lets them go. */
void standin_sweep(void);

#endif
