/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_PSNET_ADDRESS_H_
#define WEIR_DIST_PSNET_ADDRESS_H_

#include "runtime/dist/psnet/psnet_internal.h"

/* Where the tasks are that a net dials. */

/* Gives |seat|, which is dialled, its address: |address| for good, or that of
 * the net's book, as it is now. Errors: W7002 (none, or a long one), W6001. */
weir_status weir_ps_net_seat_address(weir_ps_net *net, weir_ps_seat *seat,
                                     const char *address, weir_error *err);
/* The net has a book and threads: notes its own address, and follows the others
 * until the end. */
void weir_ps_net_book_begin(weir_ps_net *net);
void weir_ps_net_book_end(weir_ps_net *net);

#endif
