/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_TRAIN_H_
#define WEIR_GRAPH_TRAIN_H_

#include "runtime/graph/graph.h"

/* The `train` section, read; and the pass that makes a training graph of it.
 *
 *   weir_train_spec_read(graph) -> spec          the section as a struct
 *   weir_graph_train(graph, spec) -> weir_train_graph   gradients, clipping,
 *       schedule, apply_* and assign nodes, slots, global_step
 *
 * The new graph is the old one, ids kept, and more nodes after it: fetching
 * metrics for evaluation and running training steps go through one session on
 * one graph, so that both see the same variables. A training step is a run of
 * `targets`; nodes that behave differently while training (dropout, batch_norm)
 * have a training twin that only `targets`, `loss` and `train_values` lead to.
 *
 * Names of added nodes: VAR/adam_m and the like for slots (states, saved in
 * checkpoints), train/global_step (i64, counts finished updates),
 * train/learning_rate, train/grad_norm, train/VAR/apply, train/VAR/assign. */

/* "every: 100", "every: 600s", "every: 1 epoch". All zero: not asked for. */
typedef struct weir_every {
  uint64_t steps;
  int64_t ns;
  double epochs;
} weir_every;

/* A metric: "acc" (a node, averaged over examples), or
 * {name: ppl, perplexity: loss} (exp of the averaged node). */
typedef struct weir_metric_spec {
  weir_sv name, node;
  bool perplexity;
  weir_mark mark;
} weir_metric_spec;

/* "acc >= 0.90". */
typedef struct weir_target_spec {
  weir_sv metric; /* empty: none */
  double value;
  bool at_least; /* else at most */
  weir_mark mark;
} weir_target_spec;

/* How tasks train together. */
typedef enum weir_train_way {
  WEIR_WAY_NONE, /* the section names none */
  WEIR_WAY_ASYNC,
  WEIR_WAY_SYNC,
  WEIR_WAY_BOUNDED,
  WEIR_WAY_ALL_REDUCE
} weir_train_way;

/* The keys about several processes. Replicas between graphs, each with a graph
 * of its own on parameter servers, are what `replicate: between_graph` asks
 * for, and async, sync and bounded mean: then |between|. */
typedef struct weir_train_shared {
  weir_train_way way;   /* with |between|, never NONE: async */
  const char *way_name; /* static; NULL: NONE */
  weir_mark way_mark;
  bool between;
  uint32_t aggregate; /* sync: batches of an update; 0: one for each worker */
  uint32_t backup, staleness;
  uint32_t max_staleness; /* async; UINT32_MAX: no limit */
  /* Updates are divided by their staleness: "inverse", of async and bounded.
   * An input of the graph; the one who feeds it asks for it here. */
  bool given_staleness;
  uint32_t sync_every; /* 0: not given */
  int64_t evict_ns;    /* a worker without progress is out; 0: never */
  int64_t split_bytes; /* larger variables are cut over servers; 0: none */
  /* As written, "" where they are not. */
  weir_sv staleness_lr, algorithm, replicate, lr_scale;
} weir_train_shared;

/* Texts live as long as the graph, lists in the spec's own arena. */
typedef struct weir_train_spec {
  weir_arena arena;
  const weir_yaml *section;
  /* ---- The graph: read by weir_graph_train (optimizer, l2, clipping, ema,
   * patterns are in |rules|). */
  const struct weir_train_rules *rules;
  weir_sv minimize;
  weir_mark minimize_mark;
  /* ---- The loop: read by runtime/train. */
  weir_sv data;           /* section of `data:`; default "train" */
  uint64_t epochs, steps; /* 0: no such end */
  uint32_t accumulate;    /* >= 1 */
  weir_sv average;        /* of the batches of an update; "": equal */
  weir_sv reset_state;    /* "", "epoch" */
  struct {
    weir_target_spec target;
    int64_t time_ns, grace_ns;
    weir_sv early_metric; /* early stopping: {metric:, patience:, min_delta:} */
    bool early_at_least;  /* a larger metric is better */
    double early_delta;
    uint32_t early_patience; /* evaluations; 0: none */
  } stop;
  struct {
    weir_sv data; /* empty: no evaluation while training */
    weir_every every;
    const weir_metric_spec *metrics;
    uint32_t metric_count;
    uint64_t steps; /* at most; 0: all of the data */
  } eval;
  struct {
    weir_sv dir; /* empty: none */
    weir_every every;
    uint32_t keep;         /* newest; 0: all */
    weir_every keep_every; /* kept for good besides */
    bool async;            /* default true */
  } checkpoint;
  struct {
    weir_sv dir;
    weir_every every;
    const weir_sv *scalars, *histograms; /* node names, "kind:var" */
    uint32_t scalar_count, histogram_count;
    /* The key was given; else loss and metrics, and all variables. */
    bool has_scalars, has_histograms;
    bool graph;         /* default true */
    weir_sv csv, jsonl; /* file names in dir; empty: none */
  } summary;
  weir_train_shared shared;
  /* Keys about several processes, with no effect in one; most of them. */
  const weir_mark *unused[6];
  weir_sv unused_names[6];
  uint32_t unused_count;
  weir_every log; /* a line, when not on a terminal; default 100 steps */
  bool nan_trap;  /* default true */
} weir_train_spec;

/* A variable that training changes, or that belongs to one. */
typedef struct weir_train_var {
  weir_node_id node;  /* var or state */
  weir_node_id of;    /* slots: their variable; else UINT32_MAX */
  weir_value_id grad; /* after aggregation, before clipping; slots: none */
} weir_train_var;

/* The process that runs a node of a training graph where workers and parameter
 * servers share it (runtime/graph/split). Assignments are a server's. */
typedef enum weir_train_side {
  WEIR_TRAIN_WORKER, /* the loss and its gradients */
  WEIR_TRAIN_CLIP,   /* clipping: a server's, or a worker's where it must */
  WEIR_TRAIN_UPDATE  /* sums, schedule, slots, updates, averages */
} weir_train_side;

/* A node that is not the worker's. */
typedef struct weir_train_mark {
  weir_node_id node;
  weir_train_side side;
} weir_train_mark;

/* Whether the batches of an update weigh by their examples. */
static inline bool weir_train_by_examples(const weir_train_spec *spec) {
  return spec->accumulate > 1 && weir_sv_is(spec->average, "examples");
}

/* With `accumulate: N` an update takes N runs: N - 1 runs of
 * |accumulate_targets|, which add gradients to VAR/grad_sum, and one of
 * |targets|, which adds its own, divides by N, updates and sets the sums to 0.
 * Sums begin at +0 and grow in the order of the runs, so that one process of N
 * runs and N workers whose gradients are added in order give the same bits.
 * The graph's own assignments are targets of all N runs.
 *
 * With `average: examples` each run's gradients are multiplied by its number of
 * examples, an input, and the sum is divided by the sum of these. */

typedef struct weir_train_graph {
  weir_graph *graph;
  weir_arena arena;
  const weir_node_id *targets; /* all assigns of a step */
  uint32_t target_count;
  const weir_node_id *accumulate_targets; /* none unless accumulate > 1 */
  uint32_t accumulate_target_count;
  const weir_train_var *vars; /* trained ones, then slots */
  uint32_t var_count, trained_count;
  weir_value_id *grads;         /* of trained variables, as in |vars| */
  weir_value_id *raw;           /* the same before aggregation: of one run */
  const weir_value_id *clipped; /* the same clipped by value */
  const weir_train_mark *marks; /* of all nodes that are not the worker's */
  uint32_t mark_count;
  weir_value_id loss; /* as printed: without l2; in training mode */
  weir_value_id global_step, learning_rate;
  weir_value_id grad_norm; /* WEIR_NO_VALUE unless clipped by it */
  /* i64, WEIR_NO_VALUE unless batches weigh by examples: the number of them in
   * a run, an input; and the state that adds them up. */
  weir_value_id rows, rows_sum;
  /* i64, an input: the updates since the values that the gradients are of;
   * with shared.given_staleness, else WEIR_NO_VALUE. The rate of an update is
   * |learning_rate| by the larger of it and 1. */
  weir_value_id staleness;
  /* Per value of the old graph: the same in training mode (for metrics that
   * are fetched in the step itself). */
  const weir_value_id *train_values;
} weir_train_graph;

#endif
