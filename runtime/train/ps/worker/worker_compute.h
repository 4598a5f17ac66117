/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PS_WORKER_COMPUTE_H_
#define WEIR_TRAIN_PS_WORKER_COMPUTE_H_

#include "runtime/exec/session/session.h"
#include "runtime/train/data/data.h"
#include "runtime/train/ps/job.h"

/* A worker's computing: a thread that runs the worker graph, one run at a time.
 *
 * The variables that servers hold are inputs of that graph. Their tensors are
 * here, the same in all runs: the one who owns the compute writes pulled values
 * into them while no run is under way. A run's pushes go to a *set*, memory of
 * its own, which is left alone until it is given to another run. */

typedef struct weir_worker_compute weir_worker_compute;

/* The memory of one run's results, and what computes into it. */
typedef struct weir_worker_set {
  struct weir_stepper *stepper;
  weir_tensor **pushes;   /* per push of the split: whole, at its first piece;
                             NULL: no server takes it */
  weir_ps_piece **pieces; /* per server: of its list of pushes */
  double *numbers;        /* the job's, then WEIR_REPORT_MORE */
  bool ran;               /* its program is compiled */
  weir_ps_piece report;   /* the same */
  /* Of the set's user (worker_sets.h). */
  bool held; /* its values may be sent again */
  uint64_t run;
  uint32_t sending;
} weir_worker_set;

enum { WEIR_WORKER_AHEAD = 16 };

/* A run, and its end. */
typedef struct weir_worker_job {
  weir_worker_set *set;
  uint64_t run, step;
  uint64_t ahead[WEIR_WORKER_AHEAD]; /* likely to follow; data_runs.h */
  uint32_t ahead_count;
  weir_status status; /* W5020: the loss is not finite; err names the node */
  weir_error err;
  int64_t rows;
  int64_t ns; /* of computing; 0: the set's first run, which compiles */
} weir_worker_job;

typedef struct weir_worker_compute_options {
  const weir_ps_job *job; /* lent for the life; so is |pool| */
  weir_pool *pool;
  weir_session_options session;
  weir_dataset_options data; /* its pool is |pool| */
  /* A run has ended; on the compute's thread. */
  void (*done)(void *self);
  void *self;
} weir_worker_compute_options;

/* Opens the data and starts the thread. Errors: those of data sets and
 * sessions, W5021, W6001, W6003. */
weir_status weir_worker_compute_create(
    const weir_env *env, const weir_worker_compute_options *options,
    weir_worker_compute **out_compute, weir_error *err);
/* Gives up the run under way, which is waited for. done() is not called after
 * it. */
void weir_worker_compute_stop(weir_worker_compute *compute);
/* Stops. Sets are released before. NULL-safe. */
void weir_worker_compute_release(weir_worker_compute *compute);

/* The values pulled from |server|: its list's, |count| of them. Lent. */
const weir_ps_piece *weir_worker_compute_pulls(const weir_worker_compute *c,
                                               uint32_t server,
                                               uint32_t *out_count);

/* A set that no run has used. Errors: W6001, W5021. */
weir_status weir_worker_set_create(weir_worker_compute *compute,
                                   weir_worker_set **out_set, weir_error *err);
void weir_worker_set_release(weir_worker_compute *compute,
                             weir_worker_set *set); /* NULL-safe */

/* Begins |run|, which is the compute's until done(). One at a time. */
void weir_worker_compute_begin(weir_worker_compute *compute,
                               weir_worker_job *run);
/* The result of the run under way is not wanted: it ends soon. Any thread. */
void weir_worker_compute_cancel(weir_worker_compute *compute);

/* How many runs ahead are of use, at most WEIR_WORKER_AHEAD. */
uint32_t weir_worker_compute_ahead(const weir_worker_compute *compute);
/* Time spent waiting for data so far; while no run is under way. */
int64_t weir_worker_compute_wait_ns(const weir_worker_compute *compute);

#endif
