/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CUDA_STANDIN_STANDIN_H_
#define TESTS_CUDA_STANDIN_STANDIN_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A stand-in for CUDA's runtime library, on a machine without a GPU.
 *
 * It has the name of the real one, libcudart.so.13, and the functions of
 * api.def, on memory of the host. Work is put into its stream and done only
 * when somebody must wait for it, so an order that nobody asked for is not had
 * by luck. Tests steer it through the one symbol `standin_functions`; those of
 * commands by the environment: STANDIN_LOSE_AT=k is lose_at with an illegal
 * address, STANDIN_MEMORY=bytes set_memory, STANDIN_SEED=seed set_seed,
 * STANDIN_OTHERS=bytes and STANDIN_OTHERS_TRIES=tries set_others.
 * STANDIN_INSIDE=FILE counts processes that have work at the same time
 * (inside.h). STANDIN_BUG=name plants a bug (bugs.h). */

/* What works take by their stream's clock: a copy this and a ns for each so
 * many bytes, four times as many between devices; a launch this and a ns a
 * thread; a record; a task. */
enum {
  STANDIN_COPY_NS = 1000,
  STANDIN_BYTES_PER_NS = 16,
  STANDIN_LAUNCH_NS = 2000,
  STANDIN_RECORD_NS = 500,
  STANDIN_TASK_NS = 5000
};

typedef struct standin_counts {
  uint64_t calls;                  /* of all functions but the error's text */
  uint64_t mallocs, frees;         /* of device memory */
  uint64_t blocks, host_blocks;    /* that live */
  uint64_t block_bytes;            /* of the blocks that live */
  uint64_t streams, events, works; /* that live */
  uint64_t libraries;              /* that are loaded */
  uint64_t launches;               /* that were done */
  uint64_t graphs;                 /* that live, instantiated or not */
  uint64_t graph_launches;         /* replays that were put into streams */
  uint64_t host_bytes;          /* that were copied from the host or to it, */
  uint64_t within_bytes;        /* within a device, */
  uint64_t peer_bytes;          /* from one device to another */
  uint64_t peer_copies;         /* of these, how many, */
  uint64_t far_copies;          /* and how many without a way of their own */
  uint64_t destroyed_with_work; /* streams; graphs during a replay */
  uint64_t written_after_free;  /* blocks; |reset| looks */
} standin_counts;

/* A work of another stand-in, for a stream. */
typedef struct standin_task {
  int device; /* that the stream must be of */
  struct {
    const void *address;
    size_t bytes;
  } spans[6]; /* memory of that device that must be there when it is done, or
                 the device is lost; 0 bytes: none */
  /* Called once, with the stand-in's lock held; |done| false: the work is
   * dropped. Releases |arg|. */
  void (*run)(void *arg, bool done);
  /* A copy of |arg| for one more run, by malloc, NULL when there is no memory;
   * NULL: the task is not for graphs. The lock is held. */
  void *(*clone)(const void *arg);
  void *arg;
  uint64_t cost_ns; /* that the stream's clock goes on by when it is done */
} standin_task;

typedef struct standin_control {
  /* As at the start: two devices of 1 GiB, driver and library 13.0, seed 0,
   * nothing fails. What lives stays, and is counted. */
  void (*reset)(void);
  /* The k-th call from now (from 1) fails with |code|, once; one that frees
   * does so all the same. 0: none. */
  void (*fail_at)(uint64_t k, int code);
  /* From the k-th call on every call fails with |code|, and no work is done;
   * 0: none. */
  void (*lose_at)(uint64_t k, int code);
  void (*set_versions)(int driver, int runtime); /* driver 0: none */
  void (*set_devices)(int count);
  void (*set_memory)(size_t bytes); /* of each device */
  /* 0: a stream moves only when it must, and pageable memory is read then;
   * else the seed says which others move too, and which copies are done at
   * once. */
  void (*set_seed)(uint64_t seed);
  standin_counts (*counts)(void);
  int (*device)(void); /* the current one of this thread */
  /* Puts |task| into |stream|, in the order of its copies; not a counted call.
   * An error of CUDA: |arg| stays the caller's. */
  int (*put)(void *stream, const standin_task *task);
  /* Each launch runs twice on the same memory, its threads in opposite orders,
   * and other bits are a fault of the launch. */
  void (*set_check_launches)(bool check);
  void (*hide)(const char *symbol); /* the body is missing; NULL: none */
  const char *(*fault)(void);       /* of the last launch that failed; or "" */
  /* Other processes hold |bytes| of each device, until |tries| allocations have
   * failed; 0: for ever. */
  void (*set_others)(size_t bytes, uint64_t tries);
  void (*set_ways)(bool ways); /* whether there are ways between devices */
} standin_control;

#endif
