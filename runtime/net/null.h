/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_NET_NULL_H_
#define WEIR_NET_NULL_H_

#include "runtime/net/transport.h"

/* A transport without peers. */

/* A transport to nowhere: every connect is answered, from the next poll, by
 * on_closed(UNREACHABLE). To be copied. Errors: W6001. */
weir_status weir_transport_null_create(const weir_env *env,
                                       const weir_transport_handler *handler,
                                       const weir_transport_options *options,
                                       weir_transport **out_transport,
                                       weir_error *err);

#endif
