/* SPDX-License-Identifier: Apache-2.0 */
/* weir.h with all that it includes, without comments, as it was in 0.1; made by
 * headers.py. */
#ifndef WEIR_BASE_STATUS_H_
#define WEIR_BASE_STATUS_H_
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
#define WEIR_API __attribute__((visibility("default")))
#define WEIR_MUST_USE __attribute__((warn_unused_result))
#define WEIR_PRINTF(f, a) __attribute__((format(printf, f, a)))
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
typedef struct weir_mark {
  const char *file;
  uint32_t line, col, end_line, end_col;
} weir_mark;
typedef struct weir_error {
  uint32_t struct_size;
  weir_status code;
  char id[8];
  char file[256];
  uint32_t line, col, end_line, end_col;
  char node[128];
  char message[512];
  char hint[256];
} weir_error;
#define WEIR_ERROR_INIT \
  { sizeof(weir_error), WEIR_OK, "", "", 0, 0, 0, 0, "", "", "" }
#define WEIR_TRY(expr)                              \
  do {                                              \
    weir_status try_status_ = (expr);               \
    if (try_status_ != WEIR_OK) return try_status_; \
  } while (0)
weir_status weir_fail(weir_error *err, weir_error_id id, const weir_mark *at,
                      const char *fmt, ...) WEIR_PRINTF(4, 5);
void weir_hint(weir_error *err, const char *fmt, ...) WEIR_PRINTF(2, 3);
void weir_error_copy(weir_error *dst, const weir_error *src);
void weir_error_set_node(weir_error *err, const char *name, size_t size);
WEIR_API const char *weir_status_name(weir_status status);
WEIR_API const char *weir_error_title(const char *id);
WEIR_API const char *weir_error_explain(const char *id);
WEIR_API int weir_error_exit_code(const char *id);
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
typedef enum weir_dtype {
  WEIR_DTYPE_NONE = 0,
  WEIR_F32 = 1u << 0,
  WEIR_F64 = 1u << 1,
  WEIR_I32 = 1u << 2,
  WEIR_I64 = 1u << 3,
  WEIR_U8 = 1u << 4,
  WEIR_BOOL = 1u << 5
} weir_dtype;
#define WEIR_FLOATS ((unsigned)(WEIR_F32 | WEIR_F64))
#define WEIR_INTS ((unsigned)(WEIR_I32 | WEIR_I64 | WEIR_U8))
#define WEIR_NUMBERS (WEIR_FLOATS | WEIR_INTS)
#define WEIR_ALL_TYPES (WEIR_NUMBERS | (unsigned)WEIR_BOOL)
WEIR_API const char *weir_dtype_name(weir_dtype dtype);
WEIR_API size_t weir_dtype_size(weir_dtype dtype);
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
typedef struct weir_plan weir_plan;
enum { WEIR_RANK_LIMIT = 8 };
typedef struct weir_text {
  const char *data;
  size_t size;
} weir_text;
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
typedef struct weir_param {
  uint32_t struct_size;
  const char *name, *text;
} weir_param;
typedef struct weir_load_opts {
  uint32_t struct_size;
  uint32_t max_errors;
  const weir_param *params;
  size_t param_count;
  uint64_t seed;
  void (*on_diag)(void *self, const weir_diag *diag);
  void *on_diag_self;
  const char *(*getenv)(void *self, const char *name);
  void *getenv_self;
  uint64_t max_bytes, max_nodes;
  uint32_t max_depth;
} weir_load_opts;
WEIR_API weir_status weir_graph_load_file(weir_runtime *runtime,
                                          const char *path,
                                          const weir_load_opts *opts,
                                          weir_graph **out_graph,
                                          weir_error *err);
WEIR_API weir_status weir_graph_load_buffer(
    weir_runtime *runtime, const char *yaml, size_t size, const char *name,
    const weir_load_opts *opts, weir_graph **out_graph, weir_error *err);
WEIR_API void weir_graph_release(weir_graph *graph);
typedef enum weir_dir { WEIR_INPUT = 0, WEIR_OUTPUT = 1 } weir_dir;
typedef struct weir_io_desc {
  uint32_t struct_size;
  weir_dtype dtype;
  int32_t rank;
  bool has_default;
  const char *name;
  size_t name_size;
  int64_t dims[WEIR_RANK_LIMIT];
  char type[192];
} weir_io_desc;
WEIR_API size_t weir_graph_io_count(const weir_graph *graph, weir_dir dir);
WEIR_API weir_status weir_graph_io(const weir_graph *graph, weir_dir dir,
                                   size_t i, weir_io_desc *out_desc,
                                   weir_error *err);
WEIR_API const weir_error *weir_diag_error(const weir_diag *diag);
WEIR_API bool weir_diag_is_warning(const weir_diag *diag);
typedef enum weir_diag_form {
  WEIR_DIAG_FORM_HUMAN = 0,
  WEIR_DIAG_FORM_GCC = 1,
  WEIR_DIAG_FORM_JSON = 2
} weir_diag_form;
WEIR_API bool weir_diag_write(
    const weir_diag *diag, weir_diag_form form, bool color,
    size_t (*source)(void *self, const char *file, const char **out_text),
    void *source_self, weir_write_fn write, void *write_self);
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
WEIR_API uint32_t weir_version(void);
WEIR_API const char *weir_version_text(void);
WEIR_API bool weir_fact(size_t i, const char **out_name, char *buffer,
                        size_t buffer_size);
typedef struct weir_allocator_hook {
  uint32_t struct_size;
  void *self;
  void *(*alloc)(void *self, size_t bytes, size_t align);
  void (*free)(void *self, void *ptr);
} weir_allocator_hook;
typedef enum weir_log_level {
  WEIR_LOG_DEBUG = 0,
  WEIR_LOG_INFO = 1,
  WEIR_LOG_WARNING = 2
} weir_log_level;
typedef struct weir_runtime_opts {
  uint32_t struct_size;
  int32_t threads;
  uint64_t memory_limit;
  const weir_allocator_hook *allocator;
  void (*on_log)(void *self, weir_log_level level, const char *text);
  void *on_log_self;
} weir_runtime_opts;
WEIR_API weir_status weir_runtime_create(const weir_runtime_opts *opts,
                                         weir_runtime **out_runtime,
                                         weir_error *err);
WEIR_API void weir_runtime_release(weir_runtime *runtime);
#ifdef __cplusplus
}
#endif
#endif

#ifndef WEIR_WEIR_PLAN_H_
#define WEIR_WEIR_PLAN_H_
#ifdef __cplusplus
extern "C" {
#endif
#define WEIR_PLAN_NONE UINT32_MAX
typedef struct weir_plan_progress {
  uint32_t struct_size;
  int64_t elapsed_ns;
  uint64_t asked;
} weir_plan_progress;
typedef enum weir_plan_answer {
  WEIR_PLAN_GO_ON = 0,
  WEIR_PLAN_ENOUGH = 1,
  WEIR_PLAN_CANCEL = 2
} weir_plan_answer;
typedef struct weir_plan_text {
  uint32_t struct_size;
  const char *json;
  size_t size;
  const char *name;
} weir_plan_text;
typedef struct weir_plan_opts {
  uint32_t struct_size;
  int32_t strictness;
  const char *cluster;
  const char *objective;
  const char *placer;
  uint64_t seed;
  uint64_t moves;
  int64_t budget_ns;
  bool open;
  bool inference;
  bool portfolio_only;
  bool in_process;
  bool calibrate;
  const char *costs;
  const char *const *pins;
  size_t pin_count;
  const char *const *changes;
  size_t change_count;
  const weir_plan *before;
  uint32_t microbatches;
  const struct weir_feed *feeds;
  size_t feed_count;
  const weir_plan_text *given;
  weir_plan_answer (*on_progress)(void *self,
                                  const weir_plan_progress *progress);
  void *on_progress_self;
  void (*on_diag)(void *self, const weir_diag *diag);
  void *on_diag_self;
} weir_plan_opts;
WEIR_API weir_status weir_plan_create(weir_runtime *runtime,
                                      const weir_graph *graph,
                                      const weir_plan_opts *opts,
                                      weir_plan **out_plan, weir_error *err);
WEIR_API weir_status weir_plan_from_json(weir_runtime *runtime,
                                         const weir_graph *graph,
                                         const weir_plan_opts *opts,
                                         const weir_plan_text *text,
                                         weir_plan **out_plan, weir_error *err);
WEIR_API weir_plan *weir_plan_retain(const weir_plan *plan);
WEIR_API void weir_plan_release(const weir_plan *plan);
typedef enum weir_plan_rows {
  WEIR_PLAN_NODES = 0,
  WEIR_PLAN_DEVICES = 1,
  WEIR_PLAN_COPIES = 2,
  WEIR_PLAN_PARTS = 3,
  WEIR_PLAN_EDGES = 4,
  WEIR_PLAN_FIGURES = 5
} weir_plan_rows;
WEIR_API size_t weir_plan_count(const weir_plan *plan, weir_plan_rows rows);
typedef enum weir_plan_cost {
  WEIR_PLAN_COST_ESTIMATED = 0,
  WEIR_PLAN_COST_MEASURED = 1,
  WEIR_PLAN_COST_GIVEN = 2
} weir_plan_cost;
typedef struct weir_plan_node {
  uint32_t struct_size;
  uint32_t device;
  weir_text name;
  weir_text op;
  weir_text request;
  uint32_t rule;
  uint32_t with;
  uint32_t members;
  bool relaxed;
  weir_plan_cost cost_source;
  int64_t start_ns, end_ns;
  int64_t cost_ns;
  const char *reason;
  const char *reason_why;
} weir_plan_node;
typedef struct weir_plan_device {
  uint32_t struct_size;
  uint32_t nodes;
  weir_text name;
  weir_text kind;
  int64_t peak_bytes;
  int64_t cap_bytes;
  int64_t busy_ns;
} weir_plan_device;
typedef struct weir_plan_copy {
  uint32_t struct_size;
  uint32_t from, to;
  uint32_t node;
  int64_t bytes;
  int64_t start_ns, end_ns;
} weir_plan_copy;
typedef struct weir_plan_part {
  uint32_t struct_size;
  uint32_t device, task;
  weir_text name;
  uint32_t nodes, inputs, outputs, variables;
  uint32_t received, sent;
  int64_t received_bytes, sent_bytes;
} weir_plan_part;
typedef enum weir_plan_edge_class {
  WEIR_PLAN_EDGE_TENSOR = 0,
  WEIR_PLAN_EDGE_PULL = 1,
  WEIR_PLAN_EDGE_PUSH = 2,
  WEIR_PLAN_EDGE_CONTROL = 3,
  WEIR_PLAN_EDGE_COLLECTIVE = 4
} weir_plan_edge_class;
typedef struct weir_plan_edge {
  uint32_t struct_size;
  weir_plan_edge_class edge_class;
  const char *class_name;
  uint32_t from, to;
  bool between_tasks;
  bool at_start;
  weir_text tensor;
  char type[192];
  int64_t bytes;
  uint32_t readers;
  uint32_t copy;
  int64_t start_ns, end_ns;
  uint32_t group, rank, ranks;
} weir_plan_edge;
typedef struct weir_plan_figure {
  uint32_t struct_size;
  bool wanted;
  bool is_bytes;
  const char *name;
  const char *summary;
  int64_t value;
  int64_t bound;
} weir_plan_figure;
typedef struct weir_plan_summary {
  uint32_t struct_size;
  uint32_t dropped;
  int64_t step_ns;
  int64_t bound_ns;
  const char *bound_by;
  double gap;
  int64_t copied_bytes;
  int64_t first_ns;
  uint64_t moves;
  const char *placer;
} weir_plan_summary;
WEIR_API weir_status weir_plan_node_at(const weir_plan *plan, size_t i,
                                       weir_plan_node *out_node,
                                       weir_error *err);
WEIR_API weir_status weir_plan_device_at(const weir_plan *plan, size_t i,
                                         weir_plan_device *out_device,
                                         weir_error *err);
WEIR_API weir_status weir_plan_copy_at(const weir_plan *plan, size_t i,
                                       weir_plan_copy *out_copy,
                                       weir_error *err);
WEIR_API weir_status weir_plan_part_at(const weir_plan *plan, size_t i,
                                       weir_plan_part *out_part,
                                       weir_error *err);
WEIR_API weir_status weir_plan_edge_at(const weir_plan *plan, size_t i,
                                       weir_plan_edge *out_edge,
                                       weir_error *err);
WEIR_API weir_status weir_plan_figure_at(const weir_plan *plan, size_t i,
                                         weir_plan_figure *out_figure,
                                         weir_error *err);
WEIR_API weir_status weir_plan_summarise(const weir_plan *plan,
                                         weir_plan_summary *out_summary,
                                         weir_error *err);
typedef enum weir_plan_items {
  WEIR_PLAN_ITEM_NODES = 0,
  WEIR_PLAN_ITEM_INPUTS = 1,
  WEIR_PLAN_ITEM_OUTPUTS = 2,
  WEIR_PLAN_ITEM_VARIABLES = 3
} weir_plan_items;
typedef struct weir_plan_item {
  uint32_t struct_size;
  uint32_t node;
  weir_text name, op;
  int64_t bytes;
} weir_plan_item;
WEIR_API weir_status weir_plan_item_at(const weir_plan *plan, size_t part,
                                       weir_plan_items items, size_t i,
                                       weir_plan_item *out_item,
                                       weir_error *err);
WEIR_API weir_status weir_plan_reader_at(const weir_plan *plan, size_t edge,
                                         size_t i, weir_plan_item *out_item,
                                         weir_error *err);
WEIR_API weir_status weir_plan_find_node(const weir_plan *plan,
                                         const char *name, size_t *out_i,
                                         weir_error *err);
WEIR_API weir_status weir_plan_find_device(const weir_plan *plan,
                                           const char *name, size_t *out_i,
                                           weir_error *err);
typedef enum weir_plan_chance {
  WEIR_PLAN_CHANCE_HERE = 0,
  WEIR_PLAN_CHANCE_POSSIBLE = 1,
  WEIR_PLAN_CHANCE_NOT_ALLOWED = 2,
  WEIR_PLAN_CHANCE_NO_KERNEL = 3,
  WEIR_PLAN_CHANCE_NO_ROOM = 4
} weir_plan_chance;
typedef struct weir_plan_alternative {
  uint32_t struct_size;
  weir_plan_chance chance;
  const char *why;
  int64_t end_ns;
  int64_t step_ns;
} weir_plan_alternative;
WEIR_API weir_status weir_plan_alternative_at(
    const weir_plan *plan, size_t node, size_t device,
    weir_plan_alternative *out_alternative, weir_error *err);
typedef enum weir_plan_form {
  WEIR_PLAN_SUMMARY = 0,
  WEIR_PLAN_TABLE = 1,
  WEIR_PLAN_JSON = 2,
  WEIR_PLAN_DOT = 3,
  WEIR_PLAN_TRACE = 4,
  WEIR_PLAN_CRITICAL = 5,
  WEIR_PLAN_EXPLAIN = 6,
  WEIR_PLAN_MEMORY = 7,
  WEIR_PLAN_HTML = 8,
  WEIR_PLAN_PARTS_TEXT = 9,
  WEIR_PLAN_PARTS_JSON = 10,
  WEIR_PLAN_PARTS_DOT = 11
} weir_plan_form;
WEIR_API weir_status weir_plan_write(const weir_plan *plan, weir_plan_form form,
                                     const char *what, weir_write_fn write,
                                     void *write_self, weir_error *err);
WEIR_API weir_status weir_plan_verify(const weir_plan *plan,
                                      const weir_plan_text *text,
                                      weir_error *err);
WEIR_API weir_status weir_plan_diff(const weir_plan *plan,
                                    const weir_plan_text *before,
                                    bool *out_same, weir_write_fn write,
                                    void *write_self, weir_error *err);
WEIR_API weir_status weir_plan_compare(const weir_plan *before,
                                       const weir_plan *after, bool *out_same,
                                       weir_write_fn write, void *write_self,
                                       weir_error *err);
#ifdef __cplusplus
}
#endif
#endif

#ifndef WEIR_WEIR_SESSION_H_
#define WEIR_WEIR_SESSION_H_
#ifdef __cplusplus
extern "C" {
#endif
typedef struct weir_session_opts {
  uint32_t struct_size;
  bool no_fusion;
  bool no_fold;
  bool ref_kernels;
  bool no_layout;
  uint64_t memory_limit;
  uint64_t seed;
  const weir_plan_opts *place;
  const weir_plan *plan;
  bool plan_only;
  void (*on_plan)(void *self, const weir_plan *plan);
  void *on_plan_self;
} weir_session_opts;
WEIR_API weir_status weir_session_create(weir_runtime *runtime,
                                         const weir_graph *graph,
                                         const weir_session_opts *opts,
                                         weir_session **out_session,
                                         weir_error *err);
WEIR_API void weir_session_release(weir_session *session);
typedef struct weir_feed {
  uint32_t struct_size;
  const char *name;
  weir_tensor *tensor;
} weir_feed;
typedef struct weir_fetch {
  uint32_t struct_size;
  weir_status status;
  const char *name;
  weir_tensor *tensor;
  weir_error *error;
} weir_fetch;
#define WEIR_FEED(name, tensor) \
  { sizeof(weir_feed), (name), (tensor) }
#define WEIR_FETCH(name) \
  { sizeof(weir_fetch), WEIR_OK, (name), NULL, NULL }
typedef struct weir_run_request {
  uint32_t struct_size;
  const weir_feed *feeds;
  size_t feed_count;
  weir_fetch *fetches;
  size_t fetch_count;
  const char *const *targets;
  size_t target_count;
} weir_run_request;
#define WEIR_RUN_REQUEST(feeds, feed_count, fetches, fetch_count)              \
  {                                                                            \
    sizeof(weir_run_request), (feeds), (feed_count), (fetches), (fetch_count), \
        NULL, 0                                                                \
  }
typedef struct weir_run_opts {
  uint32_t struct_size;
  bool trap_nan;
  int64_t timeout_ns;
  uint64_t step;
  const char *const *dump;
  size_t dump_count;
  void (*on_value)(void *self, const char *node, size_t node_size,
                   uint32_t port, const weir_tensor *tensor);
  void (*on_failed)(void *self, const weir_error *error);
  void *self;
  weir_trace *trace;
} weir_run_opts;
WEIR_API weir_status weir_session_run(weir_session *session,
                                      const weir_run_request *request,
                                      const weir_run_opts *opts,
                                      weir_error *err);
WEIR_API void weir_session_cancel(weir_session *session);
WEIR_API weir_status weir_session_bind(weir_session *session,
                                       const weir_run_request *request,
                                       weir_bound **out_bound, weir_error *err);
WEIR_API weir_status weir_bound_run(weir_bound *bound,
                                    const weir_run_opts *opts, weir_error *err);
WEIR_API void weir_bound_release(weir_bound *bound);
typedef struct weir_run_stats {
  uint32_t struct_size;
  uint32_t nodes;
  uint32_t instructions;
  uint32_t groups;
  int64_t flops, bytes;
  uint64_t arena_bytes;
  uint64_t arena_bound_bytes;
  uint64_t constant_bytes;
} weir_run_stats;
WEIR_API weir_status weir_bound_stats(const weir_bound *bound,
                                      weir_run_stats *out_stats,
                                      weir_error *err);
WEIR_API weir_status weir_trace_create(weir_runtime *runtime, size_t max_events,
                                       weir_trace **out_trace, weir_error *err);
WEIR_API bool weir_trace_write(const weir_trace *trace, weir_write_fn write,
                               void *write_self);
WEIR_API void weir_trace_release(weir_trace *trace);
typedef struct weir_prediction {
  uint32_t struct_size;
  uint64_t first;
  int64_t rows;
  const weir_tensor *const *outputs;
  const weir_tensor *labels;
} weir_prediction;
typedef struct weir_predict_opts {
  uint32_t struct_size;
  const char *data;
  const char *data_root;
  uint64_t seed;
  uint64_t take;
  bool (*batch)(void *self, const weir_prediction *p);
  void *self;
  const char *(*getenv)(void *self, const char *name);
  void *getenv_self;
} weir_predict_opts;
WEIR_API weir_status weir_session_predict(weir_session *session,
                                          const weir_predict_opts *opts,
                                          weir_error *err);
typedef struct weir_variable_desc {
  uint32_t struct_size;
  weir_dtype dtype;
  int32_t rank;
  bool trained;
  int64_t dims[WEIR_RANK_LIMIT];
  int64_t bytes;
  weir_text name;
  weir_text home;
  char type[192];
} weir_variable_desc;
WEIR_API size_t weir_session_variable_count(const weir_session *session);
WEIR_API weir_status weir_session_variable_at(weir_session *session, size_t i,
                                              weir_variable_desc *out_variable,
                                              weir_error *err);
WEIR_API weir_status weir_session_variable_get(weir_session *session,
                                               const char *name,
                                               weir_tensor **out_tensor,
                                               weir_error *err);
WEIR_API weir_status weir_session_variable_set(weir_session *session,
                                               const char *name,
                                               const weir_tensor *tensor,
                                               weir_error *err);
WEIR_API weir_status weir_session_restore(weir_session *session,
                                          const char *dir, int64_t step,
                                          int64_t *out_step, weir_error *err);
WEIR_API weir_status weir_session_load_weights(
    weir_session *session, const char *path, const char *const *map,
    size_t map_count, size_t *out_count, weir_error *err);
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
WEIR_API weir_status weir_tensor_create(weir_runtime *runtime, weir_dtype dtype,
                                        int32_t rank, const int64_t *dims,
                                        weir_tensor **out_tensor,
                                        weir_error *err);
typedef struct weir_tensor_spec {
  uint32_t struct_size;
  weir_dtype dtype;
  int32_t rank;
  const int64_t *dims;
  size_t bytes;
} weir_tensor_spec;
#define WEIR_TENSOR_SPEC(dtype, rank, dims, bytes) \
  { sizeof(weir_tensor_spec), (dtype), (rank), (dims), (bytes) }
WEIR_API weir_status weir_tensor_from_data(weir_runtime *runtime,
                                           const weir_tensor_spec *spec,
                                           const void *data,
                                           weir_tensor **out_tensor,
                                           weir_error *err);
WEIR_API weir_status
weir_tensor_from_memory(weir_runtime *runtime, const weir_tensor_spec *spec,
                        void *data, void (*release)(void *self, void *data),
                        void *self, weir_tensor **out_tensor, weir_error *err);
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
WEIR_API weir_status weir_tensor_desc(const weir_tensor *tensor,
                                      weir_tensor_info *out_info);
WEIR_API const void *weir_tensor_data(const weir_tensor *tensor);
WEIR_API void *weir_tensor_mutable_data(weir_tensor *tensor);
WEIR_API weir_status weir_tensor_read_file(weir_runtime *runtime,
                                           const char *root, const char *path,
                                           const char *member,
                                           weir_tensor **out_tensor,
                                           weir_error *err);
WEIR_API weir_status weir_tensor_read_buffer(
    weir_runtime *runtime, const void *data, size_t size, const char *name,
    const char *member, weir_tensor **out_tensor, weir_error *err);
typedef struct weir_tensor_list {
  uint32_t struct_size;
  size_t count;
  const char *const *names;
  const weir_tensor *const *tensors;
} weir_tensor_list;
#define WEIR_TENSOR_LIST(count, names, tensors) \
  { sizeof(weir_tensor_list), (count), (names), (tensors) }
WEIR_API weir_status weir_tensor_write_file(weir_runtime *runtime,
                                            const char *path,
                                            const weir_tensor_list *list,
                                            weir_error *err);
typedef enum weir_file_format {
  WEIR_FILE_NPY = 1,
  WEIR_FILE_NPZ = 2,
  WEIR_FILE_SAFETENSORS = 3
} weir_file_format;
WEIR_API weir_status weir_tensor_write_stream(weir_runtime *runtime,
                                              weir_file_format format,
                                              const weir_tensor_list *list,
                                              weir_write_fn write,
                                              void *write_self,
                                              weir_error *err);
struct DLManagedTensorVersioned;
WEIR_API weir_status weir_tensor_from_dlpack(
    weir_runtime *runtime, struct DLManagedTensorVersioned *managed,
    weir_tensor **out_tensor, weir_error *err);
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
#ifdef __cplusplus
extern "C" {
#endif
typedef enum weir_train_end {
  WEIR_TRAIN_END_GOING = 0,
  WEIR_TRAIN_END_STEPS = 1,
  WEIR_TRAIN_END_EPOCHS = 2,
  WEIR_TRAIN_END_TARGET = 3,
  WEIR_TRAIN_END_TIME = 4,
  WEIR_TRAIN_END_EARLY = 5,
  WEIR_TRAIN_END_STOPPED = 6,
  WEIR_TRAIN_END_FAILED = 7
} weir_train_end;
WEIR_API const char *weir_train_end_name(weir_train_end end);
typedef struct weir_train_value {
  const char *name;
  double value;
} weir_train_value;
typedef struct weir_train_progress {
  uint32_t struct_size;
  bool log;
  uint64_t step, last_step;
  uint64_t epochs;
  double epoch;
  double loss, learning_rate;
  const weir_train_value *values;
  size_t value_count;
  uint64_t examples;
  int64_t run_ns, wait_ns;
  int64_t save_ns, eval_ns;
} weir_train_progress;
typedef struct weir_train_report {
  uint32_t struct_size;
  const char *data;
  uint64_t step, examples, batches;
  int64_t ns;
  const weir_train_value *values;
  size_t value_count;
} weir_train_report;
typedef struct weir_train_callbacks {
  uint32_t struct_size;
  void *self;
  void (*step)(void *self, const weir_train_progress *progress);
  void (*epoch)(void *self, const weir_train_progress *progress);
  void (*eval)(void *self, const weir_train_report *report);
  void (*saved)(void *self, uint64_t step, int64_t ns);
  void (*resumed)(void *self, uint64_t step);
  void (*warning)(void *self, const weir_error *warning);
} weir_train_callbacks;
typedef enum weir_train_resume {
  WEIR_TRAIN_RESUME_AUTO = 0,
  WEIR_TRAIN_RESUME_NONE = 1
} weir_train_resume;
#ifdef __cplusplus
}
#endif
const char *weir_train_end_name(weir_train_end end);
#endif

#ifndef WEIR_WEIR_TRAIN_H_
#define WEIR_WEIR_TRAIN_H_
#ifdef __cplusplus
extern "C" {
#endif
typedef struct weir_train_opts {
  uint32_t struct_size;
  weir_train_resume resume;
  uint64_t seed;
  uint64_t steps, epochs;
  const char *data_root;
  const char *checkpoint;
  const char *events;
  const char *init;
  const char *const *map;
  size_t map_count;
  int64_t time_ns;
  bool eval_only;
  const weir_session_opts *session;
  const weir_train_callbacks *callbacks;
  const char *(*getenv)(void *self, const char *name);
  void *getenv_self;
  void (*on_diag)(void *self, const weir_diag *diag);
  void *on_diag_self;
} weir_train_opts;
WEIR_API weir_status weir_trainer_create(weir_runtime *runtime,
                                         const weir_graph *graph,
                                         const weir_train_opts *opts,
                                         weir_trainer **out_trainer,
                                         weir_error *err);
WEIR_API void weir_trainer_release(weir_trainer *trainer);
WEIR_API weir_status weir_trainer_step(weir_trainer *trainer,
                                       weir_train_end *out_end,
                                       weir_error *err);
WEIR_API weir_status weir_trainer_finish(weir_trainer *trainer,
                                         weir_error *err);
WEIR_API weir_status weir_trainer_run(weir_trainer *trainer,
                                      weir_train_end *out_end, weir_error *err);
WEIR_API void weir_trainer_stop(weir_trainer *trainer);
WEIR_API weir_status weir_trainer_eval(weir_trainer *trainer, const char *data,
                                       weir_train_report *out_report,
                                       weir_error *err);
WEIR_API weir_status weir_trainer_save(weir_trainer *trainer, bool wait,
                                       weir_error *err);
WEIR_API weir_status weir_trainer_progress(const weir_trainer *trainer,
                                           weir_train_progress *out_progress,
                                           weir_error *err);
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
#endif
