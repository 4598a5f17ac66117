/* SPDX-License-Identifier: Apache-2.0 */
/* weir.h with all that it includes, as it was in 0.1; made by headers.py. */
#ifndef WEIR_BASE_STATUS_H_
#define WEIR_BASE_STATUS_H_

#include <stddef.h>
#include <stdint.h>

/* Status and errors.
 *
 * Every function that can fail returns a weir_status and must not be ignored.
 * Detail goes to the caller's weir_error: fixed size, may be NULL, nothing to
 * free, so that running out of memory can be reported too. One table,
 * errors.def, gives each id its status, its exit code and its explanation:
 *
 *   if (k != n)
 *     return weir_fail(err, WEIR_W2012, at, "inner dimensions differ: "
 *                      "%" PRId64 " and %" PRId64, k, n);
 *
 * The library never aborts, exits or prints. */

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_API __attribute__((visibility("default")))
#define WEIR_MUST_USE __attribute__((warn_unused_result))
#define WEIR_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* The same numbers as gRPC's codes. */
typedef enum weir_status {
  WEIR_OK = 0,
  WEIR_CANCELLED = 1,
  WEIR_UNKNOWN = 2,
  WEIR_INVALID_ARGUMENT = 3,
  WEIR_DEADLINE_EXCEEDED = 4,
  WEIR_NOT_FOUND = 5,
  WEIR_ALREADY_EXISTS = 6,
  WEIR_PERMISSION_DENIED = 7,
  WEIR_RESOURCE_EXHAUSTED = 8,
  WEIR_FAILED_PRECONDITION = 9,
  WEIR_ABORTED = 10,
  WEIR_OUT_OF_RANGE = 11,
  WEIR_UNIMPLEMENTED = 12,
  WEIR_INTERNAL = 13,
  WEIR_UNAVAILABLE = 14,
  WEIR_DATA_LOSS = 15,
  WEIR_UNAUTHENTICATED = 16
} weir_status;

typedef int weir_error_id;

/* A span of a source file. Lines and columns count from 1, columns in code
 * points; line 0 means "no place". |file| is borrowed. */
typedef struct weir_mark {
  const char *file;
  uint32_t line, col, end_line, end_col;
} weir_mark;

/* What went wrong, in the caller's memory. Set |struct_size| before use. */
typedef struct weir_error {
  uint32_t struct_size;
  weir_status code;
  char id[8];                            /* "W2012"; "" when no error */
  char file[256];                        /* "" when no place */
  uint32_t line, col, end_line, end_col; /* from 1; 0 when no place */
  char node[128];                        /* node name, "" when none */
  char message[512];
  char hint[256]; /* "" when none */
} weir_error;

/* In this form for C++ too, where -Wextra wants every field. */
#define WEIR_ERROR_INIT \
  { sizeof(weir_error), WEIR_OK, "", "", 0, 0, 0, 0, "", "", "" }

/* Returns on the first status that is not WEIR_OK. */
#define WEIR_TRY(expr)                              \
  do {                                              \
    weir_status try_status_ = (expr);               \
    if (try_status_ != WEIR_OK) return try_status_; \
  } while (0)

/* Fills |err| (NULL-safe) and returns the status that errors.def gives |id|.
 * |at| may be NULL. Clears node and hint. Long messages are cut at a code
 * point; control bytes are escaped as \xNN. */
weir_status weir_fail(weir_error *err, weir_error_id id, const weir_mark *at,
                      const char *fmt, ...) WEIR_PRINTF(4, 5);

/* Adds a hint ("did you mean ...") to a filled |err|. NULL-safe. */
void weir_hint(weir_error *err, const char *fmt, ...) WEIR_PRINTF(2, 3);

/* Copies |src| to |dst| (NULL-safe), as much as both have room for: the error
 * of a program that was built with an older header is shorter than ours. */
void weir_error_copy(weir_error *dst, const weir_error *src);

/* Names the node that a filled |err| is about, unless one is named. */
void weir_error_set_node(weir_error *err, const char *name, size_t size);

/* "INVALID_ARGUMENT". Static text, never NULL. */
WEIR_API const char *weir_status_name(weir_status status);

/* Table look-ups by id text ("W2012"); NULL or -1 when the id is unknown. */
WEIR_API const char *weir_error_title(const char *id);
WEIR_API const char *weir_error_explain(const char *id);
WEIR_API int weir_error_exit_code(const char *id);

/* The id's text for the index-th error (from 0); NULL past the end. */
WEIR_API const char *weir_error_id_at(int index);

#ifdef __cplusplus
}
#endif

#endif

#ifndef WEIR_TENSOR_DTYPE_H_
#define WEIR_TENSOR_DTYPE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types. Each is one bit, so a set of types is an OR of them:
 * `types = WEIR_F32 | WEIR_F64`. bool is one byte, 0 or 1. */
typedef enum weir_dtype {
  WEIR_DTYPE_NONE = 0,
  WEIR_F32 = 1u << 0,
  WEIR_F64 = 1u << 1,
  WEIR_I32 = 1u << 2,
  WEIR_I64 = 1u << 3,
  WEIR_U8 = 1u << 4,
  WEIR_BOOL = 1u << 5
} weir_dtype;

/* Common sets. */
#define WEIR_FLOATS ((unsigned)(WEIR_F32 | WEIR_F64))
#define WEIR_INTS ((unsigned)(WEIR_I32 | WEIR_I64 | WEIR_U8))
#define WEIR_NUMBERS (WEIR_FLOATS | WEIR_INTS)
#define WEIR_ALL_TYPES (WEIR_NUMBERS | (unsigned)WEIR_BOOL)

/* "f32". Static text; "?" for anything else. */
WEIR_API const char *weir_dtype_name(weir_dtype dtype);
/* Bytes of one element: 1, 4 or 8; 0 for WEIR_DTYPE_NONE. */
WEIR_API size_t weir_dtype_size(weir_dtype dtype);
/* The dtype called |name| of |size| bytes, or WEIR_DTYPE_NONE. */
WEIR_API weir_dtype weir_dtype_from_name(const char *name, size_t size);
WEIR_API bool weir_dtype_is_float(weir_dtype dtype);

#ifdef __cplusplus
}
#endif

#endif

#ifndef WEIR_WEIR_TYPES_H_
#define WEIR_WEIR_TYPES_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Handles, and what all parts of the API share. */

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

#ifdef __cplusplus
}
#endif

#endif

#ifndef WEIR_WEIR_GRAPH_H_
#define WEIR_WEIR_GRAPH_H_

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif

#ifndef WEIR_WEIR_RUNTIME_H_
#define WEIR_WEIR_RUNTIME_H_

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif

#ifndef WEIR_WEIR_SESSION_H_
#define WEIR_WEIR_SESSION_H_

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

#ifndef WEIR_WEIR_TENSOR_H_
#define WEIR_WEIR_TENSOR_H_

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Tensors: dtype, shape, row-major data on the host, counted. */

/* Uninitialised; |rank| <= 8. Errors: W0004, W2001-W2003, W6001. */
WEIR_API weir_status weir_tensor_create(weir_runtime *runtime, weir_dtype dtype,
                                        int32_t rank, const int64_t *dims,
                                        weir_tensor **out_tensor,
                                        weir_error *err);
/* The type of a tensor that is made of bytes. */
typedef struct weir_tensor_spec {
  uint32_t struct_size;
  weir_dtype dtype;
  int32_t rank;
  const int64_t *dims; /* |rank| of them; may be NULL when |rank| is 0 */
  size_t bytes;        /* exactly as many as the shape takes (W0004) */
} weir_tensor_spec;

#define WEIR_TENSOR_SPEC(dtype, rank, dims, bytes) \
  { sizeof(weir_tensor_spec), (dtype), (rank), (dims), (bytes) }

/* A copy of |data|. Errors: as weir_tensor_create. */
WEIR_API weir_status weir_tensor_from_data(weir_runtime *runtime,
                                           const weir_tensor_spec *spec,
                                           const void *data,
                                           weir_tensor **out_tensor,
                                           weir_error *err);
/* Your memory as a tensor, no copy. |release| (may be NULL) is called once with
 * |self| when the last reference goes; after a failure it is not called.
 * |data| must be aligned to its element. */
WEIR_API weir_status
weir_tensor_from_memory(weir_runtime *runtime, const weir_tensor_spec *spec,
                        void *data, void (*release)(void *self, void *data),
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

/* Tensors under their names. */
typedef struct weir_tensor_list {
  uint32_t struct_size;
  size_t count;
  const char *const *names;
  const weir_tensor *const *tensors;
} weir_tensor_list;

#define WEIR_TENSOR_LIST(count, names, tensors) \
  { sizeof(weir_tensor_list), (count), (names), (tensors) }

/* Writes |list| to a .npy (one tensor), .npz or .safetensors file, as the
 * ending says; whole or not at all: a file beside |path| is renamed to it once
 * it is on disk. Errors: W0004, W4008, W5009, W6001, W6005. */
WEIR_API weir_status weir_tensor_write_file(weir_runtime *runtime,
                                            const char *path,
                                            const weir_tensor_list *list,
                                            weir_error *err);

typedef enum weir_file_format {
  WEIR_FILE_NPY = 1, /* one tensor */
  WEIR_FILE_NPZ = 2,
  WEIR_FILE_SAFETENSORS = 3
} weir_file_format;

/* The same to a function. */
WEIR_API weir_status weir_tensor_write_stream(weir_runtime *runtime,
                                              weir_file_format format,
                                              const weir_tensor_list *list,
                                              weir_write_fn write,
                                              void *write_self,
                                              weir_error *err);

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

#ifdef __cplusplus
}
#endif

#endif

#ifndef WEIR_TRAIN_PROGRESS_H_
#define WEIR_TRAIN_PROGRESS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/train/progress.h"

/* What a training tells about itself. Structs that are handed to callbacks say
 * in struct_size how much of them this library fills. */

#ifdef __cplusplus
extern "C" {
#endif

/* Why a training ended. */
typedef enum weir_train_end {
  WEIR_TRAIN_END_GOING = 0,
  WEIR_TRAIN_END_STEPS = 1,   /* all steps are done */
  WEIR_TRAIN_END_EPOCHS = 2,  /* all epochs are done */
  WEIR_TRAIN_END_TARGET = 3,  /* the metric is reached */
  WEIR_TRAIN_END_TIME = 4,    /* the time is over */
  WEIR_TRAIN_END_EARLY = 5,   /* the metric no longer improves */
  WEIR_TRAIN_END_STOPPED = 6, /* it was asked to */
  WEIR_TRAIN_END_FAILED = 7
} weir_train_end;

/* "steps", "epochs", ...: static text, never NULL. */
WEIR_API const char *weir_train_end_name(weir_train_end end);

/* A metric. */
typedef struct weir_train_value {
  const char *name;
  double value;
} weir_train_value;

/* How far a training is. Texts and lists are lent for the call. */
typedef struct weir_train_progress {
  uint32_t struct_size;
  bool log;                 /* a line is due, by `log:` */
  uint64_t step, last_step; /* updates; |last_step| 0: not known */
  uint64_t epochs;          /* wanted; 0: no such end */
  double epoch;             /* finished, with the fraction when known */
  double loss, learning_rate;
  const weir_train_value *values; /* of this step, in training mode */
  size_t value_count;
  uint64_t examples;        /* of this run; of earlier ones not */
  int64_t run_ns, wait_ns;  /* since it began; of that, waiting for data */
  int64_t save_ns, eval_ns; /* of that, in checkpoints and evaluations */
} weir_train_progress;

/* An evaluation. */
typedef struct weir_train_report {
  uint32_t struct_size;
  const char *data; /* name of the section */
  uint64_t step, examples, batches;
  int64_t ns;
  const weir_train_value *values; /* averages over all examples */
  size_t value_count;
} weir_train_report;

/* Called on the thread that trains; each may be NULL. */
typedef struct weir_train_callbacks {
  uint32_t struct_size;
  void *self;
  void (*step)(void *self, const weir_train_progress *progress);
  void (*epoch)(void *self, const weir_train_progress *progress);
  void (*eval)(void *self, const weir_train_report *report);
  /* A checkpoint of |step| is written, or about to be by another thread; it
   * held up training for |ns|. */
  void (*saved)(void *self, uint64_t step, int64_t ns);
  /* Training goes on from a checkpoint of |step|. */
  void (*resumed)(void *self, uint64_t step);
  /* Something that training survives. */
  void (*warning)(void *self, const weir_error *warning);
} weir_train_callbacks;

typedef enum weir_train_resume {
  WEIR_TRAIN_RESUME_AUTO = 0, /* from the newest sound checkpoint, if any */
  WEIR_TRAIN_RESUME_NONE = 1  /* a folder with checkpoints is refused */
} weir_train_resume;

#ifdef __cplusplus
}
#endif

#endif

#ifndef WEIR_WEIR_TRAIN_H_
#define WEIR_WEIR_TRAIN_H_

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Training: what the graph's `train:` says.
 *
 *   weir_train_callbacks calls = {.struct_size = sizeof calls};
 *   weir_train_opts opts = {.struct_size = sizeof opts};
 *   weir_train_end end;
 *   calls.step = on_step;
 *   opts.callbacks = &calls;
 *   s = weir_trainer_create(runtime, graph, &opts, &trainer, &err);
 *   if (s == WEIR_OK) s = weir_trainer_run(trainer, &end, &err);
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

#ifndef WEIR_H_
#define WEIR_H_

/* weir: dataflow graphs in YAML, run from C.
 *
 *   weir_error err = WEIR_ERROR_INIT;
 *   weir_runtime *runtime = NULL;
 *   weir_graph *graph = NULL;
 *   weir_session *session = NULL;
 *   weir_fetch c = WEIR_FETCH("c");
 *   weir_run_request request = WEIR_RUN_REQUEST(NULL, 0, &c, 1);
 *   weir_status s = weir_runtime_create(NULL, &runtime, &err);
 *   if (s == WEIR_OK)
 *     s = weir_graph_load_file(runtime, "tiny.weir.yaml", NULL, &graph, &err);
 *   if (s == WEIR_OK)
 *     s = weir_session_create(runtime, graph, NULL, &session, &err);
 *   if (s == WEIR_OK)
 *     s = weir_session_run(session, &request, NULL, &err);
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
 * may be zero. Structs grow at their end only. A program that was built with an
 * older header hands over shorter structs: what it does not know is zero going
 * in, and left out coming back. A struct from a newer header works as long as
 * what this library does not know is zero (W0004 if not). All elements of an
 * array of structs have the struct_size of the first.
 *
 * Functions take NULL and zero: where something is needed they fail with
 * W0004, or return NULL, 0 or false; releases of NULL do nothing.
 *
 * Threads: a runtime, a graph, a session may be used from many threads at
 * once; a tensor's count too, its data is guarded by nobody. The library keeps
 * no global state, never prints, exits, reads the environment, or handles
 * signals. */

#endif
