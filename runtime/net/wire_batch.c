/* SPDX-License-Identifier: Apache-2.0
 *
 * Many small values in one control message.
 *
 * Values and Ready are both a repeated message in field 1, so a batch is a row
 * of such fields, written by hand as they come. The fields before them,
 * checksum, epoch, and the body's number and length, are known at the end only:
 * room is left for it, and it is written backwards from the first value.
 */
#include "runtime/net/wire_batch.h"

#include <assert.h>

#include "runtime/base/bytes/crc32c.h"
#include "runtime/base/bytes/proto.h"
#include "runtime/net/wire_error.h"

enum {
  kCrcBytes = 5,
  kHeadBytes = 64,      /* of a value before its data, at most */
  kErrorBytes = 3 << 10 /* of an error, at most: wire_check.c */
};

static size_t put_int(uint8_t *dst, uint32_t number, uint64_t value) {
  if (value == 0) return 0;
  size_t n = weir_proto_write_varint(dst, number << 3 | WEIR_PROTO_VARINT);
  return n + weir_proto_write_varint(dst + n, value);
}

static size_t put_length(uint8_t *dst, uint32_t number, size_t size) {
  size_t n = weir_proto_write_varint(dst, number << 3 | WEIR_PROTO_BYTES);
  return n + weir_proto_write_varint(dst + n, size);
}

void weir_wire_batch_init(weir_wire_batch *batch, const weir_allocator *alloc,
                          uint32_t body) {
  *batch = (weir_wire_batch){
      .alloc = alloc, .body = body, .size = WEIR_WIRE_BATCH_HEAD};
}

void weir_wire_batch_release(weir_wire_batch *batch) {
  weir_free(batch->alloc, batch->data);
  weir_wire_batch_init(batch, batch->alloc, batch->body);
}

/* Room for |more| bytes: at once for all that a batch may hold. */
static bool reserve(weir_wire_batch *b, size_t more) {
  size_t least = WEIR_WIRE_BATCH_HEAD + WEIR_WIRE_BATCH_BYTES +
                 WEIR_WIRE_VALUE_BYTES + 2 * kHeadBytes;
  if (b->capacity - b->size >= more && b->data != NULL) return true;
  size_t capacity = b->capacity + b->capacity / 2;
  if (capacity < least) capacity = least;
  if (capacity < b->size + more) capacity = b->size + more;
  uint8_t *data = weir_alloc(b->alloc, capacity);
  if (data == NULL) return false;
  if (b->data != NULL) memcpy(data, b->data, b->size);
  weir_free(b->alloc, b->data);
  b->data = data;
  b->capacity = capacity;
  return true;
}

/* Appends one value: its slot, then |tail|, fields that are written already,
 * then |data|. */
static bool append(weir_wire_batch *b, const weir_slot *slot, weir_bytes tail,
                   weir_bytes data) {
  uint8_t head[kHeadBytes];
  size_t n = put_int(head, 1, slot->kind);
  n += put_int(head + n, 2, slot->id);
  n += put_int(head + n, 3, slot->step);
  size_t size = n + tail.size + data.size;
  if (!reserve(b, size + kHeadBytes)) return false;
  b->size += put_length(b->data + b->size, 1, size);
  memcpy(b->data + b->size, head, n);
  b->size += n;
  if (tail.size > 0) memcpy(b->data + b->size, tail.data, tail.size);
  b->size += tail.size;
  if (data.size > 0) memcpy(b->data + b->size, data.data, data.size);
  b->size += data.size;
  b->count++;
  return true;
}

bool weir_wire_batch_value(weir_wire_batch *batch, const weir_slot *slot,
                           weir_bytes data) {
  uint8_t tail[kHeadBytes];
  size_t n = data.size > 0 ? put_length(tail, 4, data.size) : 0;
  assert(data.size <= WEIR_WIRE_VALUE_BYTES);
  return append(batch, slot, (weir_bytes){tail, n}, data);
}

bool weir_wire_batch_total(weir_wire_batch *batch, const weir_slot *slot,
                           uint64_t total) {
  uint8_t tail[kHeadBytes];
  size_t n = put_int(tail, 6, total);
  return append(batch, slot, (weir_bytes){tail, n}, (weir_bytes){0});
}

bool weir_wire_batch_error(weir_wire_batch *batch, const weir_slot *slot,
                           const weir_error *why) {
  uint8_t tail[kHeadBytes + kErrorBytes];
  Weir__V1__Error e;
  weir_wire_error_put(why, &e);
  size_t size = weir__v1__error__get_packed_size(&e);
  assert(size <= kErrorBytes);
  size_t n = put_length(tail, 5, size);
  n += weir__v1__error__pack(&e, tail + n);
  return append(batch, slot, (weir_bytes){tail, n}, (weir_bytes){0});
}

bool weir_wire_batch_slot(weir_wire_batch *batch, const weir_slot *slot) {
  return append(batch, slot, (weir_bytes){0}, (weir_bytes){0});
}

bool weir_wire_batch_is_full(const weir_wire_batch *batch) {
  return batch->size >= WEIR_WIRE_BATCH_HEAD + WEIR_WIRE_BATCH_BYTES;
}

static void put_crc(uint8_t *frame, size_t size) {
  uint32_t crc = weir_crc32c(0, frame + kCrcBytes, size - kCrcBytes);
  frame[0] = 1 << 3 | WEIR_PROTO_FIXED32;
  (void)weir_proto_write_fixed(frame + 1, crc, sizeof crc);
}

weir_bytes weir_wire_batch_frame(weir_wire_batch *batch, uint64_t epoch) {
  uint8_t head[WEIR_WIRE_BATCH_HEAD];
  assert(batch->count > 0);
  size_t n = kCrcBytes + put_int(head + kCrcBytes, 2, epoch);
  n += put_length(head + n, batch->body, batch->size - WEIR_WIRE_BATCH_HEAD);
  assert(n <= sizeof head);
  uint8_t *frame = batch->data + WEIR_WIRE_BATCH_HEAD - n;
  memcpy(frame, head, n);
  weir_bytes all = {frame, batch->size - WEIR_WIRE_BATCH_HEAD + n};
  put_crc(frame, all.size);
  return all;
}

void weir_wire_batch_clear(weir_wire_batch *batch) {
  batch->size = WEIR_WIRE_BATCH_HEAD;
  batch->count = 0;
}

size_t weir_wire_pack_small(const Weir__V1__Control *control,
                            uint8_t dst[WEIR_WIRE_SMALL_BYTES]) {
  Weir__V1__Control copy = *control;
  copy.crc32c = 0;
  size_t size = protobuf_c_message_get_packed_size(&copy.base);
  if (size > WEIR_WIRE_SMALL_BYTES - kCrcBytes) return 0;
  (void)protobuf_c_message_pack(&copy.base, dst + kCrcBytes);
  put_crc(dst, kCrcBytes + size);
  return kCrcBytes + size;
}
