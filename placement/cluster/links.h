/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_CLUSTER_LINKS_H_
#define PLACEMENT_CLUSTER_LINKS_H_

#include "placement/lower/cost_file.h"

/* Measured links in place of a cluster's own. */

/* Gives |cluster| the links of |costs| (NULL: none) between devices of a task;
 * |in_process|: between its tasks too, which are of one process. */
void weir_cluster_links_use(const weir_costs *costs, bool in_process,
                            weir_cluster *cluster);

#endif
