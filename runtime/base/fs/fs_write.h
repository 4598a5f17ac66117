/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_FS_WRITE_H_
#define WEIR_BASE_FS_WRITE_H_

#include "runtime/base/env.h"

/* Writes files so that a reader sees the old or the new one. */

/* Writes a whole file for weir_fs.write; see there. Devices and pipes are
 * written straight to; of a link, the target is replaced. */
weir_status weir_fs_write_file(const char *path, weir_bytes content,
                               weir_error *err);

/* Appends all of |content| to |fd|. Returns 0 or an errno. */
int weir_fs_write_all(int fd, weir_bytes content);

/* Fills |err|: W6005 when |error| says that the disk is full or fails, else
 * W5009: "cannot rename 'path': ...". */
weir_status weir_fs_fail_write(const char *path, const char *doing, int error,
                               weir_error *err);

#endif
