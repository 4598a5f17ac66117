/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames that cross within one process: by reference until they are opened. */
#include "runtime/net/parcel.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "runtime/base/mix.h"
#include "runtime/base/size.h"

enum { CUTS = 8, GAP = 7, GAP_BYTE = 0xa5 };

/* A frame in one block: itself, its bytes. */
typedef struct inbound {
  weir_net_frame base; /* first */
  atomic_int holders;
  const weir_allocator *alloc;
  weir_bytes pieces[CUTS];
} inbound;

static void inbound_ref(weir_net_frame *frame) {
  inbound *in = (inbound *)frame;
  atomic_fetch_add_explicit(&in->holders, 1, memory_order_relaxed);
}

static void inbound_unref(weir_net_frame *frame) {
  inbound *in = (inbound *)frame;
  if (atomic_fetch_sub_explicit(&in->holders, 1, memory_order_acq_rel) == 1)
    weir_free(in->alloc, in);
}

/* Bytes of all pieces, and of those to be copied. */
static bool measure(const weir_net_piece *pieces, size_t count,
                    size_t *out_size, size_t *out_copied) {
  *out_size = *out_copied = 0;
  for (size_t i = 0; i < count; i++) {
    if (!weir_size_add(*out_size, pieces[i].size, out_size)) return false;
    if (pieces[i].released == NULL) *out_copied += pieces[i].size;
  }
  return true;
}

weir_status weir_net_parcel_create(const weir_allocator *alloc,
                                   const weir_net_piece *pieces, size_t count,
                                   weir_net_parcel **out_parcel,
                                   weir_error *err) {
  size_t size, copied, table, total;
  *out_parcel = NULL;
  if (!measure(pieces, count, &size, &copied) ||
      !weir_size_mul(count, sizeof *pieces, &table) ||
      !weir_size_add(table, copied, &total) ||
      !weir_size_add(total, sizeof(weir_net_parcel), &total))
    return weir_fail_memory(err, SIZE_MAX);
  weir_net_parcel *parcel = weir_alloc(alloc, total);
  if (parcel == NULL) return weir_fail_memory(err, total);
  *parcel = (weir_net_parcel){.size = size, .alloc = alloc, .count = count};
  uint8_t *room = (uint8_t *)(parcel->pieces + count);
  for (size_t i = 0; i < count; i++) {
    parcel->pieces[i] = pieces[i];
    if (pieces[i].released != NULL || pieces[i].size == 0) continue;
    memcpy(room, pieces[i].data, pieces[i].size);
    parcel->pieces[i].data = room;
    room += pieces[i].size;
  }
  *out_parcel = parcel;
  return WEIR_OK;
}

/* Sets the places of the frame's pieces behind |in|: |in->base.count| of them,
 * |parcel->size| bytes in all. Gaps are at most GAP bytes before each. */
static void cut(inbound *in, size_t size, uint64_t *cuts) {
  uint8_t *at = (uint8_t *)(in + 1);
  size_t left = size;
  for (size_t i = 0; i < in->base.count; i++) {
    size_t take = left;
    if (cuts != NULL) {
      size_t gap = weir_mix_below(cuts, GAP + 1);
      memset(at, GAP_BYTE, gap);
      at += gap;
      if (i + 1 < in->base.count)
        take = (size_t)(weir_mix_next(cuts) % (left + 1));
    }
    in->pieces[i] = (weir_bytes){at, take};
    at += take;
    left -= take;
  }
  assert(left == 0);
}

/* Copies the parcel's bytes to the frame's pieces. */
static void fill(const weir_net_parcel *parcel, const inbound *in) {
  size_t to = 0, at = 0; /* a piece of the frame, bytes of it that are full */
  for (size_t i = 0; i < parcel->count; i++) {
    const uint8_t *from = parcel->pieces[i].data;
    size_t left = parcel->pieces[i].size;
    while (left > 0) {
      while (at == in->pieces[to].size) to++, at = 0;
      size_t room = in->pieces[to].size - at;
      size_t n = left < room ? left : room;
      memcpy((uint8_t *)in->pieces[to].data + at, from, n);
      from += n;
      at += n;
      left -= n;
    }
  }
}

weir_status weir_net_parcel_open(weir_net_parcel *parcel,
                                 const weir_allocator *alloc, uint64_t *cuts,
                                 weir_error *err) {
  size_t bytes;
  if (parcel->frame != NULL) return WEIR_OK;
  if (!weir_size_add(sizeof(inbound) + (size_t)CUTS * GAP, parcel->size,
                     &bytes))
    return weir_fail_memory(err, SIZE_MAX);
  inbound *in = weir_alloc(alloc, bytes);
  if (in == NULL) return weir_fail_memory(err, bytes);
  size_t count = parcel->size > 0;
  if (cuts != NULL) count = weir_mix_below(cuts, CUTS) + count;
  if (count > CUTS) count = CUTS;
  in->base = (weir_net_frame){.pieces = in->pieces,
                              .count = count,
                              .size = parcel->size,
                              .ref = inbound_ref,
                              .unref = inbound_unref};
  atomic_init(&in->holders, 1);
  in->alloc = alloc;
  cut(in, parcel->size, cuts);
  fill(parcel, in);
  parcel->frame = &in->base;
  return WEIR_OK;
}

void weir_net_parcel_let_go(weir_net_parcel *parcel) {
  size_t count = parcel->count;
  parcel->count = 0;
  for (size_t i = 0; i < count; i++)
    if (parcel->pieces[i].released != NULL)
      parcel->pieces[i].released(parcel->pieces[i].self);
}

void weir_net_parcel_free(weir_net_parcel *parcel) {
  if (parcel == NULL) return;
  weir_net_frame_unref(parcel->frame);
  weir_free(parcel->alloc, parcel);
}

void weir_net_parcel_free_all(weir_net_parcel *list) {
  while (list != NULL) {
    weir_net_parcel *next = list->next;
    weir_net_parcel_let_go(list);
    weir_net_parcel_free(list);
    list = next;
  }
}
