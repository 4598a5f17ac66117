/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/env_system.h"
#include "runtime/base/fs/fs_system.h"
#include "runtime/io/run_folder.h"
#include "tests/check.h"

/* Names that a graph may give, and files saved under them, on the real file
 * system: each test has a fresh folder, which is also the current one. */

static char old_folder[WEIR_PATH_BYTES], root[64];

static int setup(void **state) {
  (void)state;
  strcpy(root, "/tmp/weir-run-XXXXXX");
  return getcwd(old_folder, sizeof old_folder) == NULL ||
         mkdtemp(root) == NULL || chdir(root) != 0;
}

static int teardown(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", root);
  return chdir(old_folder) != 0 || system(command) != 0;
}

/* ---- Names */

static weir_run_name named(const char *text, size_t size) {
  return (weir_run_name){.text = {text, size}, .key = "save", .plain = true};
}

static void sound_names(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  static const char *const kGood[] = {
      "words.txt", "a/b/c",   "./ckpt",       "a/./b",  "run/",
      "x..y",      "a.b/c.d", "\xc3\xbc ber", "truely", "nullx"};
  for (size_t i = 0; i < sizeof kGood / sizeof kGood[0]; i++) {
    weir_run_name n = named(kGood[i], strlen(kGood[i]));
    assert_ok(weir_run_name_check(&n, &err), &err);
  }
  weir_run_name n = named("true", 4);
  n.plain = false; /* in quotes it is a text */
  assert_ok(weir_run_name_check(&n, &err), &err);
}

static void odd_names(void **state) {
  (void)state;
  char longest[1100];
  memset(longest, 'a', sizeof longest);
  static const struct {
    const char *text;
    size_t size;
    const char *says;
  } kBad[] = {{"", 0, "must be a file's name"},
              {"true", 4, "must be a file's name"},
              {"null", 4, "must be a file's name"},
              {"~", 1, "must be a file's name"},
              {"/etc/x", 6, "absolute"},
              {"..", 2, "leaves the run folder"},
              {"a/../../x", 9, "leaves the run folder"},
              {"a/..", 4, "leaves the run folder"},
              {".", 1, "begins with a dot"},
              {"a/.", 3, "begins with a dot"},
              {".bashrc", 7, "begins with a dot"},
              {"a/.git/hooks", 12, "begins with a dot"},
              {".weir-lock", 10, "begins with a dot"},
              {"a//b", 4, "part of the path is empty"},
              {"a\0b", 3, "no NUL"},
              {"a\nb", 3, "control characters"},
              {"a\x1b[2J", 5, "control characters"},
              {"a\x7f", 2, "control characters"}};
  for (size_t i = 0; i < sizeof kBad / sizeof kBad[0]; i++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_run_name n = named(kBad[i].text, kBad[i].size);
    assert_error(weir_run_name_check(&n, &err), &err, "W1150");
    if (strstr(err.message, kBad[i].says) == NULL)
      fail_msg("%s, want %s", err.message, kBad[i].says);
    assert_non_null(strstr(err.hint, "beneath the run folder"));
  }
  for (size_t size = 256; size < 1100; size += 800) {
    weir_error err = WEIR_ERROR_INIT;
    weir_run_name n = named(longest, size);
    assert_error(weir_run_name_check(&n, &err), &err, "W1150");
    assert_non_null(strstr(err.message, "too long"));
  }
  weir_error err = WEIR_ERROR_INIT;
  weir_run_name n = named("a/b.csv", 7);
  n.is_single = true;
  assert_error(weir_run_name_check(&n, &err), &err, "W1150");
}

/* ---- Places */

static void places(void **state) {
  (void)state;
  static const struct {
    weir_run_folder run;
    const char *name, *root, *path;
  } kCases[] = {{{"out", NULL}, "", NULL, "out"},
                {{"out", NULL}, "logs", "out", "logs"},
                {{".", "ckpt"}, "", ".", "ckpt"},
                {{".", "ckpt"}, "logs/a", ".", "ckpt/logs/a"}};
  weir_arena arena;
  weir_run_place place;
  weir_error err = WEIR_ERROR_INIT;
  weir_arena_init(&arena, weir_allocator_system());
  for (size_t i = 0; i < sizeof kCases / sizeof kCases[0]; i++) {
    assert_ok(weir_run_place_of(&kCases[i].run, weir_sv_from(kCases[i].name),
                                "dir", &arena, &place, &err),
              &err);
    assert_string_equal(place.path, kCases[i].path);
    if (kCases[i].root == NULL)
      assert_null(place.root);
    else
      assert_string_equal(place.root, kCases[i].root);
  }
  weir_run_folder none = {NULL, NULL};
  assert_error(weir_run_place_of(&none, WEIR_SV_LIT("logs"), "dir", &arena,
                                 &place, &err),
               &err, "W1151");
  assert_non_null(strstr(err.hint, "--out"));
  weir_arena_release(&arena);
}

/* ---- Files */

static weir_status save_with(const weir_env *env, const char *name,
                             const char *text, weir_error *err) {
  weir_run_folder run = {"run", NULL};
  weir_run_name n = named(name, strlen(name));
  weir_bytes content = {(const uint8_t *)text, strlen(text)};
  return weir_run_save(env, &run, &n, content, err);
}

static void saves(const char *name, const char *text) {
  weir_error err = WEIR_ERROR_INIT;
  assert_ok(save_with(weir_env_system(), name, text, &err), &err);
}

static void refuses(const char *name, const char *id, const char *says) {
  weir_error err = WEIR_ERROR_INIT;
  assert_error(save_with(weir_env_system(), name, "new", &err), &err, id);
  if (strstr(err.message, says) == NULL) fail_msg("%s", err.message);
}

static void put(const char *path, const char *text) {
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs(text, f);
  assert_int_equal(fclose(f), 0);
}

static void holds(const char *path, const char *want) {
  char got[64] = "";
  FILE *f = fopen(path, "r");
  if (f == NULL) fail_msg("no %s", path);
  got[fread(got, 1, sizeof got - 1, f)] = '\0';
  fclose(f);
  assert_string_equal(got, want);
}

static void saves_anew_and_the_same(void **state) {
  (void)state;
  struct stat before, after;
  saves("w.txt", "a\n");
  saves("sub/dir/w.txt", "b\n");
  saves("empty", "");
  saves("empty", "");
  holds("run/w.txt", "a\n");
  holds("run/sub/dir/w.txt", "b\n");
  assert_int_equal(stat("run/w.txt", &before), 0);
  saves("w.txt", "a\n");
  assert_int_equal(stat("run/w.txt", &after), 0);
  assert_int_equal(before.st_ino, after.st_ino);
  assert_int_equal(chmod("run/w.txt", 0400), 0); /* needs no right to write */
  saves("w.txt", "a\n");
  put("run/.weir-save.tmp", "left by a run that is gone");
  saves("z.txt", "z\n");
  holds("run/z.txt", "z\n");
  assert_int_equal(access("run/.weir-save.tmp", F_OK), -1);
}

static void replaces_nothing(void **state) {
  (void)state;
  assert_int_equal(mkdir("run", 0700), 0);
  put("outside", "kept");
  put("run/same_size", "old");
  put("run/longer", "older");
  put("run/shorter", "x");
  assert_int_equal(symlink("../outside", "run/link"), 0);
  assert_int_equal(symlink("../made", "run/dangling"), 0);
  assert_int_equal(symlink("..", "run/up"), 0);
  assert_int_equal(mkfifo("run/pipe", 0600), 0);
  assert_int_equal(mkdir("run/folder", 0700), 0);
  refuses("same_size", "W5009", "holds something else");
  refuses("longer", "W5009", "holds something else");
  refuses("shorter", "W5009", "holds something else");
  refuses("link", "W4002", "link");
  refuses("dangling", "W4002", "link");
  refuses("up/outside", "W4002", "link");
  refuses("pipe", "W4002", "a pipe");
  refuses("folder", "W4002", "a folder");
  refuses("folder/", "W1150", "it is a folder");
  refuses("same_size/x", "W4002", "a file stands in its place");
  refuses("../outside", "W1150", "leaves");
  holds("outside", "kept");
  holds("run/same_size", "old");
  holds("run/longer", "older");
  holds("run/shorter", "x");
  assert_int_equal(access("made", F_OK), -1);
}

static void each_allocation_fails(void **state) {
  (void)state;
  for (uint64_t k = 1;; k++) {
    weir_counted_allocator c;
    weir_counted_allocator_init(&c, NULL);
    weir_fs fs = weir_system_fs;
    fs.self = &c.base;
    weir_env env = {&c.base, &fs, weir_env_system()->clock};
    weir_error err = WEIR_ERROR_INIT;
    char name[32];
    snprintf(name, sizeof name, "d/%d", (int)k);
    c.fail_at = k;
    weir_status s = save_with(&env, name, "text", &err);
    if (s == WEIR_OK) s = save_with(&env, name, "text", &err);
    assert_int_equal(atomic_load(&c.live_blocks), 0);
    if (s == WEIR_OK) {
      assert_true(k > 5);
      break;
    }
    assert_string_equal(err.id, "W6001");
    assert_int_equal(access("run/d/.weir-save.tmp", F_OK), -1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sound_names),
      cmocka_unit_test(odd_names),
      cmocka_unit_test(places),
      cmocka_unit_test_setup_teardown(saves_anew_and_the_same, setup, teardown),
      cmocka_unit_test_setup_teardown(replaces_nothing, setup, teardown),
      cmocka_unit_test_setup_teardown(each_allocation_fails, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
