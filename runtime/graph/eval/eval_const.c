/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/eval/eval_const.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "runtime/base/size.h"
#include "runtime/graph/eval/levels.h"
#include "runtime/graph/eval/lookup.h"
#include "runtime/graph/load/report.h"
#include "runtime/graph/parse/operators.h"
#include "runtime/graph/parse/parse_call.h"

/* Constants: a loop over the postorder with a stack of values. A node takes its
 * |count| operands off the stack and puts its value there. The stack belongs to
 * the loader and is shared: an evaluation leaves it as high as it found it,
 * also after a failure. Cost: one step per node of the expression. */

const char *weir_const_text(const weir_const *c, char *text, size_t capacity) {
  switch (c->kind) {
    case WEIR_CONST_NONE:
      return "none";
    case WEIR_CONST_INT:
      if (!weir_dim_known(c->dim)) return "a dimension that is not known yet";
      snprintf(text, capacity, "%" PRId64, c->dim.value);
      return text;
    case WEIR_CONST_FLOAT:
      snprintf(text, capacity, "%g", c->f);
      return text;
    case WEIR_CONST_BOOL:
      return c->b ? "true" : "false";
    case WEIR_CONST_STRING:
      snprintf(text, capacity, "\"%.*s\"", WEIR_SV(c->s));
      return text;
    case WEIR_CONST_WORD:
      snprintf(text, capacity, "%.*s", WEIR_SV(c->s));
      return text;
    case WEIR_CONST_LIST:
      return "a list";
    case WEIR_CONST_VALUE:
      return "a value of the graph";
    case WEIR_CONST_UNKNOWN:
      return "?";
  }
  return "?";
}

void weir_const_hint_fraction(weir_loader *l, const weir_const *c) {
  if (c->kind == WEIR_CONST_FLOAT)
    weir_hint(&l->diag.error, "`/` makes a fraction; integers divide by //");
}

uint32_t weir_named_results(const weir_loader *l, const weir_result *r) {
  uint32_t count = r->count - r->hidden;
  if (r->list != NULL || r->block != NULL || r->node == UINT32_MAX ||
      r->level != l->level)
    return count;
  const weir_op_def *op =
      weir_graph_builder_graph(l->builder)->nodes[r->node].op;
  if (op->output_count != NULL || weir_op_output_count(op) != count)
    return count;
  while (count > 1 && op->outputs[count - 1].optional) count--;
  return count;
}

/* The output that the name's field says; UINT32_MAX - 1: there is none. */
static uint32_t field_port(weir_loader *l, weir_sv field,
                           const weir_result *r) {
  for (uint32_t i = 0; r->block != NULL && i < r->count; i++)
    if (weir_sv_equal(r->block->out_names[i], field)) return i;
  if (r->block != NULL || r->node == UINT32_MAX || r->level != l->level)
    return UINT32_MAX - 1;
  const weir_op_def *op =
      weir_graph_builder_graph(l->builder)->nodes[r->node].op;
  for (uint32_t i = 0; i < WEIR_OP_OUTPUTS && op->outputs[i].name; i++)
    if (weir_sv_is(field, op->outputs[i].name)) return i;
  return UINT32_MAX - 1;
}

bool weir_select_result(weir_loader *l, const weir_ast *name,
                        const weir_lookup *found, weir_value_id *out) {
  const weir_result *r =
      found->kind == WEIR_FOUND_DEF ? &found->def->result : found->result;
  weir_mark at = weir_ast_mark(name);
  uint32_t port = found->port;
  if (name->port >= 0) port = (uint32_t)name->port;
  if (name->field.size > 0) port = field_port(l, name->field, r);
  if (port == UINT32_MAX && weir_named_results(l, r) > 1) {
    bool named = r->block != NULL && r->block->out_names[0].size > 0;
    weir_report_begin(l, WEIR_W1107, &at, "%.*s has %u results",
                      WEIR_SV(name->text), r->count - r->hidden);
    if (named)
      weir_hint(&l->diag.error, "say which: %.*s.%.*s", WEIR_SV(name->text),
                WEIR_SV(r->block->out_names[0]));
    else
      weir_hint(&l->diag.error, "say which: %.*s:0", WEIR_SV(name->text));
    return weir_report_send(l);
  }
  if (port == UINT32_MAX) port = 0;
  if (port >= r->count)
    return weir_report(l, WEIR_W1107, &at, "%.*s has %u result%s, not this one",
                       WEIR_SV(name->text), r->count, r->count == 1 ? "" : "s");
  weir_value_id id = r->list != NULL ? r->list[port] : r->first + port;
  return weir_level_import(l, r->level, id, &at, out);
}

/* C rounds to 0, `//` rounds down. */
static int64_t floor_div(int64_t a, int64_t b) {
  int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

/* a op b for integers and symbols; NULL, or the reason of a failure. A
 * dimension is a symbol plus a number. So that the result is one too, at most
 * one side has a symbol, unless both have the same one and it cancels; and a
 * symbol can be multiplied or divided by 1 only. */
static const char *combine(char op, weir_dim a, weir_dim b, weir_dim *out) {
  static const char kOverflow[] = "the result does not fit 64 bits";
  static const char kSymbol[] =
      "a dimension that is not known yet can only have a number added";
  int64_t v = 0;
  *out = (weir_dim){0, a.symbol, 0};
  if (op == '+' || op == '-') {
    if (op == '+' && a.symbol == 0) out->symbol = b.symbol;
    if (b.symbol != 0) {
      if (op == '-' && a.symbol == b.symbol)
        out->symbol = 0;
      else if (op == '-' || a.symbol != 0)
        return kSymbol;
    }
    bool over = op == '+' ? __builtin_add_overflow(a.value, b.value, &v)
                          : __builtin_sub_overflow(a.value, b.value, &v);
    out->value = v;
    return over ? kOverflow : NULL;
  }
  if (op == '*' && weir_dim_is(b, 1)) return *out = a, NULL;
  if (op == '*' && weir_dim_is(a, 1)) return *out = b, NULL;
  if (op == WEIR_FLOOR_DIV && weir_dim_is(b, 1)) return *out = a, NULL;
  if (a.symbol != 0 || b.symbol != 0) return kSymbol;
  if (op == '*') {
    if (__builtin_mul_overflow(a.value, b.value, &v)) return kOverflow;
  } else {
    if (b.value == 0) return "division by zero";
    if (a.value == INT64_MIN && b.value == -1) return kOverflow;
    v = floor_div(a.value, b.value);
  }
  out->value = v;
  return NULL;
}

typedef struct eval {
  weir_loader *l;
  const weir_scope *scope;
  const weir_loop *loop;
  const weir_expr *expr;
} eval;

static bool want_number(eval *e, const weir_ast *n, const weir_const *c) {
  weir_mark at = weir_ast_mark(n);
  char text[80];
  if (c->kind == WEIR_CONST_INT || c->kind == WEIR_CONST_FLOAT) return true;
  if (c->kind == WEIR_CONST_WORD)
    return weir_report_unknown(e->l, e->scope, &at, c->s);
  return weir_report(e->l, WEIR_W1113, &at, "%s is no number",
                     weir_const_text(c, text, sizeof text));
}

static bool to_double(const weir_const *c, double *out) {
  *out = c->kind == WEIR_CONST_FLOAT ? c->f : (double)c->dim.value;
  return c->kind == WEIR_CONST_FLOAT || weir_dim_known(c->dim);
}

/* a op b where one is no integer, or the result is none: in f64. */
static const char *combine_floats(char op, const weir_const *a,
                                  const weir_const *b, weir_const *out) {
  double x, y, z;
  if (!to_double(a, &x) || !to_double(b, &y))
    return "a dimension that is not known yet can only have an integer added";
  bool divide = op == '/' || op == WEIR_FLOOR_DIV;
  if (divide && y == 0) return "division by zero";
  z = op == '+' ? x + y : op == '-' ? x - y : op == '*' ? x * y : x / y;
  if (op == WEIR_FLOOR_DIV) z = floor(z);
  *out = weir_const_float(z, (float)z);
  return isfinite(x) && isfinite(y) && !isfinite(z)
             ? "the result is too large for a number"
             : NULL;
}

static bool eval_arithmetic(eval *e, const weir_ast *n, weir_const *args,
                            weir_const *out) {
  const weir_ast *first = &e->expr->nodes[n->first];
  if (!want_number(e, first, &args[0])) return false;
  if (n->kind == WEIR_AST_NEG && args[0].kind == WEIR_CONST_FLOAT) {
    *out = weir_const_float(-args[0].f, -args[0].single);
    return true;
  }
  *out = (weir_const){.kind = WEIR_CONST_INT};
  const char *why;
  if (n->kind == WEIR_AST_NEG) {
    why = combine('-', weir_dim_of(0), args[0].dim, &out->dim);
  } else {
    if (!want_number(e, &e->expr->nodes[first->next], &args[1])) return false;
    bool ints = n->op != '/' && args[0].kind == WEIR_CONST_INT &&
                args[1].kind == WEIR_CONST_INT;
    why = ints ? combine(n->op, args[0].dim, args[1].dim, &out->dim)
               : combine_floats(n->op, &args[0], &args[1], out);
  }
  if (why == NULL) return true;
  weir_mark at = weir_ast_mark(n);
  return weir_report(e->l, WEIR_W1113, &at, "%s", why);
}

static bool eval_name(eval *e, const weir_ast *n, const weir_const *subs,
                      weir_const *out) {
  weir_lookup found;
  weir_mark at = weir_ast_mark(n);
  weir_scope_lookup(e->scope, e->loop, n, subs, &found);
  if (n->mode == WEIR_MODE_REF) {
    if (found.kind == WEIR_FOUND_NOTHING || found.kind == WEIR_FOUND_CONST)
      return weir_report_unknown(e->l, e->scope, &at, n->text);
    *out = (weir_const){.kind = WEIR_CONST_VALUE};
    return weir_select_result(e->l, n, &found, &out->value);
  }
  if (found.kind == WEIR_FOUND_CONST) {
    *out = found.value;
    return true;
  }
  if (found.kind != WEIR_FOUND_NOTHING)
    return weir_report(
        e->l, WEIR_W1113, &at,
        "%.*s is a value of the graph; a constant is wanted here",
        WEIR_SV(n->text));
  if (n->count > 0) return weir_report_unknown(e->l, e->scope, &at, n->text);
  *out = (weir_const){.kind = WEIR_CONST_WORD, .s = n->text};
  if (n->field.size > 0) out->s.size += 1 + n->field.size;
  if (weir_sv_is(out->s, "none")) out->kind = WEIR_CONST_NONE;
  if (weir_sv_is(out->s, "true") || weir_sv_is(out->s, "false"))
    *out =
        (weir_const){.kind = WEIR_CONST_BOOL, .b = weir_sv_is(n->text, "true")};
  return true;
}

static bool eval_dim(eval *e, const weir_ast *n, const weir_shape *shape,
                     const weir_const *axis, weir_const *out) {
  weir_mark at = weir_ast_mark(n);
  if (shape->rank < 0)
    return weir_report(e->l, WEIR_W2008, &at, "the rank is not known yet");
  if (axis->kind != WEIR_CONST_INT || !weir_dim_known(axis->dim))
    return weir_report(e->l, WEIR_W1113, &at, "an axis is an integer");
  int64_t i = axis->dim.value;
  if (i < 0) i += shape->rank;
  if (i < 0 || i >= shape->rank)
    return weir_report(e->l, WEIR_W2006, &at,
                       "axis %" PRId64 " is outside a tensor of rank %d",
                       axis->dim.value, (int)shape->rank);
  *out = (weir_const){.kind = WEIR_CONST_INT, .dim = shape->dims[i]};
  return true;
}

static bool eval_call(eval *e, const weir_ast *n, const weir_const *args,
                      weir_const *out) {
  const weir_graph *g = weir_graph_builder_graph(e->l->builder);
  const weir_shape *shape = g->values[args[0].value].shape;
  if (n->count == 2) return eval_dim(e, n, shape, &args[1], out);
  weir_mark at = weir_ast_mark(n);
  if (!weir_shape_known(shape))
    return weir_report(e->l, WEIR_W2008, &at, "the shape is not known yet");
  *out = (weir_const){.kind = WEIR_CONST_INT,
                      .dim = weir_dim_of(weir_shape_elements(shape))};
  return true;
}

static bool eval_list(eval *e, const weir_ast *n, const weir_const *args,
                      weir_const *out) {
  weir_const *items = weir_arena_alloc(&e->l->work, n->count * sizeof *items);
  if (items == NULL) return weir_report_memory(e->l);
  uint32_t at = n->first;
  for (uint32_t i = 0; i < n->count; i++, at = e->expr->nodes[at].next) {
    if (args[i].kind != WEIR_CONST_WORD) continue;
    weir_mark mark = weir_ast_mark(&e->expr->nodes[at]);
    return weir_report_unknown(e->l, e->scope, &mark, args[i].s);
  }
  if (n->count > 0) memcpy(items, args, n->count * sizeof *items);
  *out =
      (weir_const){.kind = WEIR_CONST_LIST, .count = n->count, .items = items};
  return true;
}

/* |args| are the operands' values. */
static bool eval_node(eval *e, const weir_ast *n, weir_const *args,
                      weir_const *out) {
  switch ((weir_ast_kind)n->kind) {
    case WEIR_AST_INT:
      *out = (weir_const){.kind = WEIR_CONST_INT, .dim = weir_dim_of(n->i)};
      return true;
    case WEIR_AST_FLOAT:
      *out = weir_const_float(n->f, n->single);
      return true;
    case WEIR_AST_STRING:
      *out = (weir_const){.kind = WEIR_CONST_STRING, .s = n->text};
      return true;
    case WEIR_AST_UNKNOWN:
      *out = (weir_const){.kind = WEIR_CONST_UNKNOWN};
      return true;
    case WEIR_AST_KEYWORD:
      *out = args[0];
      return true;
    case WEIR_AST_NAME:
      return eval_name(e, n, args, out);
    case WEIR_AST_CALL:
      return eval_call(e, n, args, out);
    case WEIR_AST_LIST:
      return eval_list(e, n, args, out);
    case WEIR_AST_BINARY:
    case WEIR_AST_NEG:
      return eval_arithmetic(e, n, args, out);
  }
  return false;
}

bool weir_eval_const(weir_loader *l, const weir_scope *scope,
                     const weir_loop *loop, const weir_expr *expr,
                     uint32_t node, weir_const *out) {
  eval e = {l, scope, loop, expr};
  const weir_ast *root = &expr->nodes[node];
  if (root->span == 1) return eval_node(&e, root, NULL, out);
  size_t base = l->stack.count;
  bool ok = true;
  for (uint32_t i = node + 1 - root->span; ok && i <= node; i++) {
    const weir_ast *n = &expr->nodes[i];
    weir_const value;
    assert(l->stack.count - base >= n->count);
    l->stack.count -= n->count;
    ok = eval_node(&e, n, l->stack.items + l->stack.count, &value) &&
         (weir_vec_push(l->alloc, &l->stack, value) || weir_report_memory(l));
  }
  assert(!ok || l->stack.count == base + 1);
  if (ok) *out = l->stack.items[l->stack.count - 1];
  l->stack.count = base;
  return ok;
}
