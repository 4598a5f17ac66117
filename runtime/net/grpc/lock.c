/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/net/grpc/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static weir_status refuse(const weir_module_host *host, weir_error *err,
                          const char *path, const char *why) {
  char text[sizeof err->message];
  snprintf(text, sizeof text, "unix:%s: %s", path, why);
  return host->fail(err, "W7002", text);
}

/* The lock's last holder may have removed the file meanwhile: then ours is on a
 * file without a name, and we try again. */
weir_status weir_grpc_lock_path(const weir_module_host *host, const char *path,
                                char out_lock[WEIR_GRPC_LOCK_BYTES],
                                int *out_fd, weir_error *err) {
  snprintf(out_lock, WEIR_GRPC_LOCK_BYTES, "%s.lock", path);
  for (;;) {
    int fd = open(out_lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
      char why[WEIR_GRPC_LOCK_BYTES + 128];
      snprintf(why, sizeof why, "%s cannot be made: %m", out_lock);
      return refuse(host, err, path, why);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
      close(fd);
      return refuse(host, err, path, "another process listens there");
    }
    struct stat held, named;
    if (fstat(fd, &held) == 0 && stat(out_lock, &named) == 0 &&
        held.st_ino == named.st_ino && held.st_dev == named.st_dev) {
      *out_fd = fd;
      return WEIR_OK;
    }
    close(fd);
  }
}

void weir_grpc_unlock_path(const char *lock, int fd) {
  if (fd < 0) return;
  (void)unlink(lock); /* while it is locked */
  close(fd);
}
