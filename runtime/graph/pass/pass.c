/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/pass/pass.h"

#include <assert.h>

#include "runtime/graph/control.h"
#include "runtime/graph/copy.h"
#include "runtime/graph/graph_internal.h"
#include "runtime/graph/node.h"

/* Copying nodes one by one into a new graph.
 *
 * Each copy goes through the builder, so its op's shape rule runs again: a
 * change of one type spreads to all nodes behind it without more work by the
 * pass. Invariant: a node is copied after the producers of its inputs, so these
 * are in the maps; an input that is left out on purpose is dropped by the pass
 * (|input_count| or |inputs|), never by a hole in the maps.
 *
 * A body is shared by reference as long as it fits its node: only a changed
 * type, or a pass that replaces attributes, costs a copy of the body. */

static weir_status make_maps(weir_pass *pass, weir_error *err) {
  const weir_graph *from = pass->from;
  pass->values =
      weir_alloc_array(pass->alloc, from->value_count, sizeof *pass->values);
  pass->nodes =
      weir_alloc_array(pass->alloc, from->node_count, sizeof *pass->nodes);
  if (pass->values == NULL || pass->nodes == NULL)
    return weir_fail_memory(err, from->value_count * sizeof *pass->values);
  for (uint32_t i = 0; i < from->value_count; i++)
    pass->values[i] = WEIR_NO_VALUE;
  for (uint32_t i = 0; i < from->node_count; i++) pass->nodes[i] = UINT32_MAX;
  return WEIR_OK;
}

weir_status weir_pass_begin(weir_pass *pass, const weir_graph *from,
                            weir_error *err) {
  *pass = (weir_pass){.from = from, .alloc = from->alloc};
  WEIR_TRY(weir_graph_builder_derive(from, &pass->builder, err));
  return make_maps(pass, err);
}

weir_status weir_pass_begin_body(weir_pass *pass, const weir_graph *from,
                                 weir_graph_builder *outer, weir_error *err) {
  *pass = (weir_pass){.from = from, .alloc = from->alloc};
  WEIR_TRY(weir_graph_builder_body(outer, from, &pass->builder, err));
  return make_maps(pass, err);
}

/* ---- Bodies */

/* Whether the inputs of |body| have the types that the node's inputs have now.
 */
static bool fits(const weir_pass *pass, const weir_control *c,
                 const weir_graph *body, const weir_value_id *inputs) {
  const weir_graph *g = weir_graph_builder_graph(pass->builder);
  for (uint32_t i = 0; i < body->input_count; i++) {
    const weir_value *have = &body->values[body->inputs[i].value];
    const weir_value *want = &g->values[inputs[c->first + i]];
    weir_shape slice = weir_control_slice(c, i, want->shape);
    if (have->dtype != want->dtype || !weir_shape_equal(have->shape, &slice))
      return false;
  }
  return true;
}

static uint32_t input_of(const weir_graph *body, weir_node_id id) {
  for (uint32_t i = 0; i < body->input_count; i++)
    if (body->values[body->inputs[i].value].node == id) return i;
  return UINT32_MAX;
}

/* An input of the body gets the type of |value|, or its slice's. */
static weir_status copy_body_input(weir_pass *inner, weir_node_id id,
                                   const weir_value *value,
                                   const weir_shape *shape, weir_error *err) {
  const weir_node *node = &inner->from->nodes[id];
  weir_attr attrs[WEIR_OP_ATTRS] = {0};
  int at = weir_op_attr_index(node->op, WEIR_SV_LIT("shape"));
  int dtype = weir_op_attr_index(node->op, WEIR_SV_LIT("dtype"));
  if (at < 0 || dtype < 0 || shape->rank < 0)
    return weir_fail(err, WEIR_W2008, &node->mark,
                     "the ranks of a body's inputs must be known");
  attrs[dtype] = (weir_attr){.kind = WEIR_ATTR_DTYPE, .dtype = value->dtype};
  attrs[at] = (weir_attr){.kind = WEIR_ATTR_INTS,
                          .count = (uint32_t)shape->rank,
                          .dims = shape->dims};
  return weir_pass_copy(inner, id, attrs, UINT32_MAX, err);
}

/* |body| again, for the types that its inputs have now. Recurses as deep as
 * bodies nest. */
static weir_status refit(weir_pass *pass, const weir_control *c,
                         const weir_graph *body, const weir_value_id *inputs,
                         weir_graph **out, weir_error *err) {
  weir_pass inner;
  weir_status s = weir_pass_begin_body(&inner, body, pass->builder, err);
  inner.replace = pass->replace;
  inner.replace_self = pass->replace_self;
  for (weir_node_id id = 0; s == WEIR_OK && id < body->node_count; id++) {
    uint32_t i = body->nodes[id].op->instr == WEIR_INSTR_FEED
                     ? input_of(body, id)
                     : UINT32_MAX;
    if (i == UINT32_MAX) {
      s = weir_pass_copy(&inner, id, NULL, UINT32_MAX, err);
      continue;
    }
    const weir_graph *g = weir_graph_builder_graph(pass->builder);
    weir_value value = g->values[inputs[c->first + i]];
    weir_shape slice = weir_control_slice(c, i, value.shape);
    s = copy_body_input(&inner, id, &value, &slice, err);
  }
  return weir_pass_end(&inner, s, out, err);
}

weir_status weir_pass_rebuild_body(
    weir_graph_builder *outer, const weir_graph *body,
    bool (*replace)(void *self, const weir_node *node, weir_attr *attrs,
                    weir_status *status),
    void *self, weir_graph **out, weir_error *err) {
  weir_pass inner;
  weir_status s = weir_pass_begin_body(&inner, body, outer, err);
  inner.replace = replace;
  inner.replace_self = self;
  for (weir_node_id id = 0; s == WEIR_OK && id < body->node_count; id++)
    s = weir_pass_copy(&inner, id, NULL, UINT32_MAX, err);
  return weir_pass_end(&inner, s, out, err);
}

/* Bodies for the copy: one reference each. */
static weir_status fit_bodies(weir_pass *pass, const weir_node_spec *spec,
                              const weir_graph *const *bodies,
                              const weir_graph **out, weir_error *err) {
  weir_control c;
  if (!weir_control_of(spec->op, spec->attrs, spec->input_count, bodies,
                       spec->body_count, &c))
    return weir_fail(err, WEIR_W9001, &spec->mark,
                     "a body does not fit its node");
  for (uint32_t k = 0; k < spec->body_count; k++) {
    weir_graph *made = NULL;
    if (pass->replace == NULL && fits(pass, &c, bodies[k], spec->inputs))
      made = weir_graph_ref(bodies[k]);
    else
      WEIR_TRY(refit(pass, &c, bodies[k], spec->inputs, &made, err));
    out[k] = made;
  }
  return WEIR_OK;
}

/* ---- Copies */

/* The mapped inputs and then control predecessors of |node|, in |ids|. */
static uint32_t map_edges(const weir_pass *pass, const weir_node *node,
                          const weir_value_id *inputs, uint32_t input_count,
                          uint32_t *ids) {
  uint32_t after_count = 0;
  for (uint32_t i = 0; i < input_count; i++) {
    ids[i] = weir_pass_mapped(pass->values, inputs[i]);
    assert(inputs[i] == WEIR_NO_VALUE || ids[i] != WEIR_NO_VALUE);
  }
  for (uint32_t i = 0; i < node->after_count; i++) {
    weir_node_id mapped = pass->nodes[node->after[i]];
    if (mapped != UINT32_MAX) ids[input_count + after_count++] = mapped;
  }
  return after_count;
}

static weir_status add_copy(weir_pass *pass, weir_node_spec *spec,
                            const weir_graph *const *bodies, weir_node_id *out,
                            weir_error *err) {
  const weir_graph *fitted[2] = {NULL, NULL};
  weir_status s = WEIR_OK;
  if (spec->body_count > 2)
    s = weir_fail(err, WEIR_W9001, &spec->mark, "more than two bodies");
  else if (spec->body_count > 0)
    s = fit_bodies(pass, spec, bodies, fitted, err);
  spec->bodies = fitted;
  if (s == WEIR_OK) {
    s = weir_graph_builder_add(pass->builder, spec, out, NULL);
    if (s != WEIR_OK) weir_error_copy(err, &pass->builder->diag.error);
  }
  weir_graph_unref(fitted[0]);
  weir_graph_unref(fitted[1]);
  return s;
}

/* Enters the outputs of old node |id| in the map, unless a change dropped them.
 */
static void enter(weir_pass *pass, weir_node_id id, weir_node_id added,
                  const uint32_t *outputs) {
  const weir_node *node = &pass->from->nodes[id];
  pass->nodes[id] = added;
  for (uint32_t i = 0; i < node->output_count; i++) {
    uint32_t to = outputs != NULL ? outputs[i] : i;
    if (to != UINT32_MAX)
      pass->values[node->first_output + i] =
          weir_graph_builder_output(pass->builder, added, to);
  }
}

weir_status weir_pass_copy_with(weir_pass *pass, weir_node_id id,
                                const weir_pass_change *change,
                                weir_error *err) {
  const weir_node *node = &pass->from->nodes[id];
  const weir_value_id *inputs =
      change->inputs != NULL ? change->inputs : node->inputs;
  weir_attr replaced[WEIR_OP_ATTRS];
  const weir_attr *attrs = change->attrs;
  uint32_t count = change->input_count;
  weir_status s = WEIR_OK;
  if (change->inputs == NULL && count > node->input_count)
    count = node->input_count;
  if (attrs == NULL && pass->replace != NULL &&
      pass->replace(pass->replace_self, node, replaced, &s))
    attrs = replaced;
  if (s != WEIR_OK) return weir_fail_memory(err, sizeof replaced);
  /* Most nodes have few edges: no allocation for them. */
  uint32_t local[16], *ids = local, room = count + node->after_count;
  if (room > 16) ids = weir_alloc_array(pass->alloc, room, sizeof *ids);
  if (ids == NULL) return weir_fail_memory(err, room * sizeof *ids);
  uint32_t after_count = map_edges(pass, node, inputs, count, ids);
  bool twin = node->twin != WEIR_NO_VALUE;
  weir_node_spec spec = {
      .name = node->name,
      .op = node->op,
      .attrs = attrs != NULL ? attrs : node->attrs,
      .inputs = ids,
      .after = ids + count,
      .input_count = count,
      .after_count = after_count,
      .device = change->device != NULL ? *change->device : node->device,
      .mark = node->mark,
      .has_seed = true,
      .seed = node->seed,
      .body_count = node->body_count,
      .has_twin = twin && pass->nodes[node->twin] != UINT32_MAX,
      .twin = twin ? pass->nodes[node->twin] : WEIR_NO_VALUE,
      .update = node->update};
  weir_node_id added = UINT32_MAX;
  s = add_copy(pass, &spec,
               change->bodies != NULL ? change->bodies : node->bodies, &added,
               err);
  if (ids != local) weir_free(pass->alloc, ids);
  if (s == WEIR_OK) enter(pass, id, added, change->outputs);
  return s;
}

weir_status weir_pass_copy(weir_pass *pass, weir_node_id id,
                           const weir_attr *attrs, uint32_t input_count,
                           weir_error *err) {
  weir_pass_change change = {.attrs = attrs, .input_count = input_count};
  return weir_pass_copy_with(pass, id, &change, err);
}

void weir_pass_drop(weir_pass *pass) {
  weir_graph_builder_release(pass->builder);
  weir_free(pass->alloc, pass->values);
  weir_free(pass->alloc, pass->nodes);
}

weir_status weir_pass_end(weir_pass *pass, weir_status status,
                          weir_graph **out_graph, weir_error *err) {
  *out_graph = NULL;
  if (status == WEIR_OK && !pass->own_ports)
    status = weir_graph_builder_copy_ports(pass->builder, pass->from,
                                           pass->values, err);
  if (status == WEIR_OK)
    status = weir_graph_builder_finish(pass->builder, out_graph, err);
  weir_pass_drop(pass);
  return status;
}
