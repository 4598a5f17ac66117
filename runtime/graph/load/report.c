/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/load/report.h"

#include <inttypes.h>

#include <stdarg.h>

#include "runtime/base/diag/nearest.h"
#include "runtime/graph/load/loader.h"

bool weir_loader_going(const weir_loader *l) {
  return !l->fatal && l->errors < l->max_errors;
}

/* Labels in built-in libraries become notes. */
static void drop_library_labels(weir_diag *diag) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < diag->label_count; i++) {
    weir_diag_label label = diag->labels[i];
    if (label.at.file != NULL && strncmp(label.at.file, "std/", 4) == 0)
      weir_diag_add_note(diag, "%s", label.text);
    else
      diag->labels[kept++] = label;
  }
  diag->label_count = kept;
}

/* An error inside a built-in library is shown at the call that led there: the
 * library's text is not the user's. */
static void blame_caller(weir_loader *l) {
  const weir_scope *scope = l->scope_now;
  weir_error *err = &l->diag.error;
  const weir_mark *call = NULL;
  for (; scope != NULL && scope->caller != NULL &&
         weir_sv_starts_with(scope->module->path, "std/");
       scope = scope->caller)
    call = &scope->call_mark;
  if (call == NULL || strncmp(err->file, "std/", 4) != 0) return;
  drop_library_labels(&l->diag);
  weir_diag_add_note(&l->diag, "at %s:%u:%u", err->file, err->line, err->col);
  weir_error moved = *err;
  weir_fail(&moved, WEIR_W9001, call, "%s", err->message);
  memcpy(err->file, moved.file, sizeof err->file);
  err->line = moved.line;
  err->col = moved.col;
  err->end_line = moved.end_line;
  err->end_col = moved.end_col;
}

/* Memory that was refused for a reason: the limit or the deadline. */
static void settle(weir_loader *l) {
  weir_error *err = &l->diag.error;
  if (strcmp(err->id, "W6001") != 0 || l->alloc->refusal == NULL ||
      l->alloc->refusal(l->alloc->self) == WEIR_REFUSAL_NONE)
    return;
  (void)weir_fail_refused(l->alloc, "loading the graph", err);
}

bool weir_report_send(weir_loader *l) {
  if (l->errors >= l->max_errors) return false;
  settle(l);
  blame_caller(l);
  const weir_error *err = &l->diag.error;
  if (l->errors == 0) {
    l->status = err->code;
    weir_error_copy(l->err, err);
  }
  l->errors++;
  if ((err->code == WEIR_RESOURCE_EXHAUSTED && err->id[1] == '6') ||
      err->code == WEIR_DEADLINE_EXCEEDED)
    l->fatal = true; /* W6: no memory; or no time */
  if (l->options->sink != NULL)
    l->options->sink->report(l->options->sink->self, &l->diag);
  return false;
}

void weir_report_begin(weir_loader *l, weir_error_id id, const weir_mark *at,
                       const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  weir_diag_begin(&l->diag, id, at, fmt, args);
  va_end(args);
}

bool weir_report(weir_loader *l, weir_error_id id, const weir_mark *at,
                 const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  weir_diag_begin(&l->diag, id, at, fmt, args);
  va_end(args);
  return weir_report_send(l);
}

bool weir_report_error(weir_loader *l, const weir_error *err) {
  weir_diag_init(&l->diag, err);
  return weir_report_send(l);
}

bool weir_report_memory(weir_loader *l) {
  weir_error err = WEIR_ERROR_INIT;
  (void)weir_fail_refused(l->alloc, "loading the graph", &err);
  l->fatal = true;
  return weir_report_error(l, &err);
}

void weir_report_nearest(weir_loader *l, weir_sv name, size_t count,
                         weir_sv (*name_at)(const void *self, size_t i),
                         const void *self) {
  if (!weir_loader_going(l)) return; /* nobody will read it */
  weir_sv near = weir_nearest_name(name, count, name_at, self);
  if (near.size > 0)
    weir_hint(&l->diag.error, "did you mean %.*s?", WEIR_SV(near));
}

bool weir_report_too_many(weir_loader *l, const weir_mark *at, uint64_t most,
                          const char *what) {
  weir_report_begin(l, WEIR_W1014, at, "the graph has more than %" PRIu64 " %s",
                    most, what);
  weir_hint(&l->diag.error,
            "if that is meant, allow more: --limit nodes=%" PRIu64,
            2 * l->max_nodes);
  l->fatal = true;
  return weir_report_send(l);
}
