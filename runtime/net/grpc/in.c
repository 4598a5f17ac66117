/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/net/grpc/in.h"

#include "runtime/base/size.h"

/* A frame refers to the slices of gRPC's byte buffer and keeps that buffer. A
 * peer chooses where its message is cut; one cut into crumbs is copied
 * together, so that lists of pieces stay short. */

enum { MAX_PIECES = 4096 };

typedef struct frame_in {
  weir_net_frame base; /* first: ref and unref find it */
  weir_grpc *transport;
  grpc_byte_buffer *buffer; /* NULL: |pieces| refer to bytes behind them */
  atomic_uint refs;
  weir_bytes pieces[];
} frame_in;

static void ref(weir_net_frame *base) {
  atomic_fetch_add(&((frame_in *)base)->refs, 1);
}

static void unref(weir_net_frame *base) {
  frame_in *frame = (frame_in *)base;
  if (atomic_fetch_sub(&frame->refs, 1) != 1) return;
  if (frame->buffer != NULL) grpc_byte_buffer_destroy(frame->buffer);
  weir_grpc_free(frame->transport, frame);
}

static frame_in *allocate(weir_grpc *t, size_t pieces, size_t behind,
                          size_t *out_wanted) {
  size_t bytes = pieces * sizeof(weir_bytes); /* at most MAX_PIECES */
  *out_wanted = SIZE_MAX;
  if (!weir_size_add(bytes, sizeof(frame_in), &bytes) ||
      !weir_size_add(bytes, behind, &bytes))
    return NULL;
  *out_wanted = bytes;
  frame_in *frame = t->host->alloc(t->base.env, bytes);
  if (frame == NULL) return NULL;
  *frame = (frame_in){{frame->pieces, pieces, 0, ref, unref}, t, NULL, 1};
  return frame;
}

weir_net_frame *weir_grpc_in_create(weir_grpc *t, grpc_byte_buffer *buffer,
                                    size_t *out_wanted) {
  const grpc_slice_buffer *slices = &buffer->data.raw.slice_buffer;
  bool crumbs = slices->count > MAX_PIECES;
  frame_in *frame = allocate(t, crumbs ? 1 : slices->count,
                             crumbs ? slices->length : 0, out_wanted);
  if (frame == NULL) {
    grpc_byte_buffer_destroy(buffer);
    return NULL;
  }
  frame->base.size = slices->length;
  uint8_t *to = (uint8_t *)&frame->pieces[1]; /* of crumbs */
  if (crumbs) frame->pieces[0] = (weir_bytes){to, slices->length};
  for (size_t i = 0; i < slices->count; i++) {
    const grpc_slice *s = &slices->slices[i];
    weir_bytes piece = {GRPC_SLICE_START_PTR(*s), GRPC_SLICE_LENGTH(*s)};
    if (crumbs)
      memcpy(to, piece.data, piece.size), to += piece.size;
    else
      frame->pieces[i] = piece;
  }
  if (crumbs)
    grpc_byte_buffer_destroy(buffer);
  else
    frame->buffer = buffer;
  return &frame->base;
}
