/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/env_system.h"
#include "runtime/io/checkpoint/checkpoint_load.h"
#include "runtime/io/checkpoint/checkpoint_open.h"
#include "runtime/io/checkpoint/checkpoint_store.h"
#include "tests/io/checkpoint_check.h"

/* Checkpoints on the real file system, and with the thread. */

static char old_folder[4096], root[64];

static int setup(void **state) {
  (void)state;
  strcpy(root, "/tmp/weir-checkpoint-XXXXXX");
  return getcwd(old_folder, sizeof old_folder) == NULL ||
         mkdtemp(root) == NULL || chdir(root) != 0;
}

static int teardown(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", root);
  return chdir(old_folder) != 0 || system(command) != 0;
}

static weir_checkpoint_store *open_store(
    const char *dir, const weir_checkpoint_options *options) {
  weir_error err = WEIR_ERROR_INIT;
  weir_checkpoint_store *store = NULL;
  assert_ok(
      weir_checkpoint_store_open(weir_env_system(), dir, options, &store, &err),
      &err);
  return store;
}

static void refuses_store(const char *dir,
                          const weir_checkpoint_options *options,
                          const char *id, const char *says) {
  weir_error err = WEIR_ERROR_INIT;
  weir_checkpoint_store *store = NULL;
  assert_error(
      weir_checkpoint_store_open(weir_env_system(), dir, options, &store, &err),
      &err, id);
  if (strstr(err.message, says) == NULL)
    fail_msg("%s, want %s", err.message, says);
  assert_null(store);
}

static void put_file(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, text, strlen(text)), strlen(text));
  close(fd);
}

static void comes_back(void **state) {
  (void)state;
  weir_checkpoint_options o = {.keep = 2, .shard_bytes = 300};
  weir_error err = WEIR_ERROR_INIT;
  weir_checkpoint_store *store = open_store("a/b", &o);
  for (uint64_t step = 1; step <= 3; step++)
    assert_ok(save_step(store, step, &err), &err);
  weir_checkpoint_store_close(store);
  assert_int_equal(opens(weir_env_system(), "a/b"), 3);
  assert_int_equal(opens(weir_env_system(), "a/b/step-00000002.json"), 2);
  assert_int_equal(rename("a/b/step-00000003.json", "a/b/best.json"), 0);
  assert_int_equal(opens(weir_env_system(), "a/b/best.json"), 3);
  assert_int_equal(chdir("a/b"), 0);
  assert_int_equal(opens(weir_env_system(), "best.json"), 3);
  does_not_open(weir_env_system(), "none.json", -1, "W4001", "No such file");
  struct stat info;
  assert_int_equal(stat("step-00000001.json", &info), -1);
  assert_int_equal(stat(".weir-probe.tmp", &info), -1);
}

/* A shard or manifest is a plain file of the folder: one behind a link, even to
 * a sound file, is damage, and so is a pipe, which must not stop us. */
static void links_are_damage(void **state) {
  (void)state;
  static const char *const kFiles[] = {
      "run/step-00000002.json", "run/step-00000002-00000-of-00001.safetensors"};
  weir_error err = WEIR_ERROR_INIT;
  weir_checkpoint_store *store = open_store("run", NULL);
  assert_ok(save_step(store, 1, &err), &err);
  assert_ok(save_step(store, 2, &err), &err);
  weir_checkpoint_store_close(store);
  assert_int_equal(symlink("run", "latest"), 0); /* the user's own word */
  assert_int_equal(opens(weir_env_system(), "latest"), 2);
  for (size_t i = 0; i < 2; i++) {
    assert_int_equal(rename(kFiles[i], "moved"), 0);
    for (int kind = 0; kind < 3; kind++) {
      if (kind == 0) assert_int_equal(symlink("../moved", kFiles[i]), 0);
      if (kind == 1) assert_int_equal(mkfifo(kFiles[i], 0600), 0);
      if (kind == 2) assert_int_equal(mkdir(kFiles[i], 0700), 0);
      const char *says = kind == 0   ? "a symbolic link stands in its path"
                         : kind == 1 ? "a pipe"
                                     : "a folder";
      assert_int_equal(opens(weir_env_system(), "run"), 1);
      does_not_open(weir_env_system(), "run", 2, i == 0 ? "W4002" : "W4045",
                    says);
      does_not_open(weir_env_system(), "run/step-00000002.json", -1,
                    i == 0 ? "W4002" : "W4045", says);
      assert_int_equal(remove(kFiles[i]), 0);
    }
    assert_int_equal(rename("moved", kFiles[i]), 0);
    assert_int_equal(opens(weir_env_system(), "run"), 2);
  }
}

/* A folder that a graph names: beneath its root, and new, empty or ours. */
static void a_graphs_folder(void **state) {
  (void)state;
  weir_checkpoint_options o = {.root = "."};
  weir_error err = WEIR_ERROR_INIT;
  weir_checkpoint *c = NULL;
  weir_checkpoint_store *store = open_store("a/new", &o);
  assert_ok(save_step(store, 1, &err), &err);
  weir_checkpoint_store_close(store);
  put_file("a/new/notes", "mine");
  store = open_store("a/new", &o); /* the lock marks it */
  weir_checkpoint_store_close(store);
  assert_int_equal(unlink("a/new/.weir-lock"), 0);
  refuses_store("a/new", &o, "W4042", "weir did not make it");
  assert_int_equal(unlink("a/new/notes"), 0);
  store = open_store("a/new", &o); /* a copy without hidden files */
  weir_checkpoint_store_close(store);
  assert_int_equal(mkdir("empty", 0700), 0);
  store = open_store("empty", &o);
  weir_checkpoint_store_close(store);
  assert_int_equal(mkdir("full", 0700), 0);
  put_file("full/notes", "mine");
  refuses_store("full", &o, "W4042", "it holds 'notes'");
  assert_int_equal(access("full/.weir-lock", F_OK), -1);
  store = open_store("full", NULL); /* the command line may */
  weir_checkpoint_store_close(store);
  assert_int_equal(symlink("a/new", "link"), 0);
  refuses_store("link", &o, "W4042", "a symbolic link stands in its path");
  refuses_store("../x", &o, "W4042", "leaves its folder");
  const weir_env *env = weir_env_system();
  assert_ok(weir_checkpoint_open_newest(env, ".", "a/new", NULL, &c, &err),
            &err);
  weir_checkpoint_release(c);
  assert_error(weir_checkpoint_open_newest(env, ".", "link", NULL, &c, &err),
               &err, "W4040");
  assert_non_null(strstr(err.message, "symbolic link"));
}

static void unusable_folders(void **state) {
  (void)state;
  weir_checkpoint_options huge = {.expected_bytes = UINT64_MAX - 1};
  put_file("file", "x");
  assert_int_equal(symlink("loop", "loop"), 0);
  refuses_store("file", NULL, "W4042", "a file stands in its place");
  refuses_store("loop", NULL, "W4042", "links lead in a circle");
  refuses_store("here", &huge, "W6005", "a checkpoint needs about");
  refuses_store("/proc/self", NULL, "W4042", "cannot be written");
  does_not_open(weir_env_system(), "file", -1, "W4040", "stands in its place");
  assert_int_equal(mkdir("locked", 0755), 0);
  assert_int_equal(chmod("locked", 0555), 0);
  assert_int_equal(chmod(root, 0755), 0);
  pid_t child = fork();
  if (child == 0) { /* root may write where others may not */
    weir_error err = WEIR_ERROR_INIT;
    weir_checkpoint_store *store = NULL;
    if (geteuid() == 0 && setuid(65534) != 0) _exit(2);
    (void)!weir_checkpoint_store_open(weir_env_system(), "locked", NULL, &store,
                                      &err);
    _exit(strcmp(err.id, "W4042") == 0 &&
                  strstr(err.message, "Permission denied") != NULL
              ? 0
              : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  assert_int_equal(status, 0);
}

static void one_run_at_a_time(void **state) {
  (void)state;
  weir_checkpoint_store *store = open_store("run", NULL);
  put_file("run/step-00000001-00000-of-00001.safetensors.tmp", "half");
  refuses_store("run", NULL, "W4043", "another run saves");
  struct stat info; /* the other run's unfinished file stays */
  const char *left = "run/step-00000001-00000-of-00001.safetensors.tmp";
  assert_int_equal(stat(left, &info), 0);
  pid_t child = fork();
  if (child == 0) {
    weir_error err = WEIR_ERROR_INIT;
    weir_checkpoint_store *other = NULL;
    (void)!weir_checkpoint_store_open(weir_env_system(), "run", NULL, &other,
                                      &err);
    _exit(strcmp(err.id, "W4043") == 0 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  assert_int_equal(status, 0);
  weir_checkpoint_store_close(store);
  weir_checkpoint_store_close(open_store("run", NULL));
  assert_int_equal(stat(left, &info), -1);
}

/* --- the thread --- */

static const weir_checkpoint_options kAsync = {.keep = 2, .async = true};

static void saves_beside(void **state) {
  (void)state;
  weir_checkpoint_store *store = open_store("run", &kAsync);
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(weir_checkpoint_wait(store, &err), &err);
  for (uint64_t step = 1; step <= 20; step++) {
    assert_ok(save_step(store, step, &err), &err);
    if (step % 3 == 0) assert_ok(weir_checkpoint_wait(store, &err), &err);
  }
  weir_checkpoint_store_close(store); /* waits */
  assert_int_equal(opens(weir_env_system(), "run"), 20);
  does_not_open(weir_env_system(), "run", 18, "W4048", "");
}

/* A failure is told once, by the next call; the save after it is made. */
static void tells_of_failures(void **state) {
  (void)state;
  for (int by_wait = 0; by_wait < 2; by_wait++) {
    sim_fs *fs = sim_fs_create(weir_allocator_system());
    weir_env env = env_of(fs);
    weir_error err = WEIR_ERROR_INIT;
    weir_checkpoint_store *store = NULL;
    assert_ok(weir_checkpoint_store_open(&env, "run", &kAsync, &store, &err),
              &err);
    fs->fault_at = fs->ops + 4;
    assert_ok(save_step(store, 1, &err), &err);
    if (by_wait)
      assert_error(weir_checkpoint_wait(store, &err), &err, "W6005");
    else
      assert_error(save_step(store, 2, &err), &err, "W6005");
    assert_ok(weir_checkpoint_wait(store, &err), &err);
    assert_ok(save_step(store, 3, &err), &err);
    weir_checkpoint_store_close(store);
    assert_int_equal(opens(&env, "run"), 3);
    weir_checkpoint *c = NULL;
    weir_status s = weir_checkpoint_open(&env, "run", 2, NULL, &c, &err);
    assert_int_equal(s == WEIR_OK, !by_wait);
    weir_checkpoint_release(c);
    sim_fs_destroy(fs);
  }
}

/* Tensors may go as soon as save has returned. */
static void keeps_what_it_writes(void **state) {
  (void)state;
  weir_counted_allocator c;
  weir_error err = WEIR_ERROR_INIT;
  weir_counted_allocator_init(&c, NULL);
  weir_env env = *weir_env_system();
  env.alloc = &c.base;
  weir_checkpoint_store *store = NULL;
  assert_ok(weir_checkpoint_store_open(&env, "run", &kAsync, &store, &err),
            &err);
  for (uint64_t step = 1; step <= 5; step++) {
    int64_t dims[] = {200000};
    weir_shape shape = weir_shape_of(1, dims);
    weir_tensor *t = NULL;
    assert_ok(weir_tensor_create_shaped(&c.base, WEIR_F32, &shape, &t, &err),
              &err);
    for (int64_t i = 0; i < dims[0]; i++)
      ((float *)t->data)[i] = (float)i + (float)step;
    weir_checkpoint_entry e = {WEIR_SV_LIT("t"), WEIR_CHECKPOINT_VARIABLE, t};
    weir_checkpoint_info info = {.step = step};
    assert_ok(weir_checkpoint_save(store, &info, &e, 1, &err), &err);
    weir_tensor_unref(t);
  }
  weir_checkpoint_store_close(store);
  weir_checkpoint *found = NULL;
  assert_ok(weir_checkpoint_open(&env, "run", 5, NULL, &found, &err), &err);
  weir_tensor *t = weir_checkpoint_tensor(found, 0);
  for (int64_t i = 0; i < 200000; i += 999)
    assert_true(weir_tensor_get_f64(t, i) == (double)((float)i + 5.0f));
  weir_tensor_unref(t);
  weir_checkpoint_release(found);
  assert_int_equal(atomic_load(&c.live_blocks), 0);
}

/* --- a process that is killed --- */

/* Saves step after step until it is killed; |*acknowledged| is the last one
 * that is on disk for sure. */
static void save_for_ever(atomic_ullong *acknowledged, bool async) {
  weir_checkpoint_options o = {.keep = 2, .shard_bytes = 300, .async = async};
  weir_error err = WEIR_ERROR_INIT;
  weir_checkpoint_store *store = NULL;
  weir_status s =
      weir_checkpoint_store_open(weir_env_system(), "run", &o, &store, &err);
  for (uint64_t step = atomic_load(acknowledged) + 1; s == WEIR_OK; step++) {
    s = save_step(store, step, &err);
    if (s == WEIR_OK) s = weir_checkpoint_wait(store, &err);
    if (s == WEIR_OK) atomic_store(acknowledged, step);
  }
  fprintf(stderr, "%s %s\n", err.id, err.message);
  _exit(1);
}

static void killed_at_any_time(void **state) {
  (void)state;
  atomic_ullong *acknowledged = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(acknowledged != MAP_FAILED);
  for (unsigned round = 0; round < 40; round++) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) save_for_ever(acknowledged, round % 2 == 0);
    /* In some rounds it gets on, however slow the disk is. */
    uint64_t before = atomic_load(acknowledged);
    for (int ms = 0;
         round % 5 == 0 && ms < 20000 && atomic_load(acknowledged) == before;
         ms++)
      usleep(1000);
    usleep(500 + round * 7919 % 20000);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status));
    uint64_t last = atomic_load(acknowledged);
    if (last == 0) continue;
    uint64_t found = opens(weir_env_system(), "run");
    assert_true(found == last || found == last + 1);
    atomic_store(acknowledged, found);
  }
  assert_true(atomic_load(acknowledged) > 5);
  /* Kills before the oldest goes leave more than two; the next save, which
   * ends, removes all but two, of four files each. */
  weir_checkpoint_options o = {.keep = 2, .shard_bytes = 300};
  weir_error err = WEIR_ERROR_INIT;
  weir_checkpoint_store *store = open_store("run", &o);
  assert_ok(save_step(store, atomic_load(acknowledged) + 1, &err), &err);
  weir_checkpoint_store_close(store);
  assert_int_equal(
      system("test $(ls run | wc -l) -eq 8 && ! ls -A run | grep -q tmp"), 0);
  munmap(acknowledged, 4096);
}

/* --- a disk that is full --- */

enum { kSkip = 77 };

/* In a name space of its own; exits with 0, 1 or kSkip. */
static int on_small_disk(size_t bytes) {
  char size[64];
  weir_error err = WEIR_ERROR_INIT;
  weir_checkpoint_store *store = NULL;
  weir_checkpoint_options o = {.keep = 1};
  if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
    return kSkip;
  snprintf(size, sizeof size, "size=%zu", bytes);
  if (mkdir("disk", 0700) != 0 ||
      mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
      mount("none", "disk", "tmpfs", 0, size) != 0)
    return kSkip;
  const weir_env *env = weir_env_system();
  weir_status s = weir_checkpoint_store_open(env, "disk/run", &o, &store, &err);
  uint64_t saved = 0;
  for (uint64_t step = 1; s == WEIR_OK && step <= 3; step++) {
    s = save_step(store, step, &err);
    if (s == WEIR_OK) saved = step;
  }
  weir_checkpoint_store_close(store);
  bool good = s == WEIR_OK || strcmp(err.id, "W6005") == 0;
  weir_checkpoint *c = NULL;
  if (saved > 0)
    good =
        good &&
        weir_checkpoint_open(env, "disk/run", -1, NULL, &c, &err) == WEIR_OK &&
        weir_checkpoint_about(c)->step == saved;
  weir_checkpoint_release(c);
  return !good ? 1 : s == WEIR_OK ? 0 : saved > 0 ? 10 : 11;
}

static void full_disks(void **state) {
  (void)state;
  int outcomes[128] = {0};
  for (size_t pages = 1; pages < 16; pages++) {
    int status = -1;
    pid_t child = fork();
    if (child == 0) _exit(on_small_disk(pages * 4096));
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status));
    int code = WEXITSTATUS(status);
    if (code == kSkip) {
      print_message("skipped: mounting a tmpfs is not permitted here\n");
      skip();
    }
    if (code == 1) fail_msg("with %d pages", (int)pages);
    outcomes[code]++;
    rmdir("disk");
  }
  /* Some are too small, some are large enough. */
  assert_true(outcomes[0] > 0 && outcomes[11] > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(comes_back, setup, teardown),
      cmocka_unit_test_setup_teardown(links_are_damage, setup, teardown),
      cmocka_unit_test_setup_teardown(a_graphs_folder, setup, teardown),
      cmocka_unit_test_setup_teardown(unusable_folders, setup, teardown),
      cmocka_unit_test_setup_teardown(one_run_at_a_time, setup, teardown),
      cmocka_unit_test_setup_teardown(saves_beside, setup, teardown),
      cmocka_unit_test_setup_teardown(tells_of_failures, setup, teardown),
      cmocka_unit_test_setup_teardown(keeps_what_it_writes, setup, teardown),
      cmocka_unit_test_setup_teardown(killed_at_any_time, setup, teardown),
      cmocka_unit_test_setup_teardown(full_disks, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
