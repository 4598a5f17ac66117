/* SPDX-License-Identifier: Apache-2.0
 *
 * Shapes of fed tensors in, a graph without those symbols out.
 *
 * Fed shapes against declared ones give a size for each symbol (one equation
 * per dimension, symbol + number = size). Then the graph is copied with numbers
 * for symbols in all attributes, and shape rules make the types anew: no type
 * is rewritten by hand. A symbol that no fed shape binds stays. */
#include "runtime/graph/pass/pass_specialize.h"

#include <assert.h>
#include <inttypes.h>

#include "runtime/graph/pass/pass.h"

/* The size of each symbol of the graph. */
typedef struct bindings {
  const weir_graph *graph;
  int64_t *sizes;   /* by symbol; -1: open */
  weir_arena attrs; /* of replaced attributes, until they were copied */
} bindings;

static const char *symbol_name(const void *self, uint32_t symbol) {
  const weir_graph *graph = self;
  return symbol < graph->symbol_count ? graph->symbols[symbol] : "?";
}

static weir_status refuse(const weir_graph *graph, const weir_graph_port *input,
                          const weir_shape *fed, const char *why,
                          weir_error *err) {
  const weir_value *value = &graph->values[input->value];
  char got[256], want[256];
  weir_shape_print(fed, NULL, NULL, got, sizeof got);
  weir_shape_print(value->shape, symbol_name, graph, want, sizeof want);
  weir_status s = weir_fail(
      err, WEIR_W4009, &input->mark, "input %.*s: shape %s does not fit %s%s%s",
      WEIR_SV(input->name), got, weir_dtype_name(value->dtype), want, why);
  weir_error_set_node(err, input->name.data, input->name.size);
  return s;
}

/* One dimension against its declaration; NULL, or the reason that it does not
 * fit. The first input that names a symbol binds it, others must agree. */
static const char *bind_dim(bindings *b, weir_dim declared, int64_t fed) {
  if (declared.symbol == 0) return declared.value == fed ? NULL : "";
  int64_t size = fed - declared.value; /* both are far below overflow */
  if (size < 0) return ", a dimension would be negative";
  int64_t *bound = &b->sizes[declared.symbol];
  if (*bound >= 0 && *bound != size)
    return ", a dimension of that name has another size elsewhere";
  *bound = size;
  return NULL;
}

static weir_status bind_input(bindings *b, const weir_graph_port *input,
                              const weir_shape *fed, weir_error *err) {
  const weir_shape *declared = b->graph->values[input->value].shape;
  if (fed->rank == WEIR_RANK_UNKNOWN || declared->rank == WEIR_RANK_UNKNOWN)
    return WEIR_OK;
  if (declared->rank != fed->rank) return refuse(b->graph, input, fed, "", err);
  for (int i = 0; i < fed->rank; i++) {
    const char *why = bind_dim(b, declared->dims[i], fed->dims[i].value);
    if (why != NULL) return refuse(b->graph, input, fed, why, err);
  }
  return WEIR_OK;
}

static bool is_bound(const bindings *b, weir_dim d) {
  return d.symbol != 0 && d.symbol < b->graph->symbol_count &&
         b->sizes[d.symbol] >= 0;
}

static bool any_bound(const bindings *b, const weir_attr *attr) {
  if (attr->kind != WEIR_ATTR_INTS) return false;
  for (uint32_t i = 0; i < attr->count; i++)
    if (is_bound(b, attr->dims[i])) return true;
  return false;
}

/* |attr| with numbers for symbols; false when out of memory. */
static bool replace_dims(bindings *b, weir_attr *attr) {
  weir_dim *dims = weir_arena_array(&b->attrs, attr->count, sizeof *dims);
  if (dims == NULL) return false;
  for (uint32_t i = 0; i < attr->count; i++) {
    dims[i] = attr->dims[i];
    if (!is_bound(b, dims[i])) continue;
    dims[i].value += b->sizes[dims[i].symbol];
    dims[i].symbol = 0;
  }
  attr->dims = dims;
  return true;
}

/* The same for nodes of bodies: weir_pass.replace. */
static bool replace_in_body(void *self, const weir_node *node, weir_attr *attrs,
                            weir_status *status) {
  bindings *b = self;
  uint32_t count = weir_op_attr_count(node->op);
  bool replaced = false;
  for (uint32_t i = 0; i < count; i++) {
    attrs[i] = node->attrs[i];
    if (!any_bound(b, &attrs[i])) continue;
    if (!replace_dims(b, &attrs[i])) *status = WEIR_RESOURCE_EXHAUSTED;
    replaced = true;
  }
  return replaced;
}

static weir_status copy_bound(bindings *b, weir_pass *pass, weir_node_id id,
                              weir_error *err) {
  const weir_node *node = &b->graph->nodes[id];
  weir_attr attrs[WEIR_OP_ATTRS];
  uint32_t count = weir_op_attr_count(node->op);
  bool replaced = false;
  for (uint32_t i = 0; i < count; i++) {
    attrs[i] = node->attrs[i];
    if (!any_bound(b, &attrs[i])) continue;
    if (!replace_dims(b, &attrs[i])) return weir_fail_memory(err, 64);
    replaced = true;
  }
  return weir_pass_copy(pass, id, replaced ? attrs : NULL, UINT32_MAX, err);
}

/* A rank that was open takes the fed tensor's shape. */
static weir_status copy_input(bindings *b, weir_pass *pass, weir_node_id id,
                              const weir_shape *fed, weir_error *err) {
  const weir_node *node = &b->graph->nodes[id];
  int shape_attr = weir_op_attr_index(node->op, WEIR_SV_LIT("shape"));
  if (fed == NULL || fed->rank == WEIR_RANK_UNKNOWN || shape_attr < 0)
    return copy_bound(b, pass, id, err);
  weir_attr attrs[WEIR_OP_ATTRS];
  uint32_t count = weir_op_attr_count(node->op);
  for (uint32_t i = 0; i < count; i++) attrs[i] = node->attrs[i];
  attrs[shape_attr] = (weir_attr){
      .kind = WEIR_ATTR_INTS, .count = (uint32_t)fed->rank, .dims = fed->dims};
  return weir_pass_copy(pass, id, attrs, UINT32_MAX, err);
}

static const weir_shape *fed_shape(const weir_graph *graph,
                                   const weir_shape *shapes, weir_node_id id) {
  for (uint32_t i = 0; i < graph->input_count; i++)
    if (graph->values[graph->inputs[i].value].node == id) return &shapes[i];
  return NULL;
}

weir_status weir_graph_specialize(const weir_graph *graph,
                                  const weir_shape *shapes,
                                  weir_graph **out_graph, weir_error *err) {
  bindings b = {.graph = graph};
  weir_pass pass;
  *out_graph = NULL;
  weir_arena_init(&b.attrs, graph->alloc);
  weir_status s = weir_pass_begin(&pass, graph, err);
  pass.replace = replace_in_body;
  pass.replace_self = &b;
  if (s == WEIR_OK) {
    b.sizes =
        weir_alloc_array(graph->alloc, graph->symbol_count, sizeof *b.sizes);
    if (b.sizes == NULL) s = weir_fail_memory(err, sizeof *b.sizes);
  }
  for (uint32_t i = 0; s == WEIR_OK && i < graph->symbol_count; i++)
    b.sizes[i] = -1;
  for (uint32_t i = 0; s == WEIR_OK && i < graph->input_count; i++)
    s = bind_input(&b, &graph->inputs[i], &shapes[i], err);
  for (uint32_t i = 0; s == WEIR_OK && i < graph->node_count; i++) {
    bool feed = graph->nodes[i].op->instr == WEIR_INSTR_FEED;
    s = feed ? copy_input(&b, &pass, i, fed_shape(graph, shapes, i), err)
             : copy_bound(&b, &pass, i, err);
    assert(s != WEIR_OK || pass.nodes[i] == i); /* ids stay */
  }
  s = weir_pass_end(&pass, s, out_graph, err);
  weir_free(graph->alloc, b.sizes);
  weir_arena_release(&b.attrs);
  return s;
}
