/* SPDX-License-Identifier: Apache-2.0
 *
 * A convolution whose channels are then normalised by constant statistics is a
 * convolution with other weights:
 *
 *   batch_norm(conv2d(x, w, b)) = conv2d(x, w k, (b - mean) k + bias),
 *   k = scale / sqrt(var + epsilon), one number for each output channel.
 *
 * batch_norm itself makes the new weights, of rows that are w's filters, with a
 * bias and a mean of 0, and the new bias, of b as one row: the compiler
 * computes both once, since all that they read is constant.
 *
 * A pair is folded if the convolution's output has no other reader and all that
 * the two read beside x are variables that nothing assigns. So a training step
 * keeps its batch_norm_train, and a graph that is trained and evaluated in one
 * session its batch_norm. Cost: one walk to count readers, one to copy.
 * Source: Jacob et al., arXiv:1712.05877, section 3.2. */
#include "runtime/graph/pass/pass_norm.h"

#include <stdio.h>
#include <string.h>

#include "ops/rules.h"
#include "runtime/base/strbuf.h"
#include "runtime/graph/graph_internal.h"
#include "runtime/graph/node.h"
#include "runtime/graph/pass/pass.h"

enum { kMany = 2, kNorm = 5, kNameBytes = 512 };

typedef struct folder {
  weir_pass pass;
  const weir_graph *graph;
  const bool *held;
  uint8_t *readers;    /* by value: 0, 1, or kMany */
  weir_node_id *norms; /* by node: of a convolution, the batch_norm that takes
                          it along; else UINT32_MAX */
  uint32_t pairs;
  weir_error *err;
} folder;

void weir_graph_mark_assigned(const weir_graph *graph, const weir_value_id *map,
                              bool *held) {
  for (weir_node_id id = 0; id < graph->node_count; id++) {
    const weir_node *node = &graph->nodes[id];
    if (node->op->instr != WEIR_INSTR_VAR_COMMIT) continue;
    weir_node_id owner = graph->values[node->inputs[0]].node;
    weir_value_id at = map[graph->nodes[owner].first_output];
    if (at != WEIR_NO_VALUE) held[at] = true;
  }
}

/* ---- Finding pairs */

static void note_readers(folder *f) {
  const weir_graph *g = f->graph;
  for (weir_node_id id = 0; id < g->node_count; id++) {
    const weir_node *node = &g->nodes[id];
    for (uint32_t i = 0; i < node->input_count; i++)
      if (node->inputs[i] != WEIR_NO_VALUE &&
          f->readers[node->inputs[i]] < kMany)
        f->readers[node->inputs[i]]++;
    for (uint32_t i = 0; i < node->after_count; i++) {
      const weir_node *before = &g->nodes[node->after[i]];
      for (uint32_t k = 0; k < before->output_count; k++)
        f->readers[before->first_output + k] = kMany;
    }
  }
  for (uint32_t i = 0; i < g->output_count; i++)
    f->readers[g->outputs[i].value] = kMany;
  for (weir_value_id v = 0; v < g->value_count; v++)
    if (f->held[v]) f->readers[v] = kMany;
}

static bool is_op(const weir_node *node, const char *name) {
  return strcmp(node->op->name, name) == 0;
}

/* Whether inputs |from| and on are variables that nothing assigns. */
static bool is_constant(const folder *f, const weir_node *node, uint32_t from) {
  for (uint32_t i = from; i < node->input_count; i++) {
    weir_value_id value = node->inputs[i];
    if (value == WEIR_NO_VALUE) continue;
    const weir_value *v = &f->graph->values[value];
    if (f->graph->nodes[v->node].op->instr != WEIR_INSTR_VAR_READ ||
        f->held[value] || !weir_shape_known(v->shape))
      return false;
  }
  return true;
}

/* The convolution that batch_norm |id| takes along, or UINT32_MAX. */
static weir_node_id find_conv(const folder *f, weir_node_id id) {
  const weir_graph *g = f->graph;
  const weir_node *norm = &g->nodes[id];
  if (!is_op(norm, "batch_norm") || norm->after_count > 0 ||
      !is_constant(f, norm, 1))
    return UINT32_MAX;
  weir_node_id at = g->values[norm->inputs[0]].node;
  const weir_node *conv = &g->nodes[at];
  bool alone = f->readers[norm->inputs[0]] == 1;
  return alone && is_op(conv, "conv2d") && conv->after_count == 0 &&
                 is_constant(f, conv, 1) &&
                 weir_sv_equal(conv->device, norm->device)
             ? at
             : UINT32_MAX;
}

static weir_status prepare(folder *f) {
  const weir_graph *g = f->graph;
  f->readers = weir_alloc_array(g->alloc, g->value_count, sizeof *f->readers);
  f->norms = weir_alloc_array(g->alloc, g->node_count, sizeof *f->norms);
  if (f->readers == NULL || f->norms == NULL)
    return weir_fail_memory(f->err, g->node_count * sizeof *f->norms);
  memset(f->norms, 0xff, g->node_count * sizeof *f->norms);
  note_readers(f);
  for (weir_node_id id = 0; id < g->node_count; id++) {
    weir_node_id conv = find_conv(f, id);
    if (conv == UINT32_MAX) continue;
    f->norms[conv] = id;
    f->pairs++;
  }
  return WEIR_OK;
}

/* ---- Writing them */

/* One pair as it is written; ids of the new graph. */
typedef struct pair {
  folder *f;
  const weir_node *conv, *norm;
  weir_status status;
} pair;

/* The batch_norm's name and |suffix|; for none, its name. A name with '/' in it
 * is no user's, and a block has no node `fold`. */
static weir_status make_name(pair *p, const char *suffix, weir_sv *out) {
  *out = p->norm->name;
  if (suffix == NULL) return WEIR_OK;
  weir_strbuf text;
  weir_strbuf_init(&text, p->f->graph->alloc);
  weir_strbuf_printf(&text, "%.*s/fold/%s", WEIR_SV(p->norm->name), suffix);
  weir_sv view = weir_strbuf_view(&text);
  weir_status s = weir_strbuf_status(&text, p->f->err);
  out->size = view.size;
  if (s == WEIR_OK)
    out->data = weir_arena_string(weir_graph_builder_arena(p->f->pass.builder),
                                  view.data, view.size);
  weir_strbuf_release(&text);
  return s == WEIR_OK && out->data == NULL
             ? weir_fail_memory(p->f->err, out->size)
             : s;
}

static weir_value_id add(pair *p, const char *suffix, const char *op,
                         uint32_t count, const weir_value_id *in,
                         const weir_attr *attrs) {
  weir_graph_builder *b = p->f->pass.builder;
  weir_node_spec spec = {
      .op = weir_registry_find_op(p->f->graph->registry, weir_sv_from(op)),
      .attrs = attrs,
      .inputs = in,
      .input_count = count,
      .device = p->norm->device,
      .mark = p->norm->mark};
  weir_node_id node = UINT32_MAX;
  if (p->status == WEIR_OK) p->status = make_name(p, suffix, &spec.name);
  if (p->status != WEIR_OK) return WEIR_NO_VALUE;
  p->status = weir_graph_builder_add(b, &spec, &node, NULL);
  if (p->status == WEIR_OK) return weir_graph_builder_output(b, node, 0);
  *p->f->err = b->diag.error;
  return WEIR_NO_VALUE;
}

static weir_value_id reshape(pair *p, const char *suffix, weir_value_id x,
                             const weir_shape *shape) {
  const weir_attr attrs[] = {{.kind = WEIR_ATTR_INTS,
                              .count = (uint32_t)shape->rank,
                              .dims = shape->dims}};
  return add(p, suffix, "reshape", 1, &x, attrs);
}

/* |x| with the channels in front, normalised: as one image of rows. |norm| has
 * the operands scale to var. */
static weir_value_id normalised(pair *p, const char *suffix, weir_value_id x,
                                const weir_shape *shape,
                                const weir_value_id *norm) {
  char name[3][32];
  static const char *const kSteps[] = {"rows", "norm", "new"};
  for (int i = 0; i < 3; i++)
    snprintf(name[i], sizeof name[i], "%s_%s", suffix, kSteps[i]);
  weir_shape rows = weir_shape_scalar();
  weir_shape_push(&rows, weir_dim_of(1));
  for (int32_t i = 0; i < shape->rank; i++)
    weir_shape_push(&rows, shape->dims[i]);
  weir_value_id in[kNorm] = {reshape(p, name[0], x, &rows), norm[0], norm[1],
                             norm[2], norm[3]};
  weir_value_id y = add(p, name[1], "batch_norm", kNorm, in, p->norm->attrs);
  return reshape(p, name[2], y, shape);
}

static weir_value_id mapped(const pair *p, weir_value_id old) {
  return weir_pass_mapped(p->f->pass.values, old);
}

/* The convolution with new weights, in the place and under the name of the
 * batch_norm. */
static weir_status write_pair(pair *p, weir_node_id conv_id,
                              weir_node_id norm_id) {
  const weir_value *values = p->f->graph->values;
  const weir_node *conv = p->conv, *norm = p->norm;
  const weir_shape *vector = values[norm->inputs[1]].shape;
  bool biased = conv->input_count > 2 && conv->inputs[2] != WEIR_NO_VALUE;
  weir_value_id scale = mapped(p, norm->inputs[1]);
  weir_value_id zero = add(p, "zero", "zeros_like", 1, &scale, NULL);
  weir_value_id var = mapped(p, norm->inputs[4]);
  weir_value_id plain[] = {scale, zero, zero, var};
  weir_value_id moved[] = {scale, mapped(p, norm->inputs[2]),
                           mapped(p, norm->inputs[3]), var};
  weir_value_id in[3] = {mapped(p, conv->inputs[0])};
  in[1] = normalised(p, "w", mapped(p, conv->inputs[1]),
                     values[conv->inputs[1]].shape, plain);
  in[2] = normalised(p, "b", biased ? mapped(p, conv->inputs[2]) : zero, vector,
                     moved);
  weir_value_id y = add(p, NULL, "conv2d", 3, in, conv->attrs);
  if (p->status != WEIR_OK) return p->status;
  weir_graph_builder *b = p->f->pass.builder;
  weir_node_id at = weir_graph_builder_graph(b)->values[y].node;
  p->f->pass.values[conv->first_output] = WEIR_NO_VALUE;
  p->f->pass.values[norm->first_output] = y;
  p->f->pass.nodes[conv_id] = p->f->pass.nodes[norm_id] = at;
  return WEIR_OK;
}

static weir_status write(folder *f) {
  const weir_graph *g = f->graph;
  weir_status s = WEIR_OK;
  for (weir_node_id id = 0; s == WEIR_OK && id < g->node_count; id++) {
    const weir_node *node = &g->nodes[id];
    if (f->norms[id] != UINT32_MAX) continue; /* comes with its batch_norm */
    weir_node_id conv = is_op(node, "batch_norm")
                            ? g->values[node->inputs[0]].node
                            : UINT32_MAX;
    if (conv == UINT32_MAX || f->norms[conv] != id) {
      s = weir_pass_copy(&f->pass, id, NULL, UINT32_MAX, f->err);
    } else {
      pair p = {f, &g->nodes[conv], node, WEIR_OK};
      s = write_pair(&p, conv, id);
    }
  }
  return s;
}

static void copy_maps(const folder *f, weir_value_id *out_values,
                      weir_node_id *out_nodes) {
  const weir_graph *g = f->graph;
  for (weir_value_id v = 0; out_values != NULL && v < g->value_count; v++)
    out_values[v] = f->pairs > 0 ? f->pass.values[v] : v;
  for (weir_node_id id = 0; out_nodes != NULL && id < g->node_count; id++)
    out_nodes[id] = f->pairs > 0 ? f->pass.nodes[id] : id;
}

weir_status weir_graph_fold_norms(const weir_graph *graph, const bool *held,
                                  weir_value_id *out_values,
                                  weir_node_id *out_nodes,
                                  weir_graph **out_graph, weir_error *err) {
  folder f = {.graph = graph, .held = held, .err = err};
  *out_graph = NULL;
  weir_status s = prepare(&f);
  if (s == WEIR_OK && f.pairs == 0) {
    copy_maps(&f, out_values, out_nodes);
    *out_graph = weir_graph_ref(graph);
  } else if (s == WEIR_OK) {
    s = weir_pass_begin(&f.pass, graph, err);
    if (s == WEIR_OK) s = write(&f);
    if (s == WEIR_OK) copy_maps(&f, out_values, out_nodes);
    s = weir_pass_end(&f.pass, s, out_graph, err);
  }
  weir_free(graph->alloc, f.readers);
  weir_free(graph->alloc, f.norms);
  return s;
}
