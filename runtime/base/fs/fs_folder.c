/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "runtime/base/fs/fs_open.h"
#include "runtime/base/fs/fs_pieces.h"
#include "runtime/base/fs/fs_system.h"
#include "runtime/base/fs/fs_write.h"

/* Folders held open. All names are taken relative to the folder's descriptor
 * (openat and its kin), so a folder that is moved or replaced meanwhile cannot
 * send a write elsewhere, and a link in a name's place is not followed. */

/* A folder, a file in it, or a lock: a descriptor and its path. */
typedef struct handle {
  const weir_allocator *alloc;
  int fd;
  char path[]; /* for messages */
} handle;

/* O_NONBLOCK, so that a pipe in the lock's place does not stop us. */
enum {
  kNewFile = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY,
  kLockFile = kNewFile | O_NONBLOCK
};

static const weir_allocator *alloc_of(void *self) {
  return self != NULL ? (const weir_allocator *)self : &weir_system_allocator;
}

/* A handle without descriptor for |name| in |folder| (NULL: |name| alone). */
static handle *make_handle(const weir_allocator *alloc, const char *folder,
                           const char *name) {
  size_t above = folder != NULL ? strlen(folder) : 0;
  size_t size = strlen(name), total = sizeof(handle) + above + size + 2;
  handle *h = weir_alloc(alloc, total);
  if (h == NULL) return NULL;
  *h = (handle){alloc, -1};
  snprintf(h->path, total - sizeof *h, "%s%s%s", folder != NULL ? folder : "",
           folder != NULL ? "/" : "", name);
  return h;
}

static void free_handle(handle *h) {
  if (h == NULL) return;
  if (h->fd >= 0) close(h->fd);
  weir_free(h->alloc, h);
}

static weir_status fail(const handle *folder, const char *name,
                        const char *doing, int error, weir_error *err) {
  char path[WEIR_PATH_BYTES];
  snprintf(path, sizeof path, "%.3000s/%.1000s", folder->path, name);
  return weir_fs_fail_write(path, doing, error, err);
}

/* --- folders --- */

static weir_status fail_folder(const char *path, int error, weir_error *err) {
  weir_mark at = {.file = path};
  weir_error_id id = WEIR_W4002;
  if (error == ENOENT) id = WEIR_W4001;
  if (error == EMFILE || error == ENFILE || error == ENOMEM) id = WEIR_W6003;
  if (error == ENOSPC || error == EDQUOT || error == EIO) id = WEIR_W6005;
  const char *what = error == ELOOP     ? "symbolic links lead in a circle"
                     : error == ENOTDIR ? "a file stands in its place"
                                        : weir_errno_text(error);
  return weir_fail(err, id, &at, "cannot use folder '%.200s': %s", path, what);
}

/* For a folder beneath another one. */
static weir_status fail_beneath(const char *path, int error, weir_error *err) {
  weir_mark at = {.file = path};
  if (error != ELOOP && error != EXDEV) return fail_folder(path, error, err);
  return weir_fail(err, WEIR_W4002, &at,
                   "cannot use folder '%.200s': a symbolic link stands in its "
                   "path",
                   path);
}

static int open_folder_fd(const char *path) {
  int fd;
  do {
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

/* Some file systems cannot sync a folder and give EINVAL. */
static int sync_folder_fd(int fd) {
  return fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
}

/* Makes path[0, size) and syncs the folder it stands in: else a machine that
 * stops might keep the files in it and lose the folder. */
static int make_one(char *path, size_t size) {
  char kept = path[size];
  path[size] = '\0';
  int error = mkdir(path, 0777) == 0 ? 0 : errno;
  const char *slash = strrchr(path, '/');
  if (error == 0) {
    char above[WEIR_PATH_BYTES];
    size_t n = slash == NULL ? 1 : slash == path ? 1 : (size_t)(slash - path);
    memcpy(above, slash == NULL ? "." : path, n);
    above[n] = '\0';
    int fd = open_folder_fd(above);
    if (fd >= 0) error = sync_folder_fd(fd);
    if (fd >= 0) close(fd);
  }
  path[size] = kept;
  return error;
}

/* Makes |path| and missing folders above it. Returns 0 or an errno. */
static int make_folders(const char *path) {
  char copy[WEIR_PATH_BYTES];
  size_t size = strlen(path);
  if (size >= sizeof copy) return ENAMETOOLONG;
  memcpy(copy, path, size + 1);
  int error = 0, first = 0;
  for (size_t i = 1; i <= size; i++) {
    bool ends = (copy[i] == '/' || copy[i] == '\0') && copy[i - 1] != '/';
    if (!ends) continue;
    error = make_one(copy, i);
    if (error == EEXIST) error = 0;
    if (error != 0 && first == 0) first = error;
  }
  /* A folder above that cannot be made matters only if it is not there. */
  return error == ENOENT && first != 0 ? first : error;
}

/* Returns 0 or an errno. */
static int open_path(const char *path, bool make, int *out_fd) {
  *out_fd = open_folder_fd(path);
  int error = *out_fd >= 0 ? 0 : errno;
  if (error != ENOENT || !make) return error;
  error = make_folders(path);
  if (error != 0) return error;
  *out_fd = open_folder_fd(path);
  return *out_fd >= 0 ? 0 : errno;
}

static weir_status open_beneath(const char *root, const char *path, bool make,
                                handle *h, weir_error *err) {
  char ordered[WEIR_PATH_BYTES];
  int root_fd = -1;
  WEIR_TRY(weir_path_beneath(path, ordered, err));
  int error = open_path(root, make, &root_fd);
  if (error != 0) return fail_folder(root, error, err);
  h->fd = weir_fs_folder_beneath(root_fd, ordered, make, false);
  error = errno;
  close(root_fd);
  return h->fd >= 0 ? WEIR_OK : fail_beneath(h->path, error, err);
}

static weir_status folder_open(void *self, const char *root, const char *path,
                               bool make, void **out_folder, weir_error *err) {
  *out_folder = NULL;
  bool is_here = root == NULL || strcmp(root, ".") == 0;
  handle *h = make_handle(alloc_of(self), is_here ? NULL : root, path);
  if (h == NULL) return weir_fail_memory(err, strlen(path));
  weir_status s = WEIR_OK;
  if (root != NULL) {
    s = open_beneath(root, path, make, h, err);
  } else {
    int error = open_path(path, make, &h->fd);
    if (error != 0) s = fail_folder(path, error, err);
  }
  if (s == WEIR_OK)
    *out_folder = h;
  else
    free_handle(h);
  return s;
}

static void folder_close(void *self, void *folder) {
  (void)self;
  free_handle(folder);
}

static weir_status folder_list(void *self, void *folder, void *to,
                               bool (*name)(void *to, const char *name),
                               weir_error *err) {
  (void)self;
  handle *h = folder;
  /* A descriptor of its own: reading moves the one it reads from. */
  int fd = openat(h->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
  if (dir == NULL) {
    int error = errno;
    if (fd >= 0) close(fd);
    return fail_folder(h->path, error, err);
  }
  struct dirent *e;
  bool more = true;
  errno = 0;
  while (more && (e = readdir(dir)) != NULL) {
    if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
      more = name(to, e->d_name);
    errno = 0;
  }
  int error = more ? errno : 0;
  closedir(dir);
  return error == 0 ? WEIR_OK : fail_folder(h->path, error, err);
}

static weir_status folder_read(void *self, void *folder, const char *name,
                               size_t limit, weir_file *out_file,
                               weir_error *err) {
  handle *h = folder;
  char path[WEIR_PATH_BYTES];
  weir_fs_name file = {name, path};
  snprintf(path, sizeof path, "%.3000s/%.1000s", h->path, name);
  return weir_fs_read_in(alloc_of(self), h->fd, &file, limit, out_file, err);
}

static weir_status folder_sync(void *self, void *folder, weir_error *err) {
  (void)self;
  handle *h = folder;
  int error = sync_folder_fd(h->fd);
  if (error == 0) return WEIR_OK;
  return weir_fs_fail_write(h->path, "sync", error, err);
}

static uint64_t folder_free_bytes(void *self, void *folder) {
  (void)self;
  handle *h = folder;
  struct statvfs info;
  uint64_t bytes;
  if (fstatvfs(h->fd, &info) != 0 || info.f_frsize == 0 || info.f_blocks == 0)
    return UINT64_MAX;
  if (__builtin_mul_overflow((uint64_t)info.f_bavail, (uint64_t)info.f_frsize,
                             &bytes))
    return UINT64_MAX;
  return bytes;
}

/* --- files --- */

static weir_status file_create(void *self, void *folder, const char *name,
                               void **out_file, weir_error *err) {
  handle *dir = folder, *h = make_handle(alloc_of(self), dir->path, name);
  *out_file = NULL;
  if (h == NULL) return weir_fail_memory(err, strlen(name));
  h->fd = openat(dir->fd, name, kNewFile | O_EXCL, 0666);
  int error = h->fd >= 0 ? 0 : errno;
  if (error != 0) {
    free_handle(h);
    return error == EEXIST ? WEIR_OK : fail(dir, name, "make", error, err);
  }
  *out_file = h;
  return WEIR_OK;
}

static weir_status file_append(void *self, void *file, weir_bytes bytes,
                               weir_error *err) {
  (void)self;
  handle *h = file;
  int error = weir_fs_write_all(h->fd, bytes);
  if (error == 0) return WEIR_OK;
  return weir_fs_fail_write(h->path, "write", error, err);
}

static weir_status file_sync(void *self, void *file, weir_error *err) {
  (void)self;
  handle *h = file;
  int error = 0;
  do {
    error = fsync(h->fd) == 0 ? 0 : errno;
  } while (error == EINTR);
  if (error == 0) return WEIR_OK;
  return weir_fs_fail_write(h->path, "sync", error, err);
}

static weir_status file_end(void *self, void *file, weir_error *err) {
  (void)self;
  handle *h = file;
  if (h == NULL) return WEIR_OK;
  int error = close(h->fd) == 0 || errno == EINTR ? 0 : errno;
  h->fd = -1;
  weir_status s = WEIR_OK;
  if (error != 0) s = weir_fs_fail_write(h->path, "write", error, err);
  free_handle(h);
  return s;
}

/* In one step where the file system knows how; else a look and a renaming, so
 * that only a program that writes at the same moment can lose its file. Returns
 * 0 or an errno. */
static int rename_to_free(int folder, const char *src, const char *dst) {
  struct stat info;
  if (renameat2(folder, src, folder, dst, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS && errno != EPERM) return errno;
  if (fstatat(folder, dst, &info, AT_SYMLINK_NOFOLLOW) == 0) return EEXIST;
  return renameat(folder, src, folder, dst) == 0 ? 0 : errno;
}

static weir_status file_rename(void *self, void *folder, const char *src,
                               const char *dst, weir_error *err) {
  (void)self;
  handle *dir = folder;
  int error = rename_to_free(dir->fd, src, dst);
  if (error == EEXIST) return fail(dir, dst, "make", error, err);
  return error == 0 ? WEIR_OK : fail(dir, src, "rename", error, err);
}

static weir_status file_unlink(void *self, void *folder, const char *name,
                               weir_error *err) {
  (void)self;
  handle *dir = folder;
  if (unlinkat(dir->fd, name, 0) == 0) return WEIR_OK;
  return fail(dir, name, "remove", errno, err);
}

/* --- paths and pieces --- */

/* The kernel's own name of the open folder: it stays right when the folder is
 * moved. One that was removed ends in " (deleted)", and is nowhere. */
static bool folder_path(void *self, void *folder, char *out, size_t bytes) {
  const handle *h = folder;
  char link[40], gone[] = " (deleted)";
  (void)self;
  snprintf(link, sizeof link, "/proc/self/fd/%d", h->fd);
  ssize_t n = readlink(link, out, bytes);
  if (n <= 0 || (size_t)n >= bytes || out[0] != '/') return false;
  out[n] = '\0';
  size_t end = sizeof gone - 1;
  return (size_t)n < end || strcmp(out + n - end, gone) != 0;
}

static weir_status folder_pieces(void *self, void *folder, const char *name,
                                 weir_piece_file *out_file, weir_error *err) {
  const handle *h = folder;
  char path[WEIR_PATH_BYTES];
  weir_fs_name at = {name, path};
  size_t size = 0;
  int fd = -1;
  (void)self;
  *out_file = (weir_piece_file){0};
  snprintf(path, sizeof path, "%.3000s/%.1000s", h->path, name);
  WEIR_TRY(weir_fs_open_in(h->fd, &at, &fd, &size, err));
  *out_file = weir_fs_piece_file(fd, size);
  return WEIR_OK;
}

/* --- locks --- */

static weir_status fail_odd(const handle *folder, const char *name,
                            weir_error *err) {
  weir_mark at = {.file = folder->path};
  return weir_fail(err, WEIR_W4002, &at,
                   "'%.200s/%.50s' is not a plain file: it cannot be locked",
                   folder->path, name);
}

static weir_status folder_lock(void *self, void *folder, const char *name,
                               void **out_lock, weir_error *err) {
  handle *dir = folder, *h = make_handle(alloc_of(self), dir->path, name);
  struct stat info;
  *out_lock = NULL;
  if (h == NULL) return weir_fail_memory(err, strlen(name));
  h->fd = openat(dir->fd, name, kLockFile, 0666);
  int error = h->fd >= 0 ? 0 : errno;
  /* A pipe without a reader is ENXIO. */
  bool odd = error == ENXIO || error == ELOOP || error == EISDIR;
  if (error == 0) odd = fstat(h->fd, &info) != 0 || !S_ISREG(info.st_mode);
  if (odd) {
    free_handle(h);
    return fail_odd(dir, name, err);
  }
  while (error == 0 && flock(h->fd, LOCK_EX | LOCK_NB) != 0)
    if (errno != EINTR) error = errno;
  if (error == 0) {
    *out_lock = h;
    return WEIR_OK;
  }
  free_handle(h);
  return error == EWOULDBLOCK ? WEIR_OK : fail(dir, name, "lock", error, err);
}

static void folder_unlock(void *self, void *lock) {
  (void)self;
  free_handle(lock); /* closing drops it */
}

const weir_fs_folders weir_system_folders = {
    .open = folder_open,
    .close = folder_close,
    .list = folder_list,
    .read = folder_read,
    .create = file_create,
    .append = file_append,
    .sync = file_sync,
    .end = file_end,
    .rename = file_rename,
    .unlink = file_unlink,
    .sync_folder = folder_sync,
    .lock = folder_lock,
    .unlock = folder_unlock,
    .free_bytes = folder_free_bytes,
    .path = folder_path,
    .pieces = folder_pieces,
};
