/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/report/dump_parts.h"

#include "placement/report/dump_internal.h"
#include "runtime/base/size.h"
#include "runtime/base/table.h"

/* Text for people. Columns are as wide as their widest cell, up to a limit:
 * one long name shall not push everything to the right. */

enum {
  WIDEST = 40,    /* of a column; a longer cell shifts its own line only */
  FEW_READERS = 3 /* that are named; JSON has all */
};

/* Where a line goes; the first failure stays. */
typedef struct page {
  const weir_place_parts *parts;
  const weir_writer *out;
  bool ok;
} page;

#define PRINT(p, ...) \
  ((p)->ok = (p)->ok && weir_place_print((p)->out, __VA_ARGS__))

static int wider(int width, size_t size) {
  int more = size > WIDEST ? WIDEST : (int)size;
  return more > width ? more : width;
}

static const weir_graph *graph_of(const weir_place_parts *parts) {
  return parts->placement->graph;
}

const char *weir_parts_edge_name(const weir_place_parts *parts,
                                 const weir_parts_edge *e, char *text) {
  const weir_graph *g = graph_of(parts);
  weir_sv name = g->nodes[e->node].name;
  int size = name.size < 256 ? (int)name.size : 256;
  if (e->value == WEIR_NO_VALUE)
    snprintf(text, 300, "%.*s (token)", size, name.data);
  else if (g->values[e->value].port > 0)
    snprintf(text, 300, "%.*s:%u", size, name.data, g->values[e->value].port);
  else
    snprintf(text, 300, "%.*s", size, name.data);
  return text;
}

static const char *type_of(const page *p, weir_value_id value, char *text,
                           size_t capacity) {
  if (value == WEIR_NO_VALUE) return "-";
  return weir_graph_type_text(graph_of(p->parts), value, text, capacity);
}

/* ---- A part's borders and nodes */

static void write_ports(page *p, const weir_parts_part *part,
                        weir_parts_kind kind) {
  static const char *const titles[] = {[WEIR_PARTS_INPUT] = "inputs",
                                       [WEIR_PARTS_OUTPUT] = "outputs",
                                       [WEIR_PARTS_VARIABLE] = "variables"};
  WEIR_TABLE_OF(titles, WEIR_PARTS_KINDS);
  const weir_parts_ports *ports = &part->ports[kind];
  char type[160], bytes[32];
  int names = 0, types = 0;
  int64_t sum = 0;
  if (ports->count == 0) return;
  for (uint32_t i = 0; i < ports->count; i++) {
    const weir_parts_port *port = &ports->items[i];
    names = wider(names, port->name.size);
    types = wider(types, strlen(type_of(p, port->value, type, sizeof type)));
    weir_sum_add(&sum, port->bytes);
  }
  PRINT(p, "  %s (%u, %s)\n", titles[kind], ports->count,
        weir_quantity_print_bytes(sum, bytes));
  for (uint32_t i = 0; i < ports->count && p->ok; i++) {
    const weir_parts_port *port = &ports->items[i];
    PRINT(p, "    %-*.*s  %-*s  %9s\n", names, WEIR_SV(port->name), types,
          type_of(p, port->value, type, sizeof type),
          weir_quantity_print_bytes(port->bytes, bytes));
  }
}

static void write_nodes(page *p, const weir_parts_part *part) {
  const weir_graph *g = graph_of(p->parts);
  int ops = 2;
  for (uint32_t i = 0; i < part->node_count; i++)
    ops = wider(ops, strlen(g->nodes[part->nodes[i].node].op->name));
  PRINT(p,
        "  nodes (%u, in the order in which they begin)\n    %4s  %-*s  %s\n",
        part->node_count, "unit", ops, "op", "name");
  for (uint32_t i = 0; i < part->node_count && p->ok; i++) {
    const weir_node *node = &g->nodes[part->nodes[i].node];
    PRINT(p, "    %4u  %-*s  %.*s\n", part->nodes[i].unit, ops, node->op->name,
          WEIR_SV(node->name));
  }
}

/* ---- Edges */

static void write_readers(page *p, const weir_parts_edge *e) {
  const weir_graph *g = graph_of(p->parts);
  for (uint32_t i = 0; i < e->reader_count && i < FEW_READERS; i++)
    PRINT(p, "%s%.*s", i == 0 ? "" : ", ",
          WEIR_SV(g->nodes[e->readers[i]].name));
  if (e->reader_count > FEW_READERS)
    PRINT(p, " and %u more", e->reader_count - FEW_READERS);
  if (e->reader_count > 1) PRINT(p, " (one copy for %u)", e->reader_count);
  if (e->at_start) PRINT(p, " (before the first step)");
  if (e->cls == WEIR_EDGE_COLLECTIVE)
    PRINT(p, " (rank %u of %u)", e->rank, e->ranks);
}

static void write_edges(page *p, const weir_parts_part *part, bool received) {
  const uint32_t *rows = received ? part->received : part->sent;
  uint32_t count = received ? part->received_count : part->sent_count;
  int64_t sum = received ? part->received_bytes : part->sent_bytes;
  char name[300], type[160], bytes[32];
  int names = 6, types = 4, classes = 7;
  if (count == 0) return;
  for (uint32_t i = 0; i < count; i++) {
    const weir_parts_edge *e = &p->parts->edges[rows[i]];
    names = wider(names, strlen(weir_parts_edge_name(p->parts, e, name)));
    types = wider(types, strlen(type_of(p, e->value, type, sizeof type)));
    classes = wider(classes, strlen(weir_edge_class_text(e->cls)));
  }
  PRINT(p, "  %s (%u, %s a step)\n", received ? "receives" : "sends", count,
        weir_quantity_print_bytes(sum, bytes));
  PRINT(p, "    %-*s  %-*s  %-*s  %9s  %4s  %s\n", classes, "class", names,
        "tensor", types, "type", "bytes", received ? "from" : "to", "read by");
  for (uint32_t i = 0; i < count && p->ok; i++) {
    const weir_parts_edge *e = &p->parts->edges[rows[i]];
    PRINT(p, "    %-*s  %-*s  %-*s  %9s  %4u  ", classes,
          weir_edge_class_text(e->cls), names,
          weir_parts_edge_name(p->parts, e, name), types,
          type_of(p, e->value, type, sizeof type),
          weir_quantity_print_bytes(e->bytes, bytes),
          received ? e->from : e->to);
    write_readers(p, e);
    PRINT(p, "\n");
  }
}

/* ---- All of it */

/* What is brought once, before the first step. */
static void write_start(page *p) {
  uint32_t count = 0;
  int64_t bytes = 0;
  char text[32];
  for (uint32_t e = 0; e < p->parts->edge_count; e++) {
    if (!p->parts->edges[e].at_start) continue;
    count++;
    bytes += p->parts->edges[e].bytes;
  }
  if (count > 0)
    PRINT(p, "before the first step: %u weight%s, %s\n", count,
          count == 1 ? "" : "s", weir_quantity_print_bytes(bytes, text));
}

static void write_head(page *p) {
  uint32_t sent = 0, between = 0;
  int64_t bytes = 0;
  char text[32];
  for (uint32_t i = 0; i < p->parts->link_count; i++) {
    const weir_parts_link *link = &p->parts->links[i];
    sent += link->edge_count;
    weir_sum_add(&bytes, link->bytes);
    if (link->between_tasks) between += link->edge_count;
  }
  PRINT(p, "%u part%s; each step makes %u transfer%s, %s (%u between tasks)\n",
        p->parts->part_count, p->parts->part_count == 1 ? "" : "s", sent,
        sent == 1 ? "" : "s", weir_quantity_print_bytes(bytes, text), between);
  write_start(p);
  if (p->parts->edge_count == 0)
    PRINT(p, "nothing crosses: %s\n",
          p->parts->part_count > 1 ? "no part needs another's values"
                                   : "all nodes are on one device");
}

static void write_part(page *p, uint32_t number) {
  const weir_parts_part *part = &p->parts->parts[number];
  PRINT(p, "\npart %u: %.*s\n", number, WEIR_SV(part->name));
  write_ports(p, part, WEIR_PARTS_VARIABLE);
  write_ports(p, part, WEIR_PARTS_INPUT);
  write_ports(p, part, WEIR_PARTS_OUTPUT);
  write_nodes(p, part);
  write_edges(p, part, true);
  write_edges(p, part, false);
}

static void write_links(page *p) {
  char text[32];
  if (p->parts->link_count == 0) return;
  PRINT(p, "\nin each step\n  %4s  %4s  %5s  %9s\n", "from", "to", "edges",
        "bytes");
  for (uint32_t i = 0; i < p->parts->link_count && p->ok; i++) {
    const weir_parts_link *link = &p->parts->links[i];
    PRINT(p, "  %4u  %4u  %5u  %9s  %s\n", link->from, link->to,
          link->edge_count, weir_quantity_print_bytes(link->bytes, text),
          link->between_tasks ? "between tasks" : "within a task");
  }
}

/* Classes that occur, in words. */
static void write_legend(page *p) {
  static const char *const words[] = {
      [WEIR_EDGE_TENSOR] = "a value that another part needs",
      [WEIR_EDGE_PULL] = "a variable's value, from its task",
      [WEIR_EDGE_PUSH] = "a value that updates a variable, to its task",
      [WEIR_EDGE_CONTROL] = "no bytes: a node waits for another by `after`",
      [WEIR_EDGE_COLLECTIVE] =
          "between ranks: to the next, or over tasks to the first and back"};
  bool seen[WEIR_EDGE_COLLECTIVE + 1] = {false};
  for (uint32_t i = 0; i < p->parts->edge_count; i++)
    seen[p->parts->edges[i].cls] = true;
  if (p->parts->edge_count > 0) PRINT(p, "\nclasses\n");
  for (int c = 0; c <= WEIR_EDGE_COLLECTIVE; c++)
    if (seen[c])
      PRINT(p, "  %-10s  %s\n", weir_edge_class_text((weir_edge_class)c),
            words[c]);
}

bool weir_place_write_parts(const weir_place_parts *parts,
                            const weir_writer *out) {
  page p = {parts, out, true};
  if (parts == NULL)
    return weir_place_print(
        out, "no parts: the plan is of an instance file, not of a graph\n");
  write_head(&p);
  for (uint32_t i = 0; i < parts->part_count && p.ok; i++) write_part(&p, i);
  write_links(&p);
  write_legend(&p);
  return p.ok;
}
