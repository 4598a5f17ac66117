/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_WEIR_GRAPH_H_
#define WEIR_WEIR_GRAPH_H_

#include "runtime/weir/types.h"

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
  const char *labels; /* a file, instead of the graph's `labels`; or NULL */
  bool keep_files;    /* the graph keeps all that was read: for runs on tasks of
                       * a cluster, which get it */
  /* Values by their path in the file, "train.steps", in place of those that
   * stand there; a dot within a key is written "\\.". They come before
   * |params|. */
  const weir_param *overrides;
  size_t override_count;
} weir_load_opts;

/* Reads, expands and checks a graph. |err| holds the first error; |opts| may
 * be NULL. Errors: W1001 to W2020, W4001, W4002, W4039, W6001. */
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

/* The names of classes that `labels` gives: how many; that of class |i|, lent
 * by the graph, or NULL beyond. */
WEIR_API size_t weir_graph_label_count(const weir_graph *graph);
WEIR_API const char *weir_graph_label_at(const weir_graph *graph, size_t i);

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
