/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/compile/compile_control.h"

#include <string.h>

#include "runtime/exec/compile/compile_emit.h"
#include "runtime/exec/compile/compile_internal.h"
#include "runtime/exec/compile/compile_layout.h"
#include "runtime/exec/compile/compile_share.h"
#include "runtime/exec/program/instr_control.h"
#include "runtime/exec/program/instr_loop.h"
#include "runtime/graph/control.h"

/* Nodes with bodies: each body becomes a program of its own, whose externals
 * are its inputs and then its outputs. A value that is constant outside is
 * constant inside too, so weights are packed once and not in every turn. A body
 * was simplified and fused with the graph around it; it is only walked here. */

/* The bytes of body input |i| when they are known now, else NULL. Slices and
 * carried values are not. */
static const void *known_input(const weir_compiler *c, const weir_node *node,
                               const weir_control *parts, uint32_t i) {
  if (i < parts->carried + parts->scanned) return NULL;
  weir_value_id id = node->inputs[parts->first + i];
  const weir_pvalue *items = c->builder->values.items;
  return c->frozen[id] ? items[items[c->values[id]].root].data : NULL;
}

/* Compiles |body|; |skip| (may be NULL) are outputs that are left out. */
static weir_status compile_body(weir_compiler *c, const weir_node *node,
                                const weir_control *parts,
                                const weir_graph *body, const bool *skip,
                                const weir_program **out, weir_error *err) {
  uint32_t ins = body->input_count, outs = 0;
  weir_value_id *ids =
      weir_arena_array(c->arena, (size_t)ins + body->output_count, sizeof *ids);
  const void **known = weir_arena_array(c->arena, ins, sizeof *known);
  if (ids == NULL || known == NULL) return weir_fail_memory(err, ins);
  for (uint32_t i = 0; i < ins; i++) {
    ids[i] = body->inputs[i].value;
    known[i] = known_input(c, node, parts, i);
  }
  for (uint32_t i = 0; i < body->output_count; i++)
    if (skip == NULL || !skip[i]) ids[ins + outs++] = body->outputs[i].value;
  weir_compile_request request = {.graph = body,
                                  .feeds = ids,
                                  .fetches = ids + ins,
                                  .feed_count = ins,
                                  .fetch_count = outs,
                                  .options = c->request->options};
  if (c->partition != NULL) /* its device's */
    request.options.threads = (int)c->partition->parts[c->part].threads;
  return weir_compile_body(c, &request, known, out, err);
}

/* Values and edges of the instruction, which is added. */
static weir_status add(weir_compiler *c, weir_node_id id, weir_instr_spec *spec,
                       weir_error *err) {
  const weir_node *node = &c->graph->nodes[id];
  uint32_t *in = weir_arena_array(c->arena, node->input_count, sizeof *in);
  uint32_t *out = weir_arena_array(c->arena, node->output_count, sizeof *out);
  uint32_t *after =
      weir_arena_array(c->arena, node->after_count, sizeof *after);
  if (in == NULL || out == NULL || after == NULL)
    return weir_fail_memory(err, node->input_count * sizeof *in);
  for (uint32_t i = 0; i < node->input_count; i++)
    in[i] = c->values[node->inputs[i]];
  for (uint32_t i = 0; i < node->output_count; i++) {
    weir_value_spec value = {.storage = WEIR_STORAGE_TEMP};
    WEIR_TRY(weir_compile_value(c, node->first_output + i, &value, err));
    out[i] = c->values[node->first_output + i];
  }
  for (uint32_t i = 0; i < node->after_count; i++)
    if (c->instrs[node->after[i]] != WEIR_NO_INDEX)
      after[spec->after_count++] = c->instrs[node->after[i]];
  spec->in = in;
  spec->out = out;
  spec->after = after;
  spec->in_count = node->input_count;
  spec->out_count = node->output_count;
  spec->node_order = id;
  spec->node = node->name;
  spec->mark = node->mark;
  spec->op = node->op->name;
  spec->kernel = node->op->name;
  return WEIR_OK;
}

/* Hands the instruction over; bodies are its own from here on. */
static weir_status hand_over(weir_compiler *c, weir_node_id id,
                             const weir_instr_spec *spec, weir_error *err) {
  c->instrs[id] = weir_program_add_instr(c->builder, spec);
  return c->instrs[id] == WEIR_NO_INDEX ? weir_fail_memory(err, 0) : WEIR_OK;
}

static void drop_bodies(const weir_program **bodies) {
  weir_program_release(bodies[0]);
  weir_program_release(bodies[1]);
}

static weir_status branch(weir_compiler *c, weir_node_id id,
                          const weir_control *parts, weir_error *err) {
  const weir_node *node = &c->graph->nodes[id];
  const weir_program *bodies[2] = {NULL, NULL};
  weir_instr_spec spec = {.bodies = bodies, .body_count = 2};
  weir_status s = WEIR_OK;
  for (uint32_t k = 0; s == WEIR_OK && k < 2; k++)
    s = compile_body(c, node, parts, node->bodies[k], NULL, &bodies[k], err);
  if (s == WEIR_OK) s = add(c, id, &spec, err);
  if (s == WEIR_OK &&
      weir_instr_branch(c->builder, WEIR_BOOL, &spec) != WEIR_OK)
    s = weir_fail_memory(err, 0);
  if (s == WEIR_OK) return hand_over(c, id, &spec, err);
  drop_bodies(bodies);
  return s;
}

/* ---- Loops */

/* How a value of |whole| is cut along |axis|. */
static weir_slices cut(const weir_compiler *c, weir_value_id whole, int axis) {
  const weir_value *v = &c->graph->values[whole];
  weir_slices s = {1, weir_dtype_size(v->dtype)};
  /* The products divide the value's bytes, which were checked; an empty value
   * has slices of nothing. */
  bool empty = weir_shape_elements(v->shape) == 0;
  for (int d = 0; d < v->shape->rank; d++) {
    size_t size = (size_t)v->shape->dims[d].value;
    if (d < axis && !empty) s.outer *= size;
    if (d > axis && !empty) s.inner *= size;
  }
  if (empty) s.inner = 0;
  return s;
}

static uint32_t stack_output(const weir_control *parts, uint32_t i) {
  return parts->carried + i + (parts->kind == WEIR_CONTROL_WHILE ? 1 : 0);
}

/* The carried value whose next values stack |i| collects: both are the same
 * output of the body, which then writes it once, into the stack. NO_INDEX: the
 * stack has an output of its own. */
static uint32_t same_carried(const weir_control *parts, const weir_graph *body,
                             uint32_t i) {
  weir_value_id value = body->outputs[parts->carried + i].value;
  for (uint32_t k = 0; k < parts->carried; k++)
    if (body->outputs[k].value == value) return k;
  return WEIR_NO_INDEX;
}

static weir_status fill_loop(weir_compiler *c, const weir_node *node,
                             const weir_control *parts, weir_loop_spec *loop,
                             bool *skip, weir_error *err) {
  const weir_graph *body = node->bodies[node->body_count - 1];
  uint32_t sliced = parts->scanned + parts->stacked;
  size_t *bytes = weir_arena_array(c->arena, parts->carried, sizeof *bytes);
  weir_slices *slices = weir_arena_array(c->arena, sliced, sizeof *slices);
  uint32_t *from = weir_arena_array(c->arena, parts->stacked, sizeof *from);
  if (bytes == NULL || slices == NULL || from == NULL)
    return weir_fail_memory(err, sliced * sizeof *slices);
  for (uint32_t i = 0; i < parts->carried; i++)
    bytes[i] = weir_compile_bytes(c, node->inputs[parts->first + i]);
  for (uint32_t i = 0; i < parts->scanned; i++)
    slices[i] = cut(c, node->inputs[parts->first + parts->carried + i],
                    weir_control_axis(parts, i));
  for (uint32_t i = 0; i < parts->stacked; i++) {
    slices[parts->scanned + i] =
        cut(c, node->first_output + stack_output(parts, i),
            weir_control_axis(parts, parts->scanned + i));
    from[i] = same_carried(parts, body, i);
    skip[parts->carried + i] = from[i] != WEIR_NO_INDEX;
  }
  loop->carried_bytes = bytes;
  loop->slices = slices;
  loop->stack_from = from;
  return WEIR_OK;
}

/* Turns at most; -1: no limit. */
static int64_t length_of(const weir_compiler *c, const weir_node *node,
                         const weir_control *parts) {
  if (parts->kind == WEIR_CONTROL_WHILE)
    return parts->limited ? parts->limit : -1;
  if (parts->scanned > 0) {
    weir_value_id x = node->inputs[parts->first + parts->carried];
    return c->graph->values[x].shape->dims[weir_control_axis(parts, 0)].value;
  }
  int at = weir_op_attr_index(node->op, WEIR_SV_LIT("length"));
  return at >= 0 ? node->attrs[at].dims[0].value : 0;
}

static weir_status loop(weir_compiler *c, weir_node_id id,
                        const weir_control *parts, weir_error *err) {
  const weir_node *node = &c->graph->nodes[id];
  const weir_program *bodies[2] = {NULL, NULL};
  const weir_graph *last = node->bodies[node->body_count - 1];
  bool conditional = parts->kind == WEIR_CONTROL_WHILE;
  weir_instr_spec spec = {.bodies = bodies, .body_count = node->body_count};
  weir_loop_spec form = {.carried = parts->carried,
                         .scanned = parts->scanned,
                         .captured = parts->captured,
                         .stacked = parts->stacked,
                         .length = length_of(c, node, parts),
                         .reverse = parts->reverse,
                         .counted = parts->counted,
                         .conditional = conditional,
                         .aligned = !weir_device_kinds[c->kind]->host};
  bool *skip = weir_arena_array(c->arena, last->output_count, sizeof *skip);
  if (skip == NULL) return weir_fail_memory(err, last->output_count);
  weir_status s = add(c, id, &spec, err);
  if (s == WEIR_OK) s = fill_loop(c, node, parts, &form, skip, err);
  for (uint32_t k = 0; s == WEIR_OK && k < node->body_count; k++)
    s = compile_body(c, node, parts, node->bodies[k],
                     k + 1 == node->body_count ? skip : NULL, &bodies[k], err);
  if (s == WEIR_OK && weir_instr_loop(c->builder, &form, &spec) != WEIR_OK)
    s = weir_fail_memory(err, 0);
  if (s == WEIR_OK) return hand_over(c, id, &spec, err);
  drop_bodies(bodies);
  return s;
}

/* In another process's part: values, and no bodies. */
static weir_status add_elsewhere(weir_compiler *c, weir_node_id id,
                                 weir_error *err) {
  weir_instr_spec spec = {.in = NULL};
  WEIR_TRY(add(c, id, &spec, err));
  c->instrs[id] = weir_compile_add_instr(c, &spec);
  return WEIR_OK;
}

weir_status weir_compile_control(weir_compiler *c, weir_node_id id,
                                 weir_error *err) {
  if (c->elsewhere) return add_elsewhere(c, id, err);
  weir_control parts = weir_control_node(&c->graph->nodes[id]);
  return parts.kind == WEIR_CONTROL_IF ? branch(c, id, &parts, err)
                                       : loop(c, id, &parts, err);
}
