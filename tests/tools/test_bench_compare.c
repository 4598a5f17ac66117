/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "runtime/api/weir_internal.h"
#include "runtime/tools/profile/bench_file.h"
#include "tests/check.h"
#include "tests/counted.h"

/* Files of weir bench --json: what is read, any bytes, any allocation. */

static const char kA[] =
    "{\"version\": \"0.1.0\", \"graph\": \"g\\u00e9\", \"params\": [\"n=8\"],\n"
    " \"set\": [\"a=\\\"{\\\"\"], \"machine\": \"A\", \"threads\": 1,\n"
    " \"more\": {\"x\": [1]}, \"runs\": 5, \"median_ns\": 2000, \"p90_ns\": "
    "3,\n"
    " \"min_ns\": 1, \"gflops\": null, \"profile\": {\"steps\": 3, \"nodes\":\n"
    " [{\"node\": \"b\", \"time_ns\": 5, \"kernel\": \"k\", \"op\": \"add\"},\n"
    "  {\"node\": \"a\", \"within\": \"l\", \"time_ns\": 7},\n"
    "  {\"node\": \"b\", \"time_ns\": 6, \"op\": \"add\"}]}}\n"
    "{\"threads\": 2, \"runs\": 5, \"median_ns\": 900, \"p90_ns\": 3,\n"
    " \"min_ns\": 1}\n";
static const char kB[] =
    "{\"version\": \"0.2.0\", \"graph\": \"g\\u00e9\", \"params\": [\"n=8\"],"
    " \"set\": [\"a=\\\"{\\\"\"], \"machine\": \"A\", \"threads\": 1,"
    " \"runs\": 5, \"median_ns\": 1000, \"p90_ns\": 3, \"min_ns\": 1,"
    " \"profile\": {\"nodes\": [{\"node\": \"b\", \"time_ns\": 9, \"op\": "
    "\"add\"}]}}\n"
    "{\"threads\": 2, \"runs\": 5, \"median_ns\": 900, \"p90_ns\": 3, "
    "\"min_ns\": 1}";

typedef struct scene {
  weir_counted_allocator memory;
  weir_fs fs;
  weir_runtime runtime;
  const char *a;
  size_t a_size;
  char text[8192];
  size_t size;
} scene;

/* Two files; their bytes are not copied. */
static weir_status read_file(void *self, const char *root, const char *path,
                             size_t limit, bool map, weir_file *out_file,
                             weir_error *err) {
  const scene *s = self;
  (void)root;
  (void)limit;
  (void)map;
  (void)err;
  *out_file = (weir_file){0};
  bool a = strcmp(path, "a.json") == 0;
  out_file->bytes = (weir_bytes){(const uint8_t *)(a ? s->a : kB),
                                 a ? s->a_size : strlen(kB)};
  return WEIR_OK;
}

static void close_file(void *self, weir_file *file) {
  (void)self;
  *file = (weir_file){0};
}

static bool append(void *self, const char *data, size_t size) {
  scene *s = self;
  if (s->size + size >= sizeof s->text) return false;
  memcpy(s->text + s->size, data, size);
  s->size += size;
  s->text[s->size] = '\0';
  return true;
}

static void begin(scene *s) {
  memset(s, 0, sizeof *s);
  weir_counted_allocator_init(&s->memory, NULL);
  s->fs = (weir_fs){.self = s, .read = read_file, .close = close_file};
  s->runtime.env = (weir_env){&s->memory.base, &s->fs, NULL};
  s->a = kA;
  s->a_size = strlen(kA);
}

static void end(scene *s) {
  assert_int_equal(atomic_load(&s->memory.live_blocks), 0);
}

static void a_file_is_read(void **state) {
  (void)state;
  scene s;
  weir_bench_file file;
  weir_error err = WEIR_ERROR_INIT;
  begin(&s);
  assert_ok(weir_bench_file_read(&s.runtime, "a.json", &file, &err), &err);
  assert_int_equal(file.runs.count, 2);
  const weir_bench_run *one = &file.runs.items[0], *two = &file.runs.items[1];
  assert_true(weir_sv_is(one->graph, "gé"));
  assert_true(weir_sv_is(one->params, "-p n=8 --set a=\"{\""));
  assert_true(weir_sv_is(one->version, "0.1.0"));
  assert_int_equal(one->threads, 1);
  assert_true(weir_bench_figure_of(one, WEIR_SV_LIT("median_ns")) == 2000);
  assert_true(isnan(weir_bench_figure_of(one, WEIR_SV_LIT("gflops"))));
  assert_true(isnan(weir_bench_figure_of(one, WEIR_SV_LIT("more"))));
  assert_true(one->has_profile && !two->has_profile);
  /* By name: two of one name in the file's order. */
  assert_int_equal(one->nodes.count, 3);
  assert_true(one->nodes.items[0].time_ns == 5);
  assert_int_equal(one->nodes.items[0].turn, 0);
  assert_true(one->nodes.items[1].time_ns == 6);
  assert_int_equal(one->nodes.items[1].turn, 1);
  assert_true(weir_sv_is(one->nodes.items[2].within, "l"));
  assert_int_equal(two->threads, 2);
  weir_bench_file_release(&file);
  end(&s);
}

static weir_status compare(scene *s, bool json, weir_error *err) {
  const weir_tools_bench_diff diff = {"a.json", "b.json", json};
  s->size = 0;
  return weir_tools_bench_compare(&s->runtime, &diff, append, s, err);
}

static void two_are_compared(void **state) {
  (void)state;
  scene s;
  weir_error err = WEIR_ERROR_INIT;
  begin(&s);
  assert_ok(compare(&s, false, &err), &err);
  assert_non_null(strstr(s.text, "version differs: 0.1.0 / 0.2.0\n"));
  assert_non_null(strstr(s.text,
                         "\nmedian_ns                  2000           "
                         "1000        0.5\n"));
  /* The node that changed most comes first: a went, b took 4 ns more. */
  const char *a = strstr(s.text, "l > a, "), *b = strstr(s.text, "  b, k");
  assert_true(a != NULL && b != NULL && a < b);
  assert_ok(compare(&s, true, &err), &err);
  assert_non_null(strstr(s.text,
                         "{\"node\": \"b\", \"a_ns\": 5, \"b_ns\": 9, "
                         "\"ratio\": 1.8, \"change_ns\": 4"));
  end(&s);
}

/* Cut off anywhere, or with one byte changed, it is read or refused. */
static void any_bytes(void **state) {
  (void)state;
  scene s;
  static char text[sizeof kA];
  size_t refused = 0;
  begin(&s);
  for (size_t i = 0; i < strlen(kA); i++) {
    weir_error err = WEIR_ERROR_INIT;
    s.a_size = i;
    if (compare(&s, i % 2 == 0, &err) != WEIR_OK) refused++;
    assert_true(err.id[0] == '\0' || strcmp(err.id, "W4013") == 0 ||
                strcmp(err.id, "W4018") == 0 || strcmp(err.id, "W0010") == 0);
  }
  assert_true(refused > strlen(kA) / 2);
  s.a = text;
  s.a_size = strlen(kA);
  for (size_t i = 0; i < 8 * s.a_size; i++) {
    weir_error err = WEIR_ERROR_INIT;
    memcpy(text, kA, sizeof kA);
    text[i / 8] = "\0\"{}[,x9"[i % 8];
    (void)compare(&s, i % 2 == 0, &err);
  }
  end(&s);
}

static void no_memory(void **state) {
  (void)state;
  for (int json = 0; json < 2; json++) {
    weir_status status;
    uint64_t k = 0;
    do {
      scene s;
      weir_error err = WEIR_ERROR_INIT;
      begin(&s);
      s.memory.fail_at = ++k;
      status = compare(&s, json != 0, &err);
      if (status != WEIR_OK) assert_error(status, &err, "W6001");
      end(&s);
    } while (status != WEIR_OK);
    assert_true(k > 10);
  }
}

static bool refuse(void *self, const char *data, size_t size) {
  (void)self;
  (void)data;
  (void)size;
  return false;
}

static void an_output_that_fails(void **state) {
  (void)state;
  scene s;
  begin(&s);
  for (int json = 0; json < 2; json++) {
    const weir_tools_bench_diff diff = {"a.json", "b.json", json != 0};
    weir_error err = WEIR_ERROR_INIT;
    assert_error(
        weir_tools_bench_compare(&s.runtime, &diff, refuse, NULL, &err), &err,
        "W5009");
  }
  end(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_file_is_read),
      cmocka_unit_test(two_are_compared),
      cmocka_unit_test(any_bytes),
      cmocka_unit_test(no_memory),
      cmocka_unit_test(an_output_that_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
