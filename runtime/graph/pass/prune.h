/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_PRUNE_H_
#define WEIR_GRAPH_PRUNE_H_

#include "runtime/graph/control.h"
#include "runtime/graph/pass/pass.h"
#include "runtime/graph/pass/pass_simplify.h"

/* The rest of a node with bodies when only some of its outputs are wanted:
 * stacks without readers, carried values without use, and the work that bodies
 * do not read are dropped, within bodies as well. */
typedef struct weir_pruned {
  weir_graph *bodies[2]; /* simplified; one reference each */
  bool *in;              /* per input of the node: kept */
  bool *out;             /* per output of the bodies: kept */
  weir_control parts;    /* of the node before */
} weir_pruned;

/* |used|: one for each output of |node|. Errors: W6001, those of shape rules.
 */
weir_status weir_prune(const weir_body_walk *walk, const weir_node *node,
                       const bool *used, weir_pruned **out, weir_error *err);
void weir_pruned_release(weir_pruned *pruned); /* NULL-safe */

/* Copies node |id| of |pass| as |pruned| says. */
weir_status weir_prune_copy(weir_pass *pass, weir_node_id id,
                            const weir_pruned *pruned, weir_arena *arena,
                            weir_error *err);

#endif
