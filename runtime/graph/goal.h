/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_GOAL_H_
#define WEIR_GRAPH_GOAL_H_

#include "runtime/graph/pass/cut.h"
#include "runtime/graph/train/train.h"

/* The purpose of a graph: a step of its training, or its outputs. */

typedef struct weir_goal {
  const weir_allocator *alloc;
  weir_arena arena;
  const weir_graph *source; /* held */
  const weir_graph *graph;  /* held: the source, or its training graph */
  weir_train_spec *spec;    /* NULL: the outputs are wanted */
  weir_train_graph *train;
  const weir_value_id *fetches; /* ids of |graph| */
  const weir_node_id *targets;
  uint32_t fetch_count, target_count;
  bool with_gpus; /* the caller's: see weir_cut_request */
} weir_goal;

/* A training step where |graph| has `train`, unless |inference|; else its
 * outputs. Errors: those of weir_graph_train and weir_train_watch_list, W6001.
 */
weir_status weir_goal_create(const weir_graph *graph, bool inference,
                             weir_goal **out_goal, weir_error *err);
void weir_goal_release(weir_goal *goal); /* NULL-safe */

/* Shapes of the inputs of |graph| for weir_graph_specialize, as far as they
 * follow: from |given| (per input; rank unknown: not given; may be NULL), from
 * defaults, from the batch of the data that training reads. |nominal| (0: none)
 * stands for sizes that are still open. |out| has room for all inputs. Errors:
 * W6001.
 */
weir_status weir_graph_input_shapes(const weir_graph *graph,
                                    const weir_shape *given, int64_t nominal,
                                    weir_shape *out, weir_error *err);

/* The graph of a program of the goal, all inputs fed: lowered to
 * its mesh, with |shapes| (per input), cut. Errors: W4009, those of
 * weir_graph_mesh, the ops' own, W6001. */
weir_status weir_goal_cut(const weir_goal *goal, const weir_shape *shapes,
                          weir_cut **out_cut, weir_error *err);

/* The same of every variable of the goal's graph and nothing else. */
weir_status weir_goal_cut_variables(const weir_goal *goal, weir_cut **out_cut,
                                    weir_error *err);

#endif
