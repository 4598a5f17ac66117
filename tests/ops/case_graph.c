/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "runtime/graph/builder.h"
#include "runtime/graph/node.h"
#include "tests/ops/case.h"

/* Adds the node that stands for input |i|: `input`, or `const`. */
static weir_status add_input(weir_graph_builder *b, const op_case *c,
                             uint32_t i, bool constant, weir_value_id *out,
                             weir_diag *diag) {
  weir_tensor *tensor = c->in[i];
  const char *op = constant ? "const" : "input";
  weir_attr attrs[WEIR_OP_ATTRS] = {{0}};
  char name[64];
  weir_node_id node = 0;
  snprintf(name, sizeof name, "%.*s%u", WEIR_SV(c->in_names[i]), i);
  weir_node_spec spec = {
      .op = weir_registry_find_op(weir_builtin_registry(), weir_sv_from(op)),
      .attrs = attrs};
  spec.name.size = strlen(name);
  spec.name.data =
      weir_arena_string(weir_graph_builder_arena(b), name, spec.name.size);
  attrs[weir_op_attr_index(spec.op, WEIR_SV_LIT("dtype"))] =
      (weir_attr){.kind = WEIR_ATTR_DTYPE, .dtype = tensor->dtype};
  if (constant)
    attrs[weir_op_attr_index(spec.op, WEIR_SV_LIT("value"))] =
        (weir_attr){.kind = WEIR_ATTR_TENSOR, .tensor = tensor};
  else
    attrs[weir_op_attr_index(spec.op, WEIR_SV_LIT("shape"))] =
        (weir_attr){.kind = WEIR_ATTR_INTS,
                    .count = (uint32_t)tensor->shape.rank,
                    .dims = tensor->shape.dims};
  weir_status s = weir_graph_builder_add(b, &spec, &node, diag);
  if (s == WEIR_OK) *out = weir_graph_builder_output(b, node, 0);
  return s;
}

/* Adds the case's inputs and its node. */
static weir_status add_case(weir_graph_builder *b, const op_case *c,
                            bool constants, weir_value_id *in,
                            weir_node_id *out_node, weir_diag *diag) {
  weir_node_spec spec = {.name = WEIR_SV_LIT("node"),
                         .op = c->op,
                         .attrs = c->attrs,
                         .inputs = in,
                         .input_count = c->in_count,
                         .mark = c->yaml->mark};
  weir_status s = WEIR_OK;
  for (uint32_t i = 0; i < c->in_count && s == WEIR_OK; i++) {
    in[i] = WEIR_NO_VALUE;
    if (c->in[i] != NULL) s = add_input(b, c, i, constants, &in[i], diag);
  }
  if (s == WEIR_OK) s = weir_graph_builder_add(b, &spec, out_node, diag);
  return s;
}

static weir_status create(weir_graph_builder **out, weir_diag *diag) {
  return weir_graph_builder_create(
      weir_allocator_system(), weir_builtin_registry(), 1, out, &diag->error);
}

weir_status op_case_build(const op_case *c, bool constants,
                          weir_graph **out_graph, weir_node_id *out_node,
                          weir_diag *diag) {
  weir_graph_builder *b = NULL;
  weir_value_id in[CASE_INPUTS];
  *out_graph = NULL;
  weir_status s = create(&b, diag);
  if (s == WEIR_OK) s = add_case(b, c, constants, in, out_node, diag);
  if (s == WEIR_OK) s = weir_graph_builder_finish(b, out_graph, &diag->error);
  weir_graph_builder_release(b);
  return s;
}

/* Adds op(a, b) or, without b, op(a), all attributes being defaults. */
static weir_status add_op(weir_graph_builder *builder, const char *op,
                          const char *name, weir_value_id a, weir_value_id b,
                          weir_value_id *out, weir_diag *diag) {
  weir_value_id in[] = {a, b};
  size_t size = strlen(name);
  weir_node_id node = 0;
  weir_node_spec spec = {
      .op = weir_registry_find_op(weir_builtin_registry(), weir_sv_from(op)),
      .inputs = in,
      .input_count = b == WEIR_NO_VALUE ? 1 : 2};
  spec.name = (weir_sv){
      weir_arena_string(weir_graph_builder_arena(builder), name, size), size};
  weir_status s = weir_graph_builder_add(builder, &spec, &node, diag);
  if (s == WEIR_OK) *out = weir_graph_builder_output(builder, node, 0);
  return s;
}

bool op_case_may_leave_out(const weir_op_def *op, uint32_t i) {
  return op->output_count == NULL && op->outputs[i].optional;
}

/* Adds sum(value * weights) to |*loss|. */
static weir_status add_term(weir_graph_builder *b, uint32_t i,
                            weir_value_id value, weir_value_id *loss,
                            weir_diag *diag) {
  const weir_value *v = &weir_graph_builder_graph(b)->values[value];
  weir_value_id weights = 0, product = 0, sum = 0;
  weir_tensor *tensor = op_case_random(v->dtype, v->shape, 1000 + i);
  char names[4][32];
  snprintf(names[0], sizeof names[0], "weights%u_", i);
  snprintf(names[1], sizeof names[1], "product%u", i);
  snprintf(names[2], sizeof names[2], "sum%u", i);
  snprintf(names[3], sizeof names[3], "loss%u", i);
  if (tensor == NULL) return WEIR_RESOURCE_EXHAUSTED;
  op_case holder = {.in = {tensor}, .in_names = {weir_sv_from(names[0])}};
  weir_status s = add_input(b, &holder, 0, true, &weights, diag);
  if (s == WEIR_OK)
    s = add_op(b, "mul", names[1], value, weights, &product, diag);
  if (s == WEIR_OK)
    s = add_op(b, "reduce_sum", names[2], product, WEIR_NO_VALUE, &sum, diag);
  if (s == WEIR_OK && *loss == WEIR_NO_VALUE)
    *loss = sum;
  else if (s == WEIR_OK)
    s = add_op(b, "add", names[3], *loss, sum, loss, diag);
  weir_tensor_unref(tensor);
  return s;
}

weir_status op_case_build_loss(const op_case *c, weir_graph **out_graph,
                               weir_value_id *in, weir_value_id *out_loss,
                               weir_diag *diag) {
  weir_graph_builder *b = NULL;
  weir_node_id node = 0;
  *out_graph = NULL;
  *out_loss = WEIR_NO_VALUE;
  weir_status s = create(&b, diag);
  if (s == WEIR_OK) s = add_case(b, c, false, in, &node, diag);
  uint32_t outputs =
      s == WEIR_OK ? weir_graph_builder_graph(b)->nodes[node].output_count : 0;
  for (uint32_t i = 0; i < outputs && s == WEIR_OK; i++) {
    if (op_case_may_leave_out(c->op, i)) continue;
    weir_value_id y = weir_graph_builder_output(b, node, i);
    s = add_term(b, i, y, out_loss, diag);
  }
  if (s == WEIR_OK) s = weir_graph_builder_finish(b, out_graph, &diag->error);
  weir_graph_builder_release(b);
  return s;
}

static void operand_of(const weir_graph *graph, weir_value_id id,
                       weir_operand *out) {
  *out = (weir_operand){0};
  if (id == WEIR_NO_VALUE) return;
  const weir_value *value = &graph->values[id];
  out->dtype = value->dtype;
  out->rank = value->shape->rank;
  for (int32_t d = 0; d < out->rank; d++)
    out->dims[d] = value->shape->dims[d].value;
  out->elements = weir_shape_elements(value->shape);
}

bool op_case_call(const weir_graph *graph, weir_node_id node, weir_arena *arena,
                  weir_call *out) {
  const weir_node *n = &graph->nodes[node];
  weir_operand *operands = weir_arena_array(
      arena, n->input_count + n->output_count + 1, sizeof *operands);
  if (operands == NULL) return false;
  for (uint32_t i = 0; i < n->input_count; i++)
    operand_of(graph, n->inputs[i], &operands[i]);
  for (uint32_t i = 0; i < n->output_count; i++) {
    weir_value_id id = n->first_output + i;
    if (!weir_shape_known(graph->values[id].shape)) return false;
    operand_of(graph, id, &operands[n->input_count + i]);
  }
  *out = (weir_call){.op = n->op,
                     .attrs = n->attrs,
                     .in = operands,
                     .out = operands + n->input_count,
                     .in_count = n->input_count,
                     .out_count = n->output_count,
                     .node = n->name,
                     .seed = n->seed};
  return true;
}
