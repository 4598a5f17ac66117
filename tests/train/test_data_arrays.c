/* SPDX-License-Identifier: Apache-2.0 */
#include <zlib.h>

#include "runtime/base/env_system.h"
#include "runtime/io/array/npy.h"
#include "runtime/io/array/npz_write.h"
#include "runtime/train/batch/data_iter.h"
#include "runtime/train/data/data_open.h"
#include "tests/train/data_check.h"

/* npy, idx and npz: in memory, row by row, in shards, compressed, damaged. */

/* Ten examples of 2 x 2 u8: example i holds 4 i, 4 i + 1, ... and its label i.
 */
static void put_idx(void) {
  uint8_t x[16 + 40] = {0, 0, 8, 3, 0, 0, 0, 10, 0, 0, 0, 2, 0, 0, 0, 2};
  uint8_t y[8 + 10] = {0, 0, 9, 1, 0, 0, 0, 10};
  for (int i = 0; i < 40; i++) x[16 + i] = (uint8_t)i;
  for (int i = 0; i < 10; i++) y[8 + i] = (uint8_t)i;
  y[8 + 9] = 0xff; /* i8: -1 */
  data_put("x.idx", x, sizeof x);
  data_put("y.idx", y, sizeof y);
}

static void put_gzip(const char *from, const char *name) {
  char path[256], bytes[4096];
  snprintf(path, sizeof path, "%s/%s", data_folder, from);
  FILE *f = fopen(path, "rb");
  size_t n = fread(bytes, 1, sizeof bytes, f);
  fclose(f);
  snprintf(path, sizeof path, "%s/%s", data_folder, name);
  gzFile g = gzopen(path, "wb");
  assert_int_equal(gzwrite(g, bytes, (unsigned)n), (int)n);
  gzclose(g);
}

static weir_tensor *numbers(weir_dtype dtype, int rank, const int64_t *dims,
                            int64_t first) {
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *t = NULL;
  weir_shape shape = weir_shape_of(rank, dims);
  assert_ok(weir_tensor_create_shaped(weir_allocator_system(), dtype, &shape,
                                      &t, &err),
            &err);
  for (int64_t i = 0; i < weir_shape_elements(&shape); i++)
    weir_tensor_set_i64(t, i, first + i);
  return t;
}

static void put_npy(const char *name, weir_tensor *t) {
  weir_error err = WEIR_ERROR_INIT;
  weir_strbuf out;
  weir_strbuf_init(&out, weir_allocator_system());
  assert_ok(weir_npy_write(t, &out, &err), &err);
  data_put(name, out.data, out.size);
  weir_strbuf_release(&out);
  weir_tensor_unref(t);
}

#define SET(inputs, more) \
  "inputs: {" inputs "}\noutputs: [x]\ndata: {t: {" more "}}\n"
#define IDX(x, y, more)                \
  SET("x: 'u8[?, 2, 2]', y: 'i32[?]'", \
      "source: idx, files: {x: " x ", y: " y "}, batch: 3" more)

static void idx_all_ways(void **state) {
  (void)state;
  put_idx();
  put_gzip("x.idx", "x.idx.gz");
  put_gzip("y.idx", "y.idx.gz");
  const char *want = IDX("x.idx", "y.idx", "");
  data_gives(want, 1, "x=0,1,2,3,4,5,6,7,8,9,10,11;y=0,1,2 | ");
  data_same(want, IDX("x.idx", "y.idx", ", memory: 0"), 9);
  data_same(want, IDX("x.idx.gz", "y.idx.gz", ""), 9);
  data_same(want, IDX("x.idx.gz", "y.idx.gz", ", memory: 0"), 9);
  data_same(want, IDX("x.idx.gz", "y.idx", ", memory: 0, prefetch: 0"), 9);
  char *last = data_stream(want, 4);
  assert_non_null(strstr(last, "x=36,37,38,39;y=-1 | "));
  free(last);
  const char *mixed = IDX("x.idx", "y.idx", ", shuffle: {seed: 4, buffer: 6}");
  data_same(mixed,
            IDX("x.idx", "y.idx", ", memory: 0, shuffle: {seed: 4, buffer: 6}"),
            9);
  data_same(mixed,
            IDX("x.idx.gz", "y.idx.gz", ", shuffle: {seed: 4, buffer: 6}"), 9);
  data_resumes(IDX("x.idx.gz", "y.idx.gz", ", memory: 0"), 7);
  data_resumes(IDX("x.idx", "y.idx", ", memory: 0, shuffle: {seed: 2}"), 7);
  data_refuses(IDX("x.idx.gz", "y.idx", ", memory: 0, shuffle: true"), "W4035",
               "cannot be shuffled");
}

static void npy_shards_and_orders(void **state) {
  (void)state;
  const int64_t three[] = {3, 2}, two[] = {2, 2};
  put_npy("part-00.npy", numbers(WEIR_F32, 2, three, 0));
  put_npy("part-01.npy", numbers(WEIR_F32, 2, two, 6));
  put_npy("other.npy", numbers(WEIR_F32, 2, two, 100));
#define NPY(files, more) \
  SET("x: 'f32[?, 2]'", "source: npy, files: {x: " files "}, batch: 2" more)
  const char *want = "x=0,1,2,3 | x=4,5,6,7 | x=8,9 | END ";
  data_gives(NPY("part-*.npy", ""), 4, want);
  data_gives(NPY("'part-0?.npy'", ", memory: 0"), 4, want);
  data_gives(NPY("[part-00.npy, part-01.npy]", ", memory: 0"), 4, want);
  data_gives(NPY("[part-01.npy, other.npy]", ""), 3,
             "x=6,7,8,9 | x=100,101,102,103 | END ");
  data_refuses(NPY("none-*.npy", ""), "W4001", "no file matches");
  data_refuses(NPY("../x.npy", ""), "W4002", "leaves its folder");
  data_refuses(NPY("'../*.npy'", ""), "W4002", "leaves its folder");
  data_refuses(NPY("/etc/passwd", ""), "W4002", "absolute");
  data_refuses(NPY("none.npy", ""), "W4001", "No such file");
  put_npy("ints.npy", numbers(WEIR_I32, 2, two, 0));
  data_refuses(NPY("[part-00.npy, ints.npy]", ""), "W4022", "later file");
  data_put_text("text.npy", "hello");
  data_refuses(NPY("text.npy", ""), "W4008",
               "no format that has rows: npy, idx");
}

/* tests/io/data/make.py's files in Fortran order and big-endian. */
static void npy_of_numpy(void **state) {
  (void)state;
  static const char kHead[] =
      "\x93NUMPY\x01\x00\x3e\x00{'descr': '>i4', 'fortran_order': True, "
      "'shape': (2, 3)}    ";
  char file[10 + 62 + 24];
  memset(file, 0x20, 72);
  memcpy(file, kHead, sizeof kHead - 1);
  for (int i = 0; i < 6; i++) {
    const char element[4] = {0, 0, 0, (char)i};
    memcpy(file + 72 + 4 * i, element, 4);
  }
  file[71] = '\n';
  data_put("f.npy", file, sizeof file);
  for (int i = 0; i < 2; i++)
    data_gives(
        i ? SET("x: 'i32[?, 3]'", "source: npy, files: {x: f.npy}")
          : SET("x: 'i32[?, 3]'", "source: npy, files: {x: f.npy}, memory: 0"),
        3, "x=0,2,4 | x=1,3,5 | END ");
}

static void npz_members(void **state) {
  (void)state;
  const int64_t dims[] = {3};
  weir_error err = WEIR_ERROR_INIT;
  weir_strbuf out;
  weir_tensor *t[2] = {numbers(WEIR_I32, 1, dims, 5),
                       numbers(WEIR_U8, 1, dims, 7)};
  const weir_sv names[] = {WEIR_SV_LIT("x"), WEIR_SV_LIT("y")};
  weir_strbuf_init(&out, weir_allocator_system());
  assert_ok(weir_npz_write(names, t, 2, &out, &err), &err);
  data_put("a.npz", out.data, out.size);
  data_put("b.npz", out.data, out.size);
  weir_strbuf_release(&out);
  weir_tensor_unref(t[0]);
  weir_tensor_unref(t[1]);
  data_gives(
      SET("x: 'i32[?]', y: 'u8[?]'", "source: npz, files: '?.npz', batch: 4"),
      3, "x=5,6,7,5;y=7,8,9,7 | x=6,7;y=8,9 | END ");
  data_gives(
      SET("x: 'i32[?]'", "source: npz, files: a.npz, batch: 3, ignore: [y]"), 2,
      "x=5,6,7 | END ");
  data_refuses(SET("x: 'i32[?]'", "source: npz, files: a.npz"), "W4021",
               "no input 'y'");
  data_refuses(SET("x: 'i32[?]'", "source: npz, files: a.npz, memory: 100"),
               "W4015", "the limit is 100");
}

static void damaged(void **state) {
  (void)state;
  char path[256];
  put_idx();
  put_gzip("x.idx", "x.idx.gz");
  snprintf(path, sizeof path, "%s/x.idx.gz", data_folder);
  FILE *f = fopen(path, "rb");
  uint8_t bytes[4096];
  size_t size = fread(bytes, 1, sizeof bytes, f);
  fclose(f);
  for (int in_memory = 0; in_memory < 2; in_memory++)
    for (size_t cut = 2; cut < size; cut += cut < 40 ? 1 : 7) {
      data_put("c.gz", bytes, cut);
      weir_error err = WEIR_ERROR_INIT;
      weir_dataset *set = NULL;
      weir_data_iter *it = NULL;
      weir_batch b;
      weir_status s =
          data_open_with(weir_env_system(),
                         in_memory ? IDX("c.gz", "y.idx", "")
                                   : IDX("c.gz", "y.idx", ", memory: 0"),
                         NULL, &set, &err);
      if (s == WEIR_OK) s = weir_data_iter_create(set, &it, &err);
      for (int i = 0; s == WEIR_OK && i < 4; i++)
        s = weir_data_iter_next(it, &b, &err);
      if (s == WEIR_OK) fail_msg("read with %zu of %zu bytes", cut, size);
      assert_int_equal(weir_error_exit_code(err.id), 5);
      weir_data_iter_release(it);
      weir_dataset_release(set);
    }
}

/* A file that becomes shorter is an error of the next batch, no signal. */
static void shorter_while_read(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_batch b;
  char path[256];
  put_idx();
  for (int ahead = 0; ahead < 2; ahead++) {
    put_idx();
    weir_dataset *set =
        data_open(ahead ? IDX("x.idx", "y.idx", ", memory: 0, prefetch: 1")
                        : IDX("x.idx", "y.idx", ", memory: 0, prefetch: 0"));
    weir_data_iter *it = data_iter(set);
    assert_ok(weir_data_iter_next(it, &b, &err), &err);
    snprintf(path, sizeof path, "%s/x.idx", data_folder);
    assert_int_equal(truncate(path, 40), 0);
    weir_status s = WEIR_OK;
    for (int i = 0; s == WEIR_OK && i < 6; i++)
      s = weir_data_iter_next(it, &b, &err);
    assert_string_equal(err.id, "W4020");
    assert_error(weir_data_iter_next(it, &b, &err), &err, "W4020");
    weir_data_iter_release(it);
    weir_dataset_release(set);
  }
}

/* Sixteen MiB of examples in less than a quarter of that. */
static void larger_than_memory(void **state) {
  (void)state;
  const int64_t dims[] = {16384, 1024};
  enum { kBytes = 16 << 20 };
  data_env e;
  weir_error err = WEIR_ERROR_INIT;
  weir_dataset *set = NULL;
  weir_data_iter *it = NULL;
  weir_batch b;
  weir_tensor *t = numbers(WEIR_U8, 2, dims, 0);
  for (int64_t i = 0; i < dims[0]; i++)
    weir_tensor_set_i64(t, i * dims[1], i % 251);
  put_npy("big.npy", t);
  data_env_init(&e);
  assert_ok(data_open_with(&e.env,
                           SET("x: 'u8[?, 1024]'",
                               "source: npy, files: {x: big.npy}, memory: "
                               "1MiB, batch: 64, shuffle: {seed: 1}"),
                           NULL, &set, &err),
            &err);
  assert_ok(weir_data_iter_create(set, &it, &err), &err);
  int64_t sum = 0, want = 0;
  for (int64_t i = 0; i < dims[0]; i++) want += i % 251;
  for (int i = 0; i < 256; i++) {
    assert_ok(weir_data_iter_next(it, &b, &err), &err);
    for (int r = 0; r < 64; r++)
      sum += weir_tensor_get_i64(b.columns[0], r * dims[1]);
  }
  assert_int_equal(sum, want);
  assert_true(atomic_load(&e.counted.peak_bytes) < kBytes / 4);
  weir_data_iter_release(it);
  weir_dataset_release(set);
  assert_int_equal(atomic_load(&e.counted.live_blocks), 0);
}

static void without_memory(void **state) {
  (void)state;
  put_idx();
  put_gzip("x.idx", "x.idx.gz");
  data_sweep(IDX("x.idx.gz", "y.*", ""), 3);
  data_sweep(IDX("x.idx.gz", "y.idx", ", memory: 0"), 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      DATA_TEST(idx_all_ways),
      DATA_TEST(npy_shards_and_orders),
      DATA_TEST(npy_of_numpy),
      DATA_TEST(npz_members),
      DATA_TEST(damaged),
      DATA_TEST(shorter_while_read),
      DATA_TEST(larger_than_memory),
      DATA_TEST(without_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
