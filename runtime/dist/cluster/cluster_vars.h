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
/* NULL: |node| is no variable. */
weir_dist_variable *weir_dist_variable_of(const weir_dist_session *session,
                                          weir_node_id node);
/* Whether the session at |place| has the value of |v|. */
bool weir_dist_goes_to(const weir_dist_variable *v, uint32_t place);
void weir_dist_variables(weir_dist *dist, uint64_t request,
                         const weir_error *err);
/* Brings values that were set to the tasks that |needed| marks newly. */
weir_status weir_dist_share(weir_dist_session *session, weir_error *err);

/* Another driver has made the variables, and may have set those that nothing
 * assigns: tasks that are compiled with them get their values from home. */
void weir_dist_vars_found(weir_dist_session *s);

#endif
