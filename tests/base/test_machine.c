/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of a machine, from folders that look like Linux's. */
#include "runtime/base/machine/machine.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/check.h"

static char folder[64];

static int setup(void **state) {
  (void)state;
  strcpy(folder, "/tmp/weir-machine-XXXXXX");
  return mkdtemp(folder) == NULL;
}

static int teardown(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command) != 0;
}

/* Makes |path| beneath the folder, with the folders above it. */
static void put(const char *path, const char *text) {
  char full[256];
  snprintf(full, sizeof full, "%s/%s", folder, path);
  for (char *slash = full + strlen(folder) + 1;
       (slash = strchr(slash, '/')) != NULL; slash++) {
    *slash = '\0';
    (void)mkdir(full, 0700);
    *slash = '/';
  }
  FILE *f = fopen(full, "w");
  assert_non_null(f);
  assert_true(fputs(text, f) >= 0 && fclose(f) == 0);
}

static void put_cache(int index, const char *type, const char *size,
                      const char *list) {
  const char *const files[][2] = {
      {"type", type}, {"size", size}, {"shared_cpu_list", list}};
  char path[128], text[128];
  for (size_t i = 0; i < 3; i++) {
    snprintf(path, sizeof path, "cpu0/cache/index%d/%s", index, files[i][0]);
    snprintf(text, sizeof text, "%s\n", files[i][1]);
    put(path, text);
  }
}

static void caches(void **state) {
  (void)state;
  weir_machine m;
  put_cache(0, "Data", "48K", "0,2");
  put_cache(1, "Instruction", "64K", "0,2");
  put_cache(2, "Unified", "2M", "0,2");
  put_cache(3, "Unified", "36864K", "0-3,8-11");
  weir_machine_read_at(folder, 4, &m);
  assert_int_equal(m.caches[0].bytes, 48 << 10);
  assert_int_equal(m.caches[1].bytes, 2 << 20);
  assert_int_equal(m.caches[2].bytes, 36 << 20);
  assert_int_equal(m.caches[0].threads, 2);
  assert_int_equal(m.caches[2].threads, 8);
}

/* Text that is none of a cache is not known, and nothing worse. */
static void broken_files(void **state) {
  (void)state;
  weir_machine m;
  put_cache(0, "Data", "32K", "0-99999999999999999999");
  put_cache(1, "Unified", "-4K", "3-1");
  put_cache(2, "Unified", "99999999999999999999K", "");
  weir_machine_read_at(folder, 1, &m);
  assert_int_equal(m.caches[0].bytes, 32 << 10);
  for (int i = 0; i < WEIR_MACHINE_CACHES; i++) {
    assert_int_equal(m.caches[i].threads, 0);
    if (i > 0) assert_int_equal(m.caches[i].bytes, 0);
  }
}

static void cores(void **state) {
  (void)state;
  weir_machine m;
  const char *const file = "topology/thread_siblings_list";
  for (int cpu = 0; cpu < 8; cpu++) { /* 0 and 4 are one core, and so on */
    char path[64], list[16];
    snprintf(path, sizeof path, "cpu%d/%s", cpu, file);
    snprintf(list, sizeof list, "%d,%d\n", cpu % 4, cpu % 4 + 4);
    put(path, list);
  }
  weir_machine_read_at(folder, 8, &m);
  assert_int_equal(m.threads, 8);
  assert_int_equal(m.cores, 4);
  weir_machine_read_at(folder, 5, &m);
  assert_int_equal(m.threads, 5);
  assert_int_equal(m.cores, 4);
  put("cpu1/topology/thread_siblings_list", "0-1\n"); /* neighbours */
  weir_machine_read_at(folder, 2, &m);
  assert_int_equal(m.cores, 1);
}

/* Without files each hardware thread is a core. */
static void no_files(void **state) {
  (void)state;
  weir_machine m;
  weir_machine_read_at("/nowhere", 3, &m);
  assert_int_equal(m.threads, 3);
  assert_int_equal(m.cores, 3);
}

static void this_one(void **state) {
  (void)state;
  weir_machine m;
  weir_machine_read(&m);
  assert_in_range(m.cores, 1, m.threads);
  assert_true(m.name[0] != '\0' && m.name[0] != ' ');
#if defined(__x86_64__)
  assert_true(weir_machine_has(&m, WEIR_MACHINE_SSE2));
  assert_false(weir_machine_has(&m, WEIR_MACHINE_NEON));
  assert_int_equal(weir_machine_has(&m, WEIR_MACHINE_AVX2),
                   __builtin_cpu_supports("avx2") != 0);
  if (weir_machine_has(&m, WEIR_MACHINE_AMX_INT8))
    assert_true(weir_machine_has(&m, WEIR_MACHINE_AMX_TILE));
#endif
  assert_string_equal(weir_machine_set_text(WEIR_MACHINE_SSE2), "sse2");
  assert_string_equal(weir_machine_set_text(WEIR_MACHINE_NEON), "neon");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(caches, setup, teardown),
      cmocka_unit_test_setup_teardown(broken_files, setup, teardown),
      cmocka_unit_test_setup_teardown(cores, setup, teardown),
      cmocka_unit_test(no_files),
      cmocka_unit_test(this_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
