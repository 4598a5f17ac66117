/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_JSON_TRACE_H_
#define WEIR_BASE_JSON_TRACE_H_

#include "runtime/base/json/json_write.h"

/* Events of Chrome's trace format, which chrome://tracing and Perfetto show: a
 * JSON object whose "traceEvents" is a list of these. Times are microseconds
 * there, nanoseconds here. Source: Trace Event Format, Google, 2016. */

typedef struct weir_json_span {
  weir_sv name;
  const char *category;
  uint64_t process; /* lanes of one process are shown together */
  int64_t lane;
  int64_t start_ns, end_ns;
} weir_json_span;

/* Opens the object of a span that has its end: a caller may add "args", then
 * calls weir_json_object_end. */
void weir_json_span_begin(weir_json_writer *w, const weir_json_span *span);

/* The name of lane |lane| of process 0. */
void weir_json_lane(weir_json_writer *w, int64_t lane, weir_sv name);

#endif
