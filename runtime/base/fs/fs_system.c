/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/fs/fs_system.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "runtime/base/fs/fs_open.h"
#include "runtime/base/fs/fs_write.h"

enum {
  kReadFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
  kFileAlign = 64,
  kReadBytes = 1 << 30 /* of one call */
};

/* weir_file.self of a mapped file points here, that of a copied one to its
 * block. */
static const char kMapped[1];

const char *weir_errno_text(int error_number) {
  const char *text = strerrordesc_np(error_number);
  return text != NULL ? text : "unknown error";
}

static weir_status fail_open(const char *path, int error, weir_error *err) {
  weir_mark at = {.file = path};
  weir_error_id id = WEIR_W4001;
  if (error == ELOOP || error == EXDEV || error == ENXIO) id = WEIR_W4002;
  if (error == EMFILE || error == ENFILE || error == ENOMEM) id = WEIR_W6003;
  const char *what = error == ELOOP   ? "a symbolic link stands in its path"
                     : error == EXDEV ? "it lies outside the data root"
                                      : weir_errno_text(error);
  return weir_fail(err, id, &at, "cannot open '%.200s': %s", path, what);
}

static weir_status open_rooted(const char *root, const char *path, int *out_fd,
                               weir_error *err) {
  char ordered[WEIR_PATH_BYTES];
  WEIR_TRY(weir_path_beneath(path, ordered, err));
  int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root_fd < 0) return fail_open(root, errno, err);
  *out_fd = weir_fs_open_beneath(root_fd, ordered, false);
  int error = errno;
  close(root_fd);
  return *out_fd >= 0 ? WEIR_OK : fail_open(path, error, err);
}

static weir_status open_any(const char *root, const char *path, int *out_fd,
                            weir_error *err) {
  if (root != NULL) return open_rooted(root, path, out_fd, err);
  do {
    *out_fd = open(path, kReadFlags);
  } while (*out_fd < 0 && errno == EINTR);
  return *out_fd >= 0 ? WEIR_OK : fail_open(path, errno, err);
}

static const char *kind_name(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

/* Files of the kernel's own (/proc/self/mem) call themselves regular. */
static bool on_kernel_fs(int fd) {
  struct statfs fs;
  if (fstatfs(fd, &fs) != 0) return true;
  return fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC ||
         fs.f_type == DEBUGFS_MAGIC || fs.f_type == TRACEFS_MAGIC;
}

/* Checks the open file, not its path, which may name another one by now; gives
 * its size. */
static weir_status check_file(int fd, const char *path, bool rooted,
                              size_t limit, size_t *out_size, weir_error *err) {
  struct stat info;
  weir_mark at = {.file = path};
  if (fstat(fd, &info) != 0) return fail_open(path, errno, err);
  if (!S_ISREG(info.st_mode))
    return weir_fail(err, WEIR_W4002, &at, "'%.200s' is %s, not a plain file",
                     path, kind_name(info.st_mode));
  if (on_kernel_fs(fd))
    return weir_fail(err, WEIR_W4002, &at,
                     "'%.200s' is a file of the kernel, not of a disk", path);
  if (rooted && info.st_nlink > 1)
    return weir_fail(err, WEIR_W4002, &at,
                     "'%.200s' has %lu hard links; a data file may have one",
                     path, (unsigned long)info.st_nlink);
  if ((uint64_t)info.st_size > limit)
    return weir_fail(err, WEIR_W4015, &at,
                     "'%.200s' has %lld bytes, the limit is %zu", path,
                     (long long)info.st_size, limit);
  *out_size = (size_t)info.st_size;
  return WEIR_OK;
}

weir_status weir_fs_open_read(const char *root, const char *path, size_t limit,
                              int *out_fd, size_t *out_size, weir_error *err) {
  *out_fd = -1;
  weir_status s = open_any(root, path, out_fd, err);
  if (s == WEIR_OK)
    s = check_file(*out_fd, path, root != NULL, limit, out_size, err);
  if (s == WEIR_OK || *out_fd < 0) return s;
  close(*out_fd);
  *out_fd = -1;
  return s;
}

static weir_status map_content(int fd, const char *path, size_t size,
                               weir_file *out_file, weir_error *err) {
  weir_mark at = {.file = path};
  void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED)
    return weir_fail(err, WEIR_W6003, &at, "cannot map '%.200s': %s", path,
                     weir_errno_text(errno));
  *out_file = (weir_file){{data, size}, (void *)kMapped};
  return WEIR_OK;
}

static weir_status read_all(int fd, const char *path, uint8_t *dst, size_t size,
                            weir_error *err) {
  weir_mark at = {.file = path};
  for (size_t done = 0; done < size;) {
    size_t want = size - done < kReadBytes ? size - done : kReadBytes;
    ssize_t n = pread(fd, dst + done, want, (off_t)done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return weir_fail(err, WEIR_W4001, &at, "cannot read '%.200s': %s", path,
                       weir_errno_text(errno));
    if (n == 0)
      return weir_fail(err, WEIR_W4001, &at,
                       "'%.200s' was cut short while it was read", path);
    done += (size_t)n;
  }
  return WEIR_OK;
}

static weir_status copy_content(const weir_allocator *alloc, int fd,
                                const char *path, size_t size,
                                weir_file *out_file, weir_error *err) {
  uint8_t *data = weir_alloc_aligned(alloc, size, kFileAlign);
  if (data == NULL) return weir_fail_memory(err, size);
  weir_status s = read_all(fd, path, data, size, err);
  if (s == WEIR_OK)
    *out_file = (weir_file){{data, size}, data};
  else
    weir_free(alloc, data);
  return s;
}

weir_status weir_fs_open_in(int folder, const weir_fs_name *name, int *out_fd,
                            size_t *out_size, weir_error *err) {
  *out_fd = openat(folder, name->name, kReadFlags | O_NOFOLLOW);
  if (*out_fd < 0) return fail_open(name->path, errno, err);
  weir_status s =
      check_file(*out_fd, name->path, false, SIZE_MAX / 2, out_size, err);
  if (s == WEIR_OK) return WEIR_OK;
  close(*out_fd);
  *out_fd = -1;
  return s;
}

weir_status weir_fs_read_in(const weir_allocator *alloc, int folder,
                            const weir_fs_name *name, size_t limit,
                            weir_file *out_file, weir_error *err) {
  size_t size = 0;
  *out_file = (weir_file){0};
  int fd = openat(folder, name->name, kReadFlags | O_NOFOLLOW);
  if (fd < 0) return fail_open(name->path, errno, err);
  weir_status s = check_file(fd, name->path, false, limit, &size, err);
  if (s == WEIR_OK)
    s = copy_content(alloc, fd, name->path, size, out_file, err);
  close(fd);
  return s;
}

static const weir_allocator *alloc_of(void *self) {
  return self != NULL ? (const weir_allocator *)self : &weir_system_allocator;
}

static weir_status fs_read(void *self, const char *root, const char *path,
                           size_t limit, bool map, weir_file *out_file,
                           weir_error *err) {
  int fd = -1;
  size_t size = 0;
  *out_file = (weir_file){0};
  weir_status s = weir_fs_open_read(root, path, limit, &fd, &size, err);
  if (s == WEIR_OK && map && size > 0)
    s = map_content(fd, path, size, out_file, err);
  else if (s == WEIR_OK)
    s = copy_content(alloc_of(self), fd, path, size, out_file, err);
  if (fd >= 0) close(fd);
  return s;
}

static void fs_close(void *self, weir_file *file) {
  if (file == NULL || file->self == NULL) return;
  if (file->self == (const void *)kMapped)
    munmap((void *)file->bytes.data, file->bytes.size);
  else
    weir_free(alloc_of(self), file->self);
  *file = (weir_file){0};
}

static weir_status fs_write(void *self, const char *path, weir_bytes content,
                            weir_error *err) {
  (void)self;
  return weir_fs_write_file(path, content, err);
}

const weir_fs weir_system_fs = {.read = fs_read,
                                .close = fs_close,
                                .write = fs_write,
                                .folders = &weir_system_folders,
                                .pieces = &weir_system_pieces};
