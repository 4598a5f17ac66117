/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_LOOP_INTERNAL_H_
#define WEIR_TRAIN_LOOP_INTERNAL_H_

#include "runtime/graph/train/train_watch.h"
#include "runtime/io/checkpoint/checkpoint.h"
#include "runtime/io/run_folder.h"
#include "runtime/train/ended.h"
#include "runtime/train/loop/loop.h"
#include "runtime/train/loop/stepper.h"
#include "runtime/train/loop/summary.h"
#include "runtime/train/loop/weights.h"

/* A number that is watched: a node's mean over examples, or exp of it. */
typedef struct weir_loop_metric {
  const char *name;
  weir_value_id value; /* of the source graph */
  bool perplexity;
} weir_loop_metric;

/* When something was last due. */
typedef struct weir_due {
  weir_every every;
  int64_t ns;
  uint64_t epochs; /* how many times |every.epochs| */
} weir_due;

/* A data set and its stepper. */
typedef struct weir_loop_eval_on {
  const char *name;
  weir_dataset *data;
  weir_stepper *stepper;
} weir_loop_eval_on;

enum { WEIR_LOOP_EVALS = 4 };

struct weir_loop {
  const weir_env *env;
  const weir_allocator *alloc;
  weir_pool *pool;
  weir_graph *graph; /* the source */
  weir_arena arena;
  weir_loop_options options; /* texts copied */
  weir_train_callbacks calls;
  weir_train_spec *spec;
  weir_train_graph *train;     /* NULL: to evaluate only */
  const weir_graph *run_graph; /* the session's */
  weir_exec_session *session;

  /* The files it writes. */
  weir_run_folder run;
  weir_run_place checkpoints, summaries; /* path NULL: none */

  struct weir_replicas *replicas; /* NULL: the loop's own runs train */
  uint32_t under_way;             /* their runs that are not applied yet */
  struct weir_chief *chief; /* updates are made by other processes; or NULL */

  weir_loop_profiler profiler; /* |begin| NULL: none */

  /* Data and steps. */
  weir_dataset *data;
  weir_data_iter *iter;
  weir_stepper *stepper, *accumulator; /* the last run of an update; others */
  weir_loop_eval_on evals[WEIR_LOOP_EVALS];
  weir_loop_metric *metrics;
  weir_train_watch watch; /* the fetches of a step */
  weir_train_value *values, *eval_values;
  double *sums;
  uint32_t metric_count;
  weir_summary *summary; /* NULL: none */
  uint32_t row_evals; /* of a summary's row: the first number of evaluations */
  uint64_t row_count, row_examples; /* so far; of this run at the last row */
  int64_t row_ns;

  /* Where it stands; all of it goes into checkpoints. */
  uint64_t step, runs; /* updates; runs of batches */
  uint64_t epoch;      /* finished */
  uint64_t batches;    /* of the epoch */
  uint64_t examples;   /* since training began */
  bool early_has;
  double early_best;
  uint32_t early_bad;
  weir_sv run_id;

  /* This run. */
  uint64_t last_step, first_examples;
  double loss, rate;
  int64_t start_ns, save_ns, eval_ns;
  weir_due eval_due, save_due, log_due, summary_due;
  weir_train_end end;
  atomic_bool stop;
  int64_t stop_ns; /* when it was first seen; 0: not */

  /* Checkpoints. */
  weir_checkpoint_store *store; /* NULL: none */
  weir_checkpoint_entry *entries;
  weir_node_id *entry_nodes;
  size_t entry_count;
  uint64_t graph_hash, saved_runs; /* runs of the newest checkpoint */
  weir_train_ended newest;         /* what it tells those that follow */
  bool saved, save_failed;
  weir_strbuf data_state, extra;

  /* States that the graph itself assigns. */
  weir_tensor **first_states; /* of entry_nodes; NULL for all others */
  weir_node_id *own_assigns;
  uint32_t own_assign_count;
};

/* The time of the loop's environment, in ns. */
int64_t weir_loop_clock(const weir_loop *loop);
/* Epochs finished, with the fraction where batches are known. */
double weir_loop_epochs(const weir_loop *loop);
/* Calls calls->warning, if there is one. */
void weir_loop_warn(const weir_loop *loop, const weir_error *err);

/* The error of a run |run| whose loss is not finite: |err| has it, and gets the
 * node, found by one more run of the batch. */
weir_status weir_loop_blame(weir_loop *loop, weir_stepper *stepper,
                            uint64_t run, weir_error *err);
/* Takes the values that a run of |stepper| fetched: loss and metrics. */
void weir_loop_take_values(weir_loop *loop, const weir_stepper *stepper);
/* Counts a run of |rows| examples; |last| of its update. */
void weir_loop_count_run(weir_loop *loop, int64_t rows, bool last);
/* The end of an epoch of data. Errors: W5021, those of an evaluation. */
weir_status weir_loop_end_epoch(weir_loop *loop, weir_error *err);

/* Gives the graph's own states their first values. */
weir_status weir_loop_reset_states(weir_loop *loop, weir_error *err);

#endif
