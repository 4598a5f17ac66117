/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_BYTES_PROTO_H_
#define WEIR_BASE_BYTES_PROTO_H_

#include "runtime/base/bytes/reader.h"
#include "runtime/base/strbuf.h"

/* Protocol buffers' wire form, for messages whose fields the caller knows by
 * number. Nothing else in the library reads or writes this form.
 *
 * Writing appends fields to a strbuf, which keeps a failure. A message within a
 * message is written to a strbuf of its own first, then put as bytes:
 *
 *   weir_proto_put_bytes(&value, 1, tag);
 *   weir_proto_put_float(&value, 2, loss);
 *   weir_proto_put_bytes(&summary, 1, weir_strbuf_view(&value));
 *
 * Reading gives field after field, in the order of the message; a caller passes
 * over an unknown one by not looking at it. Bytes from outside are checked
 * before they are read: a message that is cut or unsound leaves the reader
 * failed, and from then on every read fails and nothing is given:
 *
 *   weir_proto_field f;
 *   weir_reader r = weir_reader_of(data, size);
 *   while (weir_proto_next(&r, &f))
 *     if (f.number == 1 && f.wire == WEIR_PROTO_BYTES) use(f.sub);
 *   if (r.failed) ...
 *
 * Messages within messages are read by a reader over |sub|; a caller nests as
 * many loops as its messages nest, so no depth of the input costs stack.
 *
 * Source: protobuf.dev, "Encoding". */

enum { WEIR_PROTO_MAX_VARINT = 10 }; /* bytes */

typedef enum weir_proto_wire {
  WEIR_PROTO_VARINT = 0,
  WEIR_PROTO_FIXED64 = 1,
  WEIR_PROTO_BYTES = 2,
  WEIR_PROTO_FIXED32 = 5
} weir_proto_wire;

/* ---- Writing */

/* Writes |value| at |dst|, where WEIR_PROTO_MAX_VARINT bytes are free: seven
 * bits a byte, the lowest first. Returns how many bytes it took. */
static inline size_t weir_proto_write_varint(uint8_t *dst, uint64_t value) {
  size_t n = 0;
  for (; value >= 0x80; value >>= 7) dst[n++] = (uint8_t)(value | 0x80);
  dst[n++] = (uint8_t)value;
  return n;
}

/* Writes the low |bytes| (at most 8) bytes of |value| at |dst|, the lowest
 * first. Returns |bytes|. */
static inline size_t weir_proto_write_fixed(uint8_t *dst, uint64_t value,
                                            unsigned bytes) {
  for (unsigned i = 0; i < bytes; i++) dst[i] = (uint8_t)(value >> 8 * i);
  return bytes;
}

/* A field of int64, int32, uint64, bool or an enum. */
void weir_proto_put_int(weir_strbuf *out, uint32_t number, int64_t value);

/* A field of bytes, a string, a message or packed values. */
void weir_proto_put_bytes(weir_strbuf *out, uint32_t number, weir_sv bytes);

/* A field of float. */
void weir_proto_put_float(weir_strbuf *out, uint32_t number, float value);

/* A field of double. */
void weir_proto_put_double(weir_strbuf *out, uint32_t number, double value);

/* A varint without a key, as packed fields have it. */
void weir_proto_put_packed_varint(weir_strbuf *out, uint64_t value);

/* A double without a key, as packed fields have it. */
void weir_proto_put_packed_double(weir_strbuf *out, double value);

/* The low |bytes| (at most 8) bytes of |value|, the lowest first, without a
 * key. */
void weir_proto_put_fixed(weir_strbuf *out, uint64_t value, unsigned bytes);

/* ---- Reading */

typedef struct weir_proto_field {
  uint32_t number; /* 1 to 2^29 - 1 */
  weir_proto_wire wire;
  uint64_t value;  /* VARINT, FIXED32, FIXED64 */
  weir_reader sub; /* BYTES: a reader over them, lent; else over nothing */
} weir_proto_field;

/* Reads one field. False at the end, and after a failure, then |r->failed| is
 * set. Fails on a field number or wire type that does not exist (groups too),
 * on a varint of more than ten bytes and on a field that passes the end. */
bool weir_proto_next(weir_reader *r, weir_proto_field *out_field);

/* The next varint of packed values; 0 and a failed reader when it is cut or
 * longer than ten bytes. */
uint64_t weir_proto_varint(weir_reader *r);

/* The float whose bits are the low 32 of |bits|. */
float weir_proto_as_float(uint64_t bits);

#endif
