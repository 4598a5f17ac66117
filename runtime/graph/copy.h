/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_COPY_H_
#define WEIR_GRAPH_COPY_H_

#include "runtime/graph/builder.h"

/* Copies nodes and ports into a graph that is being built. */

/* The inputs and outputs of |from|, their values replaced as by copy. Outputs
 * whose value maps to WEIR_NO_VALUE are dropped. */
weir_status weir_graph_builder_copy_ports(weir_graph_builder *builder,
                                          const weir_graph *from,
                                          const weir_value_id *values,
                                          weir_error *err);

#endif
