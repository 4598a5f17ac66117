/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/bench/instance_dagbench.h"

#include <math.h>

#include "placement/bench/instance_json.h"

/* dag-bench: {"task_graph": {"tasks": [{"name", "cost"}], "dependencies":
 * [{"source", "target", "size"}]}, "network": {"nodes": [{"name", "speed"}],
 * "edges": [{"source", "target", "speed"}]}}, in any order.
 *
 * A cost of 1 on a machine of speed 1 is a millisecond; a size of 1 is a
 * kilobyte, which takes a link of speed 1 a millisecond. Each dependency is
 * data of its own; links carry any number of copies at once, as in the
 * simulators that the files are for. A link joins both ways. */

typedef struct machine {
  weir_sv name;
  uint32_t cls;
} machine;

typedef struct way {
  weir_sv from, to;
  double speed;
  size_t at;
} way;

typedef struct dagbench {
  weir_instance_source src;
  weir_place_builder *builder;
  WEIR_VEC(double) costs;
  WEIR_VEC(machine) machines;
  WEIR_VEC(way) ways;
  weir_map machine_of;
  double speeds[WEIR_PLACE_CLASSES];
  uint32_t classes;
  double worst_fs; /* of the slowest link, per byte */
} dagbench;

#define MOST 1e12

/* ---- Reading */

/* {"name": text, KEY: number} and {"source", "target", KEY}. */
typedef struct row {
  weir_sv name, from, to;
  double value;
  bool has_value;
} row;

static weir_status read_row(weir_instance_source *s, const char *key,
                            double least, row *out) {
  weir_json_token token;
  *out = (row){0};
  for (;;) {
    WEIR_TRY(weir_json_next(&s->json, &token, s->err));
    if (token == WEIR_JSON_OBJECT_END) return WEIR_OK;
    if (weir_json_text_is(&s->json, key)) {
      WEIR_TRY(weir_instance_number(s, key, least, MOST, &out->value));
      out->has_value = true;
    } else if (weir_json_text_is(&s->json, "name")) {
      WEIR_TRY(weir_instance_text(s, "name", &out->name));
    } else if (weir_json_text_is(&s->json, "source")) {
      WEIR_TRY(weir_instance_text(s, "source", &out->from));
    } else if (weir_json_text_is(&s->json, "target")) {
      WEIR_TRY(weir_instance_text(s, "target", &out->to));
    } else {
      WEIR_TRY(weir_json_skip(&s->json, s->err));
    }
  }
}

static weir_status read_task(void *self, size_t at) {
  dagbench *d = self;
  row r;
  WEIR_TRY(read_row(&d->src, "cost", 0, &r));
  if (r.name.data == NULL || !r.has_value)
    return weir_instance_fail_at(&d->src, at, "a task needs a name and a cost");
  if (!weir_vec_push(d->src.alloc, &d->costs, r.value))
    return weir_fail_memory(d->src.err, sizeof r.value);
  return weir_instance_add_node(&d->src, r.name, at);
}

static weir_status read_dependency(void *self, size_t at) {
  dagbench *d = self;
  row r;
  WEIR_TRY(read_row(&d->src, "size", 0, &r));
  return weir_instance_add_edge(
      &d->src, &(weir_instance_edge){.from_name = r.from,
                                     .to_name = r.to,
                                     .bytes = llround(r.value * 1e3),
                                     .at = at});
}

static weir_status class_of(dagbench *d, double speed, size_t at,
                            uint32_t *out) {
  for (*out = 0; *out < d->classes; ++*out)
    if (d->speeds[*out] == speed) return WEIR_OK;
  if (d->classes == WEIR_PLACE_CLASSES)
    return weir_instance_fail_at(&d->src, at, "more than %d different speeds",
                                 WEIR_PLACE_CLASSES);
  d->speeds[d->classes++] = speed;
  return WEIR_OK;
}

static weir_status read_machine(void *self, size_t at) {
  dagbench *d = self;
  row r;
  uint32_t existing, id = (uint32_t)d->machines.count;
  machine m = {0};
  WEIR_TRY(read_row(&d->src, "speed", 1e-6, &r));
  if (r.name.data == NULL || !r.has_value)
    return weir_instance_fail_at(&d->src, at,
                                 "a machine needs a name and a speed");
  if (id == WEIR_PLACE_DEVICES)
    return weir_instance_fail_at(&d->src, at, "more than %d machines",
                                 WEIR_PLACE_DEVICES);
  m.name = r.name;
  WEIR_TRY(class_of(d, r.value, at, &m.cls));
  if (!weir_map_put(&d->machine_of, r.name, id, &existing) ||
      !weir_vec_push(d->src.alloc, &d->machines, m))
    return weir_fail_memory(d->src.err, sizeof m);
  if (existing == WEIR_MAP_NONE) return WEIR_OK;
  return weir_instance_fail_at(&d->src, at, "a second machine is called %.*s",
                               WEIR_SV(r.name));
}

static weir_status read_way(void *self, size_t at) {
  dagbench *d = self;
  row r;
  WEIR_TRY(read_row(&d->src, "speed", 1e-6, &r));
  if (r.from.data == NULL || r.to.data == NULL || !r.has_value)
    return weir_instance_fail_at(&d->src, at,
                                 "a link needs source, target and speed");
  way w = {r.from, r.to, r.value, at};
  if (!weir_vec_push(d->src.alloc, &d->ways, w))
    return weir_fail_memory(d->src.err, sizeof w);
  return WEIR_OK;
}

/* An object with two lists. */
static weir_status read_pair(dagbench *d, const char *what, const char *first,
                             weir_instance_item read_first, const char *second,
                             weir_instance_item read_second) {
  weir_instance_source *s = &d->src;
  weir_json_token token;
  WEIR_TRY(weir_json_next(&s->json, &token, s->err));
  if (token != WEIR_JSON_OBJECT_BEGIN)
    return weir_instance_fail(s, "%s must be an object, found %s", what,
                              weir_json_token_name(token));
  for (;;) {
    WEIR_TRY(weir_json_next(&s->json, &token, s->err));
    if (token == WEIR_JSON_OBJECT_END) return WEIR_OK;
    if (weir_json_text_is(&s->json, first))
      WEIR_TRY(weir_instance_list(s, first, read_first, d));
    else if (weir_json_text_is(&s->json, second))
      WEIR_TRY(weir_instance_list(s, second, read_second, d));
    else
      WEIR_TRY(weir_json_skip(&s->json, s->err));
  }
}

static weir_status read_all(dagbench *d) {
  weir_instance_source *s = &d->src;
  weir_json_token token;
  WEIR_TRY(weir_json_expect(&s->json, WEIR_JSON_OBJECT_BEGIN, s->err));
  for (;;) {
    WEIR_TRY(weir_json_next(&s->json, &token, s->err));
    if (token == WEIR_JSON_OBJECT_END) break;
    if (weir_json_text_is(&s->json, "task_graph"))
      WEIR_TRY(read_pair(d, "task_graph", "tasks", read_task, "dependencies",
                         read_dependency));
    else if (weir_json_text_is(&s->json, "network"))
      WEIR_TRY(
          read_pair(d, "network", "nodes", read_machine, "edges", read_way));
    else
      WEIR_TRY(weir_json_skip(&s->json, s->err));
  }
  return weir_json_expect(&s->json, WEIR_JSON_END, s->err);
}

/* ---- Building */

static weir_status find_machine(const dagbench *d, const way *w, weir_sv name,
                                uint32_t *out) {
  *out = weir_map_get(&d->machine_of, name);
  if (*out != WEIR_MAP_NONE) return WEIR_OK;
  return weir_instance_fail_at(&d->src, w->at, "no machine is called %.*s",
                               WEIR_SV(name));
}

static weir_status add_network(dagbench *d) {
  for (size_t i = 0; i < d->machines.count; i++)
    weir_place_add_device(
        d->builder, &(weir_place_device){.name = d->machines.items[i].name,
                                         .cls = d->machines.items[i].cls,
                                         .memory_bytes = INT64_MAX});
  for (size_t i = 0; i < d->ways.count; i++) {
    const way *w = &d->ways.items[i];
    uint32_t from, to;
    WEIR_TRY(find_machine(d, w, w->from, &from));
    WEIR_TRY(find_machine(d, w, w->to, &to));
    if (from == to) continue; /* data that stays is not copied */
    int64_t fs = llround(1e9 / w->speed);
    if ((double)fs > d->worst_fs) d->worst_fs = (double)fs;
    uint32_t link =
        weir_place_add_link(d->builder, &(weir_place_link){.fs_per_byte = fs});
    weir_place_connect(d->builder, from, to, link);
    weir_place_connect(d->builder, to, from, link);
  }
  return WEIR_OK;
}

static weir_status emit(void *self, uint32_t node, weir_instance_edge **in,
                        uint32_t in_count, weir_instance_edge **out,
                        uint32_t out_count) {
  dagbench *d = self;
  int64_t cost[WEIR_PLACE_CLASSES], worst = 0;
  for (uint32_t c = 0; c < d->classes; c++) {
    double ns = d->costs.items[node] * 1e6 / d->speeds[c];
    if (ns > WEIR_INSTANCE_TOTAL_NS)
      return weir_instance_fail_at(&d->src, d->src.nodes.items[node].at,
                                   "this task takes more than 3 years");
    cost[c] = llround(ns);
    if (cost[c] > worst) worst = cost[c];
  }
  double bytes = 0;
  for (uint32_t i = 0; i < out_count; i++) bytes += (double)out[i]->bytes;
  WEIR_TRY(weir_instance_count(
      &d->src, node, (double)worst + bytes * d->worst_fs / 1e3, bytes));
  weir_place_node_spec spec = {.name = d->src.nodes.items[node].name,
                               .cost = cost,
                               .group = WEIR_PLACE_NONE};
  uint32_t id = weir_place_add_node(d->builder, &spec);
  for (uint32_t i = 0; i < in_count; i++)
    weir_place_add_use(d->builder, id, in[i]->tensor);
  for (uint32_t i = 0; i < out_count; i++)
    out[i]->tensor = weir_place_add_tensor(d->builder, id, out[i]->bytes);
  return WEIR_OK;
}

static weir_status build(dagbench *d, weir_place_problem **out) {
  weir_instance_source *s = &d->src;
  weir_instance_visitor visitor = {d, emit};
  if (d->machines.count == 0)
    return weir_instance_fail_at(s, 0, "the network has no machine");
  WEIR_TRY(
      weir_place_builder_create(s->alloc, d->classes, &d->builder, s->err));
  weir_status status = add_network(d);
  if (status == WEIR_OK) status = weir_instance_visit(s, &visitor);
  if (status == WEIR_OK)
    status = weir_place_builder_finish(d->builder, out, s->err);
  weir_place_builder_release(d->builder);
  return status;
}

weir_status weir_instance_read_dagbench(const weir_allocator *alloc,
                                        weir_sv text, const char *name,
                                        weir_place_problem **out_problem,
                                        weir_error *err) {
  dagbench d = {0};
  *out_problem = NULL;
  weir_instance_begin(&d.src, alloc, text, name, err);
  weir_map_init(&d.machine_of, alloc);
  weir_status status = read_all(&d);
  if (status == WEIR_OK) status = build(&d, out_problem);
  weir_vec_free(alloc, &d.costs);
  weir_vec_free(alloc, &d.machines);
  weir_vec_free(alloc, &d.ways);
  weir_map_release(&d.machine_of);
  weir_instance_end(&d.src);
  return status;
}
