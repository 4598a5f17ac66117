/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_CLUSTER_LOAD_H_
#define WEIR_DIST_CLUSTER_LOAD_H_

#include "runtime/dist/cluster/cluster_internal.h"

/* Variables that tasks read from a checkpoint: remote.h's load. */

weir_status weir_dist_load(weir_remote *remote,
                           const struct weir_checkpoint_common *place,
                           const weir_remote_row *rows, uint32_t count,
                           bool *out_left, const struct weir_diag_sink *sink,
                           weir_error *err);

#endif
