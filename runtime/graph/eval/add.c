/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/eval/add.h"

#include <inttypes.h>
#include <stdio.h>

#include "runtime/graph/eval/literal.h"
#include "runtime/graph/load/loader.h"
#include "runtime/graph/load/report.h"
#include "runtime/graph/node.h"
#include "runtime/graph/parse/bind.h"

/* Nodes on their way into the builder: names, devices, failures. */

enum { WEIR_SOME_VALUES = 65536 };

const weir_op_def *weir_loader_op(const weir_loader *l, const char *name) {
  const weir_op_names *n = weir_loader_ops(l, weir_sv_from(name));
  return n != NULL ? n->info->op : NULL;
}

/* Where the blocks that the node is in were called. */
static void label_callers(weir_loader *l, const weir_scope *scope) {
  for (const weir_scope *s = scope; s->caller != NULL; s = s->caller) {
    if (weir_sv_starts_with(s->module->path, "std/")) continue;
    if (s->around != NULL) continue; /* a body: its place says it */
    weir_diag_add_label(&l->diag, &s->call_mark, "in this call of %.*s",
                        WEIR_SV(s->block->name));
    if (!weir_sv_equal(s->caller->module->path, s->module->path))
      weir_diag_add_note(&l->diag, "called from %s:%u:%u", s->call_mark.file,
                         s->call_mark.line, s->call_mark.col);
  }
}

/* `after` of a block's call is that of its nodes. Variables, constants and
 * inputs have their values before the run: they wait for nothing. */
static bool wait_as_scope(weir_loader *l, const weir_scope *scope,
                          weir_node_spec *spec) {
  weir_instr_kind kind = spec->op->instr;
  if (scope->after_count == 0 || scope->level != l->level || l->in_init ||
      kind == WEIR_INSTR_VAR_READ || kind == WEIR_INSTR_CONST ||
      kind == WEIR_INSTR_FEED)
    return true;
  uint32_t n = spec->after_count;
  weir_node_id *all =
      weir_arena_array(&l->work, (size_t)n + scope->after_count, sizeof *all);
  if (all == NULL) return weir_report_memory(l);
  if (n > 0) memcpy(all, spec->after, n * sizeof *all);
  memcpy(all + n, scope->after, scope->after_count * sizeof *all);
  spec->after = all;
  spec->after_count += scope->after_count;
  return true;
}

bool weir_add_node(weir_loader *l, weir_scope *scope, weir_node_spec *spec,
                   weir_node_id *out) {
  const weir_graph *g = weir_graph_builder_graph(l->builder);
  bool nodes = g->node_count >= l->max_nodes;
  if (nodes || g->value_count >= 4 * l->max_nodes + WEIR_SOME_VALUES)
    return weir_report_too_many(l, &spec->mark,
                                nodes ? l->max_nodes : 4 * l->max_nodes,
                                nodes ? "nodes" : "values");
  if (spec->device.size == 0) spec->device = scope->device;
  if (!wait_as_scope(l, scope, spec)) return false;
  if (weir_graph_builder_add(l->builder, spec, out, &l->diag) == WEIR_OK)
    return true;
  label_callers(l, scope);
  return weir_report_send(l);
}

/* Puts the parts together, "_n" at the end when n > 0. */
static weir_sv compose(weir_loader *l, const weir_scope *scope, weir_sv name,
                       weir_sv what, uint32_t n) {
  char number[16] = "";
  if (n > 0) snprintf(number, sizeof number, "_%" PRIu32, n);
  size_t tail = strlen(number), slash = what.size > 0 && name.size > 0;
  size_t size = scope->prefix.size + name.size + slash + what.size + tail;
  if (size == name.size) return name;
  char *text = weir_arena_alloc(l->arena, size + 1), *p = text;
  if (text == NULL) return weir_report_memory(l), (weir_sv){NULL, 0};
  if (scope->prefix.size > 0) memcpy(p, scope->prefix.data, scope->prefix.size);
  p += scope->prefix.size;
  if (name.size > 0) memcpy(p, name.data, name.size);
  p += name.size;
  if (slash) *p++ = '/';
  if (what.size > 0) memcpy(p, what.data, what.size);
  memcpy(p + what.size, number, tail + 1);
  return (weir_sv){text, size};
}

weir_sv weir_node_name(weir_loader *l, const weir_scope *scope,
                       const weir_def *def, weir_sv what, bool root,
                       uint32_t ordinal) {
  bool hidden = def->item->hidden;
  weir_sv full = compose(l, scope, def->name,
                         root && !hidden ? (weir_sv){"", 0} : what, 0);
  /* Names of the main graph were checked, and hold no slash. */
  if (root && !hidden && scope->prefix.size == 0) return full;
  while (full.data != NULL && weir_graph_builder_has_name(l->builder, full))
    full = compose(l, scope, def->name, what, ++ordinal);
  return full;
}

bool weir_add_const(weir_loader *l, weir_scope *scope,
                    const weir_const_node *node, weir_result *out) {
  weir_tensor *t = NULL;
  const weir_op_def *op = weir_loader_op(l, "const");
  int value = op != NULL ? weir_op_attr_index(op, WEIR_SV_LIT("value")) : -1;
  int type = op != NULL ? weir_op_attr_index(op, WEIR_SV_LIT("dtype")) : -1;
  if (value < 0)
    return weir_report(l, WEIR_W9001, &node->at,
                       "the op `const` does not exist");
  if (!weir_literal_tensor(l, node->value, node->dtype, &node->at, &t))
    return false;
  weir_attr attrs[WEIR_OP_ATTRS] = {0};
  attrs[value] = (weir_attr){.kind = WEIR_ATTR_TENSOR, .tensor = t};
  if (type >= 0)
    attrs[type] = (weir_attr){.kind = WEIR_ATTR_DTYPE, .dtype = t->dtype};
  weir_node_spec spec = {
      .name = node->name, .op = op, .attrs = attrs, .mark = node->at};
  if (node->def != NULL) spec.device = node->def->item->device;
  weir_node_id id;
  bool ok = weir_add_node(l, scope, &spec, &id);
  weir_tensor_unref(t); /* the graph has its own reference */
  if (!ok) return false;
  *out = (weir_result){.first = weir_graph_builder_output(l->builder, id, 0),
                       .count = 1,
                       .node = id,
                       .level = l->level};
  return true;
}
