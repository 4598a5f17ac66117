/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/base/bytes/crc32c.h"
#include "runtime/dist/channel/arrive.h"
#include "runtime/dist/channel/ends.h"
#include "runtime/dist/channel/pump.h"
#include "runtime/net/wire.h"
#include "tests/fuzz/fuzz.h"

/* Reads the input as a frame of a peer: first byte 0, a control message, whose
 * checksum is put right; else a bulk frame, cut in two. Frames that can be read
 * go to a rendezvous that waits for a few values. */

enum { kLarge = 20000, kCalls = 6 };

static weir_status sink_control(void *self, uint32_t peer, const void *bytes,
                                size_t size) {
  (void)self, (void)peer, (void)bytes, (void)size;
  return WEIR_OK;
}

static weir_status sink_bulk(void *self, uint32_t peer,
                             const weir_net_piece *pieces, size_t count) {
  (void)self, (void)peer, (void)count;
  pieces[1].released(pieces[1].self);
  return WEIR_OK;
}

static void told(void *self, weir_status status, const weir_error *err) {
  FUZZ_CHECK((status == WEIR_OK) == (err == NULL));
  (*(int *)self)++;
}

typedef struct bed {
  weir_rendezvous *r;
  int told;
  weir_channel_done done[kCalls];
  weir_bytes owned;
} bed;

static uint8_t memory[kCalls][kLarge];

static void bed_begin(bed *b) {
  const weir_rendezvous_options options = {.epoch = 5, .tasks = 1};
  weir_error err = WEIR_ERROR_INIT;
  *b = (bed){0};
  FUZZ_CHECK(weir_rendezvous_create(weir_allocator_system(), &options, &b->r,
                                    &err) == WEIR_OK);
  for (uint32_t i = 0; i < kCalls; i++) {
    weir_slot slot = {i / 2 % 3, i, 1};
    b->done[i] = (weir_channel_done){.fn = told, .self = &b->told};
    if (i == 5)
      weir_rendezvous_recv_owned(b->r, 0, &slot, kLarge, &b->owned,
                                 &b->done[i]);
    else if (i == 4)
      weir_rendezvous_send(b->r, 0, &slot, (weir_bytes){memory[i], kLarge},
                           &b->done[i]);
    else
      weir_rendezvous_recv(b->r, 0, &slot, memory[i], i % 2 ? kLarge : 8,
                           &b->done[i]);
  }
}

static void bed_end(bed *b) {
  const weir_wire_out out = {NULL, sink_control, sink_bulk};
  weir_error why = WEIR_ERROR_INIT;
  weir_fail(&why, WEIR_W7001, NULL, "the end");
  weir_rendezvous_flush(b->r);
  weir_rendezvous_pump(b->r, &out);
  weir_rendezvous_abort(b->r, &why);
  weir_rendezvous_pump(b->r, &out);
  FUZZ_CHECK(b->told == kCalls);
  FUZZ_CHECK(weir_rendezvous_is_empty(b->r));
  weir_rendezvous_release(b->r);
  weir_free(weir_allocator_system(), (void *)b->owned.data);
}

/* A message that was read can be written, and read again. */
static void write_again(const Weir__V1__Control *control) {
  weir_error err = WEIR_ERROR_INIT;
  weir_bytes bytes;
  weir_wire_message m;
  FUZZ_CHECK(weir_wire_pack(weir_allocator_system(), control, &bytes, &err) ==
             WEIR_OK);
  weir_net_frame frame = {&bytes, 1, bytes.size, NULL, NULL};
  FUZZ_CHECK(weir_wire_unpack(weir_allocator_system(), &frame, &m, &err) ==
             WEIR_OK);
  FUZZ_CHECK(m.control->body_case == control->body_case);
  weir_wire_message_release(&m);
  weir_wire_free(weir_allocator_system(), bytes);
}

static void read_control(const uint8_t *data, size_t size) {
  weir_error err = WEIR_ERROR_INIT;
  weir_wire_message m;
  uint32_t crc = weir_crc32c(0, data, size);
  uint8_t head[5] = {0x0d};
  for (int i = 0; i < 4; i++) head[1 + i] = (uint8_t)(crc >> 8 * i);
  weir_bytes pieces[] = {{head, sizeof head}, {data, size}};
  weir_net_frame frame = {pieces, 2, sizeof head + size, NULL, NULL};
  weir_status s = weir_wire_unpack(weir_allocator_system(), &frame, &m, &err);
  FUZZ_CHECK(s == WEIR_OK || strcmp(err.id, "W7010") == 0);
  if (s == WEIR_OK) {
    bed b;
    FUZZ_CHECK(m.arena.used_bytes <= WEIR_WIRE_MEMORY_BYTES + frame.size);
    write_again(m.control);
    bed_begin(&b);
    s = weir_rendezvous_control(b.r, 0, m.control, &err);
    FUZZ_CHECK(s == WEIR_OK || strcmp(err.id, "W7011") == 0);
    bed_end(&b);
  }
  weir_wire_message_release(&m);
}

static void read_bulk(const uint8_t *data, size_t size) {
  weir_error err = WEIR_ERROR_INIT;
  weir_bulk bulk;
  weir_bulk_payload payload;
  weir_rendezvous_place place;
  weir_bytes pieces[] = {{data, size / 2}, {data + size / 2, size - size / 2}};
  weir_net_frame frame = {pieces, 2, size, NULL, NULL};
  if (weir_bulk_read(&frame, &bulk, &payload, &err) != WEIR_OK) return;
  FUZZ_CHECK((bulk.size > 0 || bulk.credit > 0) &&
             bulk.offset + bulk.size <= bulk.total);
  bed b;
  bed_begin(&b);
  if (weir_rendezvous_bulk_begin(b.r, 0, &bulk, &place, &err) == WEIR_OK) {
    weir_rendezvous_bulk_copy(&place, payload);
    weir_rendezvous_bulk_end(b.r, &place);
  }
  bed_end(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  if (data[0] == 0)
    read_control(data + 1, size - 1);
  else
    read_bulk(data + 1, size - 1);
  return 0;
}
