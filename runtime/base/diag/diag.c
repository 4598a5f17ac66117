/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/diag/diag.h"

#include <stdarg.h>
#include <stdio.h>

void weir_diag_init(weir_diag *diag, const weir_error *err) {
  diag->error = (weir_error)WEIR_ERROR_INIT;
  weir_error_copy(&diag->error, err);
  diag->severity = WEIR_SEVERITY_ERROR;
  diag->label[0] = '\0';
  diag->label_count = diag->note_count = 0;
}

void weir_diag_warn(const weir_diag_sink *sink, const weir_error *err) {
  weir_diag diag;
  if (sink == NULL || sink->report == NULL) return;
  weir_diag_init(&diag, err);
  diag.severity = WEIR_SEVERITY_WARNING;
  sink->report(sink->self, &diag);
}

void weir_diag_begin(weir_diag *diag, weir_error_id id, const weir_mark *at,
                     const char *fmt, va_list args) {
  char text[sizeof diag->error.message];
  vsnprintf(text, sizeof text, fmt, args);
  weir_error err = WEIR_ERROR_INIT;
  weir_fail(&err, id, at, "%s", text);
  weir_diag_init(diag, &err);
}

/* Formats into dst[size]; a code point that was cut in half is dropped. */
WEIR_PRINTF(3, 0)
static void format_text(char *dst, size_t size, const char *fmt, va_list args) {
  int n = vsnprintf(dst, size, fmt, args);
  if (n < 0) dst[0] = '\0';
  if (n < 0 || (size_t)n < size) return;
  size_t end = size - 1, back = 0;
  while (back < 3 && ((unsigned char)dst[end - 1 - back] & 0xc0) == 0x80)
    back++;
  unsigned char lead = (unsigned char)dst[end - 1 - back];
  size_t want = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  if (want > back + 1) dst[end - 1 - back] = '\0';
}

void weir_diag_set_label(weir_diag *diag, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  format_text(diag->label, sizeof diag->label, fmt, args);
  va_end(args);
}

void weir_diag_add_label(weir_diag *diag, const weir_mark *at, const char *fmt,
                         ...) {
  if (diag->label_count == WEIR_DIAG_LABELS) return;
  weir_diag_label *label = &diag->labels[diag->label_count++];
  label->at = *at;
  va_list args;
  va_start(args, fmt);
  format_text(label->text, sizeof label->text, fmt, args);
  va_end(args);
}

void weir_diag_add_note(weir_diag *diag, const char *fmt, ...) {
  if (diag->note_count == WEIR_DIAG_NOTES) return;
  char *note = diag->notes[diag->note_count++];
  va_list args;
  va_start(args, fmt);
  format_text(note, sizeof diag->notes[0], fmt, args);
  va_end(args);
}
