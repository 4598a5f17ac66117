/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_CLUSTER_CLUSTER_SESSION_H_
#define WEIR_DIST_CLUSTER_CLUSTER_SESSION_H_

#include "runtime/dist/cluster/cluster.h"
#include "runtime/exec/session/remote.h"

/* One graph with its bundle on all tasks of a dist: a remote. */

struct weir_bundle;

/* A remote for weir_session_options.remote, of sessions that run |run_graph|,
 * with the options of |bundle|. |bundle->sources| and |bundle->placing| are
 * lent for its life. Remotes of equal bundles share their variables on the
 * tasks, and must not place a program in two ways: have one of them in a dist.
 * Errors: W0004 (another cluster), the tasks', W6001. */
weir_status weir_dist_remote(weir_dist *dist, const struct weir_bundle *bundle,
                             const weir_graph *run_graph,
                             weir_remote **out_remote, weir_error *err);
/* After its sessions. NULL-safe. */
void weir_dist_remote_release(weir_remote *remote);

#endif
