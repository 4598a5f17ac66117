/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/fs/fs_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/fs/fs_system.h"

/* A whole file by temporary, fsync, rename, fsync of the folder: whenever the
 * machine stops, the name has the old bytes or the new ones. The temporary
 * stands in the same folder, since a rename does not cross file systems. */

enum { kTries = 100, kWriteBytes = 1 << 30 };

weir_status weir_fs_fail_write(const char *path, const char *doing, int error,
                               weir_error *err) {
  bool disk =
      error == ENOSPC || error == EIO || error == EDQUOT || error == EFBIG;
  weir_mark at = {.file = path};
  return weir_fail(err, disk ? WEIR_W6005 : WEIR_W5009, &at,
                   "cannot %s '%.200s': %s", doing, path,
                   weir_errno_text(error));
}

int weir_fs_write_all(int fd, weir_bytes content) {
  for (size_t done = 0; done < content.size;) {
    size_t want = content.size - done;
    ssize_t n =
        write(fd, content.data + done, want < kWriteBytes ? want : kWriteBytes);
    if (n < 0 && errno != EINTR) return errno;
    if (n > 0) done += (size_t)n;
  }
  return 0;
}

/* Devices and pipes: there is nothing to replace. */
static weir_status write_through(const char *path, weir_bytes content,
                                 weir_error *err) {
  int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) return weir_fs_fail_write(path, "open", errno, err);
  int error = weir_fs_write_all(fd, content);
  if (close(fd) != 0 && error == 0) error = errno;
  return error == 0 ? WEIR_OK : weir_fs_fail_write(path, "write", error, err);
}

/* Splits |path| into its folder ("." when it names none) and its name.
 * Returns 0 or an errno. */
static int split(const char *path, char folder[WEIR_PATH_BYTES],
                 const char **out_name) {
  const char *slash = strrchr(path, '/');
  size_t n = slash != NULL ? (size_t)(slash - path) : 1;
  if (slash == path) n = 1; /* "/name" */
  if (n >= WEIR_PATH_BYTES) return ENAMETOOLONG;
  memcpy(folder, slash != NULL ? path : ".", n);
  folder[n] = '\0';
  *out_name = slash != NULL ? slash + 1 : path;
  return **out_name != '\0' ? 0 : ENOENT;
}

/* Makes an empty file of a free name in the folder. */
static int make_temporary(int folder, char name[WEIR_PATH_BYTES]) {
  for (int i = 0; i < kTries; i++) {
    snprintf(name, WEIR_PATH_BYTES, ".weir-%ld-%d.tmp", (long)getpid(), i);
    int fd =
        openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

/* After a failed fsync the temporary is given up, never synced again. */
static int fill(int fd, weir_bytes content) {
  int error = weir_fs_write_all(fd, content);
  if (error == 0 && fsync(fd) != 0) error = errno;
  if (close(fd) != 0 && error == 0) error = errno;
  return error;
}

static int replace(int folder, const char *name, weir_bytes content) {
  char temporary[WEIR_PATH_BYTES];
  int fd = make_temporary(folder, temporary);
  if (fd < 0) return errno;
  int error = fill(fd, content);
  if (error == 0 && renameat(folder, temporary, folder, name) != 0)
    error = errno;
  if (error != 0) unlinkat(folder, temporary, 0);
  /* Some file systems cannot sync a folder and give EINVAL. */
  if (error == 0 && fsync(folder) != 0 && errno != EINVAL) error = errno;
  return error;
}

static weir_status write_beside(const char *path, weir_bytes content,
                                weir_error *err) {
  char folder_name[WEIR_PATH_BYTES];
  const char *name = NULL;
  int error = split(path, folder_name, &name);
  if (error != 0) return weir_fs_fail_write(path, "write", error, err);
  int folder = open(folder_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return weir_fs_fail_write(path, "write", errno, err);
  error = replace(folder, name, content);
  close(folder);
  return error == 0 ? WEIR_OK : weir_fs_fail_write(path, "write", error, err);
}

/* Where a link leads; the file there is the one to replace. */
static weir_status follow(const char *path, char target[WEIR_PATH_BYTES],
                          weir_error *err) {
  if (realpath(path, target) != NULL) return WEIR_OK;
  return weir_fs_fail_write(path, "follow the link", errno, err);
}

weir_status weir_fs_write_file(const char *path, weir_bytes content,
                               weir_error *err) {
  char target[WEIR_PATH_BYTES];
  struct stat info;
  bool exists = stat(path, &info) == 0;
  if (exists && S_ISDIR(info.st_mode))
    return weir_fs_fail_write(path, "write", EISDIR, err);
  if (exists && !S_ISREG(info.st_mode))
    return write_through(path, content, err);
  if (lstat(path, &info) == 0 && S_ISLNK(info.st_mode)) {
    WEIR_TRY(follow(path, target, err));
    path = target;
  }
  return write_beside(path, content, err);
}
