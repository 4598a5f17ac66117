/* SPDX-License-Identifier: Apache-2.0
 *
 * Control messages, to and from frames.
 *
 * The checksum is the first field, so its five bytes are the frame's first: it
 * is left out of the packing (a zero has no bytes in proto3) and written before
 * it by hand, even when it is zero. protobuf-c takes its memory from an arena
 * with a limit, so a message is freed in a few calls. */
#include "runtime/net/wire.h"

#include "runtime/base/bytes/crc32c.h"
#include "runtime/base/bytes/proto.h"
#include "runtime/net/wire_check.h"

enum {
  kCrcBytes = 5,                        /* its key and its number */
  kCrcKey = 1 << 3 | WEIR_PROTO_FIXED32 /* field 1 */
};

static void put_crc(uint8_t *dst, uint32_t crc) {
  dst[0] = kCrcKey;
  (void)weir_proto_write_fixed(dst + 1, crc, sizeof crc);
}

weir_status weir_wire_pack(const weir_allocator *alloc,
                           const Weir__V1__Control *control,
                           weir_bytes *out_frame, weir_error *err) {
  Weir__V1__Control copy = *control;
  copy.crc32c = 0;
  *out_frame = (weir_bytes){0};
  size_t size = protobuf_c_message_get_packed_size(&copy.base);
  if (size > WEIR_WIRE_FRAME_BYTES - kCrcBytes)
    return weir_fail(err, WEIR_W7012, NULL,
                     "a control message of %zu bytes, at most %d", size,
                     WEIR_WIRE_FRAME_BYTES - kCrcBytes);
  uint8_t *data = weir_alloc(alloc, kCrcBytes + size);
  if (data == NULL) return weir_fail_memory(err, kCrcBytes + size);
  (void)protobuf_c_message_pack(&copy.base, data + kCrcBytes);
  weir_status s =
      weir_wire_check((weir_bytes){data + kCrcBytes, size}, WEIR_W7012, err);
  if (s != WEIR_OK) {
    weir_free(alloc, data);
    return s;
  }
  put_crc(data, weir_crc32c(0, data + kCrcBytes, size));
  *out_frame = (weir_bytes){data, kCrcBytes + size};
  return WEIR_OK;
}

void weir_wire_free(const weir_allocator *alloc, weir_bytes frame) {
  weir_free(alloc, (void *)frame.data);
}

/* protobuf-c's memory: an arena with a limit. It says of a failure only that
 * there was one, so what there was no memory for is kept here. */
typedef struct unpack_memory {
  weir_arena *arena;
  size_t lacked; /* bytes that the system did not give; 0: none */
  bool too_large;
} unpack_memory;

static void *arena_alloc(void *self, size_t bytes) {
  unpack_memory *m = self;
  m->too_large = bytes > WEIR_WIRE_MEMORY_BYTES ||
                 m->arena->used_bytes > WEIR_WIRE_MEMORY_BYTES - bytes;
  if (m->too_large) return NULL;
  void *block = weir_arena_alloc(m->arena, bytes);
  if (block == NULL) m->lacked = bytes > 0 ? bytes : 1;
  return block;
}

static void arena_free(void *self, void *block) {
  (void)self, (void)block;
}

/* The frame's bytes in one piece: the frame's own if it is one, else a copy. */
static weir_status gather(weir_arena *arena, const weir_net_frame *frame,
                          weir_bytes *out_bytes, weir_error *err) {
  if (frame->count == 1) {
    *out_bytes = frame->pieces[0];
    return WEIR_OK;
  }
  uint8_t *data = weir_arena_alloc(arena, frame->size);
  if (data == NULL) return weir_fail_memory(err, frame->size);
  size_t at = 0;
  for (size_t i = 0; i < frame->count; i++) {
    weir_bytes piece = frame->pieces[i];
    if (piece.size > 0) memcpy(data + at, piece.data, piece.size);
    at += piece.size;
  }
  *out_bytes = (weir_bytes){data, at};
  return WEIR_OK;
}

static weir_status check_frame(weir_bytes bytes, weir_error *err) {
  uint8_t want[kCrcBytes];
  if (bytes.size < kCrcBytes || bytes.data[0] != kCrcKey)
    return weir_fail(err, WEIR_W7010, NULL,
                     "a control frame does not begin with its checksum");
  put_crc(want, weir_crc32c(0, bytes.data + kCrcBytes, bytes.size - kCrcBytes));
  if (memcmp(bytes.data, want, kCrcBytes) != 0)
    return weir_fail(err, WEIR_W7010, NULL,
                     "the checksum of a control frame is wrong");
  return weir_wire_check(bytes, WEIR_W7010, err);
}

/* wire_check.c lets some bytes through that are no message. */
static weir_status why_not(const unpack_memory *m, weir_error *err) {
  if (m->lacked > 0) return weir_fail_memory(err, m->lacked);
  if (m->too_large)
    return weir_fail(err, WEIR_W7010, NULL,
                     "a control message of more than %d bytes of memory",
                     WEIR_WIRE_MEMORY_BYTES);
  return weir_fail(err, WEIR_W7010, NULL,
                   "the fields of a control frame are damaged");
}

weir_status weir_wire_unpack(const weir_allocator *alloc,
                             const weir_net_frame *frame,
                             weir_wire_message *out, weir_error *err) {
  weir_bytes bytes = {0};
  out->control = NULL;
  weir_arena_init(&out->arena, alloc);
  if (frame->size > WEIR_WIRE_FRAME_BYTES)
    return weir_fail(err, WEIR_W7010, NULL,
                     "a control frame of %zu bytes, at most %d", frame->size,
                     WEIR_WIRE_FRAME_BYTES);
  weir_status s = gather(&out->arena, frame, &bytes, err);
  if (s == WEIR_OK) s = check_frame(bytes, err);
  if (s == WEIR_OK) {
    unpack_memory own = {.arena = &out->arena};
    ProtobufCAllocator memory = {arena_alloc, arena_free, &own};
    out->control = weir__v1__control__unpack(&memory, bytes.size, bytes.data);
    if (out->control == NULL) s = why_not(&own, err);
  }
  if (s != WEIR_OK) weir_arena_release(&out->arena);
  return s;
}

void weir_wire_message_release(weir_wire_message *message) {
  if (message == NULL) return;
  message->control = NULL;
  weir_arena_release(&message->arena);
}
