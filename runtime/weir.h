/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_H_
#define WEIR_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/status.h"
#include "runtime/tensor/dtype.h"
#include "runtime/train/progress.h"

/* weir: dataflow graphs in YAML, run from C.
 *
 *   weir_error err = WEIR_ERROR_INIT;
 *   weir_runtime *runtime = NULL;
 *   weir_graph *graph = NULL;
 *   weir_session *session = NULL;
 *   weir_fetch c = WEIR_FETCH("c");
 *   weir_status s = weir_runtime_create(NULL, &runtime, &err);
 *   if (s == WEIR_OK)
 *     s = weir_graph_load_file(runtime, "tiny.weir.yaml", NULL, &graph, &err);
 *   if (s == WEIR_OK)
 *     s = weir_session_create(runtime, graph, NULL, &session, &err);
 *   if (s == WEIR_OK)
 *     s = weir_session_run(session, NULL, 0, &c, 1, NULL, &err);
 *   if (s == WEIR_OK) use(weir_tensor_data(c.tensor));
 *   else fprintf(stderr, "%s: %s\n", err.id, err.message);
 *   weir_tensor_release(c.tensor);
 *   weir_session_release(session);
 *   weir_graph_release(graph);
 *   weir_runtime_release(runtime);
 *
 * Ownership: *_create, *_load and *_from give you a reference, *_release
 * (NULL-safe) drops it, other functions lend. Outputs come last and are NULL
 * after a failure. Handles may be released in any order.
 *
 * Errors: a weir_status is returned; a weir_error, where one is passed (NULL is
 * allowed), says the rest. It lives in your memory; nothing is to be freed.
 *
 * Structs begin with struct_size, which you set to sizeof the struct; all else
 * may be zero. A struct from a newer header works as long as what this library
 * does not know is zero (W0004 if not).
 *
 * Threads: a runtime, a graph, a session may be used from many threads at
 * once; a tensor's count too, its data is guarded by nobody. The library keeps
 * no global state, never prints, exits, reads the environment, or handles
 * signals. */

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_runtime weir_runtime;
typedef struct weir_graph weir_graph;
typedef struct weir_session weir_session;
typedef struct weir_bound weir_bound;
typedef struct weir_tensor weir_tensor;
typedef struct weir_diag weir_diag;
typedef struct weir_trace weir_trace;
typedef struct weir_trainer weir_trainer;

enum { WEIR_RANK_LIMIT = 8 };

/* Takes |size| bytes of text; false when it could not, then it is not called
 * again. */
typedef bool (*weir_write_fn)(void *self, const char *data, size_t size);

/* The library's version: major * 1000000 + minor * 1000 + patch; as text. */
WEIR_API uint32_t weir_version(void);
WEIR_API const char *weir_version_text(void);

/* ---- Runtime: memory and threads. */

/* Your memory. Called from any thread; copied, |self| must outlive everything
 * that was made with the runtime. */
typedef struct weir_allocator_hook {
  uint32_t struct_size;
  void *self;
  /* |bytes| > 0 uninitialised bytes aligned to |align|, or NULL. */
  void *(*alloc)(void *self, size_t bytes, size_t align);
  void (*free)(void *self, void *ptr);
} weir_allocator_hook;

typedef struct weir_runtime_opts {
  uint32_t struct_size;
  int32_t threads;       /* running at once, callers included; 0: one a core */
  uint64_t memory_limit; /* bytes, of everything made with it; 0: none */
  const weir_allocator_hook *allocator; /* NULL: the C library's */
} weir_runtime_opts;

/* |opts| may be NULL. Threads start with the first session.
 * Errors: W0002 (threads outside 0 to 256), W0004, W6001. */
WEIR_API weir_status weir_runtime_create(const weir_runtime_opts *opts,
                                         weir_runtime **out_runtime,
                                         weir_error *err);
WEIR_API void weir_runtime_release(weir_runtime *runtime);

/* ---- Graphs. Immutable once loaded. */

typedef struct weir_param {
  uint32_t struct_size;
  const char *name, *text; /* |text| as it would stand in the file */
} weir_param;

typedef struct weir_load_opts {
  uint32_t struct_size;
  uint32_t max_errors;      /* reported to |on_diag|; 0: 20 */
  const weir_param *params; /* take the place of the file's */
  size_t param_count;
  uint64_t seed; /* of random ops; the same seed, the same numbers */
  /* Called for every error and warning, on the calling thread. |diag| is lent
   * for the call. May be NULL. */
  void (*on_diag)(void *self, const weir_diag *diag);
  void *on_diag_self;
  /* Gives `${env:NAME}` its value; NULL: such text is refused. */
  const char *(*getenv)(void *self, const char *name);
  void *getenv_self;
  uint64_t max_bytes, max_nodes; /* 0: 64 MiB, 1,000,000 */
  uint32_t max_depth;            /* of nested collections; 0: 64 */
} weir_load_opts;

/* Reads, expands and checks a graph. |err| holds the first error; |opts| may
 * be NULL. Errors: W1001 to W2020, W4001, W4002, W6001. */
WEIR_API weir_status weir_graph_load_file(weir_runtime *runtime,
                                          const char *path,
                                          const weir_load_opts *opts,
                                          weir_graph **out_graph,
                                          weir_error *err);
/* The same from |size| bytes, called |name| in messages. */
WEIR_API weir_status weir_graph_load_buffer(
    weir_runtime *runtime, const char *yaml, size_t size, const char *name,
    const weir_load_opts *opts, weir_graph **out_graph, weir_error *err);
WEIR_API void weir_graph_release(weir_graph *graph);

typedef enum weir_dir { WEIR_INPUT = 0, WEIR_OUTPUT = 1 } weir_dir;

/* An input or output. Texts are lent by the graph, but |type| is copied. */
typedef struct weir_io_desc {
  uint32_t struct_size;
  weir_dtype dtype;
  int32_t rank;     /* -1: not known */
  bool has_default; /* inputs: may be left unfed */
  const char *name; /* |name_size| bytes, not NUL-terminated */
  size_t name_size;
  int64_t dims[WEIR_RANK_LIMIT]; /* -1: not known before it is fed */
  char type[192];                /* "f32[batch, 784]" */
} weir_io_desc;

/* How many inputs or outputs there are; the i-th of them (W0004 beyond). */
WEIR_API size_t weir_graph_io_count(const weir_graph *graph, weir_dir dir);
WEIR_API weir_status weir_graph_io(const weir_graph *graph, weir_dir dir,
                                   size_t i, weir_io_desc *out_desc,
                                   weir_error *err);

/* ---- Diagnostics: an error with the places that explain it. */

/* The error itself, lent; and whether it is a warning only. */
WEIR_API const weir_error *weir_diag_error(const weir_diag *diag);
WEIR_API bool weir_diag_is_warning(const weir_diag *diag);

typedef enum weir_diag_form {
  WEIR_DIAG_FORM_HUMAN = 0, /* lines of the source, carets, notes, help */
  WEIR_DIAG_FORM_GCC = 1,   /* file:line:col: error: message [W2012] */
  WEIR_DIAG_FORM_JSON = 2   /* one object on one line */
} weir_diag_form;

/* Writes |diag|. |source| (may be NULL) gives the text of a file named in it,
 * and returns its size; the text must live until this returns. Allocates
 * nothing. */
WEIR_API bool weir_diag_write(
    const weir_diag *diag, weir_diag_form form, bool color,
    size_t (*source)(void *self, const char *file, const char **out_text),
    void *source_self, weir_write_fn write, void *write_self);
/* The same for a bare error. */
WEIR_API bool weir_error_write(const weir_error *error, weir_diag_form form,
                               bool color, weir_write_fn write,
                               void *write_self);

/* ---- Tensors: dtype, shape, row-major data on the host, counted. */

/* Uninitialised; |rank| <= 8. Errors: W0004, W2001-W2003, W6001. */
WEIR_API weir_status weir_tensor_create(weir_runtime *runtime, weir_dtype dtype,
                                        int32_t rank, const int64_t *dims,
                                        weir_tensor **out_tensor,
                                        weir_error *err);
/* A copy of |data|, of exactly the |bytes| that the shape needs (W0004). */
WEIR_API weir_status weir_tensor_from_data(
    weir_runtime *runtime, weir_dtype dtype, int32_t rank, const int64_t *dims,
    const void *data, size_t bytes, weir_tensor **out_tensor, weir_error *err);
/* Your memory as a tensor, no copy. |release| (may be NULL) is called once with
 * |self| when the last reference goes; after a failure it is not called.
 * |data| must be aligned to its element. */
WEIR_API weir_status weir_tensor_from_memory(
    weir_runtime *runtime, weir_dtype dtype, int32_t rank, const int64_t *dims,
    void *data, size_t bytes, void (*release)(void *self, void *data),
    void *self, weir_tensor **out_tensor, weir_error *err);
/* One more reference to |tensor|, which is returned; release drops one. */
WEIR_API weir_tensor *weir_tensor_retain(weir_tensor *tensor);
WEIR_API void weir_tensor_release(weir_tensor *tensor);

typedef struct weir_tensor_info {
  uint32_t struct_size;
  weir_dtype dtype;
  int32_t rank;
  bool read_only;
  int64_t dims[WEIR_RANK_LIMIT];
  int64_t elements;
  size_t bytes;
} weir_tensor_info;

/* Fills |out_info|, whose struct_size is set. */
WEIR_API weir_status weir_tensor_desc(const weir_tensor *tensor,
                                      weir_tensor_info *out_info);
/* The data, lent, for reading; never NULL. */
WEIR_API const void *weir_tensor_data(const weir_tensor *tensor);
/* The data for writing; NULL when the tensor is read-only. */
WEIR_API void *weir_tensor_mutable_data(weir_tensor *tensor);

/* Reads a tensor from a .npy, .npz, safetensors or IDX (also .gz) file; the
 * format follows from the first bytes. |root| (may be NULL): the file must lie
 * beneath this folder, without links out. |member| names one of several
 * tensors, NULL takes the only one. Errors: W4001-W4008, W4010, W4015, W6001.
 */
WEIR_API weir_status weir_tensor_read_file(weir_runtime *runtime,
                                           const char *root, const char *path,
                                           const char *member,
                                           weir_tensor **out_tensor,
                                           weir_error *err);
/* The same from |size| bytes, called |name| in messages. */
WEIR_API weir_status weir_tensor_read_buffer(
    weir_runtime *runtime, const void *data, size_t size, const char *name,
    const char *member, weir_tensor **out_tensor, weir_error *err);

/* Writes |count| tensors under |names| to a .npy (one tensor), .npz or
 * .safetensors file, as the ending says; whole or not at all: a file beside
 * |path| is renamed to it once it is on disk.
 * Errors: W4008, W5009, W6001, W6005. */
WEIR_API weir_status weir_tensor_write_file(weir_runtime *runtime,
                                            const char *path, size_t count,
                                            const char *const *names,
                                            const weir_tensor *const *tensors,
                                            weir_error *err);

typedef enum weir_file_format {
  WEIR_FILE_NPY = 1, /* one tensor */
  WEIR_FILE_NPZ = 2,
  WEIR_FILE_SAFETENSORS = 3
} weir_file_format;

/* The same to a function. */
WEIR_API weir_status weir_tensor_write_stream(
    weir_runtime *runtime, weir_file_format format, size_t count,
    const char *const *names, const weir_tensor *const *tensors,
    weir_write_fn write, void *write_self, weir_error *err);

/* DLPack, version 1 (dlpack.h). On success *from* takes |managed| and calls its
 * deleter later; row-major data is not copied, strided data is. On CPU only.
 * Errors: W0004, W2005 (dtype), W2001-W2003, W6001. */
struct DLManagedTensorVersioned;
WEIR_API weir_status weir_tensor_from_dlpack(
    weir_runtime *runtime, struct DLManagedTensorVersioned *managed,
    weir_tensor **out_tensor, weir_error *err);
/* Gives the tensor out, without a copy; its deleter drops the reference. */
WEIR_API weir_status weir_tensor_to_dlpack(
    weir_tensor *tensor, struct DLManagedTensorVersioned **out_managed,
    weir_error *err);

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

typedef struct weir_run_opts {
  uint32_t struct_size;
  bool trap_nan;      /* fail at the first NaN or infinity: W5004 */
  int64_t timeout_ns; /* from now: W5006; 0: none */
  uint64_t step;      /* for random ops: which step this is */
  /* Nodes that are run for their effect, and nodes whose results |on_value|
   * gets; when binding, targets only are looked at. */
  const char *const *targets;
  size_t target_count;
  const char *const *dump;
  size_t dump_count;
  /* Called one at a time, on some thread; arguments are lent. */
  void (*on_value)(void *self, const char *node, size_t node_size,
                   uint32_t port, const weir_tensor *tensor);
  void (*on_failed)(void *self, const weir_error *error);
  void *self;
  weir_trace *trace; /* weir_tools.h */
} weir_run_opts;

/* Runs what the fetches and targets need. Blocks. Returns the first failure, in
 * the graph's order; a run that failed changed no variable. |opts| may be NULL.
 * Errors: W0004, W4009, W4011, W4012, W4016, W5001-W5008, W6001, W6002. */
WEIR_API weir_status weir_session_run(weir_session *session,
                                      const weir_feed *feeds, size_t feed_count,
                                      weir_fetch *fetches, size_t fetch_count,
                                      const weir_run_opts *opts,
                                      weir_error *err);

/* Ends all runs that are under way, bound ones too, with W5005. Does not wait;
 * any thread, not a signal handler. */
WEIR_API void weir_session_cancel(weir_session *session);

/* Looks everything up once, so that a run costs nothing but its work: feeds
 * are read and fetches filled in place; write to the fed tensors between runs.
 * Fetches' tensors are made if NULL, and are yours as after a run. |opts|: only
 * targets; may be NULL. */
WEIR_API weir_status weir_session_bind(weir_session *session,
                                       const weir_feed *feeds,
                                       size_t feed_count, weir_fetch *fetches,
                                       size_t fetch_count,
                                       const weir_run_opts *opts,
                                       weir_bound **out_bound, weir_error *err);
/* No look-up, no allocation. One run at a time per bound; several bounds of a
 * session run at once. |opts| may be NULL; its names are not looked at. */
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

/* ---- Training: what the graph's `train:` says.
 *
 *   weir_train_callbacks calls = {.struct_size = sizeof calls, .step =
 * on_step}; weir_train_opts opts = {.struct_size = sizeof opts, .callbacks =
 * &calls}; weir_train_end end; s = weir_trainer_create(runtime, graph, &opts,
 * &trainer, &err); if (s == WEIR_OK) s = weir_trainer_run(trainer, &end, &err);
 *   weir_trainer_release(trainer);
 *
 * A trainer is used by one thread; weir_trainer_stop may be called from any,
 * and from signal handlers. */

typedef struct weir_train_opts {
  uint32_t struct_size;
  weir_train_resume resume;
  uint64_t seed;          /* of shuffles that give none; of random ops */
  uint64_t steps, epochs; /* instead of the file's, unless both are 0 */
  const char *data_root;  /* data files lie beneath; NULL: as the file says */
  const char *checkpoint; /* folder of checkpoints; NULL: as the file says */
  const char *events;     /* folder of summaries; NULL: as the file says */
  const char *init;       /* a safetensors file with first values, or NULL */
  const char *const *map; /* "old=new": names in |init| */
  size_t map_count;
  int64_t time_ns; /* the time now, since 1970: for show and names of files */
  bool eval_only;  /* no training data; |checkpoint| or |init| is read */
  const weir_session_opts *session;      /* may be NULL; its seed is not read */
  const weir_train_callbacks *callbacks; /* copied; may be NULL */
  const char *(*getenv)(void *self, const char *name); /* as for loading */
  void *getenv_self;
  void (*on_diag)(void *self, const weir_diag *diag); /* as for loading */
  void *on_diag_self;
} weir_train_opts;

/* Makes the training graph, opens data and checkpoints, goes on from the newest
 * one. |opts| may be NULL. The trainer retains graph and runtime.
 * Errors: W0004, W1130-W1139, W2018, W4001-W4048, W5021-W5025, W6001-W6005. */
WEIR_API weir_status weir_trainer_create(weir_runtime *runtime,
                                         const weir_graph *graph,
                                         const weir_train_opts *opts,
                                         weir_trainer **out_trainer,
                                         weir_error *err);
/* Waits for a checkpoint that is being written. */
WEIR_API void weir_trainer_release(weir_trainer *trainer);
/* One update and what is due after it (evaluation, checkpoint, summaries), or
 * nothing once it has ended; |out_end| says why. A failed step changed nothing.
 * Errors: W5020 (the loss is NaN), W5021, the run's own. */
WEIR_API weir_status weir_trainer_step(weir_trainer *trainer,
                                       weir_train_end *out_end,
                                       weir_error *err);
/* Writes the last checkpoint and waits until it is on disk. */
WEIR_API weir_status weir_trainer_finish(weir_trainer *trainer,
                                         weir_error *err);
/* Steps until the end, then finish. */
WEIR_API weir_status weir_trainer_run(weir_trainer *trainer,
                                      weir_train_end *out_end, weir_error *err);
/* Asks it to end after the step under way. NULL-safe. */
WEIR_API void weir_trainer_stop(weir_trainer *trainer);
/* Evaluates on section |data| of the file (NULL: what `eval:` says). Fills
 * |out_report|, whose struct_size is set; its texts and lists are lent until
 * the next call. */
WEIR_API weir_status weir_trainer_eval(weir_trainer *trainer, const char *data,
                                       weir_train_report *out_report,
                                       weir_error *err);
/* Writes a checkpoint now; with |wait| it is on disk after. */
WEIR_API weir_status weir_trainer_save(weir_trainer *trainer, bool wait,
                                       weir_error *err);
/* Fills |out_progress|, whose struct_size is set. */
WEIR_API weir_status weir_trainer_progress(const weir_trainer *trainer,
                                           weir_train_progress *out_progress,
                                           weir_error *err);
/* The value of a variable or slot ("c1/w", "c1/w/adam_m", "train/global_step"),
 * as a copy; and sets it. */
WEIR_API weir_status weir_trainer_variable_get(weir_trainer *trainer,
                                               const char *name,
                                               weir_tensor **out_tensor,
                                               weir_error *err);
WEIR_API weir_status weir_trainer_variable_set(weir_trainer *trainer,
                                               const char *name,
                                               const weir_tensor *tensor,
                                               weir_error *err);

#ifdef __cplusplus
}
#endif

#endif
