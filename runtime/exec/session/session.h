/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_SESSION_H_
#define WEIR_EXEC_SESSION_H_

#include "runtime/exec/channel/channel.h"
#include "runtime/exec/pool.h"
#include "runtime/exec/session/request.h"

/* Sessions.
 *
 * A Session holds a graph's variables and its compiled programs: one for each
 * (fetches, fed inputs, fed shapes), at most 8, the least recently used goes.
 * Any number of threads may run one session at once. Runs that write variables
 * take turns; read-only runs see the last commit. A run that failed changed no
 * variable.
 *
 * Two ways to run a request (request.h): weir_exec_run looks everything up by
 * value id; a Binding has looked it up once, so that a call costs nothing but
 * the work. */

typedef struct weir_exec_session weir_exec_session;
typedef struct weir_binding weir_binding;

/* The tasks of a placed session's cluster that this process owns: programs have
 * parts for their devices only, and variables whose home is there have values
 * here. Sessions of the other tasks run the same requests at the same time,
 * with the same step; the values that they exchange go over the channel, by the
 * numbers of placement/parts/tasks.h. All have the same graph, placing and
 * options; every one of them plans and folds as one process does, so the bits
 * are the same.
 *
 * A feed whose task is another one may be a tensor without memory (data NULL):
 * its shape counts. A fetch that another task makes is left as it is, with
 * |elsewhere| set. A variable that nothing assigns is compiled in where it is
 * read: one that is set from outside must be set in all tasks that
 * weir_task_mark_variable marks. */
typedef struct weir_session_share {
  const bool *tasks;   /* per task of the cluster; lent, outlives the session */
  uint32_t task_count; /* of the cluster */
} weir_session_share;

typedef struct weir_session_options {
  bool no_fusion;   /* each node its own kernel */
  bool no_fold;     /* inputs with defaults are computed in every run */
  bool ref_kernels; /* reference kernels only */
  bool no_layout;   /* plain layouts only */
  bool tf32;        /* products of f32 on GPUs may round factors to TF32 */
  bool one_task;    /* one instruction at a time, on all threads */
  /* Least memory in place of a step's all or nothing: a run that assigns may
   * write a variable's new value over the old one, unless a snapshot or another
   * run holds that, or over a fed tensor that is room for it
   * (session_snapshot.h); the contents of all its feeds are given up. No run
   * may read variables while one assigns them, but what a snapshot holds stays.
   * After a failed run variables are what happens to be there. Not with
   * |placing|. */
  bool overwrite;
  size_t memory_limit; /* bytes of one run's arena; 0: none */
  uint64_t seed;
  /* Devices of nodes (placement/place.h): programs are placed by |placing|, but
   * the program that |plan| was made for is placed by |plan|. Both are
   * retained; |placing| NULL: that of |plan|, and without a plan all nodes are
   * on one device. */
  const struct weir_placing *placing;
  const struct weir_plan *plan;
  bool plan_only; /* programs that it was not made for are refused: W3016 */
  const weir_session_share *share; /* copied; NULL: all tasks */
  /* Variables whose home is here, in common with other sessions of this process
   * (exec/store/var_store.h); retained. NULL: the session has its own. */
  struct weir_var_store *store;
  bool store_fresh; /* it makes them; else they are there */
  /* Runs the placed programs and has the variables (remote.h); lent. NULL: this
   * process. With one, |placing| is wanted. */
  struct weir_remote *remote;
  /* To the other tasks of a placed graph (channel.h); lent. All steps share it,
   * by weir_run_options.channel_step. NULL: there are none. */
  struct weir_channel *channel;
  /* Gets the plan of each program, lent, when it is compiled; on the thread
   * that asks for the run. May be NULL. */
  void (*on_plan)(void *self, const struct weir_plan *plan);
  void *on_plan_self;
} weir_session_options;

/* The pool is borrowed and must outlive the session; the graph is retained. */
weir_status weir_exec_session_create(const weir_env *env, weir_pool *pool,
                                     const weir_graph *graph,
                                     const weir_session_options *options,
                                     weir_exec_session **out_session,
                                     weir_error *err);
void weir_exec_session_release(weir_exec_session *session); /* NULL-safe */

/* How many runs that only read a caller with many of them should have under way
 * at once: 1, or as many as the session's remote wants. Each needs a thread. */
uint32_t weir_exec_session_width(const weir_exec_session *session);

/* Many steps, several of them under way at once. Each lane has outputs of its
 * own (the first lane's are the binding's); inputs are shared and read only. A
 * program that assigns variables keeps to one step at a time. */
typedef struct weir_overlap_options {
  uint64_t steps;
  int inflight; /* 1 to 64; no more run than the pool has threads */
  void *self;
  /* Called as a step starts, and once it has succeeded, on its thread, several
   * at once; both may be NULL. |outputs| are lent for the call. */
  void (*begin)(void *self, uint64_t step);
  void (*end)(void *self, uint64_t step, weir_tensor *const *outputs);
} weir_overlap_options;

/* Figures of a compiled program, for dumps and `bench`. */
typedef struct weir_program_stats {
  uint32_t nodes;        /* of the graph that it carries out */
  uint32_t instructions; /* after fusion and views */
  uint32_t groups;
  int64_t flops, bytes;     /* of one run */
  size_t arena_bytes;       /* peak memory of one run */
  size_t arena_bound_bytes; /* the largest sum of live values at any node */
  size_t constant_bytes;    /* packed weights and folded constants */
} weir_program_stats;

#endif
