/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/net/grpc/out.h"

#include "runtime/base/size.h"

/* A piece becomes a slice that refers to its bytes. gRPC calls on_free when its
 * last reference goes, on any of its threads. The frame's memory is needed
 * until then, so it goes with the last of its pieces. */

static void drop_user(weir_grpc_out *frame) {
  weir_grpc *t = frame->transport;
  if (atomic_fetch_sub(&frame->users, 1) != 1) return;
  weir_grpc_free(t, frame);
  atomic_fetch_sub(&t->frames_out, 1); /* last: release() waits for it */
}

static void on_free(void *ptr) {
  struct weir_grpc_held *held = ptr;
  weir_grpc_out *frame = held->frame;
  /* Sees all that the sender wrote before it gave the frame away. */
  (void)atomic_load_explicit(&frame->users, memory_order_acquire);
  if (!frame->forget) held->released(held->self);
  drop_user(frame);
}

weir_grpc_out *weir_grpc_out_create(weir_grpc *t, const weir_net_piece *pieces,
                                    size_t count) {
  size_t bytes;
  if (!weir_size_mul(count, sizeof(struct weir_grpc_held), &bytes) ||
      !weir_size_add(bytes, sizeof(weir_grpc_out), &bytes))
    return NULL;
  weir_grpc_out *frame = weir_grpc_alloc(t, bytes);
  if (frame == NULL) return NULL;
  frame->transport = t;
  frame->count = count;
  frame->buffer = grpc_raw_byte_buffer_create(NULL, 0);
  grpc_slice_buffer *slices = &frame->buffer->data.raw.slice_buffer;
  size_t users = 1;
  for (size_t i = 0; i < count; i++) users += pieces[i].released != NULL;
  for (size_t i = 0; i < count; i++) {
    const weir_net_piece *p = &pieces[i];
    frame->bytes += p->size; /* the caller has checked the sum */
    if (p->released == NULL) frame->copied += p->size;
    frame->held[i] = (struct weir_grpc_held){p->size > 0 ? frame : NULL,
                                             p->released, p->self};
  }
  atomic_store_explicit(&frame->users, users, memory_order_release);
  atomic_fetch_add(&t->frames_out, 1);
  for (size_t i = 0; i < count; i++) {
    const weir_net_piece *p = &pieces[i];
    if (p->size == 0) continue;
    grpc_slice slice =
        p->released == NULL
            ? grpc_slice_from_copied_buffer(p->data, p->size)
            : grpc_slice_new_with_user_data((void *)(uintptr_t)p->data, p->size,
                                            on_free, &frame->held[i]);
    grpc_slice_buffer_add(slices, slice);
  }
  return frame;
}

void weir_grpc_out_release(weir_grpc_out *frame, bool forget) {
  grpc_byte_buffer *buffer = frame->buffer;
  /* Not written otherwise: gRPC's threads may be reading it. */
  if (forget) frame->forget = true;
  grpc_byte_buffer_destroy(buffer);
  for (size_t i = 0; i < frame->count; i++) {
    struct weir_grpc_held *held = &frame->held[i];
    if (held->frame != NULL || held->released == NULL) continue;
    if (!forget) held->released(held->self);
    drop_user(frame);
  }
  drop_user(frame);
}
