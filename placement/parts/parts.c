/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/parts/parts.h"

#include <assert.h>

#include "placement/parts/parts_edges.h"

/* Rows of one kind are first counted for each part, then dealt to arrays of
 * just these sizes: two walks over the graph, linear in it.
 *
 * Invariant: rows of a part lie together and keep the graph's order, so a list
 * is a pointer and a count, and equal plans give equal rows. */

static int64_t value_bytes(const weir_graph *g, weir_value_id v) {
  const weir_value *value = &g->values[v];
  return weir_shape_known(value->shape)
             ? (int64_t)weir_shape_bytes(value->shape, value->dtype)
             : 0;
}

static bool begin_parts(weir_parts_maker *m) {
  const weir_partition *cut = m->cut;
  m->parts =
      weir_arena_array(m->arena, (size_t)cut->part_count + 1, sizeof *m->parts);
  if (m->parts == NULL) return false;
  for (uint32_t p = 0; p < cut->part_count; p++) {
    uint32_t device = cut->parts[p].device;
    m->parts[p] =
        (weir_parts_part){.name = cut->parts[p].name,
                          .device = device,
                          .task = m->placement->cluster->devices[device].task};
  }
  return true;
}

static bool list_nodes(weir_parts_maker *m) {
  const weir_partition *cut = m->cut;
  weir_parts_node *rows =
      weir_arena_array(m->arena, (size_t)cut->order_count + 1, sizeof *rows);
  uint32_t *at =
      weir_alloc_array(m->alloc, (size_t)cut->part_count + 1, sizeof *at);
  bool ok = rows != NULL && at != NULL;
  for (uint32_t i = 0; ok && i < cut->order_count; i++)
    m->parts[cut->part_of[cut->order[i]]].node_count++;
  uint32_t total = 0;
  for (uint32_t p = 0; ok && p < cut->part_count; p++) {
    at[p] = total;
    m->parts[p].nodes = rows + total;
    total += m->parts[p].node_count;
  }
  assert(!ok || total == cut->order_count);
  for (uint32_t i = 0; ok && i < total; i++) {
    weir_node_id id = cut->order[i];
    rows[at[cut->part_of[id]]++] =
        (weir_parts_node){id, m->placement->unit_of[id]};
  }
  weir_free(m->alloc, at);
  return ok;
}

/* ---- Inputs, outputs, variables */

/* A constant is in every part; the first one gives it where it is an output. */
static uint32_t part_of_value(const weir_parts_maker *m, weir_value_id value) {
  uint32_t part = m->cut->part_of[m->graph->values[value].node];
  return part == WEIR_PLACE_NONE ? 0 : part;
}

/* Deals |all| to the parts where their values are; |*all| gets their order. */
static bool deal(weir_parts_maker *m, weir_parts_kind kind,
                 const weir_parts_port *all, uint32_t count) {
  uint32_t parts = m->cut->part_count, total = 0;
  weir_parts_port *rows =
      weir_arena_array(m->arena, (size_t)count + 1, sizeof *rows);
  uint32_t *at = weir_alloc_array(m->alloc, (size_t)parts + 1, sizeof *at);
  bool ok = rows != NULL && at != NULL;
  for (uint32_t i = 0; ok && i < count; i++)
    m->parts[part_of_value(m, all[i].value)].ports[kind].count++;
  for (uint32_t p = 0; ok && p < parts; p++) {
    at[p] = total;
    m->parts[p].ports[kind].items = rows + total;
    total += m->parts[p].ports[kind].count;
  }
  assert(!ok || total == count);
  for (uint32_t i = 0; ok && i < count; i++)
    rows[at[part_of_value(m, all[i].value)]++] = all[i];
  weir_free(m->alloc, at);
  return ok;
}

static uint32_t take_ports(const weir_graph *g, const weir_graph_port *ports,
                           uint32_t count, weir_parts_port *all) {
  uint32_t taken = 0;
  for (uint32_t i = 0; i < count; i++)
    if (ports[i].value != WEIR_NO_VALUE) /* else no node needs it */
      all[taken++] = (weir_parts_port){ports[i].name, ports[i].value,
                                       value_bytes(g, ports[i].value)};
  return taken;
}

static uint32_t take_variables(const weir_graph *g, weir_parts_port *all) {
  uint32_t taken = 0;
  for (weir_node_id id = 0; id < g->node_count; id++) {
    const weir_node *node = &g->nodes[id];
    if (node->op->instr == WEIR_INSTR_VAR_READ)
      all[taken++] = (weir_parts_port){node->name, node->first_output,
                                       value_bytes(g, node->first_output)};
  }
  return taken;
}

static bool list_ports(weir_parts_maker *m) {
  const weir_graph *g = m->graph;
  size_t most = g->node_count;
  most = g->input_count > most ? g->input_count : most;
  most = g->output_count > most ? g->output_count : most;
  weir_parts_port *all = weir_alloc_array(m->alloc, most + 1, sizeof *all);
  bool ok = all != NULL;
  if (ok && m->cut->part_count > 0) {
    uint32_t inputs = take_ports(g, g->inputs, g->input_count, all);
    ok = deal(m, WEIR_PARTS_INPUT, all, inputs);
    uint32_t outputs = take_ports(g, g->outputs, g->output_count, all);
    ok = ok && deal(m, WEIR_PARTS_OUTPUT, all, outputs);
    uint32_t variables = take_variables(g, all);
    ok = ok && deal(m, WEIR_PARTS_VARIABLE, all, variables);
  }
  weir_free(m->alloc, all);
  return ok;
}

/* ---- All of it */

weir_status weir_place_parts_create(const weir_allocator *alloc,
                                    const weir_placement *placement,
                                    const weir_partition *partition,
                                    weir_place_parts **out_parts,
                                    weir_error *err) {
  *out_parts = NULL;
  weir_place_parts *out = weir_alloc_array(alloc, 1, sizeof *out);
  if (out == NULL) return weir_fail_memory(err, sizeof *out);
  weir_arena_init(&out->arena, alloc);
  out->placement = placement;
  out->partition = partition;
  weir_parts_maker m = {.alloc = alloc,
                        .arena = &out->arena,
                        .placement = placement,
                        .graph = placement->graph,
                        .cut = partition,
                        .out = out};
  if (begin_parts(&m) && list_nodes(&m) && list_ports(&m) &&
      weir_parts_list_edges(&m)) {
    out->parts = m.parts;
    out->part_count = partition->part_count;
    *out_parts = out;
    return WEIR_OK;
  }
  weir_place_parts_release(out);
  return weir_fail_memory(err, placement->member_total * sizeof *m.parts);
}

void weir_place_parts_release(weir_place_parts *parts) {
  if (parts == NULL) return;
  const weir_allocator *alloc = parts->arena.alloc;
  weir_arena_release(&parts->arena);
  weir_free(alloc, parts);
}
