/* SPDX-License-Identifier: Apache-2.0 */
/* From units to a problem: bytes, tensors, uses and costs (lower.h).
 *
 * The passes before have formed units and their sets of devices; this one adds
 * one node per unit to a problem, one tensor per value that another unit reads,
 * and one of no bytes per unit that another waits for by `after`.
 * Invariant: units come in topological order, so a tensor's producer is added
 * before its uses. Memory beside tensors is in lower_memory.c.
 * Cost: O(nodes + values), and the cost of each unit once per kind of device.
 */
#include "placement/lower/lower.h"

#include <assert.h>
#include <string.h>

#include "placement/lower/cost_file_fit.h"
#include "placement/lower/lower_cost.h"
#include "placement/lower/lower_internal.h"
#include "placement/lower/lower_memory.h"
#include "placement/lower/lower_rules.h"
#include "placement/lower/lower_units.h"
#include "runtime/base/size.h"

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
  bool *read;      /* per value: by another unit */
  bool *awaited;   /* per unit: another runs after it */
  uint32_t *token; /* per unit: its tensor of no bytes, or NONE */
  bool *joined;    /* per unit: others are colocated with it */
  weir_lower_memory memory;
  uint32_t *tensor;      /* per value: of the problem, or NONE */
  weir_value_id *values; /* per tensor; NO_VALUE: a token */
  uint32_t tensor_count;
} filler;

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
  for (uint32_t c = 0; c < l->cluster->class_count && unit->constant; c++)
    if (cost[c] != WEIR_PLACE_NO_KERNEL) cost[c] = 0;
  weir_place_node_spec spec = {
      .name = g->nodes[unit->node].name,
      .name_stays = true, /* the graph is held */
      .cost = cost,
      .resident_bytes = weir_lower_lasting(l, &f->memory, u),
      .temp_bytes = weir_lower_passing(l, &f->memory, f->read, u),
      .set = set_number(l, f->b, u),
      .group = unit->with != WEIR_PLACE_NONE ? unit->with
               : f->joined[u]                ? u
                                             : WEIR_PLACE_NONE};
  uint32_t n = weir_place_add_node(f->b, &spec);
  assert(unit->with == WEIR_PLACE_NONE || unit->with < u);
  for (uint32_t m = 0; m < unit->member_count; m++) {
    const weir_node *node = &g->nodes[l->members[unit->first_member + m]];
    for (uint32_t i = 0; i < node->output_count; i++) {
      weir_value_id v = node->first_output + i;
      if (!leaves_unit(l, f->read, v)) continue;
      f->tensor[v] =
          weir_place_add_tensor(f->b, n, weir_lower_value_bytes(g, v));
      weir_place_keep_tensor(f->b, f->tensor[v],
                             weir_lower_keeper(l, &f->memory, v));
      f->values[f->tensor_count++] = v;
    }
  }
  if (f->awaited[u]) {
    f->token[u] = weir_place_add_tensor(f->b, n, 0);
    f->values[f->tensor_count++] = WEIR_NO_VALUE;
  }
  for (uint32_t m = 0; m < unit->member_count; m++)
    add_uses(f, n, u, &g->nodes[l->members[unit->first_member + m]]);
  weir_value_id x, y;
  if (weir_lower_over(l, &f->memory, f->read, u, &x, &y))
    weir_place_add_over(f->b, f->tensor[x], f->tensor[y]);
  weir_lower_add_reads(l, &f->memory, f->b, u, n);
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
  f.awaited = weir_alloc_array(l->alloc, units, sizeof *f.awaited);
  f.token = weir_alloc_array(l->alloc, units, sizeof *f.token);
  f.tensor = weir_alloc_array(l->alloc, values, sizeof *f.tensor);
  f.values = weir_arena_array(l->arena, values + units, sizeof *f.values);
  if (f.read == NULL || f.joined == NULL || f.tensor == NULL ||
      f.values == NULL || f.awaited == NULL || f.token == NULL)
    s = weir_fail_memory(l->err, values * sizeof *f.tensor);
  if (s == WEIR_OK) {
    memset(f.tensor, 0xff, values * sizeof *f.tensor);
    memset(f.token, 0xff, units * sizeof *f.token);
    mark_reads(l, f.read);
    mark_awaited(&f);
    for (uint32_t u = 0; u < l->unit_count; u++)
      if (l->units[u].with != WEIR_PLACE_NONE)
        f.joined[l->units[u].with] = true;
    weir_cluster_add_to(l->cluster, f.b);
    if (l->options->ask != NULL) weir_place_lay_out(f.b);
    s = weir_lower_memory_begin(l, &f.memory);
  }
  if (s == WEIR_OK) weir_lower_forget_constants(l, &f.memory, f.read);
  for (uint32_t u = 0; u < l->unit_count && s == WEIR_OK; u++)
    s = add_unit(&f, u);
  if (s == WEIR_OK) s = weir_place_builder_finish(f.b, &problem, l->err);
  out->problem = problem;
  out->tensor_value = f.values;
  weir_free(l->alloc, f.read);
  weir_free(l->alloc, f.joined);
  weir_lower_memory_end(l, &f.memory);
  weir_free(l->alloc, f.awaited);
  weir_free(l->alloc, f.token);
  weir_free(l->alloc, f.tensor);
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
  p->absent_kinds = l.options->absent_kinds;
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
