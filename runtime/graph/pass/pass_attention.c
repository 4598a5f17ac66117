/* SPDX-License-Identifier: Apache-2.0 */
/* Attention from its parts.
 *
 * Each product that reads a softmax is tried (attention_match.c). A match is
 * written at its last node forward and at the first product of its gradient,
 * where all that they read is there; its other nodes are left out. Turned heads
 * are read where they lie: views take the transposes' names. Cost: linear in
 * nodes and edges.
 *
 * A row that a mask of -inf hides whole is NaN in parts, and 0 in one node. */
#include "runtime/graph/pass/pass_attention.h"

#include <string.h>

#include "ops/grads.h"
#include "runtime/graph/graph_internal.h"
#include "runtime/graph/node.h"
#include "runtime/graph/pass/attention_match.h"
#include "runtime/graph/pass/pass.h"

/* One attention, and ids of the new graph once it is written. */
typedef struct rewrite {
  weir_attention_match m;
  weir_value_id in[3], mask, y, lse; /* as the new nodes have them */
} rewrite;

typedef struct attender {
  weir_pass pass;
  const weir_graph *graph;
  weir_attention_finder finder;
  bool *gone; /* per node */
  rewrite *matches;
  uint32_t count;
} attender;

static const weir_node *producer(const attender *a, weir_value_id value) {
  return &a->graph->nodes[a->graph->values[value].node];
}

static const weir_shape *shape_of(const attender *a, weir_value_id value) {
  return a->graph->values[value].shape;
}

static void find(attender *a) {
  for (weir_node_id id = 0; id < a->graph->node_count; id++) {
    weir_attention_match *m = &a->matches[a->count].m;
    if (!weir_attention_find(&a->finder, id, m) ||
        m->elsewhere != WEIR_NO_VALUE)
      continue;
    for (uint32_t i = 0; i < m->part_count; i++) a->gone[m->parts[i]] = true;
    a->count++;
  }
}

/* ---- Writing */

/* Adds a node in the place, and under the name, of the one that makes |named|.
 */
static weir_status add(attender *a, weir_value_id named, weir_node_spec *spec,
                       const char *op, weir_node_id *out, weir_error *err) {
  spec->name = producer(a, named)->name;
  spec->mark = producer(a, named)->mark;
  spec->op = weir_registry_find_op(a->graph->registry, weir_sv_from(op));
  weir_status s = weir_graph_builder_add(a->pass.builder, spec, out, NULL);
  if (s != WEIR_OK) weir_error_copy(err, &a->pass.builder->diag.error);
  return s;
}

static weir_value_id output(const attender *a, weir_node_id node, uint32_t i) {
  return weir_graph_builder_output(a->pass.builder, node, i);
}

static weir_status reshape(attender *a, weir_value_id named, weir_value_id x,
                           const weir_attr *shape, weir_value_id *out,
                           weir_error *err) {
  weir_node_id node;
  weir_node_spec spec = {.attrs = shape, .inputs = &x, .input_count = 1};
  WEIR_TRY(add(a, named, &spec, "reshape", &node, err));
  *out = output(a, node, 0);
  return WEIR_OK;
}

/* The operand |value| as the new node reads it: turned heads as [b, t, h d]. */
static weir_status operand(attender *a, const weir_attention_match *m,
                           weir_value_id value, weir_value_id *out,
                           weir_error *err) {
  weir_value_id source = weir_attention_operand(&a->finder, m, value);
  *out = a->pass.values[source];
  if (!m->turned) return WEIR_OK;
  const weir_dim *d = shape_of(a, source)->dims;
  weir_dim dims[] = {d[0], d[1], weir_dim_of(d[2].value * d[3].value)};
  weir_attr shape = weir_attr_dims(3, dims);
  return reshape(a, value, *out, &shape, out, err);
}

/* |made|, of the new node, takes the place of the result |value|. */
static weir_status result(attender *a, const weir_attention_match *m,
                          weir_value_id value, weir_value_id made,
                          weir_error *err) {
  weir_value_id old = weir_attention_result(&a->finder, m, value);
  if (m->turned) {
    weir_attr shape = weir_attr_shape(shape_of(a, old));
    WEIR_TRY(reshape(a, old, made, &shape, &made, err));
  }
  a->pass.values[old] = made;
  a->pass.nodes[a->graph->values[old].node] =
      weir_graph_builder_graph(a->pass.builder)->values[made].node;
  return WEIR_OK;
}

/* The attributes that both nodes have. */
static void put_attrs(const attender *a, const weir_attention_match *m,
                      const char *name, weir_attr *attrs) {
  const weir_op_def *op =
      weir_registry_find_op(a->graph->registry, weir_sv_from(name));
  int64_t heads = shape_of(a, m->in[0])->dims[1].value;
  attrs[weir_op_attr_index(op, WEIR_SV_LIT("scale"))] =
      weir_attr_float(m->scale);
  if (m->turned)
    attrs[weir_op_attr_index(op, WEIR_SV_LIT("q_num_heads"))] =
        weir_attr_int(heads);
}

static weir_status write_forward(attender *a, rewrite *r, weir_error *err) {
  const weir_attention_match *m = &r->m;
  weir_attr attrs[WEIR_OP_ATTRS] = {{WEIR_ATTR_NONE, 0, {0}}};
  weir_node_id node;
  for (int i = 0; i < 3; i++) WEIR_TRY(operand(a, m, m->in[i], &r->in[i], err));
  r->mask = weir_pass_mapped(a->pass.values, m->mask);
  weir_value_id in[] = {r->in[0], r->in[1], r->in[2], r->mask};
  weir_node_spec spec = {.attrs = attrs,
                         .inputs = in,
                         .input_count = m->mask == WEIR_NO_VALUE ? 3 : 4};
  put_attrs(a, m, "attention", attrs);
  WEIR_TRY(add(a, m->y, &spec, "attention", &node, err));
  r->y = output(a, node, 0);
  r->lse = output(a, node, 1);
  return result(a, m, m->y, r->y, err);
}

static weir_status write_back(attender *a, const rewrite *r, weir_error *err) {
  const weir_attention_match *m = &r->m;
  weir_attr attrs[WEIR_OP_ATTRS] = {{WEIR_ATTR_NONE, 0, {0}}};
  weir_value_id dy, named = a->graph->nodes[m->back].first_output;
  weir_node_id node;
  WEIR_TRY(operand(a, m, m->dy, &dy, err));
  weir_value_id in[] = {r->in[0], r->in[1], r->in[2], dy,
                        r->y,     r->lse,   r->mask};
  weir_node_spec spec = {.attrs = attrs,
                         .inputs = in,
                         .input_count = m->mask == WEIR_NO_VALUE ? 6 : 7};
  put_attrs(a, m, "attention_grad", attrs);
  WEIR_TRY(add(a, named, &spec, "attention_grad", &node, err));
  for (uint32_t i = 0; i < 3; i++)
    WEIR_TRY(result(a, m, m->d_in[i], output(a, node, i), err));
  if (m->mask != WEIR_NO_VALUE) a->pass.values[m->ds] = output(a, node, 3);
  return WEIR_OK;
}

static weir_status write_node(attender *a, weir_node_id id, weir_error *err) {
  if (!a->gone[id]) return weir_pass_copy(&a->pass, id, NULL, UINT32_MAX, err);
  for (uint32_t i = 0; i < a->count; i++) {
    rewrite *r = &a->matches[i];
    if (r->m.place == id) return write_forward(a, r, err);
    if (r->m.trained && r->m.back == id) return write_back(a, r, err);
  }
  return WEIR_OK;
}

/* ---- The pass */

static weir_status prepare(attender *a, const weir_value_id *keep,
                           size_t keep_count, weir_error *err) {
  const weir_graph *g = a->graph;
  uint32_t softmaxes = 1;
  WEIR_TRY(weir_attention_finder_begin(&a->finder, g, keep, keep_count, err));
  for (weir_node_id id = 0; id < g->node_count; id++)
    softmaxes += strcmp(g->nodes[id].op->name, "softmax") == 0;
  a->gone = weir_alloc_array(g->alloc, g->node_count, sizeof *a->gone);
  a->matches = weir_alloc_array(g->alloc, softmaxes, sizeof *a->matches);
  if (!a->gone || !a->matches)
    return weir_fail_memory(err, softmaxes * sizeof *a->matches);
  return WEIR_OK;
}

static weir_status rewrite_all(attender *a, weir_value_id *values,
                               weir_node_id *nodes, weir_graph **out,
                               weir_error *err) {
  const weir_graph *g = a->graph;
  weir_status s = weir_pass_begin(&a->pass, g, err);
  for (weir_node_id id = 0; s == WEIR_OK && id < g->node_count; id++)
    s = write_node(a, id, err);
  if (s == WEIR_OK) {
    memcpy(values, a->pass.values, g->value_count * sizeof *values);
    memcpy(nodes, a->pass.nodes, g->node_count * sizeof *nodes);
  }
  return weir_pass_end(&a->pass, s, out, err);
}

static void finish(attender *a) {
  weir_attention_finder_end(&a->finder);
  weir_free(a->graph->alloc, a->gone);
  weir_free(a->graph->alloc, a->matches);
}

weir_status weir_graph_attend(const weir_graph *graph,
                              const weir_value_id *keep, size_t keep_count,
                              weir_value_id *values, weir_node_id *nodes,
                              weir_graph **out_graph, weir_error *err) {
  attender a = {.graph = graph};
  *out_graph = NULL;
  weir_status s = prepare(&a, keep, keep_count, err);
  if (s == WEIR_OK) find(&a);
  if (s == WEIR_OK && a.count > 0) {
    s = rewrite_all(&a, values, nodes, out_graph, err);
  } else if (s == WEIR_OK) {
    for (uint32_t i = 0; i < graph->value_count; i++) values[i] = i;
    for (uint32_t i = 0; i < graph->node_count; i++) nodes[i] = i;
    *out_graph = weir_graph_ref(graph);
  }
  finish(&a);
  return s;
}

/* ---- Words */

static bool is_output(const attender *a, weir_value_id value) {
  for (uint32_t i = 0; i < a->graph->output_count; i++)
    if (a->graph->outputs[i].value == value) return true;
  return false;
}

static void say(attender *a, weir_strbuf *text) {
  weir_attention_match m;
  for (weir_node_id id = 0; id < a->graph->node_count; id++) {
    if (!weir_attention_find(&a->finder, id, &m)) continue;
    a->count += m.elsewhere == WEIR_NO_VALUE;
    if (m.elsewhere != WEIR_NO_VALUE)
      weir_strbuf_printf(
          text, "attention in parts stays so at %.*s: %.*s %s\n",
          WEIR_SV(a->graph->nodes[id].name),
          WEIR_SV(producer(a, m.elsewhere)->name),
          is_output(a, m.elsewhere) ? "is an output" : "has other readers");
  }
  if (a->count > 0)
    weir_strbuf_text(
        text,
        "attention in parts stays so on a cluster with GPUs, with "
        "--no-fusion or --trap-nan, and where a part is fetched\n");
}

weir_status weir_graph_attend_note(const weir_graph *graph, weir_strbuf *text,
                                   weir_error *err) {
  attender a = {.graph = graph};
  weir_status s = prepare(&a, NULL, 0, err);
  if (s == WEIR_OK) say(&a, text);
  finish(&a);
  return s;
}
