/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/pass/attention_match.h"

#include <string.h>

#include "ops/grads.h"

static const weir_node *producer(const weir_attention_finder *f,
                                 weir_value_id value) {
  return &f->graph->nodes[f->graph->values[value].node];
}

/* Node of |value| if it is |op|, without edges of control. */
static const weir_node *made_by(const weir_attention_finder *f,
                                weir_value_id value, const char *op) {
  if (value == WEIR_NO_VALUE) return NULL;
  const weir_node *node = producer(f, value);
  bool plain = node->after_count == 0 && node->twin == WEIR_NO_VALUE &&
               node->device.size == 0;
  return strcmp(node->op->name, op) == 0 && plain ? node : NULL;
}

static const weir_attr *attr(const weir_node *node, const char *name) {
  return &node->attrs[weir_op_attr_index(node->op, weir_sv_from(name))];
}

static const weir_shape *shape_of(const weir_attention_finder *f,
                                  weir_value_id value) {
  return f->graph->values[value].shape;
}

/* What reader |i| makes of what it reads; NO_VALUE: not one value. */
static weir_value_id made_of(const weir_attention_finder *f, uint32_t i) {
  const weir_node *reader = &f->graph->nodes[f->readers[i]];
  return reader->output_count == 1 ? reader->first_output : WEIR_NO_VALUE;
}

static void add_part(const weir_attention_finder *f, weir_attention_match *m,
                     weir_value_id value) {
  m->parts[m->part_count++] = f->graph->values[value].node;
}

static bool is_part(const weir_attention_match *m, weir_node_id node) {
  for (uint32_t i = 0; i < m->part_count; i++)
    if (m->parts[i] == node) return true;
  return false;
}

/* ---- Shapes of nodes */

/* The product that makes |value|, with a and b transposed like that. */
static const weir_node *product(const weir_attention_finder *f,
                                weir_value_id value, bool a, bool b) {
  const weir_node *node = made_by(f, value, "matmul");
  if (node == NULL || attr(node, "transpose_a")->b != a ||
      attr(node, "transpose_b")->b != b)
    return NULL;
  return node;
}

/* The number that |value| is, if it is a known one. */
static bool number_of(const weir_attention_finder *f, weir_value_id value,
                      double *out) {
  const weir_tensor *known = f->graph->values[value].known;
  if (known == NULL || shape_of(f, value)->rank != 0) return false;
  *out = weir_tensor_get_f64(known, 0);
  return true;
}

/* What |value| is a known number times of: itself, times 1, if of nothing. */
static weir_value_id unscaled(const weir_attention_finder *f,
                              weir_value_id value, double *scale) {
  const weir_node *mul = made_by(f, value, "mul");
  const weir_node *div = made_by(f, value, "div");
  double number;
  *scale = 1;
  for (uint32_t i = 0; i < 2 && mul != NULL; i++)
    if (number_of(f, mul->inputs[1 - i], scale)) return mul->inputs[i];
  if (div != NULL && number_of(f, div->inputs[1], &number) && number != 0) {
    *scale = 1 / number;
    return div->inputs[0];
  }
  return value;
}

/* The other operand of |node|, one of whose two is |value|; NO_VALUE: none is.
 */
static weir_value_id other(const weir_node *node, weir_value_id value) {
  if (node->inputs[0] == value) return node->inputs[1];
  return node->inputs[1] == value ? node->inputs[0] : WEIR_NO_VALUE;
}

static bool is_heads(const weir_node *transpose) {
  static const int64_t kPerm[] = {0, 2, 1, 3};
  const weir_attr *perm = attr(transpose, "perm");
  if (perm->kind != WEIR_ATTR_INTS || perm->count != 4) return false;
  for (int d = 0; d < 4; d++)
    if (perm->dims[d].value != kPerm[d]) return false;
  return true;
}

/* ---- Forward */

/* Whether |value| is q k^T times a number. */
static bool take_scores(const weir_attention_finder *f, weir_value_id value,
                        weir_attention_match *m) {
  weir_value_id scores = unscaled(f, value, &m->scale);
  const weir_node *node = product(f, scores, false, true);
  if (node == NULL || node->inputs[0] == node->inputs[1]) return false;
  m->in[0] = node->inputs[0];
  m->in[1] = node->inputs[1];
  if (value != scores) add_part(f, m, value);
  add_part(f, m, scores);
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

/* Scores with a mask added, or without. */
static bool take_masked(const weir_attention_finder *f, weir_value_id value,
                        weir_attention_match *m) {
  const weir_node *add = made_by(f, value, "add");
  m->mask = WEIR_NO_VALUE;
  if (add == NULL) return take_scores(f, value, m);
  add_part(f, m, value);
  for (uint32_t i = 0; i < 2; i++) {
    weir_value_id scores = add->inputs[i], mask = add->inputs[1 - i];
    if (!fits(shape_of(f, mask), shape_of(f, value)) ||
        !weir_shape_equal(shape_of(f, scores), shape_of(f, value)) ||
        !take_scores(f, scores, m))
      continue;
    m->mask = mask;
    return true;
  }
  return false;
}

/* q [b, h, t, d], k [b, h, s, d], v [b, h, s, e], all of them f32. */
static bool operands_fit(const weir_attention_finder *f,
                         const weir_attention_match *m) {
  const weir_shape *q = shape_of(f, m->in[0]);
  for (int i = 0; i < 3; i++) {
    const weir_shape *x = shape_of(f, m->in[i]);
    if (x->rank != 4 || !weir_shape_known(x) ||
        f->graph->values[m->in[i]].dtype != WEIR_F32 ||
        x->dims[0].value != q->dims[0].value ||
        x->dims[1].value != q->dims[1].value)
      return false;
  }
  return m->mask == WEIR_NO_VALUE ||
         f->graph->values[m->mask].dtype == WEIR_F32;
}

static bool take_forward(const weir_attention_finder *f, weir_value_id y,
                         weir_attention_match *m) {
  const weir_node *mix = product(f, y, false, false);
  if (mix == NULL) return false;
  const weir_node *softmax = made_by(f, mix->inputs[0], "softmax");
  if (softmax == NULL) return false;
  int64_t axis = attr(softmax, "axis")->i;
  m->y = y;
  m->in[2] = mix->inputs[1];
  add_part(f, m, y);
  add_part(f, m, softmax->first_output);
  return (axis == -1 || axis == 3) && take_masked(f, softmax->inputs[0], m) &&
         operands_fit(f, m);
}

/* ---- Gradient */

/* The product of |a| (transposed or not) and |b| among |a|'s readers. */
static weir_value_id product_of(const weir_attention_finder *f, weir_value_id a,
                                bool transposed, weir_value_id b) {
  for (uint32_t i = f->first[a]; i < f->first[a + 1]; i++) {
    weir_value_id out = made_of(f, i);
    const weir_node *node = product(f, out, transposed, false);
    if (node != NULL && node->inputs[0] == a &&
        (b == WEIR_NO_VALUE || node->inputs[1] == b))
      return out;
  }
  return WEIR_NO_VALUE;
}

/* dp, if |ds| is p * (dp - sum(dp * p)) along the last dimension. */
static weir_value_id take_softmax(const weir_attention_finder *f,
                                  weir_value_id p, weir_value_id ds,
                                  weir_attention_match *m) {
  const weir_node *mul = made_by(f, ds, "mul");
  weir_value_id difference = mul != NULL ? other(mul, p) : WEIR_NO_VALUE;
  if (difference == WEIR_NO_VALUE) return WEIR_NO_VALUE;
  const weir_node *sub = made_by(f, difference, "sub");
  if (sub == NULL) return WEIR_NO_VALUE;
  const weir_node *sum = made_by(f, sub->inputs[1], "reduce_sum");
  if (sum == NULL) return WEIR_NO_VALUE;
  const weir_attr *axis = attr(sum, "axis");
  const weir_node *dot = made_by(f, sum->inputs[0], "mul");
  if (dot == NULL || other(dot, p) != sub->inputs[0] ||
      !attr(sum, "keepdims")->b || axis->kind != WEIR_ATTR_INTS ||
      axis->count != 1 ||
      (axis->dims[0].value != -1 && axis->dims[0].value != 3))
    return WEIR_NO_VALUE;
  m->ds = ds;
  add_part(f, m, ds);
  add_part(f, m, difference);
  add_part(f, m, sub->inputs[1]);
  add_part(f, m, sum->inputs[0]);
  return sub->inputs[0];
}

/* |ds| times the scale; itself without one. */
static weir_value_id take_scaled(const weir_attention_finder *f,
                                 weir_attention_match *m) {
  weir_value_id ds = m->ds;
  for (uint32_t i = f->first[ds]; i < f->first[ds + 1]; i++) {
    weir_value_id out = made_of(f, i);
    double scale;
    if (out == WEIR_NO_VALUE || unscaled(f, out, &scale) != ds ||
        scale != m->scale)
      continue;
    add_part(f, m, out);
    return out;
  }
  return m->scale == 1 ? ds : WEIR_NO_VALUE;
}

static bool take_gradient(const weir_attention_finder *f,
                          weir_attention_match *m) {
  weir_value_id p = producer(f, m->y)->inputs[0], dp = WEIR_NO_VALUE;
  weir_value_id dv = product_of(f, p, true, WEIR_NO_VALUE);
  if (dv == WEIR_NO_VALUE) return false;
  for (uint32_t i = f->first[p]; i < f->first[p + 1]; i++)
    if (dp == WEIR_NO_VALUE) dp = take_softmax(f, p, made_of(f, i), m);
  if (dp == WEIR_NO_VALUE) return false;
  m->dy = producer(f, dv)->inputs[1];
  const weir_node *back = product(f, dp, false, true);
  if (back == NULL || back->inputs[0] != m->dy || back->inputs[1] != m->in[2] ||
      !weir_shape_equal(shape_of(f, m->dy), shape_of(f, m->y)))
    return false;
  weir_value_id scaled = take_scaled(f, m);
  if (scaled == WEIR_NO_VALUE) return false;
  m->d_in[0] = product_of(f, scaled, false, m->in[1]);
  m->d_in[1] = product_of(f, scaled, true, m->in[0]);
  m->d_in[2] = dv;
  add_part(f, m, dp);
  for (int i = 0; i < 3; i++) {
    if (m->d_in[i] == WEIR_NO_VALUE) return false;
    add_part(f, m, m->d_in[i]);
  }
  weir_node_id first = f->graph->values[dp].node;
  m->back = f->graph->values[dv].node;
  if (first < m->back) m->back = first;
  m->trained = true;
  return true;
}

/* ---- Turned heads */

/* What |value| is the transpose of heads of; NO_VALUE: it is none. */
static weir_value_id before(const weir_attention_finder *f,
                            weir_value_id value) {
  const weir_node *turn = made_by(f, value, "transpose");
  return turn != NULL && is_heads(turn) ? turn->inputs[0] : WEIR_NO_VALUE;
}

/* The transpose of heads that alone reads |value|; NO_VALUE: there is none. */
static weir_value_id behind(const weir_attention_finder *f,
                            weir_value_id value) {
  if (f->kept[value] || f->first[value + 1] - f->first[value] != 1)
    return WEIR_NO_VALUE;
  weir_value_id out = made_of(f, f->first[value]);
  return before(f, out) == value ? out : WEIR_NO_VALUE;
}

static bool take_operand(const weir_attention_finder *f,
                         weir_attention_match *m, weir_value_id value) {
  if (before(f, value) == WEIR_NO_VALUE) return false;
  add_part(f, m, value);
  return true;
}

static bool take_result(const weir_attention_finder *f, weir_attention_match *m,
                        weir_value_id value) {
  weir_value_id out = behind(f, value);
  if (out == WEIR_NO_VALUE) return false;
  add_part(f, m, out);
  return true;
}

/* Whether all heads are turned on the way in and back on the way out. */
static bool take_turns(const weir_attention_finder *f,
                       weir_attention_match *m) {
  m->turned = take_result(f, m, m->y);
  for (int i = 0; i < 3; i++)
    m->turned = m->turned && take_operand(f, m, m->in[i]);
  if (m->turned && m->trained) m->turned = take_operand(f, m, m->dy);
  for (int i = 0; i < 3 && m->trained; i++)
    m->turned = m->turned && take_result(f, m, m->d_in[i]);
  return m->turned;
}

weir_value_id weir_attention_operand(const weir_attention_finder *f,
                                     const weir_attention_match *m,
                                     weir_value_id value) {
  return m->turned ? before(f, value) : value;
}

weir_value_id weir_attention_result(const weir_attention_finder *f,
                                    const weir_attention_match *m,
                                    weir_value_id value) {
  return m->turned ? behind(f, value) : value;
}

/* ---- The whole */

/* Whether others than the parts may read |value|. */
static bool is_open(const weir_attention_finder *f,
                    const weir_attention_match *m, weir_value_id value) {
  if (value == weir_attention_result(f, m, m->y)) return true;
  if (!m->trained) return false;
  for (int i = 0; i < 3; i++)
    if (value == weir_attention_result(f, m, m->d_in[i])) return true;
  return value == m->ds && m->mask != WEIR_NO_VALUE;
}

static bool is_read_elsewhere(const weir_attention_finder *f,
                              const weir_attention_match *m,
                              weir_value_id value) {
  if (is_open(f, m, value)) return false;
  for (uint32_t i = f->first[value]; i < f->first[value + 1]; i++)
    if (!is_part(m, f->readers[i])) return true;
  return f->kept[value];
}

/* A value between the parts that others read; NO_VALUE: there is none. */
static weir_value_id read_elsewhere(const weir_attention_finder *f,
                                    const weir_attention_match *m) {
  for (uint32_t i = 0; i < m->part_count; i++) {
    const weir_node *part = &f->graph->nodes[m->parts[i]];
    if (is_read_elsewhere(f, m, part->first_output)) return part->first_output;
  }
  return WEIR_NO_VALUE;
}

bool weir_attention_find(const weir_attention_finder *f, weir_node_id mix,
                         weir_attention_match *out) {
  const weir_node *node = &f->graph->nodes[mix];
  memset(out, 0, sizeof *out);
  if (strcmp(node->op->name, "matmul") != 0 ||
      !take_forward(f, node->first_output, out))
    return false;
  weir_attention_match trained = *out;
  if (take_gradient(f, &trained)) *out = trained;
  weir_attention_match turned = *out;
  if (take_turns(f, &turned) && read_elsewhere(f, &turned) == WEIR_NO_VALUE)
    *out = turned;
  out->elsewhere = read_elsewhere(f, out);
  out->place = f->graph->values[weir_attention_result(f, out, out->y)].node;
  return !out->trained || out->place < out->back;
}

/* ---- Readers */

static void count(weir_attention_finder *f) {
  const weir_graph *g = f->graph;
  for (weir_node_id id = 0; id < g->node_count; id++)
    for (uint32_t i = 0; i < g->nodes[id].input_count; i++)
      if (g->nodes[id].inputs[i] != WEIR_NO_VALUE)
        f->first[g->nodes[id].inputs[i] + 2]++;
  for (weir_value_id v = 0; v < g->value_count; v++)
    f->first[v + 2] += f->first[v + 1];
}

/* |first[v + 1]| is where the next reader of v goes, and in the end where v's
 * readers end. */
static void enter(weir_attention_finder *f) {
  const weir_graph *g = f->graph;
  for (weir_node_id id = 0; id < g->node_count; id++)
    for (uint32_t i = 0; i < g->nodes[id].input_count; i++)
      if (g->nodes[id].inputs[i] != WEIR_NO_VALUE)
        f->readers[f->first[g->nodes[id].inputs[i] + 1]++] = id;
}

static void mark_kept(weir_attention_finder *f, const weir_value_id *keep,
                      size_t keep_count) {
  const weir_graph *g = f->graph;
  for (weir_node_id id = 0; id < g->node_count; id++)
    for (uint32_t i = 0; i < g->nodes[id].after_count; i++) {
      const weir_node *before = &g->nodes[g->nodes[id].after[i]];
      for (uint32_t k = 0; k < before->output_count; k++)
        f->kept[before->first_output + k] = true;
    }
  for (uint32_t i = 0; i < g->output_count; i++)
    f->kept[g->outputs[i].value] = true;
  for (size_t i = 0; i < keep_count; i++)
    if (keep[i] != WEIR_NO_VALUE) f->kept[keep[i]] = true;
}

weir_status weir_attention_finder_begin(weir_attention_finder *f,
                                        const weir_graph *graph,
                                        const weir_value_id *keep,
                                        size_t keep_count, weir_error *err) {
  size_t values = (size_t)graph->value_count + 2;
  *f = (weir_attention_finder){.graph = graph};
  f->first = weir_alloc_array(graph->alloc, values, sizeof *f->first);
  f->kept = weir_alloc_array(graph->alloc, values, sizeof *f->kept);
  if (f->first == NULL || f->kept == NULL)
    return weir_fail_memory(err, values * sizeof *f->first);
  count(f);
  size_t edges = (size_t)f->first[graph->value_count + 1] + 1;
  f->readers = weir_alloc_array(graph->alloc, edges, sizeof *f->readers);
  if (f->readers == NULL)
    return weir_fail_memory(err, edges * sizeof *f->readers);
  enter(f);
  mark_kept(f, keep, keep_count);
  return WEIR_OK;
}

void weir_attention_finder_end(weir_attention_finder *f) {
  weir_free(f->graph->alloc, f->first);
  weir_free(f->graph->alloc, f->readers);
  weir_free(f->graph->alloc, f->kept);
}
