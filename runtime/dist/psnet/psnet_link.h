/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_PSNET_LINK_H_
#define WEIR_DIST_PSNET_LINK_H_

#include "runtime/dist/psnet/psnet_internal.h"

/* A link that is up: messages in their order, values, its end. Control thread,
 * but where it says so. */

/* The link of |peer|, which is up, in |seat|. Errors: W6001, W6003. */
weir_status weir_ps_link_create(weir_ps_net *net, weir_ps_seat *seat,
                                weir_peer *peer, weir_error *err);
/* |link| has ended: its places are given back, values on their way out are on
 * their way back. It is freed when all are. */
void weir_ps_link_end(weir_ps_link *link, const weir_error *why);
/* Frees a dead one. */
void weir_ps_link_release(weir_ps_link *link);

/* Any thread: |link| stays, until it is let go as often. With the lock, or with
 * a hold already. */
void weir_ps_link_hold(weir_ps_link *link);
void weir_ps_link_let_go(weir_ps_link *link);

/* False: |values| were not taken. */
bool weir_ps_link_send(weir_ps_link *link, const weir_ps_message *m,
                       weir_ps_values *values);
void weir_ps_link_message(weir_ps_link *link, const Weir__V1__Control *message);
/* The values of the first message that waits are there, or have failed. */
void weir_ps_link_arrived(weir_ps_link *link);

#endif
