/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/batch/data_runs.h"

#include <zlib.h>

#include "runtime/base/env_system.h"
#include "runtime/io/array/npy.h"
#include "runtime/io/array/npz_write.h"
#include "tests/train/data_check.h"

/* Batches by the number of a run: for every kind of source and every order of
 * examples those that an iterator gives, whatever is asked for in between. */

/* ---- Files */

static void put_idx(void) {
  uint8_t x[16 + 40] = {0, 0, 8, 3, 0, 0, 0, 10, 0, 0, 0, 2, 0, 0, 0, 2};
  for (int i = 0; i < 40; i++) x[16 + i] = (uint8_t)i;
  data_put("x.idx", x, sizeof x);
}

static weir_tensor *numbers(int64_t rows, int64_t first) {
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *t = NULL;
  const int64_t dims[] = {rows, 2};
  weir_shape shape = weir_shape_of(2, dims);
  assert_ok(weir_tensor_create_shaped(weir_allocator_system(), WEIR_F32, &shape,
                                      &t, &err),
            &err);
  for (int64_t i = 0; i < 2 * rows; i++) weir_tensor_set_i64(t, i, first + i);
  return t;
}

static void put_npy(const char *name, int64_t rows, int64_t first) {
  weir_error err = WEIR_ERROR_INIT;
  weir_strbuf out;
  weir_tensor *t = numbers(rows, first);
  weir_strbuf_init(&out, weir_allocator_system());
  assert_ok(weir_npy_write(t, &out, &err), &err);
  data_put(name, out.data, out.size);
  weir_strbuf_release(&out);
  weir_tensor_unref(t);
}

static void put_npz(void) {
  weir_error err = WEIR_ERROR_INIT;
  weir_strbuf out;
  weir_tensor *t = numbers(9, 50);
  const weir_sv name = WEIR_SV_LIT("x");
  weir_strbuf_init(&out, weir_allocator_system());
  assert_ok(weir_npz_write(&name, &t, 1, &out, &err), &err);
  data_put("a.npz", out.data, out.size);
  weir_strbuf_release(&out);
  weir_tensor_unref(t);
}

static void put_rows(int rows) {
  char text[4096], path[256];
  size_t n = (size_t)snprintf(text, sizeof text, "x,y\n");
  for (int i = 0; i < rows; i++)
    n += (size_t)snprintf(text + n, sizeof text - n, "%d,%d.5\n", i, 3 * i);
  data_put("a.csv", text, n);
  snprintf(path, sizeof path, "%s/a.csv.gz", data_folder);
  gzFile g = gzopen(path, "wb");
  assert_int_equal(gzwrite(g, text, (unsigned)n), (int)n);
  gzclose(g);
}

static void put_records(void) {
  char path[1024], bytes[4096];
  const char *root = getenv("WEIR_SOURCE_ROOT");
  snprintf(path, sizeof path, "%s/tests/io/data/some.tfrecord",
           root != NULL ? root : ".");
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  size_t n = fread(bytes, 1, sizeof bytes, f);
  fclose(f);
  data_put("a.tfrecord", bytes, n);
}

static void put_all(void) {
  put_idx();
  put_npy("part-0.npy", 6, 0);
  put_npy("part-1.npy", 5, 100);
  put_npz();
  put_rows(31);
  put_records();
  data_put_text("a.txt", "abcabcdabcabdcbadcbaabcdddcabcd");
}

/* ---- Sections */

#define SET(inputs, more) \
  "inputs: {" inputs "}\noutputs: [x]\ndata: {t: {" more "}}\n"
#define MEMORY "source: memory, values: {x: [1, 2, 3, 4, 5, 6, 7]}"
#define CSV "source: csv, columns: [x, y], batch: 4, files: "

static const struct {
  const char *text;
  bool forward; /* cannot be shuffled */
} kSets[] = {
    {SET("x: 'f32[?]'", MEMORY ", batch: 2"), false},
    {SET("x: 'f32[2]'", MEMORY ", batch: 2"), false}, /* drops the rest */
    {SET("x: 'f32[?]'", MEMORY ", batch: 2, remainder: pad"), false},
    {SET("x: 'f32[?]'", MEMORY ", batch: 2, skip: 1, take: 5"), false},
    {SET("x: 'f32[?]'", MEMORY ", batch: 3, repeat: 2"), false},
    {SET("x: 'f32[?]'", MEMORY ", batch: 7"), false},
    {SET("x: 'f32[?, 2]'", "source: npy, files: {x: part-*.npy}, batch: 4"),
     false},
    {SET("x: 'f32[?, 2]'",
         "source: npy, files: {x: part-*.npy}, batch: 4, memory: 0"),
     false},
    {SET("x: 'f32[?, 2]'", "source: npz, files: a.npz, batch: 2"), false},
    {SET("x: 'u8[?, 2, 2]'", "source: idx, files: {x: x.idx}, batch: 3"),
     false},
    {SET("x: 'i32[?]', y: 'f32[?]'", CSV "a.csv"), false},
    {SET("x: 'i32[?]', y: 'f32[?]'", CSV "a.csv, memory: 0"), false},
    {SET("x: 'i32[?]', y: 'f32[?]'", CSV "a.csv.gz"), false},
    {SET("x: 'i32[?]', y: 'f32[?]'", CSV "a.csv.gz, memory: 0"), true},
    {SET("x: 'f32[?, 2]'",
         "source: tfrecord, files: a.tfrecord, features: {x: 'f32[2]'}, "
         "batch: 2"),
     false},
    {SET("tokens: 'i32[?, 3]', target: 'i32[?, 3]', x: 'f32[1] = ones()'",
         "source: text, files: a.txt, batch: 4, "
         "window: {length: 3, shift: 2, target: next}"),
     false},
    {SET("tokens: 'i32[2, 2]', target: 'i32[2, 2]', x: 'f32[1] = ones()'",
         "source: text, files: a.txt, batch: 2, "
         "window: {length: 2, target: next, stream: true}"),
     true},
};
enum { SETS = sizeof kSets / sizeof *kSets };

static const char *const kOrders[] = {"", ", shuffle: {seed: 3}",
                                      ", shuffle: {seed: 4, buffer: 3}"};
enum { ORDERS = 3 };

/* |form| with more keys before its end, "}}\n". */
static char *text_of(const char *form, const char *order, int prefetch) {
  static char text[1024];
  snprintf(text, sizeof text, "%.*s%s, prefetch: %d}}\n", (int)strlen(form) - 3,
           form, order, prefetch);
  return text;
}

/* ---- Reading */

enum { RUNS = 24 };

/* Batches 0 .. RUNS - 1 of the iterator, ends of epochs left out. */
static void expect(weir_dataset *set, char *out[RUNS]) {
  weir_data_iter *it = data_iter(set);
  for (int r = 0; r < RUNS;) {
    char *text = data_take(set, it, 1);
    if (strcmp(text, "END ") != 0)
      out[r++] = text;
    else
      free(text);
  }
  weir_data_iter_release(it);
}

static weir_data_runs *runs_of(weir_dataset *set) {
  weir_error err = WEIR_ERROR_INIT;
  weir_data_runs *runs = NULL;
  assert_ok(weir_data_runs_create(set, &runs, &err), &err);
  return runs;
}

static void gives(weir_data_runs *runs, weir_dataset *set, uint64_t run,
                  const uint64_t *ahead, uint32_t count, char *want[RUNS]) {
  weir_error err = WEIR_ERROR_INIT;
  weir_strbuf text;
  weir_batch b;
  weir_strbuf_init(&text, weir_allocator_system());
  assert_ok(weir_data_runs_read(runs, run, ahead, count, &b, &err), &err);
  assert_false(b.end_of_epoch);
  data_print(set, &b, &text);
  if (strcmp(text.data, want[run]) != 0)
    fail_msg("run %d gives %s\nwant %s", (int)run, text.data, want[run]);
  weir_strbuf_release(&text);
}

static uint64_t next_random(uint64_t *x) {
  *x = *x * 6364136223846793005u + 1442695040888963407u;
  return *x >> 33;
}

/* Columns of steps, as a worker of sync mode takes them: |k| of every |n|. */
static void take_column(weir_dataset *set, char *want[RUNS], int n, int k) {
  weir_data_runs *runs = runs_of(set);
  for (int r = k; r < RUNS; r += n) {
    uint64_t ahead[2] = {(uint64_t)(r + n), (uint64_t)(r + 2 * n)};
    gives(runs, set, (uint64_t)r, ahead, 2, want);
  }
  weir_data_runs_release(runs);
}

/* Any order; what is foretold comes true, or half of it, or nothing. */
static void take_any(weir_dataset *set, char *want[RUNS], uint64_t seed) {
  weir_data_runs *runs = runs_of(set);
  uint64_t order[RUNS], x = seed;
  for (int i = 0; i < RUNS; i++) order[i] = next_random(&x) % RUNS;
  for (int i = 0; i + 4 < RUNS; i++) {
    uint64_t ahead[4] = {order[i + 1], order[i + 2], order[i + 3],
                         order[i + 4]};
    if (i % 4 == 1) ahead[0] = order[i];
    if (i % 4 == 2) ahead[1] = next_random(&x) % RUNS;
    gives(runs, set, order[i], ahead, (uint32_t)(i % 5), want);
  }
  weir_data_runs_release(runs);
}

static void check_set(weir_dataset *set) {
  char *want[RUNS];
  expect(set, want);
  take_column(set, want, 1, 0);
  take_column(set, want, 3, 1);
  for (uint64_t seed = 1; seed <= 4; seed++) take_any(set, want, seed);
  for (int r = 0; r < RUNS; r++) free(want[r]);
}

static void any_run_of_any_source(void **state) {
  (void)state;
  put_all();
  for (int i = 0; i < SETS; i++)
    for (int o = 0; o < (kSets[i].forward ? 1 : ORDERS); o++)
      for (int prefetch = 0; prefetch <= 3; prefetch++) {
        weir_dataset *set =
            data_open(text_of(kSets[i].text, kOrders[o], prefetch));
        check_set(set);
        weir_dataset_release(set);
      }
}

/* An epoch without end counts on: rounds are shuffled each in its way. */
static void an_endless_epoch(void **state) {
  (void)state;
  for (int prefetch = 0; prefetch <= 2; prefetch++)
    for (int o = 0; o < ORDERS; o++) {
      uint64_t epoch, batch;
      weir_dataset *set = data_open(
          text_of(SET("x: 'f32[?]'", MEMORY ", batch: 3, repeat: forever"),
                  kOrders[o], prefetch));
      assert_int_equal(weir_dataset_batches(set), -1);
      weir_data_runs_place(set, 1000, &epoch, &batch);
      assert_int_equal(epoch, 0);
      assert_int_equal(batch, 1000);
      check_set(set);
      weir_dataset_release(set);
    }
}

/* Random numbers of a map belong to the place of a batch, not to the reader. */
static void maps_draw_by_place(void **state) {
  (void)state;
  static const char *const kMaps[] = {
      "weir: 1\ndims: [n]\ninputs: {x: 'f32[n]'}\n"
      "outputs: {x: 'add(x, uniform(shape=[], dtype=f32))'}\n",
      "weir: 1\ninputs: {x: 'f32[]'}\n"
      "outputs: {x: 'add(x, uniform(shape=[], dtype=f32))'}\n"};
  char path[128], all[1024];
  snprintf(path, sizeof path, "%s/g.weir.yaml", data_folder);
  weir_load_options load = {.registry = weir_builtin_registry()};
  for (int i = 0; i < 6; i++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_graph *g = NULL;
    weir_dataset *set = NULL;
    weir_dataset_options o = {.seed = 5};
    data_put_text("m.weir.yaml", kMaps[i / 3]);
    snprintf(all, sizeof all,
             "weir: 1\ninputs: {x: 'f32[?]'}\noutputs: [x]\ndata: {t: {" MEMORY
             ", columns: {x: f32}, batch: 2, shuffle: true, prefetch: %d, "
             "map: {graph: m.weir.yaml, per: %s}}}\n",
             i % 3, i < 3 ? "batch" : "example");
    data_put_text("g.weir.yaml", all);
    assert_ok(weir_graph_load(weir_env_system(), path, &load, &g, &err), &err);
    assert_ok(weir_dataset_open(weir_env_system(), g, WEIR_SV_LIT("t"), &o,
                                &set, &err),
              &err);
    check_set(set);
    weir_dataset_release(set);
    weir_graph_unref(g);
  }
}

static void places(void **state) {
  (void)state;
  uint64_t epoch, batch;
  weir_dataset *set =
      data_open(text_of(SET("x: 'f32[?]'", MEMORY ", batch: 2"), "", 0));
  for (uint64_t r = 0; r < 40; r++) {
    weir_data_runs_place(set, r, &epoch, &batch);
    assert_int_equal(epoch, r / 4);
    assert_int_equal(batch, r % 4);
  }
  weir_dataset_release(set);
}

/* A run that cannot be made fails when it is asked for, not when foretold, and
 * the others can be had before and after. */
static void a_bad_run_fails_alone(void **state) {
  (void)state;
  data_put_text("a.csv", "x,y\n1,1\n2,2\nthree,3\n4,4\n");
  for (int prefetch = 0; prefetch <= 2; prefetch++) {
    weir_dataset *set = data_open(text_of(
        SET("x: 'f32[?]'", "source: csv, columns: [x], files: a.csv, batch: 1"),
        "", prefetch));
    weir_data_runs *runs = runs_of(set);
    weir_error err = WEIR_ERROR_INIT;
    weir_batch b;
    assert_int_equal(weir_data_runs_ahead(runs), prefetch);
    for (int k = 0; k < 3; k++) {
      const uint64_t ahead[] = {2, 3};
      assert_ok(weir_data_runs_read(runs, 1, ahead, 2, &b, &err), &err);
      assert_true(weir_tensor_get_f64(b.columns[0], 0) == 2);
      assert_error(weir_data_runs_read(runs, 2, ahead, 2, &b, &err), &err,
                   "W4027");
      assert_ok(weir_data_runs_read(runs, 3, ahead, 1, &b, &err), &err);
      assert_true(weir_tensor_get_f64(b.columns[0], 0) == 4);
    }
    const uint64_t far = UINT64_MAX;
    assert_ok(weir_data_runs_read(runs, 0, &far, 1, &b, &err), &err);
    assert_error(weir_data_runs_read(runs, far, NULL, 0, &b, &err), &err,
                 "W4037");
    weir_data_runs_release(runs);
    weir_dataset_release(set);
  }
}

/* ---- Costs */

/* Runs that are skipped are not read: line 3 of each four is no number. */
static void skipped_runs_are_not_read(void **state) {
  (void)state;
  data_put_text("a.csv", "x\n1\n2\nno\n4\n5\n6\nno\n8\n");
  for (int prefetch = 0; prefetch <= 2; prefetch++) {
    weir_error err = WEIR_ERROR_INIT;
    weir_batch b;
    weir_dataset *set = data_open(text_of(
        SET("x: 'f32[?]'", "source: csv, columns: [x], files: a.csv, batch: 1"),
        "", prefetch));
    weir_data_runs *runs = runs_of(set);
    for (uint64_t r = 1; r < 64; r += 2) {
      const uint64_t ahead[] = {r + 2, r + 4};
      assert_ok(weir_data_runs_read(runs, r, ahead, 2, &b, &err), &err);
      assert_true(weir_tensor_get_f64(b.columns[0], 0) == (double)(r % 8 + 1));
    }
    weir_data_runs_release(runs);
    weir_dataset_release(set);
  }
}

/* Once it has begun, a reader allocates nothing. */
static void steady(void **state) {
  (void)state;
  put_all();
  data_env e;
  weir_error err = WEIR_ERROR_INIT;
  weir_dataset *set = NULL;
  weir_data_runs *runs = NULL;
  data_env_init(&e);
  assert_ok(data_open_with(&e.env, text_of(kSets[10].text, kOrders[1], 2), NULL,
                           &set, &err),
            &err);
  assert_ok(weir_data_runs_create(set, &runs, &err), &err);
  uint64_t before = 0;
  for (uint64_t r = 0; r < 60; r++) {
    const uint64_t ahead[] = {r + 1, r + 2};
    weir_batch b;
    if (r == 20) before = atomic_load(&e.counted.calls);
    assert_ok(weir_data_runs_read(runs, r, ahead, 2, &b, &err), &err);
  }
  assert_int_equal(atomic_load(&e.counted.calls), before);
  weir_data_runs_release(runs);
  weir_dataset_release(set);
  assert_int_equal(atomic_load(&e.counted.live_blocks), 0);
}

static void without_memory(void **state) {
  (void)state;
  for (int prefetch = 0; prefetch <= 2; prefetch += 2) {
    weir_status s = WEIR_UNKNOWN;
    for (uint64_t k = 1; s != WEIR_OK; k++) {
      data_env e;
      weir_error err = WEIR_ERROR_INIT;
      weir_dataset *set = NULL;
      weir_data_runs *runs = NULL;
      weir_batch b;
      const uint64_t ahead[] = {1, 2};
      data_env_init(&e);
      assert_ok(
          data_open_with(&e.env, text_of(kSets[0].text, kOrders[1], prefetch),
                         NULL, &set, &err),
          &err);
      e.counted.fail_at = atomic_load(&e.counted.calls) + k;
      e.counted.fail_forever = true;
      s = weir_data_runs_create(set, &runs, &err);
      if (s == WEIR_OK) s = weir_data_runs_read(runs, 0, ahead, 2, &b, &err);
      if (s != WEIR_OK) assert_string_equal(err.id, "W6001");
      weir_data_runs_release(runs);
      weir_dataset_release(set);
      assert_int_equal(atomic_load(&e.counted.live_blocks), 0);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {DATA_TEST(any_run_of_any_source),
                                     DATA_TEST(an_endless_epoch),
                                     DATA_TEST(maps_draw_by_place),
                                     DATA_TEST(places),
                                     DATA_TEST(a_bad_run_fails_alone),
                                     DATA_TEST(skipped_runs_are_not_read),
                                     DATA_TEST(steady),
                                     DATA_TEST(without_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
