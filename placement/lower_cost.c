/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kernels/kernel.h"
#include "placement/lower.h"

/* A call as far as shapes tell; constants have their values. */
typedef struct shape_call {
  weir_call call;
  weir_operand operands[64];
} shape_call;

static bool fill_operand(const weir_graph *g, weir_value_id id,
                         weir_operand *out) {
  memset(out, 0, sizeof *out);
  if (id == WEIR_NO_VALUE) return true;
  const weir_value *v = &g->values[id];
  if (!weir_shape_known(v->shape)) return false;
  out->dtype = v->dtype;
  out->rank = v->shape->rank;
  for (int32_t d = 0; d < out->rank; d++)
    out->dims[d] = v->shape->dims[d].value;
  out->elements = weir_shape_elements(v->shape);
  if (v->known != NULL) out->value = v->known->data;
  return true;
}

/* false: a shape is not known. Of very many inputs the first are looked at. */
static bool make_call(const weir_graph *g, weir_node_id id, shape_call *out) {
  const weir_node *n = &g->nodes[id];
  uint32_t ins = n->input_count < 48 ? n->input_count : 48;
  uint32_t outs = n->output_count < 16 ? n->output_count : 16;
  for (uint32_t i = 0; i < ins; i++)
    if (!fill_operand(g, n->inputs[i], &out->operands[i])) return false;
  for (uint32_t i = 0; i < outs; i++)
    if (!fill_operand(g, n->first_output + i, &out->operands[ins + i]))
      return false;
  out->call = (weir_call){.op = n->op,
                          .attrs = n->attrs,
                          .in = out->operands,
                          .out = out->operands + ins,
                          .in_count = ins,
                          .out_count = outs,
                          .node = n->name,
                          .seed = n->seed};
  return true;
}

weir_status weir_place_node_cost(const weir_graph *g, weir_node_id id,
                                 const weir_device_model *model,
                                 int64_t *out_ns, weir_place_source *source,
                                 weir_error *err) {
  const weir_node *n = &g->nodes[id];
  shape_call c;
  weir_cost cost = {0};
  *source = WEIR_COST_ESTIMATED;
  *out_ns = 0;
  if (n->op->instr != WEIR_INSTR_KERNEL || (n->op->flags & WEIR_OP_VIEW) != 0)
    return WEIR_OK;
  if (!make_call(g, id, &c)) {
    weir_status s = weir_fail(err, WEIR_W2008, &n->mark,
                              "a shape is not known, so what it costs is not");
    weir_error_set_node(err, n->name.data, n->name.size);
    return s;
  }
  if (n->op->cost != NULL) n->op->cost(&c.call, &cost);
  if (cost.hold_ns > 0 || weir_sv_is(weir_sv_from(n->op->name), "task")) {
    *source = WEIR_COST_GIVEN;
    *out_ns = cost.hold_ns;
    return WEIR_OK;
  }
  /* Roofline: the slower of arithmetic and memory, and a node's overhead. */
  double compute = (double)cost.flops * 1e3 / (double)model->mflops;
  double memory = (double)cost.bytes * 1e3 / (double)model->bytes_per_us;
  double ns = (compute > memory ? compute : memory);
  *out_ns = ns > 4e18 ? INT64_C(4000000000000000000) : (int64_t)ns;
  *out_ns += model->overhead_ns;
  return WEIR_OK;
}

bool weir_place_has_kernel(const weir_graph *g, weir_node_id id, bool gpu) {
  const weir_node *n = &g->nodes[id];
  shape_call c;
  if (n->op->instr != WEIR_INSTR_KERNEL || (n->op->flags & WEIR_OP_VIEW) != 0)
    return true;
  if (!gpu) return true; /* the reference kernels accept what the op does */
  return make_call(g, id, &c) &&
         weir_kernel_choose(g->registry, &c.call, WEIR_GPU, false, NULL, 0) !=
             NULL;
}
