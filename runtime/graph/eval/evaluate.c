/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdio.h>

#include "runtime/graph/eval/evaluate.h"

#include "runtime/graph/eval/add.h"
#include "runtime/graph/eval/call_block.h"
#include "runtime/graph/eval/call_op.h"
#include "runtime/graph/eval/eval_const.h"
#include "runtime/graph/eval/form_eval.h"
#include "runtime/graph/eval/infix.h"
#include "runtime/graph/eval/levels.h"
#include "runtime/graph/eval/lookup.h"
#include "runtime/graph/eval/scope.h"
#include "runtime/graph/load/report.h"
#include "runtime/graph/parse/inputs.h"
#include "runtime/graph/parse/items.h"
#include "runtime/graph/parse/parse_call.h"

/* Evaluation: definitions in the order of their dependencies, a depth-first
 * walk with a stack of frames in place of recursion. A definition's frame first
 * sees that all definitions it names are done, then adds its calls, inner ones
 * first; a call of a block puts the block's scope on the stack and goes on when
 * that is done.
 *
 * A frame that has to wait pushes another and returns; it is entered again
 * later and goes on at |at|, |after|, |inner|. So a step may do a part only,
 * and must keep all of its progress in the frame.
 *
 * Invariants: a definition is OPEN exactly while its frame is on the stack, so
 * an OPEN one that is named closes a cycle; NEW becomes OPEN once, so each
 * definition is evaluated once. Pushing moves frames: a frame is looked up
 * again by its index after anything that may push. Cost: each definition, and
 * each node of its expressions, once. */

bool weir_eval_push(weir_evaluation *e, weir_scope *scope, weir_def *def) {
  weir_eval_frame f = {.scope = scope, .def = def};
  assert(def == NULL || def->state == WEIR_DEF_NEW);
  if (def != NULL) def->state = WEIR_DEF_OPEN;
  return weir_vec_push(e->l->alloc, &e->frames, f) || weir_report_memory(e->l);
}

/* "a -> b -> a", from the frames between the two uses. */
static bool report_cycle(weir_evaluation *e, const weir_def *def,
                         const weir_mark *at) {
  char text[360];
  size_t n = 0, first = e->frames.count, length = 0;
  while (first > 0 && e->frames.items[first - 1].def != def) first--;
  for (size_t i = first > 0 ? first - 1 : 0; i < e->frames.count; i++) {
    const weir_def *d = e->frames.items[i].def;
    if (d == NULL) continue;
    length++;
    if (n < sizeof text - 90)
      n += (size_t)snprintf(text + n, sizeof text - n, "%.*s -> ",
                            (int)(d->name.size < 40 ? d->name.size : 40),
                            d->name.data);
    else if (n < sizeof text - 80)
      n += (size_t)snprintf(text + n, sizeof text - n, "... -> ");
  }
  snprintf(text + n, sizeof text - n, "%.*s",
           (int)(def->name.size < 40 ? def->name.size : 40), def->name.data);
  weir_report_begin(e->l, WEIR_W1105, at, "a cycle of %zu: %s", length, text);
  weir_diag_add_label(&e->l->diag, def->item->mark, "%.*s is defined here",
                      WEIR_SV(def->name));
  return weir_report_send(e->l);
}

/* Sees to one name. False: the frame waits, or has failed. */
static bool need(weir_evaluation *e, weir_eval_frame *f, const weir_expr *expr,
                 uint32_t node) {
  const weir_ast *n = &expr->nodes[node];
  weir_lookup found;
  if (weir_sv_is(n->text, "true") || weir_sv_is(n->text, "false")) return true;
  if (!weir_operand_lookup(e->l, f->scope, f->def->loop, expr, node, &found)) {
    f->failed = true;
    return true;
  }
  if (found.kind != WEIR_FOUND_DEF) return true;
  weir_mark at;
  switch (found.def->state) {
    case WEIR_DEF_DONE:
      return true;
    case WEIR_DEF_FAILED:
      f->failed = true;
      return true;
    case WEIR_DEF_NEW:
      weir_eval_push(e, found.scope, found.def);
      return false;
    case WEIR_DEF_OPEN:
      at = weir_ast_mark(n);
      report_cycle(e, found.def, &at);
      f->failed = true;
      return true;
  }
  return true;
}

bool weir_eval_need_expr(weir_evaluation *e, weir_eval_frame *f,
                         const weir_expr *expr) {
  for (; f->at < expr->count; f->at++) {
    const weir_ast *n = &expr->nodes[f->at];
    if (n->kind != WEIR_AST_NAME ||
        (n->mode != WEIR_MODE_VALUE && n->mode != WEIR_MODE_REF))
      continue;
    if (!need(e, f, expr, f->at)) return false;
  }
  return true;
}

static bool need_all(weir_evaluation *e, weir_eval_frame *f) {
  const weir_item *item = f->def->item;
  if (!weir_eval_need_expr(e, f, &item->expr)) return false;
  for (; f->after < item->after_count; f->after++) {
    const weir_expr *after = &item->after[f->after];
    if (!need(e, f, after, after->count - 1)) return false;
  }
  f->named = true;
  f->at = 0;
  return true;
}

/* The item of |def|, to make or forget its tree: nothing else changes. */
static weir_item *item_of(const weir_def *def) {
  return (weir_item *)(uintptr_t)def->item;
}

static void finish(weir_evaluation *e, weir_eval_frame *f, bool ok) {
  assert(f == &e->frames.items[e->frames.count - 1]);
  assert(f->def->state == WEIR_DEF_OPEN);
  f->def->state = ok ? WEIR_DEF_DONE : WEIR_DEF_FAILED;
  if (f->def->item->again != NULL) weir_item_forget(e->l, item_of(f->def));
  e->frames.count--;
}

bool weir_result_value(weir_loader *l, const weir_def *def,
                       weir_value_id *out) {
  const weir_result *r = &def->result;
  if (def->state != WEIR_DEF_DONE || r->count == 0) return false;
  return weir_level_import(l, r->level, r->list != NULL ? r->list[0] : r->first,
                           def->item->mark, out);
}

/* Results of a block: its hidden items at the end. */
static bool block_result(weir_loader *l, const weir_scope *scope,
                         weir_result *out) {
  const weir_block *b = scope->block;
  uint32_t first = scope->body->count - b->out_count;
  weir_value_id *list = weir_arena_array(&l->work, b->out_count, sizeof *list);
  if (list == NULL) return weir_report_memory(l);
  for (uint32_t i = 0; i < b->out_count; i++) {
    const weir_def *def = &scope->defs.items[first + i];
    if (!weir_result_value(l, def, &list[i])) return false;
  }
  const weir_result *last = &scope->defs.items[first].result;
  /* Control edges do not cross levels. */
  bool node = b->out_count > 0 && last->level == l->level;
  *out = (weir_result){.list = list,
                       .count = b->out_count,
                       .block = b,
                       .node = node ? last->node : UINT32_MAX,
                       .level = l->level};
  return true;
}

/* A root that is no call: another name for a value, or a literal. */
static bool plain_root(weir_loader *l, weir_eval_frame *f) {
  weir_def *def = f->def;
  const weir_expr *expr = &def->item->expr;
  const weir_ast *n = &expr->nodes[expr->count - 1];
  weir_mark at = weir_ast_mark(n);
  weir_lookup found;
  weir_const c;
  if (n->kind == WEIR_AST_NAME && !weir_sv_is(n->text, "true") &&
      !weir_sv_is(n->text, "false")) {
    if (!weir_operand_lookup(l, f->scope, def->loop, expr, expr->count - 1,
                             &found))
      return false;
    if (found.kind != WEIR_FOUND_CONST) {
      def->result = (weir_result){.count = 1, .level = l->level};
      if (!weir_select_result(l, n, &found, &def->result.first)) return false;
      def->result.node =
          weir_graph_builder_graph(l->builder)->values[def->result.first].node;
      return true;
    }
  }
  if (!weir_eval_const(l, f->scope, def->loop, expr, expr->count - 1, &c))
    return false;
  if (c.kind == WEIR_CONST_STRING || c.kind == WEIR_CONST_NONE)
    return weir_report(l, WEIR_W1010, &at, "a node is a call or a number");
  if (def->item->kind == WEIR_ITEM_INPUT)
    return weir_input_literal(l, f->scope, def, &c, &at, &def->result);
  weir_sv name =
      weir_node_name(l, f->scope, def, WEIR_SV_LIT("const"), true, expr->count);
  weir_const_node node = {def, name, &c, WEIR_DTYPE_NONE, at};
  return name.data != NULL && weir_add_const(l, f->scope, &node, &def->result);
}

/* `run.h` can be fetched where `run` is a node of the main graph. */
static bool publish_fields(weir_loader *l, const weir_def *def) {
  const weir_result *r = &def->result;
  char text[600];
  weir_error err = WEIR_ERROR_INIT;
  for (uint32_t i = 0; r->block != NULL && i < r->count; i++) {
    weir_sv field = r->block->out_names[i];
    int n = snprintf(text, sizeof text, "%.*s.%.*s", WEIR_SV(def->name),
                     WEIR_SV(field));
    if (field.size == 0 || n < 0 || (size_t)n >= sizeof text) continue;
    weir_sv name = {weir_arena_string(l->arena, text, (size_t)n), (size_t)n};
    weir_value_id value = r->list != NULL ? r->list[i] : r->first + i;
    if (name.data == NULL ||
        weir_graph_builder_name_value(l->builder, name, value, &err) != WEIR_OK)
      return weir_report_memory(l);
  }
  return true;
}

/* `i, f = split(...)`: as many names as results; names of the main graph that
 * are no node's can be fetched too. */
static bool publish(weir_loader *l, weir_eval_frame *f) {
  const weir_def *def = f->def;
  const weir_item *item = def->item;
  const weir_result *r = &def->result;
  if (item->name_count > 1 && (item->name_count > r->count ||
                               item->name_count < weir_named_results(l, r)))
    return weir_report(l, WEIR_W1108, item->mark, "%u names for %u result%s",
                       item->name_count, r->count, r->count == 1 ? "" : "s");
  if (f->scope->caller != NULL || item->hidden || r->count == 0) return true;
  weir_error err = WEIR_ERROR_INIT;
  bool node_of_name =
      r->list == NULL && r->node != UINT32_MAX &&
      weir_sv_equal(weir_graph_builder_graph(l->builder)->nodes[r->node].name,
                    def->name);
  for (uint32_t i = node_of_name ? 1 : 0; i < r->count; i++) {
    weir_sv name = def->name;
    if (i > 0 && i >= item->name_count) break;
    if (i > 0 && def->loop == NULL) name = item->names[i].name;
    if (i > 0 && def->loop != NULL) break;
    weir_value_id value = r->list != NULL ? r->list[i] : r->first + i;
    if (weir_graph_builder_name_value(l->builder, name, value, &err) != WEIR_OK)
      return weir_report_memory(l);
  }
  return publish_fields(l, def);
}

/* `x: f32[2] = eye(2)`: the default, then the input. */
static bool add_input(weir_loader *l, weir_eval_frame *f) {
  weir_result fallback;
  bool has_default = f->def->item->expr.count > 0;
  if (has_default) {
    fallback = f->def->result;
    if (fallback.list != NULL) fallback.first = fallback.list[0];
  }
  return weir_input_add(l, f->scope, f->def, has_default ? &fallback : NULL);
}

/* Results of inner calls, by node. The outermost call's go to the definition,
 * so most definitions need no table. */
static bool make_results(weir_loader *l, weir_eval_frame *f) {
  const weir_expr *expr = &f->def->item->expr;
  if (f->results != NULL || expr->calls < 2) return true;
  f->results = weir_arena_array(&l->work, expr->count, sizeof *f->results);
  return f->results != NULL || weir_report_memory(l);
}

/* Whether the call or operation at |at| makes a node; false: reported. */
static bool makes_node(weir_loader *l, weir_eval_frame *f, bool *out) {
  const weir_ast *n = &f->def->item->expr.nodes[f->at];
  *out = weir_ast_is_active(n);
  if (!*out || n->kind == WEIR_AST_CALL) return true;
  return weir_operation_is_value(l, f->scope, f->def, f->at, f->results, out);
}

/* Adds the calls from node |at| on. |*wait|: a block is evaluated first. */
static bool add_calls(weir_evaluation *e, weir_eval_frame *f, bool *wait) {
  weir_loader *l = e->l;
  weir_def *def = f->def;
  const weir_expr *expr = &def->item->expr;
  if (!make_results(l, f)) return false;
  for (; f->at < expr->count; f->at++) {
    const weir_ast *n = &expr->nodes[f->at];
    bool is_node;
    if (!makes_node(l, f, &is_node)) return false;
    if (!is_node) continue;
    bool root = f->at + 1 == expr->count;
    weir_result *out = root ? &def->result : &f->results[f->at];
    if (f->inner == NULL)
      weir_loader_enter(
          l, weir_level_of_call(f->scope->level, expr, f->at, &l->in_init));
    if (n->block == NULL) {
      if (!weir_call_op(l, f->scope, def, f->at, f->results, out)) return false;
    } else if (f->inner == NULL) {
      f->inner = weir_call_block(l, f->scope, def, f->at, f->results);
      if (f->inner == NULL) return false;
      *wait = true;
      weir_eval_push(e, f->inner, NULL);
      return true;
    } else {
      weir_scope *inner = f->inner;
      f->inner = NULL;
      weir_loader_enter(l, inner->level);
      if (!block_result(l, inner, out)) return false;
      weir_scope_release(l, inner); /* its results are all that is read */
    }
    weir_loader_enter(l, f->scope->level);
    l->in_init = false;
  }
  if (expr->count == 0) return true;
  const weir_ast *root = &expr->nodes[expr->count - 1];
  return root->kind == WEIR_AST_CALL ||
         (root->named && def->result.count > 0) || plain_root(l, f);
}

static void step_def(weir_evaluation *e, weir_eval_frame *f) {
  size_t index = e->frames.count - 1;
  if (f->def->item->again != NULL && !weir_item_again(e->l, item_of(f->def))) {
    finish(e, f, false);
    return;
  }
  if (!f->named && !need_all(e, f)) return;
  f = &e->frames.items[index];
  if (f->failed) {
    finish(e, f, false);
    return;
  }
  bool wait = false;
  bool ok = f->def->item->kind == WEIR_ITEM_FORM
                ? weir_form_step(e, index, &wait)
                : add_calls(e, f, &wait);
  f = &e->frames.items[index]; /* the stack may have moved */
  if (wait) return;
  if (ok && f->def->item->kind == WEIR_ITEM_INPUT) ok = add_input(e->l, f);
  if (ok) ok = publish(e->l, f);
  finish(e, f, ok);
}

/* All definitions in their order. Many are done before their turn, as earlier
 * ones named them. */
static void step_scope(weir_evaluation *e, weir_eval_frame *f) {
  while (f->at < f->scope->defs.count) {
    weir_def *def = &f->scope->defs.items[f->at++];
    if (def->state != WEIR_DEF_NEW) continue;
    weir_eval_push(e, f->scope, def);
    return;
  }
  e->frames.count--;
}

bool weir_evaluate(weir_loader *l, weir_scope *main) {
  weir_evaluation e = {.l = l};
  weir_eval_push(&e, main, NULL);
  while (e.frames.count > 0 && weir_loader_going(l)) {
    weir_eval_frame *f = &e.frames.items[e.frames.count - 1];
    l->scope_now = f->scope;
    l->in_init = false; /* frames of several levels alternate */
    weir_loader_enter(l, f->scope->level);
    if (f->def != NULL)
      step_def(&e, f);
    else
      step_scope(&e, f);
  }
  l->scope_now = NULL;
  weir_loader_enter(l, NULL);
  weir_vec_free(l->alloc, &e.frames);
  return weir_loader_going(l);
}
