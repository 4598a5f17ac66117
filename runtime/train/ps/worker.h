/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PS_WORKER_H_
#define WEIR_TRAIN_PS_WORKER_H_

#include "runtime/train/ps/worker/worker_host.h"

/* A worker of a training job over processes: it computes the runs that the
 * chief deals, on values that it pulls, and pushes what comes of them.
 *
 *   weir_ps_replica_create -> weir_ps_replica_run, which blocks until the job
 *   or the stay is over -> weir_ps_replica_release
 *
 * It dials the chief and the servers for as long as it runs, so it may start
 * before them, and outlives the death of any. */

typedef struct weir_ps_replica weir_ps_replica;

typedef struct weir_ps_replica_options {
  const weir_ps_job *job; /* lent for the life; so is |pool| */
  uint32_t index;         /* slot; no two processes have the same at a time */
  weir_pool *pool;
  weir_session_options session; /* with the seed of all workers */
  weir_dataset_options data;    /* with the job's seed; the pool is |pool| */
  /* As in psnet.h; all is lent for the life. */
  const weir_transports *transports;
  const weir_net_tls *tls;
  bool insecure;
  const char *const *servers; /* addresses, config.servers of them */
  weir_ps_book *book; /* in place of addresses; as in psnet.h; NULL: none */
  const char *chief;
  int64_t heartbeat_ns;
  int64_t away_ns;
  int64_t hang_ns; /* a wait of so long is logged; 0: 10 s */
  weir_ps_failpoints failpoints;
  /* A line; on a thread of the replica. May be NULL. */
  void (*log)(void *self, const char *text);
  void *log_self;
} weir_ps_replica_options;

typedef enum weir_ps_replica_end {
  WEIR_PS_REPLICA_OVER,    /* the job has ended */
  WEIR_PS_REPLICA_DRAINED, /* it has left, all that it had is given back */
  WEIR_PS_REPLICA_STOPPED  /* weir_ps_replica_stop */
} weir_ps_replica_end;

/* Opens the data, compiles nothing yet, listens to nobody. Errors: W7090, those
 * of data sets, sessions and psnet.h, W5021, W6001, W6003. */
weir_status weir_ps_replica_create(const weir_env *env,
                                   const weir_ps_replica_options *options,
                                   weir_ps_replica **out_replica,
                                   weir_error *err);
/* NULL-safe; not while it runs. */
void weir_ps_replica_release(weir_ps_replica *replica);

/* Dials, and computes until the end. Once. Errors: W6003; that of a run of its
 * own that failed, which ended the job: W5020 names the node; W7022, W7023 (the
 * chief or a server stays away, or refuses this one); W7101. */
weir_status weir_ps_replica_run(weir_ps_replica *replica,
                                weir_ps_replica_end *out_end, weir_error *err);

/* Finishes the run under way, gives the rest of its leases back, and leaves. A
 * replica that has not joined leaves at once. From any thread, and from signal
 * handlers. */
void weir_ps_replica_drain(weir_ps_replica *replica);
/* Leaves without a word: for the others it is dead. As drain. */
void weir_ps_replica_stop(weir_ps_replica *replica);

/* What it has done, after its run. */
weir_worker_numbers weir_ps_replica_count(const weir_ps_replica *replica);

#endif
