/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_FS_OPEN_H_
#define WEIR_BASE_FS_OPEN_H_

#include "runtime/base/fs/fs_system.h"

/* Opens files without leaving a folder. */

/* Puts relative |path| in order in |out_path|. Errors: W4002 when it is
 * absolute, empty, too long, or leaves the folder it starts in. */
weir_status weir_path_beneath(const char *path, char out_path[WEIR_PATH_BYTES],
                              weir_error *err);

/* Opens |path|, which is in order, beneath folder |root_fd| for reading.
 * |by_steps|: as on a kernel without openat2. Returns a descriptor, or -1 with
 * errno: ELOOP or EXDEV when it meets a link or leaves the folder. */
int weir_fs_open_beneath(int root_fd, const char *path, bool by_steps);

/* The same for a folder; |make|: with the folders on the way, where they are
 * missing. ENOTDIR when a file stands in its place. */
int weir_fs_folder_beneath(int root_fd, const char *path, bool make,
                           bool by_steps);

#endif
