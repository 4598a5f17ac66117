/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/lower/lower_kernels.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernel.h"
#include "kernels/registry.h"
#include "placement/lower/lower_cost.h"

static bool fill_operand(const weir_graph *g, weir_value_id id,
                         weir_operand *out) {
  if (!weir_graph_operand(g, id, out)) return false;
  if (id != WEIR_NO_VALUE && g->values[id].known != NULL)
    out->value = g->values[id].known->data;
  return true;
}

bool weir_lower_call_make(const weir_graph *g, weir_node_id id,
                          weir_lower_call *out) {
  const weir_node *n = &g->nodes[id];
  uint32_t ins = n->input_count < 48 ? n->input_count : 48;
  uint32_t outs = n->output_count < 16 ? n->output_count : 16;
  for (uint32_t i = 0; i < ins; i++)
    if (!fill_operand(g, n->inputs[i], &out->operands[i])) return false;
  for (uint32_t i = 0; i < outs; i++)
    if (!fill_operand(g, n->first_output + i, &out->operands[ins + i]))
      return false;
  out->call = (weir_call){.op = n->op,
                          .attrs = n->attrs,
                          .in = out->operands,
                          .out = out->operands + ins,
                          .in_count = ins,
                          .out_count = outs,
                          .node = n->name,
                          .seed = n->seed};
  return true;
}

/* Whether |op| meets others in the middle of a run, which the host does: a
 * GPU's bodies are queued as a whole. */
static bool meets(const weir_op_def *op) {
  return op->instr == WEIR_INSTR_COLLECTIVE || op->instr == WEIR_INSTR_SEND ||
         op->instr == WEIR_INSTR_RECV;
}

/* A node of a body. */
typedef struct inner {
  const weir_graph *graph; /* NULL: none */
  weir_node_id id;
} inner;

/* The first node in the bodies of |n| that devices of |kind| do not carry out.
 * Bodies nest no deeper than a
 * fixed depth. */
static inner lacking_in_bodies(const weir_node *n, weir_device_kind kind) {
  bool host = weir_device_kinds[kind]->host;
  for (uint32_t k = 0; k < n->body_count; k++)
    for (weir_node_id i = 0; i < n->bodies[k]->node_count; i++)
      if ((!host && meets(n->bodies[k]->nodes[i].op)) ||
          !weir_place_has_kernel(n->bodies[k], i, kind))
        return (inner){n->bodies[k], i};
  return (inner){NULL, 0};
}

bool weir_place_has_kernel(const weir_graph *g, weir_node_id id,
                           weir_device_kind kind) {
  const weir_node *n = &g->nodes[id];
  weir_lower_call c;
  if (lacking_in_bodies(n, kind).graph != NULL) return false;
  if (n->op->instr != WEIR_INSTR_KERNEL || (n->op->flags & WEIR_OP_VIEW) != 0)
    return true;
  if (weir_device_kinds[kind]->every_op) return true;
  return weir_lower_call_make(g, id, &c) &&
         weir_kernel_choose(g->registry, &c.call, kind, false, NULL, 0) != NULL;
}

/* ---- Reasons */

/* Text of WEIR_LOWER_WHY_BYTES, cut at its end. */
typedef struct words {
  char *text;
  size_t used;
} words;

WEIR_PRINTF(2, 3)
static void add(words *w, const char *fmt, ...) {
  size_t room = WEIR_LOWER_WHY_BYTES - w->used;
  va_list args;
  va_start(args, fmt);
  int n = vsnprintf(w->text + w->used, room, fmt, args);
  va_end(args);
  if (n > 0) w->used += (size_t)n < room ? (size_t)n : room - 1;
}

/* "f32[4, 8]" */
static void add_operand(words *w, const weir_operand *o) {
  add(w, "%s[", weir_dtype_name(o->dtype));
  for (int32_t i = 0; i < o->rank; i++)
    add(w, "%s%" PRId64, i > 0 ? ", " : "", o->dims[i]);
  add(w, "]");
}

/* "matmul of i32[8, 4] and i32[4, 4]"; of many operands the first. */
static void add_call(words *w, const weir_call *call) {
  enum { SHOWN = 3 };
  uint32_t shown = 0;
  add(w, "%s", call->op->name);
  for (uint32_t i = 0; i < call->in_count && shown < SHOWN; i++) {
    if (call->in[i].dtype == WEIR_DTYPE_NONE) continue;
    add(w, "%s", shown++ == 0 ? " of " : " and ");
    add_operand(w, &call->in[i]);
  }
  if (shown > 0 || call->out_count == 0) return;
  add(w, " to ");
  add_operand(w, &call->out[0]);
}

/* The kernels' refusals, "NAME: REASON; NAME: REASON; ". */
static void add_refusals(words *w, const weir_graph *g, weir_node_id id,
                         weir_device_kind kind) {
  weir_lower_call c;
  char refusals[WEIR_LOWER_WHY_BYTES] = "";
  if (!weir_lower_call_make(g, id, &c)) {
    add(w, "%s: a shape is unknown", g->nodes[id].op->name);
    return;
  }
  (void)weir_kernel_choose(g->registry, &c.call, kind, false, refusals,
                           sizeof refusals);
  size_t size = strlen(refusals);
  if (size >= 2 && strcmp(refusals + size - 2, "; ") == 0)
    refusals[size - 2] = '\0';
  add_call(w, &c.call);
  if (size == 0)
    add(w, ": no kernel of this op is for %s",
        weir_device_kinds[kind]->spelling);
  else
    add(w, ": %s", refusals);
}

/* "OP: NODE: " of nodes with bodies, then the refusals of the one in them. */
static void add_lacking(words *w, const weir_graph *g, weir_node_id id,
                        weir_device_kind kind) {
  for (;;) {
    const weir_node *n = &g->nodes[id];
    inner at = lacking_in_bodies(n, kind);
    if (at.graph == NULL) break;
    const weir_node *in = &at.graph->nodes[at.id];
    add(w, "%s: %.*s: ", n->op->name,
        in->name.size < 60 ? (int)in->name.size : 60, in->name.data);
    g = at.graph;
    id = at.id;
    if (!meets(in->op)) continue;
    add(w, "%s: in a body it is the host's", in->op->name);
    return;
  }
  add_refusals(w, g, id, kind);
}

const char *weir_lower_why(const weir_graph *g, const weir_node_id *members,
                           uint32_t count, weir_device_kind kind, char *text) {
  words w = {text, 0};
  text[0] = '\0';
  for (uint32_t m = 0; m < count; m++) {
    const weir_node *n = &g->nodes[members[m]];
    if (weir_place_has_kernel(g, members[m], kind)) continue;
    add(&w, "%.*s: ", n->name.size < 60 ? (int)n->name.size : 60, n->name.data);
    add_lacking(&w, g, members[m], kind);
    break;
  }
  return text;
}

/* ---- Units
 *
 * A unit lacks a kind when one of its nodes has no kernel there; it counts for
 * the op of the first such node. Ops are few, so their counts are a list that
 * is searched. Cost: O(units + units that lack one * ops), for each kind. */

static int more_first(const void *x, const void *y) {
  const weir_lower_op_count *a = x, *b = y;
  if (a->units != b->units) return a->units > b->units ? -1 : 1;
  return strcmp(a->name, b->name);
}

/* The op for which unit |u| has no kernel on devices of |kind|. */
static const char *lacking_op(const weir_placement *p, const weir_unit *u,
                              weir_device_kind kind) {
  uint32_t m = 0;
  while (m + 1 < u->member_count &&
         weir_place_has_kernel(p->graph, p->members[u->first_member + m], kind))
    m++;
  return p->graph->nodes[p->members[u->first_member + m]].op->name;
}

static void count_op(weir_lower_lack *l, const char *name, uint32_t unit) {
  uint32_t i = 0;
  while (i < l->ops && strcmp(l->by_op[i].name, name) != 0) i++;
  if (i == WEIR_LACK_OPS) return;
  if (i == l->ops) l->by_op[l->ops++] = (weir_lower_op_count){name, 0, unit};
  l->by_op[i].units++;
}

static bool takes_time(const weir_placement *p, const weir_unit *u) {
  for (uint32_t m = 0; m < u->member_count; m++)
    if (weir_place_takes_time(p->graph, p->members[u->first_member + m]))
      return true;
  return false;
}

uint32_t weir_lower_lacks(const weir_placement *p) {
  uint32_t lacks = 0;
  for (uint32_t u = 0; u < p->unit_count; u++) lacks |= p->units[u].lacks;
  return lacks;
}

void weir_lower_lack_count(const weir_placement *p, weir_device_kind kind,
                           weir_lower_lack *out) {
  out->kind = kind;
  out->units = out->of = out->ops = 0;
  for (uint32_t u = 0; u < p->unit_count; u++) {
    out->of += takes_time(p, &p->units[u]);
    if (((p->units[u].lacks >> kind) & 1) == 0) continue;
    out->units++;
    count_op(out, lacking_op(p, &p->units[u], kind), u);
  }
  qsort(out->by_op, out->ops, sizeof *out->by_op, more_first);
}

const char *weir_lower_lack_why(const weir_placement *p, uint32_t unit,
                                weir_device_kind kind, char *text) {
  const weir_unit *u = &p->units[unit];
  text[0] = '\0';
  if (((u->lacks >> kind) & 1) == 0) return text;
  if (((p->absent_kinds >> kind) & 1) == 0)
    return weir_lower_why(p->graph, p->members + u->first_member,
                          u->member_count, kind, text);
  snprintf(text, WEIR_LOWER_WHY_BYTES, "this process has no %s",
           weir_device_kinds[kind]->spelling);
  return text;
}

uint32_t weir_lower_fallen_back(const weir_placement *p) {
  uint32_t count = 0;
  for (uint32_t u = 0; u < p->unit_count; u++) count += p->units[u].fallback;
  return count;
}

bool weir_lower_has_use(const weir_placement *p, weir_device_kind kind) {
  for (uint32_t u = 0; u < p->unit_count; u++)
    if (((p->units[u].lacks >> kind) & 1) == 0 && takes_time(p, &p->units[u]))
      return true;
  return false;
}
