/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_DEAL_DEAL_REMOTE_H_
#define WEIR_DIST_DEAL_DEAL_REMOTE_H_

#include "runtime/dist/deal/deal.h"
#include "runtime/exec/session/remote.h"

/* One graph with its bundle on all workers of a deal: a remote. */

struct weir_bundle;

/* A remote as that of weir_dist_remote; the placing of |bundle| is of a cluster
 * of one task, whatever its name. Errors: likewise, W7070. */
weir_status weir_deal_remote(weir_deal *deal, const struct weir_bundle *bundle,
                             const weir_graph *run_graph,
                             weir_remote **out_remote, weir_error *err);
/* After its sessions. NULL-safe. */
void weir_deal_remote_release(weir_remote *remote);

#endif
