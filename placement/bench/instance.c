/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/bench/instance.h"

#include "placement/bench/instance_dagbench.h"
#include "placement/bench/instance_dnn.h"
#include "placement/bench/instance_json.h"
#include "placement/bench/instance_stg.h"

/* A JSON file's format is told by the names of its outermost members. */
static weir_status read_json(const weir_allocator *alloc, weir_sv text,
                             const char *name, weir_place_problem **out_problem,
                             weir_error *err) {
  weir_instance_source s;
  weir_json_token token;
  bool dagbench = false, dnn = false;
  weir_instance_begin(&s, alloc, text, name, err);
  weir_status status = weir_json_expect(&s.json, WEIR_JSON_OBJECT_BEGIN, err);
  while (status == WEIR_OK) {
    status = weir_json_next(&s.json, &token, err);
    if (status != WEIR_OK || token == WEIR_JSON_OBJECT_END) break;
    dagbench |= weir_json_text_is(&s.json, "task_graph");
    dnn |= weir_json_text_is(&s.json, "nodes");
    status = weir_json_skip(&s.json, err);
  }
  if (status == WEIR_OK && !dagbench && !dnn)
    status = weir_instance_fail_at(&s, 0,
                                   "neither \"task_graph\" (dag-bench) nor "
                                   "\"nodes\" (dnn-partitioning) is in it");
  weir_instance_end(&s);
  if (status != WEIR_OK) return status;
  return dagbench
             ? weir_instance_read_dagbench(alloc, text, name, out_problem, err)
             : weir_instance_read_dnn(alloc, text, name, out_problem, err);
}

weir_status weir_instance_read(const weir_allocator *alloc, weir_sv text,
                               const char *name,
                               const weir_instance_options *options,
                               weir_place_problem **out_problem,
                               weir_error *err) {
  *out_problem = NULL;
  for (size_t i = 0; i < text.size; i++) {
    char c = text.data[i];
    if (c == '{' || c == '[' || c == '"')
      return read_json(alloc, text, name, out_problem, err);
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') break;
  }
  return weir_instance_read_stg(alloc, text, name, options, out_problem, err);
}
