/* SPDX-License-Identifier: Apache-2.0 */
/* The canonical JSON of a plan, and its Chrome trace. Keys have a fixed order,
 * numbers are integers but for the gap, and no time of day or path is written:
 * equal plans are equal bytes, which goldens and hashes rely on. */
#include "placement/report/dump_json.h"

#include "placement/lower/lower_kernels.h"
#include "placement/replica/replica_dump.h"
#include "placement/report/dump_figures.h"
#include "placement/report/dump_internal.h"
#include "placement/report/dump_moves.h"
#include "placement/report/dump_parts_json.h"
#include "runtime/base/json/json_trace.h"
#include "runtime/base/table.h"

static void write_devices(weir_json_writer *w, const weir_place_view *v) {
  weir_json_key(w, "devices");
  weir_json_array_begin(w, false);
  for (uint32_t d = 0; d < v->problem->device_count; d++) {
    weir_json_object_begin(w, true);
    weir_json_key_text(w, "name", v->problem->devices[d].name);
    weir_json_key_int(w, "peak_bytes", v->peaks[d]);
    if (v->problem->devices[d].memory_bytes != INT64_MAX)
      weir_json_key_int(w, "memory_bytes", v->problem->devices[d].memory_bytes);
    weir_json_object_end(w);
  }
  weir_json_array_end(w);
}

static void write_lack(weir_json_writer *w, const weir_placement *p,
                       const weir_lower_lack *l) {
  char why[WEIR_LOWER_WHY_BYTES];
  weir_json_object_begin(w, true);
  weir_json_key_text(w, "kind", weir_sv_from(weir_device_kinds[l->kind]->name));
  weir_json_key_int(w, "units", l->units);
  weir_json_key_int(w, "of", l->of);
  weir_json_key(w, "ops");
  weir_json_object_begin(w, true);
  for (uint32_t i = 0; i < l->ops; i++)
    weir_json_key_int(w, l->by_op[i].name, l->by_op[i].units);
  weir_json_object_end(w);
  weir_json_key(w, "reasons"); /* of each op's first unit */
  weir_json_object_begin(w, false);
  for (uint32_t i = 0; i < l->ops; i++)
    weir_json_key_text(
        w, l->by_op[i].name,
        weir_sv_from(weir_lower_lack_why(p, l->by_op[i].first, l->kind, why)));
  weir_json_object_end(w);
  weir_json_object_end(w);
}

static void write_assumed(weir_json_writer *w, const weir_placement *p) {
  if (p->assumed_kinds == 0) return;
  weir_json_key(w, "assumed_kernels");
  weir_json_array_begin(w, true);
  for (int k = 0; k < WEIR_DEVICE_KINDS; k++)
    if ((p->assumed_kinds >> k) & 1)
      weir_json_string(w, weir_sv_from(weir_device_kinds[k]->name));
  weir_json_array_end(w);
}

/* Devices without kernels; no key where there is nothing to say. */
static void write_fallbacks(weir_json_writer *w, const weir_place_view *v) {
  const weir_placement *p = v->placement;
  if (p == NULL) return;
  write_assumed(w, p);
  uint32_t lacks = weir_lower_lacks(p), fallen = weir_lower_fallen_back(p);
  if (lacks == 0 && fallen == 0) return;
  weir_json_key(w, "fallbacks");
  weir_json_object_begin(w, false);
  weir_json_key_int(w, "preferred", fallen);
  weir_json_key(w, "no_kernel");
  weir_json_array_begin(w, false);
  for (int k = 0; k < WEIR_DEVICE_KINDS; k++) {
    weir_lower_lack l;
    if (((lacks >> k) & 1) == 0) continue;
    weir_lower_lack_count(p, (weir_device_kind)k, &l);
    write_lack(w, p, &l);
  }
  weir_json_array_end(w);
  weir_json_object_end(w);
}

static const char *const sources[] = {[WEIR_COST_ESTIMATED] = "est",
                                      [WEIR_COST_MEASURED] = "measured",
                                      [WEIR_COST_GIVEN] = "given"};
WEIR_TABLE_OF(sources, WEIR_COST_SOURCES);

/* Every entry of the rules as it was written, with its line. */
static void write_rules(weir_json_writer *w, const weir_graph *g) {
  weir_json_key(w, "rules");
  weir_json_array_begin(w, false);
  for (uint32_t i = 0; g->placement != NULL && i < g->placement->count; i++) {
    const weir_yaml *rule = g->placement->items[i];
    weir_json_object_begin(w, true);
    weir_json_key_int(w, "line", rule->mark.line);
    for (uint32_t k = 0; rule->kind == WEIR_YAML_MAP && k < rule->count; k++) {
      const weir_yaml *value = rule->entries[k].value;
      if (value->kind == WEIR_YAML_SCALAR) {
        weir_json_key_sv(w, rule->entries[k].key);
        weir_json_string(w, value->text);
      } else if (value->kind == WEIR_YAML_LIST) {
        weir_json_key_sv(w, rule->entries[k].key);
        weir_json_array_begin(w, true);
        for (uint32_t j = 0; j < value->count; j++)
          if (value->items[j]->kind == WEIR_YAML_SCALAR)
            weir_json_string(w, value->items[j]->text);
        weir_json_array_end(w);
      }
    }
    weir_json_object_end(w);
  }
  weir_json_array_end(w);
}

/* The request for the unit's place, and its members. */
static void write_unit(weir_json_writer *w, const weir_placement *p,
                       uint32_t n) {
  const weir_unit *u = &p->units[n];
  const weir_graph *g = p->graph;
  if (u->own_device)
    weir_json_key_int(w, "asked_line", g->nodes[u->node].mark.line);
  if (!u->own_device && u->rule != WEIR_PLACE_NONE)
    weir_json_key_int(w, "rule", u->rule);
  if (u->relaxed) {
    weir_json_key(w, "relaxed");
    weir_json_bool(w, true);
  }
  if (u->fallback) {
    weir_json_key(w, "fallback");
    weir_json_bool(w, true);
  }
  if (u->with != WEIR_PLACE_NONE) weir_json_key_int(w, "with", u->with);
  if (u->member_count < 2) return;
  weir_json_key(w, "members");
  weir_json_array_begin(w, true);
  for (uint32_t i = 0; i < u->member_count; i++)
    weir_json_string(w, g->nodes[p->members[u->first_member + i]].name);
  weir_json_array_end(w);
}

static void write_alternatives(weir_json_writer *w, const weir_place_view *v,
                               uint32_t n) {
  const weir_place_problem *p = v->problem;
  weir_json_key(w, "alternatives");
  weir_json_array_begin(w, true);
  for (uint32_t d = 0; d < p->device_count; d++) {
    const weir_place_alternative *a =
        &v->alternatives[(size_t)n * p->device_count + d];
    if (d == v->plan->device[n]) continue;
    weir_json_object_begin(w, true);
    weir_json_key_text(w, "device", p->devices[d].name);
    if (a->step_ns >= 0) {
      weir_json_key_int(w, "finish_ns", a->finish_ns);
      weir_json_key_int(w, "step_ns", a->step_ns);
    } else {
      weir_json_key_text(
          w, "refused",
          weir_sv_from(weir_place_chance_text(weir_place_refusal(v, n, d))));
    }
    weir_json_object_end(w);
  }
  weir_json_array_end(w);
}

static void write_inputs(weir_json_writer *w, const weir_place_problem *p,
                         uint32_t n) {
  if (p->in_first[n] == p->in_first[n + 1]) return;
  weir_json_key(w, "inputs");
  weir_json_array_begin(w, true);
  for (uint32_t i = p->in_first[n]; i < p->in_first[n + 1]; i++)
    weir_json_int(w, p->in_tensor[i]);
  weir_json_array_end(w);
}

static void write_node(weir_json_writer *w, const weir_place_view *v,
                       uint32_t n) {
  char name[300];
  const weir_place_problem *p = v->problem;
  weir_json_object_begin(w, true);
  weir_json_key_int(w, "id", n);
  weir_json_key_text(w, "name", weir_sv_from(weir_place_node_text(p, n, name)));
  weir_json_key_text(w, "op", weir_sv_from(weir_place_op_text(v, n)));
  weir_json_key_text(w, "device", p->devices[v->plan->device[n]].name);
  weir_json_key_int(w, "start_ns", v->plan->start_ns[n]);
  weir_json_key_int(w, "end_ns", v->plan->end_ns[n]);
  weir_json_key_text(
      w, "cost_source",
      weir_sv_from(v->placement == NULL
                       ? "given"
                       : sources[v->placement->units[n].source]));
  weir_json_key_text(w, "reason",
                     weir_sv_from(weir_place_reason_text(
                         (weir_place_reason)v->plan->reason[n])));
  if (p->resident_bytes[n] > 0)
    weir_json_key_int(w, "resident_bytes", p->resident_bytes[n]);
  int64_t temp_bytes = weir_place_temp(p, v->plan->device, n);
  if (temp_bytes != 0) weir_json_key_int(w, "temp_bytes", temp_bytes);
  write_inputs(w, p, n);
  if (v->placement != NULL) write_unit(w, v->placement, n);
  if (v->alternatives != NULL) write_alternatives(w, v, n);
  weir_json_object_end(w);
}

static void write_nodes(weir_json_writer *w, const weir_place_view *v) {
  weir_json_key(w, "nodes");
  weir_json_array_begin(w, false);
  for (uint32_t n = 0; n < v->plan->node_count; n++)
    if (weir_place_is_wanted(v, n)) write_node(w, v, n);
  weir_json_array_end(w);
}

/* Node, bytes that are copied, and memory where that is more, of each tensor;
 * the rows' positions are the ids. |kept|: its memory is of the node's resident
 * bytes. */
static void write_tensors(weir_json_writer *w, const weir_place_view *v) {
  const weir_place_problem *p = v->problem;
  weir_json_key(w, "tensors");
  weir_json_array_begin(w, false);
  for (uint32_t t = 0; t < p->tensor_count; t++) {
    weir_json_object_begin(w, true);
    weir_json_key_int(w, "node", p->tensor_node[t]);
    weir_json_key_int(w, "bytes", p->tensor_bytes[t]);
    if (weir_place_held(p, p->tensor_bytes[t]) != p->tensor_bytes[t])
      weir_json_key_int(w, "memory_bytes",
                        weir_place_held(p, p->tensor_bytes[t]));
    if (p->tensor_keeper[t] == p->tensor_node[t]) {
      weir_json_key(w, "kept");
      weir_json_bool(w, true);
    } else if (weir_place_is_kept(p, t)) {
      weir_json_key_int(w, "keeper", p->tensor_keeper[t]);
    }
    weir_json_object_end(w);
  }
  weir_json_array_end(w);
}

/* Bytes, home and readers of each constant, and what is copied of them before
 * the first step. */
static void write_constants(weir_json_writer *w, const weir_place_view *v) {
  const weir_place_problem *p = v->problem;
  uint32_t stamp[WEIR_PLACE_DEVICES];
  int64_t bytes;
  uint32_t count = weir_place_start_copies(p, v->plan->device, stamp, &bytes);
  if (p->constant_count == 0) return;
  weir_json_key(w, "before_first_step");
  weir_json_object_begin(w, true);
  weir_json_key_int(w, "copies", count);
  weir_json_key_int(w, "bytes", bytes);
  weir_json_object_end(w);
  if (v->nodes.size > 0) return;
  weir_json_key(w, "constants");
  weir_json_array_begin(w, false);
  for (uint32_t c = 0; c < p->constant_count; c++) {
    weir_json_object_begin(w, true);
    if (p->constant_home[c] != WEIR_PLACE_NONE)
      weir_json_key_int(w, "node", p->constant_home[c]);
    weir_json_key_int(w, "bytes", p->constant_bytes[c]);
    weir_json_key(w, "readers");
    weir_json_array_begin(w, true);
    for (uint32_t i = p->reader_first[c]; i < p->reader_first[c + 1]; i++)
      weir_json_int(w, p->reader_node[i]);
    weir_json_array_end(w);
    weir_json_object_end(w);
  }
  weir_json_array_end(w);
}

/* Every bound that was tried, and how the search came to its plan. */
static void write_search(weir_json_writer *w, const weir_place_view *v) {
  weir_json_key(w, "bounds");
  weir_json_object_begin(w, true);
  weir_json_key_int(w, "critical_path_ns", v->bounds->path_ns);
  weir_json_key_int(w, "area_ns", v->bounds->area_ns);
  weir_json_key_int(w, "window_ns", v->bounds->window_ns);
  weir_json_key_int(w, "energy_ns", v->bounds->energy_ns);
  if (v->bounds->copies_ns != 0)
    weir_json_key_int(w, "copies_ns", v->bounds->copies_ns);
  if (v->bounds->memory_ns != 0)
    weir_json_key_int(w, "memory_ns", v->bounds->memory_ns);
  weir_json_object_end(w);
  weir_json_key(w, "search");
  weir_json_object_begin(w, true);
  weir_json_key_int(w, "first_ns", v->first_ns);
  if (v->retimed_from_ns != 0)
    weir_json_key_int(w, "retimed_from_ns", v->retimed_from_ns);
  weir_json_key(w, "moves");
  weir_json_uint(w, v->moves);
  weir_json_object_end(w);
}

static void write_edges(weir_json_writer *w, const weir_place_view *v) {
  weir_json_key(w, "edges");
  weir_json_array_begin(w, false);
  for (uint32_t i = 0; i < v->plan->copy_count; i++) {
    const weir_place_copy *c = &v->plan->copies[i];
    if (!weir_place_is_wanted(v, v->problem->tensor_node[c->tensor])) continue;
    weir_json_object_begin(w, true);
    weir_json_key_int(w, "tensor", c->tensor);
    weir_json_key_int(w, "node", v->problem->tensor_node[c->tensor]);
    weir_json_key_text(w, "from", v->problem->devices[c->from].name);
    weir_json_key_text(w, "to", v->problem->devices[c->to].name);
    int64_t bytes = v->problem->tensor_bytes[c->tensor];
    const weir_place_link *link = &v->problem->links[c->link];
    weir_json_key_int(w, "bytes", bytes);
    weir_json_key_int(w, "start_ns", c->start_ns);
    weir_json_key_int(w, "end_ns", c->end_ns);
    int64_t begin = weir_place_copy_begin(v->problem, c);
    if (begin != c->start_ns) weir_json_key_int(w, "on_link_from_ns", begin);
    weir_json_key_int(w, "link_ns", weir_place_link_ns(link, bytes));
    weir_json_key_int(w, "send_ns", weir_place_send_ns(link, bytes));
    weir_json_object_end(w);
  }
  weir_json_array_end(w);
}

bool weir_place_write_json(const weir_place_view *v, const weir_writer *out) {
  weir_json_writer w;
  char hash[24];
  weir_json_writer_init(&w, *out, 1);
  weir_json_object_begin(&w, false);
  weir_json_key_int(&w, "schema", 1);
  snprintf(hash, sizeof hash, "%016" PRIx64, weir_place_plan_hash(v));
  weir_json_key_text(&w, "plan", weir_sv_from(hash));
  weir_json_key_text(&w, "placer", weir_sv_from(v->plan->placer));
  weir_json_key_int(&w, "makespan_ns", v->plan->makespan_ns);
  weir_json_key_int(&w, "lower_bound_ns", v->bounds->best_ns);
  weir_json_key_text(&w, "lower_bound", weir_sv_from(v->bounds->best));
  weir_json_key_double(
      &w, "gap",
      v->bounds->best_ns == 0
          ? 0
          : (double)(v->plan->makespan_ns - v->bounds->best_ns) /
                (double)v->bounds->best_ns);
  write_search(&w, v);
  weir_place_write_figures_json(v, &w);
  write_devices(&w, v);
  write_fallbacks(&w, v);
  weir_replica_write_json(v->replica, &w);
  if (v->placement != NULL) write_rules(&w, v->placement->graph);
  if (v->nodes.size > 0) weir_json_key_text(&w, "shown", v->nodes);
  write_nodes(&w, v);
  if (v->nodes.size == 0) write_tensors(&w, v);
  write_constants(&w, v);
  write_edges(&w, v);
  if (v->parts != NULL) {
    weir_json_key(&w, "partition");
    weir_json_object_begin(&w, false);
    weir_place_write_parts_lists(v->parts, &w);
    weir_json_object_end(&w);
  }
  weir_json_object_end(&w);
  return weir_json_finish(&w);
}

/* ---- Chrome trace: complete events, times in microseconds */

static void write_span(weir_json_writer *w, const weir_json_span *span) {
  weir_json_span_begin(w, span);
  weir_json_object_end(w);
}

static void write_lanes(weir_json_writer *w, const weir_place_problem *p) {
  char lane[320];
  for (uint32_t d = 0; d < p->device_count; d++) {
    weir_sv device = p->devices[d].name;
    weir_json_lane(w, d, device);
    snprintf(lane, sizeof lane, "copies to %.*s", WEIR_SV(device));
    weir_json_lane(w, p->device_count + d, weir_sv_from(lane));
  }
}

bool weir_place_write_trace(const weir_place_view *v, const weir_writer *out) {
  weir_json_writer w;
  char name[300];
  const weir_place_problem *p = v->problem;
  weir_json_writer_init(&w, *out, 0);
  weir_json_object_begin(&w, false);
  weir_json_key(&w, "traceEvents");
  weir_json_array_begin(&w, false);
  write_lanes(&w, p);
  for (uint32_t n = 0; n < v->plan->node_count; n++)
    write_span(&w, &(weir_json_span){
                       .name = weir_sv_from(weir_place_node_text(p, n, name)),
                       .category = weir_place_op_text(v, n),
                       .lane = v->plan->device[n],
                       .start_ns = v->plan->start_ns[n],
                       .end_ns = v->plan->end_ns[n]});
  for (uint32_t i = 0; i < v->plan->copy_count; i++) {
    const weir_place_copy *c = &v->plan->copies[i];
    uint32_t node = p->tensor_node[c->tensor];
    write_span(&w, &(weir_json_span){.name = weir_sv_from(
                                         weir_place_node_text(p, node, name)),
                                     .category = "copy",
                                     .lane = p->device_count + c->to,
                                     .start_ns = c->start_ns,
                                     .end_ns = c->end_ns});
  }
  weir_json_array_end(&w);
  weir_json_object_end(&w);
  return weir_json_finish(&w);
}
