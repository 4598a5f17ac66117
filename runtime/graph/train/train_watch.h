/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_TRAIN_WATCH_H_
#define WEIR_GRAPH_TRAIN_WATCH_H_

#include "runtime/graph/train/train.h"

/* Values watched while a graph is trained: a step fetches them beside its
 * updates. The training loop fetches them and a plan of the step counts them,
 * so both speak of the same program. */

/* A number that is watched: a node's mean over examples, or exp of it. */
typedef struct weir_train_metric {
  weir_sv name;
  weir_value_id value; /* of the source graph */
  bool perplexity;
} weir_train_metric;

/* Places in |fetches|. */
enum {
  WEIR_FETCH_LOSS,
  WEIR_FETCH_RATE,
  WEIR_FETCH_METRICS /* metrics, scalars, histograms of nodes */
};

typedef struct weir_train_watch {
  weir_train_metric *metrics; /* the evaluation's, and the loss if a rule looks
                                 at it */
  weir_value_id *fetches;     /* of the training graph */
  uint32_t metric_count, fetch_count, scalar_at, histogram_at;
} weir_train_watch;

/* |train| may be NULL: metrics only. Lists are in |arena|. Errors: W5023 (the
 * graph has no such node), W6001. */
weir_status weir_train_watch_list(const weir_graph *graph,
                                  const weir_train_spec *spec,
                                  const weir_train_graph *train,
                                  weir_arena *arena, weir_train_watch *out,
                                  weir_error *err);

#endif
