/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_TRANSPORTS_H_
#define WEIR_DIST_TRANSPORTS_H_

#include "runtime/net/transport.h"

/* How a process gets its transports: gRPC's, or those in memory in tests.
 *
 * A process asks for two of them, one for each class of frames. |create| may be
 * called from any thread, also several times; the transports are the caller's.
 * Errors: those of the transport's own create. */
typedef struct weir_transports {
  void *self;
  weir_status (*create)(void *self, const weir_transport_handler *handler,
                        const weir_transport_options *options,
                        weir_transport **out_transport, weir_error *err);
} weir_transports;

#endif
