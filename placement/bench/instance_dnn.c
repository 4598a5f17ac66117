/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/bench/instance_dnn.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "placement/bench/instance_json.h"

/* dnn-partitioning: {"maxSizePerFPGA": bytes, "maxFPGAs": n, "maxCPUs": n,
 * "nodes": [{"id", "supportedOnFpga", "cpuLatency", "fpgaLatency", "size",
 * "colorClass"}], "edges": [{"sourceId", "destId", "cost"}]}; times in
 * milliseconds. Source of the format: Tarnawski et al., Efficient Algorithms
 * for Device Placement of DNN Graph Operators, NeurIPS 2020.
 *
 * The processors come first, then the accelerators. A node makes one tensor,
 * for which the format gives no size but the time that an accelerator spends
 * to send or fetch it: a byte stands for a nanosecond. Processors spend none.
 * "size" is the memory that a node keeps. */

enum { CPU, ACCELERATOR, CLASSES };

typedef struct dnn_node {
  double ms[CLASSES];
  double bytes;
  bool accelerated;
  uint32_t color;
} dnn_node;

typedef struct dnn {
  weir_instance_source src;
  weir_place_builder *builder;
  WEIR_VEC(dnn_node) nodes;
  weir_map color_of;
  uint32_t colors;
  double cpus, accelerators, memory; /* -1: not given */
} dnn;

#define MOST_MS 1e11
#define MOST_BYTES 1e18

/* ---- Reading */

static weir_status read_color(dnn *d, uint32_t *out) {
  weir_sv text;
  uint32_t existing;
  WEIR_TRY(weir_instance_id(&d->src, "colorClass", &text));
  if (!weir_map_put(&d->color_of, text, d->colors, &existing))
    return weir_fail_memory(d->src.err, sizeof(weir_map_slot));
  *out = existing == WEIR_MAP_NONE ? d->colors++ : existing;
  return WEIR_OK;
}

/* One member of a node; |*id| gets the id. */
static weir_status read_member(dnn *d, dnn_node *n, weir_sv *id) {
  weir_instance_source *s = &d->src;
  if (weir_json_text_is(&s->json, "id")) return weir_instance_id(s, "id", id);
  if (weir_json_text_is(&s->json, "cpuLatency"))
    return weir_instance_number(s, "cpuLatency", 0, MOST_MS, &n->ms[CPU]);
  if (weir_json_text_is(&s->json, "fpgaLatency"))
    return weir_instance_number(s, "fpgaLatency", 0, MOST_MS,
                                &n->ms[ACCELERATOR]);
  if (weir_json_text_is(&s->json, "size"))
    return weir_instance_number(s, "size", 0, MOST_BYTES, &n->bytes);
  if (weir_json_text_is(&s->json, "supportedOnFpga"))
    return weir_instance_bool(s, "supportedOnFpga", &n->accelerated);
  if (weir_json_text_is(&s->json, "colorClass"))
    return read_color(d, &n->color);
  return weir_json_skip(&s->json, s->err);
}

static weir_status read_node(void *self, size_t at) {
  dnn *d = self;
  weir_json_token token;
  weir_sv id = {0};
  dnn_node n = {.ms = {-1, -1}, .color = WEIR_PLACE_NONE};
  for (;;) {
    WEIR_TRY(weir_json_next(&d->src.json, &token, d->src.err));
    if (token == WEIR_JSON_OBJECT_END) break;
    WEIR_TRY(read_member(d, &n, &id));
  }
  if (id.data == NULL || n.ms[CPU] < 0 || n.ms[ACCELERATOR] < 0)
    return weir_instance_fail_at(&d->src, at,
                                 "a node needs id, cpuLatency and fpgaLatency");
  if (!weir_vec_push(d->src.alloc, &d->nodes, n))
    return weir_fail_memory(d->src.err, sizeof n);
  return weir_instance_add_node(&d->src, id, at);
}

static weir_status read_edge(void *self, size_t at) {
  dnn *d = self;
  weir_instance_source *s = &d->src;
  weir_json_token token;
  weir_instance_edge e = {.at = at};
  double ms = -1;
  for (;;) {
    WEIR_TRY(weir_json_next(&s->json, &token, s->err));
    if (token == WEIR_JSON_OBJECT_END) break;
    if (weir_json_text_is(&s->json, "sourceId"))
      WEIR_TRY(weir_instance_id(s, "sourceId", &e.from_name));
    else if (weir_json_text_is(&s->json, "destId"))
      WEIR_TRY(weir_instance_id(s, "destId", &e.to_name));
    else if (weir_json_text_is(&s->json, "cost"))
      WEIR_TRY(weir_instance_number(s, "cost", 0, MOST_MS, &ms));
    else
      WEIR_TRY(weir_json_skip(&s->json, s->err));
  }
  if (ms < 0) return weir_instance_fail_at(s, at, "an edge needs a cost");
  e.bytes = llround(ms * 1e6);
  return weir_instance_add_edge(s, &e);
}

static weir_status read_count(dnn *d, const char *what, double *out) {
  WEIR_TRY(weir_instance_number(&d->src, what, 0, WEIR_PLACE_DEVICES, out));
  if (*out == floor(*out)) return WEIR_OK;
  return weir_instance_fail(&d->src, "%s must be an integer", what);
}

static weir_status read_all(dnn *d) {
  weir_instance_source *s = &d->src;
  weir_json_token token;
  WEIR_TRY(weir_json_expect(&s->json, WEIR_JSON_OBJECT_BEGIN, s->err));
  for (;;) {
    WEIR_TRY(weir_json_next(&s->json, &token, s->err));
    if (token == WEIR_JSON_OBJECT_END) break;
    if (weir_json_text_is(&s->json, "maxFPGAs"))
      WEIR_TRY(read_count(d, "maxFPGAs", &d->accelerators));
    else if (weir_json_text_is(&s->json, "maxCPUs"))
      WEIR_TRY(read_count(d, "maxCPUs", &d->cpus));
    else if (weir_json_text_is(&s->json, "maxSizePerFPGA"))
      WEIR_TRY(
          weir_instance_number(s, "maxSizePerFPGA", 0, MOST_BYTES, &d->memory));
    else if (weir_json_text_is(&s->json, "nodes"))
      WEIR_TRY(weir_instance_list(s, "nodes", read_node, d));
    else if (weir_json_text_is(&s->json, "edges"))
      WEIR_TRY(weir_instance_list(s, "edges", read_edge, d));
    else
      WEIR_TRY(weir_json_skip(&s->json, s->err));
  }
  if (d->accelerators < 0 || d->cpus < 0 || d->memory < 0)
    return weir_instance_fail(s,
                              "maxFPGAs, maxCPUs and maxSizePerFPGA are "
                              "needed");
  if (d->accelerators + d->cpus < 1 ||
      d->accelerators + d->cpus > WEIR_PLACE_DEVICES)
    return weir_instance_fail(s, "there must be 1 to %d devices",
                              WEIR_PLACE_DEVICES);
  return weir_json_expect(&s->json, WEIR_JSON_END, s->err);
}

/* ---- Building */

static void add_devices(dnn *d) {
  char name[64];
  for (int i = 0; i < (int)d->cpus; i++) {
    snprintf(name, sizeof name, "/job:worker/task:0/device:CPU:%d", i);
    weir_place_device cpu = {weir_sv_from(name), CPU, INT64_MAX};
    weir_place_no_copy_load(d->builder,
                            weir_place_add_device(d->builder, &cpu));
  }
  for (int i = 0; i < (int)d->accelerators; i++) {
    snprintf(name, sizeof name, "/job:worker/task:0/device:GPU:%d", i);
    weir_place_device gpu = {weir_sv_from(name), ACCELERATOR,
                             (int64_t)d->memory};
    weir_place_add_device(d->builder, &gpu);
  }
  weir_place_connect_all(d->builder,
                         &(weir_place_link){.fs_per_byte = 1000000});
}

static weir_status emit(void *self, uint32_t node, weir_instance_edge **in,
                        uint32_t in_count, weir_instance_edge **out,
                        uint32_t out_count) {
  dnn *d = self;
  const dnn_node *n = &d->nodes.items[node];
  int64_t cost[CLASSES] = {llround(n->ms[CPU] * 1e6),
                           llround(n->ms[ACCELERATOR] * 1e6)};
  for (uint32_t i = 1; i < out_count; i++)
    if (llabs(out[i]->bytes - out[0]->bytes) > 1)
      return weir_instance_fail_at(&d->src, out[i]->at,
                                   "its cost differs from that of another "
                                   "edge of the same source");
  double copy = out_count == 0 ? 0 : (double)out[0]->bytes;
  WEIR_TRY(weir_instance_count(
      &d->src, node, (double)cost[CPU] + (double)cost[ACCELERATOR] + copy,
      n->bytes + copy));
  if (!n->accelerated) cost[ACCELERATOR] = WEIR_PLACE_NO_KERNEL;
  weir_place_node_spec spec = {.name = d->src.nodes.items[node].name,
                               .cost = cost,
                               .resident_bytes = (int64_t)n->bytes,
                               .group = n->color};
  uint32_t id = weir_place_add_node(d->builder, &spec);
  for (uint32_t i = 0; i < in_count; i++)
    weir_place_add_use(d->builder, id, in[i]->tensor);
  if (out_count == 0) return WEIR_OK;
  uint32_t tensor = weir_place_add_tensor(d->builder, id, out[0]->bytes);
  weir_place_keep_tensor(d->builder, tensor, id);
  for (uint32_t i = 0; i < out_count; i++) out[i]->tensor = tensor;
  return WEIR_OK;
}

static weir_status build(dnn *d, weir_place_problem **out) {
  weir_instance_source *s = &d->src;
  weir_instance_visitor visitor = {d, emit};
  WEIR_TRY(weir_place_builder_create(s->alloc, CLASSES, &d->builder, s->err));
  add_devices(d);
  weir_status status = weir_instance_visit(s, &visitor);
  if (status == WEIR_OK)
    status = weir_place_builder_finish(d->builder, out, s->err);
  weir_place_builder_release(d->builder);
  return status;
}

weir_status weir_instance_read_dnn(const weir_allocator *alloc, weir_sv text,
                                   const char *name,
                                   weir_place_problem **out_problem,
                                   weir_error *err) {
  dnn d = {.cpus = -1, .accelerators = -1, .memory = -1};
  *out_problem = NULL;
  weir_instance_begin(&d.src, alloc, text, name, err);
  weir_map_init(&d.color_of, alloc);
  weir_status status = read_all(&d);
  if (status == WEIR_OK) status = build(&d, out_problem);
  weir_vec_free(alloc, &d.nodes);
  weir_map_release(&d.color_of);
  weir_instance_end(&d.src);
  return status;
}
