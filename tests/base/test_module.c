/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/base/module_toy.h"
#include "tests/check.h"

/* The loader of modules: the places that it looks at, the files that it
 * refuses. The modules are built beside this program. */

static char beside[PATH_MAX]; /* this program's folder */
static char other[] = "/tmp/weir_module_XXXXXX";

static int64_t clock_now(void *self) {
  return *(int64_t *)self;
}

static weir_module_want want_of(const char *name) {
  return (weir_module_want){.name = name, .version = 5, .error = WEIR_W6004};
}

/* Copies libweir_|src|.so of |beside| to libweir_|dst|.so in |other|. */
static void copy(const char *src, const char *dst, char out[PATH_MAX]) {
  char from[PATH_MAX + 100], line[3 * PATH_MAX];
  snprintf(from, sizeof from, "%s/libweir_%s.so", beside, src);
  snprintf(out, PATH_MAX, "%s/libweir_%s.so", other, dst);
  snprintf(line, sizeof line, "cp '%s' '%s'", from, out);
  assert_int_equal(system(line), 0);
}

static void opens_and_calls(void **state) {
  (void)state;
  weir_counted_allocator counted;
  weir_counted_allocator_init(&counted, NULL);
  int64_t now = 1;
  weir_clock clock = {&now, clock_now};
  weir_env env = {.alloc = &counted.base, .clock = &clock};
  weir_error err = WEIR_ERROR_INIT;
  weir_module_handle module = {0};
  weir_module_want want = want_of("toy");
  assert_ok(weir_module_open(&module, &want, &err), &err);
  const toy_functions *toy = module.functions;
  assert_non_null(toy);
  int v = 0;
  assert_ok(toy->twice(&module.host, &env, 21, &v, &err), &err);
  assert_int_equal(v, 42);
  assert_int_equal(toy->twice(&module.host, &env, -1, &v, &err),
                   WEIR_INVALID_ARGUMENT);
  assert_string_equal(err.id, "W5008");
  assert_string_equal(err.message, "a number below 0");
  now = 0;
  assert_error(toy->twice(&module.host, &env, 1, &v, &err), &err, "W9001");
  assert_string_equal(err.message, "W7777: no such id");
  counted.fail_at = atomic_load(&counted.calls) + 1;
  assert_error(toy->twice(&module.host, &env, 1, &v, &err), &err, "W6001");
  assert_int_equal(atomic_load(&counted.live_blocks), 0);
  /* Once is enough: nothing is looked for again. */
  want.name = "nothing_like_it";
  assert_ok(weir_module_open(&module, &want, &err), &err);
  assert_ptr_equal(module.functions, toy);
}

static void is_found_by_a_folder(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  char path[PATH_MAX];
  copy("toy", "moved", path);
  weir_module_want want = want_of("moved");
  weir_module_handle module = {0};
  want.folder = other;
  assert_error(weir_module_open(&module, &want, &err), &err, "W6004");
  assert_non_null(strstr(err.message, "is the module toy, not moved"));
  /* The folder is looked in first. */
  copy("toy_old", "toy", path);
  want = want_of("toy");
  want.folder = other;
  assert_error(weir_module_open(&module, &want, &err), &err, "W6004");
  assert_non_null(strstr(err.message, other));
  want.folder = NULL;
  assert_ok(weir_module_open(&module, &want, &err), &err);
}

static void other_places_are_not_looked_at(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  char path[PATH_MAX], back[PATH_MAX];
  copy("toy", "elsewhere", path);
  assert_non_null(getcwd(back, sizeof back));
  assert_int_equal(chdir(other), 0);
  assert_int_equal(setenv("LD_LIBRARY_PATH", other, 1), 0);
  weir_module_want want = want_of("elsewhere");
  weir_module_handle module = {0};
  assert_error(weir_module_open(&module, &want, &err), &err, "W6004");
  want.folder = "."; /* not an absolute path */
  assert_error(weir_module_open(&module, &want, &err), &err, "W6004");
  assert_null(module.functions);
  assert_true(module.absent);
  assert_non_null(strstr(err.message, "libweir_elsewhere.so is in none of: "));
  assert_non_null(strstr(err.message, beside));
  assert_null(strstr(err.message, other));
  assert_non_null(strstr(err.hint, "without elsewhere"));
  want.folder = other;
  assert_error(weir_module_open(&module, &want, &err), &err, "W6004");
  assert_non_null(strstr(err.message, "is the module toy"));
  assert_false(module.absent); /* there, and refused */
  assert_int_equal(chdir(back), 0);
  /* From any folder, the ones beside the program are found. */
  assert_int_equal(chdir("/"), 0);
  want = want_of("toy");
  assert_ok(weir_module_open(&module, &want, &err), &err);
  assert_int_equal(chdir(back), 0);
}

/* |name| NULL: the good one, beside this program. */
static void refused(const char *name, uint32_t version, const char *says) {
  weir_error err = WEIR_ERROR_INIT;
  weir_module_want want = want_of(name != NULL ? name : "toy");
  want.version = version;
  want.folder = name != NULL ? other : beside;
  weir_module_handle module = {0};
  assert_error(weir_module_open(&module, &want, &err), &err, "W6004");
  if (strstr(err.message, says) == NULL) fail_msg("%s", err.message);
  assert_null(module.functions);
}

static void wrong_ones_are_refused(void **state) {
  (void)state;
  char path[PATH_MAX];
  refused("toy_old", 5, "its version is 0.0, this one wants 1.5");
  refused("toy_bare", 5, "it has no symbol weir_module");
  copy("toy", "v", path);
  refused("v", 6, "is the module toy, not v");
  refused(NULL, 6, "its version is 1.5, this one wants 1.6");
  copy("toy", "open", path);
  assert_int_equal(chmod(path, 0757), 0);
  refused("open", 5, "can be written by everybody");
  snprintf(path, sizeof path, "%s/libweir_folder.so", other);
  assert_int_equal(mkdir(path, 0700), 0);
  refused("folder", 5, "is not a plain file");
  snprintf(path, sizeof path, "%s/libweir_text.so", other);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs("no library\n", f);
  fclose(f);
  refused("text", 5, "cannot be loaded: ");
  if (geteuid() == 0) { /* only root can give files away */
    copy("toy", "foreign", path);
    assert_int_equal(chown(path, 54321, 54321), 0);
    refused("foreign", 5, "belongs to user 54321");
  }
}

static int setup(void **state) {
  (void)state;
  ssize_t n = readlink("/proc/self/exe", beside, sizeof beside - 1);
  assert_true(n > 0);
  beside[n] = '\0';
  *strrchr(beside, '/') = '\0';
  return mkdtemp(other) == NULL;
}

static int teardown(void **state) {
  (void)state;
  char line[PATH_MAX];
  snprintf(line, sizeof line, "rm -rf '%s'", other);
  return system(line);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(opens_and_calls),
      cmocka_unit_test(is_found_by_a_folder),
      cmocka_unit_test(other_places_are_not_looked_at),
      cmocka_unit_test(wrong_ones_are_refused),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
