/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/eval/call_block.h"

#include <stdio.h>

#include "runtime/base/table.h"
#include "runtime/graph/eval/add.h"
#include "runtime/graph/eval/call_op.h"
#include "runtime/graph/eval/eval_const.h"
#include "runtime/graph/eval/infix.h"
#include "runtime/graph/eval/levels.h"
#include "runtime/graph/eval/lookup.h"
#include "runtime/graph/eval/scope.h"
#include "runtime/graph/load/report.h"
#include "runtime/graph/parse/bind.h"
#include "runtime/graph/parse/parse_call.h"

/* A call of a block becomes a scope with inputs and attributes set. A block is
 * a template: its body was parsed and bound once, and is evaluated anew for
 * each call, since types and attributes differ. Bounds: a block that is open
 * already cannot be called (no recursion), calls nest WEIR_BLOCK_DEPTH deep,
 * and scope.c counts all definitions made. */

enum { WEIR_BLOCK_DEPTH = 64 };

static const char *const kKindTexts[] = {
    [WEIR_BLOCK_INT] = "an integer",      [WEIR_BLOCK_FLOAT] = "a number",
    [WEIR_BLOCK_BOOL] = "true or false",  [WEIR_BLOCK_STRING] = "a string",
    [WEIR_BLOCK_DTYPE] = "a dtype",       [WEIR_BLOCK_INTS] = "integers",
    [WEIR_BLOCK_OP] = "the name of an op"};
WEIR_TABLE_OF(kKindTexts, WEIR_BLOCK_ATTR_COUNT);

/* Whether |c| is of |kind|; makes an integer of a float attribute a float. */
static bool fits_kind(weir_block_attr_kind kind, weir_const *c) {
  bool text = c->kind == WEIR_CONST_WORD || c->kind == WEIR_CONST_STRING;
  switch (kind) {
    case WEIR_BLOCK_INT:
      return c->kind == WEIR_CONST_INT;
    case WEIR_BLOCK_FLOAT:
      if (c->kind == WEIR_CONST_INT && weir_dim_known(c->dim))
        *c = weir_const_float((double)c->dim.value, (float)c->dim.value);
      return c->kind == WEIR_CONST_FLOAT;
    case WEIR_BLOCK_BOOL:
      return c->kind == WEIR_CONST_BOOL;
    case WEIR_BLOCK_STRING:
      return c->kind == WEIR_CONST_STRING;
    case WEIR_BLOCK_DTYPE:
      return text &&
             weir_dtype_from_name(c->s.data, c->s.size) != WEIR_DTYPE_NONE;
    case WEIR_BLOCK_INTS:
      if (c->kind == WEIR_CONST_INT || c->kind == WEIR_CONST_NONE) return true;
      for (uint32_t i = 0; c->kind == WEIR_CONST_LIST && i < c->count; i++)
        if (c->items[i].kind != WEIR_CONST_INT) return false;
      return c->kind == WEIR_CONST_LIST;
    case WEIR_BLOCK_OP:
      return text || c->kind == WEIR_CONST_NONE;
    case WEIR_BLOCK_ATTR_COUNT:
      break;
  }
  return false;
}

static bool set_attr(weir_loader *l, const weir_scope *from, weir_scope *scope,
                     uint32_t i, weir_const value, const weir_mark *at) {
  const weir_block_attr *a = &scope->block->attrs[i];
  char text[80];
  /* As an op's choice does, a string takes a word that means nothing else. */
  if (value.kind == WEIR_CONST_WORD && a->kind == WEIR_BLOCK_STRING)
    value.kind = WEIR_CONST_STRING;
  if (value.kind == WEIR_CONST_WORD && a->kind != WEIR_BLOCK_OP &&
      a->kind != WEIR_BLOCK_DTYPE)
    return weir_report_unknown(l, from, at, value.s);
  if (!fits_kind(a->kind, &value))
    return weir_report(l, WEIR_W1118, at, "%.*s: %.*s is %s, must be %s",
                       WEIR_SV(scope->block->name), WEIR_SV(a->name),
                       weir_const_text(&value, text, sizeof text),
                       kKindTexts[a->kind]);
  if (a->kind == WEIR_BLOCK_OP && value.kind != WEIR_CONST_NONE &&
      weir_loader_ops(l, value.s) == NULL)
    return weir_report(l, WEIR_W1102, at, "unknown op '%.*s'",
                       WEIR_SV(value.s));
  scope->attrs[i] = value;
  return true;
}

static bool refuse_recursion(weir_loader *l, const weir_scope *scope,
                             const weir_block *b, const weir_mark *at) {
  for (const weir_scope *s = scope; s != NULL; s = s->caller)
    if (s->block == b)
      return weir_report(l, WEIR_W1118, at, "block %.*s calls itself",
                         WEIR_SV(b->name));
  if (scope->depth + 1 >= WEIR_BLOCK_DEPTH)
    return weir_report(l, WEIR_W1118, at, "blocks nest deeper than %d",
                       WEIR_BLOCK_DEPTH);
  return true;
}

/* The caller's operands that are values; literals become constants. */
static bool set_input(weir_loader *l, weir_scope *caller, weir_def *def,
                      uint32_t node, const weir_result *results,
                      weir_scope *scope) {
  const weir_expr *expr = &def->item->expr;
  const weir_ast *n = &expr->nodes[node];
  weir_result *out = &scope->inputs[n->slot];
  weir_lookup found = {.kind = WEIR_FOUND_NOTHING};
  weir_mark at = weir_ast_mark(n);
  if (n->kind == WEIR_AST_CALL || weir_is_operation(n, results, node)) {
    *out = results[node];
    if (out->level == l->level) return true;
    out->list = NULL;
    return weir_level_import(
        l, out->level,
        results[node].list != NULL ? results[node].list[0] : out->first, &at,
        &out->first);
  }
  if (n->kind == WEIR_AST_NAME) {
    if (!weir_operand_lookup(l, caller, def->loop, expr, node, &found))
      return false;
    if (found.kind != WEIR_FOUND_CONST) {
      *out = (weir_result){.count = 1, .level = l->level};
      if (!weir_select_result(l, n, &found, &out->first)) return false;
      out->node = weir_graph_builder_graph(l->builder)->values[out->first].node;
      return true;
    }
  }
  weir_const value;
  if (!weir_eval_const(l, caller, def->loop, expr, node, &value)) return false;
  weir_sv name =
      weir_node_name(l, caller, def, WEIR_SV_LIT("const"), false, node);
  weir_const_node made = {def, name, &value, WEIR_DTYPE_NONE, at};
  return name.data != NULL && weir_add_const(l, caller, &made, out);
}

static bool set_arguments(weir_loader *l, weir_scope *caller, weir_def *def,
                          const weir_ast *call, const weir_result *results,
                          weir_scope *scope) {
  const weir_block *b = scope->block;
  const weir_expr *expr = &def->item->expr;
  for (uint32_t i = 0; i < b->attr_count; i++)
    scope->attrs[i] = b->attrs[i].fallback;
  uint32_t arg = call->first;
  for (uint32_t i = 0; i < call->count; i++, arg = expr->nodes[arg].next) {
    uint32_t node = expr->nodes[arg].kind == WEIR_AST_KEYWORD
                        ? expr->nodes[arg].first
                        : arg;
    const weir_ast *n = &expr->nodes[node];
    weir_mark at = weir_ast_mark(n);
    weir_const value;
    if (n->mode == WEIR_MODE_VALUE) {
      if (!set_input(l, caller, def, node, results, scope)) return false;
    } else if (!weir_eval_const(l, caller, def->loop, expr, node, &value) ||
               !set_attr(l, caller, scope, n->slot, value, &at)) {
      return false;
    }
  }
  return true;
}

/* The inputs' declared types: known numbers must agree. An unknown size is let
 * through; the ops inside compare it where they use it. */
static bool check_types(weir_loader *l, weir_scope *scope) {
  const weir_block *b = scope->block;
  const weir_graph *g = weir_graph_builder_graph(l->builder);
  for (uint32_t i = 0; i < b->input_count; i++) {
    const weir_expr *type = &b->inputs[i].type;
    if (type->count == 0) continue;
    const weir_ast *root = &type->nodes[type->count - 1];
    weir_value_id id = scope->inputs[i].first;
    const weir_value *v = &g->values[id];
    bool same =
        v->dtype == weir_dtype_from_name(root->text.data, root->text.size);
    if (v->shape->rank >= 0)
      same = same && v->shape->rank == (int32_t)root->count;
    uint32_t n = root->first;
    for (int32_t d = 0; same && d < v->shape->rank; d++) {
      weir_const c;
      if (!weir_eval_const(l, scope, NULL, type, n, &c)) return false;
      if (c.kind == WEIR_CONST_INT && weir_dim_known(c.dim) &&
          weir_dim_known(v->shape->dims[d]))
        same = c.dim.value == v->shape->dims[d].value;
      n = type->nodes[n].next;
    }
    if (same) continue;
    char text[128];
    weir_mark at = weir_ast_mark(root);
    weir_report_begin(l, WEIR_W2019, &scope->call_mark,
                      "%.*s: input %.*s is %s", WEIR_SV(b->name),
                      WEIR_SV(b->inputs[i].name),
                      weir_graph_type_text(g, id, text, sizeof text));
    weir_diag_add_label(&l->diag, &at, "declared here");
    return weir_report_send(l);
  }
  return true;
}

/* Nodes of the block wait for the nodes in the call's `after`, and for those
 * that the caller's nodes wait for. */
static bool set_after(weir_loader *l, weir_scope *caller, weir_def *def,
                      bool root, weir_scope *scope) {
  weir_node_spec own = {.after = NULL};
  if (root && !weir_after_nodes(l, caller, def, &own)) return false;
  scope->after = own.after;
  scope->after_count = own.after_count;
  if (caller->after_count == 0 || caller->level != scope->level) return true;
  uint32_t count = own.after_count + caller->after_count;
  weir_node_id *all = weir_arena_array(&l->work, count, sizeof *all);
  if (all == NULL) return weir_report_memory(l);
  if (own.after_count > 0)
    memcpy(all, own.after, own.after_count * sizeof *all);
  memcpy(all + own.after_count, caller->after,
         caller->after_count * sizeof *all);
  scope->after = all;
  scope->after_count = count;
  return true;
}

weir_scope *weir_call_block(weir_loader *l, weir_scope *caller, weir_def *def,
                            uint32_t node, const weir_result *results) {
  const weir_ast *call = &def->item->expr.nodes[node];
  const weir_block *b = call->block;
  weir_mark at = weir_ast_mark(call);
  bool root = weir_is_root(def, node);
  if (b->broken || !refuse_recursion(l, caller, b, &at)) return NULL;
  weir_scope *scope = weir_scope_create(l, &b->body, b->module, b);
  if (scope == NULL) return NULL;
  weir_sv prefix = weir_node_name(l, caller, def, b->name, root, node);
  scope->caller = caller;
  scope->call_mark = at;
  scope->depth = caller->depth + 1;
  scope->level = l->level;
  if (!set_after(l, caller, def, root, scope)) return NULL;
  scope->device =
      def->item->device.size > 0 ? def->item->device : caller->device;
  scope->inputs =
      weir_arena_array(&l->work, b->input_count, sizeof *scope->inputs);
  scope->attrs =
      weir_arena_array(&l->work, b->attr_count, sizeof *scope->attrs);
  char *text = weir_arena_alloc(&l->work, prefix.size + 1);
  if (scope->inputs == NULL || scope->attrs == NULL || text == NULL ||
      prefix.data == NULL)
    return weir_report_memory(l), NULL;
  memcpy(text, prefix.data, prefix.size);
  text[prefix.size] = '/';
  scope->prefix = (weir_sv){text, prefix.size + 1};
  if (!set_arguments(l, caller, def, call, results, scope) ||
      !check_types(l, scope) || !weir_scope_expand(l, scope))
    return NULL;
  return scope;
}
