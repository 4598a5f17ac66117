/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>

#include "runtime/graph/loader.h"

bool weir_loader_going(const weir_loader *l) {
  return !l->fatal && l->errors < l->max_errors;
}

bool weir_report_send(weir_loader *l) {
  if (l->errors >= l->max_errors) return false;
  const weir_error *err = &l->diag.error;
  if (l->errors == 0) {
    l->status = err->code;
    if (l->err != NULL) *l->err = *err;
  }
  l->errors++;
  if (err->code == WEIR_RESOURCE_EXHAUSTED && err->id[1] == '6')
    l->fatal = true; /* W6: no memory */
  if (l->options->sink != NULL)
    l->options->sink->report(l->options->sink->self, &l->diag);
  return false;
}

static void begin(weir_loader *l, weir_error_id id, const weir_mark *at,
                  const char *fmt, va_list args) {
  char text[sizeof l->diag.error.message];
  vsnprintf(text, sizeof text, fmt, args);
  weir_error err = WEIR_ERROR_INIT;
  weir_fail(&err, id, at, "%s", text);
  weir_diag_init(&l->diag, &err);
}

void weir_report_begin(weir_loader *l, weir_error_id id, const weir_mark *at,
                       const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  begin(l, id, at, fmt, args);
  va_end(args);
}

bool weir_report(weir_loader *l, weir_error_id id, const weir_mark *at,
                 const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  begin(l, id, at, fmt, args);
  va_end(args);
  return weir_report_send(l);
}

bool weir_report_error(weir_loader *l, const weir_error *err) {
  weir_diag_init(&l->diag, err);
  return weir_report_send(l);
}

bool weir_report_memory(weir_loader *l) {
  weir_error err = WEIR_ERROR_INIT;
  weir_fail_memory(&err, 0);
  weir_fail(&err, WEIR_W6001, NULL, "out of memory while loading the graph");
  l->fatal = true;
  return weir_report_error(l, &err);
}

void weir_report_warning(weir_loader *l, const weir_mark *at, const char *fmt,
                         ...) {
  if (l->options->sink == NULL) return;
  va_list args;
  va_start(args, fmt);
  begin(l, WEIR_W1009, at, fmt, args);
  va_end(args);
  l->diag.severity = WEIR_SEVERITY_WARNING;
  l->options->sink->report(l->options->sink->self, &l->diag);
}

void weir_report_nearest(weir_loader *l, weir_sv name, size_t count,
                         weir_sv (*name_at)(const void *self, size_t i),
                         const void *self) {
  weir_sv near = weir_nearest_name(name, count, name_at, self);
  if (near.size > 0)
    weir_hint(&l->diag.error, "did you mean %.*s?", WEIR_SV(near));
}
