/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_SESSION_H_
#define WEIR_EXEC_SESSION_H_

#include "runtime/base/env.h"
#include "runtime/exec/pool.h"
#include "runtime/graph/graph.h"
#include "runtime/tensor/tensor.h"

/* Sessions.
 *
 * A Session holds a graph's variables and its compiled programs: one for each
 * (fetches, fed inputs, fed shapes), at most 8, the least recently used goes.
 * Any number of threads may run one session at once. Runs that write variables
 * take turns; read-only runs see the last commit. A run that failed changed no
 * variable.
 *
 * Two ways to run: weir_exec_run looks everything up by value id; a Binding
 * has looked it up once, so that a call costs nothing but the work. */

typedef struct weir_exec_session weir_exec_session;
typedef struct weir_binding weir_binding;
typedef struct weir_trace weir_trace;

typedef struct weir_session_options {
  bool no_fusion;      /* each node its own kernel */
  bool no_fold;        /* inputs with defaults are computed in every run */
  bool ref_kernels;    /* reference kernels only */
  bool no_layout;      /* plain layouts only */
  size_t memory_limit; /* bytes of one run's arena; 0: none */
  uint64_t seed;
  /* Devices of nodes (placement/place.h): programs are placed by |placing|, but
   * the program that |plan| was made for is placed by |plan|. Both are
   * retained; |placing| NULL: that of |plan|, and without a plan all nodes are
   * on one device. */
  const struct weir_placing *placing;
  const struct weir_plan *plan;
  bool plan_only; /* programs that it was not made for are refused: W3016 */
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

typedef struct weir_exec_feed {
  weir_value_id value; /* output 0 of an `input` node */
  weir_tensor *tensor; /* borrowed for the run */
} weir_exec_feed;

/* |tensor|: in, NULL or a tensor of the right dtype and shape to be filled;
 * out, the result, a reference for the caller (the same tensor when given). On
 * failure of this fetch alone |status| and |error| say why; others are still
 * delivered. */
typedef struct weir_exec_fetch {
  weir_value_id value;
  weir_tensor *tensor;
  weir_status status;
  weir_error *error; /* may be NULL */
} weir_exec_fetch;

/* Is called for every failed node, and every fetched or dumped value. */
typedef struct weir_run_observer {
  void *self;
  /* A value computed by this run; called on some thread, one at a time. */
  void (*value)(void *self, weir_sv node, uint32_t port,
                const weir_tensor *tensor);
  void (*failed)(void *self, const weir_error *error);
} weir_run_observer;

typedef struct weir_run_options {
  int64_t deadline_ns;       /* on the env's clock; 0: none */
  const atomic_bool *cancel; /* set it to stop the run; may be NULL */
  uint64_t step;             /* for random ops */
  bool trap_nan;             /* fail at the first NaN or infinity */
  const weir_node_id *dump;  /* their outputs go to the observer */
  size_t dump_count;
  const weir_run_observer *observer; /* may be NULL */
  weir_trace *trace;                 /* may be NULL */
  /* Called when all has succeeded, before variables change; any status but
   * WEIR_OK fails the run, and no variable changes. May be NULL. */
  weir_status (*accept)(void *self, weir_error *err);
  void *accept_self;
} weir_run_options;

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
