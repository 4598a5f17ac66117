/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/groups/group_make.h"

#include <stdio.h>
#include <string.h>

#include "kernels/registry.h"
#include "runtime/base/env_system.h"
#include "runtime/graph/load/load.h"
#include "runtime/graph/pass/pass_fuse.h"
#include "tests/check.h"

enum { VALUES = 64, NAME = 8, CALL = 128, MOST_ELEMENTS = 3000 };

/* Calls of operands @ and #. */
static const char *const kOne[] = {"neg(@)",
                                   "abs(@)",
                                   "square(@)",
                                   "sign(@)",
                                   "relu(@)",
                                   "exp(@)",
                                   "log(@)",
                                   "sqrt(@)",
                                   "rsqrt(@)",
                                   "reciprocal(@)",
                                   "tanh(@)",
                                   "sigmoid(@)",
                                   "softplus(@)",
                                   "erf(@)",
                                   "floor(@)",
                                   "ceil(@)",
                                   "round(@)",
                                   "leaky_relu(@, alpha=0.2)",
                                   "elu(@, alpha=0.7)",
                                   "gelu(@)",
                                   "gelu(@, approximate=tanh)",
                                   "clip(@, min=-0.5, max=0.75)",
                                   "clip(@, min=0.25)"};
static const char *const kTwo[] = {
    "add(@, #)", "sub(@, #)",          "mul(@, #)",       "div(@, #)",
    "min(@, #)", "max(@, #)",          "add(@, #)",       "mul(@, #)",
    "pow(@, #)", "sigmoid_grad(@, #)", "tanh_grad(@, #)", "relu_grad(@, #)"};
static const char *const kAsk[] = {"equal(@, #)",         "not_equal(@, #)",
                                   "less(@, #)",          "greater(@, #)",
                                   "greater_equal(@, #)", "less_equal(@, #)"};
static const char *const kLogic[] = {"logical_and(@, #)", "logical_or(@, #)",
                                     "logical_xor(@, #)", "equal(@, #)"};
#define COUNT(list) ((uint32_t)(sizeof(list) / sizeof *(list)))

typedef struct named {
  char name[NAME];
  bool condition, full, read;
} named;

typedef struct maker {
  char *text;
  size_t used;
  uint32_t state;
  int rank;
  int dims[5];
  named values[VALUES];
  uint32_t count, in_count;
  bool powers;
} maker;

uint32_t group_next(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

static uint32_t below(maker *m, uint32_t n) {
  return group_next(&m->state) % n;
}

WEIR_PRINTF(2, 3) static void put(maker *m, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  m->used +=
      (size_t)vsnprintf(m->text + m->used, GROUP_TEXT - m->used, fmt, args);
  va_end(args);
  assert_true(m->used + 1 < GROUP_TEXT);
}

static named *add(maker *m, char letter, bool condition, bool full) {
  assert_true(m->count < VALUES);
  named *v = &m->values[m->count++];
  *v = (named){.condition = condition, .full = full};
  snprintf(v->name, sizeof v->name, "%c%u", letter, m->count);
  return v;
}

/* Some dimensions are 1, some first ones are not there. */
static void add_input(maker *m, const char *dtype, bool full) {
  int first = full ? 0 : (int)below(m, (uint32_t)m->rank + 1);
  const char *end = "";
  named *v = add(m, 'x', strcmp(dtype, "bool") == 0, full);
  put(m, "  %s: \"%s[", v->name, dtype);
  for (int d = first; d < m->rank; d++, end = ", ")
    put(m, "%s%d", end, !full && below(m, 3) == 0 ? 1 : m->dims[d]);
  put(m, "]\"\n");
}

static const char *const kDtypes[] = {"f32", "f32", "f32", "bool"};

static void make_inputs(maker *m) {
  static const int kDims[] = {1, 2, 3, 4, 5, 8, 12, 16, 31, 64};
  int elements = 1;
  m->rank = 1 + (int)below(m, 5);
  for (int d = 0; d < m->rank; d++) {
    m->dims[d] = kDims[below(m, 10)];
    if (elements * m->dims[d] > MOST_ELEMENTS) m->dims[d] = 2;
    elements *= m->dims[d];
  }
  if (below(m, 40) == 0) m->dims[below(m, (uint32_t)m->rank)] = 0;
  put(m, "inputs:\n");
  add_input(m, "f32", true);
  add_input(m, "bool", true);
  for (uint32_t n = 1 + below(m, 6); n > 0; n--)
    add_input(m, kDtypes[below(m, 4)], below(m, 3) == 0);
  m->in_count = m->count;
}

/* A value, preferably a late one. */
static const char *pick(maker *m, bool condition, bool full) {
  for (;;) {
    uint32_t back = below(m, 2) == 0 ? below(m, 3) : below(m, m->count);
    if (back >= m->count) continue;
    named *v = &m->values[m->count - 1 - back];
    if (v->condition != condition || (full && !v->full)) continue;
    v->read = true;
    return v->name;
  }
}

static const char *one_of(maker *m, const char *const *list, uint32_t n) {
  return list[below(m, n)];
}

/* |form| with |a| and |b| for its operands. */
static void fill(char call[CALL], const char *form, const char *a,
                 const char *b) {
  size_t used = 0;
  for (; *form != 0; form++) {
    const char text[] = {*form, 0};
    const char *part = *form == '@' ? a : *form == '#' ? b : text;
    used += (size_t)snprintf(call + used, CALL - used, "%s", part);
    assert_true(used < CALL);
  }
}

static void add_call(maker *m) {
  char call[CALL];
  uint32_t kind = below(m, 12);
  const char *a = pick(m, false, true), *b = pick(m, false, false);
  bool condition = false;
  if (kind < 4) {
    fill(call, one_of(m, kOne, COUNT(kOne)), a, b);
  } else if (kind < 9) {
    const char *form = one_of(m, kTwo, COUNT(kTwo));
    if (strncmp(form, "pow", 3) == 0 && !m->powers) form = kTwo[0];
    if (below(m, 2) == 0)
      fill(call, form, a, b);
    else
      fill(call, form, b, a);
  } else if (kind == 9) {
    fill(call, one_of(m, kAsk, COUNT(kAsk)), a, b);
    condition = true;
  } else if (kind == 10) {
    snprintf(call, sizeof call, "where(%s, %s, %s)", pick(m, true, false), b,
             a);
  } else if (below(m, 2) == 0) {
    fill(call, one_of(m, kLogic, COUNT(kLogic)), pick(m, true, true),
         pick(m, true, false));
    condition = true;
  } else {
    snprintf(call, sizeof call, "cast(%s, f32)", pick(m, true, true));
  }
  put(m, "  %s: %s\n", add(m, 'n', condition, true)->name, call);
}

/* What nobody reads goes into the last value. */
static void gather(maker *m) {
  uint32_t last = m->count;
  const char *all = m->values[0].name;
  for (uint32_t i = m->in_count; i < last; i++) {
    const named *v = &m->values[i];
    if (v->read) continue;
    const char *next = add(m, 'n', false, true)->name;
    if (v->condition)
      put(m, "  %s: where(%s, %s, x1)\n", next, v->name, all);
    else
      put(m, "  %s: sub(%s, %s)\n", next, v->name, all);
    all = next;
  }
  put(m, "outputs: [%s]\n", all);
}

void group_text(uint32_t seed, char text[GROUP_TEXT]) {
  maker m = {.text = text, .state = seed * 2654435761u + 1};
  m.powers = below(&m, 4) == 0;
  put(&m, "weir: 1\n");
  make_inputs(&m);
  put(&m, "nodes:\n");
  for (uint32_t n = 1 + below(&m, 16); n > 0; n--) add_call(&m);
  gather(&m);
}

/* ---- Groups of graphs */

weir_graph *group_load(const char *text, uint32_t *out_count) {
  weir_graph *graph = NULL, *fused = NULL;
  weir_error err = WEIR_ERROR_INIT;
  weir_load_options options = {.registry = weir_builtin_registry()};
  if (weir_graph_load_text(weir_env_system(), weir_sv_from(text), "group",
                           &options, &graph, &err) != WEIR_OK)
    fail_msg("%s in\n%s", err.message, text);
  assert_ok(weir_graph_fuse(graph, NULL, 0, &fused, &err), &err);
  weir_graph_unref(graph);
  *out_count = 0;
  for (weir_node_id i = 0; i < fused->node_count; i++)
    if (fused->nodes[i].group != WEIR_NO_GROUP &&
        fused->nodes[i].group >= *out_count)
      *out_count = fused->nodes[i].group + 1;
  return fused;
}

static void make_call(const weir_graph *graph, const weir_node *node,
                      weir_arena *arena, weir_call *out) {
  uint32_t ins = node->input_count;
  weir_operand *x = weir_arena_array(arena, ins + 1, sizeof *x);
  assert_non_null(x);
  for (uint32_t i = 0; i < ins; i++)
    assert_true(weir_graph_operand(graph, node->inputs[i], &x[i]));
  assert_true(weir_graph_operand(graph, node->first_output, &x[ins]));
  *out = (weir_call){.op = node->op,
                     .attrs = node->attrs,
                     .in = x,
                     .out = x + ins,
                     .in_count = ins,
                     .out_count = 1,
                     .node = node->name};
}

/* Room for a group's lists. */
typedef struct lists {
  weir_call *calls;
  weir_group_ref **refs;
  weir_operand *in, *out;
  weir_value_id *in_ids, *call_ids;
  uint32_t *out_calls;
} lists;

static void make_lists(weir_arena *arena, uint32_t calls, lists *l) {
  l->calls = weir_arena_array(arena, calls, sizeof *l->calls);
  l->refs = weir_arena_array(arena, calls, sizeof *l->refs);
  l->in = weir_arena_array(arena, 3 * calls, sizeof *l->in);
  l->in_ids = weir_arena_array(arena, 3 * calls, sizeof *l->in_ids);
  l->call_ids = weir_arena_array(arena, calls, sizeof *l->call_ids);
  l->out = weir_arena_array(arena, GROUP_OUTPUTS, sizeof *l->out);
  l->out_calls = weir_arena_array(arena, GROUP_OUTPUTS, sizeof *l->out_calls);
  assert_true(l->calls != NULL && l->refs != NULL && l->in != NULL &&
              l->in_ids != NULL && l->call_ids != NULL && l->out != NULL &&
              l->out_calls != NULL);
}

static weir_group_ref ref_of(lists *l, weir_group *g, weir_value_id id,
                             const weir_operand *x) {
  for (uint32_t c = 0; c < g->call_count; c++)
    if (l->call_ids[c] == id) return (weir_group_ref){true, c};
  for (uint32_t i = 0; i < g->in_count; i++)
    if (l->in_ids[i] == id) return (weir_group_ref){false, i};
  l->in_ids[g->in_count] = id;
  l->in[g->in_count] = *x;
  return (weir_group_ref){false, g->in_count++};
}

void group_of(const weir_graph *graph, uint32_t id, weir_arena *arena,
              weir_group *out) {
  lists l;
  uint32_t members = 0;
  for (weir_node_id n = 0; n < graph->node_count; n++)
    members += graph->nodes[n].group == id;
  make_lists(arena, members, &l);
  *out = (weir_group){.calls = l.calls,
                      .refs = (const weir_group_ref *const *)l.refs,
                      .in = l.in,
                      .out = l.out,
                      .out_calls = l.out_calls,
                      .out_count = 1};
  for (weir_node_id n = 0; n < graph->node_count; n++) {
    const weir_node *node = &graph->nodes[n];
    uint32_t c = out->call_count;
    if (node->group != id) continue;
    make_call(graph, node, arena, &l.calls[c]);
    l.refs[c] = weir_arena_array(arena, node->input_count, sizeof **l.refs);
    assert_non_null(l.refs[c]);
    for (uint32_t i = 0; i < node->input_count; i++)
      l.refs[c][i] = ref_of(&l, out, node->inputs[i], &l.calls[c].in[i]);
    l.call_ids[out->call_count++] = node->first_output;
  }
  l.out[0] = l.calls[members - 1].out[0];
  l.out_calls[0] = members - 1;
}
