/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/json/json_trace.h"

void weir_json_span_begin(weir_json_writer *w, const weir_json_span *span) {
  double us = (double)span->start_ns / 1e3;
  weir_json_object_begin(w, true);
  weir_json_key_text(w, "name", span->name);
  weir_json_key_text(w, "cat", weir_sv_from(span->category));
  weir_json_key_text(w, "ph", WEIR_SV_LIT("X")); /* start and end in one */
  weir_json_key_uint(w, "pid", span->process);
  weir_json_key_int(w, "tid", span->lane);
  weir_json_key_double(w, "ts", us);
  weir_json_key_double(w, "dur", (double)(span->end_ns - span->start_ns) / 1e3);
}

void weir_json_lane(weir_json_writer *w, int64_t lane, weir_sv name) {
  weir_json_object_begin(w, true);
  weir_json_key_text(w, "name", WEIR_SV_LIT("thread_name"));
  weir_json_key_text(w, "ph", WEIR_SV_LIT("M")); /* says something of others */
  weir_json_key_int(w, "pid", 0);
  weir_json_key_int(w, "tid", lane);
  weir_json_key(w, "args");
  weir_json_object_begin(w, true);
  weir_json_key_text(w, "name", name);
  weir_json_object_end(w);
  weir_json_object_end(w);
}
