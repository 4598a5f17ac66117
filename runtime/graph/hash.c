/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/hash.h"

#include <string.h>

#include "runtime/base/map.h"

/* One running hash over nodes in order, then inputs, then outputs. Lists and
 * texts are led by their sizes, so that one part cannot run into the next
 * unnoticed. Ids stand for edges: two graphs with the same nodes in another
 * order differ. Symbols count by number, not by name. Literals are hashed
 * whole: the cost is linear in nodes, edges and bytes of literals. */

static void add(uint64_t *h, const void *data, size_t size) {
  if (size > 0) *h = weir_hash_bytes(data, size, *h);
}

static void add_number(uint64_t *h, uint64_t value) {
  add(h, &value, sizeof value);
}

static void add_text(uint64_t *h, weir_sv text) {
  add_number(h, text.size);
  add(h, text.data != NULL ? text.data : "", text.size);
}

static void add_dims(uint64_t *h, const weir_dim *dims, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    add_number(h, (uint64_t)dims[i].value);
    add_number(h, dims[i].symbol);
  }
}

static void add_shape(uint64_t *h, const weir_shape *shape) {
  add_number(h, (uint64_t)shape->rank);
  if (shape->rank > 0) add_dims(h, shape->dims, (uint32_t)shape->rank);
}

static void add_attr(uint64_t *h, const weir_attr *attr) {
  add_number(h, attr->kind);
  switch (attr->kind) {
    case WEIR_ATTR_INT:
      add_number(h, (uint64_t)attr->i);
      break;
    case WEIR_ATTR_FLOAT:
      add(h, &attr->f, sizeof attr->f);
      break;
    case WEIR_ATTR_BOOL:
      add_number(h, attr->b);
      break;
    case WEIR_ATTR_STRING:
      add_text(h, attr->s);
      break;
    case WEIR_ATTR_DTYPE:
      add_number(h, attr->dtype);
      break;
    case WEIR_ATTR_INTS:
      add_number(h, attr->count);
      add_dims(h, attr->dims, attr->count);
      break;
    case WEIR_ATTR_FLOATS:
      add_number(h, attr->count);
      add(h, attr->floats, attr->count * sizeof *attr->floats);
      break;
    case WEIR_ATTR_TENSOR:
      add_number(h, attr->tensor->dtype);
      add_shape(h, &attr->tensor->shape);
      add(h, attr->tensor->data, attr->tensor->bytes);
      break;
    default:
      break;
  }
}

static void add_node(uint64_t *h, const weir_graph *g, const weir_node *node) {
  add_text(h, node->name);
  add_text(h, weir_sv_from(node->op->name));
  for (int i = 0; i < WEIR_OP_ATTRS && node->op->attrs[i].name != NULL; i++)
    add_attr(h, &node->attrs[i]);
  add_number(h, node->input_count);
  add(h, node->inputs, node->input_count * sizeof *node->inputs);
  add_number(h, node->after_count);
  add(h, node->after, node->after_count * sizeof *node->after);
  for (uint32_t i = 0; i < node->output_count; i++) {
    const weir_value *v = &g->values[node->first_output + i];
    add_number(h, v->dtype);
    add_shape(h, v->shape);
  }
  add_number(h, node->body_count);
  for (uint32_t i = 0; i < node->body_count; i++)
    add_number(h, weir_graph_hash(node->bodies[i])); /* WEIR_BODY_DEPTH deep */
}

static void add_ports(uint64_t *h, const weir_graph_port *ports,
                      uint32_t count) {
  add_number(h, count);
  for (uint32_t i = 0; i < count; i++) {
    add_text(h, ports[i].name);
    add_number(h, ports[i].value);
  }
}

uint64_t weir_graph_hash(const weir_graph *graph) {
  uint64_t h = 1;
  for (uint32_t i = 0; i < graph->node_count; i++)
    add_node(&h, graph, &graph->nodes[i]);
  add_ports(&h, graph->inputs, graph->input_count);
  add_ports(&h, graph->outputs, graph->output_count);
  return h != 0 ? h : 1;
}
