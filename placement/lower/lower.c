/* SPDX-License-Identifier: Apache-2.0 */
/* From units to a problem: bytes, tensors, uses and costs (lower.h).
 *
 * The passes before have formed units and their sets of devices; this one adds
 * one node per unit to a problem, one tensor per value that another unit reads,
 * and one of no bytes per unit that another waits for by `after`.
 * Invariant: units come in topological order, so a tensor's producer is added
 * before its uses. The model's memory equals the executor's: memory
 * that lasts from run to run is counted once, at one unit (enum lasting).
 * Cost: O(nodes + values), and the cost of each unit once per kind of device.
 */
#include "placement/lower/lower.h"

#include <assert.h>
#include <string.h>

#include "placement/lower/cost_file_fit.h"
#include "placement/lower/lower_cost.h"
#include "placement/lower/lower_internal.h"
#include "placement/lower/lower_rules.h"
#include "placement/lower/lower_units.h"
#include "runtime/base/size.h"

static int64_t value_bytes(const weir_graph *g, weir_value_id v) {
  const weir_value *value = &g->values[v];
  size_t bytes = 0;
  if (!weir_shape_known(value->shape)) return 0;
  int64_t elements = weir_shape_elements(value->shape);
  if (!weir_size_mul((size_t)elements, weir_dtype_size(value->dtype), &bytes))
    return INT64_MAX /
           4; /* fits no device, and sums of a few do not overflow */
  return (int64_t)bytes;
}

int64_t weir_lower_resident(const weir_lowering *l, uint32_t unit) {
  const weir_node *n = &l->graph->nodes[l->units[unit].node];
  return n->op->instr == WEIR_INSTR_VAR_READ
             ? value_bytes(l->graph, n->first_output)
             : 0;
}

/* ---- The problem */

/* Whether |v| is read outside the unit that makes it, by a unit. */
static bool leaves_unit(const weir_lowering *l, const bool *read,
                        weir_value_id v) {
  return l->unit_of[l->graph->values[v].node] != WEIR_PLACE_NONE && read[v];
}

static void mark_reads(const weir_lowering *l, bool *read) {
  const weir_graph *g = l->graph;
  for (weir_node_id id = 0; id < g->node_count; id++) {
    uint32_t mine = l->unit_of[id];
    if (mine == WEIR_PLACE_NONE) continue;
    for (uint32_t i = 0; i < g->nodes[id].input_count; i++) {
      weir_value_id v = g->nodes[id].inputs[i];
      if (v != WEIR_NO_VALUE && l->unit_of[g->values[v].node] != mine)
        read[v] = true;
    }
  }
}

static uint32_t set_number(const weir_lowering *l, weir_place_builder *b,
                           uint32_t u) {
  uint32_t devices[WEIR_PLACE_DEVICES], count = 0;
  const uint64_t *set = l->allowed + (size_t)u * l->words;
  for (uint32_t d = 0; d < l->cluster->device_count; d++)
    if ((set[d >> 6] >> (d & 63)) & 1) devices[count++] = d;
  return count == l->cluster->device_count
             ? 0
             : weir_place_add_set(b, devices, count);
}

typedef struct filler {
  weir_lowering *l;
  weir_place_builder *b;
  bool *read;            /* per value: by another unit */
  bool *awaited;         /* per unit: another runs after it */
  uint32_t *token;       /* per unit: its tensor of no bytes, or NONE */
  bool *joined;          /* per unit: others are colocated with it */
  uint8_t *lasting;      /* per value: enum lasting */
  bool *second;          /* per unit: a variable that is assigned */
  uint32_t *tensor;      /* per value: of the problem, or NONE */
  uint32_t *constant;    /* likewise */
  weir_value_id *values; /* per tensor; NO_VALUE: a token */
  uint32_t tensor_count;
} filler;

/* ---- Memory that lasts from run to run: inputs, outputs, and of an assigned
 * variable the value to be, which has a buffer of its own. */

enum lasting {
  PASSING,  /* a tensor like any other */
  LASTS,    /* its memory stays with its unit */
  ELSEWHERE /* its memory is counted at the variable */
};

/* The value whose memory |v| is: through views. */
static weir_value_id root_of(const weir_graph *g, weir_value_id v) {
  while ((g->nodes[g->values[v].node].op->flags & WEIR_OP_VIEW) != 0 &&
         g->values[v].port == 0)
    v = g->nodes[g->values[v].node].inputs[0];
  return v;
}

/* Whether the unit that makes |v| may write it to memory that is there. */
static bool is_made(const weir_lowering *l, weir_value_id v) {
  const weir_node *n = &l->graph->nodes[l->graph->values[v].node];
  return n->op->instr != WEIR_INSTR_FEED &&
         n->op->instr != WEIR_INSTR_VAR_READ &&
         l->unit_of[l->graph->values[v].node] != WEIR_PLACE_NONE;
}

static void mark_lasting(filler *f) {
  const weir_lowering *l = f->l;
  const weir_graph *g = l->graph;
  for (weir_node_id id = 0; id < g->node_count; id++) {
    const weir_node *n = &g->nodes[id];
    if (n->op->instr == WEIR_INSTR_FEED) f->lasting[n->first_output] = LASTS;
    if (n->op->instr != WEIR_INSTR_VAR_COMMIT) continue;
    bool adds = weir_sv_is(weir_sv_from(n->op->name), "assign_add");
    weir_value_id v = adds ? n->first_output : root_of(g, n->inputs[1]);
    if (is_made(l, v)) f->lasting[v] = ELSEWHERE;
    uint32_t var = l->unit_of[g->values[n->inputs[0]].node];
    if (var != WEIR_PLACE_NONE) f->second[var] = true;
  }
  for (uint32_t i = 0; i < g->output_count; i++) {
    weir_value_id v = root_of(g, g->outputs[i].value);
    if (!is_made(l, v)) v = g->outputs[i].value; /* it is copied out */
    f->lasting[v] = LASTS;
  }
}

/* ---- Constants: variables that nothing assigns, values that are known, and
 * views of both. They are compiled in wherever they are read, so no step copies
 * them, and each device with a reader holds them. */

/* The constant whose bytes |v| has, through views; NO_VALUE: it has none. */
static weir_value_id constant_root(const filler *f, weir_value_id v) {
  const weir_graph *g = f->l->graph;
  for (;;) {
    const weir_node *n = &g->nodes[g->values[v].node];
    uint32_t u = f->l->unit_of[g->values[v].node];
    if (u == WEIR_PLACE_NONE) return v;
    if (n->op->instr == WEIR_INSTR_VAR_READ)
      return f->second[u] ? WEIR_NO_VALUE : v;
    if ((n->op->flags & WEIR_OP_VIEW) == 0 || g->values[v].port != 0)
      return WEIR_NO_VALUE;
    v = n->inputs[0];
  }
}

/* No step copies a constant, nor a view of one. */
static void forget_constants(filler *f) {
  const weir_lowering *l = f->l;
  for (weir_node_id id = 0; id < l->graph->node_count; id++) {
    const weir_node *n = &l->graph->nodes[id];
    bool source = n->op->instr == WEIR_INSTR_VAR_READ ||
                  (n->op->flags & WEIR_OP_VIEW) != 0;
    if (source && l->unit_of[id] != WEIR_PLACE_NONE &&
        constant_root(f, n->first_output) != WEIR_NO_VALUE)
      f->read[n->first_output] = false;
  }
}

/* Says that problem node |n|, of |node|, reads the constants among its inputs.
 * A view reads nothing. */
static void add_reads(filler *f, uint32_t n, const weir_node *node) {
  const weir_graph *g = f->l->graph;
  if (node->op->instr == WEIR_INSTR_VAR_READ ||
      node->op->instr == WEIR_INSTR_FEED ||
      (node->op->flags & WEIR_OP_VIEW) != 0)
    return;
  for (uint32_t i = 0; i < node->input_count; i++) {
    if (node->inputs[i] == WEIR_NO_VALUE) continue;
    weir_value_id v = constant_root(f, node->inputs[i]);
    if (v == WEIR_NO_VALUE) continue;
    uint32_t home = f->l->unit_of[g->values[v].node];
    if (f->constant[v] == WEIR_PLACE_NONE)
      f->constant[v] = weir_place_add_constant(f->b, home, value_bytes(g, v));
    weir_place_add_constant_use(f->b, n, f->constant[v]);
  }
}

static int64_t lasting_bytes(const filler *f, uint32_t u) {
  const weir_lowering *l = f->l;
  const weir_unit *unit = &l->units[u];
  int64_t bytes = f->second[u] ? 2 * weir_lower_resident(l, u) : 0;
  for (uint32_t m = 0; m < unit->member_count; m++) {
    const weir_node *n = &l->graph->nodes[l->members[unit->first_member + m]];
    for (uint32_t i = 0; i < n->output_count; i++)
      if (f->lasting[n->first_output + i] == LASTS)
        bytes += value_bytes(l->graph, n->first_output + i);
  }
  return bytes;
}

/* ---- Units */

/* The unit that |node| runs after by its i-th `after`; NONE: the same, or a
 * constant. */
static uint32_t awaited_unit(const weir_lowering *l, const weir_node *node,
                             uint32_t i, uint32_t mine) {
  uint32_t before = l->unit_of[node->after[i]];
  return before == mine ? WEIR_PLACE_NONE : before;
}

static void mark_awaited(filler *f) {
  const weir_lowering *l = f->l;
  for (weir_node_id id = 0; id < l->graph->node_count; id++) {
    const weir_node *node = &l->graph->nodes[id];
    if (l->unit_of[id] == WEIR_PLACE_NONE) continue;
    for (uint32_t i = 0; i < node->after_count; i++) {
      uint32_t before = awaited_unit(l, node, i, l->unit_of[id]);
      if (before != WEIR_PLACE_NONE) f->awaited[before] = true;
    }
  }
}

static void add_uses(filler *f, uint32_t n, uint32_t u, const weir_node *node) {
  const weir_lowering *l = f->l;
  for (uint32_t i = 0; i < node->input_count; i++) {
    weir_value_id v = node->inputs[i];
    if (v != WEIR_NO_VALUE && f->tensor[v] != WEIR_PLACE_NONE &&
        l->unit_of[l->graph->values[v].node] != u)
      weir_place_add_use(f->b, n, f->tensor[v]);
  }
  for (uint32_t i = 0; i < node->after_count; i++) {
    uint32_t before = awaited_unit(l, node, i, u);
    if (before != WEIR_PLACE_NONE)
      weir_place_add_use(f->b, n, f->token[before]);
  }
}

static weir_status add_unit(filler *f, uint32_t u) {
  weir_lowering *l = f->l;
  const weir_graph *g = l->graph;
  const weir_unit *unit = &l->units[u];
  int64_t cost[WEIR_PLACE_CLASSES];
  WEIR_TRY(weir_lower_unit_cost(l, u, cost));
  weir_place_node_spec spec = {.name = g->nodes[unit->node].name,
                               .name_stays = true, /* the graph is held */
                               .cost = cost,
                               .resident_bytes = lasting_bytes(f, u),
                               .set = set_number(l, f->b, u),
                               .group = unit->with != WEIR_PLACE_NONE
                                            ? unit->with
                                        : f->joined[u] ? u
                                                       : WEIR_PLACE_NONE};
  uint32_t n = weir_place_add_node(f->b, &spec);
  assert(unit->with == WEIR_PLACE_NONE || unit->with < u);
  bool variable = g->nodes[unit->node].op->instr == WEIR_INSTR_VAR_READ;
  for (uint32_t m = 0; m < unit->member_count; m++) {
    const weir_node *node = &g->nodes[l->members[unit->first_member + m]];
    for (uint32_t i = 0; i < node->output_count; i++) {
      weir_value_id v = node->first_output + i;
      if (!leaves_unit(l, f->read, v)) continue;
      f->tensor[v] = weir_place_add_tensor(f->b, n, value_bytes(g, v));
      if (variable || f->lasting[v] != PASSING)
        weir_place_keep_tensor(f->b, f->tensor[v]);
      f->values[f->tensor_count++] = v;
    }
  }
  if (f->awaited[u]) {
    f->token[u] = weir_place_add_tensor(f->b, n, 0);
    f->values[f->tensor_count++] = WEIR_NO_VALUE;
  }
  for (uint32_t m = 0; m < unit->member_count; m++)
    add_uses(f, n, u, &g->nodes[l->members[unit->first_member + m]]);
  for (uint32_t m = 0; m < unit->member_count; m++)
    add_reads(f, n, &g->nodes[l->members[unit->first_member + m]]);
  return WEIR_OK;
}

static weir_status fill_problem(weir_lowering *l, weir_placement *out) {
  const weir_graph *g = l->graph;
  filler f = {.l = l};
  weir_place_problem *problem = NULL;
  size_t values = (size_t)g->value_count + 1;
  size_t units = (size_t)l->unit_count + 1;
  weir_status s = weir_place_builder_create(l->alloc, l->cluster->class_count,
                                            &f.b, l->err);
  if (s != WEIR_OK) return s;
  f.read = weir_alloc_array(l->alloc, values, sizeof *f.read);
  f.joined = weir_alloc_array(l->alloc, units, sizeof *f.joined);
  f.lasting = weir_alloc_array(l->alloc, values, sizeof *f.lasting);
  f.second = weir_alloc_array(l->alloc, units, sizeof *f.second);
  f.awaited = weir_alloc_array(l->alloc, units, sizeof *f.awaited);
  f.token = weir_alloc_array(l->alloc, units, sizeof *f.token);
  f.tensor = weir_alloc_array(l->alloc, values, sizeof *f.tensor);
  f.constant = weir_alloc_array(l->alloc, values, sizeof *f.constant);
  f.values = weir_arena_array(l->arena, values + units, sizeof *f.values);
  if (f.read == NULL || f.joined == NULL || f.tensor == NULL ||
      f.values == NULL || f.awaited == NULL || f.token == NULL ||
      f.lasting == NULL || f.second == NULL || f.constant == NULL)
    s = weir_fail_memory(l->err, values * sizeof *f.tensor);
  if (s == WEIR_OK) {
    memset(f.tensor, 0xff, values * sizeof *f.tensor);
    memset(f.constant, 0xff, values * sizeof *f.constant);
    memset(f.token, 0xff, units * sizeof *f.token);
    mark_reads(l, f.read);
    mark_awaited(&f);
    mark_lasting(&f);
    forget_constants(&f);
    for (uint32_t u = 0; u < l->unit_count; u++)
      if (l->units[u].with != WEIR_PLACE_NONE)
        f.joined[l->units[u].with] = true;
    weir_cluster_add_to(l->cluster, f.b);
  }
  for (uint32_t u = 0; u < l->unit_count && s == WEIR_OK; u++)
    s = add_unit(&f, u);
  if (s == WEIR_OK) s = weir_place_builder_finish(f.b, &problem, l->err);
  out->problem = problem;
  out->tensor_value = f.values;
  weir_free(l->alloc, f.read);
  weir_free(l->alloc, f.joined);
  weir_free(l->alloc, f.lasting);
  weir_free(l->alloc, f.second);
  weir_free(l->alloc, f.awaited);
  weir_free(l->alloc, f.token);
  weir_free(l->alloc, f.tensor);
  weir_free(l->alloc, f.constant);
  weir_place_builder_release(f.b);
  return s;
}

/* Room for the measured costs of all units. */
static weir_status make_measured(weir_lowering *l) {
  size_t classes = l->cluster->class_count;
  size_t count = ((size_t)l->unit_count + 1) * classes;
  const weir_cost_entry **all = weir_arena_array(l->arena, count, sizeof *all);
  if (all == NULL) return weir_fail_memory(l->err, count * sizeof *all);
  for (uint32_t u = 0; u < l->unit_count; u++)
    l->units[u].measured = all + u * classes;
  return WEIR_OK;
}

/* The problem, with measured costs where there are any. */
static weir_status cost_and_fill(weir_lowering *l, weir_placement *out) {
  const weir_costs *costs = l->options->costs;
  for (uint32_t c = 0; c < l->cluster->class_count; c++)
    l->fit[c] = weir_costs_fit(costs, &l->cluster->classes[c]);
  if (costs == NULL) return fill_problem(l, out);
  WEIR_TRY(make_measured(l));
  WEIR_TRY(weir_signer_create(l->alloc, l->graph, &l->signer, l->err));
  weir_strbuf_init(&l->key, l->alloc);
  weir_status s = fill_problem(l, out);
  weir_strbuf_release(&l->key);
  weir_signer_release(&l->signer);
  return s;
}

weir_status weir_placement_create(const weir_allocator *alloc,
                                  const weir_graph *graph,
                                  const weir_cluster *cluster,
                                  const weir_lower_options *options,
                                  weir_placement **out_placement,
                                  weir_error *err) {
  static const weir_lower_options plain = {.strictness = WEIR_PLACE_WARN};
  *out_placement = NULL;
  weir_placement *p = weir_alloc_array(alloc, 1, sizeof *p);
  if (p == NULL) return weir_fail_memory(err, sizeof *p);
  weir_arena_init(&p->arena, alloc);
  p->graph = weir_graph_ref(graph);
  p->cluster = cluster;
  weir_lowering l = {.alloc = alloc,
                     .arena = &p->arena,
                     .graph = graph,
                     .cluster = cluster,
                     .options = options == NULL ? &plain : options,
                     .err = err};
  weir_status s = WEIR_OK;
  if (!weir_lower_find_units(&l))
    s = weir_fail_memory(err, graph->node_count * sizeof(weir_unit));
  if (s == WEIR_OK) {
    weir_lower_join_units(&l);
    s = weir_lower_apply_rules(&l);
  }
  if (s == WEIR_OK) s = cost_and_fill(&l, p);
  weir_free(alloc, l.last_member);
  weir_free(alloc, l.parent);
  weir_free(alloc, l.allowed);
  weir_free(alloc, l.load);
  p->units = l.units;
  p->members = l.members;
  p->unit_of = l.unit_of;
  p->unit_count = l.unit_count;
  p->assumed_kinds = l.options->assumed_kinds;
  p->member_total = l.member_total;
  if (s == WEIR_OK)
    *out_placement = p;
  else
    weir_placement_release(p);
  return s;
}

void weir_placement_release(weir_placement *p) {
  if (p == NULL) return;
  const weir_allocator *a = p->arena.alloc;
  weir_place_problem_release((weir_place_problem *)(uintptr_t)p->problem);
  weir_graph_unref(p->graph);
  weir_arena_release(&p->arena);
  weir_free(a, p);
}
