/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_WEIR_SESSION_H_
#define WEIR_WEIR_SESSION_H_

#include "runtime/weir/graph.h"
#include "runtime/weir/plan.h"
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
  /* Place the nodes on the devices of a cluster, as these options say, and run
   * each device's part in this process, one thread a device: each program gets
   * a plan when it is first run, and a variable one home in all of them. The
   * homes are decided here: |on_progress| and |on_diag| are called, and a pin
   * must name a node (W0002). |given|, |changes|, |feeds|, |inference| and
   * |open| are about one plan: W0004. Results are the same bits. NULL: one
   * device. */
  const weir_plan_opts *place;
  /* A plan of this graph instead: programs that it is of are placed so, others
   * on the same cluster, by the same options, with the same homes of
   * variables. Retained. NULL: none. Both: W0004. */
  const weir_plan *plan;
  bool plan_only; /* programs that |plan| is not of are refused: W3016 */
  /* Gets the plan of each program that is placed, lent, from the thread that
   * asks for the run; or NULL. */
  void (*on_plan)(void *self, const weir_plan *plan);
  void *on_plan_self;
  /* Run on these tasks, each device's part in its task's process, by |place| or
   * |plan|, whose cluster is theirs (W0004 if not; neither: by no options). The
   * graph was loaded with |keep_files|. Retained. NULL: all parts
   * are of this process. */
  weir_tasks *tasks;
  /* Products of f32 on GPUs (matmul, einsum, convolutions, recurrent layers)
   * may round their factors to TF32: quicker, and other bits. No effect on
   * CPUs. With |tasks| it is their parts' too. */
  bool tf32;
} weir_session_opts;

/* Starts the runtime's threads if need be. |opts| may be NULL. The session
 * retains the graph and the runtime. Errors: W0004, W3001, W3020, W6001-W6003;
 * a program that does not fit the cluster fails in its first run (W3002,
 * W3012-W3016). */
WEIR_API weir_status weir_session_create(weir_runtime *runtime,
                                         const weir_graph *graph,
                                         const weir_session_opts *opts,
                                         weir_session **out_session,
                                         weir_error *err);
/* No run may be under way. Bound runs may be released later. */
WEIR_API void weir_session_release(weir_session *session);

/* A tensor on a GPU goes to nodes on that GPU without the host: in place where
 * it is aligned to 256 bytes, else by a copy there; to another GPU by a copy
 * between the two, to the CPU by a copy out. A session with |tasks| refuses it:
 * W0004. */
typedef struct weir_feed {
  uint32_t struct_size;
  const char *name;    /* of an input */
  weir_tensor *tensor; /* lent */
} weir_feed;

/* |tensor|: in, NULL or a tensor to be filled, of the right dtype and shape;
 * out, the result, a reference for you. |status| and |error| tell about this
 * output alone: those that do not depend on a failed node are delivered.
 *
 * |on_device|: a value that is made on a GPU stays there, and |tensor| is one
 * on that GPU, whole when the run returns; weir_tensor_desc says so. A value
 * that is made on the CPU comes as ever. A tensor to be filled must be where
 * the value is made, on a GPU aligned to 64 bytes. A session with |tasks|
 * refuses it: W0004. */
typedef struct weir_fetch {
  uint32_t struct_size;
  weir_status status;
  const char *name; /* an output, or any node; "n:1" is its second result */
  weir_tensor *tensor;
  weir_error *error; /* may be NULL */
  bool on_device;
} weir_fetch;

#define WEIR_FEED(name, tensor) \
  { sizeof(weir_feed), (name), (tensor) }
#define WEIR_FETCH(name) \
  { sizeof(weir_fetch), WEIR_OK, (name), NULL, NULL, false }

/* The inputs, outputs and targets of a run. */
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
  /* Called one at a time, on some thread; arguments are lent. Fetches come here
   * too, those with |on_device| as they are. */
  void (*on_value)(void *self, const char *node, size_t node_size,
                   uint32_t port, const weir_tensor *tensor);
  void (*on_failed)(void *self, const weir_error *error);
  void *self;
  weir_trace *trace; /* gets the times of the run; or NULL */
} weir_run_opts;

/* Runs the nodes that the fetches and targets of |request| need. Blocks.
 * Returns the first failure, in the graph's order; a run that failed changed no
 * variable. |opts| may be NULL. Errors: W0004, W4009, W4011, W4012, W4016,
 * W5001-W5008, W6001, W6002. */
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

/* The size and cost of a bound run. */
typedef struct weir_run_stats {
  uint32_t struct_size;
  uint32_t nodes;             /* of the graph that it carries out */
  uint32_t instructions;      /* after fusion and views */
  uint32_t groups;            /* of fused nodes */
  int64_t flops, bytes;       /* of one run */
  uint64_t arena_bytes;       /* peak memory of one run */
  uint64_t arena_bound_bytes; /* the largest sum of live values at any node */
  uint64_t constant_bytes;    /* packed weights and folded constants */
} weir_run_stats;

/* Fills |out_stats|, whose struct_size is set. */
WEIR_API weir_status weir_bound_stats(const weir_bound *bound,
                                      weir_run_stats *out_stats,
                                      weir_error *err);

/* ---- Traces: the times of instructions. */

/* A trace of at most |max_events| events (the later ones are counted only); the
 * runs that have it in their options add to it, one at a time. Errors: W0004,
 * W6001. */
WEIR_API weir_status weir_trace_create(weir_runtime *runtime, size_t max_events,
                                       weir_trace **out_trace, weir_error *err);
/* Chrome's JSON form, which Perfetto opens; when no run uses it. */
WEIR_API bool weir_trace_write(const weir_trace *trace, weir_write_fn write,
                               void *write_self);
WEIR_API void weir_trace_release(weir_trace *trace);

/* ---- Predictions over a data set of the graph. */

/* The results of a batch; all lent for the call. */
typedef struct weir_prediction {
  uint32_t struct_size;
  uint64_t first; /* number of its first example */
  int64_t rows;   /* examples wanted of it; tensors may hold more */
  const weir_tensor *const *outputs; /* in the graph's order */
  /* The batch's column of integers called `label`, one an example; or NULL. */
  const weir_tensor *labels;
} weir_prediction;

typedef struct weir_predict_opts {
  uint32_t struct_size;
  const char *data;      /* section of `data:` */
  const char *data_root; /* data files lie beneath; NULL: as the file says */
  uint64_t seed;         /* of shuffles that give none */
  uint64_t take;         /* examples; 0: all of an epoch */
  bool (*batch)(void *self, const weir_prediction *p); /* false: end, W5009 */
  void *self;
  const char *(*getenv)(void *self, const char *name); /* as for loading */
  void *getenv_self;
} weir_predict_opts;

/* Runs the graph's outputs on the examples of a data set, batch by batch.
 * Blocks. Errors: W0004, W4020-W4039, W5021, W5009, the runs' own. */
WEIR_API weir_status weir_session_predict(weir_session *session,
                                          const weir_predict_opts *opts,
                                          weir_error *err);

/* ---- Variables. */

/* Texts are lent by the session, but |type| is copied. */
typedef struct weir_variable_desc {
  uint32_t struct_size;
  weir_dtype dtype;
  int32_t rank;
  bool trained; /* the graph's `train` updates it */
  int64_t dims[WEIR_RANK_LIMIT];
  int64_t bytes;
  weir_text name;
  weir_text home; /* device of the plan that it lives on; empty: one device */
  char type[192]; /* "f32[784, 10]" */
} weir_variable_desc;

/* How many variables there are; the i-th (W0004 beyond). */
WEIR_API size_t weir_session_variable_count(const weir_session *session);
WEIR_API weir_status weir_session_variable_at(weir_session *session, size_t i,
                                              weir_variable_desc *out_variable,
                                              weir_error *err);
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
 * gets its step. Errors: W4040-W4048, W5022 naming the variable that does not
 * fit, W6001. */
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
