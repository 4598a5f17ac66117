/* SPDX-License-Identifier: Apache-2.0 */
/* Private folders.
 *
 * A folder has a file "lock", and its owner holds a lock on that file, which
 * the system lets go however the owner ends. So a folder whose lock is free has
 * no owner any more. The file gets its name when the lock is held: a folder
 * that is just being made has none, and is left alone. Only folders of this
 * user, with a name and rights as mkdtemp gives them, are looked at, no links.
 */
#include "cli/spawn/folder.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

#define STEM "weir-"
enum { RANDOM = 6 }; /* letters and digits that mkdtemp puts behind it */

/* Removes what is in the folder |fd|, which is closed. */
static void empty(int fd) {
  DIR *dir = fdopendir(fd);
  struct dirent *entry;
  if (dir == NULL) close(fd);
  while (dir != NULL && (entry = readdir(dir)) != NULL)
    unlinkat(dirfd(dir), entry->d_name, 0); /* folders stay, "." too */
  if (dir != NULL) closedir(dir);
}

static bool is_name(const char *name) {
  size_t stem = strlen(STEM), i = stem;
  if (strncmp(name, STEM, stem) != 0) return false;
  while (isalnum((unsigned char)name[i])) i++;
  return name[i] == '\0' && i == stem + RANDOM;
}

/* Takes the lock of the folder |fd|. -1: it has an owner, or is of another
 * kind. */
static int take_lock(int fd) {
  struct stat s;
  if (fstat(fd, &s) != 0 || s.st_uid != geteuid() ||
      (s.st_mode & 07777) != 0700)
    return -1;
  int lock = openat(fd, "lock", O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (lock < 0) return -1;
  /* Another may have removed it between the two. */
  if (fstat(lock, &s) == 0 && S_ISREG(s.st_mode) &&
      flock(lock, LOCK_EX | LOCK_NB) == 0 &&
      faccessat(fd, "lock", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
    return lock;
  close(lock);
  return -1;
}

/* Removes the folder |name| of |tmp| if its owner is dead. */
static void remove_stale(int tmp, const char *name) {
  int fd = openat(tmp, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  int lock = fd >= 0 ? take_lock(fd) : -1;
  if (lock >= 0) {
    empty(fd);
    unlinkat(tmp, name, AT_REMOVEDIR);
    close(lock);
  } else if (fd >= 0) {
    close(fd);
  }
}

static void remove_all_stale(const char *tmp) {
  DIR *dir = opendir(tmp);
  struct dirent *entry;
  while (dir != NULL && (entry = readdir(dir)) != NULL)
    if (is_name(entry->d_name)) remove_stale(dirfd(dir), entry->d_name);
  if (dir != NULL) closedir(dir);
}

/* A file system without locks: then there is none, and nobody else removes the
 * folder. */
static int hold_lock(const char *path) {
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return -1;
  int lock = openat(fd, "new", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (lock >= 0 && (flock(lock, LOCK_EX | LOCK_NB) != 0 ||
                    renameat(fd, "new", fd, "lock") != 0)) {
    unlinkat(fd, "new", 0);
    close(lock);
    lock = -1;
  }
  close(fd);
  return lock;
}

weir_status cli_folder_make(const char *tmp, cli_folder *out, weir_error *err) {
  char path[CLI_FOLDER_BYTES + 1];
  *out = (cli_folder){.lock = -1};
  int n = snprintf(path, sizeof path, "%s/" STEM "XXXXXX", tmp);
  if (n > CLI_FOLDER_BYTES)
    return cli_error(err, "W4002",
                     "%s: too long for the names of sockets, at most %d bytes",
                     tmp, CLI_FOLDER_BYTES - (int)sizeof "/" STEM "XXXXXX" + 1);
  remove_all_stale(tmp);
  if (mkdtemp(path) == NULL) /* mode 0700 */
    return cli_error(err, "W4002", "%s: cannot make a folder: %s", tmp,
                     strerror(errno));
  memcpy(out->path, path, sizeof path);
  out->lock = hold_lock(path);
  return WEIR_OK;
}

void cli_folder_remove(const cli_folder *folder) {
  if (folder->path[0] == '\0') return;
  int fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd >= 0) empty(fd);
  rmdir(folder->path);
}

void cli_folder_release(cli_folder *folder) {
  cli_folder_remove(folder);
  if (folder->lock >= 0) close(folder->lock);
  *folder = (cli_folder){.lock = -1};
}
