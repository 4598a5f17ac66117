/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/net/transport.h"

void weir_transport_release(weir_transport *transport) {
  if (transport != NULL) transport->vt->release(transport);
}
