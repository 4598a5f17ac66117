/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_CARRY_BYTES_H_
#define PLACEMENT_CARRY_BYTES_H_

#include "runtime/base/bytes/proto.h"
#include "runtime/base/bytes/reader.h"
#include "runtime/base/strbuf.h"

/* Numbers and texts as bytes: little endian, texts after their length. The
 * buffer keeps a failure, the reader likewise. */

static inline void weir_carry_u64(weir_strbuf *out, uint64_t v) {
  weir_proto_put_fixed(out, v, sizeof v);
}

static inline void weir_carry_u32(weir_strbuf *out, uint32_t v) {
  weir_proto_put_fixed(out, v, sizeof v);
}

static inline void weir_carry_i64(weir_strbuf *out, int64_t v) {
  weir_carry_u64(out, (uint64_t)v);
}

static inline void weir_carry_text(weir_strbuf *out, weir_sv text) {
  weir_carry_u64(out, text.size);
  (void)weir_strbuf_append(out, text.data, text.size);
}

static inline int64_t weir_carried_i64(weir_reader *r) {
  return (int64_t)weir_reader_u64le(r);
}

/* Lent. */
static inline weir_sv weir_carried_text(weir_reader *r) {
  uint64_t size = weir_reader_u64le(r);
  if (size > weir_reader_left(r)) r->failed = true;
  const uint8_t *data = weir_reader_bytes(r, r->failed ? 0 : (size_t)size);
  return (weir_sv){data != NULL ? (const char *)data : "",
                   data != NULL ? (size_t)size : 0};
}

/* How many items of at least |least| bytes each follow; 0 when so many cannot
 * be there, with the reader failed. */
static inline uint32_t weir_carried_count(weir_reader *r, size_t least) {
  uint32_t count = weir_reader_u32le(r);
  if (count > weir_reader_left(r) / least) r->failed = true;
  return r->failed ? 0 : count;
}

#endif
