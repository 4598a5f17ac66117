/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_CUT_H_
#define WEIR_GRAPH_CUT_H_

#include "runtime/graph/graph.h"

/* The one way from a graph to the part of it that a program runs.
 *
 * Unwanted nodes go, equal nodes become one, groups are formed. The
 * placer and the compiler both begin with a cut, so a plan is always of the
 * very graph that is compiled: equal requests give equal cuts, ids included. */

typedef struct weir_cut_request {
  const weir_graph *graph;
  const weir_value_id *values; /* wanted */
  const weir_node_id *nodes;   /* wanted for their effect */
  uint32_t value_count, node_count;
  /* Per graph input; NULL: nothing is known. A fed input loses its default, one
   * that is not fed is replaced by it. */
  const bool *fed;
  /* Leave out the graph's own updates. Else an `update` is a target too if its
   * variable is read and no other node wanted assigns it. */
  bool no_updates;
  bool keep_equal; /* equal nodes stay apart */
  bool no_fusion;  /* no groups, and attention in parts stays so */
  /* The nodes may go to a GPU, which has no kernel for attention as one node:
   * its parts stay. */
  bool with_gpus;
} weir_cut_request;

typedef struct weir_cut {
  const weir_allocator *alloc;
  const weir_graph *graph; /* held */
  weir_value_id *values;   /* per value of the old graph; NO_VALUE: gone */
  weir_value_id *fetches;  /* the wanted values, by their new ids */
  weir_node_id *targets; /* the wanted nodes, then updates; UINT32_MAX: gone */
  uint32_t fetch_count, target_count;
} weir_cut;

/* Errors: the ops' own, W6001. */
weir_status weir_graph_cut(const weir_cut_request *request, weir_cut **out_cut,
                           weir_error *err);
void weir_cut_release(weir_cut *cut); /* NULL-safe */
/* A number for |graph|, fused or not: equal cuts have equal ones. */
uint64_t weir_cut_hash(const weir_graph *graph);

/* |graph| with |shapes| (per input, as weir_graph_specialize takes them); a
 * reference to the same graph where nothing is open. Errors: W4009, the ops'
 * own, W6001. */
weir_status weir_graph_fix_shapes(const weir_graph *graph,
                                  const weir_shape *shapes,
                                  const weir_graph **out_graph,
                                  weir_error *err);

#endif
