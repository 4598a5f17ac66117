/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_CHANNEL_ENDS_H_
#define WEIR_DIST_CHANNEL_ENDS_H_

#include "runtime/dist/channel/rendezvous.h"

/* Ends of many calls at once. */

/* Gives up edges, feeds and fetches of |step|: calls under way and later ones
 * end with |why|; frames that arrive for them are ignored. */
void weir_rendezvous_drop(weir_rendezvous *r, uint64_t step,
                          const weir_error *why);
/* All steps below |step| have ended on all tasks: values that nobody took are
 * freed, late frames are ignored. A call of theirs that still waits is ended as
 * by drop. */
void weir_rendezvous_finish(weir_rendezvous *r, uint64_t step);
/* Nothing more goes to or comes from |peer|; all with it ends with |why|. Calls
 * whose bytes are at the transport end when it has released them. */
void weir_rendezvous_lost(weir_rendezvous *r, uint32_t peer,
                          const weir_error *why);
/* The same for all peers. */
void weir_rendezvous_abort(weir_rendezvous *r, const weir_error *why);

#endif
