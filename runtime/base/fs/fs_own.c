/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/fs/fs_own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/fs/fs_system.h"

/* In a folder where everybody may write, the name may be taken by another
 * user's folder or link. What was opened is what is looked at. */

static weir_status refuse(const char *path, const char *why, weir_error *err) {
  weir_mark at = {.file = path};
  return weir_fail(err, WEIR_W4002, &at, "cannot use folder '%.200s': %s", path,
                   why);
}

static weir_status check(const char *path, int fd, weir_error *err) {
  struct stat s;
  if (fstat(fd, &s) != 0) return refuse(path, weir_errno_text(errno), err);
  if (s.st_uid != geteuid())
    return refuse(path, "another user has made it", err);
  if ((s.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return refuse(path, "other users may write into it", err);
  return WEIR_OK;
}

weir_status weir_own_folder_at(const char *path, weir_error *err) {
  if (mkdir(path, 0700) != 0 && errno != EEXIST) {
    if (errno != ENOSPC && errno != EDQUOT && errno != EIO)
      return refuse(path, weir_errno_text(errno), err);
    return weir_fail(err, WEIR_W6005, NULL, "cannot make folder '%.200s': %s",
                     path, weir_errno_text(errno));
  }
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0)
    return refuse(path,
                  errno == ENOTDIR || errno == ELOOP
                      ? "a file or a link stands in its place"
                      : weir_errno_text(errno),
                  err);
  weir_status s = check(path, fd, err);
  (void)close(fd);
  return s;
}

weir_status weir_own_folder(char out_path[WEIR_OWN_FOLDER_BYTES],
                            weir_error *err) {
  snprintf(out_path, WEIR_OWN_FOLDER_BYTES, "/tmp/weir-%u",
           (unsigned)geteuid());
  return weir_own_folder_at(out_path, err);
}
