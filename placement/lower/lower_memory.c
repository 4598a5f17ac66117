/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of units beside tensors (lower_memory.h). The model's memory equals
 * the executor's, which is asked (weir_lower_ask) for all that follows from
 * kernels: their scratch, packed constants, programs of bodies, and values that
 * are constant once the graph is compiled.
 *
 * Invariant: memory that lasts from run to run is counted once, at one unit
 * (enum lasting), and a constant once on each device with a reader.
 * Cost: O(nodes + values), and that of asking. */
#include "placement/lower/lower_memory.h"

#include <string.h>

#include "runtime/base/size.h"

/* Inputs, outputs, and of an assigned variable the value to be, which has a
 * buffer of its own, last. */
enum lasting {
  PASSING,  /* a tensor like any other */
  LASTS,    /* its memory stays with its unit */
  ELSEWHERE /* where its variable is, its memory is the variable's */
};

int64_t weir_lower_value_bytes(const weir_graph *g, weir_value_id v) {
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
             ? weir_lower_value_bytes(l->graph, n->first_output)
             : 0;
}

uint32_t weir_lower_keeper(const weir_lowering *l, const weir_lower_memory *m,
                           weir_value_id v) {
  weir_node_id maker = l->graph->values[v].node;
  if (m->lasting[v] == ELSEWHERE) return m->variable[v];
  return m->lasting[v] == LASTS ||
                 l->graph->nodes[maker].op->instr == WEIR_INSTR_VAR_READ
             ? l->unit_of[maker]
             : WEIR_PLACE_NONE;
}

/* ---- What lasts */

static bool is_view(const weir_graph *g, weir_value_id v) {
  return (g->nodes[g->values[v].node].op->flags & WEIR_OP_VIEW) != 0 &&
         g->values[v].port == 0;
}

/* The value whose memory |v| is: through views. */
static weir_value_id root_of(const weir_graph *g, weir_value_id v) {
  while (is_view(g, v)) v = g->nodes[g->values[v].node].inputs[0];
  return v;
}

/* Whether the unit that makes |v| may write it to memory that is there. */
static bool is_made(const weir_lowering *l, const weir_lower_memory *m,
                    weir_value_id v) {
  const weir_node *n = &l->graph->nodes[l->graph->values[v].node];
  return n->op->instr != WEIR_INSTR_FEED &&
         n->op->instr != WEIR_INSTR_VAR_READ && !m->needs.constant[v] &&
         l->unit_of[l->graph->values[v].node] != WEIR_PLACE_NONE;
}

static bool is_adding(const weir_node *commit) {
  return weir_sv_is(weir_sv_from(commit->op->name), "assign_add");
}

/* An output takes its value's place, or is a copy: of an input, a variable, a
 * constant, or of what is an output already. */
static void mark_output(const weir_lowering *l, weir_lower_memory *m,
                        weir_value_id v) {
  weir_value_id root = root_of(l->graph, v);
  uint32_t u = l->unit_of[l->graph->values[v].node];
  if (is_made(l, m, root) && m->lasting[root] == PASSING)
    m->lasting[root] = LASTS;
  else if (u != WEIR_PLACE_NONE)
    m->copied_bytes[u] += weir_lower_value_bytes(l->graph, v);
}

/* Counts the nodes that read each value. A variable's commit reads none: where
 * the variable is, the value is its own, and elsewhere it is sent at once. One
 * that adds reads what it adds. */
static void count_readers(const weir_graph *g, uint32_t *readers) {
  for (weir_node_id id = 0; id < g->node_count; id++) {
    const weir_node *n = &g->nodes[id];
    bool commit = n->op->instr == WEIR_INSTR_VAR_COMMIT;
    if (commit && !is_adding(n)) continue;
    for (uint32_t i = commit ? 1 : 0; i < n->input_count; i++)
      if (n->inputs[i] != WEIR_NO_VALUE) readers[n->inputs[i]]++;
  }
}

static void mark_lasting(const weir_lowering *l, weir_lower_memory *m) {
  const weir_graph *g = l->graph;
  for (weir_node_id id = 0; id < g->node_count; id++)
    if (g->nodes[id].op->instr == WEIR_INSTR_FEED)
      m->lasting[g->nodes[id].first_output] = LASTS;
  for (uint32_t i = 0; i < g->output_count; i++)
    mark_output(l, m, g->outputs[i].value);
  for (weir_node_id id = 0; id < g->node_count; id++) {
    const weir_node *n = &g->nodes[id];
    if (n->op->instr != WEIR_INSTR_VAR_COMMIT) continue;
    weir_value_id v = is_adding(n) ? n->first_output : root_of(g, n->inputs[1]);
    uint32_t var = l->unit_of[g->values[n->inputs[0]].node];
    if (var == WEIR_PLACE_NONE) continue;
    m->assigned[var] = true;
    if (!is_made(l, m, v) || m->lasting[v] != PASSING) continue;
    m->lasting[v] = ELSEWHERE;
    m->variable[v] = var;
  }
}

int64_t weir_lower_lasting(const weir_lowering *l, const weir_lower_memory *m,
                           uint32_t u) {
  const weir_unit *unit = &l->units[u];
  int64_t bytes = m->copied_bytes[u];
  for (int times = 0; m->assigned[u] && times < 2; times++)
    weir_sum_add(&bytes, weir_lower_resident(l, u));
  for (uint32_t k = 0; k < unit->member_count; k++) {
    weir_node_id id = l->members[unit->first_member + k];
    const weir_node *n = &l->graph->nodes[id];
    weir_sum_add(&bytes, m->needs.kept_bytes[id]);
    for (uint32_t i = 0; i < n->output_count; i++)
      if (m->lasting[n->first_output + i] == LASTS)
        weir_sum_add(&bytes,
                     weir_lower_value_bytes(l->graph, n->first_output + i));
  }
  return bytes;
}

/* Whether member |k| of |unit| takes over memory of |*x|, another unit's, for
 * |*y|, where both are tensors. */
static bool takes_over(const weir_lowering *l, const weir_lower_memory *m,
                       const bool *read, const weir_unit *unit, uint32_t k,
                       weir_value_id *x, weir_value_id *y) {
  weir_node_id id = l->members[unit->first_member + k];
  *x = m->needs.reused[id];
  *y = l->graph->nodes[id].first_output;
  return m->needs.reused_bytes[id] > 0 && m->readers[*x] == 1 && read[*x] &&
         read[*y];
}

static bool both_pass(const weir_lowering *l, const weir_lower_memory *m,
                      weir_value_id x, weir_value_id y) {
  return weir_lower_keeper(l, m, x) == WEIR_PLACE_NONE &&
         weir_lower_keeper(l, m, y) == WEIR_PLACE_NONE;
}

/* Memory of inputs that outputs of |unit| take over, both being tensors. */
static int64_t taken_over(const weir_lowering *l, const weir_lower_memory *m,
                          const bool *read, const weir_unit *unit) {
  int64_t bytes = 0;
  weir_value_id x, y;
  for (uint32_t k = 0; k < unit->member_count && !unit->constant; k++)
    if (takes_over(l, m, read, unit, k, &x, &y) && both_pass(l, m, x, y))
      weir_sum_add(&bytes,
                   weir_place_laid_out(weir_lower_value_bytes(l->graph, x)));
  return bytes;
}

bool weir_lower_over(const weir_lowering *l, const weir_lower_memory *m,
                     const bool *read, uint32_t u, weir_value_id *x,
                     weir_value_id *y) {
  const weir_unit *unit = &l->units[u];
  for (uint32_t k = 0; k < unit->member_count && !unit->constant; k++)
    if (takes_over(l, m, read, unit, k, x, y) && !both_pass(l, m, *x, *y))
      return true;
  return false;
}

/* Notes for each value the last node of |unit| that reads it, by number. */
static void note_readers(const weir_lowering *l, const weir_lower_memory *m,
                         const weir_unit *unit) {
  for (uint32_t k = 0; k < unit->member_count; k++) {
    const weir_node *n = &l->graph->nodes[l->members[unit->first_member + k]];
    for (uint32_t i = 0; i < n->output_count; i++)
      m->last_reader[n->first_output + i] = k;
    for (uint32_t i = 0; i < n->input_count; i++)
      if (n->inputs[i] != WEIR_NO_VALUE) m->last_reader[n->inputs[i]] = k;
  }
}

/* Bytes of |v| if no other unit reads it and it passes. */
static int64_t inner_bytes(const weir_lower_memory *m, const bool *read,
                           weir_value_id v) {
  return read[v] || m->lasting[v] != PASSING ? 0 : m->needs.value_bytes[v];
}

int64_t weir_lower_passing(const weir_lowering *l, const weir_lower_memory *m,
                           const bool *read, uint32_t u) {
  const weir_graph *g = l->graph;
  const weir_unit *unit = &l->units[u];
  int64_t live = 0, most = 0;
  if (unit->constant) return 0;
  note_readers(l, m, unit);
  for (uint32_t k = 0; k < unit->member_count; k++) {
    weir_node_id id = l->members[unit->first_member + k];
    const weir_node *n = &g->nodes[id];
    for (uint32_t i = 0; i < n->output_count; i++)
      live += inner_bytes(m, read, n->first_output + i);
    if (live + m->needs.scratch_bytes[id] > most)
      most = live + m->needs.scratch_bytes[id];
    for (uint32_t i = 0; i < n->output_count; i++)
      if (m->last_reader[n->first_output + i] == k)
        live -= inner_bytes(m, read, n->first_output + i);
    for (uint32_t i = 0; i < n->input_count; i++) {
      weir_value_id v = n->inputs[i];
      bool ends = v != WEIR_NO_VALUE && m->last_reader[v] == k &&
                  l->unit_of[g->values[v].node] == u;
      if (!ends) continue;
      live -= inner_bytes(m, read, v);
      m->last_reader[v] = UINT32_MAX; /* an input that is there twice */
    }
  }
  return most - taken_over(l, m, read, unit);
}

/* ---- Constants: variables that nothing assigns, values that are known, views
 * of both, and what is computed from them when the graph is compiled. Wherever
 * they are read they are compiled in, so no step copies them, and each device
 * with a reader holds them. */

/* The constant whose bytes |v| has, through views; NO_VALUE: it has none. */
static weir_value_id constant_root(const weir_lowering *l,
                                   const weir_lower_memory *m,
                                   weir_value_id v) {
  const weir_graph *g = l->graph;
  for (;; v = g->nodes[g->values[v].node].inputs[0]) {
    uint32_t u = l->unit_of[g->values[v].node];
    if (u == WEIR_PLACE_NONE) return v;
    if (g->nodes[g->values[v].node].op->instr == WEIR_INSTR_VAR_READ)
      return m->assigned[u] ? WEIR_NO_VALUE : v;
    if (!is_view(g, v)) return m->needs.constant[v] ? v : WEIR_NO_VALUE;
  }
}

/* Whether |unit| is no variable and makes constants only. */
static bool makes_constants(const weir_lowering *l, const weir_lower_memory *m,
                            const weir_unit *unit) {
  const weir_node *n = &l->graph->nodes[unit->node];
  if (n->op->instr == WEIR_INSTR_VAR_READ || n->output_count == 0 ||
      (n->op->flags & WEIR_OP_EFFECT) != 0)
    return false;
  for (uint32_t i = 0; i < n->output_count; i++)
    if (constant_root(l, m, n->first_output + i) == WEIR_NO_VALUE) return false;
  return true;
}

void weir_lower_forget_constants(weir_lowering *l, const weir_lower_memory *m,
                                 bool *read) {
  for (uint32_t u = 0; u < l->unit_count; u++)
    l->units[u].constant = makes_constants(l, m, &l->units[u]);
  for (weir_value_id v = 0; v < l->graph->value_count; v++)
    if (read[v] && constant_root(l, m, v) != WEIR_NO_VALUE) read[v] = false;
}

/* A unit that is computed before any run reads nothing in one. */
void weir_lower_add_reads(const weir_lowering *l, weir_lower_memory *m,
                          weir_place_builder *b, uint32_t u, uint32_t n) {
  const weir_graph *g = l->graph;
  const weir_unit *unit = &l->units[u];
  if (unit->constant) return;
  for (uint32_t k = 0; k < unit->member_count; k++) {
    const weir_node *node = &g->nodes[l->members[unit->first_member + k]];
    if (node->op->instr == WEIR_INSTR_VAR_READ ||
        node->op->instr == WEIR_INSTR_FEED || is_view(g, node->first_output))
      continue;
    for (uint32_t i = 0; i < node->input_count; i++) {
      if (node->inputs[i] == WEIR_NO_VALUE) continue;
      weir_value_id v = constant_root(l, m, node->inputs[i]);
      if (v == WEIR_NO_VALUE) continue;
      uint32_t home = l->unit_of[g->values[v].node];
      if (m->constant[v] == WEIR_PLACE_NONE)
        m->constant[v] =
            weir_place_add_constant(b, home, weir_lower_value_bytes(g, v));
      weir_place_add_constant_use(b, n, m->constant[v]);
    }
  }
}

/* ---- Begin and end */

/* The most threads of a device that runs kernels here. Where devices differ,
 * those with fewer need less than is said, never more. */
static uint32_t most_threads(const weir_cluster *cluster) {
  uint32_t most = 1;
  for (uint32_t d = 0; d < cluster->device_count; d++) {
    const weir_cluster_class *c = &cluster->classes[cluster->devices[d].cls];
    if (weir_device_kinds[c->kind]->host && c->threads > most)
      most = c->threads;
  }
  return most;
}

/* Tasks have a kernel that needs nothing, so that a million of them need not be
 * compiled to know it. */
static bool is_of_tasks(const weir_graph *g) {
  for (weir_node_id id = 0; id < g->node_count; id++)
    if (!weir_sv_is(weir_sv_from(g->nodes[id].op->name), "task")) return false;
  return true;
}

static weir_status ask(weir_lowering *l, weir_lower_needs *needs) {
  weir_error why = WEIR_ERROR_INIT;
  const weir_lower_options *o = l->options;
  const weir_graph *g = l->graph;
  uint32_t threads = most_threads(l->cluster);
  if (o->ask == NULL || is_of_tasks(g) ||
      o->ask(o->ask_self, g, threads, needs, &why) == WEIR_OK)
    return WEIR_OK;
  memset(needs->scratch_bytes, 0, g->node_count * sizeof(int64_t));
  memset(needs->kept_bytes, 0, g->node_count * sizeof(int64_t));
  memset(needs->reused_bytes, 0, g->node_count * sizeof(int64_t));
  memset(needs->value_bytes, 0, g->value_count * sizeof(int64_t));
  memset(needs->constant, 0, g->value_count * sizeof(bool));
  if (strcmp(why.id, "W6001") != 0) return WEIR_OK;
  weir_error_copy(l->err, &why);
  return why.code;
}

weir_status weir_lower_memory_begin(weir_lowering *l, weir_lower_memory *m) {
  const weir_allocator *a = l->alloc;
  size_t values = (size_t)l->graph->value_count + 1;
  size_t nodes = (size_t)l->graph->node_count + 1;
  size_t units = (size_t)l->unit_count + 1;
  weir_lower_needs *needs = &m->needs;
  m->lasting = weir_alloc_array(a, values, sizeof *m->lasting);
  m->readers = weir_alloc_array(a, values, sizeof *m->readers);
  m->variable = weir_alloc_array(a, values, sizeof *m->variable);
  m->assigned = weir_alloc_array(a, units, sizeof *m->assigned);
  m->copied_bytes = weir_alloc_array(a, units, sizeof *m->copied_bytes);
  m->last_reader = weir_alloc_array(a, values, sizeof *m->last_reader);
  m->constant = weir_alloc_array(a, values, sizeof *m->constant);
  needs->scratch_bytes = weir_alloc_array(a, nodes, sizeof(int64_t));
  needs->kept_bytes = weir_alloc_array(a, nodes, sizeof(int64_t));
  needs->reused_bytes = weir_alloc_array(a, nodes, sizeof(int64_t));
  needs->reused = weir_alloc_array(a, nodes, sizeof *needs->reused);
  needs->value_bytes = weir_alloc_array(a, values, sizeof(int64_t));
  needs->constant = weir_alloc_array(a, values, sizeof *needs->constant);
  if (m->lasting == NULL || m->variable == NULL || m->readers == NULL ||
      m->assigned == NULL || m->copied_bytes == NULL || m->constant == NULL ||
      m->last_reader == NULL || needs->scratch_bytes == NULL ||
      needs->kept_bytes == NULL || needs->value_bytes == NULL ||
      needs->reused_bytes == NULL || needs->reused == NULL ||
      needs->constant == NULL)
    return weir_fail_memory(l->err, values * sizeof(int64_t));
  memset(m->constant, 0xff, values * sizeof *m->constant);
  WEIR_TRY(ask(l, needs));
  count_readers(l->graph, m->readers);
  mark_lasting(l, m);
  return WEIR_OK;
}

void weir_lower_memory_end(const weir_lowering *l, weir_lower_memory *m) {
  weir_free(l->alloc, m->lasting);
  weir_free(l->alloc, m->variable);
  weir_free(l->alloc, m->readers);
  weir_free(l->alloc, m->assigned);
  weir_free(l->alloc, m->copied_bytes);
  weir_free(l->alloc, m->constant);
  weir_free(l->alloc, m->last_reader);
  weir_free(l->alloc, m->needs.scratch_bytes);
  weir_free(l->alloc, m->needs.kept_bytes);
  weir_free(l->alloc, m->needs.reused_bytes);
  weir_free(l->alloc, m->needs.reused);
  weir_free(l->alloc, m->needs.value_bytes);
  weir_free(l->alloc, m->needs.constant);
}
