/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_LOCAL_H_
#define WEIR_NET_LOCAL_H_

#include "runtime/net/transport.h"

/* Transports within one process.
 *
 * Those of one hub reach each other at "local:NAME"; "local:" asks listen for a
 * free name. Frames cross by reference: the receiver's poll copies them into
 * its own memory and calls |released|, on the receiver's thread. A control
 * transport refuses one for bulk, and the other way round. Attempts to connect
 * end at once. */

typedef struct weir_net_hub weir_net_hub;

/* A hub without transports. Errors: W6001. */
weir_status weir_net_hub_create(const weir_env *env, weir_net_hub **out_hub,
                                weir_error *err);
/* It lives on until its last transport is released. NULL-safe. */
void weir_net_hub_release(weir_net_hub *hub);

/* A transport of |hub|, with the hub's env; a hub has any number of them. Any
 * thread. Errors: W6001. */
weir_status weir_transport_local_create(weir_net_hub *hub,
                                        const weir_transport_handler *handler,
                                        const weir_transport_options *options,
                                        weir_transport **out_transport,
                                        weir_error *err);

#endif
