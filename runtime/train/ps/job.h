/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PS_JOB_H_
#define WEIR_TRAIN_PS_JOB_H_

#include <assert.h>

#include "runtime/dist/ps/ps.h"
#include "runtime/dist/psnet/psnet.h"
#include "runtime/graph/split/split.h"
#include "runtime/graph/train/train_watch.h"

/* A training job between graphs over processes: what all its tasks know.
 *
 * Each process loads the same graph, splits it the same way and so knows which
 * values travel, in which order and of which sizes, without a word about them
 * on the wire. |hash| tells processes of another graph or configuration apart.
 *
 * What travels are the split's variables and pushes, each whole or a piece: a
 * range of its rows. A worker and the chief keep one buffer for all pieces of a
 * value, which are ranges of its bytes.
 *
 * The values of a message, in pieces:
 *   PULLED of server s    its variables, in the order of |pulls|; without |ok|
 *                         the first |changing_count|
 *   PUSH to server s      its pushes, in the order of |pushes|
 *   FETCHED of server s   all that it holds, in the order of |held|; and one
 *                         piece of doubles, if a summary watches its updates
 *   REPORT                one piece of doubles: the loss, the spec's metrics,
 *                         scalars of a summary, of one run
 */

/* The values between one server and each worker. Places in the split's lists.
 * Variables that each server has (WEIR_SPLIT_ALL) are in server 0's lists. */
typedef struct weir_ps_lists {
  /* weir_split_var: that a worker's run reads; those last that no step changes,
   * which a worker is sent once. */
  const uint32_t *pulls;
  const uint32_t *pushes; /* weir_split_push: that this server's update takes */
  const uint32_t *held;   /* weir_split_var: all of this server, slots too */
  uint32_t pull_count, push_count, held_count;
  uint32_t changing_count; /* of |pulls| */
} weir_ps_lists;

/* A scalar of `summary:`, and who knows it. */
typedef enum weir_ps_scalar_of {
  WEIR_PS_SCALAR_RUN,      /* a worker's run: |place| among the numbers */
  WEIR_PS_SCALAR_VARIABLE, /* the committed version */
  WEIR_PS_SCALAR_UPDATE    /* |server|: |place| among what it watches */
} weir_ps_scalar_of;

typedef struct weir_ps_scalar {
  weir_ps_scalar_of of;
  uint32_t server, place;
} weir_ps_scalar;

/* Values of an update graph whose means a server tells. */
typedef struct weir_ps_watched {
  weir_value_id *values;
  uint32_t count;
} weir_ps_watched;

typedef struct weir_ps_job {
  const weir_env *env;
  weir_arena arena;
  const weir_graph *graph;     /* the source; lent */
  const weir_train_spec *spec; /* lent */
  weir_split *split;
  weir_ps_config config;
  const weir_ps_lists *servers; /* config.servers of them */
  /* Values of the worker graph that a run reports: the loss, the metrics, then
   * scalars of a summary. */
  const weir_value_id *numbers;
  uint32_t number_count, metric_count;
  const weir_train_metric *metrics;
  /* Of a summary (watch/job_watch.h). */
  const weir_ps_scalar *scalars;  /* per scalar of the spec */
  const weir_ps_watched *watched; /* per server */
  const weir_value_id *shown; /* per histogram of a node: of the worker graph;
                                 WEIR_NO_VALUE: a variable */
  uint32_t shown_count;
  /* train/global_step is an input of the update graphs, whose number travels
   * with a push; where it is listed as held, server 0 tells its version. */
  bool given_step;
  uint64_t seed, hash;
} weir_ps_job;

typedef struct weir_ps_job_options {
  uint32_t servers, workers; /* tasks */
  uint64_t seed;             /* of the run */
  uint32_t slots; /* workers that may be there at most; 0: |workers| */
} weir_ps_job_options;

/* Reads the mode and its numbers from |spec|, and splits. |graph| and |spec|
 * are lent for the job's life. Errors: W1122 (a form that processes do not
 * train yet; by name), W7090, those of weir_graph_split, W6001. */
weir_status weir_ps_job_create(const weir_env *env, const weir_graph *graph,
                               const weir_train_spec *spec,
                               const weir_ps_job_options *options,
                               weir_ps_job **out_job, weir_error *err);
void weir_ps_job_release(weir_ps_job *job); /* NULL-safe */

/* What an OVER of the chief with |seq| means to a task: the chief has ended
 * with that error, and so has the job. 0: the job has ended well. */
void weir_ps_over_error(uint64_t seq, weir_error *err);

/* A report of a run: the job's numbers, then these. */
typedef enum weir_ps_report {
  WEIR_REPORT_ROWS,       /* examples */
  WEIR_REPORT_COMPUTE_NS, /* 0: not measured */
  WEIR_REPORT_BUSY_NS,    /* with work, since the report before */
  WEIR_REPORT_MORE
} weir_ps_report;
static inline uint32_t weir_ps_report_count(const weir_ps_job *job) {
  return job->number_count + WEIR_REPORT_MORE;
}

/* Whether number |i| of a run is the logarithm of a perplexity. */
static inline bool weir_ps_is_perplexity(const weir_ps_job *job, uint32_t i) {
  return i > 0 && i <= job->metric_count && job->metrics[i - 1].perplexity;
}

/* Whether variable |v| of the split is the first piece of its variable, or all
 * of it. */
static inline bool weir_ps_var_begins(const weir_ps_job *job, uint32_t v) {
  return job->split->vars[v].rows.first == 0;
}

/* Bytes of variable |v| or push |p| of the split, from its shape: of a piece,
 * those of its rows. */
static inline size_t weir_ps_var_bytes(const weir_ps_job *job, uint32_t v) {
  return (size_t)job->split->vars[v].bytes;
}
static inline size_t weir_ps_push_bytes(const weir_ps_job *job, uint32_t p) {
  return (size_t)job->split->pushes[p].bytes;
}
/* The |bytes| of |rows| in |whole|, which has all rows. */
static inline weir_ps_piece weir_ps_piece_of(const weir_tensor *whole,
                                             const weir_split_rows *rows,
                                             size_t bytes) {
  assert(rows->all > 0 || whole->bytes == bytes);
  assert(rows->offset + bytes <= whole->bytes);
  return (weir_ps_piece){(char *)whole->data + rows->offset, bytes};
}
/* Likewise those of variable |v| of the split. */
static inline weir_ps_piece weir_ps_var_piece(const weir_ps_job *job,
                                              uint32_t v,
                                              const weir_tensor *whole) {
  return weir_ps_piece_of(whole, &job->split->vars[v].rows,
                          weir_ps_var_bytes(job, v));
}

#endif
