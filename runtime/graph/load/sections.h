/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_SECTIONS_H_
#define WEIR_GRAPH_SECTIONS_H_

#include "runtime/graph/load/loader.h"

/* Sections beside the nodes: cluster, placement, data, train. */

/* Cluster, placement, data. */
bool weir_sections_check(weir_loader *l, const weir_module *m);

/* Checks `train`; names of nodes too when the graph is |complete|. */
bool weir_train_section(weir_loader *l, bool complete);

/* The keys of a placement rule; NULL ends the list. */
extern const char *const weir_rule_keys[];

#endif
