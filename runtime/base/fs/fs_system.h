/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_FS_SYSTEM_H_
#define WEIR_BASE_FS_SYSTEM_H_

#include "runtime/base/env.h"

/* The parts of the real file system (env.h, weir_fs).
 *
 * Under a root, a path is first put in order by its text alone ("a/./b" and
 * "a/x/../b" become "a/b"); that is exact because no link is followed. Then it
 * is opened beneath the root by openat2, or, where the kernel lacks it, folder
 * by folder. */

/* The system's files. Copies of them live in the allocator that |self| points
 * to, which must outlive them; NULL: the system's. */
extern const weir_fs weir_system_fs;
extern const weir_fs_pieces weir_system_pieces;

enum { WEIR_PATH_BYTES = 4096 };

/* Opens and checks a file as weir_fs.read does; the caller closes |*out_fd|,
 * which is -1 after a failure. */
weir_status weir_fs_open_read(const char *root, const char *path, size_t limit,
                              int *out_fd, size_t *out_size, weir_error *err);

/* A file of a folder: its name there, and its path for messages. */
typedef struct weir_fs_name {
  const char *name, *path;
} weir_fs_name;

/* weir_fs_folders.read in the folder of descriptor |folder|. */
weir_status weir_fs_read_in(const weir_allocator *alloc, int folder,
                            const weir_fs_name *name, size_t limit,
                            weir_file *out_file, weir_error *err);

/* The same without reading: a descriptor and the size. */
weir_status weir_fs_open_in(int folder, const weir_fs_name *name, int *out_fd,
                            size_t *out_size, weir_error *err);

/* Folders held open, for weir_fs.folders; see there. */
extern const weir_fs_folders weir_system_folders;

/* "No such file or directory". Static text, never NULL. */
const char *weir_errno_text(int error_number);

#endif
