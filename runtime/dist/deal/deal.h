/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_DEAL_DEAL_H_
#define WEIR_DIST_DEAL_DEAL_H_

#include "runtime/dist/cluster/cluster.h"

/* Workers that are dealt the same work: each has the whole graph, and a run is
 * carried out by one of them, whoever is free.
 *
 *   weir_deal_open(env, &options, &deal, err);        all workers are here
 *   env.profile = weir_deal_profile(deal);
 *   weir_deal_remote(deal, &bundle, graph, &remote, err);    deal_remote.h
 *   ... sessions with weir_session_options.remote = remote, which run as many
 *       requests at once as weir_exec_session_width says ...
 *   weir_deal_remote_release(remote);
 *   weir_deal_close(deal, stop_tasks);
 *
 * Each worker has a session of its own (cluster.h) of that one task. When it is
 * lost its session is over, and no other: runs that were with it are made again
 * by others, until none is left (W7070, with the names). A run changes nothing
 * and its random numbers come from its step's number, so it gives the same bits
 * on each worker and at each attempt; programs that assign variables are
 * refused (W7071). All workers compute by one kernel profile, that of the
 * weakest.
 *
 * Variables are set on all workers and read from any. */

typedef struct weir_deal weir_deal;

enum { WEIR_DEAL_EACH = 2 }; /* runs at once with a worker */

typedef struct weir_deal_options {
  /* As of each worker's dist; |tasks| are the workers, the rest of the cluster
   * has no part. |job_id| and |epoch| are not read. */
  weir_dist_options dist;
  /* A worker is lost; |task| is its name. Once for each, one at a time, on some
   * thread; lent for the call. NULL: nobody hears it. */
  void (*lost)(void *self, const char *task, const weir_error *why);
  /* A run has ended, on the thread that asked for it. NULL: likewise. */
  void (*ran)(void *self);
  void *self;
} weir_deal_options;

/* Waits until all workers have begun a session. |env| is lent for the deal's
 * life. Errors: those of weir_dist_open, W7023 (no common kernels). */
weir_status weir_deal_open(const weir_env *env,
                           const weir_deal_options *options,
                           weir_deal **out_deal, weir_error *err);
/* As weir_dist_profile. */
uint64_t weir_deal_profile(const weir_deal *deal);
/* As weir_dist_close. NULL-safe. */
void weir_deal_close(weir_deal *deal, bool stop_tasks);

/* The part of one worker so far. */
typedef struct weir_deal_part {
  const char *task; /* "worker:1"; lent by the deal */
  bool lost;
  uint64_t runs;  /* that it has carried out */
  uint64_t again; /* that others were given when it was lost */
} weir_deal_part;
uint32_t weir_deal_count(const weir_deal *deal);
/* Of the |i|-th worker. Any thread. */
weir_deal_part weir_deal_part_of(weir_deal *deal, uint32_t i);
/* Values that came from all workers, and their bytes. */
uint64_t weir_deal_values(weir_deal *deal);
uint64_t weir_deal_value_bytes(weir_deal *deal);

#endif
