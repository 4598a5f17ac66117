/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_WEIR_SESSION_H_
#define WEIR_WEIR_SESSION_H_

#include "runtime/weir/graph.h"
#include "runtime/weir/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Sessions: a graph's variables and compiled programs. */

typedef struct weir_session_opts {
  uint32_t struct_size;
  bool no_fusion;        /* every node its own kernel */
  bool no_fold;          /* inputs with defaults are computed in every run */
  bool ref_kernels;      /* reference kernels only */
  bool no_layout;        /* row-major layouts only */
  uint64_t memory_limit; /* bytes of one run's values; 0: none */
  uint64_t seed;
  /* Place the nodes on the devices of a cluster, "ps=1,worker=2", and run each
   * device's part in this process, one thread a device; "graph": the cluster
   * that the graph describes. Results are the same bits. NULL: no. */
  const char *in_process;
  /* "search" (NULL), "first", "round_robin", "random", "random:SEED". */
  const char *placer;
  const char *plan; /* a plan in JSON that says where; NULL: weir places.
                     * These two need |in_process|: W0002. */
  size_t plan_size;
  /* Gets a summary of about ten lines each time a program is placed, from the
   * thread that asks for the run; NULL: no. */
  weir_write_fn on_placed;
  void *on_placed_self;
  /* A plan of this graph, in place of the four above: programs that it is of
   * are placed so, others on the same cluster, by the same options, with the
   * same homes of variables. Retained. NULL: none. */
  const weir_plan *placed;
  bool placed_only; /* programs that it is not of are refused: W3016 */
  /* Gets the plan of each program that is placed, lent, likewise; or NULL. */
  void (*on_plan)(void *self, const weir_plan *plan);
  void *on_plan_self;
} weir_session_opts;

/* Starts the runtime's threads if need be. |opts| may be NULL. The session
 * retains the graph and the runtime. Errors: W0004, W3001, W3020, W6001-W6003;
 * what does not fit the cluster shows in the first run (W3002, W3012-W3016). */
WEIR_API weir_status weir_session_create(weir_runtime *runtime,
                                         const weir_graph *graph,
                                         const weir_session_opts *opts,
                                         weir_session **out_session,
                                         weir_error *err);
/* No run may be under way. Bound runs may be released later. */
WEIR_API void weir_session_release(weir_session *session);

typedef struct weir_feed {
  uint32_t struct_size;
  const char *name;    /* of an input */
  weir_tensor *tensor; /* lent */
} weir_feed;

/* |tensor|: in, NULL or a tensor to be filled, of the right dtype and shape;
 * out, the result, a reference for you. |status| and |error| tell about this
 * output alone: those that do not depend on a failed node are delivered. */
typedef struct weir_fetch {
  uint32_t struct_size;
  weir_status status;
  const char *name; /* an output, or any node; "n:1" is its second result */
  weir_tensor *tensor;
  weir_error *error; /* may be NULL */
} weir_fetch;

#define WEIR_FEED(name, tensor) \
  { sizeof(weir_feed), (name), (tensor) }
#define WEIR_FETCH(name) \
  { sizeof(weir_fetch), WEIR_OK, (name), NULL, NULL }

/* What a run reads, gives and does. */
typedef struct weir_run_request {
  uint32_t struct_size;
  const weir_feed *feeds;
  size_t feed_count;
  weir_fetch *fetches;
  size_t fetch_count;
  const char *const *targets; /* nodes that are run for their effect */
  size_t target_count;
} weir_run_request;

#define WEIR_RUN_REQUEST(feeds, feed_count, fetches, fetch_count)              \
  {                                                                            \
    sizeof(weir_run_request), (feeds), (feed_count), (fetches), (fetch_count), \
        NULL, 0                                                                \
  }

typedef struct weir_run_opts {
  uint32_t struct_size;
  bool trap_nan;      /* fail at the first NaN or infinity: W5004 */
  int64_t timeout_ns; /* from now: W5006; 0: none */
  uint64_t step;      /* for random ops: which step this is */
  /* Nodes whose results |on_value| gets. */
  const char *const *dump;
  size_t dump_count;
  /* Called one at a time, on some thread; arguments are lent. */
  void (*on_value)(void *self, const char *node, size_t node_size,
                   uint32_t port, const weir_tensor *tensor);
  void (*on_failed)(void *self, const weir_error *error);
  void *self;
  weir_trace *trace; /* weir_tools.h */
} weir_run_opts;

/* Runs what the fetches and targets of |request| need. Blocks. Returns the
 * first failure, in the graph's order; a run that failed changed no variable.
 * |opts| may be NULL. Errors: W0004, W4009, W4011, W4012, W4016, W5001-W5008,
 * W6001, W6002. */
WEIR_API weir_status weir_session_run(weir_session *session,
                                      const weir_run_request *request,
                                      const weir_run_opts *opts,
                                      weir_error *err);

/* Ends all runs that are under way, bound ones too, with W5005. Does not wait;
 * any thread, not a signal handler. */
WEIR_API void weir_session_cancel(weir_session *session);

/* Looks everything up once, so that a run costs nothing but its work: feeds
 * are read and fetches filled in place; write to the fed tensors between runs.
 * Fetches' tensors are made if NULL, and are yours as after a run. */
WEIR_API weir_status weir_session_bind(weir_session *session,
                                       const weir_run_request *request,
                                       weir_bound **out_bound, weir_error *err);
/* No look-up, no allocation. One run at a time per bound; several bounds of a
 * session run at once. |opts| may be NULL; a `dump` in it is refused: W0004. */
WEIR_API weir_status weir_bound_run(weir_bound *bound,
                                    const weir_run_opts *opts, weir_error *err);
WEIR_API void weir_bound_release(weir_bound *bound);

/* The value of a variable, as a copy; and sets it, to the same dtype and
 * shape. Errors: W0004 (not a variable), W4016, W4009, W6001. */
WEIR_API weir_status weir_session_variable_get(weir_session *session,
                                               const char *name,
                                               weir_tensor **out_tensor,
                                               weir_error *err);
WEIR_API weir_status weir_session_variable_set(weir_session *session,
                                               const char *name,
                                               const weir_tensor *tensor,
                                               weir_error *err);

/* Variables of |session| from the newest sound checkpoint in folder |dir| (of
 * |step|, when that is not negative), all of them; |out_step| (may be NULL)
 * gets its step. Errors: W4040-W4048, W5022 naming what does not fit, W6001. */
WEIR_API weir_status weir_session_restore(weir_session *session,
                                          const char *dir, int64_t step,
                                          int64_t *out_step, weir_error *err);
/* Variables from a safetensors file, by name; those that it does not hold keep
 * their values. |map|: "old=new" gives tensor old to variable new. |out_count|
 * (may be NULL): how many were set. Errors: W4001-W4005, W5022, W5024, W6001.
 */
WEIR_API weir_status weir_session_load_weights(
    weir_session *session, const char *path, const char *const *map,
    size_t map_count, size_t *out_count, weir_error *err);

/* Writes the graph of |session| as |path| ("lenet.weir.yaml") to be run
 * elsewhere, and its variables beside it ("lenet.safetensors"), which it names
 * under `weights`. Sections for training and clusters are left out, params have
 * the values that the graph was loaded with. Runs of it give the bits that
 * |session| gives. Errors: W0002 (another ending), W5026, W5009, W6001, W6005.
 */
WEIR_API weir_status weir_session_export(weir_session *session,
                                         const char *path, weir_error *err);

#ifdef __cplusplus
}
#endif

#endif
