/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/program/recv_pieces.h"

#include <assert.h>
#include <string.h>

/* A piece begins and ends anywhere. Where its elements are aligned the kernel
 * reads them in place; others are copied a tile at a time to where they are.
 * The bytes of an element that two pieces share wait where its result will be,
 * until its last byte is there.
 *
 * Invariant: behind the call the output holds the results of all whole elements
 * that have come, and behind them the bytes of the one that has begun. */

enum { TILE_BYTES = 8192 }; /* stays in the first cache */

static char *output(const weir_take *take, void *const *io) {
  return io[take->in_count];
}

/* The input's elements from |first| on are at |data|. */
static void compute(const weir_take *take, void *const *io, size_t first,
                    size_t count, const void *data) {
  void *own[WEIR_TAKE_INPUTS + 1];
  assert(take->in_count <= WEIR_TAKE_INPUTS);
  memcpy(own, io, (take->in_count + 1) * sizeof *own);
  /* Of this operand the kernel reads these elements alone. */
  own[take->in] = (void *)((uintptr_t)data - first * take->element_bytes);
  take->fn(take->state, own, (int64_t)first, (int64_t)count);
}

/* Bytes that are a part of one element. */
static void take_part(const weir_take *take, void *const *io, size_t offset,
                      const void *data, size_t size) {
  size_t bytes = take->element_bytes, element = offset / bytes;
  if (size == 0) return;
  memcpy(output(take, io) + offset, data, size);
  if ((offset + size) % bytes != 0) return;
  compute(take, io, element, 1, output(take, io) + element * bytes);
}

static void take_tiles(const weir_take *take, void *const *io, size_t first,
                       size_t count, const char *data) {
  _Alignas(64) char tile[TILE_BYTES];
  const size_t most = sizeof tile / take->element_bytes;
  while (count > 0) {
    size_t n = count < most ? count : most;
    memcpy(tile, data, n * take->element_bytes);
    compute(take, io, first, n, tile);
    first += n;
    count -= n;
    data += n * take->element_bytes;
  }
}

void weir_take_piece(const weir_take *take, void *const *io, size_t offset,
                     const void *data, size_t size) {
  size_t bytes = take->element_bytes, within = offset % bytes;
  const char *from = data;
  size_t head = within == 0 ? 0 : bytes - within;
  if (head > size) head = size;
  take_part(take, io, offset, from, head);
  offset += head;
  from += head;
  size -= head;
  size_t whole = size / bytes;
  if ((uintptr_t)from % bytes == 0) {
    if (whole > 0) compute(take, io, offset / bytes, whole, from);
  } else {
    take_tiles(take, io, offset / bytes, whole, from);
  }
  take_part(take, io, offset + whole * bytes, from + whole * bytes,
            size - whole * bytes);
}
