/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_WEIR_RUNTIME_H_
#define WEIR_WEIR_RUNTIME_H_

#include "runtime/weir/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The library's version: major * 1000000 + minor * 1000 + patch; as text. */
WEIR_API uint32_t weir_version(void);
WEIR_API const char *weir_version_text(void);

/* The i-th fact about the build or the machine: its name ("compiler", "cpu"),
 * and its value in |buffer|, as much as it has room for. The last one, "cuda",
 * opens CUDA's library if it is there, to count GPUs. False past the end. */
WEIR_API bool weir_fact(size_t i, const char **out_name, char *buffer,
                        size_t buffer_size);

/* ---- Runtime: memory, threads, a log. */

/* Your memory. Called from any thread; copied, |self| must outlive everything
 * that was made with the runtime. */
typedef struct weir_allocator_hook {
  uint32_t struct_size;
  void *self;
  /* |bytes| > 0 uninitialised bytes aligned to |align|, or NULL. */
  void *(*alloc)(void *self, size_t bytes, size_t align);
  void (*free)(void *self, void *ptr);
} weir_allocator_hook;

typedef enum weir_log_level {
  WEIR_LOG_DEBUG = 0, /* decisions: plans, placed programs */
  /* events: graphs loaded and exported, checkpoints saved and restored */
  WEIR_LOG_INFO = 1,
  WEIR_LOG_WARNING = 2 /* warnings that no on_diag received */
} weir_log_level;

typedef struct weir_runtime_opts {
  uint32_t struct_size;
  int32_t threads;       /* running at once, callers included; 0: one a core */
  uint64_t memory_limit; /* bytes, of everything made with it; 0: none */
  const weir_allocator_hook *allocator; /* NULL: the C library's */
  /* Gets a line of text without its end, lent for the call, on the reporting
   * thread; several threads may call it at once. NULL: no log. */
  void (*on_log)(void *self, weir_log_level level, const char *text);
  void *on_log_self;
  /* From its creation on: then loading, placing, compiling and runs end with
   * W5006, at the next piece of work or memory. 0: none. */
  int64_t timeout_ns;
  /* Bytes that one graph may take, loaded, with its passes and its programs;
   * values, weights and data are not counted. W6002 beyond. 0: 1 GiB, or none
   * with a memory_limit; UINT64_MAX: none. */
  uint64_t build_limit;
  /* The best instruction set that kernels may use: "avx512", "avx2",
   * "neon" or "generic"; NULL: the machine's best. Runs of several machines
   * have the same bits under the same one. It binds oneDNN in the whole
   * process, so the first runtime that gives one decides for all. W0002 (no
   * such set), W0005 (the machine lacks it, or oneDNN uses another already). */
  const char *isa;
  /* For how long memory of a GPU is waited for that other processes hold: a
   * failure (W6001) comes when it is over, that of the run (W5005, W5006) when
   * it is cancelled or out of time. 0: not at all. */
  int64_t device_wait_ns;
  /* A file of choices that were timed. Of algorithms for products on GPUs: for
   * each product that it lacks up to eight are timed when a program is made,
   * and the quickest is added; for one that it has that algorithm is taken.
   * Another algorithm may give other bits, and a file fixes them. A file that
   * is broken, of another GPU or of another version of cuBLASLt changes
   * nothing: W6006, a warning of the log. One that cannot be read or written
   * fails the program (W4001, W4002, W5009, W6005). Opened with the first
   * product; copied. NULL: the library's heuristic chooses. */
  const char *tune;
  /* The folder of lock files of GPUs that a cluster gives `share: queue`: the
   * processes that use such a GPU take turns, and must have the same folder.
   * Made when it is missing; copied. NULL: /tmp/weir-UID, the user's own. */
  const char *device_locks;
  /* As |on_log|, whose |self| it gets: how devices do their work, which else is
   * a line of WEIR_LOG_INFO. NULL: it is one. */
  void (*on_device)(void *self, const char *text);
  /* 1: kernels for CPUs that take the same call are timed when a program is
   * made, and the quickest is added to the file of |tune|, which must be given
   * (W0002). 0: that file's part for CPUs, as `weir tune` makes it, is read:
   * its kernels are taken, and may give other bits. A file that is broken, of
   * another machine or under another |isa| changes nothing: W6006, a warning of
   * the log, or with |tune_strict| 1, and when kernels are timed, a failure. */
  int32_t tune_kernels;
  int32_t tune_strict;
} weir_runtime_opts;

/* |opts| may be NULL. Threads start with the first session.
 * Errors: W0002 (threads outside 0 to 256, a negative wait), W0004, W6001. */
WEIR_API weir_status weir_runtime_create(const weir_runtime_opts *opts,
                                         weir_runtime **out_runtime,
                                         weir_error *err);
WEIR_API void weir_runtime_release(weir_runtime *runtime);

#ifdef __cplusplus
}
#endif

#endif
