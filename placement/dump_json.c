/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/dump_internal.h"
#include "runtime/base/json.h"

static void key_int(weir_json_writer *w, const char *key, int64_t value) {
  weir_json_key(w, key);
  weir_json_int(w, value);
}

static void key_text(weir_json_writer *w, const char *key, weir_sv text) {
  weir_json_key(w, key);
  weir_json_string(w, text);
}

static void write_devices(weir_json_writer *w, const weir_place_view *v) {
  weir_json_key(w, "devices");
  weir_json_array_begin(w, false);
  for (uint32_t d = 0; d < v->problem->device_count; d++) {
    weir_json_object_begin(w, true);
    key_text(w, "name", v->problem->devices[d].name);
    key_int(w, "peak_bytes", v->peaks[d]);
    if (v->problem->devices[d].memory_bytes != INT64_MAX)
      key_int(w, "memory_bytes", v->problem->devices[d].memory_bytes);
    weir_json_object_end(w);
  }
  weir_json_array_end(w);
}

static const char *const sources[] = {"est", "measured", "given"};

static void write_nodes(weir_json_writer *w, const weir_place_view *v) {
  char name[300];
  weir_json_key(w, "nodes");
  weir_json_array_begin(w, false);
  for (uint32_t n = 0; n < v->plan->node_count; n++) {
    weir_json_object_begin(w, true);
    key_int(w, "id", n);
    key_text(w, "name",
             weir_sv_from(weir_place_node_text(v->problem, n, name)));
    key_text(w, "op", weir_sv_from(weir_place_op_text(v, n)));
    key_text(w, "device", v->problem->devices[v->plan->device[n]].name);
    key_int(w, "start_ns", v->plan->start_ns[n]);
    key_int(w, "end_ns", v->plan->end_ns[n]);
    key_text(w, "cost_source",
             weir_sv_from(v->placement == NULL
                              ? "given"
                              : sources[v->placement->units[n].source]));
    key_text(w, "reason",
             weir_sv_from(weir_place_reason_text(
                 (weir_place_reason)v->plan->reason[n])));
    weir_json_object_end(w);
  }
  weir_json_array_end(w);
}

static void write_edges(weir_json_writer *w, const weir_place_view *v) {
  weir_json_key(w, "edges");
  weir_json_array_begin(w, false);
  for (uint32_t i = 0; i < v->plan->copy_count; i++) {
    const weir_place_copy *c = &v->plan->copies[i];
    weir_json_object_begin(w, true);
    key_int(w, "tensor", c->tensor);
    key_int(w, "node", v->problem->tensor_node[c->tensor]);
    key_text(w, "from", v->problem->devices[c->from].name);
    key_text(w, "to", v->problem->devices[c->to].name);
    key_int(w, "bytes", v->problem->tensor_bytes[c->tensor]);
    key_int(w, "start_ns", c->start_ns);
    key_int(w, "end_ns", c->end_ns);
    weir_json_object_end(w);
  }
  weir_json_array_end(w);
}

bool weir_place_write_json(const weir_place_view *v, const weir_writer *out) {
  weir_json_writer w;
  char hash[24];
  weir_json_writer_init(&w, *out, 1);
  weir_json_object_begin(&w, false);
  key_int(&w, "schema", 1);
  snprintf(hash, sizeof hash, "%016" PRIx64, weir_place_plan_hash(v));
  key_text(&w, "plan", weir_sv_from(hash));
  key_text(&w, "placer", weir_sv_from(v->plan->placer));
  key_int(&w, "makespan_ns", v->plan->makespan_ns);
  key_int(&w, "lower_bound_ns", v->bounds->best_ns);
  key_text(&w, "lower_bound", weir_sv_from(v->bounds->best));
  weir_json_key(&w, "gap");
  weir_json_double(&w,
                   v->bounds->best_ns == 0
                       ? 0
                       : (double)(v->plan->makespan_ns - v->bounds->best_ns) /
                             (double)v->bounds->best_ns);
  write_devices(&w, v);
  write_nodes(&w, v);
  write_edges(&w, v);
  weir_json_object_end(&w);
  return weir_json_finish(&w);
}

/* ---- Chrome trace: complete events, times in microseconds */

static void write_event(weir_json_writer *w, const char *name, uint32_t lane,
                        int64_t start_ns, int64_t end_ns, const char *kind) {
  weir_json_object_begin(w, true);
  key_text(w, "name", weir_sv_from(name));
  key_text(w, "cat", weir_sv_from(kind));
  key_text(w, "ph", WEIR_SV_LIT("X"));
  key_int(w, "pid", 0);
  key_int(w, "tid", lane);
  weir_json_key(w, "ts");
  weir_json_double(w, (double)start_ns / 1e3);
  weir_json_key(w, "dur");
  weir_json_double(w, (double)(end_ns - start_ns) / 1e3);
  weir_json_object_end(w);
}

static void write_lane(weir_json_writer *w, uint32_t lane, const char *name) {
  weir_json_object_begin(w, true);
  key_text(w, "name", WEIR_SV_LIT("thread_name"));
  key_text(w, "ph", WEIR_SV_LIT("M"));
  key_int(w, "pid", 0);
  key_int(w, "tid", lane);
  weir_json_key(w, "args");
  weir_json_object_begin(w, true);
  key_text(w, "name", weir_sv_from(name));
  weir_json_object_end(w);
  weir_json_object_end(w);
}

bool weir_place_write_trace(const weir_place_view *v, const weir_writer *out) {
  weir_json_writer w;
  char name[300], lane[320];
  const weir_place_problem *p = v->problem;
  weir_json_writer_init(&w, *out, 0);
  weir_json_object_begin(&w, false);
  weir_json_key(&w, "traceEvents");
  weir_json_array_begin(&w, false);
  for (uint32_t d = 0; d < p->device_count; d++) {
    snprintf(lane, sizeof lane, "%.*s", WEIR_SV(p->devices[d].name));
    write_lane(&w, d, lane);
    snprintf(lane, sizeof lane, "copies to %.*s", WEIR_SV(p->devices[d].name));
    write_lane(&w, p->device_count + d, lane);
  }
  for (uint32_t n = 0; n < v->plan->node_count; n++)
    write_event(&w, weir_place_node_text(p, n, name), v->plan->device[n],
                v->plan->start_ns[n], v->plan->end_ns[n],
                weir_place_op_text(v, n));
  for (uint32_t i = 0; i < v->plan->copy_count; i++) {
    const weir_place_copy *c = &v->plan->copies[i];
    write_event(&w, weir_place_node_text(p, p->tensor_node[c->tensor], name),
                p->device_count + c->to, c->start_ns, c->end_ns, "copy");
  }
  weir_json_array_end(&w);
  weir_json_object_end(&w);
  return weir_json_finish(&w);
}
