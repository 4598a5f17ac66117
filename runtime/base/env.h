/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_ENV_H_
#define WEIR_BASE_ENV_H_

#include "runtime/base/alloc.h"
#include "runtime/base/status.h"

/* The world outside: memory, files, clock, random bits.
 *
 * Nothing in the library reaches the system but through a weir_env that was
 * passed in, so tests can replace each part. All functions may be called from
 * any thread. `weir_env_system()` is the real one. */

typedef struct weir_bytes {
  const uint8_t *data;
  size_t size;
} weir_bytes;

/* File content held for reading: mapped or copied. */
typedef struct weir_file {
  weir_bytes bytes;
  void *self; /* the implementation's */
} weir_file;

typedef struct weir_fs {
  void *self;
  /* Opens |path| beneath folder |root| (NULL: |path| as it is, from the
   * command line) and gives its content, at most |limit| bytes. Regular files
   * only; with |root|, links and ".." that leave it are refused, and so are
   * files with several hard links. |map|: map it (safetensors), else copy it,
   * so that a file cut short meanwhile cannot raise a signal.
   * Errors: W4001, W4002, W4015, W6001, W6003. */
  weir_status (*read)(void *self, const char *root, const char *path,
                      size_t limit, bool map, weir_file *out_file,
                      weir_error *err);
  void (*close)(void *self, weir_file *file); /* NULL-safe, clears |file| */
  /* Writes a whole file: temporary beside it, fsync, rename. W5009, W6005. */
  weir_status (*write)(void *self, const char *path, weir_bytes content,
                       weir_error *err);
} weir_fs;

typedef struct weir_clock {
  void *self;
  int64_t (*now_ns)(void *self); /* monotonic */
} weir_clock;

typedef struct weir_env {
  const weir_allocator *alloc;
  const weir_fs *fs;
  const weir_clock *clock;
} weir_env;

/* The process's own memory, files and clock. Static, immutable. */
const weir_env *weir_env_system(void);

#endif
