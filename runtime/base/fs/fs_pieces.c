/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/fs/fs_open.h"
#include "runtime/base/fs/fs_pieces.h"
#include "runtime/base/fs/fs_system.h"

/* Reading parts of files: pread only, so that a file cut short by another
 * process is an error and not a signal. */

enum { kReadBytes = 1 << 30 /* of one call */ };

static int fd_of(const weir_piece_file *file) {
  return (int)(intptr_t)file->self - 1; /* NULL is no file */
}

weir_piece_file weir_fs_piece_file(int fd, size_t bytes) {
  return (weir_piece_file){bytes, (void *)(intptr_t)(fd + 1)};
}

static weir_status piece_open(void *self, const char *root, const char *path,
                              weir_piece_file *out_file, weir_error *err) {
  int fd = -1;
  size_t size = 0;
  (void)self;
  *out_file = (weir_piece_file){0};
  WEIR_TRY(weir_fs_open_read(root, path, SIZE_MAX / 2, &fd, &size, err));
  *out_file = weir_fs_piece_file(fd, size);
  return WEIR_OK;
}

static void piece_close(void *self, weir_piece_file *file) {
  (void)self;
  if (file == NULL || file->self == NULL) return;
  close(fd_of(file));
  *file = (weir_piece_file){0};
}

static weir_status piece_read(void *self, const weir_piece_file *file,
                              const char *path, void *dst, size_t bytes,
                              uint64_t offset, weir_error *err) {
  weir_mark at = {.file = path};
  (void)self;
  for (size_t done = 0; done < bytes;) {
    size_t want = bytes - done < kReadBytes ? bytes - done : kReadBytes;
    ssize_t n =
        pread(fd_of(file), (uint8_t *)dst + done, want, (off_t)(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return weir_fail(err, WEIR_W4001, &at, "cannot read '%.200s': %s", path,
                       weir_errno_text(errno));
    if (n == 0)
      return weir_fail(err, WEIR_W4020, &at,
                       "'%.200s' has become shorter while it was in use: no "
                       "byte %llu",
                       path, (unsigned long long)(offset + done));
    done += (size_t)n;
  }
  return WEIR_OK;
}

/* ---- Folders */

static weir_status fail_folder(const char *folder, weir_error *err) {
  weir_mark at = {.file = folder};
  bool outside = errno == ELOOP || errno == EXDEV;
  return weir_fail(err, outside ? WEIR_W4002 : WEIR_W4001, &at,
                   "cannot list folder '%.200s': %s", folder,
                   weir_errno_text(errno));
}

static weir_status open_folder(const char *root, const char *folder,
                               int *out_fd, weir_error *err) {
  char ordered[WEIR_PATH_BYTES];
  int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  bool is_root = folder[0] == '.' && folder[1] == '\0';
  if (!is_root && root != NULL)
    WEIR_TRY(weir_path_beneath(folder, ordered, err));
  *out_fd = root == NULL ? open(folder, flags) : open(root, flags);
  if (*out_fd >= 0 && root != NULL && !is_root) {
    int fd = weir_fs_open_beneath(*out_fd, ordered, false);
    int kept = errno;
    close(*out_fd);
    errno = kept;
    *out_fd = fd;
  }
  return *out_fd >= 0 ? WEIR_OK : fail_folder(folder, err);
}

static weir_status piece_list(void *self, const char *root, const char *folder,
                              void *to, bool (*name)(void *, const char *),
                              weir_error *err) {
  int fd = -1;
  struct stat info;
  (void)self;
  WEIR_TRY(open_folder(root, folder, &fd, err));
  DIR *dir = fdopendir(fd);
  if (dir == NULL) {
    weir_status s = fail_folder(folder, err);
    close(fd);
    return s;
  }
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    bool plain = e->d_type == DT_REG;
    if (e->d_type == DT_UNKNOWN)
      plain = fstatat(fd, e->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
              S_ISREG(info.st_mode);
    if (plain && !name(to, e->d_name)) break;
  }
  closedir(dir);
  return WEIR_OK;
}

const weir_fs_pieces weir_system_pieces = {piece_open, piece_close, piece_read,
                                           piece_list};
