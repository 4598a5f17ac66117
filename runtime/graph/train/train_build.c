/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/train/train_build.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "runtime/graph/attrs.h"
#include "runtime/graph/graph_internal.h"
#include "runtime/graph/node.h"

/* Adding nodes of a step. The first failure sticks in b->status: after it these
 * functions add nothing and return WEIR_NO_VALUE, so a formula is a chain of
 * calls with one check at its end. */

weir_value_id weir_train_fail(weir_train_build *b, weir_status status) {
  if (b->status == WEIR_OK) b->status = status;
  return WEIR_NO_VALUE;
}

const weir_value *weir_train_value(const weir_train_build *b,
                                   weir_value_id value) {
  assert(value < weir_graph_builder_graph(b->pass.builder)->value_count);
  return &weir_graph_builder_graph(b->pass.builder)->values[value];
}

weir_dtype weir_train_dtype(const weir_train_build *b, weir_value_id value) {
  return value == WEIR_NO_VALUE ? WEIR_F32 : weir_train_value(b, value)->dtype;
}

weir_sv weir_train_name(weir_train_build *b, const char *fmt, ...) {
  char text[400];
  va_list args;
  va_start(args, fmt);
  int n = vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  size_t size = n < 0                     ? 0
                : (size_t)n < sizeof text ? (size_t)n
                                          : sizeof text - 1;
  weir_sv name = {
      weir_arena_string(weir_graph_builder_arena(b->pass.builder), text, size),
      size};
  if (name.data == NULL)
    weir_train_fail(b, weir_fail_memory(b->err, sizeof text));
  return name;
}

/* Notes that the new graph's |node| is b->side's. */
static void note_side(weir_train_build *b, weir_node_id node) {
  weir_train_mark mark = {node, b->side};
  if (b->side != WEIR_TRAIN_WORKER &&
      !weir_vec_push(b->pass.alloc, &b->marks, mark))
    weir_train_fail(b, weir_fail_memory(b->err, sizeof mark));
}

weir_value_id weir_train_add(weir_train_build *b, weir_sv name, const char *op,
                             uint32_t in_count, const weir_value_id *in,
                             const weir_named_attr *attrs) {
  if (b->status != WEIR_OK) return WEIR_NO_VALUE;
  weir_attr filled[WEIR_OP_ATTRS];
  const weir_op_def *def =
      weir_registry_find_op(b->pass.from->registry, weir_sv_from(op));
  if (def == NULL || !weir_attrs_by_name(def, attrs, filled))
    return weir_train_fail(
        b, weir_fail(b->err, WEIR_W1132, &b->mark,
                     def == NULL ? "unknown op %s" : "%s: invalid attributes",
                     op));
  if (name.size == 0) name = weir_train_name(b, "train/%s_%u", op, b->added++);
  if (b->status != WEIR_OK) return WEIR_NO_VALUE;
  weir_node_spec spec = {.name = name,
                         .op = def,
                         .attrs = filled,
                         .inputs = in,
                         .input_count = in_count,
                         .device = b->device,
                         .mark = b->mark};
  weir_node_id node = UINT32_MAX;
  weir_status s = weir_graph_builder_add(b->pass.builder, &spec, &node, NULL);
  if (s == WEIR_OK) {
    const weir_node *n =
        &weir_graph_builder_graph(b->pass.builder)->nodes[node];
    note_side(b, node);
    return n->output_count > 0 ? n->first_output : WEIR_NO_VALUE;
  }
  *b->err = b->pass.builder->diag.error;
  return weir_train_fail(b, s);
}

weir_value_id weir_train_input(weir_train_build *b, weir_sv name,
                               const weir_value *like) {
  weir_named_attr attrs[] = {
      {"shape",
       {.kind = WEIR_ATTR_INTS,
        .count = (uint32_t)like->shape->rank,
        .dims = like->shape->dims}},
      {"dtype", {.kind = WEIR_ATTR_DTYPE, .dtype = like->dtype}},
      {NULL, {.kind = WEIR_ATTR_NONE}}};
  return weir_train_add(b, name, "input", 0, NULL, attrs);
}

weir_value_id weir_train_fed_number(weir_train_build *b, weir_sv name) {
  if (b->status != WEIR_OK) return WEIR_NO_VALUE;
  weir_graph_port port = {.name = name};
  port.value = weir_train_input(b, name, weir_train_value(b, b->global_step));
  if (b->status == WEIR_OK)
    weir_train_fail(
        b, weir_graph_builder_add_input(b->pass.builder, &port, b->err));
  return port.value;
}

weir_value_id weir_train_const(weir_train_build *b, weir_sv name,
                               weir_dtype dtype, double value) {
  weir_tensor *tensor = NULL;
  weir_shape scalar = weir_shape_of(0, NULL);
  if (b->status != WEIR_OK) return WEIR_NO_VALUE;
  weir_status s =
      weir_tensor_create_shaped(b->pass.alloc, dtype, &scalar, &tensor, b->err);
  if (s != WEIR_OK) return weir_train_fail(b, s);
  if (weir_dtype_is_float(dtype))
    weir_tensor_set_f64(tensor, 0, value);
  else
    weir_tensor_set_i64(tensor, 0, (int64_t)value);
  weir_named_attr attrs[] = {
      {"value", {.kind = WEIR_ATTR_TENSOR, .tensor = tensor}},
      {"dtype", {.kind = WEIR_ATTR_DTYPE, .dtype = dtype}},
      {NULL, {.kind = WEIR_ATTR_NONE}}};
  weir_value_id made = weir_train_add(b, name, "const", 0, NULL, attrs);
  weir_tensor_unref(tensor);
  return made;
}

weir_value_id weir_train_op1(weir_train_build *b, const char *op,
                             weir_value_id x) {
  return weir_train_add(b, (weir_sv){NULL, 0}, op, 1, &x, NULL);
}

weir_value_id weir_train_op2(weir_train_build *b, const char *op,
                             weir_value_id x, weir_value_id y) {
  weir_value_id in[] = {x, y};
  return weir_train_add(b, (weir_sv){NULL, 0}, op, 2, in, NULL);
}

weir_value_id weir_train_cast(weir_train_build *b, weir_sv name,
                              weir_value_id x, weir_dtype dtype) {
  weir_named_attr attrs[] = {
      {"dtype", {.kind = WEIR_ATTR_DTYPE, .dtype = dtype}},
      {NULL, {.kind = WEIR_ATTR_NONE}}};
  return weir_train_add(b, name, "cast", 1, &x, attrs);
}

weir_value_id weir_train_state(weir_train_build *b, weir_sv name,
                               weir_value_id like, weir_value_id init,
                               double initial, weir_node_id of) {
  if (b->status != WEIR_OK) return WEIR_NO_VALUE;
  weir_shape shape = *weir_train_value(b, like)->shape;
  weir_dtype dtype = weir_train_dtype(b, like);
  weir_attr dims = {.kind = WEIR_ATTR_INTS,
                    .count = shape.rank > 0 ? (uint32_t)shape.rank : 0,
                    .dims = shape.dims};
  weir_attr type = {.kind = WEIR_ATTR_DTYPE, .dtype = dtype};
  weir_named_attr attrs[] = {
      {"shape", dims}, {"dtype", type}, {NULL, {.kind = WEIR_ATTR_NONE}}};
  weir_named_attr filled[] = {
      {"shape", dims},
      {"dtype", type},
      {"value", {.kind = WEIR_ATTR_FLOAT, .f = initial}},
      {NULL, {.kind = WEIR_ATTR_NONE}}};
  if (init == WEIR_NO_VALUE) {
    weir_sv init_name = weir_train_name(b, "%.*s/init", WEIR_SV(name));
    init = weir_train_add(b, init_name, "fill", 0, NULL, filled);
  }
  weir_value_id made = weir_train_add(b, name, "state", 1, &init, attrs);
  if (b->status != WEIR_OK) return WEIR_NO_VALUE;
  weir_train_var slot = {weir_train_value(b, made)->node, of, WEIR_NO_VALUE};
  if (!weir_vec_push(b->pass.alloc, &b->slots, slot))
    return weir_train_fail(b, weir_fail_memory(b->err, sizeof slot));
  return made;
}

void weir_train_assign(weir_train_build *b, weir_sv name, weir_value_id ref,
                       weir_value_id value) {
  weir_value_id in[] = {ref, value};
  weir_value_id made = weir_train_add(b, name, "assign", 2, in, NULL);
  if (b->status != WEIR_OK) return;
  if (!weir_vec_push(b->pass.alloc, &b->targets,
                     weir_train_value(b, made)->node))
    weir_train_fail(b, weir_fail_memory(b->err, sizeof(weir_node_id)));
}
