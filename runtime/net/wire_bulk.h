/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_WIRE_BULK_H_
#define WEIR_NET_WIRE_BULK_H_

#include "runtime/net/transport.h"

/* Bulk frames: a chunk of a large value, with its name and its place, and
 * credit for chunks of the other direction; or that credit alone.
 *
 * A frame is message Bulk of proto/weir/v1/task.proto, written by hand, payload
 * last, so that the payload goes out as a piece of its own and is never copied:
 *
 *   uint8_t header[WEIR_BULK_HEADER_BYTES];
 *   weir_net_piece pieces[] = {
 *       {header, weir_bulk_write(&bulk, payload, false, header)},
 *       {payload, bulk.size, released, self}};
 *
 * and is read from pieces that are cut anywhere:
 *
 *   WEIR_TRY(weir_bulk_read(frame, &bulk, &payload, err));
 *   while (weir_bulk_next(&payload, &piece)) copy(piece);
 *
 * All functions are pure; no memory; any thread. */

enum {
  WEIR_BULK_HEADER_BYTES = 96,     /* room for any header */
  WEIR_BULK_CHUNK_BYTES = 1 << 20, /* of payload, at most */
  WEIR_BULK_FRAME_BYTES = WEIR_BULK_CHUNK_BYTES + WEIR_BULK_HEADER_BYTES
};

/* The header of a chunk. */
typedef struct weir_bulk {
  uint32_t kind; /* Weir__V1__ValueKind */
  uint32_t id;
  uint64_t step, epoch;
  uint64_t offset, total; /* of the value, in bytes */
  size_t size;     /* of this chunk, to WEIR_BULK_CHUNK_BYTES; 0: credit */
  uint64_t credit; /* bytes that were taken over; not 0 if |size| is */
} weir_bulk;

/* Where a reader of the payload stands. It borrows the frame. */
typedef struct weir_bulk_payload {
  const weir_net_frame *frame;
  size_t piece, at; /* the byte |at| of that piece comes next */
} weir_bulk_payload;

/* Writes the header of a frame with |bulk->size| bytes of payload behind it and
 * returns its length. |crc|: with a checksum of header and payload, for links
 * between hosts; else |payload| is not looked at. */
size_t weir_bulk_write(const weir_bulk *bulk, const void *payload, bool crc,
                       uint8_t header[WEIR_BULK_HEADER_BYTES]);

/* Reads a frame: the header, and the place of the payload. A checksum, where
 * there is one, is compared. Promises: 0 < size or credit; offset + size <=
 * total. Errors: W7010. */
weir_status weir_bulk_read(const weir_net_frame *frame, weir_bulk *out_bulk,
                           weir_bulk_payload *out_payload, weir_error *err);

/* The header alone, for counts: neither it nor a checksum is checked. False: it
 * cannot be read. */
bool weir_bulk_peek(const weir_net_frame *frame, weir_bulk *out_bulk);

/* The next piece of the payload, never empty; false at its end. */
bool weir_bulk_next(weir_bulk_payload *payload, weir_bytes *out_piece);

#endif
