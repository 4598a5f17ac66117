/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/mesh/mesh_lower.h"

#include <inttypes.h>
#include <string.h>

#include "ops/grads.h"
#include "runtime/graph/mesh/mesh_add.h"
#include "runtime/graph/mesh/mesh_internal.h"
#include "runtime/graph/mesh/mesh_move.h"
#include "runtime/graph/mesh/mesh_rule.h"
#include "runtime/graph/mesh/mesh_spec.h"
#include "runtime/graph/mesh/mesh_var.h"
#include "runtime/graph/mesh/mesh_whole.h"

/* Nodes in order: a plan by the rule of the op, inputs moved into the cuts that
 * it asks for, one copy per device, outputs moved into the cuts of their names.
 *
 * Invariants: when a node is taken, its inputs have variants, and the first of
 * each is the cut of its names (unless a rule keeps another); the local shape
 * that an op's own shape rule finds for a copy is the part of the whole shape
 * (check_shape), so a wrong rule fails here and not in a kernel.
 *
 * Cost: devices times nodes, and the nodes of moves. A cut that is asked for
 * twice is made once. */

/* ---- Inputs */

/* An input is fed on device 0; each device gets its part from there. */
static weir_status lower_feed(weir_mesh_lower *l, weir_node_id id) {
  const weir_node *node = &l->from->nodes[id];
  WEIR_TRY(weir_pass_copy(&l->pass, id, NULL, UINT32_MAX, l->err));
  weir_mesh_variant *v = weir_arena_array(&l->work, 1, sizeof *v);
  weir_value_id *ids = weir_mesh_ids(l, l->devices);
  if (v == NULL || ids == NULL) return weir_fail_memory(l->err, sizeof *v);
  for (uint32_t d = 0; d < l->devices; d++) {
    ids[d] = l->pass.values[node->first_output];
    l->copies[id * l->devices + d] = l->pass.nodes[id];
  }
  *v = (weir_mesh_variant){weir_mesh_whole(), ids, NULL};
  l->variants[node->first_output] = v;
  weir_mesh_spec spec;
  const weir_value_id *parts;
  WEIR_TRY(weir_mesh_spec_of(l->from, node->first_output, &spec, l->err));
  l->feeding = true;
  WEIR_TRY(weir_mesh_get(l, node->first_output, &spec, &parts));
  l->feeding = false;
  if (v->next == NULL) return WEIR_OK;
  v->next->next = v; /* the cut of its names comes first */
  l->variants[node->first_output] = v->next;
  v->next = NULL;
  return WEIR_OK;
}

/* ---- Copies of a node, one for each device */

static weir_status make_plan(weir_mesh_lower *l, const weir_node *node,
                             weir_mesh_plan *plan) {
  *plan = (weir_mesh_plan){.node = node};
  plan->in = weir_arena_array(&l->work, node->input_count, sizeof *plan->in);
  plan->out = weir_arena_array(&l->work, node->output_count, sizeof *plan->out);
  if (plan->in == NULL || plan->out == NULL)
    return weir_fail_memory(l->err, sizeof *plan->in);
  for (uint32_t i = 0; i < node->input_count; i++)
    plan->in[i] = weir_mesh_whole();
  for (uint32_t i = 0; i < node->output_count; i++)
    plan->out[i] = weir_mesh_whole();
  weir_mesh_rule(l, plan);
  return WEIR_OK;
}

/* A value that is known when the graph is made becomes a constant: the size of
 * a dimension, asked of a part, would be the part's. */
static weir_tensor *known_value(const weir_mesh_lower *l,
                                const weir_node *node) {
  if (node->output_count != 1 || node->op->instr != WEIR_INSTR_KERNEL ||
      (node->op->flags & (WEIR_OP_EFFECT | WEIR_OP_RANDOM)) != 0)
    return NULL;
  return l->from->values[node->first_output].known;
}

typedef struct copier {
  weir_mesh_lower *l;
  const weir_mesh_plan *plan;
  weir_node_id id;
  const weir_value_id **in; /* by input: by device */
  weir_value_id *inputs;    /* of one copy */
  weir_node_id *after;
} copier;

static weir_status prepare(copier *c) {
  const weir_node *node = c->plan->node;
  weir_mesh_lower *l = c->l;
  c->in = weir_arena_array(&l->work, node->input_count, sizeof *c->in);
  c->inputs = weir_mesh_ids(l, node->input_count);
  c->after = weir_mesh_ids(l, node->after_count);
  if (c->in == NULL || c->inputs == NULL || c->after == NULL)
    return weir_fail_memory(l->err, sizeof *c->in);
  for (uint32_t i = 0; i < node->input_count; i++)
    if (node->inputs[i] != WEIR_NO_VALUE)
      WEIR_TRY(weir_mesh_get(l, node->inputs[i], &c->plan->in[i], &c->in[i]));
  return WEIR_OK;
}

/* The copy's attributes: the old ones but for shape and reduction. */
static void fill_attrs(const copier *c, weir_shape *shape, weir_attr *attrs) {
  const weir_node *node = c->plan->node;
  uint32_t count = weir_op_attr_count(node->op);
  for (uint32_t i = 0; i < count; i++) {
    attrs[i] = node->attrs[i];
    const char *name = node->op->attrs[i].name;
    if (c->plan->cut_shape && strcmp(name, "shape") == 0) {
      const weir_value *v = &c->l->from->values[node->first_output];
      *shape = weir_mesh_local(c->l->mesh, &c->plan->out[0], v->shape);
      attrs[i] = weir_attr_shape(shape);
    } else if (c->plan->sum_reduction && strcmp(name, "reduction") == 0) {
      attrs[i].s = WEIR_SV_LIT("sum");
    }
  }
}

/* A shape that is not known whole is not compared. */
static weir_status check_shape(const copier *c, weir_node_id made,
                               uint32_t out) {
  const weir_mesh_lower *l = c->l;
  const weir_node *node = c->plan->node;
  const weir_graph *g = weir_graph_builder_graph(l->pass.builder);
  const weir_shape *whole = l->from->values[node->first_output + out].shape;
  weir_shape want = weir_mesh_local(l->mesh, &c->plan->out[out], whole);
  weir_value_id got = g->nodes[made].first_output + out;
  if (!weir_shape_known(whole) || weir_shape_equal(g->values[got].shape, &want))
    return WEIR_OK;
  char is[128], wanted[128];
  return weir_fail(l->err, WEIR_W9001, &node->mark,
                   "%.*s on one device of the mesh is %s, and should be %s",
                   WEIR_SV(node->name),
                   weir_graph_type_text(g, got, is, sizeof is),
                   weir_shape_print(&want, NULL, NULL, wanted, sizeof wanted));
}

static weir_status copy_one(copier *c, uint32_t device) {
  weir_mesh_lower *l = c->l;
  const weir_node *node = c->plan->node;
  weir_attr attrs[WEIR_OP_ATTRS];
  weir_shape shape;
  uint32_t after_count = 0;
  fill_attrs(c, &shape, attrs);
  for (uint32_t i = 0; i < node->input_count; i++)
    c->inputs[i] = c->in[i] != NULL ? c->in[i][device] : WEIR_NO_VALUE;
  for (uint32_t i = 0; i < node->after_count; i++)
    c->after[after_count++] = l->copies[node->after[i] * l->devices + device];
  weir_mesh_node copy = {.of = node,
                         .what = "",
                         .device = device,
                         .op = c->plan->op,
                         .attrs = attrs,
                         .inputs = c->inputs,
                         .after = c->after,
                         .input_count = node->input_count,
                         .after_count = after_count};
  weir_node_id made;
  WEIR_TRY(weir_mesh_add(l, &copy, &made));
  l->copies[c->id * l->devices + device] = made;
  for (uint32_t i = 0; i < node->output_count; i++)
    WEIR_TRY(check_shape(c, made, i));
  return WEIR_OK;
}

static weir_status copy_known(weir_mesh_lower *l, weir_node_id id,
                              weir_tensor *tensor) {
  const weir_node *node = &l->from->nodes[id];
  weir_named_attr attrs[] = {
      {"value", {.kind = WEIR_ATTR_TENSOR, .tensor = tensor}},
      {"dtype", weir_attr_dtype(tensor->dtype)},
      {NULL, {.kind = WEIR_ATTR_NONE}}};
  for (uint32_t d = 0; d < l->devices; d++) {
    weir_mesh_node copy = {
        .of = node, .what = "", .device = d, .op = "const", .named = attrs};
    WEIR_TRY(weir_mesh_add(l, &copy, &l->copies[id * l->devices + d]));
  }
  return WEIR_OK;
}

/* ---- Outputs */

/* sum / count, on each device. */
static weir_status divide(weir_mesh_lower *l, const weir_mesh_plan *plan,
                          weir_mesh_moving *m, weir_dtype dtype) {
  weir_named_attr attrs[] = {
      {"shape", weir_attr_dims(0, NULL)},
      {"value", weir_attr_float((double)plan->divide_by)},
      {"dtype", weir_attr_dtype(dtype)},
      {NULL, {.kind = WEIR_ATTR_NONE}}};
  for (uint32_t d = 0; d < l->devices; d++) {
    weir_mesh_node count = {.of = plan->node,
                            .what = "count",
                            .device = d,
                            .op = "fill",
                            .named = attrs};
    weir_value_id in[2] = {m->ids[d], WEIR_NO_VALUE};
    WEIR_TRY(weir_mesh_add_value(l, &count, &in[1]));
    weir_mesh_node mean = {.of = plan->node,
                           .what = "mean",
                           .device = d,
                           .op = "div",
                           .inputs = in,
                           .input_count = 2};
    WEIR_TRY(weir_mesh_add_value(l, &mean, &m->ids[d]));
  }
  return WEIR_OK;
}

/* Output |i| in the cut that its names say. Partial sums are added up here, at
 * the node that made them: no other node has to know of them. */
static weir_status finish_output(weir_mesh_lower *l, const weir_mesh_plan *plan,
                                 weir_node_id id, uint32_t i) {
  weir_value_id old = plan->node->first_output + i;
  const weir_value *value = &l->from->values[old];
  weir_mesh_variant *v = weir_arena_array(&l->work, 1, sizeof *v);
  weir_value_id *ids = weir_mesh_ids(l, l->devices);
  if (v == NULL || ids == NULL) return weir_fail_memory(l->err, sizeof *v);
  for (uint32_t d = 0; d < l->devices; d++)
    ids[d] = weir_graph_builder_output(l->pass.builder,
                                       l->copies[id * l->devices + d], i);
  weir_mesh_moving m = {.node = plan->node,
                        .shape = value->shape,
                        .spec = plan->out[i],
                        .partial = plan->partial,
                        .ids = ids};
  weir_mesh_spec to = plan->out[i];
  if (!plan->keep) WEIR_TRY(weir_mesh_spec_of(l->from, old, &to, l->err));
  WEIR_TRY(weir_mesh_move(l, &m, &to));
  if (plan->divide_by > 0) WEIR_TRY(divide(l, plan, &m, value->dtype));
  *v = (weir_mesh_variant){to, ids, NULL};
  l->variants[old] = v;
  return WEIR_OK;
}

static weir_status lower_node(weir_mesh_lower *l, weir_node_id id) {
  const weir_node *node = &l->from->nodes[id];
  weir_mesh_plan plan;
  if (node->op->instr == WEIR_INSTR_FEED) return lower_feed(l, id);
  weir_tensor *known = known_value(l, node);
  WEIR_TRY(make_plan(l, node, &plan));
  if (known != NULL) {
    plan = (weir_mesh_plan){.node = node, .in = plan.in, .out = plan.out};
    plan.out[0] = weir_mesh_whole();
    WEIR_TRY(copy_known(l, id, known));
  } else {
    copier c = {.l = l, .plan = &plan, .id = id};
    WEIR_TRY(prepare(&c));
    for (uint32_t d = 0; d < l->devices; d++) WEIR_TRY(copy_one(&c, d));
  }
  for (uint32_t i = 0; i < node->output_count; i++)
    WEIR_TRY(finish_output(l, &plan, id, i));
  return weir_mesh_join(l, id);
}

/* ---- The pass */

static weir_status begin(weir_mesh_lower *l) {
  const weir_graph *g = l->from;
  WEIR_TRY(weir_pass_begin(&l->pass, g, l->err));
  size_t copies = (size_t)g->node_count * l->devices;
  l->variants = weir_arena_array(&l->work, g->value_count, sizeof *l->variants);
  l->copies = weir_mesh_ids(l, copies);
  if (l->variants == NULL || l->copies == NULL)
    return weir_fail_memory(l->err, copies * sizeof *l->copies);
  weir_graph *made = weir_graph_builder_graph(l->pass.builder);
  made->mesh = NULL;
  return WEIR_OK;
}

/* The maps outlive the pass. */
static weir_status keep_maps(weir_mesh_lower *l) {
  const weir_graph *g = l->from;
  weir_mesh_graph *out = l->out;
  weir_value_id *values =
      weir_arena_array(&out->arena, g->value_count, sizeof *values);
  weir_node_id *nodes =
      weir_arena_array(&out->arena, g->node_count, sizeof *nodes);
  if (values == NULL || nodes == NULL)
    return weir_fail_memory(l->err, g->value_count * sizeof *values);
  if (g->value_count > 0)
    memcpy(values, l->pass.values, g->value_count * sizeof *values);
  if (g->node_count > 0)
    memcpy(nodes, l->pass.nodes, g->node_count * sizeof *nodes);
  out->values = values;
  out->nodes = nodes;
  out->groups = l->groups;
  out->device_count = l->devices;
  return weir_mesh_vars(l);
}

weir_status weir_graph_mesh(const weir_graph *graph, weir_mesh_graph **out_mesh,
                            weir_error *err) {
  weir_error local = WEIR_ERROR_INIT;
  weir_mesh_graph *out = weir_alloc_array(graph->alloc, 1, sizeof *out);
  weir_mesh_lower l = {.from = graph,
                       .mesh = graph->mesh,
                       .out = out,
                       .devices = graph->mesh->device_count,
                       .err = err != NULL ? err : &local};
  *out_mesh = NULL;
  if (out == NULL) return weir_fail_memory(err, sizeof *out);
  weir_arena_init(&out->arena, graph->alloc);
  weir_arena_init(&l.work, graph->alloc);
  weir_status s = begin(&l);
  for (weir_node_id id = 0; s == WEIR_OK && id < graph->node_count; id++)
    s = lower_node(&l, id);
  if (s == WEIR_OK) s = keep_maps(&l);
  s = weir_pass_end(&l.pass, s, &out->graph, l.err);
  weir_arena_release(&l.work);
  if (s == WEIR_OK)
    *out_mesh = out;
  else
    weir_mesh_graph_release(out);
  return s;
}

void weir_mesh_graph_release(weir_mesh_graph *mesh) {
  if (mesh == NULL) return;
  const weir_allocator *alloc = mesh->arena.alloc;
  weir_graph_unref(mesh->graph);
  weir_arena_release(&mesh->arena);
  weir_free(alloc, mesh);
}
