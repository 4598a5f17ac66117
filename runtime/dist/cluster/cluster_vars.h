/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_CLUSTER_CLUSTER_VARS_H_
#define WEIR_DIST_CLUSTER_CLUSTER_VARS_H_

#include "runtime/dist/cluster/cluster_internal.h"

/* Variables of a remote. */

weir_status weir_dist_vars_create(weir_dist_session *session, weir_error *err);
weir_status weir_dist_get(weir_remote *remote, const weir_node_id *nodes,
                          void *const *data, uint32_t count, weir_error *err);
weir_status weir_dist_set(weir_remote *remote, const weir_node_id *nodes,
                          const void *const *data, uint32_t count,
                          weir_error *err);
void weir_dist_variables(weir_dist *dist, uint64_t request,
                         const weir_error *err);
/* Brings values that were set to the tasks that |needed| marks newly. */
weir_status weir_dist_share(weir_dist_session *session, weir_error *err);

#endif
