/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_ARRIVE_H_
#define WEIR_DIST_ARRIVE_H_

#include "runtime/dist/channel/rendezvous.h"

/* The remote side of a rendezvous: frames from peers. After an error of one of
 * these the owner ends the connection to |peer| and calls weir_rendezvous_lost.
 * Frames of a peer that is lost are ignored. */

/* A message with body Values, Ready or Cut; others are not looked at.
 * Messages of an older epoch are ignored. Errors: W7011. */
weir_status weir_rendezvous_control(weir_rendezvous *r, uint32_t peer,
                                    const Weir__V1__Control *message,
                                    weir_error *err);

/* Where a chunk goes. */
typedef struct weir_rendezvous_place {
  weir_cell *cell; /* NULL: nowhere, it is ignored */
  uint32_t peer;
  uint8_t *dst; /* or NULL: the sink */
  weir_rendezvous_sink sink;
  size_t offset, size;
} weir_rendezvous_place;

/* A chunk in three calls, so that an owner with a lock need not hold it while
 * the bytes are copied: begin, copy, end. After begin went well end must be
 * called; the memory stays until then, also when the step is dropped meanwhile.
 * A value has one chunk at a time. Errors: W7011. */
weir_status weir_rendezvous_bulk_begin(weir_rendezvous *r, uint32_t peer,
                                       const weir_bulk *bulk,
                                       weir_rendezvous_place *out_place,
                                       weir_error *err);
/* Touches nothing but the place's memory. */
void weir_rendezvous_bulk_copy(const weir_rendezvous_place *place,
                               weir_bulk_payload payload);
void weir_rendezvous_bulk_end(weir_rendezvous *r,
                              const weir_rendezvous_place *place);

#endif
