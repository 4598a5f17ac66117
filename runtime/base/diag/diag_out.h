/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_DIAG_OUT_H_
#define WEIR_BASE_DIAG_OUT_H_

#include "runtime/base/diag/diag.h"

/* Inside the diagnostics printer only: buffered output that escapes bytes which
 * a terminal could take for commands. After a write that failed nothing more is
 * written. Allocates nothing. */

enum { WEIR_DIAG_BUFFER = 512 };

typedef enum weir_diag_style {
  WEIR_STYLE_NONE,
  WEIR_STYLE_BOLD,
  WEIR_STYLE_ERROR,
  WEIR_STYLE_WARNING,
  WEIR_STYLE_FRAME, /* line numbers, bars, secondary underlines */
  WEIR_STYLE_HELP,
  WEIR_STYLE_COUNT
} weir_diag_style;

typedef struct weir_diag_out {
  const weir_diag_printer *printer;
  bool failed;
  size_t used;
  char buffer[WEIR_DIAG_BUFFER];
} weir_diag_out;

/* Buffered text. After a write that failed, nothing more is written. */
void weir_out_bytes(weir_diag_out *out, const char *data, size_t size);
void weir_out_text(weir_diag_out *out, const char *text);
void weir_out_repeat(weir_diag_out *out, char c, size_t count);

/* |text| with control bytes as \xNN and other unsafe or invalid parts as
 * U+FFFD; each line break becomes |line_break|. */
void weir_out_safe(weir_diag_out *out, weir_sv text, const char *line_break);

/* Switches the colour; nothing without colour. */
void weir_out_style(weir_diag_out *out, weir_diag_style style);

/* file:line:col, without the parts that are unknown. */
void weir_out_place(weir_diag_out *out, const char *file, uint32_t line,
                    uint32_t col);

/* Hands the buffered bytes to the writer. */
void weir_out_flush(weir_diag_out *out);

#endif
