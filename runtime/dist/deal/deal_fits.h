/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_DEAL_DEAL_FITS_H_
#define WEIR_DIST_DEAL_DEAL_FITS_H_

#include "placement/cluster.h"
#include "runtime/graph/graph.h"

/* Whether a task of |job| gets dealt work: all but `ps`, which keeps variables
 * of graphs that are cut. */
bool weir_deal_is_worker(weir_sv job);

/* Whether runs of |graph| can be dealt to the workers of |cluster|, each of
 * which has the whole graph. Errors: W7071 with the reason: the graph lies on a
 * mesh, a node must be on a certain task or on another kind of device, a run
 * needs the one before it, the cluster has no worker; W6001; those of
 * `placement:`. */
weir_status weir_deal_fits(const weir_allocator *alloc, const weir_graph *graph,
                           const weir_cluster *cluster, weir_error *err);

#endif
