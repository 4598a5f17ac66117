/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/fs/fs_open.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/fs/fs_system.h"

/* Opening beneath a root, for paths that come from files. Twice safe: ".." is
 * resolved in the text first, then the kernel opens the rest without following
 * any link (openat2), or, where it lacks that call, one component after the
 * other relative to the folder before it. So a link that is put in place after
 * a check has no effect: there is no check apart from the opening. */

/* O_NONBLOCK, so that a pipe does not stop us before it is refused. */
enum {
  kReadFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
  kFolderFlags = O_RDONLY | O_CLOEXEC | O_DIRECTORY,
  kRetries = 16 /* of openat2 while other processes rename folders */
};

/* Drops the last component of path[0, size); false when there is none. */
static bool drop_last(const char *path, size_t *size) {
  if (*size == 0) return false;
  while (*size > 0 && path[*size - 1] != '/') --*size;
  if (*size > 0) --*size; /* the slash */
  return true;
}

static bool append(char *path, size_t *size, const char *part, size_t bytes) {
  if (*size + bytes + 2 > WEIR_PATH_BYTES) return false;
  if (*size > 0) path[(*size)++] = '/';
  memcpy(path + *size, part, bytes);
  *size += bytes;
  return true;
}

weir_status weir_path_beneath(const char *path, char out_path[WEIR_PATH_BYTES],
                              weir_error *err) {
  size_t size = 0;
  const char *wrong = path[0] == '/' ? "an absolute path" : NULL;
  for (const char *at = path; wrong == NULL && *at != '\0';) {
    size_t n = strcspn(at, "/");
    bool here = n == 0 || (n == 1 && at[0] == '.');
    if (n == 2 && memcmp(at, "..", 2) == 0) {
      if (!drop_last(out_path, &size)) wrong = "a path that leaves its folder";
    } else if (!here && !append(out_path, &size, at, n)) {
      wrong = "a path that is too long";
    }
    at += n + (at[n] == '/');
  }
  if (wrong == NULL && size == 0) wrong = "a folder";
  if (wrong != NULL)
    return weir_fail(
        err, WEIR_W4002, NULL,
        "'%.200s' is %s; files are opened beneath the data root only", path,
        wrong);
  out_path[size] = '\0';
  return WEIR_OK;
}

static int open_whole(int root_fd, const char *path, int flags) {
  struct open_how how = {
      .flags = (uint64_t)flags,
      .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
  for (int i = 0;; i++) {
    long fd = syscall(SYS_openat2, root_fd, path, &how, sizeof how);
    if (fd >= 0 || (errno != EAGAIN && errno != EINTR) || i >= kRetries)
      return (int)fd;
  }
}

/* A link gives ELOOP, also where O_DIRECTORY turns that into ENOTDIR. */
static int open_step(int folder, const char *name, int flags) {
  int fd = openat(folder, name, flags | O_NOFOLLOW);
  char byte;
  if (fd < 0 && errno == ENOTDIR)
    errno = readlinkat(folder, name, &byte, 1) >= 0 ? ELOOP : ENOTDIR;
  return fd;
}

/* A folder that is there is as good as one that is made. It is on disk after:
 * |folder| is synchronised. Returns 0 or an errno. */
static int make_step(int folder, const char *name) {
  if (mkdirat(folder, name, 0777) != 0) return errno == EEXIST ? 0 : errno;
  /* Some file systems cannot sync a folder and give EINVAL. */
  return fsync(folder) == 0 || errno == EINVAL ? 0 : errno;
}

/* |make|: folders that are missing, the last one too; then no component is
 * opened by O_PATH, which cannot be synchronised. */
static int open_stepwise(int root_fd, const char *path, int flags, bool make) {
  int on_the_way = make ? (int)kFolderFlags : O_PATH | O_CLOEXEC | O_DIRECTORY;
  char name[WEIR_PATH_BYTES];
  int folder = root_fd, fd = -1;
  for (const char *at = path;;) {
    size_t n = strcspn(at, "/");
    memcpy(name, at, n);
    name[n] = '\0';
    int kept = make ? make_step(folder, name) : 0;
    errno = kept;
    fd = kept != 0
             ? -1
             : open_step(folder, name, at[n] == '\0' ? flags : on_the_way);
    kept = errno;
    if (folder != root_fd) close(folder);
    errno = kept;
    if (fd < 0 || at[n] == '\0') return fd;
    folder = fd;
    at += n + 1;
  }
}

static int open_either(int root_fd, const char *path, int flags,
                       bool by_steps) {
  int fd = by_steps ? -1 : open_whole(root_fd, path, flags);
  /* EPERM: a sandbox that does not know the call refuses it so. */
  if (by_steps || (fd < 0 && (errno == ENOSYS || errno == EPERM)))
    fd = open_stepwise(root_fd, path, flags, false);
  return fd;
}

int weir_fs_open_beneath(int root_fd, const char *path, bool by_steps) {
  return open_either(root_fd, path, kReadFlags, by_steps);
}

int weir_fs_folder_beneath(int root_fd, const char *path, bool make,
                           bool by_steps) {
  int fd = open_either(root_fd, path, kFolderFlags, by_steps);
  if (fd < 0 && errno == ENOENT && make)
    fd = open_stepwise(root_fd, path, kFolderFlags, true);
  return fd;
}
