/* SPDX-License-Identifier: Apache-2.0
 *
 * Bulk frames: read back by the generated code, cut anywhere, damaged. */
#include "runtime/net/wire_bulk.h"

#include <stdlib.h>

#include "runtime/base/bytes/crc32c.h"
#include "runtime/net/wire.h"
#include "tests/check.h"

enum { kPayload = 300 };

static uint8_t payload[kPayload];
static const weir_bulk kBulk = {
    .kind = WEIR__V1__VALUE_KIND__FETCH,
    .id = 4000000000u,
    .step = 1ull << 40,
    .epoch = 3,
    .offset = 1ull << 33,
    .total = (1ull << 33) + kPayload + 5,
    .size = kPayload,
    .credit = 1ull << 22,
};

/* A whole frame in memory of its own. */
static weir_bytes made(const weir_bulk *bulk, bool crc) {
  uint8_t header[WEIR_BULK_HEADER_BYTES];
  for (size_t i = 0; i < kPayload; i++) payload[i] = (uint8_t)(i * 7);
  size_t n = weir_bulk_write(bulk, payload, crc, header);
  uint8_t *bytes = malloc(n + bulk->size);
  memcpy(bytes, header, n);
  memcpy(bytes + n, payload, bulk->size);
  return (weir_bytes){bytes, n + bulk->size};
}

static weir_status read_pieces(const weir_bytes *pieces, size_t count,
                               weir_bulk *bulk, weir_bulk_payload *rest,
                               weir_error *err) {
  static weir_net_frame frame; /* lent to |rest| */
  frame = (weir_net_frame){.pieces = pieces, .count = count};
  for (size_t i = 0; i < count; i++) frame.size += pieces[i].size;
  return weir_bulk_read(&frame, bulk, rest, err);
}

static void check_read(const weir_bytes *pieces, size_t count) {
  weir_error err = WEIR_ERROR_INIT;
  weir_bulk bulk;
  weir_bulk_payload rest;
  weir_bytes piece;
  uint8_t back[kPayload];
  size_t n = 0;
  assert_ok(read_pieces(pieces, count, &bulk, &rest, &err), &err);
  assert_memory_equal(&bulk, &kBulk, sizeof bulk);
  memset(&bulk, 0, sizeof bulk);
  assert_true(weir_bulk_peek(rest.frame, &bulk));
  assert_memory_equal(&bulk, &kBulk, sizeof bulk);
  while (weir_bulk_next(&rest, &piece)) {
    assert_true(piece.size > 0 && piece.size <= kPayload - n);
    memcpy(back + n, piece.data, piece.size);
    n += piece.size;
  }
  assert_int_equal(n, kPayload);
  assert_memory_equal(back, payload, kPayload);
}

static void generated_code_reads_it(void **state) {
  (void)state;
  for (int crc = 0; crc < 2; crc++) {
    weir_bytes frame = made(&kBulk, crc != 0);
    Weir__V1__Bulk *b = weir__v1__bulk__unpack(NULL, frame.size, frame.data);
    assert_non_null(b);
    assert_int_equal(b->base.n_unknown_fields, 0);
    assert_int_equal(b->kind, WEIR__V1__VALUE_KIND__FETCH);
    assert_int_equal(b->id, kBulk.id);
    assert_int_equal(b->step, kBulk.step);
    assert_int_equal(b->epoch, kBulk.epoch);
    assert_int_equal(b->offset, kBulk.offset);
    assert_int_equal(b->total, kBulk.total);
    assert_int_equal(b->credit, kBulk.credit);
    assert_int_equal(b->crc32c != 0, crc);
    assert_int_equal(b->payload.len, kPayload);
    assert_memory_equal(b->payload.data, payload, kPayload);
    weir__v1__bulk__free_unpacked(b, NULL);
    free((void *)frame.data);
  }
}

/* Credit has no chunk, and nothing has neither. */
static void credit_goes_alone(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_bulk bulk = {.epoch = 7, .credit = 1 << 20}, back;
  weir_bulk_payload rest;
  for (int crc = 0; crc < 2; crc++) {
    weir_bytes frame = made(&bulk, crc != 0), piece;
    assert_ok(read_pieces(&frame, 1, &back, &rest, &err), &err);
    assert_memory_equal(&back, &bulk, sizeof bulk);
    assert_false(weir_bulk_next(&rest, &piece));
    free((void *)frame.data);
  }
  uint8_t none[] = {15 << 3 | 2, 0};
  weir_bytes frame = {none, sizeof none};
  assert_int_equal(read_pieces(&frame, 1, &back, &rest, &err), WEIR_DATA_LOSS);
}

/* Into two pieces at each byte, into three around the header's end, into pieces
 * of one byte, with empty pieces between. */
static void pieces_are_cut_anywhere(void **state) {
  (void)state;
  for (int crc = 0; crc < 2; crc++) {
    weir_bytes f = made(&kBulk, crc != 0), p[2 * (kPayload + 96)];
    for (size_t cut = 0; cut <= f.size; cut++) {
      p[0] = (weir_bytes){f.data, cut};
      p[1] = (weir_bytes){f.data + cut, f.size - cut};
      check_read(p, 2);
      for (size_t more = cut; more <= cut + 3 && more <= f.size; more++) {
        p[1] = (weir_bytes){f.data + cut, more - cut};
        p[2] = (weir_bytes){f.data + more, f.size - more};
        check_read(p, 3);
      }
    }
    for (size_t i = 0; i < f.size; i++) {
      p[2 * i] = (weir_bytes){f.data + i, 1};
      p[2 * i + 1] = (weir_bytes){NULL, 0};
    }
    check_read(p, 2 * f.size);
    free((void *)f.data);
  }
}

static weir_status read_all(weir_bytes f, weir_bulk *bulk, weir_error *err) {
  weir_bulk_payload rest;
  return read_pieces(&f, 1, bulk, &rest, err);
}

static void damage_is_found(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_bulk bulk;
  weir_bytes f = made(&kBulk, true);
  for (size_t bit = 0; bit < 8 * f.size; bit++) {
    uint8_t *at = (uint8_t *)f.data + bit / 8;
    *at ^= (uint8_t)(1u << bit % 8);
    if (read_all(f, &bulk, &err) == WEIR_OK) {
      /* the key of the checksum alone: it is an unknown field then */
      assert_memory_equal(&bulk, &kBulk, sizeof bulk);
    }
    *at ^= (uint8_t)(1u << bit % 8);
  }
  for (size_t size = 0; size < f.size; size++) {
    uint8_t *copy = malloc(size + 1);
    memcpy(copy, f.data, size);
    assert_error(read_all((weir_bytes){copy, size}, &bulk, &err), &err,
                 "W7010");
    free(copy);
  }
  free((void *)f.data);
}

static void check_refused(weir_bulk bulk, const char *words) {
  weir_error err = WEIR_ERROR_INIT;
  weir_bulk back;
  weir_bytes f = made(&bulk, false);
  assert_error(read_all(f, &back, &err), &err, "W7010");
  if (strstr(err.message, words) == NULL)
    fail_msg("%s is not in: %s", words, err.message);
  free((void *)f.data);
}

static void headers_are_checked(void **state) {
  (void)state;
  weir_bulk b = kBulk;
  b.kind = 5;
  check_refused(b, "no known kind");
  b.kind = UINT32_MAX;
  check_refused(b, "no known kind");
  b = kBulk;
  b.offset = b.total - kPayload + 1;
  check_refused(b, "bytes");
  b.offset = UINT64_MAX - 3;
  check_refused(b, "bytes");
  b = kBulk;
  b.total = UINT64_MAX;
  b.offset = 0;
  check_refused(b, "bytes");
  b.total = 0;
  check_refused(b, "bytes");
}

/* The frame's size and the payload's must agree; more than a chunk is none. */
static void sizes_are_checked(void **state) {
  (void)state;
  weir_error err = WEIR_ERROR_INIT;
  weir_bulk bulk;
  static uint8_t large[WEIR_BULK_FRAME_BYTES + 8];
  weir_bytes f = made(&kBulk, false);
  memcpy(large, f.data, f.size);
  assert_error(read_all((weir_bytes){large, f.size + 1}, &bulk, &err), &err,
               "W7010");
  free((void *)f.data);
  bulk = (weir_bulk){.total = 1 << 21, .size = WEIR_BULK_CHUNK_BYTES};
  size_t n = weir_bulk_write(&bulk, NULL, false, large);
  assert_ok(
      read_all((weir_bytes){large, n + WEIR_BULK_CHUNK_BYTES}, &bulk, &err),
      &err);
  large[n - 3]++; /* the payload's length, a varint of three bytes */
  assert_error(
      read_all((weir_bytes){large, n + WEIR_BULK_CHUNK_BYTES + 1}, &bulk, &err),
      &err, "W7010");
  static const uint8_t kEmpty[] = {0x30, 1, 0x7a, 0}; /* total 1, no payload */
  assert_error(read_all((weir_bytes){kEmpty, 4}, &bulk, &err), &err, "W7010");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(generated_code_reads_it),
      cmocka_unit_test(credit_goes_alone),
      cmocka_unit_test(pieces_are_cut_anywhere),
      cmocka_unit_test(damage_is_found),
      cmocka_unit_test(headers_are_checked),
      cmocka_unit_test(sizes_are_checked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
