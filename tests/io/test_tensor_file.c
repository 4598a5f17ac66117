/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/env_system.h"
#include "runtime/io/array/tensor_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/fs/fs_system.h"
#include "tests/io/io_check.h"

static char root[1024];

static int find_root(void **state) {
  (void)state;
  const char *source = getenv("WEIR_SOURCE_ROOT");
  snprintf(root, sizeof root, "%s/tests/io/data", source ? source : ".");
  return 0;
}

static weir_tensor *load(const char *path, const char *member) {
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *t = NULL;
  assert_ok(
      weir_tensor_file_read(weir_env_system(), root, path, member, &t, &err),
      &err);
  return t;
}

static void refuses(const char *path, const char *member, const char *id,
                    const char *says, const char *hint) {
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *t = NULL;
  assert_error(
      weir_tensor_file_read(weir_env_system(), root, path, member, &t, &err),
      &err, id);
  if (strstr(err.message, says) == NULL) fail_msg("%s", err.message);
  if (strstr(err.hint, hint) == NULL) fail_msg("%s", err.hint);
  assert_int_equal(weir_error_exit_code(err.id), 5);
  assert_null(t);
}

static const double kGrid[] = {0.5, 1.5, 2.5, 3.5, 4.5, 5.5};
static const int64_t kDims[] = {2, 3};

static void the_first_bytes_tell(void **state) {
  (void)state;
  io_holds(load("f4.npy", NULL), WEIR_F32, 2, kDims, kGrid);
  io_holds(load("f4.idx", NULL), WEIR_F32, 2, kDims, kGrid);
  io_holds(load("stored.npz", "grid"), WEIR_F32, 2, kDims, kGrid);
  io_holds(load("deflated.npz", "grid"), WEIR_F32, 2, kDims, kGrid);
  weir_tensor *t = load("rgb.png", NULL);
  assert_int_equal(t->shape.dims[2].value, 3);
  weir_tensor_unref(t);
  t = load("u1.idx.gz", NULL);
  assert_int_equal(t->shape.rank, 3);
  weir_tensor_unref(t);
  t = load("some.safetensors", "cube"); /* mapped */
  assert_true(t->read_only);
  assert_int_equal(weir_tensor_get_i64(t, 0), -3);
  weir_tensor_unref(t);
  io_holds(load("some.safetensors", "grid"), WEIR_F32, 2, kDims, kGrid);
}

static void bytes_give_copies(void **state) {
  (void)state;
  io_bytes b = io_fixture("some.safetensors");
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *t = NULL;
  assert_ok(weir_tensor_bytes_read(weir_allocator_system(),
                                   (weir_bytes){b.data, b.size}, "stdin",
                                   "grid", &t, &err),
            &err);
  memset(b.data, 0, sizeof b.data);
  assert_false(t->read_only);
  io_holds(t, WEIR_F32, 2, kDims, kGrid);
}

static void members(void **state) {
  (void)state;
  refuses("stored.npz", NULL, "W4010", "holds 2 tensors", "grid, cube");
  refuses("stored.npz", "gird", "W4010", "no tensor 'gird'",
          "did you mean 'grid'?");
  refuses("stored.npz", "something", "W4010", "no tensor", "grid, cube");
  refuses("some.safetensors", "cub", "W4010", "no tensor", "'cube'");
  refuses("some.safetensors", NULL, "W4010", "holds 4", "cube, grid");
  refuses("f4.npy", "x", "W4010", "one tensor", "");
  refuses("u1.idx.gz", "x", "W4010", "one tensor", "");
  refuses("rgb.png", "x", "W4010", "one tensor", "");
  refuses("make.py", NULL, "W4008", "no known format", "");
  refuses("none.npy", NULL, "W4001", "No such file", "");
  refuses("../test_npy.c", NULL, "W4002", "leaves its folder", "");
}

/* --- files made here --- */

static char folder[64];

static int make_folder(void **state) {
  (void)state;
  strcpy(folder, "/tmp/weir-io-XXXXXX");
  return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command);
}

static weir_status write_file(const char *name, size_t count, weir_error *err) {
  char path[128];
  weir_sv names[] = {WEIR_SV_LIT("x"), WEIR_SV_LIT("y")};
  weir_tensor *tensors[] = {io_tensor(WEIR_F32, 2, kDims, kGrid),
                            io_tensor(WEIR_U8, 0, NULL, NULL)};
  snprintf(path, sizeof path, "%s/%s", folder, name);
  weir_status s = weir_tensor_file_write(weir_env_system(), path, names,
                                         tensors, count, err);
  weir_tensor_unref(tensors[0]);
  weir_tensor_unref(tensors[1]);
  return s;
}

static void writes_by_ending(void **state) {
  (void)state;
  const char *names[] = {"a.npy", "a.npz", "a.safetensors"};
  weir_error err = WEIR_ERROR_INIT;
  for (int i = 0; i < 3; i++) {
    weir_tensor *t = NULL;
    assert_ok(write_file(names[i], 1, &err), &err);
    assert_ok(weir_tensor_file_read(weir_env_system(), folder, names[i], NULL,
                                    &t, &err),
              &err);
    io_holds(t, WEIR_F32, 2, kDims, kGrid);
  }
  assert_ok(write_file("a.npz", 2, &err), &err);
  assert_error(write_file("a.npy", 2, &err), &err, "W5009");
  assert_error(write_file("a.txt", 1, &err), &err, "W4008");
  assert_error(write_file("none/a.npy", 1, &err), &err, "W5009");
}

/* F11, and files that other processes may have left. */
static void what_is_not_a_data_file(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *t = NULL;
  char path[128];
  assert_ok(write_file("a.npy", 1, &err), &err);
  snprintf(path, sizeof path, "%s/pipe", folder);
  assert_int_equal(mkfifo(path, 0600), 0);
  snprintf(path, sizeof path, "%s/link", folder);
  assert_int_equal(symlink("a.npy", path), 0);
  const char *const refused[] = {"pipe",        "link",           ".",
                                 "/etc/passwd", "/proc/self/mem", "../a.npy"};
  for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
    assert_error(weir_tensor_file_read(weir_env_system(), folder, refused[i],
                                       NULL, &t, &err),
                 &err, "W4002");
    assert_int_equal(weir_error_exit_code(err.id), 5);
  }
  snprintf(path, sizeof path, "%s/empty.safetensors", folder);
  assert_ok(weir_env_system()->fs->write(NULL, path, (weir_bytes){0}, &err),
            &err);
  assert_error(weir_tensor_file_read(weir_env_system(), folder,
                                     "empty.safetensors", NULL, &t, &err),
               &err, "W4005");
}

/* With every allocation failing in turn, the file's copy included. */
static void no_memory(void **state) {
  (void)state;
  const char *const files[][2] = {{"f4.npy", NULL},
                                  {"stored.npz", "grid"},
                                  {"some.safetensors", "grid"},
                                  {"u1.idx.gz", NULL}};
  for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
    weir_status s = WEIR_UNKNOWN;
    for (uint64_t k = 1; s != WEIR_OK; k++) {
      weir_counted_allocator c;
      weir_error err = WEIR_ERROR_INIT;
      weir_tensor *t = NULL;
      weir_counted_allocator_init(&c, NULL);
      c.fail_at = k;
      weir_fs fs = weir_system_fs;
      fs.self = &c.base;
      weir_env env = {&c.base, &fs, NULL};
      s = weir_tensor_file_read(&env, root, files[i][0], files[i][1], &t, &err);
      if (s != WEIR_OK) assert_string_equal(err.id, "W6001");
      weir_tensor_unref(t);
      assert_int_equal(atomic_load(&c.live_blocks), 0);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_first_bytes_tell),
      cmocka_unit_test(bytes_give_copies),
      cmocka_unit_test(members),
      cmocka_unit_test_setup_teardown(writes_by_ending, make_folder,
                                      remove_folder),
      cmocka_unit_test_setup_teardown(what_is_not_a_data_file, make_folder,
                                      remove_folder),
      cmocka_unit_test(no_memory),
  };
  return cmocka_run_group_tests(tests, find_root, NULL);
}
