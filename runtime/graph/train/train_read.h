/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_TRAIN_READ_H_
#define WEIR_GRAPH_TRAIN_READ_H_

#include "runtime/graph/parse/ast.h"
#include "runtime/graph/train/train.h"
#include "runtime/graph/train/train_keys.h"

/* Reading the `train` section: the common part. Findings are counted and
 * reading goes on, as in the loader. Functions return false after a finding. */

typedef struct weir_train_reader {
  const weir_graph *graph;
  weir_train_spec *spec;
  weir_arena *arena; /* the spec's */
  weir_parser *parser;
  const weir_diag_sink *sink; /* may be NULL */
  weir_error *err;            /* the first finding; may be NULL */
  bool names;                 /* the graph is complete: look names up */
  bool fatal;                 /* no memory */
  uint32_t errors;
  weir_status status; /* of the first finding */
  weir_diag diag;     /* scratch */
} weir_train_reader;

/* ---- Findings */
bool weir_train_report(weir_train_reader *r, weir_error_id id,
                       const weir_mark *at, const char *fmt, ...)
    WEIR_PRINTF(4, 5);
void weir_train_report_begin(weir_train_reader *r, weir_error_id id,
                             const weir_mark *at, const char *fmt, ...)
    WEIR_PRINTF(4, 5);
bool weir_train_report_send(weir_train_reader *r);
bool weir_train_memory(weir_train_reader *r);
/* Adds "did you mean" to r->diag. */
void weir_train_nearest(weir_train_reader *r, weir_sv name, size_t count,
                        weir_sv (*name_at)(const void *self, size_t i),
                        const void *self);
/* Reports |id| with the nearest name of nodes and values. */
bool weir_train_no_node(weir_train_reader *r, weir_error_id id,
                        const weir_mark *at, weir_sv name, const char *what);

/* ---- Maps with known keys, by table */

/* Reads |y|, called |where| in messages, into |target|. Unknown keys are W1009;
 * `x-` keys pass. */
bool weir_train_read_map(weir_train_reader *r, const weir_yaml *y,
                         const char *where, const weir_train_key *keys,
                         void *target);

/* ---- Scalars; names of params stand for their values. */
bool weir_train_want(weir_train_reader *r, const weir_yaml *y,
                     weir_yaml_kind kind, const char *what);
/* The scalar's text; a param's where it names one and is plain. */
weir_sv weir_train_scalar(const weir_train_reader *r, const weir_yaml *y);
bool weir_train_number(weir_train_reader *r, const weir_yaml *y,
                       const char *what, double *out);
bool weir_train_bool(weir_train_reader *r, const weir_yaml *y, const char *what,
                     bool *out);
bool weir_train_every(weir_train_reader *r, const weir_yaml *y,
                      const char *what, weir_every *out);
/* A scalar or a list of scalars, as texts. */
bool weir_train_texts(weir_train_reader *r, const weir_yaml *y,
                      const char *what, const weir_sv **out, uint32_t *count);
/* The param called |name|, or NULL. */
const weir_graph_param *weir_train_param(const weir_train_reader *r,
                                         weir_sv name);

/* ---- Calls: adam(lr=lr, l2=1e-4), or {name: adam, lr: ...} */

typedef enum weir_arg_kind {
  WEIR_ARG_NUMBER,
  WEIR_ARG_BOOL,
  WEIR_ARG_TEXT,
  WEIR_ARG_CALL
} weir_arg_kind;

typedef struct weir_train_arg {
  weir_sv name; /* empty: positional */
  weir_mark name_mark, mark;
  weir_arg_kind kind;
  union {
    double number;
    bool b;
    weir_sv text;
    struct weir_train_call *call;
  };
} weir_train_arg;

typedef struct weir_train_call {
  weir_sv name;
  weir_mark mark;
  weir_train_arg *args;
  uint32_t count;
} weir_train_call;

/* ---- The graph half of the section: train_rules.c */
extern const weir_train_key weir_train_clip_keys[];
extern const weir_train_key weir_train_ema_keys[];

#endif
