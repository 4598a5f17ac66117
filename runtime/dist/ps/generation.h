/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_PS_GENERATION_H_
#define WEIR_DIST_PS_GENERATION_H_

#include "runtime/dist/ps/server.h"

/* Going on from a generation, with any number of servers and workers.
 *
 * A generation is the states of all servers: sync, all of one version; async,
 * each with its own version and marks. The ledger in server 0's was taken
 * before any of the states, and no op was written down until all were taken. So
 * a lease that it does not have was finished on all servers, or is in no mark.
 *
 * The runs of a lease count as done as far as any server's mark says; no
 * gradient is applied twice to any variable. Runs that only some servers have
 * are counted. */

/* Makes |ledger|, of a new job's config, the one to go on with: |states| are
 * those of the |count| servers that saved. Nobody is in it, and no lease is
 * out. Errors: W7091 when the states do not fit each other, W6001. */
weir_status weir_ps_generation_settle(const weir_ps_state *states,
                                      uint32_t count, weir_ps_ledger *ledger,
                                      weir_error *err);
/* The version that server |index| of a new job begins with. */
uint64_t weir_ps_generation_version(const weir_ps_state *states, uint32_t count,
                                    uint32_t index);

#endif
