/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>

#include "runtime/api/weir_internal.h"
#include "runtime/base/diag/diag.h"

/* The host's log. */

void weir_log(const weir_runtime *runtime, weir_log_level level,
              const char *fmt, ...) {
  char text[1024];
  if (runtime->on_log == NULL) return;
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  runtime->on_log(runtime->on_log_self, level, text);
}

void weir_log_diag(const weir_runtime *runtime, const weir_diag *diag) {
  const weir_error *e = &diag->error;
  if (e->file[0] != '\0')
    weir_log(runtime, WEIR_LOG_WARNING, "%s:%u:%u: %s [%s]", e->file, e->line,
             e->col, e->message, e->id);
  else
    weir_log(runtime, WEIR_LOG_WARNING, "%s [%s]", e->message, e->id);
}
