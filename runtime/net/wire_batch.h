/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_WIRE_BATCH_H_
#define WEIR_NET_WIRE_BATCH_H_

#include "runtime/net/wire.h"

/* Many small values, or many slots, collected into one control message.
 *
 * A batch is the message's bytes in the making, so that a value is copied once
 * and a steady sender allocates nothing: room is kept from message to message.
 *
 *   weir_wire_batch_init(&batch, alloc, WEIR__V1__CONTROL__BODY_VALUES);
 *   if (!weir_wire_batch_value(&batch, &slot, data)) ...  out of memory
 *   weir_bytes frame = weir_wire_batch_frame(&batch, epoch);
 *   ... send it ...
 *   weir_wire_batch_clear(&batch);
 *
 * Not thread-safe. */

/* The name of a value between processes. */
typedef struct weir_slot {
  uint32_t kind, id; /* Weir__V1__ValueKind, its number */
  uint64_t step;
} weir_slot;

enum {
  WEIR_WIRE_BATCH_BYTES = 32 << 10, /* a batch that holds these should go */
  WEIR_WIRE_BATCH_HEAD = 32         /* room before the values, for the rest */
};

typedef struct weir_wire_batch {
  const weir_allocator *alloc;
  uint32_t body; /* BODY_VALUES or BODY_READY */
  uint32_t count;
  uint8_t *data;
  size_t size, capacity; /* of |data|, with the room before */
} weir_wire_batch;

void weir_wire_batch_init(weir_wire_batch *batch, const weir_allocator *alloc,
                          uint32_t body);
void weir_wire_batch_release(weir_wire_batch *batch);

/* Each adds one to a batch of values: the data, at most WEIR_WIRE_VALUE_BYTES;
 * the reason why there are none; the size of a large value. False when out of
 * memory; then nothing was added. */
bool weir_wire_batch_value(weir_wire_batch *batch, const weir_slot *slot,
                           weir_bytes data);
bool weir_wire_batch_error(weir_wire_batch *batch, const weir_slot *slot,
                           const weir_error *why);
bool weir_wire_batch_total(weir_wire_batch *batch, const weir_slot *slot,
                           uint64_t total);
/* Adds a slot to a batch of Ready. */
bool weir_wire_batch_slot(weir_wire_batch *batch, const weir_slot *slot);

/* Whether the batch is so large that it should go. */
bool weir_wire_batch_is_full(const weir_wire_batch *batch);
/* The message; lent until the batch changes. Not of an empty batch. */
weir_bytes weir_wire_batch_frame(weir_wire_batch *batch, uint64_t epoch);
/* Empties it; its memory stays. */
void weir_wire_batch_clear(weir_wire_batch *batch);

/* A message without values (Cut) as a frame in |dst|; its size, or 0
 * when it does not fit. */
enum { WEIR_WIRE_SMALL_BYTES = 64 };
size_t weir_wire_pack_small(const Weir__V1__Control *control,
                            uint8_t dst[WEIR_WIRE_SMALL_BYTES]);

#endif
