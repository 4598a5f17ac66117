/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/report/dump_parts_json.h"

#include "placement/report/dump_internal.h"
#include "placement/report/dump_parts.h"

static void write_type(weir_json_writer *w, const weir_graph *g,
                       weir_value_id value) {
  char text[256];
  weir_json_key_text(
      w, "type",
      weir_sv_from(weir_graph_type_text(g, value, text, sizeof text)));
}

/* ---- Parts */

static void write_ports(weir_json_writer *w, const weir_graph *g,
                        const char *key, const weir_parts_ports *ports) {
  weir_json_key(w, key);
  weir_json_array_begin(w, true);
  for (uint32_t i = 0; i < ports->count; i++) {
    weir_json_object_begin(w, true);
    weir_json_key_text(w, "name", ports->items[i].name);
    write_type(w, g, ports->items[i].value);
    weir_json_key_uint(w, "bytes", (uint64_t)ports->items[i].bytes);
    weir_json_object_end(w);
  }
  weir_json_array_end(w);
}

static void write_task(weir_json_writer *w, const weir_placement *p,
                       uint32_t task) {
  char text[300];
  const weir_cluster_task *t = &p->cluster->tasks[task];
  snprintf(text, sizeof text, "/job:%.*s/task:%u", WEIR_SV(t->job), t->index);
  weir_json_key_text(w, "task", weir_sv_from(text));
}

static void write_part(weir_json_writer *w, const weir_place_parts *parts,
                       uint32_t number) {
  const weir_parts_part *part = &parts->parts[number];
  const weir_graph *g = parts->placement->graph;
  weir_json_object_begin(w, false);
  weir_json_key_uint(w, "id", number);
  weir_json_key_text(w, "device", part->name);
  write_task(w, parts->placement, part->task);
  weir_json_key_uint(w, "received_bytes", (uint64_t)part->received_bytes);
  weir_json_key_uint(w, "sent_bytes", (uint64_t)part->sent_bytes);
  write_ports(w, g, "variables", &part->ports[WEIR_PARTS_VARIABLE]);
  write_ports(w, g, "inputs", &part->ports[WEIR_PARTS_INPUT]);
  write_ports(w, g, "outputs", &part->ports[WEIR_PARTS_OUTPUT]);
  weir_json_key(w, "nodes");
  weir_json_array_begin(w, false);
  for (uint32_t i = 0; i < part->node_count; i++) {
    const weir_node *node = &g->nodes[part->nodes[i].node];
    weir_json_object_begin(w, true);
    weir_json_key_text(w, "name", node->name);
    weir_json_key_text(w, "op", weir_sv_from(node->op->name));
    weir_json_key_uint(w, "unit", part->nodes[i].unit);
    weir_json_object_end(w);
  }
  weir_json_array_end(w);
  weir_json_object_end(w);
}

/* ---- Edges and links */

static void write_edge(weir_json_writer *w, const weir_place_parts *parts,
                       uint32_t number) {
  char name[300];
  const weir_parts_edge *e = &parts->edges[number];
  const weir_graph *g = parts->placement->graph;
  weir_json_object_begin(w, true);
  weir_json_key_uint(w, "id", number);
  weir_json_key_text(w, "class", weir_sv_from(weir_edge_class_text(e->cls)));
  if (e->value != WEIR_NO_VALUE) {
    weir_json_key_text(w, "tensor",
                       weir_sv_from(weir_parts_edge_name(parts, e, name)));
    write_type(w, g, e->value);
  }
  weir_json_key_uint(w, "bytes", (uint64_t)e->bytes);
  weir_json_key_uint(w, "from", e->from);
  weir_json_key_text(w, "node", g->nodes[e->node].name);
  weir_json_key_uint(w, "to", e->to);
  weir_json_key(w, "readers");
  weir_json_array_begin(w, true);
  for (uint32_t i = 0; i < e->reader_count; i++)
    weir_json_string(w, g->nodes[e->readers[i]].name);
  weir_json_array_end(w);
  weir_json_key_bool(w, "shared", e->reader_count > 1);
  weir_json_key_bool(w, "between_tasks", e->between_tasks);
  weir_json_key_bool(w, "each_step", !e->at_start);
  if (e->cls == WEIR_EDGE_COLLECTIVE) {
    weir_json_key_uint(w, "group", e->group);
    weir_json_key_uint(w, "rank", e->rank);
    weir_json_key_uint(w, "ranks", e->ranks);
  }
  weir_json_object_end(w);
}

static void write_link(weir_json_writer *w, const weir_parts_link *link) {
  weir_json_object_begin(w, true);
  weir_json_key_uint(w, "from", link->from);
  weir_json_key_uint(w, "to", link->to);
  weir_json_key_bool(w, "between_tasks", link->between_tasks);
  weir_json_key_uint(w, "edges", link->edge_count);
  weir_json_key_uint(w, "bytes", (uint64_t)link->bytes);
  weir_json_object_end(w);
}

void weir_place_write_parts_lists(const weir_place_parts *parts,
                                  weir_json_writer *w) {
  static const weir_place_parts none = {.part_count = 0};
  if (parts == NULL) parts = &none;
  weir_json_key(w, "parts");
  weir_json_array_begin(w, false);
  for (uint32_t i = 0; i < parts->part_count; i++) write_part(w, parts, i);
  weir_json_array_end(w);
  weir_json_key(w, "edges");
  weir_json_array_begin(w, false);
  for (uint32_t i = 0; i < parts->edge_count; i++) write_edge(w, parts, i);
  weir_json_array_end(w);
  weir_json_key(w, "links");
  weir_json_array_begin(w, false);
  for (uint32_t i = 0; i < parts->link_count; i++)
    write_link(w, &parts->links[i]);
  weir_json_array_end(w);
}

bool weir_place_write_parts_json(const weir_place_parts *parts,
                                 const weir_writer *out) {
  weir_json_writer w;
  weir_json_writer_init(&w, *out, 1);
  weir_json_object_begin(&w, false);
  weir_json_key_uint(&w, "schema", 1);
  weir_place_write_parts_lists(parts, &w);
  weir_json_object_end(&w);
  return weir_json_finish(&w);
}
