/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_CLUSTER_CHECKPOINT_H_
#define WEIR_DIST_CLUSTER_CHECKPOINT_H_

#include "runtime/dist/cluster/cluster_internal.h"

/* Values that tasks hold for a checkpoint: remote.h's hold. */

weir_status weir_dist_hold(weir_remote *remote, const weir_node_id *nodes,
                           uint32_t count,
                           struct weir_checkpoint_owners **out_owners,
                           weir_error *err);

#endif
