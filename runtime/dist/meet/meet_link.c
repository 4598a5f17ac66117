/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/meet/meet_link.h"

#include <inttypes.h>
#include <stdio.h>

#include "runtime/base/map.h"

const char weir_meet_job[] = "scheduler";

static weir_status bulk(void *self, uint32_t lane, uint32_t place,
                        const weir_net_frame *frame, weir_error *err) {
  (void)self, (void)lane, (void)place, (void)frame;
  return weir_fail(err, WEIR_W7011, NULL, "a bulk frame of an observer");
}

weir_status weir_meet_wires(const weir_env *env, const weir_meet_options *o,
                            bool serves, weir_wires_calls *calls,
                            weir_wires **out_wires, weir_error *err) {
  weir_link_self self;
  /* Counts are compared by the registry, which has better words than a hash. */
  weir_wires_self(env, weir_hash_bytes("meet", 4, 0), calls->self, &self);
  self.hashed = "way to find its scheduler";
  self.observes = !serves;
  if (serves) snprintf(self.job, sizeof self.job, "%s", weir_meet_job);
  calls->bulk = bulk;
  weir_wires_options options = {
      .transports = o->transports,
      .insecure = o->insecure,
      .tls = o->tls,
      .self = &self,
      .link.heartbeat_ns = o->heartbeat_ns,
      .link.max_peers = o->servers + o->workers + 2 * WEIR_MEET_WAITING};
  return weir_wires_create(env, &options, calls, out_wires, err);
}

void weir_meet_name(weir_ps_role role, uint32_t rank, char out[32]) {
  snprintf(out, 32, "%s:%" PRIu32, role == WEIR_PS_SERVER ? "ps" : "worker",
           rank);
}

void weir_meet_say(const weir_meet_options *o, const char *text) {
  if (o->log != NULL) o->log(o->log_self, text);
}
