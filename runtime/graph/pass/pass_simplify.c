/* SPDX-License-Identifier: Apache-2.0
 *
 * Pruning to the wanted nodes, defaults of inputs, equal nodes, identities.
 *
 * Two walks. mark_live goes from the last node to the first: all readers of a
 * node are seen before it, so it is known which of its outputs are used when
 * its inputs are marked; bodies are pruned on the way. Then `run` copies live
 * nodes from the first to the last. A pure node is looked up by its op and its
 * inputs, the latter as mapped so far: if these were merged, so are nodes that
 * differ in them only, and one walk finds chains of equal nodes.
 *
 * Invariants: a live node's inputs are live (but for those cut off on purpose,
 * see |feed|); a twin stands at the place of the earliest node that it repeats,
 * whose inputs it has.
 *
 * Cost: linear in nodes and edges, and one comparison for each entry of a
 * bucket. Attributes play no part in the hash, so nodes that differ only in
 * these, as constants do, are in one bucket. */
#include "runtime/graph/pass/pass_simplify.h"

#include <assert.h>
#include <string.h>

#include "runtime/base/map.h"
#include "runtime/graph/graph_internal.h"
#include "runtime/graph/mesh/mesh_ranks.h"
#include "runtime/graph/pass/prune.h"

typedef struct simplifier {
  weir_pass pass;
  const weir_graph *graph;
  const weir_simplify_options *options;
  weir_arena arena;
  bool *live;           /* by node */
  bool *used;           /* by value */
  weir_node_id *stand;  /* by node: a later one that takes its place */
  weir_pruned **pruned; /* by node; NULL: no bodies, or not live */
  uint8_t *feed;        /* by node: how an `input` or variable is treated */
  uint32_t *buckets;    /* pure nodes copied so far: heads, by hash */
  uint32_t *chain;      /* by old node: the next in its bucket */
  uint32_t bucket_mask;
} simplifier;

enum { kFeedAsIs, kFeedFed, kFeedDefault };

/* ---- Needed nodes */

static void mark_value(simplifier *s, weir_value_id value) {
  if (value == WEIR_NO_VALUE) return;
  s->live[s->graph->values[value].node] = true;
  s->used[value] = true;
}

/* A twin moves to the place of the node that it repeats, so that this one need
 * not be computed as well. The first twin met is the one that stands there; a
 * twin of a twin hands its own stand-in on. */
static bool moves(simplifier *s, weir_node_id id) {
  const weir_node *node = &s->graph->nodes[id];
  weir_node_id to = node->twin, mine = s->stand[id];
  if (to == WEIR_NO_VALUE || s->stand[to] != WEIR_NO_VALUE) return false;
  assert(to < id); /* so the walk has yet to come by */
  s->stand[to] = mine != WEIR_NO_VALUE ? mine : id;
  return s->live[to] = true;
}

/* Uses of a node's outputs become uses of its twin's, which come first. */
static void hand_over(simplifier *s, weir_node_id id) {
  const weir_node *node = &s->graph->nodes[id];
  if (s->stand[id] == WEIR_NO_VALUE) return;
  const weir_node *twin = &s->graph->nodes[s->stand[id]];
  for (uint32_t i = 0; i < node->output_count; i++)
    s->used[twin->first_output + i] |= s->used[node->first_output + i];
}

static weir_status mark_inputs(simplifier *s, weir_node_id id,
                               weir_error *err) {
  const weir_node *node = &s->graph->nodes[id];
  bool fed = s->feed[id] == kFeedFed;
  weir_body_walk walk = {.outer = s->pass.builder,
                         .arena = &s->arena,
                         .keep_equal = s->options->keep_equal};
  if (node->body_count > 0)
    WEIR_TRY(weir_prune(&walk, node, s->used + node->first_output,
                        &s->pruned[id], err));
  for (uint32_t i = 0; !fed && i < node->input_count; i++)
    if (s->pruned[id] == NULL || s->pruned[id]->in[i])
      mark_value(s, node->inputs[i]);
  for (uint32_t i = 0; i < node->after_count; i++)
    s->live[node->after[i]] = true;
  return WEIR_OK;
}

/* Nodes are in topological order, so one walk from the end finds all. */
static weir_status mark_live(simplifier *s, weir_error *err) {
  for (size_t i = 0; i < s->options->value_count; i++)
    mark_value(s, s->options->values[i]);
  for (size_t i = 0; i < s->options->node_count; i++)
    s->live[s->options->nodes[i]] = true;
  WEIR_TRY(weir_graph_mark_ranks(s->graph, s->feed, s->live, err));
  for (uint32_t id = s->graph->node_count; id-- > 0;) {
    if (!s->live[id]) continue;
    hand_over(s, id);
    if (moves(s, id)) {
      s->live[id] = false;
      continue;
    }
    weir_node_id at = s->stand[id] != WEIR_NO_VALUE ? s->stand[id] : id;
    WEIR_TRY(mark_inputs(s, at, err));
  }
  return WEIR_OK;
}

/* With drop_inits a variable is like a fed input: the value is there, and the
 * nodes for its first value are not needed. */
static void mark_feeds(simplifier *s) {
  for (uint32_t i = 0; s->options->fed && i < s->graph->input_count; i++) {
    const weir_graph_port *input = &s->graph->inputs[i];
    weir_node_id id = s->graph->values[input->value].node;
    if (s->options->fed[i])
      s->feed[id] = kFeedFed;
    else if (input->has_default)
      s->feed[id] = kFeedDefault;
  }
  for (uint32_t id = 0; s->options->drop_inits && id < s->graph->node_count;
       id++)
    if (s->graph->nodes[id].op->instr == WEIR_INSTR_VAR_READ)
      s->feed[id] = kFeedFed;
}

/* ---- Equal nodes */

/* Equal inputs and attributes give equal outputs, and nothing else happens. */
static bool is_pure(const weir_node *node) {
  return node->op->instr == WEIR_INSTR_KERNEL && node->after_count == 0 &&
         node->output_count > 0 && node->op->shape != NULL &&
         (node->op->flags & (WEIR_OP_RANDOM | WEIR_OP_EFFECT)) == 0;
}

/* Tensors are compared by identity: literals of equal text stay apart. */
static bool attr_equal(const weir_attr *a, const weir_attr *b) {
  if (a->kind != b->kind || a->count != b->count) return false;
  switch (a->kind) {
    case WEIR_ATTR_NONE:
      return true;
    case WEIR_ATTR_INT:
      return a->i == b->i;
    case WEIR_ATTR_FLOAT:
      return memcmp(&a->f, &b->f, sizeof a->f) == 0;
    case WEIR_ATTR_BOOL:
      return a->b == b->b;
    case WEIR_ATTR_STRING:
      return weir_sv_equal(a->s, b->s);
    case WEIR_ATTR_DTYPE:
      return a->dtype == b->dtype;
    case WEIR_ATTR_INTS:
      return memcmp(a->dims, b->dims, a->count * sizeof *a->dims) == 0;
    case WEIR_ATTR_FLOATS:
      return memcmp(a->floats, b->floats, a->count * sizeof *a->floats) == 0;
    case WEIR_ATTR_TENSOR:
      return a->tensor == b->tensor;
    case WEIR_ATTR_NUMBER:
    case WEIR_ATTR_KIND_COUNT:
      break;
  }
  return false;
}

static weir_value_id mapped_input(const simplifier *s, const weir_node *node,
                                  uint32_t i) {
  return weir_pass_mapped(s->pass.values, node->inputs[i]);
}

static uint64_t node_hash(const simplifier *s, const weir_node *node) {
  uint64_t h = weir_hash_bytes(node->op->name, strlen(node->op->name), 1);
  for (uint32_t i = 0; i < node->input_count; i++) {
    weir_value_id id = mapped_input(s, node, i);
    h = weir_hash_bytes(&id, sizeof id, h);
  }
  return h;
}

static bool node_equal(const simplifier *s, const weir_node *a,
                       const weir_node *b) {
  if (a->op != b->op || a->input_count != b->input_count ||
      a->output_count != b->output_count ||
      !weir_sv_equal(a->device, b->device))
    return false;
  for (uint32_t i = 0; i < a->input_count; i++)
    if (mapped_input(s, a, i) != mapped_input(s, b, i)) return false;
  uint32_t count = weir_op_attr_count(a->op);
  for (uint32_t i = 0; i < count; i++)
    if (!attr_equal(&a->attrs[i], &b->attrs[i])) return false;
  return true;
}

/* An equal node that was copied before, or UINT32_MAX; enters this one. */
static weir_node_id find_equal(simplifier *s, weir_node_id id) {
  const weir_node *node = &s->graph->nodes[id];
  uint32_t *bucket = &s->buckets[node_hash(s, node) & s->bucket_mask];
  for (uint32_t k = *bucket; k != UINT32_MAX; k = s->chain[k])
    if (node_equal(s, &s->graph->nodes[k], node)) return k;
  s->chain[id] = *bucket;
  *bucket = id;
  return UINT32_MAX;
}

/* ---- Putting the new graph together */

/* Node |id| gives way to |value|; its names lead there. */
static weir_status replace(simplifier *s, weir_node_id id, uint32_t output,
                           weir_value_id value, weir_error *err) {
  const weir_node *node = &s->graph->nodes[id];
  s->pass.values[node->first_output + output] = value;
  if (output > 0) return WEIR_OK;
  s->pass.nodes[id] = /* for control edges */
      weir_graph_builder_graph(s->pass.builder)->values[value].node;
  return weir_graph_builder_name_value(s->pass.builder, node->name, value, err);
}

/* Whether the node gives its input back. */
static bool is_identity(const weir_node *node) {
  if (strcmp(node->op->name, "identity") == 0) return true;
  if (strcmp(node->op->name, "dropout") != 0) return false;
  int training = weir_op_attr_index(node->op, WEIR_SV_LIT("training"));
  return training >= 0 && !node->attrs[training].b;
}

/* Whether more than the first output of a node is read. */
static bool others_read(const simplifier *s, const weir_node *node) {
  for (uint32_t i = 1; i < node->output_count; i++)
    if (s->used[node->first_output + i]) return true;
  return false;
}

/* The twin that stands for |id| is copied in its place, under its name. All
 * nodes between them lead to it too. */
static weir_status visit_twin(simplifier *s, weir_node_id id, weir_error *err) {
  weir_node_id twin = s->stand[id];
  const weir_node *node = &s->graph->nodes[id];
  const weir_node *other = &s->graph->nodes[twin];
  assert(twin > id);
  WEIR_TRY(weir_prune_copy(&s->pass, twin, s->pruned[twin], &s->arena, err));
  for (weir_node_id at = twin; at != id;) {
    at = s->graph->nodes[at].twin; /* a twin may be another's twin */
    s->pass.nodes[at] = s->pass.nodes[twin];
    for (uint32_t i = 0; i < s->graph->nodes[at].output_count; i++)
      s->pass.values[s->graph->nodes[at].first_output + i] =
          s->pass.values[other->first_output + i];
  }
  weir_value_id first = s->pass.values[node->first_output];
  if (node->output_count == 0 || first == WEIR_NO_VALUE) return WEIR_OK;
  return weir_graph_builder_name_value(s->pass.builder, node->name, first, err);
}

static weir_status visit(simplifier *s, weir_node_id id, weir_error *err) {
  const weir_node *node = &s->graph->nodes[id];
  if (s->stand[id] != WEIR_NO_VALUE) return visit_twin(s, id, err);
  if (s->pruned[id] != NULL)
    return weir_prune_copy(&s->pass, id, s->pruned[id], &s->arena, err);
  bool identity = is_identity(node) && !others_read(s, node);
  if (node->after_count == 0 &&
      (identity || s->feed[id] == kFeedDefault)) /* control edges need a node */
    return replace(s, id, 0, s->pass.values[node->inputs[0]], err);
  if (!s->options->keep_equal && is_pure(node)) {
    weir_node_id same = find_equal(s, id);
    for (uint32_t i = 0; same != UINT32_MAX && i < node->output_count; i++)
      WEIR_TRY(replace(s, id, i,
                       s->pass.values[s->graph->nodes[same].first_output + i],
                       err));
    if (same != UINT32_MAX) {
      s->pass.nodes[id] = s->pass.nodes[same];
      return WEIR_OK;
    }
  }
  uint32_t keep = s->feed[id] == kFeedFed ? 0 : UINT32_MAX;
  return weir_pass_copy(&s->pass, id, NULL, keep, err);
}

static weir_status prepare(simplifier *s, weir_error *err) {
  /* About one bucket per node, up to 4 MiB of them. */
  uint32_t count = s->graph->node_count, buckets = 16;
  while (buckets < count && buckets < 1u << 20) buckets *= 2;
  s->bucket_mask = buckets - 1;
  const weir_allocator *alloc = s->graph->alloc;
  s->live = weir_alloc_array(alloc, count, sizeof *s->live);
  s->feed = weir_alloc_array(alloc, count, sizeof *s->feed);
  s->chain = weir_alloc_array(alloc, count, sizeof *s->chain);
  s->buckets = weir_alloc_array(alloc, buckets, sizeof *s->buckets);
  s->used = weir_alloc_array(alloc, s->graph->value_count, sizeof *s->used);
  s->stand = weir_alloc_array(alloc, count, sizeof *s->stand);
  s->pruned = weir_alloc_array(alloc, count, sizeof *s->pruned);
  if (!s->live || !s->feed || !s->chain || !s->buckets || !s->used ||
      !s->stand || !s->pruned)
    return weir_fail_memory(err, count * sizeof *s->chain);
  for (uint32_t i = 0; i < buckets; i++) s->buckets[i] = UINT32_MAX;
  for (uint32_t i = 0; i < count; i++) s->stand[i] = WEIR_NO_VALUE;
  mark_feeds(s);
  return mark_live(s, err);
}

static void copy_maps(const simplifier *s, weir_value_id *out_values,
                      weir_node_id *out_nodes) {
  if (out_values != NULL && s->graph->value_count > 0)
    memcpy(out_values, s->pass.values,
           s->graph->value_count * sizeof *out_values);
  if (out_nodes != NULL && s->graph->node_count > 0)
    memcpy(out_nodes, s->pass.nodes, s->graph->node_count * sizeof *out_nodes);
}

static void release(simplifier *s) {
  const weir_allocator *alloc = s->graph->alloc;
  for (uint32_t id = 0; s->pruned != NULL && id < s->graph->node_count; id++)
    weir_pruned_release(s->pruned[id]);
  weir_free(alloc, s->pruned);
  weir_free(alloc, s->stand);
  weir_free(alloc, s->used);
  weir_free(alloc, s->live);
  weir_free(alloc, s->feed);
  weir_free(alloc, s->chain);
  weir_free(alloc, s->buckets);
  weir_arena_release(&s->arena);
}

/* Once all is prepared. */
static weir_status run(simplifier *s, weir_error *err) {
  for (uint32_t id = 0; id < s->graph->node_count; id++)
    if (s->live[id]) WEIR_TRY(visit(s, id, err));
  return WEIR_OK;
}

/* ---- Graphs that are simple already */

/* Whether node |id| is copied as it is, equal nodes aside. */
static bool stays(const simplifier *s, weir_node_id id) {
  const weir_node *node = &s->graph->nodes[id];
  return s->live[id] && s->stand[id] == WEIR_NO_VALUE &&
         s->feed[id] != kFeedDefault &&
         (s->feed[id] != kFeedFed || node->input_count == 0) &&
         node->body_count == 0 && node->twin == WEIR_NO_VALUE &&
         node->group == WEIR_NO_GROUP && !is_identity(node);
}

/* Whether a copy would be the graph again. Then the maps are the identity. */
static bool is_simple(simplifier *s) {
  const weir_graph *g = s->graph;
  bool same = true;
  for (uint32_t i = 0; i < g->input_count; i++)
    if (g->inputs[i].has_default) return false;
  for (uint32_t id = 0; id < g->node_count; id++)
    if (!stays(s, id)) return false;
  for (uint32_t i = 0; i < g->value_count; i++) s->pass.values[i] = i;
  for (uint32_t id = 0; same && id < g->node_count; id++) {
    s->pass.nodes[id] = id;
    same = s->options->keep_equal || !is_pure(&g->nodes[id]) ||
           find_equal(s, id) == UINT32_MAX;
  }
  if (same) return true;
  memset(s->buckets, 0xff, ((size_t)s->bucket_mask + 1) * sizeof *s->buckets);
  memset(s->pass.values, 0xff, g->value_count * sizeof *s->pass.values);
  memset(s->pass.nodes, 0xff, g->node_count * sizeof *s->pass.nodes);
  return false;
}

weir_status weir_graph_simplify(const weir_graph *graph,
                                const weir_simplify_options *options,
                                weir_value_id *out_values,
                                weir_node_id *out_nodes, weir_graph **out_graph,
                                weir_error *err) {
  simplifier s = {.graph = graph, .options = options};
  *out_graph = NULL;
  weir_arena_init(&s.arena, graph->alloc);
  weir_status status = weir_pass_begin(&s.pass, graph, err);
  if (status == WEIR_OK) status = prepare(&s, err);
  bool simple = status == WEIR_OK && is_simple(&s);
  if (status == WEIR_OK && !simple) status = run(&s, err);
  if (status == WEIR_OK) copy_maps(&s, out_values, out_nodes);
  if (simple) {
    weir_pass_drop(&s.pass);
    *out_graph = weir_graph_ref(graph);
  } else {
    status = weir_pass_end(&s.pass, status, out_graph, err);
  }
  release(&s);
  return status;
}

/* ---- Bodies */

static weir_status copy_ports(simplifier *s, const bool *keep_in,
                              const bool *keep_out, weir_error *err) {
  const weir_graph *body = s->graph;
  for (uint32_t i = 0; i < body->input_count; i++) {
    weir_graph_port port = body->inputs[i];
    if (!keep_in[i]) continue;
    port.value = s->pass.values[port.value];
    WEIR_TRY(weir_graph_builder_add_input(s->pass.builder, &port, err));
  }
  for (uint32_t i = 0; i < body->output_count; i++) {
    weir_graph_port port = body->outputs[i];
    if (keep_out != NULL && !keep_out[i]) continue;
    port.value = s->pass.values[port.value];
    WEIR_TRY(weir_graph_builder_add_output(s->pass.builder, &port, err));
  }
  return WEIR_OK;
}

weir_status weir_simplify_body(const weir_body_walk *walk,
                               const weir_graph *body, const bool *keep_in,
                               const bool *keep_out, weir_graph **out,
                               weir_error *err) {
  uint32_t room = body->input_count + body->output_count, count = 0;
  weir_value_id *wanted = weir_alloc_array(body->alloc, room, sizeof *wanted);
  weir_simplify_options options = {.values = wanted,
                                   .keep_equal = walk->keep_equal};
  simplifier s = {.graph = body, .options = &options};
  *out = NULL;
  if (wanted == NULL) return weir_fail_memory(err, room * sizeof *wanted);
  for (uint32_t i = 0; i < body->input_count; i++)
    if (keep_in[i]) wanted[count++] = body->inputs[i].value;
  for (uint32_t i = 0; i < body->output_count; i++)
    if (keep_out == NULL || keep_out[i])
      wanted[count++] = body->outputs[i].value;
  options.value_count = count;
  weir_arena_init(&s.arena, body->alloc);
  weir_status status = weir_pass_begin_body(&s.pass, body, walk->outer, err);
  s.pass.own_ports = true;
  if (status == WEIR_OK) status = prepare(&s, err);
  if (status == WEIR_OK) status = run(&s, err);
  if (status == WEIR_OK) status = copy_ports(&s, keep_in, keep_out, err);
  status = weir_pass_end(&s.pass, status, out, err);
  release(&s);
  weir_free(body->alloc, wanted);
  return status;
}
