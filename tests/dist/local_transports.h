/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_DIST_LOCAL_TRANSPORTS_H_
#define TESTS_DIST_LOCAL_TRANSPORTS_H_

#include "runtime/dist/transports.h"
#include "runtime/net/local.h"

/* Processes of one test reach each other over transports in memory. */

static inline weir_status local_transports_create(
    void *self, const weir_transport_handler *handler,
    const weir_transport_options *options, weir_transport **out,
    weir_error *err) {
  return weir_transport_local_create(self, handler, options, out, err);
}

/* Those of |hub|, which is lent. */
static inline weir_transports local_transports(weir_net_hub *hub) {
  return (weir_transports){hub, local_transports_create};
}

#endif
