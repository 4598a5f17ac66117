/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/array/npy.h"

#include "tests/io/io_check.h"

static weir_status read_npy(const weir_allocator *alloc, weir_bytes bytes,
                            weir_tensor **out_tensor, weir_error *err) {
  return weir_npy_read(alloc, bytes, "x.npy", out_tensor, err);
}

static weir_tensor *load(const io_bytes *b) {
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *t = NULL;
  assert_ok(read_npy(weir_allocator_system(), (weir_bytes){b->data, b->size},
                     &t, &err),
            &err);
  assert_int_equal((uintptr_t)t->data % 64, 0);
  return t;
}

static weir_tensor *load_fixture(const char *name) {
  io_bytes b = io_fixture(name);
  return load(&b);
}

static const char *const kFixtures[] = {
    "f4.npy",       "f8_fortran.npy", "i4_big.npy", "i8.npy", "b1.npy",
    "u1_empty.npy", "scalar.npy",     "v2.npy",     "v3.npy"};
enum { kFixtureCount = sizeof kFixtures / sizeof kFixtures[0] };

/* Every kind of file that NumPy wrote (data/make.py). */
static void reads_what_numpy_writes(void **state) {
  (void)state;
  const double grid[] = {0.5, 1.5, 2.5, 3.5, 4.5, 5.5};
  double cube[24];
  for (int i = 0; i < 24; i++) cube[i] = i - 3;
  io_holds(load_fixture("f4.npy"), WEIR_F32, 2, (int64_t[]){2, 3}, grid);
  io_holds(load_fixture("v2.npy"), WEIR_F32, 2, (int64_t[]){2, 3}, grid);
  io_holds(load_fixture("v3.npy"), WEIR_F32, 2, (int64_t[]){2, 3}, grid);
  io_holds(load_fixture("f8_fortran.npy"), WEIR_F64, 3, (int64_t[]){2, 3, 4},
           cube);
  io_holds(load_fixture("i4_big.npy"), WEIR_I32, 2, (int64_t[]){3, 4}, cube);
  io_holds(load_fixture("i8.npy"), WEIR_I64, 3, (int64_t[]){2, 3, 4}, cube);
  io_holds(load_fixture("b1.npy"), WEIR_BOOL, 1, (int64_t[]){3},
           (double[]){1, 0, 1});
  io_holds(load_fixture("u1_empty.npy"), WEIR_U8, 2, (int64_t[]){0, 5}, NULL);
  io_holds(load_fixture("scalar.npy"), WEIR_F64, 0, NULL, (double[]){2.5});
}

/* Byte for byte as NumPy writes. */
static void writes_what_numpy_writes(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  for (int i = 0; i < kFixtureCount; i++) {
    weir_strbuf out;
    io_bytes b = io_fixture(kFixtures[i]);
    weir_tensor *t = load(&b);
    weir_strbuf_init(&out, weir_allocator_system());
    assert_ok(weir_npy_write(t, &out, &err), &err);
    bool same_form = strstr(kFixtures[i], "fortran") == NULL &&
                     strstr(kFixtures[i], "big") == NULL &&
                     kFixtures[i][0] != 'v';
    if (same_form) {
      assert_int_equal(out.size, b.size);
      assert_memory_equal(out.data, b.data, b.size);
    }
    io_bytes written = io_take(&out);
    weir_tensor *again = load(&written);
    assert_memory_equal(again->data, t->data, t->bytes);
    weir_tensor_unref(again);
    weir_tensor_unref(t);
  }
}

static void no_memory_to_write(void **state) {
  (void)state;
  weir_counted_allocator c;
  weir_strbuf out;
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *t = io_tensor(WEIR_F32, 1, (int64_t[]){300}, NULL);
  weir_status s = WEIR_UNKNOWN;
  for (uint64_t k = 1; s != WEIR_OK; k++) {
    weir_counted_allocator_init(&c, NULL);
    c.fail_at = k;
    weir_strbuf_init(&out, &c.base);
    s = weir_npy_write(t, &out, &err);
    if (s != WEIR_OK) assert_string_equal(err.id, "W6001");
    weir_strbuf_release(&out);
    assert_int_equal(atomic_load(&c.live_blocks), 0);
  }
  weir_tensor_unref(t);
}

static void cuts_and_tails(void **state) {
  (void)state;
  for (int i = 0; i < kFixtureCount; i++) {
    io_bytes b = io_fixture(kFixtures[i]);
    io_no_cut_is_read(read_npy, &b);
    io_no_tail_is_read(read_npy, &b, "W4003", "bytes of data");
    io_sweep(read_npy, &b);
  }
}

/* A file of |header| and |data_bytes| zeros. */
static io_bytes with_header(const char *header, size_t data_bytes) {
  io_bytes b = {.size = 0};
  size_t n = strlen(header);
  memcpy(b.data, "\x93NUMPY\x01\x00", 8);
  b.data[8] = (uint8_t)n;
  b.data[9] = (uint8_t)(n >> 8);
  memcpy(b.data + 10, header, n);
  b.size = 10 + n + data_bytes;
  return b;
}

static void accepts(const char *header, size_t data_bytes) {
  io_bytes b = with_header(header, data_bytes);
  weir_tensor_unref(load(&b));
}

static void refuses(const char *header, size_t data_bytes, const char *says) {
  io_bytes b = with_header(header, data_bytes);
  io_refuses(read_npy, &b, "W4003", says);
}

/* F01 */
static void bad_starts(void **state) {
  (void)state;
  io_bytes good = io_fixture("f4.npy"), b = good;
  b.data[0] = 'N';
  io_refuses(read_npy, &b, "W4003", "does not start");
  for (int version = 0; version < 10; version += 4) {
    b = good;
    b.data[6] = (uint8_t)version; /* 0, 4, 8 */
    io_refuses(read_npy, &b, "W4003", "version");
  }
  b = good;
  b.data[6] = 9;
  io_refuses(read_npy, &b, "W4003", "version 9.0");
  b = good;
  b.data[7] = 1;
  io_refuses(read_npy, &b, "W4003", "version 1.1");
  b = good;
  b.data[9] = 0xff;
  io_refuses(read_npy, &b, "W4003", "the file ends before");
  b = io_fixture("v2.npy"); /* a header of 4 GiB */
  memset(b.data + 8, 0xff, 4);
  io_refuses(read_npy, &b, "W4003", "4294967295 bytes, the file ends before");
}

static void long_header(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  size_t size = 12 + WEIR_NPY_HEADER_BYTES + 1;
  uint8_t *data = malloc(size);
  memset(data, ' ', size);
  memcpy(data, "\x93NUMPY\x02\x00\x01\x00\x01\x00", 12);
  assert_error(io_read(read_npy, data, size, &err), &err, "W4003");
  assert_non_null(strstr(err.message, "at most 65536"));
  data[8] = 0; /* one byte less is read as a header */
  assert_error(io_read(read_npy, data, size, &err), &err, "W4003");
  assert_non_null(strstr(err.message, "not a dict"));
  free(data);
}

/* F02 */
static void headers_that_are_read(void **state) {
  (void)state;
  accepts("{'descr':'<f4','fortran_order':False,'shape':(2,)}", 8);
  accepts("{\"shape\": (2L, 1L), 'fortran_order': True, 'descr': '<i8'}", 16);
  accepts(" {'descr': '|u1', 'fortran_order': False, 'shape': (), } \n\n", 1);
  accepts("{'descr': '=f8', 'fortran_order': False, 'shape': (2, 0,),}", 0);
  accepts(
      "{'descr': 'f8', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, "
      "1, 1, 1)}",
      8);
}

static void headers_that_are_refused(void **state) {
  (void)state;
#define F "'fortran_order': False"
#define D "'descr': '<f4'"
#define S "'shape': (2,)"
  refuses("", 8, "not a dict");
  refuses("[]", 8, "not a dict");
  refuses("{", 8, "a key is missing");
  refuses("{" D ", " F "}", 8, "is missing");
  refuses("{" D ", " F ", " S ", 'x': 1}", 8, "unknown key");
  refuses("{" D ", " F ", " S ", " S "}", 8, "occurs twice");
  refuses("{" D ", " F ", " S "} x", 8, "text follows");
  refuses("{" D ", " F ", " S, 8, "a comma is missing");
  refuses("{" D ", " F " " S "}", 8, "a comma is missing");
  refuses("{'descr' '<f4', " F ", " S "}", 8, "a colon is missing");
  refuses("{'descr': '<f4, " F ", " S "}", 8, "'<f4, ' are not read");
  refuses("{'descr': '<f\\4', " F ", " S "}", 8, "not a string");
  refuses("{'descr': 4, " F ", " S "}", 8, "not a string");
  refuses("{'descr': [('a', '<f4')], " F ", " S "}", 8, "structured");
  refuses("{'descr': '|O', " F ", " S "}", 8, "'|O' are not read");
  refuses("{'descr': '<f2', " F ", " S "}", 4, "'<f2' are not read");
  refuses("{'descr': '|i1', " F ", " S "}", 2, "'|i1' are not read");
  refuses("{'descr': '<u4', " F ", " S "}", 8, "'<u4' are not read");
  refuses("{'descr': '<U4', " F ", " S "}", 8, "'<U4' are not read");
  refuses("{'descr': '|f4', " F ", " S "}", 8, "'|f4' are not read");
  refuses("{'descr': '', " F ", " S "}", 8, "'' are not read");
  refuses("{" D ", 'fortran_order': 0, " S "}", 8, "neither True nor False");
  refuses("{" D ", " F ", 'shape': [2]}", 8, "not a tuple");
  refuses("{" D ", " F ", 'shape': (2)}", 8, "a number, not a tuple");
  refuses("{" D ", " F ", 'shape': (,)}", 8, "not a number");
  refuses("{" D ", " F ", 'shape': (-2,)}", 8, "not a number");
  refuses("{" D ", " F ", 'shape': (2 1)}", 8, "a comma is missing");
  refuses("{" D ", " F ", 'shape': (1, 1, 1, 1, 1, 1, 1, 1, 2)}", 8,
          "more than 8");
}

/* F03 */
static void sizes(void **state) {
  (void)state;
  refuses("{" D ", " F ", 'shape': (9223372036854775808,)}", 8, "63 bits");
  refuses("{" D ", " F ", 'shape': (0, 4611686018427387904, 8)}", 0, "");
  refuses("{" D ", " F ", 'shape': (4294967296, 4294967296)}", 0, "");
  refuses("{" D ", " F ", 'shape': (4611686018427387904,)}", 8, "");
  refuses("{" D ", " F ", 'shape': (1000000000000,)}", 8,
          "needs 4000000000000 bytes");
  refuses("{" D ", " F ", " S "}", 7, "f32[2] needs 8 bytes of data");
  refuses("{" D ", " F ", " S "}", 9, "the file has 9");
}

static void hint_names_what_is_read(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  io_bytes b = with_header("{'descr': '<f2', " F ", " S "}", 4);
  assert_error(io_read(read_npy, b.data, b.size, &err), &err, "W4003");
  assert_non_null(strstr(err.hint, "f4, f8, i4, i8, u1 and b1"));
  assert_string_equal(err.file, "x.npy");
}

static void bools_become_0_or_1(void **state) {
  (void)state;
  io_bytes b = io_fixture("b1.npy");
  b.data[b.size - 1] = 0x80;
  weir_tensor *t = load(&b);
  assert_memory_equal(t->data, "\x01\x00\x01", 3);
  weir_tensor_unref(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_what_numpy_writes),
      cmocka_unit_test(writes_what_numpy_writes),
      cmocka_unit_test(no_memory_to_write),
      cmocka_unit_test(cuts_and_tails),
      cmocka_unit_test(bad_starts),
      cmocka_unit_test(long_header),
      cmocka_unit_test(headers_that_are_read),
      cmocka_unit_test(headers_that_are_refused),
      cmocka_unit_test(sizes),
      cmocka_unit_test(hint_names_what_is_read),
      cmocka_unit_test(bools_become_0_or_1),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
