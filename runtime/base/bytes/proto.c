/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/bytes/proto.h"

/* A field is a key, then a value. The key is a varint of number * 8 + wire
 * type; the wire type tells how long the value is, so that a reader passes over
 * fields that it does not know. */

enum { kMaxNumber = (1 << 29) - 1 };

/* ---- Writing */

void weir_proto_put_packed_varint(weir_strbuf *out, uint64_t value) {
  uint8_t bytes[WEIR_PROTO_MAX_VARINT];
  size_t n = weir_proto_write_varint(bytes, value);
  weir_strbuf_append(out, (const char *)bytes, n);
}

void weir_proto_put_fixed(weir_strbuf *out, uint64_t value, unsigned bytes) {
  uint8_t raw[8];
  size_t n = weir_proto_write_fixed(raw, value, bytes);
  weir_strbuf_append(out, (const char *)raw, n);
}

static void put_key(weir_strbuf *out, uint32_t number, weir_proto_wire wire) {
  weir_proto_put_packed_varint(out, (uint64_t)number << 3 | (uint64_t)wire);
}

void weir_proto_put_int(weir_strbuf *out, uint32_t number, int64_t value) {
  put_key(out, number, WEIR_PROTO_VARINT);
  weir_proto_put_packed_varint(out, (uint64_t)value);
}

void weir_proto_put_bytes(weir_strbuf *out, uint32_t number, weir_sv bytes) {
  put_key(out, number, WEIR_PROTO_BYTES);
  weir_proto_put_packed_varint(out, bytes.size);
  weir_strbuf_append(out, bytes.data, bytes.size);
}

void weir_proto_put_float(weir_strbuf *out, uint32_t number, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  put_key(out, number, WEIR_PROTO_FIXED32);
  weir_proto_put_fixed(out, bits, sizeof bits);
}

void weir_proto_put_packed_double(weir_strbuf *out, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  weir_proto_put_fixed(out, bits, sizeof bits);
}

void weir_proto_put_double(weir_strbuf *out, uint32_t number, double value) {
  put_key(out, number, WEIR_PROTO_FIXED64);
  weir_proto_put_packed_double(out, value);
}

/* ---- Reading */

uint64_t weir_proto_varint(weir_reader *r) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 7 * WEIR_PROTO_MAX_VARINT; shift += 7) {
    uint8_t b = weir_reader_u8(r);
    value |= (uint64_t)(b & 0x7f) << shift;
    if (b < 0x80) return r->failed ? 0 : value;
  }
  r->failed = true;
  return 0;
}

/* The bytes of a field. Their number comes from the message, so it is compared
 * with the bytes left before it becomes a size_t. */
static weir_reader read_bytes(weir_reader *r) {
  uint64_t size = weir_proto_varint(r);
  if (size > weir_reader_left(r)) r->failed = true;
  const uint8_t *bytes = weir_reader_bytes(r, r->failed ? 0 : (size_t)size);
  return weir_reader_of(bytes, bytes != NULL ? (size_t)size : 0);
}

bool weir_proto_next(weir_reader *r, weir_proto_field *out_field) {
  *out_field = (weir_proto_field){0};
  if (weir_reader_left(r) == 0) return false;
  uint64_t key = weir_proto_varint(r), number = key >> 3;
  if (number == 0 || number > kMaxNumber) r->failed = true;
  out_field->number = (uint32_t)number;
  out_field->wire = (weir_proto_wire)(key & 7);
  switch (out_field->wire) {
    case WEIR_PROTO_VARINT:
      out_field->value = weir_proto_varint(r);
      break;
    case WEIR_PROTO_FIXED64:
      out_field->value = weir_reader_u64le(r);
      break;
    case WEIR_PROTO_FIXED32:
      out_field->value = weir_reader_u32le(r);
      break;
    case WEIR_PROTO_BYTES:
      out_field->sub = read_bytes(r);
      break;
    default:
      r->failed = true; /* groups, and unknown wire types */
  }
  return !r->failed;
}

float weir_proto_as_float(uint64_t bits) {
  uint32_t low = (uint32_t)bits;
  float value;
  memcpy(&value, &low, sizeof value);
  return value;
}
