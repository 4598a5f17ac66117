/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_CLUSTER_CLUSTER_RUNS_H_
#define WEIR_DIST_CLUSTER_CLUSTER_RUNS_H_

#include "runtime/dist/cluster/cluster_internal.h"

/* Runs of a remote: steps, their decisions and deadlines. */

weir_status weir_dist_run(weir_remote *remote, weir_remote_program *program,
                          const weir_remote_step *step, weir_error *err);
weir_status weir_dist_decide(weir_remote *remote, weir_remote_program *program,
                             bool commit, weir_error *err);
void weir_dist_stepped(weir_dist *dist, const weir_driver_result *result,
                       const weir_error *err);
/* Looks at deadlines; control thread. Returns the next one. */
int64_t weir_dist_watch(weir_dist *dist, int64_t now_ns);

#endif
