/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_OUTPUTS_H_
#define WEIR_GRAPH_OUTPUTS_H_

#include "runtime/graph/load/loader.h"

/* Outputs of a graph. */

/* How many items `outputs` makes. */
uint32_t weir_outputs_count(const weir_yaml *outputs);

/* Appends them. */
bool weir_outputs_parse(weir_loader *l, weir_module *m, const weir_yaml *y,
                        weir_body *body);

/* Declares the graph's outputs, once their items are evaluated. */
bool weir_outputs_add(weir_loader *l, weir_scope *main);

#endif
