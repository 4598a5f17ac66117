/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/net/transport.h"

#define DEFAULT(field, value) \
  if (transport->options.field == 0) transport->options.field = value

void weir_transport_init(weir_transport *transport,
                         const weir_transport_vtable *vt, const weir_env *env,
                         const weir_transport_handler *handler,
                         const weir_transport_options *options) {
  *transport = (weir_transport){vt, env, *handler, *options};
  DEFAULT(max_frame_bytes, (size_t)2 << 20);
  DEFAULT(max_queue_bytes, (size_t)64 << 20);
  DEFAULT(connect_ns, 5000000000);
}

void weir_transport_release(weir_transport *transport) {
  if (transport != NULL) transport->vt->release(transport);
}

bool weir_transport_names(weir_transport *transport, weir_connection c,
                          char out[WEIR_NET_NAMES_BYTES]) {
  out[0] = '\0';
  return transport->vt->names != NULL &&
         transport->vt->names(transport, c, out);
}
