/* SPDX-License-Identifier: Apache-2.0 */
#include <zlib.h>

#include "tests/io/stream_check.h"

enum { kSize = 20000 };

static void fill(uint8_t *bytes) {
  uint32_t x = 3;
  for (int i = 0; i < kSize; i++)
    bytes[i] = (uint8_t)((x = x * 1664525 + 1013904223) >> 30);
}

static size_t pack(const uint8_t *bytes, size_t size, uint8_t *to,
                   size_t room) {
  z_stream z = {0};
  assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, 0), Z_OK);
  z.next_in = (Bytef *)(uintptr_t)bytes;
  z.avail_in = (uInt)size;
  z.next_out = to;
  z.avail_out = (uInt)room;
  assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
  size_t made = z.total_out;
  deflateEnd(&z);
  return made;
}

/* Goes here and there; the bytes are those of the content. */
static void anywhere(void **state) {
  (void)state;
  uint8_t bytes[kSize], packed[kSize], got[3000];
  fill(bytes);
  size_t n = pack(bytes, kSize, packed, sizeof packed);
  for (int kind = 0; kind < 3; kind++)
    for (size_t window = 1; window < 5000; window = window * 3 + 1) {
      mem_file m = {kind == 0 ? bytes : packed, kind == 0 ? kSize : n};
      mem_env e;
      weir_error err = WEIR_ERROR_INIT;
      weir_blob *blob = mem_open(&e, &m);
      assert_int_equal(blob->gzip, kind > 0);
      if (kind == 2) assert_ok(weir_blob_load(blob, kSize, &err), &err);
      assert_int_equal(blob->gzip, kind == 1);
      weir_stream *stream = mem_stream(&e, blob, window);
      uint32_t x = 9;
      for (int i = 0; i < 60; i++) {
        size_t at = (x = x * 1664525 + 1013904223) % (kSize - sizeof got);
        size_t size = (x >> 8) % sizeof got;
        assert_ok(weir_stream_attach(stream, blob, at, &err), &err);
        assert_int_equal(weir_stream_at(stream), at);
        assert_ok(weir_stream_read(stream, got, size, &err), &err);
        assert_memory_equal(got, bytes + at, size);
        assert_int_equal(weir_stream_at(stream), at + size);
        weir_bytes peeked;
        size_t want = (x >> 12) % 300;
        assert_ok(weir_stream_peek(stream, want, &peeked, &err), &err);
        if (at + size + want <= kSize) assert_true(peeked.size >= want);
        assert_memory_equal(peeked.data, bytes + at + size, peeked.size);
      }
      assert_ok(weir_stream_attach(stream, blob, kSize + 5, &err), &err);
      assert_int_equal(weir_stream_at(stream), kSize);
      assert_error(weir_stream_read(stream, got, 1, &err), &err, "W4020");
      weir_stream_release(stream);
      mem_close(&e, blob);
    }
}

static void loads_what_fits(void **state) {
  (void)state;
  uint8_t bytes[kSize], packed[kSize];
  fill(bytes);
  size_t n = pack(bytes, kSize, packed, sizeof packed);
  mem_file m = {packed, n};
  mem_env e;
  weir_error err = WEIR_ERROR_INIT;
  weir_blob *blob = mem_open(&e, &m);
  assert_ok(weir_blob_load(blob, kSize - 1, &err), &err);
  assert_true(blob->gzip);
  weir_blob_release(blob);
  packed[n - 5] ^= 1; /* the checksum */
  blob = mem_open(&e, &m);
  assert_error(weir_blob_load(blob, kSize, &err), &err, "W4007");
  mem_close(&e, blob);
}

static void cut_gzip(void **state) {
  (void)state;
  uint8_t bytes[kSize], packed[kSize], got[kSize];
  fill(bytes);
  size_t n = pack(bytes, kSize, packed, sizeof packed);
  for (size_t cut = 2; cut < n; cut += 7) {
    mem_file m = {packed, cut};
    mem_env e;
    weir_error err = WEIR_ERROR_INIT;
    weir_bytes rest;
    weir_blob *blob = mem_open(&e, &m);
    weir_stream *stream = mem_stream(&e, blob, 512);
    weir_status s = weir_stream_read(stream, got, kSize, &err);
    if (s == WEIR_OK) s = weir_stream_peek(stream, 1, &rest, &err);
    assert_int_not_equal(s, WEIR_OK);
    assert_string_equal(err.id, "W4007");
    weir_stream_release(stream);
    mem_close(&e, blob);
  }
}

static void too_long(void **state) {
  (void)state;
  mem_file m = {"abc", 3};
  mem_env e;
  weir_bytes b;
  weir_error err = WEIR_ERROR_INIT;
  weir_blob *blob = mem_open(&e, &m);
  weir_stream *stream = mem_stream(&e, blob, 2);
  assert_error(weir_stream_peek(stream, WEIR_STREAM_MOST + 1, &b, &err), &err,
               "W4036");
  assert_ok(weir_stream_peek(stream, 100, &b, &err), &err);
  assert_int_equal(b.size, 3);
  weir_stream_release(stream);
  mem_close(&e, blob);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(anywhere),
      cmocka_unit_test(loads_what_fits),
      cmocka_unit_test(cut_gzip),
      cmocka_unit_test(too_long),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
