/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_PROTOBUF_H_
#define WEIR_IO_PROTOBUF_H_

#include "runtime/base/reader.h"
#include "runtime/base/strbuf.h"

/* Protocol buffers' wire form, for messages that are known by heart.
 *
 * Writing appends fields to a strbuf, which keeps a failure. A message within a
 * message is written to a strbuf of its own first, then put as bytes:
 *
 *   weir_pb_text(&value, 1, tag);
 *   weir_pb_float(&value, 2, loss);
 *   weir_pb_bytes(&summary, 1, weir_strbuf_view(&value));
 *
 * Reading gives field after field; unknown ones are passed over by not looking
 * at them. What is wrong leaves the reader failed:
 *
 *   weir_pb_field f;
 *   weir_reader r = weir_reader_of(data, size);
 *   while (weir_pb_next(&r, &f))
 *     if (f.number == 1 && f.wire == WEIR_PB_BYTES) use(f.bytes);
 *   if (r.failed) ...
 *
 * Source: protobuf.dev, "Encoding". */

typedef enum weir_pb_wire {
  WEIR_PB_VARINT = 0,
  WEIR_PB_FIXED64 = 1,
  WEIR_PB_BYTES = 2,
  WEIR_PB_FIXED32 = 5
} weir_pb_wire;

/* --- writing --- */

/* Seven bits a byte, the lowest first. */
static inline void weir_pb_varint(weir_strbuf *out, uint64_t value) {
  char bytes[10];
  size_t n = 0;
  do {
    bytes[n] = (char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
    n++;
    value >>= 7;
  } while (value != 0);
  weir_strbuf_append(out, bytes, n);
}

static inline void weir_pb_key(weir_strbuf *out, uint32_t number,
                               weir_pb_wire wire) {
  weir_pb_varint(out, (uint64_t)number << 3 | (uint64_t)wire);
}

static inline void weir_pb_fixed(weir_strbuf *out, uint64_t value,
                                 unsigned bytes) {
  char text[8];
  for (unsigned i = 0; i < bytes; i++) text[i] = (char)(value >> (8 * i));
  weir_strbuf_append(out, text, bytes);
}

/* Fields of int64, bytes or string, float and double. */
static inline void weir_pb_int(weir_strbuf *out, uint32_t number,
                               int64_t value) {
  weir_pb_key(out, number, WEIR_PB_VARINT);
  weir_pb_varint(out, (uint64_t)value);
}

static inline void weir_pb_bytes(weir_strbuf *out, uint32_t number,
                                 weir_sv bytes) {
  weir_pb_key(out, number, WEIR_PB_BYTES);
  weir_pb_varint(out, bytes.size);
  weir_strbuf_append(out, bytes.data, bytes.size);
}

static inline void weir_pb_float(weir_strbuf *out, uint32_t number,
                                 float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  weir_pb_key(out, number, WEIR_PB_FIXED32);
  weir_pb_fixed(out, bits, sizeof bits);
}

/* A double without its key, as packed fields have it. */
static inline void weir_pb_packed_double(weir_strbuf *out, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  weir_pb_fixed(out, bits, sizeof bits);
}

static inline void weir_pb_double(weir_strbuf *out, uint32_t number,
                                  double value) {
  weir_pb_key(out, number, WEIR_PB_FIXED64);
  weir_pb_packed_double(out, value);
}

/* --- reading --- */

typedef struct weir_pb_field {
  uint32_t number;
  weir_pb_wire wire;
  uint64_t value;  /* VARINT, FIXED32, FIXED64 */
  weir_reader sub; /* BYTES: over them, lent */
} weir_pb_field;

/* The next varint; 0 and a failed reader when it is longer than ten bytes. */
static inline uint64_t weir_pb_read_varint(weir_reader *r) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    uint8_t b = weir_reader_u8(r);
    value |= (uint64_t)(b & 0x7f) << shift;
    if (b < 0x80) return r->failed ? 0 : value;
  }
  r->failed = true;
  return 0;
}

/* Reads one field. False at the end, and after a failure. */
static inline bool weir_pb_next(weir_reader *r, weir_pb_field *out) {
  if (weir_reader_left(r) == 0) return false;
  uint64_t key = weir_pb_read_varint(r);
  *out = (weir_pb_field){.number = (uint32_t)(key >> 3),
                         .wire = (weir_pb_wire)(key & 7)};
  if (key >> 3 == 0 || key >> 3 > 0x1fffffff) r->failed = true;
  switch (out->wire) {
    case WEIR_PB_VARINT:
      out->value = weir_pb_read_varint(r);
      break;
    case WEIR_PB_FIXED64:
      out->value = weir_reader_u64le(r);
      break;
    case WEIR_PB_FIXED32:
      out->value = weir_reader_u32le(r);
      break;
    case WEIR_PB_BYTES: {
      uint64_t size = weir_pb_read_varint(r);
      if (size > weir_reader_left(r)) r->failed = true;
      const uint8_t *bytes = weir_reader_bytes(r, (size_t)size);
      out->sub = weir_reader_of(bytes, bytes != NULL ? (size_t)size : 0);
      break;
    }
    default:
      r->failed = true; /* groups, and what does not exist */
  }
  return !r->failed;
}

/* The bits of a float and a double. */
static inline float weir_pb_as_float(uint64_t bits) {
  uint32_t low = (uint32_t)bits;
  float value;
  memcpy(&value, &low, sizeof value);
  return value;
}

static inline double weir_pb_as_double(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

#endif
