/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/bytes/proto.h"

#include <stdlib.h>

#include "tests/check.h"

/* The wire form: bytes known from the specification, written bytes read back,
 * and every cut and bit flip of a small message, which must give fields within
 * the message or a failed reader that stays failed. */

static weir_reader over(const weir_strbuf *b) {
  return weir_reader_of(b->data, b->size);
}

/* The examples of protobuf.dev, "Encoding". */
static void known_bytes(void **state) {
  (void)state;
  static const uint8_t want[] = {0x08, 0x96, 0x01, 0x12, 0x07, 't',  'e',  's',
                                 't',  'i',  'n',  'g',  0x1a, 0x03, 0x08, 0x96,
                                 0x01, 0x25, 0,    0,    0x80, 0x3f, 0x29, 0,
                                 0,    0,    0,    0,    0,    0,    0xc0};
  weir_strbuf b, inner;
  weir_strbuf_init(&b, weir_allocator_system());
  weir_strbuf_init(&inner, weir_allocator_system());
  weir_proto_put_int(&inner, 1, 150);
  weir_proto_put_int(&b, 1, 150);
  weir_proto_put_bytes(&b, 2, WEIR_SV_LIT("testing"));
  weir_proto_put_bytes(&b, 3, weir_strbuf_view(&inner));
  weir_proto_put_float(&b, 4, 1.0f);
  weir_proto_put_double(&b, 5, -2.0);
  assert_int_equal(b.size, sizeof want);
  assert_memory_equal(b.data, want, sizeof want);
  weir_strbuf_release(&inner);
  weir_strbuf_release(&b);
}

static void varints_come_back(void **state) {
  (void)state;
  weir_strbuf b;
  weir_strbuf_init(&b, weir_allocator_system());
  for (int side = -1; side <= 1; side++)
    for (unsigned bit = 0; bit < 64; bit++)
      weir_proto_put_packed_varint(&b, (UINT64_C(1) << bit) + (uint64_t)side);
  weir_reader r = over(&b);
  for (int side = -1; side <= 1; side++)
    for (unsigned bit = 0; bit < 64; bit++)
      assert_true(weir_proto_varint(&r) ==
                  (UINT64_C(1) << bit) + (uint64_t)side);
  assert_false(r.failed);
  assert_int_equal(weir_reader_left(&r), 0);
  weir_strbuf_clear(&b);
  weir_proto_put_int(&b, 1, INT64_MIN);
  weir_proto_put_int(&b, (1 << 29) - 1, -1);
  weir_proto_field f;
  r = over(&b);
  assert_true(weir_proto_next(&r, &f));
  assert_true((int64_t)f.value == INT64_MIN);
  assert_true(weir_proto_next(&r, &f));
  assert_int_equal(f.number, (1 << 29) - 1);
  assert_true((int64_t)f.value == -1);
  assert_false(weir_proto_next(&r, &f));
  assert_false(r.failed);
  weir_strbuf_release(&b);
}

/* The number whose bits |bits| are. */
static double as_double(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void fields_come_back(void **state) {
  (void)state;
  weir_strbuf b, packed;
  weir_strbuf_init(&b, weir_allocator_system());
  weir_strbuf_init(&packed, weir_allocator_system());
  weir_proto_put_packed_double(&packed, 0.25);
  weir_proto_put_packed_double(&packed, -0.0);
  weir_proto_put_bytes(&b, 7, weir_strbuf_view(&packed));
  weir_proto_put_bytes(&b, 8, WEIR_SV_LIT(""));
  weir_proto_put_float(&b, 9, 1.5f);
  weir_proto_put_double(&b, 10, 1e300);
  weir_reader r = over(&b);
  weir_proto_field f;
  assert_true(weir_proto_next(&r, &f));
  assert_int_equal(f.number, 7);
  assert_int_equal(f.wire, WEIR_PROTO_BYTES);
  assert_true(as_double(weir_reader_u64le(&f.sub)) == 0.25);
  assert_true(weir_reader_u64le(&f.sub) == UINT64_C(1) << 63);
  assert_int_equal(weir_reader_left(&f.sub), 0);
  assert_true(weir_proto_next(&r, &f));
  assert_int_equal(f.sub.size, 0);
  assert_true(weir_proto_next(&r, &f));
  assert_true(weir_proto_as_float(f.value) == 1.5f);
  assert_true(weir_proto_next(&r, &f));
  assert_true(as_double(f.value) == 1e300);
  assert_false(weir_proto_next(&r, &f) || r.failed);
  weir_strbuf_release(&packed);
  weir_strbuf_release(&b);
}

static void unsound_messages_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *why;
    uint8_t bytes[16];
    size_t size;
  } cases[] = {
      {"number 0", {0x00, 0x01}, 2},
      {"number of 2^29", {0x80, 0x80, 0x80, 0x80, 0x10, 0x01}, 6},
      {"wire type 3, a group", {0x0b, 0x0c}, 2},
      {"wire type 7", {0x0f, 0x00}, 2},
      {"a key that is cut", {0x80}, 1},
      {"no value", {0x08}, 1},
      {"a varint that is cut", {0x08, 0xff}, 2},
      {"a varint of 11 bytes",
       {0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
       12},
      {"a fixed32 that is cut", {0x0d, 1, 2, 3}, 4},
      {"a fixed64 that is cut", {0x09, 1, 2, 3, 4, 5, 6, 7}, 8},
      {"bytes past the end", {0x0a, 0x02, 0x00}, 3},
      {"bytes of 2^64 - 1",
       {0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
       11},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    weir_reader r = weir_reader_of(cases[i].bytes, cases[i].size);
    weir_proto_field f;
    if (weir_proto_next(&r, &f) || !r.failed)
      fail_msg("%s is taken", cases[i].why);
    assert_false(weir_proto_next(&r, &f));
    assert_int_equal(f.sub.size, 0);
    assert_int_equal(weir_proto_varint(&r), 0);
    assert_true(r.failed);
  }
}

/* Reads |r| to its end and one level into each of its fields. Everything that
 * it lends lies within the |size| bytes at |data|. */
static void read_all(weir_reader r, const uint8_t *data, size_t size) {
  weir_proto_field f, inner;
  size_t fields = 0;
  while (weir_proto_next(&r, &f)) {
    assert_true(f.number > 0 && f.number < 1u << 29);
    if (f.wire == WEIR_PROTO_BYTES && f.sub.size > 0)
      assert_true(f.sub.data >= data && f.sub.data + f.sub.size <= data + size);
    while (weir_proto_next(&f.sub, &inner)) assert_true(inner.number > 0);
    while (weir_reader_left(&f.sub) > 0) (void)weir_proto_varint(&f.sub);
    assert_true(++fields <= size);
  }
  assert_true(r.failed || weir_reader_left(&r) == 0);
  bool failed = r.failed;
  assert_false(weir_proto_next(&r, &f));
  assert_int_equal(r.failed, failed);
}

/* The message is copied to memory of its own size, so that a sanitizer sees a
 * byte read too far. */
static void read_copy(const char *message, size_t size) {
  uint8_t *copy = malloc(size > 0 ? size : 1);
  assert_non_null(copy);
  memcpy(copy, message, size);
  read_all(weir_reader_of(copy, size), copy, size);
  free(copy);
}

static void every_cut_and_flip(void **state) {
  (void)state;
  weir_strbuf b, inner;
  weir_strbuf_init(&b, weir_allocator_system());
  weir_strbuf_init(&inner, weir_allocator_system());
  weir_proto_put_bytes(&inner, 1, WEIR_SV_LIT("loss"));
  weir_proto_put_float(&inner, 2, 0.5f);
  weir_proto_put_double(&b, 1, 1.75);
  weir_proto_put_int(&b, 2, 300);
  weir_proto_put_int(&b, 3, -1);
  weir_proto_put_bytes(&b, 5, weir_strbuf_view(&inner));
  weir_proto_put_bytes(&b, 6, WEIR_SV_LIT(""));
  for (size_t size = 0; size <= b.size; size++) {
    read_copy(b.data, size);
    for (size_t bit = 0; bit < 8 * size; bit++) {
      b.data[bit / 8] = (char)(b.data[bit / 8] ^ 1 << bit % 8);
      read_copy(b.data, size);
      b.data[bit / 8] = (char)(b.data[bit / 8] ^ 1 << bit % 8);
    }
  }
  weir_strbuf_release(&inner);
  weir_strbuf_release(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(known_bytes),
      cmocka_unit_test(varints_come_back),
      cmocka_unit_test(fields_come_back),
      cmocka_unit_test(unsound_messages_are_refused),
      cmocka_unit_test(every_cut_and_flip),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
