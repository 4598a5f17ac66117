/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that were timed: the quickest wins, the file keeps it, and a file
 * that is broken, of another machine, or cannot be written changes nothing. */
#include "kernels/tune/tuned.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels/profile.h"
#include "kernels/tune/timed.h"
#include "kernels/tune/trial.h"
#include "runtime/base/env_system.h"
#include "tests/kernels/bed.h"

/* ---- Two kernels for exp, one slow or failing, in a registry of their own */

static int64_t slow_ns;
static bool second_fails;

static weir_status run_slow(const weir_args *args) {
  (void)args;
  const struct timespec t = {0, slow_ns};
  nanosleep(&t, NULL);
  return WEIR_OK;
}

static weir_status run_quick(const weir_args *args) {
  return second_fails ? weir_fail(args->err, WEIR_W5001, NULL, "planted")
                      : WEIR_OK;
}

static const weir_kernel_def kSlow = {.op = "exp",
                                      .name = "cpu.slow",
                                      .device = WEIR_CPU,
                                      .types = WEIR_F32,
                                      .run = run_slow};
static const weir_kernel_def kQuick = {.op = "exp",
                                       .name = "cpu.quick",
                                       .device = WEIR_CPU,
                                       .types = WEIR_F32,
                                       .run = run_quick};
static const weir_kernel_def *const kBoth[] = {&kSlow, &kQuick};
static const weir_registry kRegistry = {.kernels = kBoth, .kernel_count = 2};

/* ---- A world with a file, whose disk may be full */

typedef struct world {
  weir_counted_allocator memory;
  weir_env env;
  weir_fs fs;
  char folder[64], path[96];
  int warnings;
  weir_error last;
} world;

static bool disk_is_full;

static weir_status write_file(void *self, const char *path, weir_bytes bytes,
                              weir_error *err) {
  if (disk_is_full) return weir_fail(err, WEIR_W6005, NULL, "no room left");
  return weir_env_system()->fs->write(self, path, bytes, err);
}

static void on_warning(void *self, const weir_error *warning) {
  world *w = self;
  w->warnings++;
  w->last = *warning;
}

static void begin(world *w) {
  *w = (world){.folder = "/tmp/weir-tuned-XXXXXX"};
  assert_non_null(mkdtemp(w->folder));
  snprintf(w->path, sizeof w->path, "%s/file.yaml", w->folder);
  weir_counted_allocator_init(&w->memory, NULL);
  w->env = *weir_env_system();
  w->env.alloc = &w->memory.base;
  w->fs = *w->env.fs;
  w->fs.write = write_file;
  w->env.fs = &w->fs;
  disk_is_full = second_fails = false;
  slow_ns = 200000;
}

static void end(world *w) {
  weir_tuned_release(w->env.tuned);
  (void)unlink(w->path);
  assert_int_equal(rmdir(w->folder), 0); /* no temporary file stays */
  assert_int_equal(w->memory.live_blocks, 0);
}

static weir_tuned_options options_of(world *w, bool times) {
  return (weir_tuned_options){.path = w->path,
                              .profile = weir_profile_best(),
                              .times = times,
                              .warn = on_warning,
                              .self = w};
}

static void open_file(world *w, bool times) {
  weir_error err = WEIR_ERROR_INIT;
  weir_tuned_options o = options_of(w, times);
  weir_tuned_release(w->env.tuned);
  assert_ok(weir_tuned_create(&w->env, &o, &w->env.tuned, &err), &err);
}

static size_t read_text(const world *w, char *text, size_t capacity) {
  FILE *f = fopen(w->path, "r");
  assert_non_null(f);
  size_t size = fread(text, 1, capacity - 1, f);
  fclose(f);
  text[size] = '\0';
  return size;
}

static void write_text(const world *w, const char *text, size_t size) {
  FILE *f = fopen(w->path, "w");
  assert_non_null(f);
  assert_int_equal(fwrite(text, 1, size, f), size);
  assert_int_equal(fclose(f), 0);
}

/* Which of the two exp of |n| numbers gets; |*status| may be NULL. */
static const char *chosen(world *w, int64_t n, weir_status *status,
                          weir_error *err) {
  weir_operand x = bed_operand(WEIR_F32, 1, &n), y = x;
  const weir_call call = {
      .op = bed_op("exp"), .in = &x, .out = &y, .in_count = 1, .out_count = 1};
  const weir_kernel_def *kernel = &kSlow;
  const char *word;
  weir_status s =
      weir_timed_kernel(&w->env, &kRegistry, true, &call, &kernel, &word, err);
  if (status != NULL)
    *status = s;
  else
    assert_ok(s, err);
  return kernel->name;
}

/* ---- */

static void the_quickest_is_kept(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  world w;
  begin(&w);
  open_file(&w, false);
  assert_string_equal(chosen(&w, 4, NULL, &err), "cpu.slow"); /* nobody timed */
  open_file(&w, true);
  assert_string_equal(chosen(&w, 4, NULL, &err), "cpu.quick");
  assert_int_equal(weir_tuned_count(w.env.tuned), 1);
  slow_ns = 0; /* what is in the file is not timed again */
  assert_string_equal(chosen(&w, 4, NULL, &err), "cpu.quick");
  open_file(&w, false);
  assert_string_equal(chosen(&w, 4, NULL, &err), "cpu.quick");
  assert_string_equal(chosen(&w, 5, NULL, &err), "cpu.slow"); /* not in it */
  assert_int_equal(w.warnings, 0);
  end(&w);
}

static void a_failing_kernel_loses(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  world w;
  begin(&w);
  open_file(&w, true);
  second_fails = true;
  assert_string_equal(chosen(&w, 4, NULL, &err), "cpu.slow");
  end(&w);
}

static void a_full_disk_is_said(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_status s;
  world w;
  begin(&w);
  open_file(&w, true);
  disk_is_full = true;
  (void)chosen(&w, 4, &s, &err);
  assert_int_equal(s, WEIR_RESOURCE_EXHAUSTED);
  assert_string_equal(err.id, "W6005");
  assert_int_not_equal(access(w.path, F_OK), 0);
  disk_is_full = false;
  (void)chosen(&w, 5, NULL, &err); /* the next one writes both */
  open_file(&w, false);
  assert_int_equal(weir_tuned_count(w.env.tuned), 2);
  end(&w);
}

/* Of every beginning of a file, but for whole ones, nothing is used. */
static void files_cut_short(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  char text[4096];
  world w;
  begin(&w);
  open_file(&w, true);
  for (int64_t n = 1; n <= 3; n++) (void)chosen(&w, n, NULL, &err);
  size_t size = read_text(&w, text, sizeof text);
  uint64_t hash = weir_tuned_hash(w.env.tuned);
  int refused = 0;
  for (size_t cut = 0; cut <= size; cut++) {
    write_text(&w, text, cut);
    w.warnings = 0;
    open_file(&w, false);
    refused += w.warnings;
    assert_in_range(w.warnings, 0, 1);
    if (w.warnings == 1) assert_int_equal(weir_tuned_count(w.env.tuned), 0);
    if (cut >= size - 1) /* the last line end may be missing */
      assert_true(weir_tuned_hash(w.env.tuned) == hash);
    weir_tuned_options o = options_of(&w, false);
    weir_tuned *strict = NULL;
    o.strict = true;
    weir_status s = weir_tuned_create(&w.env, &o, &strict, &err);
    assert_int_equal(s == WEIR_OK, w.warnings == 0);
    assert_int_equal(strict != NULL, s == WEIR_OK);
    weir_tuned_release(strict);
  }
  assert_true(refused > (int)size / 2);
  end(&w);
}

static void of_another_machine(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  char text[4096], changed[4200];
  world w;
  begin(&w);
  open_file(&w, true);
  (void)chosen(&w, 4, NULL, &err);
  (void)read_text(&w, text, sizeof text);
  char *at = strstr(text, "machine: '");
  assert_non_null(at);
  at += strlen("machine: '");
  int n = snprintf(changed, sizeof changed, "%.*sOther %s", (int)(at - text),
                   text, at);
  write_text(&w, changed, (size_t)n);
  open_file(&w, false);
  assert_int_equal(w.warnings, 1);
  assert_string_equal(w.last.id, "W6006");
  assert_string_equal(chosen(&w, 4, NULL, &err), "cpu.slow");
  assert_true(weir_tuned_hash(w.env.tuned) == 0);
  weir_tuned_options o = options_of(&w, true); /* is not written over */
  weir_tuned *t = NULL;
  assert_error(weir_tuned_create(&w.env, &o, &t, &err), &err, "W6006");
  assert_null(t);
  end(&w);
}

static void two_writers(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  world a, b;
  begin(&a);
  begin(&b);
  char own[96];
  memcpy(own, b.path, sizeof own);
  memcpy(b.path, a.path, sizeof b.path);
  open_file(&a, true);
  open_file(&b, true);
  for (int64_t n = 1; n <= 6; n++) (void)chosen(n % 2 ? &a : &b, n, NULL, &err);
  open_file(&a, false);
  assert_int_equal(weir_tuned_count(a.env.tuned), 6);
  memcpy(b.path, own, sizeof own);
  end(&b);
  end(&a);
}

static void scenario(world *w, weir_status *status, weir_error *err) {
  weir_tuned_options o = options_of(w, true);
  weir_tuned_release(w->env.tuned);
  w->env.tuned = NULL;
  *status = weir_tuned_create(&w->env, &o, &w->env.tuned, err);
  if (*status == WEIR_OK) (void)chosen(w, 4, status, err);
}

static void every_allocation_fails_in_turn(void **state) {
  (void)state;
  weir_status s = WEIR_INTERNAL;
  world w;
  begin(&w);
  slow_ns = 0;
  for (uint64_t k = 1; s != WEIR_OK; k++) {
    weir_error err = WEIR_ERROR_INIT;
    assert_true(k < 1000);
    w.memory.calls = 0;
    w.memory.fail_at = k;
    scenario(&w, &s, &err);
    if (s != WEIR_OK) assert_string_equal(err.id, "W6001");
  }
  w.memory.fail_at = 0;
  end(&w);
}

/* Everything that kernels see is in a call's text. */
static void texts_differ(void **state) {
  (void)state;
  static const float kValue[4];
  char texts[6][WEIR_TUNE_CALL_BYTES];
  const int64_t dims[2] = {2, 2}, longer[2] = {2, 3};
  weir_operand x = bed_operand(WEIR_F32, 2, dims), y = x;
  weir_attr axes[WEIR_OP_ATTRS] = {{.kind = WEIR_ATTR_BOOL, .b = false}};
  weir_call call = {.op = bed_op("matmul"),
                    .attrs = axes,
                    .in = &x,
                    .out = &y,
                    .in_count = 1,
                    .out_count = 1};
  weir_tune_text_of_call(&call, texts[0]);
  axes[0].b = true;
  weir_tune_text_of_call(&call, texts[1]);
  x.value = kValue;
  weir_tune_text_of_call(&call, texts[2]);
  x = bed_operand(WEIR_F32, 2, longer);
  weir_tune_text_of_call(&call, texts[3]);
  x.layout = WEIR_LAYOUT_N16;
  weir_tune_text_of_call(&call, texts[4]);
  x.dtype = WEIR_F64;
  weir_tune_text_of_call(&call, texts[5]);
  for (int i = 0; i < 6; i++)
    for (int j = 0; j < i; j++) assert_string_not_equal(texts[i], texts[j]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_quickest_is_kept),
      cmocka_unit_test(a_failing_kernel_loses),
      cmocka_unit_test(a_full_disk_is_said),
      cmocka_unit_test(files_cut_short),
      cmocka_unit_test(of_another_machine),
      cmocka_unit_test(two_writers),
      cmocka_unit_test(every_allocation_fails_in_turn),
      cmocka_unit_test(texts_differ),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
