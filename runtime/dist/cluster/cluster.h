/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_CLUSTER_CLUSTER_H_
#define WEIR_DIST_CLUSTER_CLUSTER_H_

#include "runtime/dist/cluster/traffic.h"
#include "runtime/dist/driver/driver.h"
#include "runtime/dist/states.h"
#include "runtime/dist/transports.h"

/* The driver's process: the tasks of a cluster as one blocking remote.
 *
 *   weir_dist_open(env, &options, &dist, err);      all tasks are here
 *   env.profile = weir_dist_profile(dist);          and the graph is placed
 *   weir_dist_remote(dist, &bundle, graph, &remote, err);    cluster_session.h
 *   ... sessions with weir_session_options.remote = remote ...
 *   weir_dist_remote_release(remote);
 *   weir_dist_close(dist, stop_tasks);
 *
 * It owns two threads (node.h); its callers wait. Any number of threads run
 * read-only programs at once.
 *
 * A task that is lost, a broken protocol, and a step that is not done by its
 * deadline end everything: each call under way and each later one fails with
 * the same error, which names the task (W70xx, exit 138). Steps that were
 * committed before stay committed. */

typedef struct weir_dist weir_dist;

typedef struct weir_dist_options {
  const weir_transports *transports; /* lent for the dist's life */
  /* All tasks of the cluster, in the order of weir_cluster's; copied. */
  const weir_driver_task *tasks;
  uint32_t task_count;
  uint8_t job_id[WEIR_JOB_ID_BYTES]; /* which run of the cluster */
  uint64_t epoch;                    /* of this session of the job; 0: 1 */
  uint64_t cluster_hash;
  bool insecure;           /* unencrypted to other machines, too */
  const weir_net_tls *tls; /* certificates; lent for the life; NULL: none */
  int64_t start_ns;        /* for all tasks to begin; 0: 30 s */
  int64_t step_ns;         /* for a step; 0: 30 s, or 20 times the mean */
  int64_t heartbeat_ns;    /* 0: 1 s; dead after five of them */
  void (*log)(void *self, const char *text); /* NULL: nothing is said */
  void *log_self;
  weir_states states; /* of the tasks and the session */
  /* Other drivers of the same share, with the same tasks, use the variables at
   * the same time; lent for open. NULL or "": the tasks are this driver's. */
  const char *share;
  /* Looked at every 10 ms until all tasks have begun: an error ends the
   * waiting; on the control thread. NULL: nobody looks. */
  weir_status (*while_starting)(void *self, weir_error *err);
  void *while_starting_self;
} weir_dist_options;

/* Waits until all tasks have begun a session. |env| is lent for the dist's
 * life. Errors: W7022 (says which tasks are missing and where it looked),
 * W7024, those of the transports and of while_starting, W6001, W6003. */
weir_status weir_dist_open(const weir_env *env,
                           const weir_dist_options *options,
                           weir_dist **out_dist, weir_error *err);
/* The lowest kernel profile of all tasks and of this process: for env.profile,
 * before the graph is placed. */
uint64_t weir_dist_profile(const weir_dist *dist);
/* WEIR_OK while the session goes on, else the error that has ended it. A call
 * whose failure has ended it is told so: the loss is seen before the call
 * returns. Any thread. */
weir_status weir_dist_check(weir_dist *dist, weir_error *err);
/* Counts of what came from the tasks; lent. */
weir_traffic *weir_dist_traffic(weir_dist *dist);
/* Ends the session; tasks are free again, or end if |stop_tasks|. All remotes
 * are released and no call is under way. NULL-safe. */
void weir_dist_close(weir_dist *dist, bool stop_tasks);

#endif
