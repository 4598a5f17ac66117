/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/control.h"

#include <inttypes.h>
#include <string.h>

#include "runtime/graph/graph_internal.h"

/* The parts and the types of scan, while and if. A body is complete when its
 * node is added, so its types are known; here they are only compared with the
 * node's inputs and put together to outputs. A carried value keeps its type
 * from turn to turn: the output's type must be the input's, where both are
 * known. */

/* ---- The parts */

static weir_control_kind kind_of(const weir_op_def *op) {
  if (op->instr == WEIR_INSTR_BRANCH) return WEIR_CONTROL_IF;
  if (op->instr != WEIR_INSTR_LOOP) return WEIR_CONTROL_NONE;
  return strcmp(op->name, "while") == 0 ? WEIR_CONTROL_WHILE
                                        : WEIR_CONTROL_SCAN;
}

static const weir_attr *attr_of(const weir_op_def *op, const weir_attr *attrs,
                                const char *name) {
  static const weir_attr kNone = {.kind = WEIR_ATTR_NONE};
  int i = weir_op_attr_index(op, weir_sv_from(name));
  return i >= 0 ? &attrs[i] : &kNone;
}

static bool count_of(const weir_attr *attr, uint32_t most, uint32_t *out) {
  if (attr->kind != WEIR_ATTR_INT || attr->i < 0 || attr->i > most)
    return false;
  *out = (uint32_t)attr->i;
  return true;
}

static bool if_of(uint32_t input_count, const weir_graph *const *bodies,
                  uint32_t body_count, weir_control *out) {
  out->first = 1;
  out->captured = input_count - 1;
  if (body_count != 2 || bodies[0]->input_count != out->captured ||
      bodies[1]->input_count != out->captured ||
      bodies[0]->output_count != bodies[1]->output_count)
    return false;
  out->outputs = bodies[0]->output_count;
  return true;
}

static bool loop_of(const weir_op_def *op, const weir_attr *attrs,
                    uint32_t input_count, const weir_graph *const *bodies,
                    uint32_t body_count, weir_control *out) {
  bool scan = out->kind == WEIR_CONTROL_SCAN;
  uint32_t inputs = input_count - out->first;
  const weir_attr *axes = attr_of(op, attrs, "axes");
  const weir_attr *limit = attr_of(op, attrs, "limit");
  if (body_count != (scan ? 1u : 2u) ||
      !count_of(attr_of(op, attrs, "carried"), inputs, &out->carried) ||
      (scan && !count_of(attr_of(op, attrs, "scanned"), inputs - out->carried,
                         &out->scanned)))
    return false;
  const weir_graph *body = bodies[body_count - 1];
  for (uint32_t i = 0; i < body_count; i++)
    if (bodies[i]->input_count != inputs) return false;
  if (body->output_count < out->carried ||
      (!scan && bodies[0]->output_count != 1))
    return false;
  out->captured = inputs - out->carried - out->scanned;
  out->stacked = body->output_count - out->carried;
  out->outputs = body->output_count + (scan ? 0 : 1);
  out->limited = limit->kind == WEIR_ATTR_INT;
  out->limit = out->limited ? limit->i : 0;
  if (axes->kind != WEIR_ATTR_INTS || axes->count == 0) return true;
  out->axes = axes->dims;
  return axes->count == out->scanned + out->stacked;
}

bool weir_control_of(const weir_op_def *op, const weir_attr *attrs,
                     uint32_t input_count, const weir_graph *const *bodies,
                     uint32_t body_count, weir_control *out) {
  *out = (weir_control){.kind = kind_of(op)};
  if (out->kind == WEIR_CONTROL_NONE || body_count == 0) return false;
  const weir_attr *counted = attr_of(op, attrs, "counted");
  const weir_attr *reverse = attr_of(op, attrs, "reverse");
  out->counted = counted->kind == WEIR_ATTR_BOOL && counted->b;
  out->reverse = reverse->kind == WEIR_ATTR_BOOL && reverse->b;
  out->first = out->counted ? 1 : 0;
  if (out->kind == WEIR_CONTROL_IF)
    return input_count > 0 && if_of(input_count, bodies, body_count, out);
  return input_count >= out->first &&
         loop_of(op, attrs, input_count, bodies, body_count, out);
}

weir_control weir_control_node(const weir_node *node) {
  weir_control c = {.kind = WEIR_CONTROL_NONE};
  if (node->body_count > 0)
    (void)weir_control_of(node->op, node->attrs, node->input_count,
                          node->bodies, node->body_count, &c);
  return c;
}

int weir_control_axis(const weir_control *control, uint32_t i) {
  return control->axes != NULL ? (int)control->axes[i].value : 0;
}

/* Carried and captured values have the shape of the node's input; a slice lacks
 * the scanned axis. */
weir_shape weir_control_slice(const weir_control *control, uint32_t i,
                              const weir_shape *shape) {
  weir_shape out = *shape;
  if (i < control->carried || i >= control->carried + control->scanned)
    return out;
  int axis = weir_control_axis(control, i - control->carried);
  if (shape->rank <= axis) return out; /* refused elsewhere */
  for (int d = axis; d + 1 < shape->rank; d++) out.dims[d] = shape->dims[d + 1];
  out.dims[--out.rank] = (weir_dim){0, 0, 0};
  return out;
}

uint32_t weir_bodies_output_count(const weir_infer *ctx) {
  weir_control c;
  const weir_node_spec *spec = ctx->spec;
  return weir_control_of(spec->op, ctx->base.attrs, spec->input_count,
                         spec->bodies, spec->body_count, &c)
             ? c.outputs
             : 0;
}

/* ---- Types */

static const weir_value *out_value(const weir_graph *body, uint32_t i) {
  return &body->values[body->outputs[i].value];
}

/* Whether both can be the same; |out| has all that is known of either. */
static bool unify(const weir_shape *a, const weir_shape *b, weir_shape *out) {
  *out = a->rank < 0 ? *b : *a;
  if (a->rank < 0 || b->rank < 0) return true;
  if (a->rank != b->rank) return false;
  for (int d = 0; d < a->rank; d++)
    if (!weir_dim_unify(a->dims[d], b->dims[d], &out->dims[d])) return false;
  return true;
}

static weir_status refuse_carry(weir_shape_ctx *ctx, const weir_graph *body,
                                uint32_t i, const weir_value *next) {
  const weir_value *init = &body->values[body->inputs[i].value];
  weir_status s = weir_shape_fail(
      ctx, WEIR_W1124, "%.*s is %s%s at first, and after a turn %s%s",
      WEIR_SV(body->inputs[i].name), weir_dtype_name(init->dtype),
      weir_shape_text(ctx, init->shape), weir_dtype_name(next->dtype),
      weir_shape_text(ctx, next->shape));
  weir_shape_hint(ctx, "a carried value keeps its type from turn to turn");
  return s;
}

/* Outputs of carried values: of one type from the first to the last. */
static weir_status carried_types(weir_shape_ctx *ctx, const weir_control *c,
                                 const weir_graph *body) {
  for (uint32_t i = 0; i < c->carried; i++) {
    const weir_shape *init = weir_shape_in(ctx, c->first + i);
    const weir_value *next = out_value(body, i);
    weir_shape type;
    if (weir_shape_in_dtype(ctx, c->first + i) != next->dtype ||
        !unify(init, next->shape, &type))
      return refuse_carry(ctx, body, i, next);
    weir_shape_set_dtype(ctx, i, next->dtype);
    WEIR_TRY(weir_shape_set(ctx, i, &type));
  }
  return WEIR_OK;
}

/* The type of |output|, which stacks output |o| of the body. */
static weir_status stack_type(weir_shape_ctx *ctx, const weir_graph *body,
                              uint32_t o, int axis, weir_dim length,
                              uint32_t output) {
  const weir_value *slice = out_value(body, o);
  weir_shape shape = *slice->shape;
  if (shape.rank < 0 || shape.rank == WEIR_MAX_RANK || axis > shape.rank)
    return weir_shape_fail(ctx, WEIR_W1125,
                           "%.*s is %s%s: slices like that do not stack on "
                           "axis %d",
                           WEIR_SV(body->outputs[o].name),
                           weir_dtype_name(slice->dtype),
                           weir_shape_text(ctx, &shape), axis);
  for (int d = shape.rank++; d > axis; d--) shape.dims[d] = shape.dims[d - 1];
  shape.dims[axis] = length;
  weir_shape_set_dtype(ctx, output, slice->dtype);
  return weir_shape_set(ctx, output, &shape);
}

/* The number of slices, which all scanned values agree on. */
static weir_status scan_length(weir_shape_ctx *ctx, const weir_control *c,
                               const weir_graph *body, weir_dim *length) {
  const weir_attr *given = weir_shape_attr(ctx, "length");
  bool known = given->kind == WEIR_ATTR_INTS && given->count == 1;
  if (known) *length = given->dims[0];
  for (uint32_t i = 0; i < c->scanned; i++) {
    const weir_shape *x = weir_shape_in(ctx, c->first + c->carried + i);
    int axis = weir_control_axis(c, i);
    weir_sv name = body->inputs[c->carried + i].name;
    if (x->rank <= axis)
      return weir_shape_fail(ctx, WEIR_W1125,
                             "%.*s: there is no axis %d to scan %s over",
                             WEIR_SV(name), axis, weir_shape_text(ctx, x));
    if (known && !weir_dim_unify(*length, x->dims[axis], length))
      return weir_shape_fail(ctx, WEIR_W1125,
                             "%.*s has %s slices, those before it %s",
                             WEIR_SV(name), weir_dim_text(ctx, x->dims[axis]),
                             weir_dim_text(ctx, *length));
    if (!known) *length = x->dims[axis];
    known = true;
  }
  if (known && (length->symbol != 0 || length->value >= 0)) return WEIR_OK;
  return weir_shape_fail(ctx, WEIR_W1125,
                         "without `over` it needs a `length` of 0 or more");
}

static weir_status scan_types(weir_shape_ctx *ctx, const weir_control *c) {
  const weir_graph *body = weir_infer_of(ctx)->spec->bodies[0];
  weir_dim length = {0, 0, 0};
  WEIR_TRY(scan_length(ctx, c, body, &length));
  WEIR_TRY(carried_types(ctx, c, body));
  for (uint32_t i = 0; i < c->stacked; i++) {
    uint32_t o = c->carried + i;
    WEIR_TRY(stack_type(ctx, body, o, weir_control_axis(c, c->scanned + i),
                        length, o));
  }
  return WEIR_OK;
}

static bool is_bool_scalar(weir_dtype dtype, const weir_shape *shape) {
  return dtype == WEIR_BOOL && shape->rank == 0;
}

static weir_status while_types(weir_shape_ctx *ctx, const weir_control *c) {
  static const weir_shape kScalar = {.rank = 0};
  const weir_graph *body = weir_infer_of(ctx)->spec->bodies[1];
  const weir_value *cond = out_value(weir_infer_of(ctx)->spec->bodies[0], 0);
  if (!is_bool_scalar(cond->dtype, cond->shape))
    return weir_shape_fail(ctx, WEIR_W1126, "cond is %s%s, must be bool[]",
                           weir_dtype_name(cond->dtype),
                           weir_shape_text(ctx, cond->shape));
  if ((c->limited && c->limit < 0) || (!c->limited && c->stacked > 0))
    return weir_shape_fail(ctx, WEIR_W1125, "limit must be 0 or more");
  WEIR_TRY(carried_types(ctx, c, body));
  weir_shape_set_dtype(ctx, c->carried, WEIR_I64);
  WEIR_TRY(weir_shape_set(ctx, c->carried, &kScalar));
  for (uint32_t i = 0; i < c->stacked; i++) {
    uint32_t o = c->carried + i;
    WEIR_TRY(stack_type(ctx, body, o, 0, weir_dim_of(c->limit), o + 1));
  }
  return WEIR_OK;
}

static weir_status if_types(weir_shape_ctx *ctx, const weir_control *c) {
  if (!is_bool_scalar(weir_shape_in_dtype(ctx, 0), weir_shape_in(ctx, 0)))
    return weir_shape_fail(ctx, WEIR_W1126, "cond is %s%s, must be bool[]",
                           weir_dtype_name(weir_shape_in_dtype(ctx, 0)),
                           weir_shape_text(ctx, weir_shape_in(ctx, 0)));
  for (uint32_t i = 0; i < c->outputs; i++) {
    const weir_value *no = out_value(weir_infer_of(ctx)->spec->bodies[0], i);
    const weir_value *yes = out_value(weir_infer_of(ctx)->spec->bodies[1], i);
    weir_shape type;
    if (no->dtype != yes->dtype || !unify(yes->shape, no->shape, &type))
      return weir_shape_fail(
          ctx, WEIR_W1126,
          "result %" PRIu32 " is %s%s from then, %s%s from else", i,
          weir_dtype_name(yes->dtype), weir_shape_text(ctx, yes->shape),
          weir_dtype_name(no->dtype), weir_shape_text(ctx, no->shape));
    weir_shape_set_dtype(ctx, i, yes->dtype);
    WEIR_TRY(weir_shape_set(ctx, i, &type));
  }
  return WEIR_OK;
}

/* The node's inputs have the types that the body was made for. */
static weir_status check_body_inputs(weir_shape_ctx *ctx, const weir_control *c,
                                     const weir_graph *body) {
  for (uint32_t i = 0; i < body->input_count; i++) {
    const weir_value *v = &body->values[body->inputs[i].value];
    weir_shape type, same;
    type = weir_control_slice(c, i, weir_shape_in(ctx, c->first + i));
    if (v->dtype != weir_shape_in_dtype(ctx, c->first + i) ||
        !unify(v->shape, &type, &same))
      return weir_shape_fail(ctx, WEIR_W9001,
                             "input %" PRIu32 " does not fit its body's input",
                             i);
  }
  return WEIR_OK;
}

weir_status weir_infer_bodies(weir_shape_ctx *ctx) {
  weir_control c;
  const weir_node_spec *spec = weir_infer_of(ctx)->spec;
  if (spec->body_count == 0)
    return weir_shape_fail(ctx, WEIR_W1123,
                           "is written as a map, {%s: {...}}, not as a call",
                           spec->op->name);
  if (!weir_control_of(spec->op, ctx->attrs, spec->input_count, spec->bodies,
                       spec->body_count, &c))
    return weir_shape_fail(ctx, WEIR_W9001, "its parts do not fit each other");
  for (uint32_t i = 0; i < spec->body_count; i++)
    WEIR_TRY(check_body_inputs(ctx, &c, spec->bodies[i]));
  if (c.kind == WEIR_CONTROL_IF) return if_types(ctx, &c);
  return c.kind == WEIR_CONTROL_SCAN ? scan_types(ctx, &c)
                                     : while_types(ctx, &c);
}
