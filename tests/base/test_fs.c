/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/env_system.h"
#include "runtime/base/fs/fs_open.h"
#include "runtime/base/fs/fs_system.h"
#include "tests/check.h"

/* Each test works in a fresh folder, which is also the current one:
 *   data/a.bin "abc"   data/sub/b.bin "b"   out.bin "o" */

static char old_folder[WEIR_PATH_BYTES], folder[64];

static void put(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, text, strlen(text)), strlen(text));
  close(fd);
}

static int setup(void **state) {
  (void)state;
  strcpy(folder, "/tmp/weir-fs-XXXXXX");
  if (getcwd(old_folder, sizeof old_folder) == NULL ||
      mkdtemp(folder) == NULL || chdir(folder) != 0 || mkdir("data", 0700) ||
      mkdir("data/sub", 0700))
    return -1;
  put("data/a.bin", "abc");
  put("data/sub/b.bin", "b");
  put("out.bin", "o");
  return 0;
}

static int teardown(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return chdir(old_folder) != 0 || system(command) != 0;
}

static const weir_fs *fs(void) {
  return weir_env_system()->fs;
}

/* The same through pieces, from the last byte to the first. */
static void pieces_give(const char *root, const char *path, const char *want) {
  const weir_fs_pieces *p = fs()->pieces;
  weir_error err = WEIR_ERROR_INIT;
  weir_piece_file f;
  char byte;
  assert_ok(p->open(NULL, root, path, &f, &err), &err);
  assert_int_equal(f.bytes, strlen(want));
  for (size_t i = strlen(want); i-- > 0;) {
    assert_ok(p->read(NULL, &f, path, &byte, 1, i, &err), &err);
    assert_int_equal(byte, want[i]);
  }
  assert_error(p->read(NULL, &f, path, &byte, 1, f.bytes, &err), &err, "W4020");
  p->close(NULL, &f);
  assert_null(f.self);
  p->close(NULL, &f);
}

static void gives(const char *root, const char *path, bool map,
                  const char *want) {
  weir_error err = WEIR_ERROR_INIT;
  weir_file f;
  assert_ok(fs()->read(NULL, root, path, 100, map, &f, &err), &err);
  assert_int_equal(f.bytes.size, strlen(want));
  assert_memory_equal(f.bytes.data, want, strlen(want));
  fs()->close(NULL, &f);
  assert_null(f.self);
  fs()->close(NULL, &f);
  pieces_give(root, path, want);
}

static void refuses(const char *root, const char *path, const char *id,
                    const char *says) {
  for (int map = 0; map < 2; map++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_file f;
    assert_error(fs()->read(NULL, root, path, 100, map, &f, &err), &err, id);
    if (strstr(err.message, says) == NULL) fail_msg("%s", err.message);
    assert_null(f.self);
    fs()->close(NULL, &f);
  }
  weir_error err = WEIR_ERROR_INIT;
  weir_piece_file f;
  assert_error(fs()->pieces->open(NULL, root, path, &f, &err), &err, id);
  assert_null(f.self);
}

static void reads(void **state) {
  (void)state;
  for (int map = 0; map < 2; map++) {
    gives(NULL, "data/a.bin", map, "abc");
    gives("data", "a.bin", map, "abc");
    gives("data", "./sub//b.bin", map, "b");
    gives("data", "sub/../a.bin", map, "abc");
    put("data/empty", "");
    gives("data", "empty", map, "");
  }
  fs()->close(NULL, NULL);
}

/* F11: paths that may not be opened as data files. */
static void nothing_outside_the_root(void **state) {
  (void)state;
  char full[256];
  assert_int_equal(symlink("../out.bin", "data/link"), 0);
  assert_int_equal(symlink("a.bin", "data/inner"), 0);
  assert_int_equal(symlink("..", "data/up"), 0);
  assert_int_equal(symlink("sub", "data/dir"), 0);
  assert_int_equal(link("out.bin", "data/hard"), 0);
  snprintf(full, sizeof full, "%s/data/a.bin", folder);
  refuses("data", "link", "W4002", "symbolic link");
  refuses("data", "inner", "W4002", "symbolic link");
  refuses("data", "up/out.bin", "W4002", "symbolic link");
  refuses("data", "dir/b.bin", "W4002", "symbolic link");
  refuses("data", "hard", "W4002", "2 hard links");
  refuses("data", "../out.bin", "W4002", "leaves its folder");
  refuses("data", "sub/../../out.bin", "W4002", "leaves its folder");
  refuses("data", "..", "W4002", "leaves its folder");
  refuses("data", full, "W4002", "absolute");
  refuses("data", "/proc/self/mem", "W4002", "absolute");
  refuses("data", ".", "W4002", "a folder");
  refuses("data", "", "W4002", "a folder");
  refuses("/proc/self", "mem", "W4002", "kernel");
  refuses("/proc/self", "fd/0", "W4002", "symbolic link");
}

static void regular_files_only(void **state) {
  (void)state;
  assert_int_equal(mkfifo("data/pipe", 0600), 0);
  for (int i = 0; i < 2; i++) {
    refuses(i ? "data" : NULL, i ? "pipe" : "data/pipe", "W4002", "a pipe");
    refuses(i ? "data" : NULL, i ? "sub" : "data/sub", "W4002", "a folder");
    refuses(i ? "/dev" : NULL, i ? "zero" : "/dev/zero", "W4002", "a device");
  }
  refuses(NULL, "/proc/self/mem", "W4002", "kernel");
  refuses(NULL, "none", "W4001", "No such file");
  refuses("data", "none", "W4001", "No such file");
  refuses("data", "a.bin/x", "W4001", "Not a directory");
  refuses("none", "a.bin", "W4001", "No such file");
}

static void links_on_the_command_line(void **state) {
  (void)state;
  assert_int_equal(symlink("data/a.bin", "link"), 0);
  assert_int_equal(symlink("loop", "loop"), 0);
  assert_int_equal(link("out.bin", "hard"), 0);
  gives(NULL, "link", false, "abc");
  gives(NULL, "hard", false, "o");
  refuses(NULL, "loop", "W4002", "symbolic link");
}

static void limit(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_file f;
  assert_ok(fs()->read(NULL, NULL, "data/a.bin", 3, false, &f, &err), &err);
  fs()->close(NULL, &f);
  assert_error(fs()->read(NULL, NULL, "data/a.bin", 2, false, &f, &err), &err,
               "W4015");
}

static void long_paths(void **state) {
  (void)state;
  char path[2 * WEIR_PATH_BYTES];
  memset(path, 'x', sizeof path);
  path[sizeof path - 1] = '\0';
  refuses("data", path, "W4002", "too long");
  refuses(NULL, path, "W4001", "too long");
  path[WEIR_PATH_BYTES] = '/';
  memcpy(path + WEIR_PATH_BYTES, "/../a.bin", 10);
  for (size_t i = 0; i < WEIR_PATH_BYTES - 2; i += 2) memcpy(path + i, "./", 2);
  path[WEIR_PATH_BYTES - 2] = 'y';
  path[WEIR_PATH_BYTES - 1] = 'y';
  gives("data", path, false, "abc");
}

/* Kernels without openat2 must refuse the same. */
static void steps_are_as_strict(void **state) {
  (void)state;
  assert_int_equal(symlink("../out.bin", "data/link"), 0);
  assert_int_equal(symlink("sub", "data/dir"), 0);
  int root = open("data", O_PATH | O_DIRECTORY);
  for (int by_steps = 0; by_steps < 2; by_steps++) {
    int fd = weir_fs_open_beneath(root, "sub/b.bin", by_steps);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(weir_fs_open_beneath(root, "link", by_steps), -1);
    assert_int_equal(errno, ELOOP);
    assert_int_equal(weir_fs_open_beneath(root, "dir/b.bin", by_steps), -1);
    assert_int_equal(errno, ELOOP);
    assert_int_equal(weir_fs_open_beneath(root, "sub/none", by_steps), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(weir_fs_open_beneath(root, "a.bin/x", by_steps), -1);
    assert_int_equal(errno, ENOTDIR);
  }
  close(root);
}

static void copies_live_in_the_allocator(void **state) {
  (void)state;
  weir_counted_allocator c;
  weir_counted_allocator_init(&c, NULL);
  weir_fs mine = weir_system_fs;
  mine.self = &c.base;
  weir_error err = WEIR_ERROR_INIT;
  weir_file f;
  assert_ok(mine.read(mine.self, NULL, "data/a.bin", 9, false, &f, &err), &err);
  assert_int_equal(atomic_load(&c.live_blocks), 1);
  mine.close(mine.self, &f);
  assert_int_equal(atomic_load(&c.live_blocks), 0);
  c.fail_at = 2;
  assert_error(mine.read(mine.self, NULL, "data/a.bin", 9, false, &f, &err),
               &err, "W6001");
}

/* --- pieces --- */

static void shorter_than_before(void **state) {
  (void)state;
  const weir_fs_pieces *p = fs()->pieces;
  weir_error err = WEIR_ERROR_INIT;
  weir_piece_file f;
  char bytes[3];
  assert_ok(p->open(NULL, "data", "a.bin", &f, &err), &err);
  assert_int_equal(truncate("data/a.bin", 1), 0);
  assert_ok(p->read(NULL, &f, "a.bin", bytes, 1, 0, &err), &err);
  assert_error(p->read(NULL, &f, "a.bin", bytes, 3, 0, &err), &err, "W4020");
  assert_int_equal(weir_error_exit_code(err.id), 7);
  p->close(NULL, &f);
}

typedef struct names {
  char text[64];
  int count, most;
} names;

static bool add_name(void *to, const char *name) {
  names *n = to;
  strcat(n->text, name);
  return ++n->count < n->most;
}

static void lists(void **state) {
  (void)state;
  const weir_fs_pieces *p = fs()->pieces;
  weir_error err = WEIR_ERROR_INIT;
  names n = {.most = 9};
  assert_int_equal(symlink("a.bin", "data/link"), 0);
  assert_int_equal(symlink("..", "data/up"), 0);
  assert_ok(p->list(NULL, "data", ".", &n, add_name, &err), &err);
  assert_string_equal(n.text, "a.bin");
  assert_ok(p->list(NULL, "data", "sub", &n, add_name, &err), &err);
  assert_string_equal(n.text, "a.binb.bin");
  assert_ok(p->list(NULL, NULL, "data/sub", &n, add_name, &err), &err);
  assert_int_equal(n.count, 3);
  put("data/sub/c.bin", "c");
  n = (names){.most = 1};
  assert_ok(p->list(NULL, "data", "sub", &n, add_name, &err), &err);
  assert_int_equal(n.count, 1);
  assert_error(p->list(NULL, "data", "up", &n, add_name, &err), &err, "W4002");
  assert_error(p->list(NULL, "data", "..", &n, add_name, &err), &err, "W4002");
  assert_error(p->list(NULL, "data", "no", &n, add_name, &err), &err, "W4001");
  assert_error(p->list(NULL, "data", "a.bin", &n, add_name, &err), &err,
               "W4001");
}

/* --- writing --- */

static weir_status write_text(const char *path, const char *text,
                              weir_error *err) {
  weir_bytes bytes = {(const uint8_t *)text, strlen(text)};
  return fs()->write(NULL, path, bytes, err);
}

static int files_in(const char *path) {
  int n = 0;
  DIR *dir = opendir(path);
  assert_non_null(dir);
  for (struct dirent *e; (e = readdir(dir)) != NULL;)
    if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) n++;
  closedir(dir);
  return n;
}

static void writes(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  char full[256];
  assert_ok(write_text("data/new", "12345", &err), &err);
  gives(NULL, "data/new", false, "12345");
  assert_ok(write_text("data/new", "", &err), &err);
  gives(NULL, "data/new", false, "");
  assert_int_equal(files_in("data"), 3);
  assert_ok(write_text("here", "x", &err), &err);
  snprintf(full, sizeof full, "%s/there", folder);
  assert_ok(write_text(full, "y", &err), &err);
  gives(NULL, "there", false, "y");
}

static void replaces_what_a_link_names(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  struct stat info;
  assert_int_equal(symlink("data/a.bin", "link"), 0);
  assert_int_equal(symlink("nowhere", "dangling"), 0);
  assert_ok(write_text("link", "new", &err), &err);
  gives(NULL, "data/a.bin", false, "new");
  assert_int_equal(lstat("link", &info), 0);
  assert_true(S_ISLNK(info.st_mode));
  assert_error(write_text("dangling", "x", &err), &err, "W5009");
}

static void keeps_the_old_file_when_it_fails(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  assert_error(write_text("data", "x", &err), &err, "W5009");
  assert_error(write_text("none/x", "x", &err), &err, "W5009");
  assert_error(write_text("data/", "x", &err), &err, "W5009");
  assert_error(write_text("", "x", &err), &err, "W5009");
  assert_error(write_text("/dev/full", "x", &err), &err, "W6005");
  assert_ok(write_text("/dev/null", "x", &err), &err);
  for (int i = 0; i < 100; i++) { /* no free temporary name */
    char name[64];
    snprintf(name, sizeof name, "data/.weir-%ld-%d.tmp", (long)getpid(), i);
    put(name, "");
  }
  assert_error(write_text("data/a.bin", "x", &err), &err, "W5009");
  gives(NULL, "data/a.bin", false, "abc");
}

static void clock_goes_forward(void **state) {
  (void)state;
  const weir_clock *clock = weir_env_system()->clock;
  int64_t before = clock->now_ns(clock->self);
  assert_true(before > 0);
  assert_true(clock->now_ns(clock->self) >= before);
}

#define FS_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      FS_TEST(reads),
      FS_TEST(nothing_outside_the_root),
      FS_TEST(regular_files_only),
      FS_TEST(links_on_the_command_line),
      FS_TEST(limit),
      FS_TEST(long_paths),
      FS_TEST(steps_are_as_strict),
      FS_TEST(copies_live_in_the_allocator),
      FS_TEST(shorter_than_before),
      FS_TEST(lists),
      FS_TEST(writes),
      FS_TEST(replaces_what_a_link_names),
      FS_TEST(keeps_the_old_file_when_it_fails),
      cmocka_unit_test(clock_goes_forward),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
