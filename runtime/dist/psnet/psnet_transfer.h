/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_PSNET_TRANSFER_H_
#define WEIR_DIST_PSNET_TRANSFER_H_

#include <stdatomic.h>

#include "runtime/dist/psnet/psnet_internal.h"

/* The values of one message, on their way out or in.
 *
 * Pieces of more than WEIR_WIRE_VALUE_BYTES are values of their own, which wait
 * at their sender until the receiver has named their places. The others go
 * together, as one value: so a message with many small pieces costs no more
 * than one, and what may arrive early is bounded by the number of messages. */

struct weir_ps_transfer {
  weir_ps_link *link;
  weir_ps_transfer *next; /* ended */
  weir_ps_values *values; /* out; NULL: in */
  const weir_ps_piece *pieces;
  uint32_t count;
  uint64_t number;
  atomic_size_t left; /* values under way, and one while they are begun */
  bool over;          /* under the net's lock: none is */
  weir_status status; /* under the net's lock: the first that failed */
  weir_error err;
  uint8_t *pack; /* the small pieces */
  size_t pack_bytes;
  size_t value_count;
  weir_channel_done done[];
};

/* |values|: out; else |pieces| are places. Holds |link|. Errors: W6001. */
weir_status weir_ps_transfer_create(weir_ps_link *link, uint64_t number,
                                    weir_ps_values *values,
                                    const weir_ps_place *place,
                                    weir_ps_transfer **out_transfer,
                                    weir_error *err);
/* Frees it, without a word to anybody; lets go of the link. */
void weir_ps_transfer_release(weir_ps_transfer *t);
/* Sends, or receives; it is in net->ended when all is over. */
void weir_ps_transfer_begin(weir_ps_transfer *t);
/* In: the small pieces go to their places. */
void weir_ps_transfer_scatter(const weir_ps_transfer *t);
/* In, of a link that has ended: waits until nothing writes to the places. */
void weir_ps_transfer_wait(weir_ps_transfer *t);

#endif
