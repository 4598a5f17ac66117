/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_BYTES_READER_H_
#define WEIR_BASE_BYTES_READER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Reads bytes from outside, checked before they are read.
 *
 * A read past the end fails, and from then on every read fails, gives zeros
 * and stands still; so a header is read straight through and asked once:
 *
 *   weir_reader r = weir_reader_of(data, size);
 *   uint32_t magic = weir_reader_u32be(&r);
 *   uint16_t count = weir_reader_u16le(&r);
 *   if (r.failed) return weir_fail(err, ...);
 *
 * No pointer arithmetic on input stands outside this file. */
typedef struct weir_reader {
  const uint8_t *data; /* may be NULL when |size| is 0 */
  size_t size, at;     /* |at| never passes |size| */
  bool failed;
} weir_reader;

/* A reader at the first of |size| bytes, which it borrows. */
static inline weir_reader weir_reader_of(const void *data, size_t size) {
  return (weir_reader){(const uint8_t *)data, size, 0, false};
}

/* Bytes that can still be read; 0 after a failure. */
static inline size_t weir_reader_left(const weir_reader *r) {
  return r->failed ? 0 : r->size - r->at;
}

/* The next |count| bytes, lent, or NULL. |count| 0 gives a pointer that must
 * not be read, never NULL unless the reader has failed. */
static inline const uint8_t *weir_reader_bytes(weir_reader *r, size_t count) {
  static const uint8_t kNothing[1];
  if (r->failed || count > r->size - r->at) {
    r->failed = true;
    return NULL;
  }
  const uint8_t *p = r->data != NULL ? r->data + r->at : kNothing;
  r->at += count;
  return p;
}

/* Passes over |count| bytes. */
static inline void weir_reader_skip(weir_reader *r, size_t count) {
  (void)weir_reader_bytes(r, count);
}

/* Goes to byte |at| of the input, which may be its end. */
static inline void weir_reader_seek(weir_reader *r, uint64_t at) {
  if (at > r->size) r->failed = true;
  if (!r->failed) r->at = (size_t)at;
}

/* |count| (at most 8) bytes as a number, least significant byte first. */
static inline uint64_t weir_reader_le(weir_reader *r, unsigned count) {
  const uint8_t *p = weir_reader_bytes(r, count);
  uint64_t v = 0;
  for (unsigned i = count; p != NULL && i-- > 0;) v = v << 8 | p[i];
  return v;
}

/* The same, most significant byte first. */
static inline uint64_t weir_reader_be(weir_reader *r, unsigned count) {
  const uint8_t *p = weir_reader_bytes(r, count);
  uint64_t v = 0;
  for (unsigned i = 0; p != NULL && i < count; i++) v = v << 8 | p[i];
  return v;
}

/* Numbers of a fixed width; 0 after a failure. */
static inline uint8_t weir_reader_u8(weir_reader *r) {
  return (uint8_t)weir_reader_le(r, 1);
}
static inline uint16_t weir_reader_u16le(weir_reader *r) {
  return (uint16_t)weir_reader_le(r, 2);
}
static inline uint32_t weir_reader_u32le(weir_reader *r) {
  return (uint32_t)weir_reader_le(r, 4);
}
static inline uint64_t weir_reader_u64le(weir_reader *r) {
  return weir_reader_le(r, 8);
}
static inline uint16_t weir_reader_u16be(weir_reader *r) {
  return (uint16_t)weir_reader_be(r, 2);
}
static inline uint32_t weir_reader_u32be(weir_reader *r) {
  return (uint32_t)weir_reader_be(r, 4);
}
static inline uint64_t weir_reader_u64be(weir_reader *r) {
  return weir_reader_be(r, 8);
}

#endif
