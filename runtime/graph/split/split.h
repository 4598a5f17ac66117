/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_SPLIT_H_
#define WEIR_GRAPH_SPLIT_H_

#include "runtime/graph/train/train.h"

/* A training step as two kinds of graph, for workers and parameter servers.
 *
 * The training graph (train/train.h) is cut where gradients leave the backward
 * part and nowhere else. The *worker graph* is all in front of the cut: the
 * model, the loss, metrics, raw gradients, statistics of batches. It changes
 * nothing: variables that a server holds are inputs of the same name, dtype and
 * shape. An *update graph* is what lies behind the cut, for the variables of
 * one server: sums, means, clipping, decay, schedule, apply_*, slots, averages,
 * assignments.
 *
 *   worker:  feed a batch, and pulled values; fetch loss and pushes
 *   server:  feed pushes; run the update graph's targets
 *
 * Both are made by copying nodes of the one training graph, so the two, run in
 * turn, give its bits. Random nodes keep their seeds: a worker that runs with
 * the step of the one-process order draws that order's numbers.
 *
 * A variable of more than |split| bytes lies on several servers, in ranges of
 * its rows, if each node behind the cut that reads it works row by row
 * (WEIR_OP_ROWS, WEIR_OP_ELEMENTWISE): then the update graph of a piece is that
 * of the variable, with fewer rows. Its slots and its gradient are cut at the
 * same rows. Workers see it whole.
 *
 * With |aggregate| N an update is N runs of a worker: a server runs
 * |accumulate_targets| for the first N - 1 pushes and |targets| for the last,
 * in the order of the batches. A state that the graph assigns itself (a moving
 * average of batches, the state of a recurrent layer) is assigned in each. */

/* The part of a value that one server has: rows |first| to |first| + |count| of
 * |all| along the first axis, which are its bytes from |offset| on. |all| 0:
 * the value is whole. */
typedef struct weir_split_rows {
  int64_t first, count, all;
  uint64_t offset;
} weir_split_rows;

/* The shape of |rows| of a value of shape |all|. */
static inline weir_shape weir_split_shape(const weir_shape *all,
                                          const weir_split_rows *rows) {
  weir_shape shape = *all;
  if (rows->all > 0) shape.dims[0].value = rows->count;
  return shape;
}

/* A variable or state that a server holds, or a piece of one. Pieces of one
 * variable follow each other, in the order of rows and of servers; a server has
 * one at most. */
typedef struct weir_split_var {
  weir_sv name;
  weir_sv label;     /* of a piece "w[0:512]"; else the name */
  weir_node_id node; /* in the training graph */
  weir_node_id of;   /* slots: their variable there; else UINT32_MAX */
  weir_split_rows rows;
  uint64_t bytes; /* of the piece */
  /* A node of its update that needs all of it, which is why a variable beyond
   * |split| is whole; else UINT32_MAX. */
  weir_node_id whole_for;
  uint32_t server; /* WEIR_SPLIT_ALL: each has one, the same */
  /* The input of the worker graph; WEIR_NO_VALUE: slots have none. */
  weir_value_id worker;
  uint32_t push; /* trained ones: its gradient in |pushes|; else UINT32_MAX */
  bool fixed;    /* no step assigns it */
} weir_split_var;

/* A value that workers compute and servers take. */
typedef struct weir_split_push {
  weir_sv name;         /* of the update graphs' inputs */
  weir_sv label;        /* as a variable's */
  weir_value_id train;  /* in the training graph */
  weir_value_id worker; /* in the worker graph: fetched */
  weir_split_rows rows; /* those of the variable's piece; fetched whole */
  uint32_t server;      /* of a piece: who takes it; else WEIR_SPLIT_ALL */
  uint64_t bytes;       /* of the piece */
} weir_split_push;

/* What a server's gradient adds to a norm over all servers: sums of squares, in
 * the places of the order in which one process adds (ops/reduce/norm_blocks.h).
 */
typedef struct weir_split_share {
  weir_value_id value; /* f64[count], of the update graph: fetched */
  uint64_t at;         /* elements of gradients before it */
  uint32_t first;      /* its place among the sums of all servers */
  uint32_t count;
} weir_split_share;

/* The part of one server. */
typedef struct weir_update_graph {
  weir_graph *graph;
  const weir_node_id *targets, *accumulate_targets;
  uint32_t target_count, accumulate_target_count;
  const weir_value_id *pushes; /* per push: its input; WEIR_NO_VALUE: none */
  const weir_node_id *vars;    /* per variable; UINT32_MAX: another server's */
  /* Per value of the training graph; WEIR_NO_VALUE: not of this server. */
  const weir_value_id *values;
  uint64_t bytes;              /* of its variables and slots */
  weir_value_id learning_rate; /* of the update */
  weir_value_id grad_norm;     /* WEIR_NO_VALUE unless clipped by it here */
  /* With weir_split.sum_count: grad_norm is an input, made of all servers'
   * shares, which follow from the last push as the update does. */
  const weir_split_share *shares;
  uint32_t share_count;
  /* The number of finished updates: an input with |given_step|. */
  weir_value_id global_step;
  /* With |given_staleness|: an input; WEIR_NO_VALUE where nothing is trained.
   */
  weir_value_id staleness;
} weir_update_graph;

#define WEIR_SPLIT_ALL UINT32_MAX
enum { WEIR_SPLIT_SERVERS = 1024 };

typedef struct weir_split_options {
  uint32_t servers;   /* 0: 1 */
  uint32_t aggregate; /* runs of a worker per update; 0: 1 */
  /* A worker clips its own gradients and pushes their factors: updates of
   * single pushes, which need no sum over servers. Not with |aggregate|. */
  bool clip_at_worker;
  /* train/global_step is an input of update graphs, not a state: the schedule
   * and the optimizers' step follow from a number that travels with the push.
   */
  bool given_step;
  bool given_staleness; /* likewise how old its values are: an input */
  double lr_factor;     /* of the learning rate; 0: 1 */
  uint64_t split;       /* larger variables are cut over servers; 0: none is */
} weir_split_options;

typedef struct weir_split {
  const weir_allocator *alloc;
  weir_arena arena;
  weir_train_graph *train; /* that was cut; |graph| is there for its names */
  weir_graph *worker;
  const weir_value_id *worker_values; /* per value of the training graph:
                                         WEIR_NO_VALUE behind the cut */
  weir_value_id loss;                 /* in the worker graph */
  weir_value_id rows; /* there: the number of examples; or WEIR_NO_VALUE */
  const weir_split_var *vars;       /* in the order of the training graph */
  const weir_split_push *pushes;    /* in the order they become ready */
  const weir_update_graph *updates; /* per server */
  uint32_t var_count, push_count, server_count;
  uint32_t sum_count;     /* of all shares; 0: no norm over several servers */
  const bool *sum_begins; /* per sum: a block of the norm begins with it */
  bool clip_at_worker;
} weir_split;

/* The options of a job between graphs of |servers| and |workers| tasks. */
weir_split_options weir_split_options_of(const weir_train_spec *spec,
                                         uint32_t servers, uint32_t workers);

/* Splits the training of |graph| by |spec|.
 * Its `accumulate` is not read: |aggregate| is. Errors: those of
 * weir_graph_train; W1122 (a mesh; a pushed value of unknown rank, or a
 * gradient of unknown shape in a norm over servers), W6001. */
weir_status weir_graph_split(const weir_graph *graph,
                             const weir_train_spec *spec,
                             const weir_split_options *options,
                             weir_split **out_split, weir_error *err);
void weir_split_release(weir_split *split); /* NULL-safe */

/* The norm of which |sums| are all shares, in their places. */
double weir_split_norm(const weir_split *split, const double *sums);

/* Which variables a worker's run for the |count| |values| (of the worker graph)
 * reads: |out| has a place for each variable. Errors: W6001. */
weir_status weir_split_reads(const weir_split *split,
                             const weir_value_id *values, uint32_t count,
                             bool *out, weir_error *err);

/* The same for one server by the graph's own section, whose `accumulate` is
 * |aggregate|: for dumps. Errors: as above, those of weir_train_spec_read. */
weir_status weir_graph_split_plain(const weir_graph *graph,
                                   weir_split **out_split, weir_error *err);

#endif
