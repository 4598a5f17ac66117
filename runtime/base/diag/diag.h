/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_DIAG_H_
#define WEIR_BASE_DIAG_H_

#include <stdarg.h>

#include "runtime/base/status.h"
#include "runtime/base/sv.h"
#include "runtime/base/writer.h"

/* Diagnostics: an error with the places that explain it, and its printer.
 *
 * A function that can find several errors takes a sink and reports each; its
 * weir_error holds the first. The printer draws
 *
 *   error[W2012]: matmul: inner dimensions differ, 784 and 512
 *     --> mlp.weir.yaml:9:12
 *      |
 *    5 |   x: f32[batch, 784]
 *      |      --------------- x is f32[64, 784]
 *   ...
 *    9 |   h:  relu(matmul(x, w1))
 *      |            ^^^^^^^^^^^^^ needs dim 1 of x == dim 0 of w1
 *      = note: w1 is f32[512, 128], declared at mlp.weir.yaml:8:7
 *      = help: did you mean ...? */

enum { WEIR_DIAG_LABELS = 4, WEIR_DIAG_NOTES = 6 };

typedef enum weir_severity {
  WEIR_SEVERITY_ERROR,
  WEIR_SEVERITY_WARNING
} weir_severity;

/* A second place, underlined with ----. */
typedef struct weir_diag_label {
  weir_mark at;
  char text[160];
} weir_diag_label;

typedef struct weir_diag {
  weir_error error; /* its hint is printed as `help` */
  weir_severity severity;
  char label[160]; /* beside the caret; "" when none */
  uint32_t label_count, note_count;
  weir_diag_label labels[WEIR_DIAG_LABELS];
  char notes[WEIR_DIAG_NOTES][256];
} weir_diag;

/* Called once per finding, in source order where possible, on the calling
 * thread. |diag| and its texts are borrowed for the call. */
typedef struct weir_diag_sink {
  void *self;
  void (*report)(void *self, const weir_diag *diag);
} weir_diag_sink;

/* Starts a diagnostic from a filled error; then add labels and notes. Past the
 * limits they are dropped. */
void weir_diag_init(weir_diag *diag, const weir_error *err);
/* Reports |err| as a warning; to no one if |sink| or its |report| is NULL. */
void weir_diag_warn(const weir_diag_sink *sink, const weir_error *err);
/* Starts a diagnostic with an error of that text; |at| may be NULL. */
void weir_diag_begin(weir_diag *diag, weir_error_id id, const weir_mark *at,
                     const char *fmt, va_list args) WEIR_PRINTF(4, 0);
void weir_diag_set_label(weir_diag *diag, const char *fmt, ...)
    WEIR_PRINTF(2, 3);
void weir_diag_add_label(weir_diag *diag, const weir_mark *at, const char *fmt,
                         ...) WEIR_PRINTF(3, 4);
void weir_diag_add_note(weir_diag *diag, const char *fmt, ...)
    WEIR_PRINTF(2, 3);

typedef enum weir_diag_format {
  WEIR_DIAG_HUMAN, /* as drawn above */
  WEIR_DIAG_GCC,   /* file:line:col: error: message [W2012] */
  WEIR_DIAG_JSON   /* one object per line */
} weir_diag_format;

typedef struct weir_diag_printer {
  weir_diag_format format;
  bool color;
  weir_writer out;
  /* The text of a source file, for the drawing; may be NULL, and may return
   * an empty text when the file is unknown. */
  weir_sv (*source)(void *self, const char *file);
  void *source_self;
} weir_diag_printer;

#endif
