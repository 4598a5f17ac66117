/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/report/dump_parts_dot.h"

#include "placement/report/dump_internal.h"

/* A value that crosses is one dashed edge, however many nodes read it: with
 * several it ends in a point inside the receiving part, and plain edges go on
 * from there. */

/* Text inside quotes: `"` and `\` are escaped. At most 600 bytes. */
static const char *quoted(weir_sv text, char *out) {
  size_t used = 0;
  for (size_t i = 0; i < text.size && used < 590; i++) {
    if (text.data[i] == '"' || text.data[i] == '\\') out[used++] = '\\';
    out[used++] = text.data[i];
  }
  out[used] = 0;
  return out;
}

static bool write_part(const weir_place_parts *parts, const weir_writer *out,
                       uint32_t number) {
  char text[600];
  const weir_graph *g = parts->placement->graph;
  const weir_parts_part *part = &parts->parts[number];
  bool ok = weir_place_print(
      out, "  subgraph cluster_%u {\n    label=\"part %u: %s\";\n", number,
      number, quoted(part->name, text));
  for (uint32_t i = 0; i < part->node_count && ok; i++) {
    weir_node_id id = part->nodes[i].node;
    bool variable = g->nodes[id].op->instr == WEIR_INSTR_VAR_READ;
    ok =
        weir_place_print(out, "    n%u [label=\"%s\\n%s\"%s];\n", id,
                         quoted(g->nodes[id].name, text), g->nodes[id].op->name,
                         variable ? ", shape=cylinder" : "");
  }
  for (uint32_t i = 0; i < part->received_count && ok; i++)
    if (parts->edges[part->received[i]].reader_count > 1)
      ok = weir_place_print(out, "    e%u [shape=point];\n", part->received[i]);
  return ok && weir_place_print(out, "  }\n");
}

/* Edges that stay inside a part. */
static bool write_inside(const weir_place_parts *parts, const weir_writer *out,
                         weir_node_id id) {
  const weir_graph *g = parts->placement->graph;
  const uint32_t *part_of = parts->partition->part_of;
  const weir_node *node = &g->nodes[id];
  bool ok = true;
  for (uint32_t i = 0; i < node->input_count && ok; i++) {
    if (node->inputs[i] == WEIR_NO_VALUE) continue;
    weir_node_id from = g->values[node->inputs[i]].node;
    if (part_of[from] == part_of[id])
      ok = weir_place_print(out, "  n%u -> n%u;\n", from, id);
  }
  for (uint32_t i = 0; i < node->after_count && ok; i++)
    if (part_of[node->after[i]] == part_of[id])
      ok = weir_place_print(out, "  n%u -> n%u [style=dotted];\n",
                            node->after[i], id);
  return ok;
}

static bool write_edge(const weir_place_parts *parts, const weir_writer *out,
                       uint32_t number) {
  char bytes[32], label[80] = "";
  const weir_parts_edge *e = &parts->edges[number];
  bool shared = e->reader_count > 1, token = e->cls == WEIR_EDGE_CONTROL;
  if (!token)
    snprintf(label, sizeof label, ", label=\"%s %s\"",
             weir_edge_class_text(e->cls),
             weir_quantity_print_bytes(e->bytes, bytes));
  bool ok = weir_place_print(
      out, "  n%u -> %s%u [style=%s, color=%s%s];\n", e->node,
      shared ? "e" : "n", shared ? number : e->readers[0],
      token ? "dotted" : "dashed", e->between_tasks ? "red" : "blue", label);
  for (uint32_t i = 0; i < e->reader_count && shared && ok; i++)
    ok = weir_place_print(out, "  e%u -> n%u;\n", number, e->readers[i]);
  return ok;
}

bool weir_place_write_parts_dot(const weir_place_parts *parts,
                                const weir_writer *out) {
  bool ok = weir_place_print(
      out, "digraph parts {\n  node [shape=box, fontsize=10];\n");
  if (parts == NULL)
    return ok && weir_place_print(
                     out, "  label=\"no parts: not a graph's plan\";\n}\n");
  for (uint32_t i = 0; i < parts->part_count && ok; i++)
    ok = write_part(parts, out, i);
  for (uint32_t i = 0; i < parts->partition->order_count && ok; i++)
    ok = write_inside(parts, out, parts->partition->order[i]);
  for (uint32_t i = 0; i < parts->edge_count && ok; i++)
    ok = write_edge(parts, out, i);
  return ok && weir_place_print(out, "}\n");
}
