/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_LOAD_H_
#define WEIR_GRAPH_LOAD_H_

#include "runtime/graph/graph.h"

/* Loads a graph: the way in of this wing. */

/* Loads |path| (a file, read through |env|) or |text|: YAML, expansion of
 * imports, blocks, repeat and nested calls, then types and shapes. All errors
 * up to max_errors go to the sink; |err| holds the first. */
weir_status weir_graph_load(const weir_env *env, const char *path,
                            const weir_load_options *options,
                            weir_graph **out_graph, weir_error *err);

/* The same for |text|, called |name| in messages. */
weir_status weir_graph_load_text(const weir_env *env, weir_sv text,
                                 const char *name,
                                 const weir_load_options *options,
                                 weir_graph **out_graph, weir_error *err);

#endif
