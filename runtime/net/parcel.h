/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_PARCEL_H_
#define WEIR_NET_PARCEL_H_

#include "runtime/net/transport.h"

/* Frames of the transports that stay within one process.
 *
 * A parcel is a frame on its way: the sender's pieces by reference, those
 * without |released| copied. It is opened once, on arrival: the bytes are
 * copied to memory of the receiver, as a network would, and the sender's pieces
 * are released. So a kept frame never depends on its sender. */

typedef struct weir_net_parcel {
  struct weir_net_parcel *next; /* the transport's */
  void *owner;                  /* the transport's */
  int64_t due_ns;               /* the transport's */
  uint64_t order;               /* the transport's */
  bool marked;                  /* the transport's */
  weir_net_frame *frame;        /* once opened */
  size_t size;
  const weir_allocator *alloc;
  size_t count; /* of the pieces below; 0 once released */
  weir_net_piece pieces[];
} weir_net_parcel;

/* Wraps |count| pieces; calls no |released|. Errors: W6001. */
weir_status weir_net_parcel_create(const weir_allocator *alloc,
                                   const weir_net_piece *pieces, size_t count,
                                   weir_net_parcel **out_parcel,
                                   weir_error *err);
/* Copies the bytes into parcel->frame, which has one holder, with memory of
 * |alloc|. With |cuts|, a sequence of base/mix.h, the frame is cut into up to
 * 8 pieces at random places, some of them empty, with other bytes between
 * them; NULL: one piece. Calls no |released|. Errors: W6001, and nothing has
 * changed. */
weir_status weir_net_parcel_open(weir_net_parcel *parcel,
                                 const weir_allocator *alloc, uint64_t *cuts,
                                 weir_error *err);
/* Calls each |released| that has not been called. Hold no lock. */
void weir_net_parcel_let_go(weir_net_parcel *parcel);
/* Frees it, and a frame that nobody took; calls no |released|. NULL-safe. */
void weir_net_parcel_free(weir_net_parcel *parcel);
/* Lets go of a list of parcels and frees them. */
void weir_net_parcel_free_all(weir_net_parcel *list);

/* A queue of parcels. */
typedef struct weir_net_parcels {
  weir_net_parcel *head, **tail; /* tail: used once head is set */
} weir_net_parcels;

static inline void weir_net_parcels_push(weir_net_parcels *q,
                                         weir_net_parcel *parcel) {
  parcel->next = NULL;
  if (q->head == NULL) q->tail = &q->head;
  *q->tail = parcel;
  q->tail = &parcel->next;
}
static inline void weir_net_parcels_push_front(weir_net_parcels *q,
                                               weir_net_parcel *parcel) {
  if (q->head == NULL) q->tail = &parcel->next;
  parcel->next = q->head;
  q->head = parcel;
}
static inline weir_net_parcel *weir_net_parcels_pop(weir_net_parcels *q) {
  weir_net_parcel *parcel = q->head;
  if (parcel == NULL) return NULL;
  q->head = parcel->next;
  parcel->next = NULL;
  return parcel;
}

#endif
