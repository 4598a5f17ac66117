/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/env_system.h"
#include "runtime/base/fs/fs_open.h"
#include "runtime/base/fs/fs_own.h"
#include "runtime/base/fs/fs_system.h"
#include "tests/check.h"

/* Folders held open, on the real file system. Each test has a fresh folder,
 * which is also the current one. */

static char old_folder[WEIR_PATH_BYTES], root[64];

static int setup(void **state) {
  (void)state;
  strcpy(root, "/tmp/weir-folder-XXXXXX");
  return getcwd(old_folder, sizeof old_folder) == NULL ||
         mkdtemp(root) == NULL || chdir(root) != 0;
}

static int teardown(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", root);
  return chdir(old_folder) != 0 || system(command) != 0;
}

static const weir_fs_folders *const F = &weir_system_folders;

static void *open_folder(const char *path) {
  weir_error err = WEIR_ERROR_INIT;
  void *folder = NULL;
  assert_ok(F->open(NULL, NULL, path, true, &folder, &err), &err);
  return folder;
}

static void write_file(void *folder, const char *name, const char *text) {
  weir_error err = WEIR_ERROR_INIT;
  void *file = NULL;
  assert_ok(F->create(NULL, folder, name, &file, &err), &err);
  assert_non_null(file);
  weir_bytes bytes = {(const uint8_t *)text, strlen(text)};
  assert_ok(F->append(NULL, file, bytes, &err), &err);
  assert_ok(F->append(NULL, file, bytes, &err), &err);
  assert_ok(F->sync(NULL, file, &err), &err);
  assert_ok(F->end(NULL, file, &err), &err);
}

static bool add_name(void *to, const char *name) {
  strcat(to, name);
  strcat(to, " ");
  return true;
}

static void lists(void *folder, const char *want) {
  weir_error err = WEIR_ERROR_INIT;
  char names[256] = "";
  assert_ok(F->list(NULL, folder, names, add_name, &err), &err);
  assert_string_equal(names, want);
}

static void holds(const char *path, const char *want) {
  weir_error err = WEIR_ERROR_INIT;
  const weir_fs *fs = weir_env_system()->fs;
  weir_file f;
  assert_ok(fs->read(NULL, NULL, path, 100, false, &f, &err), &err);
  assert_int_equal(f.bytes.size, strlen(want));
  assert_memory_equal(f.bytes.data, want, strlen(want));
  fs->close(NULL, &f);
}

static void writes_renames_removes(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  void *folder = open_folder("a/b//c"), *file = NULL;
  lists(folder, "");
  write_file(folder, "one", "x");
  holds("a/b/c/one", "xx");
  assert_ok(F->create(NULL, folder, "one", &file, &err), &err);
  assert_null(file); /* taken */
  assert_ok(F->rename(NULL, folder, "one", "two", &err), &err);
  assert_ok(F->sync_folder(NULL, folder, &err), &err);
  lists(folder, "two ");
  lists(folder, "two "); /* again from its start */
  assert_ok(F->unlink(NULL, folder, "two", &err), &err);
  lists(folder, "");
  assert_error(F->unlink(NULL, folder, "two", &err), &err, "W5009");
  assert_error(F->rename(NULL, folder, "two", "x", &err), &err, "W5009");
  assert_non_null(strstr(err.message, "a/b//c/two"));
  assert_true(F->free_bytes(NULL, folder) > 0);
  F->close(NULL, folder);
  F->close(NULL, NULL);
  assert_ok(F->end(NULL, NULL, &err), &err);
}

static void refuses_folder(const char *path, bool make, const char *id,
                           const char *says) {
  weir_error err = WEIR_ERROR_INIT;
  void *folder = NULL;
  assert_error(F->open(NULL, NULL, path, make, &folder, &err), &err, id);
  if (strstr(err.message, says) == NULL) fail_msg("%s", err.message);
  assert_null(folder);
}

static void what_is_no_folder(void **state) {
  (void)state;
  char longest[WEIR_PATH_BYTES + 8];
  memset(longest, 'a', sizeof longest - 1);
  longest[sizeof longest - 1] = '\0';
  void *folder = open_folder(".");
  write_file(folder, "file", "x");
  F->close(NULL, folder);
  assert_int_equal(symlink("loop", "loop"), 0);
  assert_int_equal(symlink("gone", "dangling"), 0);
  refuses_folder("none", false, "W4001", "No such file");
  refuses_folder("file", true, "W4002", "a file stands in its place");
  refuses_folder("file/below", true, "W4002", "a file stands in its place");
  refuses_folder("loop", true, "W4002", "links lead in a circle");
  refuses_folder("dangling", false, "W4001", "No such file");
  refuses_folder(longest, true, "W4002", "File name too long");
  if (geteuid() == 0) return; /* root may write anywhere */
  assert_int_equal(mkdir("locked", 0500), 0);
  refuses_folder("locked/new", true, "W4002", "Permission denied");
  refuses_folder("locked/new/newer", true, "W4002", "Permission denied");
}

static void open_in(const char *path, bool make, const char *id,
                    const char *says) {
  weir_error err = WEIR_ERROR_INIT;
  void *folder = NULL;
  assert_error(F->open(NULL, "root", path, make, &folder, &err), &err, id);
  if (strstr(err.message, says) == NULL) fail_msg("%s", err.message);
  assert_null(folder);
}

/* A folder that processes of one user meet in. */
static void a_users_own_folder(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  char path[WEIR_OWN_FOLDER_BYTES], want[WEIR_OWN_FOLDER_BYTES];
  struct stat s;
  for (int again = 0; again < 2; again++)
    assert_ok(weir_own_folder_at("own", &err), &err);
  assert_int_equal(stat("own", &s), 0);
  assert_int_equal(s.st_mode & 07777, 0700);
  const struct {
    mode_t mode;
    bool good;
  } rows[] = {{0755, true}, {0720, false}, {0702, false}, {01777, false}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_int_equal(chmod("own", rows[i].mode), 0);
    weir_status status = weir_own_folder_at("own", &err);
    if (rows[i].good) {
      assert_ok(status, &err);
      continue;
    }
    assert_error(status, &err, "W4002");
    assert_non_null(strstr(err.message, "other users may write into it"));
  }
  assert_int_equal(chmod("own", 0700), 0);
  assert_int_equal(symlink("own", "to_own"), 0);
  assert_error(weir_own_folder_at("to_own", &err), &err, "W4002");
  assert_non_null(strstr(err.message, "a file or a link stands in its place"));
  assert_error(weir_own_folder_at("no/own", &err), &err, "W4002");
  if (geteuid() != 0) {
    assert_error(weir_own_folder_at("/", &err), &err, "W4002");
    assert_non_null(strstr(err.message, "another user has made it"));
  }
  snprintf(want, sizeof want, "/tmp/weir-%u", (unsigned)geteuid());
  assert_ok(weir_own_folder(path, &err), &err);
  assert_string_equal(path, want);
  assert_int_equal(rmdir("own"), 0);
  assert_int_equal(unlink("to_own"), 0);
}

static void beneath_a_root(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  void *folder = NULL;
  open_in("a/b", false, "W4001", "No such file");
  assert_ok(F->open(NULL, "root", "a//b/./c", true, &folder, &err), &err);
  write_file(folder, "one", "x");
  holds("root/a/b/c/one", "xx");
  F->close(NULL, folder);
  assert_ok(F->open(NULL, "root", "a/b", false, &folder, &err), &err);
  lists(folder, "c ");
  F->close(NULL, folder);
  assert_int_equal(mkdir("outside", 0700), 0);
  assert_int_equal(symlink("../outside", "root/link"), 0);
  assert_int_equal(symlink("../gone", "root/dangling"), 0);
  assert_int_equal(symlink("a", "root/inside"), 0);
  static const char *const kLinks[] = {"link", "link/new", "inside/b",
                                       "a/../link"};
  for (int make = 0; make < 2; make++)
    for (size_t i = 0; i < 4; i++)
      open_in(kLinks[i], make, "W4002", "a symbolic link stands in its path");
  open_in("dangling", true, "W4002", "a symbolic link stands in its path");
  open_in("../outside", true, "W4002", "leaves its folder");
  open_in("/tmp", true, "W4002", "absolute");
  open_in("a/b/c/one", true, "W4002", "a file stands in its place");
  open_in("a/b/c/one/more", true, "W4002", "a file stands in its place");
  assert_ok(F->open(NULL, NULL, "outside", false, &folder, &err), &err);
  lists(folder, "");
  F->close(NULL, folder);
}

/* Kernels without openat2 must refuse and make the same. */
static void steps_are_as_strict(void **state) {
  (void)state;
  char name[16];
  assert_int_equal(symlink("/", "link"), 0);
  void *folder = open_folder("dir");
  write_file(folder, "file", "x");
  F->close(NULL, folder);
  int top = open(".", O_RDONLY | O_DIRECTORY);
  for (int by_steps = 0; by_steps < 2; by_steps++) {
    static const struct {
      const char *path;
      int error;
    } kBad[] = {{"link", ELOOP},
                {"link/tmp", ELOOP},
                {"dir/file", ENOTDIR},
                {"dir/file/x", ENOTDIR}};
    for (size_t i = 0; i < 4; i++) {
      assert_int_equal(
          weir_fs_folder_beneath(top, kBad[i].path, true, by_steps), -1);
      assert_int_equal(errno, kBad[i].error);
    }
    snprintf(name, sizeof name, "n%d/m", by_steps);
    assert_int_equal(weir_fs_folder_beneath(top, name, false, by_steps), -1);
    assert_int_equal(errno, ENOENT);
    int fd = weir_fs_folder_beneath(top, name, true, by_steps);
    assert_true(fd >= 0);
    close(fd);
    fd = weir_fs_folder_beneath(top, name, false, by_steps);
    assert_true(fd >= 0);
    close(fd);
  }
  close(top);
}

/* In a process of its own, whose kernel refuses openat2 with |error|. */
static int child_without_openat2(int error) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog program = {4, code};
  weir_error err = WEIR_ERROR_INIT;
  void *folder = NULL;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    return 77;
  if (syscall(SYS_openat2, -1, "", NULL, 0) != -1 || errno != error) return 1;
  if (F->open(NULL, ".", "made/deep", true, &folder, &err) != WEIR_OK) return 2;
  F->close(NULL, folder);
  if (F->open(NULL, ".", "made/link", true, &folder, &err) == WEIR_OK) return 3;
  if (strcmp(err.id, "W4002") != 0) return 4;
  if (F->open(NULL, ".", "made/link/x", true, &folder, &err) == WEIR_OK)
    return 5;
  const weir_fs *fs = weir_env_system()->fs;
  weir_file file;
  if (fs->read(NULL, ".", "made/file", 9, false, &file, &err) != WEIR_OK)
    return 6;
  fs->close(NULL, &file);
  return fs->read(NULL, ".", "made/soft", 9, false, &file, &err) == WEIR_OK;
}

static void sandboxes_without_openat2(void **state) {
  (void)state;
  void *folder = open_folder("made");
  write_file(folder, "file", "x");
  F->close(NULL, folder);
  assert_int_equal(symlink("..", "made/link"), 0);
  assert_int_equal(symlink("file", "made/soft"), 0);
  static const int kErrors[] = {ENOSYS, EPERM};
  for (size_t i = 0; i < 2; i++) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) _exit(child_without_openat2(kErrors[i]));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
      print_message("skipped: no seccomp here\n");
      skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
  }
}

static void reads_plain_files(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  const weir_fs *fs = weir_env_system()->fs;
  weir_file f;
  void *folder = open_folder("d");
  write_file(folder, "file", "x");
  assert_int_equal(link("d/file", "d/hard"), 0); /* a backup may share it */
  assert_int_equal(symlink("file", "d/soft"), 0);
  assert_int_equal(mkfifo("d/pipe", 0600), 0);
  assert_int_equal(mkdir("d/folder", 0700), 0);
  assert_ok(F->read(NULL, folder, "hard", 2, &f, &err), &err);
  assert_int_equal(f.bytes.size, 2);
  fs->close(NULL, &f);
  assert_error(F->read(NULL, folder, "file", 1, &f, &err), &err, "W4015");
  assert_error(F->read(NULL, folder, "none", 9, &f, &err), &err, "W4001");
  static const char *const kOdd[] = {"soft", "pipe", "folder"};
  for (size_t i = 0; i < 3; i++) {
    assert_error(F->read(NULL, folder, kOdd[i], 9, &f, &err), &err, "W4002");
    assert_null(f.bytes.data);
  }
  F->close(NULL, folder);
}

static void renames_replace_nothing(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  void *folder = open_folder(".");
  write_file(folder, "new", "n");
  write_file(folder, "old", "o");
  assert_int_equal(symlink("gone", "link"), 0);
  assert_error(F->rename(NULL, folder, "new", "old", &err), &err, "W5009");
  assert_non_null(strstr(err.message, "File exists"));
  assert_error(F->rename(NULL, folder, "new", "link", &err), &err, "W5009");
  holds("old", "oo");
  holds("new", "nn");
  F->close(NULL, folder);
}

static void one_lock_at_a_time(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  void *a = open_folder("."), *b = open_folder("."), *lock = NULL, *other;
  assert_ok(F->lock(NULL, a, "lock", &lock, &err), &err);
  assert_non_null(lock);
  assert_ok(F->lock(NULL, b, "lock", &other, &err), &err);
  assert_null(other);
  F->unlock(NULL, lock);
  assert_ok(F->lock(NULL, b, "lock", &other, &err), &err);
  assert_non_null(other);
  F->unlock(NULL, other);
  F->unlock(NULL, NULL);
  assert_int_equal(mkdir("folder", 0700), 0);
  /* The lock is a plain file: nothing else is opened, and nothing waits. */
  assert_int_equal(mkfifo("pipe", 0600), 0);
  assert_int_equal(symlink("lock", "link"), 0);
  int reader = open("pipe", O_RDONLY | O_NONBLOCK);
  static const char *const kOdd[] = {"folder", "pipe", "link"};
  for (size_t i = 0; i < 3; i++) {
    assert_error(F->lock(NULL, a, kOdd[i], &lock, &err), &err, "W4002");
    assert_null(lock);
  }
  close(reader);
  assert_error(F->lock(NULL, a, "pipe", &lock, &err), &err, "W4002");
  F->close(NULL, a);
  F->close(NULL, b);
}

/* A file may not grow past a limit: first less is written than was asked for,
 * then nothing. */
static void short_writes(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  struct rlimit old, small;
  void *folder = open_folder("."), *file = NULL;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
  small = old;
  small.rlim_cur = 1000;
  signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  assert_ok(F->create(NULL, folder, "long", &file, &err), &err);
  static const uint8_t bytes[1500];
  weir_status s = F->append(NULL, file, (weir_bytes){bytes, 1500}, &err);
  setrlimit(RLIMIT_FSIZE, &old);
  assert_int_not_equal(s, WEIR_OK);
  assert_string_equal(err.id, "W6005");
  assert_ok(F->end(NULL, file, &err), &err);
  struct stat info;
  assert_int_equal(stat("long", &info), 0);
  assert_int_equal(info.st_size, 1000);
  F->close(NULL, folder);
}

static void no_memory(void **state) {
  (void)state;
  void *folder = open_folder("."), *out = NULL;
  weir_counted_allocator c;
  weir_counted_allocator_init(&c, NULL);
  c.fail_at = 1;
  c.fail_forever = true;
  weir_error err = WEIR_ERROR_INIT;
  assert_error(F->open(&c, NULL, ".", false, &out, &err), &err, "W6001");
  assert_error(F->create(&c, folder, "f", &out, &err), &err, "W6001");
  assert_error(F->lock(&c, folder, "l", &out, &err), &err, "W6001");
  lists(folder, "");
  F->close(NULL, folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(writes_renames_removes, setup, teardown),
      cmocka_unit_test_setup_teardown(what_is_no_folder, setup, teardown),
      cmocka_unit_test_setup_teardown(a_users_own_folder, setup, teardown),
      cmocka_unit_test_setup_teardown(beneath_a_root, setup, teardown),
      cmocka_unit_test_setup_teardown(steps_are_as_strict, setup, teardown),
      cmocka_unit_test_setup_teardown(sandboxes_without_openat2, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(reads_plain_files, setup, teardown),
      cmocka_unit_test_setup_teardown(renames_replace_nothing, setup, teardown),
      cmocka_unit_test_setup_teardown(one_lock_at_a_time, setup, teardown),
      cmocka_unit_test_setup_teardown(short_writes, setup, teardown),
      cmocka_unit_test_setup_teardown(no_memory, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
