/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/array/safetensors.h"
#include "runtime/io/array/safetensors_write.h"

#include "tests/io/io_check.h"

static weir_safetensors *open_bytes(const io_bytes *b) {
  weir_error err = WEIR_ERROR_INIT;
  weir_safetensors *f = NULL;
  assert_ok(weir_safetensors_from(weir_allocator_system(),
                                  (weir_bytes){b->data, b->size}, "x", NULL,
                                  NULL, &f, &err),
            &err);
  return f;
}

/* Gets every tensor; gives the last, in memory of its own. */
static weir_status read_all(const weir_allocator *alloc, weir_bytes bytes,
                            weir_tensor **out_tensor, weir_error *err) {
  weir_safetensors *f = NULL;
  weir_tensor *t = NULL, *copy = NULL;
  weir_status s = weir_safetensors_from(alloc, bytes, "x", NULL, NULL, &f, err);
  size_t count = s == WEIR_OK ? weir_safetensors_count(f) : 0;
  for (size_t i = 0; s == WEIR_OK && i < count; i++) {
    weir_tensor_unref(t);
    s = weir_safetensors_get(f, i, &t, err);
  }
  if (s == WEIR_OK && t != NULL) s = weir_tensor_copy(alloc, t, &copy, err);
  weir_tensor_unref(t);
  weir_safetensors_release(f);
  *out_tensor = copy;
  return s;
}

static size_t index_of(weir_safetensors *f, const char *name) {
  for (size_t i = 0; i < weir_safetensors_count(f); i++)
    if (weir_sv_is(weir_safetensors_name(f, i), name)) return i;
  fail_msg("no %s", name);
  return 0;
}

static weir_tensor *get(weir_safetensors *f, const char *name) {
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *t = NULL;
  assert_ok(weir_safetensors_get(f, index_of(f, name), &t, &err), &err);
  return t;
}

static const double kGrid[] = {0.5, 1.5, 2.5, 3.5, 4.5, 5.5};

static void reads_what_the_library_writes(void **state) {
  (void)state;
  io_bytes b = io_fixture("some.safetensors");
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *t = NULL;
  double cube[24];
  for (int i = 0; i < 24; i++) cube[i] = i - 3;
  assert_true(weir_safetensors_is((weir_bytes){b.data, b.size}));
  weir_safetensors *f = open_bytes(&b);
  assert_int_equal(weir_safetensors_count(f), 4);
  io_holds(get(f, "grid"), WEIR_F32, 2, (int64_t[]){2, 3}, kGrid);
  io_holds(get(f, "cube"), WEIR_I64, 3, (int64_t[]){2, 3, 4}, cube);
  io_holds(get(f, "flags"), WEIR_BOOL, 1, (int64_t[]){2}, (double[]){1, 0});
  assert_error(weir_safetensors_get(f, index_of(f, "half"), &t, &err), &err,
               "W4005");
  assert_non_null(strstr(err.message, "'half' has dtype F16"));
  assert_non_null(strstr(err.hint, "F32"));
  assert_null(t);
  weir_safetensors_release(f);
}

/* --- views --- */

static int closed;

static void count_close(void *self, weir_file *file) {
  (void)self;
  (void)file;
  closed++;
}

static void views_keep_the_file(void **state) {
  (void)state;
  io_bytes b = io_fixture("some.safetensors");
  weir_bytes bytes = {b.data, b.size};
  weir_fs fs = {.close = count_close};
  weir_file file = {bytes, b.data};
  weir_error err = WEIR_ERROR_INIT;
  weir_safetensors *f = NULL;
  closed = 0;
  assert_ok(weir_safetensors_from(weir_allocator_system(), bytes, "x", &fs,
                                  &file, &f, &err),
            &err);
  weir_tensor *cube = get(f, "cube"), *flags = get(f, "flags");
  assert_true(cube->read_only);
  assert_true((uint8_t *)cube->data > b.data &&
              (uint8_t *)cube->data < b.data + b.size);
  weir_safetensors_release(f);
  weir_tensor_unref(flags);
  assert_int_equal(closed, 0);
  assert_int_equal(weir_tensor_get_i64(cube, 23), 20);
  weir_tensor_unref(cube);
  assert_int_equal(closed, 1);
  weir_safetensors_release(NULL);
}

static io_bytes file_of(const char *header, size_t data_bytes) {
  io_bytes b = {.size = 8 + strlen(header) + data_bytes};
  b.data[0] = (uint8_t)strlen(header);
  b.data[1] = (uint8_t)(strlen(header) >> 8);
  memcpy(b.data + 8, header, strlen(header));
  return b;
}

/* Data that is not aligned, and bools that are not 0 or 1, are copied. */
static void copies_when_it_must(void **state) {
  (void)state;
  io_bytes b = file_of(
      "{\"b\":{\"dtype\":\"BOOL\",\"shape\":[1],"
      "\"data_offsets\":[0,1]},\"f\":{\"dtype\":\"F32\","
      "\"shape\":[1],\"data_offsets\":[1,5]},\"g\":{\"dtype\":"
      "\"F32\",\"shape\":[1],\"data_offsets\":[5,9]}}",
      9);
  float values[] = {2.5f, 3.5f};
  b.data[b.size - 9] = 2;
  memcpy(b.data + b.size - 8, values, 8);
  weir_safetensors *f = open_bytes(&b);
  weir_tensor *t = get(f, "b");
  assert_false(t->read_only);
  io_holds(t, WEIR_BOOL, 1, (int64_t[]){1}, (double[]){1});
  int views = 0;
  for (int i = 0; i < 2; i++) {
    t = get(f, i ? "g" : "f");
    views += t->read_only;
    assert_int_equal((uintptr_t)t->data % 4, 0);
    io_holds(t, WEIR_F32, 1, (int64_t[]){1}, (double[]){i ? 3.5 : 2.5});
  }
  assert_true(views == 0 || views == 2);
  weir_safetensors_release(f);
}

/* --- writing --- */

static weir_status write_three(const weir_allocator *alloc, const char *third,
                               weir_strbuf *out, weir_error *err) {
  weir_sv names[] = {WEIR_SV_LIT("flag"), WEIR_SV_LIT("a \"b\""),
                     weir_sv_from(third)};
  weir_tensor *tensors[] = {io_tensor(WEIR_BOOL, 1, (int64_t[]){1}, NULL),
                            io_tensor(WEIR_F32, 2, (int64_t[]){2, 3}, kGrid),
                            io_tensor(WEIR_I64, 0, NULL, (double[]){7})};
  weir_strbuf_init(out, alloc);
  weir_status s = weir_safetensors_write(names, tensors, 3, out, err);
  for (int i = 0; i < 3; i++) weir_tensor_unref(tensors[i]);
  return s;
}

static io_bytes three_tensors(void) {
  weir_error err = WEIR_ERROR_INIT;
  weir_strbuf out;
  assert_ok(write_three(weir_allocator_system(), "wide", &out, &err), &err);
  return io_take(&out);
}

static void writes(void **state) {
  (void)state;
  io_bytes b = three_tensors();
  assert_int_equal(b.size, 8 + 184 + 33);
  assert_memory_equal(b.data, "\xb8\0\0\0\0\0\0\0{\"wide\"", 15);
  weir_safetensors *f = open_bytes(&b);
  assert_int_equal(index_of(f, "wide"), 0);
  io_holds(get(f, "wide"), WEIR_I64, 0, NULL, (double[]){7});
  io_holds(get(f, "a \"b\""), WEIR_F32, 2, (int64_t[]){2, 3}, kGrid);
  io_holds(get(f, "flag"), WEIR_BOOL, 1, (int64_t[]){1}, (double[]){0});
  weir_safetensors_release(f);
}

static void refuses_to_write(void **state) {
  (void)state;
  const char *bad[] = {"flag", "__metadata__", "\xff"};
  weir_error err = WEIR_ERROR_INIT;
  for (int i = 0; i < 3; i++) {
    weir_strbuf out;
    assert_error(write_three(weir_allocator_system(), bad[i], &out, &err), &err,
                 "W5009");
    weir_strbuf_release(&out);
  }
}

static void no_memory_to_write(void **state) {
  (void)state;
  weir_status s = WEIR_UNKNOWN;
  for (uint64_t k = 1; s != WEIR_OK; k++) {
    weir_counted_allocator c;
    weir_strbuf out;
    weir_error err = WEIR_ERROR_INIT;
    weir_counted_allocator_init(&c, NULL);
    c.fail_at = k;
    s = write_three(&c.base, "wide", &out, &err);
    if (s != WEIR_OK) assert_string_equal(err.id, "W6001");
    weir_strbuf_release(&out);
    assert_int_equal(atomic_load(&c.live_blocks), 0);
  }
}

static void cuts_and_tails(void **state) {
  (void)state;
  io_bytes b = three_tensors();
  io_no_cut_is_read(read_all, &b);
  io_no_tail_is_read(read_all, &b, "W4005", "the file has 34");
  io_sweep(read_all, &b);
}

/* --- bad files (F07) --- */

static void refuses(const char *header, size_t data_bytes, const char *says) {
  io_bytes b = file_of(header, data_bytes);
  io_refuses(read_all, &b, "W4005", says);
}

#define T(dtype, shape, offsets) \
  "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void bad_lengths(void **state) {
  (void)state;
  io_bytes good = three_tensors(), b = good;
  b.data[7] = 0x80;
  io_refuses(read_all, &b, "W4005", "9223372036854775992 bytes");
  b = good;
  b.data[1] = 0xff;
  io_refuses(read_all, &b, "W4005", "the file has 225");
  b = good;
  b.data[0] = 0;
  io_refuses(read_all, &b, "W4005", "does not start with '{'");
  refuses("[]", 0, "does not start with '{'");
  refuses(" {}", 0, "does not start with '{'");
}

static void bad_ranges(void **state) {
  (void)state;
  refuses("{\"a\":" T("F32", "[1]", "[0,4]") "}", 5, "the file has 5");
  refuses("{\"a\":" T("F32", "[2]", "[0,8]") "}", 7, "after the end");
  refuses("{\"a\":" T("F32", "[1]", "[4,0]") "}", 4, "starts after its end");
  refuses("{\"a\":" T("F32", "[1]", "[1,5]") "}", 5, "a hole");
  refuses(
      "{\"a\":" T("U8", "[2]", "[0,2]") ",\"b\":" T("U8", "[2]", "[1,3]") "}",
      3, "'b': it overlaps");
  refuses(
      "{\"a\":" T("U8", "[2]", "[0,2]") ",\"b\":" T("U8", "[2]", "[0,2]") "}",
      2, "overlaps");
  refuses(
      "{\"a\":" T("U8", "[1]", "[0,1]") ",\"b\":" T("U8", "[1]", "[2,3]") "}",
      3, "a hole");
  refuses("{\"a\":" T("U8", "[2]", "[0,1]") "}", 1, "another number of bytes");
  refuses("{\"a\":" T("F16", "[2]", "[0,2]") "}", 2, "another number of");
  refuses("{\"a\":" T("F4", "[3]", "[0,2]") "}", 2, "fill its last byte");
  refuses("{\"a\":" T("U8", "[-1]", "[0,1]") "}", 1, "integers from 0");
  refuses("{\"a\":" T("U8", "[1]", "[0,1,2]") "}", 1, "too many");
  refuses("{\"a\":" T("U8", "[1]", "[0]") "}", 1, "not two numbers");
  refuses("{\"a\":" T("U8", "[1]", "[0,1.0]") "}", 1, "integers from 0");
  refuses("{\"a\":" T("U8", "[1]", "[0,99999999999999999999]") "}", 1,
          "integers from 0");
  refuses("{\"a\":" T("U8", "[4294967296,4294967296]", "[0,0]") "}", 0,
          "too large");
  refuses("{\"a\":" T("F64", "[4611686018427387904]", "[0,0]") "}", 0,
          "too large");
  refuses("{\"a\":" T("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]") "}", 1, "too many");
}

static void bad_descriptions(void **state) {
  (void)state;
  refuses("{\"a\":" T("F33", "[1]", "[0,4]") "}", 4, "dtype is unknown");
  refuses("{\"a\":{\"dtype\":4,\"shape\":[],\"data_offsets\":[0,1]}}", 1,
          "not a string");
  refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":1,\"data_offsets\":[0,1]}}", 1,
          "not a list");
  refuses("{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, "missing");
  refuses("{\"a\":{\"dtype\":\"U8\",\"x\":1}}", 1, "unknown key");
  refuses("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 1, "occurs twice");
  refuses("{\"a\":1}", 1, "not an object");
  refuses("{\"a\":" T("U8", "[1]", "[0,1]") ",\"\\u0061\":" T("U8", "[1]",
                                                              "[1,2]") "}",
          2, "'a': the name occurs twice");
  refuses("{\"__metadata__\":{},\"__metadata__\":{}}", 0, "twice");
  refuses("{\"__metadata__\":{\"a\":1}}", 0, "not a string");
  refuses("{\"__metadata__\":[]}", 0, "not an object");
}

static void bad_json(void **state) {
  (void)state;
  char deep[2000] = "{\"__metadata__\":{\"a\":";
  size_t n = strlen(deep);
  memset(deep + n, '[', 1500);
  refuses(deep, 0, "not a string");
  deep[0] = '{';
  refuses("{\"a\":" T("U8", "[[[[[[[[[[[[]]]]]]]]]]]]", "[0,1]") "}", 1,
          "integers from 0");
  refuses("{", 0, "header: ");
  refuses("{}x", 0, "header: ");
  refuses("{\"a\":}", 0, "header: ");
  refuses("{\"\xff\":{}}", 0, "header: ");
}

static void empty_files(void **state) {
  (void)state;
  io_bytes b = file_of("{}   ", 0);
  weir_safetensors *f = open_bytes(&b);
  assert_int_equal(weir_safetensors_count(f), 0);
  weir_safetensors_release(f);
  b = file_of("{\"a\":" T("F64", "[0,3]", "[0,0]") ",\"b\":" T(
                  "U8", "[]", "[0,1]") ",\"c\":" T("F64", "[0]", "[1,1]") "}",
              1);
  f = open_bytes(&b);
  io_holds(get(f, "a"), WEIR_F64, 2, (int64_t[]){0, 3}, NULL);
  io_holds(get(f, "b"), WEIR_U8, 0, NULL, (double[]){0});
  io_holds(get(f, "c"), WEIR_F64, 1, (int64_t[]){0}, NULL);
  weir_safetensors_release(f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_what_the_library_writes),
      cmocka_unit_test(views_keep_the_file),
      cmocka_unit_test(copies_when_it_must),
      cmocka_unit_test(writes),
      cmocka_unit_test(refuses_to_write),
      cmocka_unit_test(no_memory_to_write),
      cmocka_unit_test(cuts_and_tails),
      cmocka_unit_test(bad_lengths),
      cmocka_unit_test(bad_ranges),
      cmocka_unit_test(bad_descriptions),
      cmocka_unit_test(bad_json),
      cmocka_unit_test(empty_files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
