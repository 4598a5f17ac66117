/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_GPUS_H_
#define WEIR_EXEC_GPUS_H_

#include <pthread.h>

#include "kernels/gpu/gpu.h"
#include "runtime/base/env.h"
#include "runtime/base/module.h"

/* The GPUs of this process, as programs use them.
 *
 *   weir_gpus_create(env, NULL, &gpus, err);     opens nothing
 *   env.gpus = gpus;
 *   s = weir_gpus_get(env.gpus, 0, 0, &gpu, err);  opens the first one, once
 *   weir_gpus_release(gpus);                     after all that used them
 *
 * A tensor on a GPU may be given back after that: it holds a reference to the
 * list, which goes with the last of them (gpu_tensor.h).
 *
 * Any thread. A task's device GPU:k is the k-th that CUDA shows to its process;
 * tasks of one process, and processes that are shown the same ones, share
 * them, and those of one process its limit too. */

/* An event that somebody waits for without a thread. |done| is called once, on
 * the GPU's thread, which it must not hold up. |err| is lent for the call; NULL
 * when |status| is OK. */
typedef struct weir_gpu_end {
  void (*done)(void *self, weir_status status, const weir_error *err);
  void *self;
  weir_event *event;
  struct weir_gpu_end *next; /* the GPU's */
} weir_gpu_end;

typedef struct weir_exec_gpu {
  weir_gpu gpu;
  struct weir_gpus *list; /* that it is of */
  int32_t index;
  /* Copies that a caller waits for, one at a time. */
  pthread_mutex_t copy_lock;
  weir_queue *copies;
  weir_event *copied;
  /* The thread that waits for events, in the order of weir_gpu_await. */
  pthread_t thread;
  bool started;
  pthread_mutex_t lock;
  pthread_cond_t more;
  weir_gpu_end *first, **last;
  bool stop;
  atomic_bool in_turns;                    /* with other processes */
  struct weir_gpu_turn *turn;              /* gpu_turn.h; NULL: it never was */
  const struct weir_gpus_options *options; /* of its list */
  struct weir_tuning *tuning;              /* of its list; may be NULL */
  atomic_uint said; /* a bit for each reason of gpu_graph.h */
  const weir_env *env;
} weir_exec_gpu;

typedef struct weir_gpus weir_gpus;

typedef struct weir_gpus_options {
  /* Where they are looked for first, absolute paths; NULL: the usual places. */
  const char *module; /* of libweir_cuda.so */
  const char *cuda;   /* of CUDA's libraries, as in weir_cuda_options */
  bool sleepy;        /* the thread that waits sleeps at once */
  /* A file of algorithms that were timed (kernels/tune); copied. NULL: the
   * library chooses. */
  const char *tune;
  /* For how long memory that other processes hold is waited for; 0: not. */
  int64_t wait_ns;
  /* The folder of locks of GPUs that processes use in turns, made if need be;
   * NULL: the user's (base/fs/fs_own.h). */
  const char *locks;
  /* Gets a line about how work is done that nobody has to know; on any thread,
   * once for each cause and GPU. May be NULL. */
  void (*say)(void *self, const char *text);
  void (*warn)(void *self, const weir_error *warning); /* of |tune|; or NULL */
  void *say_self;                                      /* of both */
} weir_gpus_options;

/* |env| is copied. |options| is lent, its paths too; may be NULL. Errors:
 * W6001. */
weir_status weir_gpus_create(const weir_env *env,
                             const weir_gpus_options *options,
                             weir_gpus **out_gpus, weir_error *err);
/* Gives up a reference: the maker's, or one of weir_gpus_ref, which returns
 * |gpus|. The last one closes all. */
void weir_gpus_release(weir_gpus *gpus); /* NULL-safe */
weir_gpus *weir_gpus_ref(weir_gpus *gpus);

/* GPU |index|, which lives as long as |gpus|. From now on its buffers in this
 * process take |limit_bytes| at most, or what weir_gpus_bound said if that is
 * less; 0: all that there is. Blocks while it is opened, and then waits for
 * memory; no lock is held that other GPUs need.
 * Errors: W6004: it is not there, or |gpus| is NULL; W6001, W6003. */
weir_status weir_gpus_get(weir_gpus *gpus, int32_t index, size_t limit_bytes,
                          weir_exec_gpu **out_gpu, weir_error *err);

/* The same for one who takes no memory: limits stay as they are. */
weir_status weir_gpus_open(weir_gpus *gpus, int32_t index,
                           weir_exec_gpu **out_gpu, weir_error *err);

/* Bounds every later limit of GPU |index|; 0: not. NULL-safe; a GPU that cannot
 * be there is passed over. */
void weir_gpus_bound(weir_gpus *gpus, int32_t index, size_t most_bytes);

/* From now on tasks of GPU |index|, which weir_gpus_get has given, have it in
 * turns with those of other processes that do so (gpu_turn.h), or no longer.
 * Errors: W6003 with a hint, W6004, W6001. */
weir_status weir_gpus_share(weir_gpus *gpus, int32_t index, bool in_turns,
                            weir_error *err);

/* Every later weir_gpus_share of GPU |index| is in turns. NULL-safe; a GPU that
 * cannot be there is passed over. */
void weir_gpus_share_always(weir_gpus *gpus, int32_t index);

/* How many there are, without a beginning of work on any. Errors: W6004. */
weir_status weir_gpus_count(weir_gpus *gpus, uint32_t *out_count,
                            weir_error *err);

/* The driver's name of the first one, at most |capacity| bytes with its end.
 * Errors: W6004. */
weir_status weir_gpus_name(weir_gpus *gpus, char *text, size_t capacity,
                           weir_error *err);

/* |end->done| is called when |end->event| has happened; |end| stays until
 * then. Ends of one queue are called in the order of these calls. */
void weir_gpu_await(weir_exec_gpu *gpu, weir_gpu_end *end);

/* After a failure in the middle of |queue|'s work: returns when that work has
 * ended, or the GPU is lost, so that its memory may go. |event| is scratch. */
void weir_gpu_settle(weir_exec_gpu *gpu, weir_queue *queue, weir_event *event);

/* Copies between host memory and |place|, and waits for the end. Errors: those
 * of the device. */
weir_status weir_gpu_write(weir_exec_gpu *gpu, weir_device_place dst,
                           const void *src, size_t bytes, weir_error *err);
weir_status weir_gpu_read(weir_exec_gpu *gpu, void *dst, weir_device_place src,
                          size_t bytes, weir_error *err);

#endif
