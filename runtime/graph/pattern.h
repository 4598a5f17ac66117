/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_PATTERN_H_
#define WEIR_GRAPH_PATTERN_H_

#include "runtime/graph/graph.h"

/* Patterns over node names, as `train:` uses them: `*` is any text, slashes
 * too, `?` one byte; brackets mean themselves, since rounds of a repeat have
 * them in their names. The whole name must fit. */

/* Whether |pattern| fits |name|. Linear in practice, never worse than the
 * product of the two sizes. */
bool weir_pattern_fits(weir_sv pattern, weir_sv name);

/* The same for a variable, which can be named by its kind: "kind:var" is any,
 * "kind:bias" one of rank 0 or 1, "kind:weight" one of rank 2 or more. */
bool weir_pattern_fits_var(weir_sv pattern, const weir_graph *graph,
                           weir_node_id node);

/* The segment that |name| is in: its shortest beginning, whole or cut before a
 * slash, that fits |pattern|; empty when none does. "enc[2]" of
 * "enc[2]/ff/matmul" for "enc*". */
weir_sv weir_segment_of(weir_sv pattern, weir_sv name);

#endif
