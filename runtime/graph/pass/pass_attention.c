/* SPDX-License-Identifier: Apache-2.0 */
/* Attention from its parts.
 *
 * Each product that reads a softmax is tried: upwards the softmax, a mask that
 * is added, a number that scales, the product of q and k; one reader each, so
 * that no part is computed twice. Then the transposes of heads: if q, k, v and
 * the result all have one, four copies go, and views take their names. A match
 * is written at its last node, where all that it reads is there; its other
 * nodes are left out. Cost: linear in nodes and edges.
 *
 * A row that a mask of -inf hides whole is NaN in parts, and 0 in one node. */
#include "runtime/graph/pass/pass_attention.h"

#include <string.h>

#include "ops/grads.h"
#include "runtime/graph/graph_internal.h"
#include "runtime/graph/node.h"
#include "runtime/graph/pass/pass.h"

/* One attention: ids of the old graph. */
typedef struct match {
  weir_node_id last; /* in whose place it is written */
  weir_node_id mix;  /* the product with v */
  weir_value_id q, k, v, mask;
  double scale;
  bool turned; /* heads lie in [b, t, h, d]; q, k, v are the transposes */
} match;

typedef struct attender {
  weir_pass pass;
  const weir_graph *graph;
  uint32_t *readers;    /* per value; a kept one has many */
  weir_node_id *reader; /* per value: the last of them */
  bool *gone;           /* per node */
  bool lenient;         /* parts may have other readers: to say who */
  match *matches;
  uint32_t count;
} attender;

enum { kMany = 1 << 20 };

static const weir_node *producer(const attender *a, weir_value_id value) {
  return &a->graph->nodes[a->graph->values[value].node];
}

static bool is(const weir_node *node, const char *op) {
  return strcmp(node->op->name, op) == 0;
}

/* Node of |value| if it is |op|, without edges of control. */
static const weir_node *made_by(const attender *a, weir_value_id value,
                                const char *op) {
  const weir_node *node = producer(a, value);
  bool plain = node->after_count == 0 && node->twin == WEIR_NO_VALUE &&
               node->device.size == 0;
  return is(node, op) && plain ? node : NULL;
}

static const weir_node *alone(const attender *a, weir_value_id value,
                              const char *op) {
  return a->lenient || a->readers[value] == 1 ? made_by(a, value, op) : NULL;
}

static const weir_attr *attr(const weir_node *node, weir_sv name) {
  return &node->attrs[weir_op_attr_index(node->op, name)];
}

static const weir_shape *shape_of(const attender *a, weir_value_id value) {
  return a->graph->values[value].shape;
}

/* ---- Matching */

/* The number that |value| is, if it is a known one. */
static bool number_of(const attender *a, weir_value_id value, double *out) {
  const weir_tensor *known = a->graph->values[value].known;
  if (known == NULL || shape_of(a, value)->rank != 0) return false;
  *out = weir_tensor_get_f64(known, 0);
  return true;
}

/* Whether |mask| broadcasts to |scores| and no further. */
static bool fits(const weir_shape *mask, const weir_shape *scores) {
  if (!weir_shape_known(mask) || mask->rank > scores->rank) return false;
  for (int d = 0; d < mask->rank; d++) {
    weir_dim own = mask->dims[mask->rank - 1 - d];
    weir_dim of = scores->dims[scores->rank - 1 - d];
    if (!weir_dim_is(own, 1) && own.value != of.value) return false;
  }
  return true;
}

/* Takes the addition of a mask off |*scores|, if there is one. The mask is the
 * operand that is no product. */
static void take_mask(const attender *a, weir_value_id *scores, match *m) {
  const weir_node *add = alone(a, *scores, "add");
  m->mask = WEIR_NO_VALUE;
  if (add == NULL) return;
  for (uint32_t i = 0; i < 2; i++) {
    weir_value_id part = add->inputs[i], mask = add->inputs[1 - i];
    bool scaled = alone(a, part, "mul") || alone(a, part, "div") ||
                  alone(a, part, "matmul");
    if (!scaled || !fits(shape_of(a, mask), shape_of(a, *scores))) continue;
    if (!weir_shape_equal(shape_of(a, part), shape_of(a, *scores))) continue;
    m->mask = mask;
    *scores = part;
    return;
  }
}

static void take_scale(const attender *a, weir_value_id *scores, match *m) {
  const weir_node *mul = alone(a, *scores, "mul");
  const weir_node *div = alone(a, *scores, "div");
  double number;
  m->scale = 1;
  if (mul != NULL && number_of(a, mul->inputs[1], &number)) {
    *scores = mul->inputs[0];
    m->scale = number;
  } else if (mul != NULL && number_of(a, mul->inputs[0], &number)) {
    *scores = mul->inputs[1];
    m->scale = number;
  } else if (div != NULL && number_of(a, div->inputs[1], &number) &&
             number != 0) {
    *scores = div->inputs[0];
    m->scale = 1 / number;
  }
}

/* q [b, h, t, d], k [b, h, s, d], v [b, h, s, e], all of them f32. */
static bool operands_fit(const attender *a, const match *m) {
  const weir_value_id ids[] = {m->q, m->k, m->v};
  for (int i = 0; i < 3; i++) {
    const weir_shape *x = shape_of(a, ids[i]), *q = shape_of(a, m->q);
    if (x->rank != 4 || !weir_shape_known(x) ||
        a->graph->values[ids[i]].dtype != WEIR_F32 ||
        x->dims[0].value != q->dims[0].value ||
        x->dims[1].value != q->dims[1].value)
      return false;
  }
  return m->mask == WEIR_NO_VALUE ||
         a->graph->values[m->mask].dtype == WEIR_F32;
}

static bool is_heads(const weir_node *transpose) {
  static const int64_t kPerm[] = {0, 2, 1, 3};
  const weir_attr *perm = attr(transpose, WEIR_SV_LIT("perm"));
  if (perm->kind != WEIR_ATTR_INTS || perm->count != 4) return false;
  for (int d = 0; d < 4; d++)
    if (perm->dims[d].value != kPerm[d]) return false;
  return true;
}

/* The transpose that alone reads the mix; NULL: none. */
static const weir_node *behind(const attender *a, const weir_node *mix) {
  weir_value_id value = mix->first_output;
  if (a->readers[value] != 1) return NULL;
  const weir_node *reader = &a->graph->nodes[a->reader[value]];
  if (reader->output_count != 1) return NULL;
  return made_by(a, reader->first_output, "transpose");
}

/* Whether all heads are turned on the way in and back on the way out. */
static void take_turns(const attender *a, const weir_node *mix, match *m) {
  const weir_node *back = behind(a, mix);
  const weir_value_id ids[] = {m->q, m->k, m->v};
  m->last = m->mix;
  if (back == NULL || !is_heads(back)) return;
  for (int i = 0; i < 3; i++) {
    const weir_node *turn = alone(a, ids[i], "transpose");
    if (turn == NULL || !is_heads(turn)) return;
  }
  m->turned = true;
  m->last = a->graph->values[back->first_output].node;
}

/* Whether node |id| ends an attention in parts. */
static bool matches(const attender *a, weir_node_id id, match *m) {
  const weir_node *mix = &a->graph->nodes[id];
  *m = (match){.mix = id};
  if (!is(mix, "matmul") || made_by(a, mix->first_output, "matmul") == NULL ||
      attr(mix, WEIR_SV_LIT("transpose_a"))->b ||
      attr(mix, WEIR_SV_LIT("transpose_b"))->b)
    return false;
  const weir_node *softmax = alone(a, mix->inputs[0], "softmax");
  if (softmax == NULL) return false;
  int64_t axis = attr(softmax, WEIR_SV_LIT("axis"))->i;
  if (axis != -1 && axis != 3) return false;
  weir_value_id scores = softmax->inputs[0];
  take_mask(a, &scores, m);
  take_scale(a, &scores, m);
  const weir_node *product = alone(a, scores, "matmul");
  if (product == NULL || attr(product, WEIR_SV_LIT("transpose_a"))->b ||
      !attr(product, WEIR_SV_LIT("transpose_b"))->b)
    return false;
  m->q = product->inputs[0];
  m->k = product->inputs[1];
  m->v = mix->inputs[1];
  if (m->q == m->k || !operands_fit(a, m)) return false;
  take_turns(a, mix, m);
  return true;
}

/* The part that the part |at| is made of, upwards; NO_VALUE behind the product
 * of q and k. */
static weir_value_id part_above(const attender *a, const match *m,
                                weir_value_id at) {
  const weir_node *node = producer(a, at);
  if (is(node, "matmul")) return WEIR_NO_VALUE;
  weir_value_id first = node->inputs[0];
  if (is(node, "softmax")) return first;
  bool other = first == m->mask || number_of(a, first, &(double){0});
  return other ? node->inputs[1] : first;
}

/* The nodes between q and the mix go, and the transposes if they are read. */
static void leave_out(attender *a, const match *m) {
  const weir_value_id ids[] = {m->q, m->k, m->v};
  weir_value_id at = a->graph->nodes[m->mix].inputs[0];
  a->gone[m->mix] = true;
  for (; at != WEIR_NO_VALUE; at = part_above(a, m, at))
    a->gone[a->graph->values[at].node] = true;
  for (int i = 0; i < 3 && m->turned; i++)
    a->gone[a->graph->values[ids[i]].node] = true;
}

static void find(attender *a) {
  for (weir_node_id id = 0; id < a->graph->node_count; id++)
    if (matches(a, id, &a->matches[a->count]))
      leave_out(a, &a->matches[a->count++]);
}

/* ---- Writing */

/* Adds a node in the place, and under the name, of |named|. */
static weir_status add(attender *a, const weir_node *named,
                       weir_node_spec *spec, weir_value_id *out,
                       weir_error *err) {
  weir_node_id added;
  spec->name = named->name;
  spec->mark = named->mark;
  weir_status s = weir_graph_builder_add(a->pass.builder, spec, &added, NULL);
  if (s != WEIR_OK)
    weir_error_copy(err, &a->pass.builder->diag.error);
  else
    *out = weir_graph_builder_output(a->pass.builder, added, 0);
  return s;
}

static weir_status reshape(attender *a, const weir_node *named, weir_value_id x,
                           const weir_attr *shape, weir_value_id *out,
                           weir_error *err) {
  weir_node_spec spec = {
      .op = weir_registry_find_op(a->graph->registry, WEIR_SV_LIT("reshape")),
      .attrs = shape,
      .inputs = &x,
      .input_count = 1};
  return add(a, named, &spec, out, err);
}

/* The source of a transpose of heads as [b, t, h d]. */
static weir_status flatten(attender *a, weir_value_id turned,
                           weir_value_id *out, weir_error *err) {
  const weir_node *transpose = producer(a, turned);
  const weir_dim *d = shape_of(a, transpose->inputs[0])->dims;
  weir_dim dims[] = {d[0], d[1], weir_dim_of(d[2].value * d[3].value)};
  weir_attr shape = weir_attr_dims(3, dims);
  return reshape(a, transpose, a->pass.values[transpose->inputs[0]], &shape,
                 out, err);
}

static void put(const weir_op_def *op, weir_attr *attrs, const char *name,
                weir_attr value) {
  attrs[weir_op_attr_index(op, weir_sv_from(name))] = value;
}

static weir_status write_match(attender *a, const match *m, weir_error *err) {
  const weir_op_def *op =
      weir_registry_find_op(a->graph->registry, WEIR_SV_LIT("attention"));
  const weir_node *mix = &a->graph->nodes[m->mix];
  const weir_node *last = &a->graph->nodes[m->last];
  const weir_value_id ids[] = {m->q, m->k, m->v};
  weir_attr attrs[WEIR_OP_ATTRS] = {{WEIR_ATTR_NONE, 0, {0}}};
  weir_value_id in[4], out;
  put(op, attrs, "scale", weir_attr_float(m->scale));
  for (int i = 0; i < 3; i++) {
    in[i] = a->pass.values[ids[i]];
    if (m->turned) WEIR_TRY(flatten(a, ids[i], &in[i], err));
  }
  in[3] = weir_pass_mapped(a->pass.values, m->mask);
  if (m->turned)
    put(op, attrs, "q_num_heads",
        weir_attr_int(shape_of(a, m->q)->dims[1].value));
  weir_node_spec spec = {.op = op,
                         .attrs = attrs,
                         .inputs = in,
                         .input_count = m->mask == WEIR_NO_VALUE ? 3 : 4};
  weir_attr shape = weir_attr_shape(shape_of(a, last->first_output));
  WEIR_TRY(add(a, mix, &spec, &out, err));
  if (m->turned) WEIR_TRY(reshape(a, last, out, &shape, &out, err));
  a->pass.values[last->first_output] = out;
  a->pass.nodes[m->last] =
      weir_graph_builder_graph(a->pass.builder)->values[out].node;
  return WEIR_OK;
}

static weir_status write(attender *a, weir_error *err) {
  for (weir_node_id id = 0; id < a->graph->node_count; id++) {
    const match *m = NULL;
    for (uint32_t i = 0; i < a->count && m == NULL; i++)
      if (a->matches[i].last == id) m = &a->matches[i];
    if (m != NULL)
      WEIR_TRY(write_match(a, m, err));
    else if (!a->gone[id])
      WEIR_TRY(weir_pass_copy(&a->pass, id, NULL, UINT32_MAX, err));
  }
  return WEIR_OK;
}

/* ---- The pass */

static void count_readers(attender *a, const weir_value_id *keep,
                          size_t keep_count) {
  const weir_graph *g = a->graph;
  for (weir_node_id id = 0; id < g->node_count; id++) {
    const weir_node *node = &g->nodes[id];
    for (uint32_t i = 0; i < node->input_count; i++) {
      if (node->inputs[i] == WEIR_NO_VALUE) continue;
      a->readers[node->inputs[i]]++;
      a->reader[node->inputs[i]] = id;
    }
    for (uint32_t i = 0; i < node->after_count; i++) {
      const weir_node *before = &g->nodes[node->after[i]];
      for (uint32_t k = 0; k < before->output_count; k++)
        a->readers[before->first_output + k] += kMany;
    }
  }
  for (uint32_t i = 0; i < g->output_count; i++)
    a->readers[g->outputs[i].value] += kMany;
  for (size_t i = 0; i < keep_count; i++)
    if (keep[i] != WEIR_NO_VALUE) a->readers[keep[i]] += kMany;
}

static weir_status prepare(attender *a, weir_error *err) {
  const weir_graph *g = a->graph;
  uint32_t softmaxes = 1;
  for (weir_node_id id = 0; id < g->node_count; id++)
    softmaxes += is(&g->nodes[id], "softmax");
  a->readers = weir_alloc_array(g->alloc, g->value_count, sizeof *a->readers);
  a->reader = weir_alloc_array(g->alloc, g->value_count, sizeof *a->reader);
  a->gone = weir_alloc_array(g->alloc, g->node_count, sizeof *a->gone);
  a->matches = weir_alloc_array(g->alloc, softmaxes, sizeof *a->matches);
  if (!a->readers || !a->reader || !a->gone || !a->matches)
    return weir_fail_memory(err, g->value_count * sizeof *a->readers);
  return WEIR_OK;
}

static weir_status rewrite(attender *a, weir_value_id *values,
                           weir_node_id *nodes, weir_graph **out,
                           weir_error *err) {
  const weir_graph *g = a->graph;
  weir_status s = weir_pass_begin(&a->pass, g, err);
  if (s == WEIR_OK) s = write(a, err);
  if (s == WEIR_OK) {
    memcpy(values, a->pass.values, g->value_count * sizeof *values);
    memcpy(nodes, a->pass.nodes, g->node_count * sizeof *nodes);
  }
  return weir_pass_end(&a->pass, s, out, err);
}

static void finish(attender *a) {
  weir_free(a->graph->alloc, a->readers);
  weir_free(a->graph->alloc, a->reader);
  weir_free(a->graph->alloc, a->gone);
  weir_free(a->graph->alloc, a->matches);
}

weir_status weir_graph_attend(const weir_graph *graph,
                              const weir_value_id *keep, size_t keep_count,
                              weir_value_id *values, weir_node_id *nodes,
                              weir_graph **out_graph, weir_error *err) {
  attender a = {.graph = graph};
  *out_graph = NULL;
  weir_status s = prepare(&a, err);
  if (s == WEIR_OK) count_readers(&a, keep, keep_count);
  if (s == WEIR_OK) find(&a);
  if (s == WEIR_OK && a.count > 0) {
    s = rewrite(&a, values, nodes, out_graph, err);
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

/* Says which part of |m| is read outside of it. */
static void say_reader(const attender *a, const match *m, weir_strbuf *text) {
  const weir_node *mix = &a->graph->nodes[m->mix];
  weir_value_id at = mix->inputs[0];
  while (at != WEIR_NO_VALUE && a->readers[at] == 1) at = part_above(a, m, at);
  if (at == WEIR_NO_VALUE) return;
  weir_strbuf_printf(text, "attention in parts stays so at %.*s: %.*s %s\n",
                     WEIR_SV(mix->name), WEIR_SV(producer(a, at)->name),
                     is_output(a, at) ? "is an output" : "has other readers");
}

static void say(attender *a, weir_strbuf *text) {
  for (weir_node_id id = 0; id < a->graph->node_count; id++) {
    match m;
    a->lenient = false;
    bool made = matches(a, id, &m);
    a->lenient = true;
    a->count += made;
    if (!made && matches(a, id, &m)) say_reader(a, &m, text);
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
  weir_status s = prepare(&a, err);
  if (s == WEIR_OK) count_readers(&a, NULL, 0);
  if (s == WEIR_OK) say(&a, text);
  finish(&a);
  return s;
}
