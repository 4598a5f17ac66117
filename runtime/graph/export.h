/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_EXPORT_H_
#define WEIR_GRAPH_EXPORT_H_

#include "runtime/base/strbuf.h"
#include "runtime/graph/graph.h"

/* The text of |graph|'s file as it is to be run elsewhere: without the sections
 * train, data, cluster, placement and weights, and with the params that this
 * graph was loaded with; all else, comments too, stays as it was written. The
 * text is loaded again, as file |path|, and must give the same graph. A line
 * `weights: |weights|` is added after that.
 * Appends to |out|. Errors: W5026, W6001. */
weir_status weir_graph_export_text(const weir_env *env, const weir_graph *graph,
                                   const char *path, weir_sv weights,
                                   weir_strbuf *out, weir_error *err);

#endif
