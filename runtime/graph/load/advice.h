/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_ADVICE_H_
#define WEIR_GRAPH_ADVICE_H_

#include "runtime/base/diag/diag.h"
#include "runtime/graph/graph.h"

/* Warnings about a sound graph that probably means something else. */

/* Reports to |sink| (may be NULL), once for a place in the source: W2021. Looks
 * at the main graph and the bodies of its nodes. */
void weir_load_advise(const weir_graph *graph, const weir_diag_sink *sink);

#endif
