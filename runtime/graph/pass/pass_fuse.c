/* SPDX-License-Identifier: Apache-2.0
 *
 * Fusion groups. Nodes are visited from the last to the first, so a node's
 * readers are decided before it: it joins their group if they are all in the
 * same one and it fits there, else it may begin a group of its own. A group so
 * made has one value that is read outside, its first-visited node's; no path
 * leaves it and comes back, since every other value is read inside only.
 *
 * A value with readers in two groups ends a group: it is computed once and
 * stored, rather than in both. Nothing is tried twice, so the cost is linear in
 * nodes and edges, but for poolings that find no convolution (drop_pool). */
#include "runtime/graph/pass/pass_fuse.h"

#include <assert.h>
#include <string.h>

#include "runtime/graph/graph_internal.h"
#include "runtime/graph/pass/pass.h"

enum { kGroupNodes = 32, kMixed = UINT32_MAX - 1 };

/* A group in the making, called by the node that began it. */
typedef struct group {
  uint32_t count;
  bool pool;     /* begun by a pooling */
  bool conv;     /* has conv2d */
  bool anchored; /* has an anchor */
  bool numbered;
  const weir_shape *shape; /* of all members but the pooling */
  weir_dtype dtype;
  weir_sv device; /* that a member asks for; no two ask for others */
} group;

typedef struct fuser {
  const weir_graph *graph;
  group *groups;      /* by the node that began it */
  uint32_t *group_of; /* by node: the node that began its group, or
                         WEIR_NO_GROUP */
  uint32_t *readers;  /* by value: group of all readers so far, kMixed, or
                         WEIR_NO_GROUP while it has no reader */
} fuser;

static bool has_flag(const weir_node *node, unsigned flag) {
  return (node->op->flags & flag) != 0;
}

static bool is_conv(const weir_node *node) {
  return strcmp(node->op->name, "conv2d") == 0;
}

static const weir_value *output_of(const fuser *f, const weir_node *node) {
  return &f->graph->values[node->first_output];
}

/* A comparison of floating-point values, or a logical op on such. */
static bool is_condition(const fuser *f, const weir_node *node) {
  if (output_of(f, node)->dtype != WEIR_BOOL) return false;
  for (uint32_t i = 0; i < node->input_count; i++) {
    if (node->inputs[i] == WEIR_NO_VALUE) return false;
    weir_dtype dtype = f->graph->values[node->inputs[i]].dtype;
    if (!weir_dtype_is_float(dtype) && dtype != WEIR_BOOL) return false;
  }
  return true;
}

/* Whether |node| may be in a group at all. Element-wise ops that may fail do so
 * on integers only, and values here are floating point, or conditions: so a
 * group cannot fail half way. A known value costs nothing when it runs. */
static bool can_be_member(const fuser *f, const weir_node *node) {
  const weir_value *value = output_of(f, node);
  return node->output_count == 1 && node->after_count == 0 &&
         (weir_dtype_is_float(value->dtype) || is_condition(f, node)) &&
         weir_shape_known(value->shape) &&
         !has_flag(node, WEIR_OP_EFFECT | WEIR_OP_RANDOM) &&
         value->known == NULL;
}

/* Whether |node| may go before the members of |g|, which alone read it. */
static bool fits(const fuser *f, const group *g, const weir_node *node) {
  const weir_value *value = output_of(f, node);
  if (g->count >= kGroupNodes || !can_be_member(f, node)) return false;
  if (value->dtype != g->dtype && value->dtype != WEIR_BOOL) return false;
  if (g->device.size > 0 && node->device.size > 0 &&
      !weir_sv_equal(g->device, node->device))
    return false;
  if (g->shape != NULL && !weir_shape_equal(g->shape, value->shape))
    return false;
  if (has_flag(node, WEIR_OP_ANCHOR)) return !g->anchored;
  return has_flag(node, WEIR_OP_ELEMENTWISE);
}

static void join(const fuser *f, group *g, const weir_node *node) {
  g->count++;
  assert(g->count <= kGroupNodes);
  if (g->device.size == 0) g->device = node->device;
  g->anchored |= has_flag(node, WEIR_OP_ANCHOR);
  g->conv |= is_conv(node);
  if (!has_flag(node, WEIR_OP_WINDOW)) g->shape = output_of(f, node)->shape;
}

static const weir_attr *attr_of(const weir_node *node, const char *name) {
  for (uint32_t i = 0; i < WEIR_OP_ATTRS && node->op->attrs[i].name; i++)
    if (strcmp(node->op->attrs[i].name, name) == 0) return &node->attrs[i];
  return NULL;
}

static bool all_are(const weir_attr *a, int64_t value) {
  if (a == NULL || a->kind != WEIR_ATTR_INTS) return a == NULL;
  for (uint32_t i = 0; i < a->count; i++)
    if (a->dims[i].symbol != 0 || a->dims[i].value != value) return false;
  return true;
}

/* Whether the windows of a pooling are square and lie side by side: others read
 * rows of the convolution again, which is then better a value of its own. */
static bool side_by_side(const weir_node *node) {
  const weir_attr *k = attr_of(node, "kernel"), *s = attr_of(node, "stride");
  const weir_attr *padding = attr_of(node, "padding");
  if (k == NULL) return true; /* a pooling without a choice */
  if (k->kind != WEIR_ATTR_INTS || k->count == 0) return false;
  if (padding != NULL && padding->kind == WEIR_ATTR_STRING &&
      weir_sv_equal(padding->s, WEIR_SV_LIT("same")))
    return false;
  int64_t size = k->dims[0].value;
  return size > 1 && all_are(k, size) && all_are(attr_of(node, "pad"), 0) &&
         (s == NULL || s->kind == WEIR_ATTR_NONE || all_are(s, size));
}

static void begin(fuser *f, uint32_t id, const weir_node *node) {
  bool pool = has_flag(node, WEIR_OP_WINDOW);
  if (!can_be_member(f, node) || output_of(f, node)->dtype == WEIR_BOOL) return;
  if (pool && !side_by_side(node)) return;
  if (!pool && !has_flag(node, WEIR_OP_ELEMENTWISE | WEIR_OP_ANCHOR)) return;
  f->groups[id] = (group){.pool = pool, .dtype = output_of(f, node)->dtype};
  f->group_of[id] = id;
  join(f, &f->groups[id], node);
}

/* Notes for each input of |node| in which group it is read. Nothing goes before
 * an anchor. A node that waits for another by a control edge reads it from
 * outside. */
static void note_reads(fuser *f, uint32_t id, const weir_node *node) {
  uint32_t reader = f->group_of[id];
  if (reader == WEIR_NO_GROUP || has_flag(node, WEIR_OP_ANCHOR))
    reader = kMixed;
  for (uint32_t i = 0; i < node->input_count; i++) {
    weir_value_id value = node->inputs[i];
    if (value == WEIR_NO_VALUE) continue;
    uint32_t *seen = &f->readers[value];
    *seen = *seen == WEIR_NO_GROUP || *seen == reader ? reader : kMixed;
  }
  for (uint32_t i = 0; i < node->after_count; i++) {
    const weir_node *before = &f->graph->nodes[node->after[i]];
    for (uint32_t k = 0; k < before->output_count; k++)
      f->readers[before->first_output + k] = kMixed;
  }
}

static void visit(fuser *f, uint32_t id) {
  const weir_node *node = &f->graph->nodes[id];
  uint32_t reader =
      node->output_count == 1 ? f->readers[node->first_output] : kMixed;
  if (reader < kMixed && fits(f, &f->groups[reader], node)) {
    assert(f->group_of[reader] == reader);
    f->group_of[id] = reader;
    join(f, &f->groups[reader], node);
  } else {
    begin(f, id, node);
  }
  note_reads(f, id, node);
}

/* A pooling stays only with a convolution; without it the rest goes on alone,
 * under the id of its own last node. Only now is it known that no convolution
 * joined. The search ends with the group's first node. */
static void drop_pool(fuser *f, uint32_t pool) {
  uint32_t last = WEIR_NO_GROUP;
  for (uint32_t id = pool; id-- > 0 && f->groups[pool].count > 1;) {
    if (f->group_of[id] != pool) continue;
    if (last == WEIR_NO_GROUP) last = id;
    f->group_of[id] = last;
    f->groups[pool].count--;
    f->groups[last].count++;
  }
  f->group_of[pool] = WEIR_NO_GROUP;
}

static void settle(fuser *f) {
  for (uint32_t id = 0; id < f->graph->node_count; id++) {
    const group *g = &f->groups[id];
    if (f->group_of[id] == id && g->pool && (!g->conv || g->count == 1))
      drop_pool(f, id);
  }
}

static weir_status prepare(fuser *f, const weir_value_id *keep,
                           size_t keep_count, weir_error *err) {
  const weir_graph *graph = f->graph;
  uint32_t n = graph->node_count;
  f->groups = weir_alloc_array(graph->alloc, n, sizeof *f->groups);
  f->group_of = weir_alloc_array(graph->alloc, n, sizeof *f->group_of);
  f->readers =
      weir_alloc_array(graph->alloc, graph->value_count, sizeof *f->readers);
  if (!f->groups || !f->group_of || !f->readers)
    return weir_fail_memory(err, n * sizeof *f->groups);
  for (uint32_t i = 0; i < n; i++) f->group_of[i] = WEIR_NO_GROUP;
  for (uint32_t i = 0; i < graph->value_count; i++)
    f->readers[i] = WEIR_NO_GROUP;
  for (uint32_t i = 0; i < graph->output_count; i++)
    f->readers[graph->outputs[i].value] = kMixed;
  for (size_t i = 0; i < keep_count; i++) f->readers[keep[i]] = kMixed;
  return WEIR_OK;
}

static weir_status fuse(const weir_graph *graph, weir_graph_builder *outer,
                        const weir_value_id *keep, size_t keep_count,
                        weir_graph **out_graph, weir_error *err);

/* Groups form within bodies too; these nest only so deep. */
static weir_status copy_control(weir_pass *pass, weir_node_id id,
                                weir_error *err) {
  const weir_node *node = &pass->from->nodes[id];
  weir_graph *fused[2] = {NULL, NULL};
  weir_status s = WEIR_OK;
  for (uint32_t k = 0; s == WEIR_OK && k < node->body_count; k++)
    s = fuse(node->bodies[k], pass->builder, NULL, 0, &fused[k], err);
  weir_pass_change change = {.input_count = UINT32_MAX,
                             .bodies = (const weir_graph *const *)fused};
  if (s == WEIR_OK) s = weir_pass_copy_with(pass, id, &change, err);
  weir_graph_unref(fused[0]);
  weir_graph_unref(fused[1]);
  return s;
}

/* Copies the graph and numbers the groups of two and more in node order. */
static weir_status write(fuser *f, weir_pass *pass, weir_error *err) {
  weir_graph_full *full = pass->builder->graph;
  uint32_t count = 0;
  for (uint32_t id = 0; id < f->graph->node_count; id++) {
    WEIR_TRY(f->graph->nodes[id].body_count > 0
                 ? copy_control(pass, id, err)
                 : weir_pass_copy(pass, id, NULL, UINT32_MAX, err));
    assert(pass->nodes[id] == id); /* ids stay */
    weir_node *node = &full->nodes.items[pass->nodes[id]];
    uint32_t head = f->group_of[id];
    node->group = WEIR_NO_GROUP;
    if (head == WEIR_NO_GROUP || f->groups[head].count < 2) continue;
    /* From here on readers[] of the head's output holds the group's number. */
    uint32_t *number = &f->readers[f->graph->nodes[head].first_output];
    if (!f->groups[head].numbered) *number = count++;
    f->groups[head].numbered = true;
    node->group = *number;
  }
  full->g.group_count = count;
  return WEIR_OK;
}

/* Whether there is no group, neither before nor now, so that a copy would be
 * the same. */
static bool is_grouped_so(const fuser *f) {
  if (f->graph->group_count > 0) return false;
  for (uint32_t id = 0; id < f->graph->node_count; id++) {
    uint32_t head = f->group_of[id];
    if (f->graph->nodes[id].body_count > 0 ||
        (head != WEIR_NO_GROUP && f->groups[head].count > 1))
      return false;
  }
  return true;
}

static weir_status copy_grouped(fuser *f, weir_graph_builder *outer,
                                weir_graph **out, weir_error *err) {
  weir_pass pass;
  weir_status s = outer != NULL
                      ? weir_pass_begin_body(&pass, f->graph, outer, err)
                      : weir_pass_begin(&pass, f->graph, err);
  if (s == WEIR_OK) s = write(f, &pass, err);
  return weir_pass_end(&pass, s, out, err);
}

weir_status weir_graph_fuse(const weir_graph *graph, const weir_value_id *keep,
                            size_t keep_count, weir_graph **out_graph,
                            weir_error *err) {
  return fuse(graph, NULL, keep, keep_count, out_graph, err);
}

static weir_status fuse(const weir_graph *graph, weir_graph_builder *outer,
                        const weir_value_id *keep, size_t keep_count,
                        weir_graph **out_graph, weir_error *err) {
  fuser f = {.graph = graph};
  *out_graph = NULL;
  weir_status s = prepare(&f, keep, keep_count, err);
  for (uint32_t id = graph->node_count; s == WEIR_OK && id-- > 0;)
    visit(&f, id);
  if (s == WEIR_OK) settle(&f);
  if (s == WEIR_OK && outer == NULL && is_grouped_so(&f))
    *out_graph = weir_graph_ref(graph);
  else if (s == WEIR_OK)
    s = copy_grouped(&f, outer, out_graph, err);
  weir_free(graph->alloc, f.groups);
  weir_free(graph->alloc, f.group_of);
  weir_free(graph->alloc, f.readers);
  return s;
}
