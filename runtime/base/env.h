/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_ENV_H_
#define WEIR_BASE_ENV_H_

#include "runtime/base/alloc.h"
#include "runtime/base/status.h"

/* The world outside: memory, files, clock, random bits, and the machine.
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
  /* Of a mapped file whose bytes are not all here: makes |size| bytes from
   * |offset| on good. They may be read after it, and no others. Blocks; any
   * thread. NULL: all are here. Errors: the implementation's. */
  weir_status (*need)(void *self, uint64_t offset, size_t size,
                      weir_error *err);
} weir_file;

struct weir_piece_file;

/* A folder held open, for writers whose files must be sound whenever the
 * machine stops. Names are plain: no '/'. Bytes written are on disk after
 * |sync|; that a file is there, gone or renamed, after |sync_folder|. After a
 * failed sync nothing is known of the file: write another one, never sync
 * again. |self| is weir_fs.self; folders, files and locks are the
 * implementation's. Errors: W4001, W4002 (open, list), else W5009, or W6005
 * when the disk is full or fails; W6001, W6003. */
typedef struct weir_fs_folders {
  /* |make|: with the folders above it, where they are missing. With |root|,
   * |path| is a relative one beneath that folder, and neither ".." that leaves
   * it nor any link in |path| is followed (W4002); NULL: |path| as it is, from
   * the command line. */
  weir_status (*open)(void *self, const char *root, const char *path, bool make,
                      void **out_folder, weir_error *err);
  void (*close)(void *self, void *folder); /* NULL-safe */
  /* Calls |name| for each file, in no order, until it returns false. */
  weir_status (*list)(void *self, void *folder, void *to,
                      bool (*name)(void *to, const char *name),
                      weir_error *err);
  /* Gives the content of plain file |name|, at most |limit| bytes, as a copy;
   * weir_fs.close frees it. A link, pipe, device or folder is W4002, a larger
   * file W4015. */
  weir_status (*read)(void *self, void *folder, const char *name, size_t limit,
                      weir_file *out_file, weir_error *err);
  /* A new empty file to append to; NULL and WEIR_OK when the name is taken. */
  weir_status (*create)(void *self, void *folder, const char *name,
                        void **out_file, weir_error *err);
  weir_status (*append)(void *self, void *file, weir_bytes bytes,
                        weir_error *err);
  weir_status (*sync)(void *self, void *file, weir_error *err);
  /* Frees |file|, also when it fails. NULL-safe. */
  weir_status (*end)(void *self, void *file, weir_error *err);
  /* Nothing is replaced: where |dst| is taken, it is W5009. */
  weir_status (*rename)(void *self, void *folder, const char *src,
                        const char *dst, weir_error *err);
  weir_status (*unlink)(void *self, void *folder, const char *name,
                        weir_error *err);
  weir_status (*sync_folder)(void *self, void *folder, weir_error *err);
  /* Locks plain file |name|, made if need be; NULL and WEIR_OK when another
   * process or handle holds it. The system drops locks of processes that end.
   */
  weir_status (*lock)(void *self, void *folder, const char *name,
                      void **out_lock, weir_error *err);
  void (*unlock)(void *self, void *lock); /* NULL-safe */
  /* Bytes that this process may still write there; UINT64_MAX: not known. */
  uint64_t (*free_bytes)(void *self, void *folder);
  /* Where the folder is now: an absolute path without links. false: it is not
   * known, or longer than |bytes|. NULL: it never is. */
  bool (*path)(void *self, void *folder, char *out, size_t bytes);
  /* Opens plain file |name|, to be read and closed by weir_fs.pieces. Errors:
   * those of read but for W4015. NULL: files are read whole. */
  weir_status (*pieces)(void *self, void *folder, const char *name,
                        struct weir_piece_file *out_file, weir_error *err);
} weir_fs_folders;

/* A file held open to be read in pieces. */
typedef struct weir_piece_file {
  uint64_t bytes; /* its size when it was opened */
  void *self;     /* the implementation's */
} weir_piece_file;

/* Files larger than memory. |self| is weir_fs.self; |root| and |path| as for
 * weir_fs.read, with the same refusals and errors. */
typedef struct weir_fs_pieces {
  weir_status (*open)(void *self, const char *root, const char *path,
                      weir_piece_file *out_file, weir_error *err);
  void (*close)(void *self, weir_piece_file *file); /* NULL-safe, clears it */
  /* Reads |bytes| bytes from byte |offset| on, all of them; |path| is for
   * messages. Any number of threads at once. W4001, and W4020 when the file
   * has become shorter than it was. */
  weir_status (*read)(void *self, const weir_piece_file *file, const char *path,
                      void *dst, size_t bytes, uint64_t offset,
                      weir_error *err);
  /* Calls |name| for each plain file in |folder| beneath |root| ("." is the
   * root itself), in no order, until it returns false. */
  weir_status (*list)(void *self, const char *root, const char *folder,
                      void *to, bool (*name)(void *to, const char *name),
                      weir_error *err);
} weir_fs_pieces;

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
  const weir_fs_folders *folders; /* NULL: this one has none */
  const weir_fs_pieces *pieces;   /* NULL: this one has none */
} weir_fs;

typedef struct weir_clock {
  void *self;
  int64_t (*now_ns)(void *self); /* monotonic */
} weir_clock;

/* Random bits that nobody can guess: for numbers that tell processes and runs
 * apart. Not for a graph's random ops, which follow from its seed. */
typedef struct weir_random {
  void *self;
  /* false: the system gave none, and |dst| means nothing. */
  bool (*fill)(void *self, void *dst, size_t bytes);
} weir_random;

typedef struct weir_env {
  const weir_allocator *alloc;
  const weir_fs *fs;
  const weir_clock *clock;
  /* The machine that kernels are chosen for, as a number of kernels/profile.h;
   * 0: the best of this one. Two processes that are to compute the same bits
   * have the same one. */
  uint64_t profile;
  const weir_random *random; /* NULL: this one has none */
  struct weir_gpus *gpus;    /* exec/gpu/gpus.h; NULL: this one has none */
  /* Kernels that were timed (kernels/tune/tuned.h); NULL: all are derived. */
  struct weir_tuned *tuned;
} weir_env;

#endif
