/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/array/idx.h"

#include "runtime/io/inflate.h"
#include "tests/io/io_check.h"

static weir_status read_idx(const weir_allocator *alloc, weir_bytes bytes,
                            weir_tensor **out_tensor, weir_error *err) {
  return weir_idx_read(alloc, bytes, "x.idx", out_tensor, err);
}

static weir_tensor *load(const io_bytes *b) {
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *t = NULL;
  assert_ok(read_idx(weir_allocator_system(), (weir_bytes){b->data, b->size},
                     &t, &err),
            &err);
  return t;
}

static io_bytes bytes_of(const char *data, size_t size) {
  io_bytes b = {.size = size};
  memcpy(b.data, data, size);
  return b;
}
#define BYTES(text) bytes_of(text, sizeof(text) - 1)

static void reads_every_type(void **state) {
  (void)state;
  const int64_t two[] = {2};
  io_bytes b = BYTES("\0\0\x08\x01\0\0\0\x02\x00\xff");
  io_holds(load(&b), WEIR_U8, 1, two, (double[]){0, 255});
  b = BYTES("\0\0\x09\x01\0\0\0\x02\x7f\xff");
  io_holds(load(&b), WEIR_I32, 1, two, (double[]){127, -1});
  b = BYTES("\0\0\x0b\x01\0\0\0\x02\x01\x02\xff\xfe");
  io_holds(load(&b), WEIR_I32, 1, two, (double[]){258, -2});
  b = BYTES("\0\0\x0c\x01\0\0\0\x02\x01\x00\x00\x00\xff\xff\xff\xff");
  io_holds(load(&b), WEIR_I32, 1, two, (double[]){16777216, -1});
  b = BYTES("\0\0\x0d\x01\0\0\0\x02\x3f\x80\0\0\xc0\0\0\0");
  io_holds(load(&b), WEIR_F32, 1, two, (double[]){1, -2});
  b = BYTES("\0\0\x0e\x01\0\0\0\x01\x3f\xf0\0\0\0\0\0\0");
  io_holds(load(&b), WEIR_F64, 1, (int64_t[]){1}, (double[]){1});
  b = BYTES("\0\0\x0b\x02\0\0\0\0\0\0\0\x07");
  io_holds(load(&b), WEIR_I32, 2, (int64_t[]){0, 7}, NULL);
}

static void reads_files(void **state) {
  (void)state;
  double count[32];
  for (int i = 0; i < 32; i++) count[i] = i;
  io_bytes b = io_fixture("f4.idx");
  assert_true(weir_idx_is((weir_bytes){b.data, b.size}));
  io_holds(load(&b), WEIR_F32, 2, (int64_t[]){2, 3},
           (double[]){0.5, 1.5, 2.5, 3.5, 4.5, 5.5});
  b = io_fixture("u1.idx.gz");
  assert_true(weir_gzip_is((weir_bytes){b.data, b.size}));
  io_holds(load(&b), WEIR_U8, 3, (int64_t[]){2, 4, 4}, count);
}

static void cuts_and_tails(void **state) {
  (void)state;
  io_bytes b = io_fixture("f4.idx");
  io_no_cut_is_read(read_idx, &b);
  io_no_tail_is_read(read_idx, &b, "W4006", "needs 24 bytes");
  io_sweep(read_idx, &b);
  b = io_fixture("u1.idx.gz");
  io_no_cut_is_read(read_idx, &b);
  io_no_tail_is_read(read_idx, &b, "W4007", "followed by other bytes");
  io_sweep(read_idx, &b);
}

/* F06 */
static void bad_headers(void **state) {
  (void)state;
  io_bytes good = BYTES("\0\0\x08\x01\0\0\0\x02\x00\xff"), b = good;
  b.data[2] = 0x0a;
  io_refuses(read_idx, &b, "W4006", "magic 00 00 0a 01");
  b = good;
  b.data[1] = 1;
  io_refuses(read_idx, &b, "W4006", "magic");
  b = good;
  b.data[3] = 255;
  io_refuses(read_idx, &b, "W4006", "255 dimensions");
  b = good;
  b.data[3] = 0;
  io_refuses(read_idx, &b, "W4006", "0 dimensions");
  b = good;
  memset(b.data + 4, 0xff, 4);
  io_refuses(read_idx, &b, "W4006", "needs 4294967295 bytes");
  b = BYTES("\0\0\x0e\x02\xff\xff\xff\xff\xff\xff\xff\xff");
  io_refuses(read_idx, &b, "W4006", "");
  b = BYTES("\0\0\x08\x03\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff");
  io_refuses(read_idx, &b, "W4006", "");
}

/* A gzip of stored blocks around |data|, with the right CRC. */
static io_bytes gzip_of(const io_bytes *data) {
  io_bytes b = {.size = 0};
  uint32_t n = (uint32_t)data->size;
  uint32_t crc = weir_crc32((weir_bytes){data->data, data->size});
  const uint8_t head[] = {0x1f,
                          0x8b,
                          8,
                          0,
                          0,
                          0,
                          0,
                          0,
                          0,
                          3,
                          1,
                          (uint8_t)n,
                          (uint8_t)(n >> 8),
                          (uint8_t)~n,
                          (uint8_t)(~n >> 8)};
  memcpy(b.data, head, sizeof head);
  memcpy(b.data + sizeof head, data->data, n);
  memcpy(b.data + sizeof head + n, &crc, 4);
  memcpy(b.data + sizeof head + n + 4, &n, 4);
  b.size = sizeof head + n + 8;
  return b;
}

static void bad_streams(void **state) {
  (void)state;
  io_bytes plain = BYTES("\0\0\x0b\x01\0\0\0\x02\x01\x02\xff\xfe");
  io_bytes b = gzip_of(&plain);
  io_holds(load(&b), WEIR_I32, 1, (int64_t[]){2}, (double[]){258, -2});
  b.data[b.size - 8] ^= 1; /* the CRC */
  io_refuses(read_idx, &b, "W4007", "incorrect data check");
  plain.data[7] = 1; /* declares one element of two */
  b = gzip_of(&plain);
  io_refuses(read_idx, &b, "W4007", "holds more than was declared");
  plain.data[7] = 3;
  b = gzip_of(&plain);
  io_refuses(read_idx, &b, "W4007", "ends early");
  memset(plain.data + 4, 0xff, 4); /* beyond deflate's ratio */
  b = gzip_of(&plain);
  io_refuses(read_idx, &b, "W4006", "cannot hold more than");
  plain = BYTES("plain text, not an IDX file");
  b = gzip_of(&plain);
  io_refuses(read_idx, &b, "W4006", "magic 70 6c 61 69");
  b = io_fixture("u1.idx.gz");
  b.data[2] = 7; /* an unknown method */
  io_refuses(read_idx, &b, "W4007", "unknown compression method");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_every_type), cmocka_unit_test(reads_files),
      cmocka_unit_test(cuts_and_tails),   cmocka_unit_test(bad_headers),
      cmocka_unit_test(bad_streams),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
