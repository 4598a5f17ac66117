/* SPDX-License-Identifier: Apache-2.0
 *
 * Bulk frames, written and read by hand.
 *
 * protobuf-c would copy the payload twice. The form stays that of protocol
 * buffers: zeros left out, the checksum behind the fields that it covers, and
 * the payload, whose number is the largest, to the frame's end. A header is
 * shorter than WEIR_BULK_HEADER_BYTES, so a reader gathers that many bytes of
 * the frame's first pieces and parses them in one place; fields that it does
 * not know are passed over.
 *
 * The checksum covers the header's bytes before it, then the payload: a wrong
 * offset would do more harm than a wrong element. */
#include "runtime/net/wire_bulk.h"

#include <assert.h>
#include <inttypes.h>

#include "runtime/base/bytes/crc32c.h"
#include "runtime/base/bytes/proto.h"
#include "runtime/net/wire.h"

enum {
  kKind = 1,
  kId,
  kStep,
  kEpoch,
  kOffset,
  kTotal,
  kCrc,
  kCredit,
  kPayload = 15,
  kNumbers = 16
};

/* ---- Writing */

/* A number; zeros have no bytes. */
static size_t put(uint8_t *dst, uint32_t number, uint64_t value) {
  if (value == 0) return 0;
  dst[0] = (uint8_t)(number << 3 | WEIR_PROTO_VARINT);
  return 1 + weir_proto_write_varint(dst + 1, value);
}

size_t weir_bulk_write(const weir_bulk *bulk, const void *payload, bool crc,
                       uint8_t header[WEIR_BULK_HEADER_BYTES]) {
  assert(bulk->size <= WEIR_BULK_CHUNK_BYTES);
  assert(bulk->size > 0 || bulk->credit > 0);
  size_t n = 0;
  n += put(header + n, kKind, bulk->kind);
  n += put(header + n, kId, bulk->id);
  n += put(header + n, kStep, bulk->step);
  n += put(header + n, kEpoch, bulk->epoch);
  n += put(header + n, kOffset, bulk->offset);
  n += put(header + n, kTotal, bulk->total);
  n += put(header + n, kCredit, bulk->credit);
  if (crc) {
    uint32_t sum = weir_crc32c(weir_crc32c(0, header, n), payload, bulk->size);
    header[n++] = kCrc << 3 | WEIR_PROTO_FIXED32;
    n += weir_proto_write_fixed(header + n, sum, sizeof sum);
  }
  header[n++] = kPayload << 3 | WEIR_PROTO_BYTES;
  n += weir_proto_write_varint(header + n, bulk->size);
  assert(n <= WEIR_BULK_HEADER_BYTES);
  return n;
}

/* ---- Reading */

/* A header's numbers, and where the checksum and the payload begin. */
typedef struct header {
  uint64_t value[kNumbers];
  size_t crc_at, payload_at, payload_bytes;
} header;

/* The frame's first bytes, at most WEIR_BULK_HEADER_BYTES. */
static size_t gather(const weir_net_frame *frame,
                     uint8_t dst[WEIR_BULK_HEADER_BYTES]) {
  size_t n = 0;
  for (size_t i = 0; i < frame->count && n < WEIR_BULK_HEADER_BYTES; i++) {
    size_t more = frame->pieces[i].size;
    if (more > WEIR_BULK_HEADER_BYTES - n) more = WEIR_BULK_HEADER_BYTES - n;
    if (more > 0) memcpy(dst + n, frame->pieces[i].data, more);
    n += more;
  }
  return n;
}

/* Reads fields up to the payload's first byte. False when there is none. */
static bool parse(weir_reader *r, header *out) {
  *out = (header){0};
  while (weir_reader_left(r) > 0) {
    size_t at = r->at;
    uint64_t key = weir_proto_varint(r), number = key >> 3, value = 0;
    switch (key & 7) {
      case WEIR_PROTO_VARINT:
        value = weir_proto_varint(r);
        break;
      case WEIR_PROTO_FIXED32:
        value = weir_reader_le(r, 4);
        break;
      case WEIR_PROTO_FIXED64:
        value = weir_reader_le(r, 8);
        break;
      case WEIR_PROTO_BYTES:
        if (number != kPayload) return false;
        value = weir_proto_varint(r);
        out->payload_bytes = (size_t)value;
        out->payload_at = r->at;
        return !r->failed;
      default:
        return false;
    }
    if (number >= kNumbers) continue; /* unknown: passed over */
    if ((key & 7) != (number == kCrc ? WEIR_PROTO_FIXED32 : WEIR_PROTO_VARINT))
      return false;
    if (number == kCrc) out->crc_at = at;
    out->value[number] = value;
  }
  return false;
}

static weir_status refuse(weir_error *err, const char *why) {
  return weir_fail(err, WEIR_W7010, NULL, "a bulk frame %s", why);
}

static weir_status check(const header *h, size_t frame_bytes, weir_error *err) {
  const uint64_t *v = h->value;
  if (h->payload_bytes != frame_bytes - h->payload_at ||
      h->payload_bytes > WEIR_BULK_CHUNK_BYTES ||
      (h->payload_bytes == 0 && v[kCredit] == 0))
    return weir_fail(err, WEIR_W7010, NULL,
                     "a bulk frame of %zu bytes holds %zu bytes of payload",
                     frame_bytes, h->payload_bytes);
  if (v[kKind] > INT32_MAX ||
      protobuf_c_enum_descriptor_get_value(&weir__v1__value_kind__descriptor,
                                           (int)v[kKind]) == NULL)
    return refuse(err, "is of no known kind");
  if (v[kId] > UINT32_MAX) return refuse(err, "has a number that is too large");
  if (v[kTotal] > PTRDIFF_MAX || v[kOffset] > v[kTotal] ||
      h->payload_bytes > v[kTotal] - v[kOffset])
    return weir_fail(err, WEIR_W7010, NULL,
                     "a bulk frame has bytes %" PRIu64 " to %" PRIu64
                     " of %" PRIu64,
                     v[kOffset], v[kOffset] + h->payload_bytes, v[kTotal]);
  return WEIR_OK;
}

/* Passes over the header. */
static weir_bulk_payload payload_of(const weir_net_frame *frame, size_t at) {
  weir_bulk_payload p = {.frame = frame, .at = at};
  while (p.piece < frame->count && p.at >= frame->pieces[p.piece].size)
    p.at -= frame->pieces[p.piece++].size;
  return p;
}

bool weir_bulk_next(weir_bulk_payload *p, weir_bytes *out_piece) {
  while (p->piece < p->frame->count) {
    weir_bytes piece = p->frame->pieces[p->piece++];
    size_t at = p->at;
    p->at = 0;
    if (at == piece.size) continue;
    *out_piece = (weir_bytes){piece.data + at, piece.size - at};
    return true;
  }
  return false;
}

static bool sum_is(const header *h, const uint8_t *head,
                   weir_bulk_payload payload) {
  uint32_t sum = weir_crc32c(0, head, h->crc_at);
  for (weir_bytes piece; weir_bulk_next(&payload, &piece);)
    sum = weir_crc32c(sum, piece.data, piece.size);
  return sum == (uint32_t)h->value[kCrc];
}

static weir_bulk bulk_of(const header *h) {
  return (weir_bulk){.kind = (uint32_t)h->value[kKind],
                     .id = (uint32_t)h->value[kId],
                     .step = h->value[kStep],
                     .epoch = h->value[kEpoch],
                     .offset = h->value[kOffset],
                     .total = h->value[kTotal],
                     .size = h->payload_bytes,
                     .credit = h->value[kCredit]};
}

bool weir_bulk_peek(const weir_net_frame *frame, weir_bulk *out_bulk) {
  uint8_t head[WEIR_BULK_HEADER_BYTES];
  header h;
  weir_reader r = weir_reader_of(head, gather(frame, head));
  bool ok = parse(&r, &h);
  if (ok) *out_bulk = bulk_of(&h);
  return ok;
}

weir_status weir_bulk_read(const weir_net_frame *frame, weir_bulk *out_bulk,
                           weir_bulk_payload *out_payload, weir_error *err) {
  uint8_t head[WEIR_BULK_HEADER_BYTES];
  header h;
  weir_reader r = weir_reader_of(head, gather(frame, head));
  if (!parse(&r, &h)) return refuse(err, "has no sound header");
  WEIR_TRY(check(&h, frame->size, err));
  *out_payload = payload_of(frame, h.payload_at);
  if (h.value[kCrc] != 0 && !sum_is(&h, head, *out_payload))
    return refuse(err, "has a wrong checksum");
  *out_bulk = bulk_of(&h);
  return WEIR_OK;
}
