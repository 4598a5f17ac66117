/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/eval/call_op.h"

#include <math.h>

#include "runtime/graph/eval/add.h"
#include "runtime/graph/eval/attr_eval.h"
#include "runtime/graph/eval/eval_const.h"
#include "runtime/graph/eval/infix.h"
#include "runtime/graph/eval/levels.h"
#include "runtime/graph/eval/literal.h"
#include "runtime/graph/eval/lookup.h"
#include "runtime/graph/load/report.h"
#include "runtime/graph/parse/bind.h"
#include "runtime/graph/parse/forms.h"
#include "runtime/graph/parse/inputs.h"
#include "runtime/graph/parse/parse_call.h"

/* A call of an op becomes a node.
 *
 * The order of steps is that of their needs: values first; then the op, which
 * an attribute of a block may name; then its attributes; then literals, which
 * become constants of the dtype that values and attributes give
 * (literal_dtype), so add(x, 1) needs no cast. */

enum { WEIR_FEW_INPUTS = 16 };

typedef struct op_call {
  weir_loader *l;
  weir_scope *scope;
  weir_def *def;
  const weir_expr *expr;
  const weir_ast *call;
  const weir_result *results;
  const weir_op_info *info;
  uint32_t node, in_count;
  weir_value_id *in;
  weir_attr attrs[WEIR_OP_ATTRS];
  weir_tensor *literal; /* of a TENSOR attribute; a reference to drop */
} op_call;

static const weir_ast *operand(const op_call *c, uint32_t arg,
                               uint32_t *out_node) {
  const weir_ast *n = &c->expr->nodes[arg];
  if (n->kind == WEIR_AST_KEYWORD) {
    arg = n->first;
    n = &c->expr->nodes[arg];
  }
  *out_node = arg;
  return n;
}

static bool eval_attr(op_call *c, const weir_ast *n, uint32_t node) {
  weir_const value;
  weir_mark at = weir_ast_mark(n);
  weir_attr *out = &c->attrs[n->slot];
  weir_given_attr given = {c->info->op, n->slot, &value, &at};
  if (!weir_eval_const(c->l, c->scope, c->def->loop, c->expr, node, &value) ||
      !weir_attr_from_const(c->l, c->scope, &given, out))
    return false;
  if (out->kind == WEIR_ATTR_TENSOR) c->literal = out->tensor;
  return true;
}

/* Whether a number of |t| may have left its range. */
static bool is_full(const weir_tensor *t) {
  if (t->dtype != WEIR_F32) return false;
  for (size_t i = 0; i < t->bytes / sizeof(float); i++)
    if (isinf(((const float *)t->data)[i])) return true;
  return false;
}

/* `const([1, 2], dtype=i64)`: the literal again, in the dtype that was given,
 * in which its numbers must fit. */
static bool retype_literal(op_call *c, const weir_ast *n, uint32_t node) {
  int type = weir_op_attr_index(c->info->op, WEIR_SV_LIT("dtype"));
  if (type < 0) return true;
  weir_attr *dtype = &c->attrs[type];
  weir_dtype want =
      dtype->kind == WEIR_ATTR_DTYPE ? dtype->dtype : c->literal->dtype;
  if (want != c->literal->dtype || is_full(c->literal)) {
    weir_const value;
    weir_mark at = weir_ast_mark(n);
    weir_tensor_unref(c->literal);
    c->literal = NULL;
    if (!weir_eval_const(c->l, c->scope, c->def->loop, c->expr, node, &value) ||
        !weir_literal_tensor(c->l, &value, want, &at, &c->literal))
      return false;
    c->attrs[n->slot].tensor = c->literal;
  }
  *dtype = (weir_attr){.kind = WEIR_ATTR_DTYPE, .dtype = c->literal->dtype};
  return true;
}

static bool eval_attrs(op_call *c, const weir_ast *call) {
  uint32_t node, arg = call->first, literal = WEIR_AST_NONE;
  for (uint32_t i = 0; i < call->count; i++, arg = c->expr->nodes[arg].next) {
    const weir_ast *n = operand(c, arg, &node);
    if (n->mode != WEIR_MODE_CONST) continue;
    if (!eval_attr(c, n, node)) return false;
    if (c->literal != NULL && literal == WEIR_AST_NONE) literal = node;
  }
  if (literal == WEIR_AST_NONE) return true;
  return retype_literal(c, &c->expr->nodes[literal], literal);
}

/* `init=glorot_uniform()`: shape and dtype are those of the variable. */
static bool inject(op_call *c) {
  const weir_ast *var = &c->expr->nodes[c->call->inject];
  static const char *const kNames[] = {"shape", "dtype"};
  for (int k = 0; k < 2; k++) {
    weir_sv name = weir_sv_from(kNames[k]);
    int to = weir_op_attr_index(c->info->op, name);
    int from = weir_op_attr_index(var->op_info->op, name);
    if (to < 0 || from < 0 || c->attrs[to].kind != WEIR_ATTR_NONE) continue;
    uint32_t node, arg = var->first;
    for (uint32_t i = 0; i < var->count; i++, arg = c->expr->nodes[arg].next) {
      const weir_ast *n = operand(c, arg, &node);
      if (n->mode != WEIR_MODE_CONST || n->slot != (uint32_t)from) continue;
      weir_const value;
      weir_mark at = weir_ast_mark(n);
      weir_given_attr given = {c->info->op, (uint32_t)to, &value, &at};
      if (!weir_eval_const(c->l, c->scope, c->def->loop, c->expr, node,
                           &value) ||
          !weir_attr_from_const(c->l, c->scope, &given, &c->attrs[to]))
        return false;
    }
  }
  return true;
}

/* The value that an operand stands for; false in |*is_literal| when it is a
 * constant that has to become a node first. */
static bool operand_value(op_call *c, const weir_ast *n, uint32_t node,
                          bool *is_literal, weir_value_id *out) {
  weir_lookup found;
  *is_literal = true;
  if ((n->kind == WEIR_AST_CALL && !n->constant) ||
      weir_is_operation(n, c->results, node)) {
    const weir_result *r = &c->results[node];
    weir_mark at = weir_ast_mark(n);
    *is_literal = false;
    *out = r->list != NULL ? r->list[0] : r->first;
    if (r->count > 0 && weir_named_results(c->l, r) == 1)
      return weir_level_import(c->l, r->level, *out, &at, out);
    return weir_report(c->l, WEIR_W1107, &at,
                       r->count == 0 ? "%.*s has no result"
                                     : "%.*s has several results: name them",
                       WEIR_SV(n->text));
  }
  if (n->kind != WEIR_AST_NAME) return true;
  if (weir_sv_is(n->text, "true") || weir_sv_is(n->text, "false")) return true;
  if (!weir_operand_lookup(c->l, c->scope, c->def->loop, c->expr, node, &found))
    return false;
  if (found.kind == WEIR_FOUND_CONST) return true;
  *is_literal = false;
  return weir_select_result(c->l, n, &found, out);
}

/* The dtype that a literal at input |slot| takes: that of the operands of the
 * same type variable, else the first common one that the op allows there. */
static weir_dtype literal_dtype(const op_call *c, uint32_t slot) {
  static const weir_dtype kOrder[] = {WEIR_F32, WEIR_I64, WEIR_I32,
                                      WEIR_U8,  WEIR_F64, WEIR_BOOL};
  const weir_op_info *info = c->info;
  uint32_t port = slot < info->in_count ? slot : info->in_count - 1;
  int8_t var = info->in_var[port];
  const weir_value *values = weir_graph_builder_graph(c->l->builder)->values;
  for (uint32_t i = 0; var >= 0 && i < c->in_count; i++) {
    uint32_t p = i < info->in_count ? i : info->in_count - 1;
    if (info->in_var[p] == var && c->in[i] != WEIR_NO_VALUE)
      return values[c->in[i]].dtype;
  }
  if (var >= 0 && info->var_attr[var] >= 0 &&
      c->attrs[info->var_attr[var]].kind == WEIR_ATTR_DTYPE)
    return c->attrs[info->var_attr[var]].dtype;
  for (size_t i = 0; i < sizeof kOrder / sizeof kOrder[0]; i++)
    if (info->in_types[port] & (unsigned)kOrder[i]) return kOrder[i];
  return WEIR_F32;
}

/* A number as `init` fills the variable; NULL |value|: zeros. */
static bool add_fill(op_call *c, const weir_const *value, const weir_mark *at,
                     weir_value_id *out) {
  weir_loader *l = c->l;
  const weir_op_def *op = weir_loader_op(l, value != NULL ? "fill" : "zeros");
  if (op == NULL)
    return weir_report(l, WEIR_W9001, at, "the ops fill and zeros must exist");
  weir_attr attrs[WEIR_OP_ATTRS] = {0};
  static const char *const kNames[] = {"shape", "dtype"};
  for (int k = 0; k < 2; k++) {
    int to = weir_op_attr_index(op, weir_sv_from(kNames[k]));
    int from = weir_op_attr_index(c->info->op, weir_sv_from(kNames[k]));
    if (to >= 0 && from >= 0) attrs[to] = c->attrs[from];
  }
  int v = value != NULL ? weir_op_attr_index(op, WEIR_SV_LIT("value")) : -1;
  weir_given_attr given = {op, (uint32_t)v, value, at};
  if (v >= 0 && !weir_attr_from_const(l, c->scope, &given, &attrs[v]))
    return false;
  weir_node_spec spec = {
      .name = weir_node_name(l, c->scope, c->def, WEIR_SV_LIT("init"), false,
                             c->node),
      .op = op,
      .attrs = attrs,
      .device = c->def->item->device,
      .mark = *at};
  weir_node_id id;
  if (spec.name.data == NULL || !weir_add_node(l, c->scope, &spec, &id))
    return false;
  *out = weir_graph_builder_output(l->builder, id, 0);
  return true;
}

static bool refuse_literal(op_call *c, const weir_ast *n, const weir_mark *at) {
  weir_report_begin(c->l, WEIR_W1101, at, "an input must be a value");
  if (n->constant)
    weir_hint(&c->l->diag.error,
              "this dimension is known only when it is fed: "
              "cast(%.*s(...), f32) takes it then",
              WEIR_SV(n->text));
  return weir_report_send(c->l);
}

static bool add_literal(op_call *c, const weir_ast *n, uint32_t node) {
  weir_const value;
  weir_mark at = weir_ast_mark(n);
  if (!weir_eval_const(c->l, c->scope, c->def->loop, c->expr, node, &value))
    return false;
  weir_value_id *out = &c->in[n->slot];
  if (value.kind == WEIR_CONST_WORD)
    return weir_report_unknown(c->l, c->scope, &at, value.s);
  if (value.kind != WEIR_CONST_LIST &&
      c->info->op->instr == WEIR_INSTR_VAR_READ)
    return add_fill(c, &value, &at, out);
  if (n->kind == WEIR_AST_STRING || value.kind == WEIR_CONST_STRING ||
      value.kind == WEIR_CONST_NONE ||
      (value.kind == WEIR_CONST_INT && !weir_dim_known(value.dim)))
    return refuse_literal(c, n, &at);
  weir_sv name =
      weir_node_name(c->l, c->scope, c->def, WEIR_SV_LIT("const"), false, node);
  weir_result r;
  weir_const_node made = {c->def, name, &value, literal_dtype(c, n->slot), at};
  if (name.data == NULL || !weir_add_const(c->l, c->scope, &made, &r))
    return false;
  *out = r.first;
  return true;
}

static bool eval_inputs(op_call *c, bool literals) {
  uint32_t node, arg = c->call->first;
  for (uint32_t i = 0; i < c->call->count;
       i++, arg = c->expr->nodes[arg].next) {
    const weir_ast *n = operand(c, arg, &node);
    if (n->mode != WEIR_MODE_VALUE) continue;
    bool literal = false;
    if (literals && c->in[n->slot] != WEIR_NO_VALUE) continue;
    if (literals) {
      if (!add_literal(c, n, node)) return false;
    } else if (!operand_value(c, n, node, &literal, &c->in[n->slot])) {
      return false;
    }
  }
  return true;
}

static void count_inputs(op_call *c) {
  uint32_t node, arg = c->call->first;
  for (uint32_t i = 0; i < c->call->count;
       i++, arg = c->expr->nodes[arg].next) {
    const weir_ast *n = operand(c, arg, &node);
    if (n->mode == WEIR_MODE_VALUE && n->slot >= c->in_count)
      c->in_count = n->slot + 1;
  }
}

/* The op that an attribute of the block names: of ops of one name, the first
 * that takes as many inputs. |*out_none|: none, so the call is its operand. */
static bool dynamic_op(op_call *c, bool *out_none) {
  const weir_const *value = &c->scope->attrs[c->call->port];
  *out_none = value->kind == WEIR_CONST_NONE;
  if (*out_none) return true;
  const weir_op_names *op = weir_loader_ops(c->l, value->s);
  while (op != NULL && (op->info->in_required > c->call->count ||
                        op->info->in_count < c->call->count))
    op = op->next != WEIR_MAP_NONE ? &c->l->ops.items[op->next] : NULL;
  if (op == NULL)
    return weir_report(c->l, WEIR_W1102, &c->scope->call_mark,
                       "unknown op '%.*s' of %u input%s", WEIR_SV(value->s),
                       c->call->count, c->call->count == 1 ? "" : "s");
  c->info = op->info;
  return true;
}

/* A step may assign a variable once: with two the result would depend on their
 * order. */
static bool check_assign(op_call *c, const weir_mark *at) {
  if (c->info->op->instr != WEIR_INSTR_VAR_COMMIT) return true;
  if (c->l->level != NULL)
    return weir_report(c->l, WEIR_W1127, at,
                       "a body changes no variable: carry the value out and "
                       "assign it outside");
  const weir_graph *g = weir_graph_builder_graph(c->l->builder);
  const weir_node *var = &g->nodes[g->values[c->in[0]].node];
  if (var->op->instr != WEIR_INSTR_VAR_READ && c->def->item->update)
    return weir_report(c->l, WEIR_W1129, at, "update: %.*s is no variable",
                       WEIR_SV(c->def->name));
  if (var->op->instr != WEIR_INSTR_VAR_READ)
    return weir_report(c->l, WEIR_W1111, at, "%s: %.*s is no variable",
                       c->info->op->name, WEIR_SV(var->name));
  uint32_t before;
  if (!weir_map_put(&c->l->assigned, var->name, 0, &before))
    return weir_report_memory(c->l);
  return before == WEIR_MAP_NONE ||
         weir_report(c->l, WEIR_W2020, at, "%.*s is assigned twice",
                     WEIR_SV(var->name));
}

bool weir_after_nodes(weir_loader *l, weir_scope *scope, const weir_def *def,
                      weir_node_spec *spec) {
  const weir_item *item = def->item;
  if (item->after_count == 0) return true;
  weir_node_id *after =
      weir_arena_array(&l->work, item->after_count, sizeof *after);
  if (after == NULL) return weir_report_memory(l);
  for (uint32_t i = 0; i < item->after_count; i++) {
    const weir_expr *e = &item->after[i];
    weir_lookup found;
    if (!weir_operand_lookup(l, scope, def->loop, e, e->count - 1, &found))
      return false;
    const weir_result *r =
        found.kind == WEIR_FOUND_DEF ? &found.def->result : found.result;
    weir_mark at = weir_ast_mark(&e->nodes[e->count - 1]);
    if (r == NULL || r->node == UINT32_MAX)
      return weir_report(l, WEIR_W1010, &at, "after takes names of nodes");
    if (r->level != l->level)
      return weir_report(l, WEIR_W1127, &at,
                         "after takes names of nodes of the same body");
    after[spec->after_count++] = r->node;
  }
  spec->after = after;
  return true;
}

static bool add(op_call *c, weir_result *out) {
  weir_mark at = weir_ast_mark(c->call);
  bool root = weir_is_root(c->def, c->node);
  weir_node_spec spec = {
      .op = c->info->op,
      .attrs = c->attrs,
      .inputs = c->in,
      .input_count = c->in_count,
      .device = c->def->item->device,
      .mark = at,
      .update = c->def->item->update && c->node + 1 == c->expr->count,
      .name = weir_node_name(
          c->l, c->scope, c->def,
          weir_sv_from(c->call->inject != WEIR_AST_NONE ? "init"
                                                        : c->info->op->name),
          root, c->node)};
  weir_node_id id;
  if (spec.name.data == NULL || !check_assign(c, &at) ||
      (c->node + 1 == c->expr->count &&
       !weir_after_nodes(c->l, c->scope, c->def, &spec)) ||
      !weir_add_node(c->l, c->scope, &spec, &id))
    return false;
  const weir_node *node = &weir_graph_builder_graph(c->l->builder)->nodes[id];
  *out = (weir_result){.first = node->first_output,
                       .count = node->output_count,
                       .node = id,
                       .level = c->l->level};
  return true;
}

static bool run(op_call *c, weir_result *out) {
  for (uint32_t i = 0; i < c->in_count; i++) c->in[i] = WEIR_NO_VALUE;
  if (!eval_inputs(c, false)) return false;
  if (c->info == NULL) {
    bool none = false;
    if (!dynamic_op(c, &none)) return false;
    if (none && (c->in_count != 1 || c->in[0] == WEIR_NO_VALUE)) {
      weir_mark call = weir_ast_mark(c->call);
      return weir_report(c->l, WEIR_W1118, &call,
                         "%.*s is none: it must be given one value",
                         WEIR_SV(c->call->text));
    }
    if (none) { /* the call is its operand */
      *out = (weir_result){
          .first = c->in[0],
          .count = 1,
          .level = c->l->level,
          .node =
              weir_graph_builder_graph(c->l->builder)->values[c->in[0]].node};
      return true;
    }
  }
  weir_mark at = weir_ast_mark(c->call);
  if (c->info->op->instr == WEIR_INSTR_COLLECTIVE)
    return weir_report(c->l, WEIR_W3057, &at,
                       "%s is put in where `mesh` and `layout` need it",
                       c->info->op->name);
  /* Types of a body's values may be asked for where the value cannot be. */
  weir_level *level = c->l->level;
  weir_loader_enter(c->l, c->scope->level);
  bool given =
      eval_attrs(c, c->call) && (c->call->inject == WEIR_AST_NONE || inject(c));
  weir_loader_enter(c->l, level);
  if (!given) return false;
  if (c->def->item->kind == WEIR_ITEM_INPUT && c->node + 1 == c->expr->count &&
      !weir_input_inject(c->l, c->scope, c->def, c->info->op, c->attrs))
    return false;
  if (!eval_inputs(c, true)) return false;
  if (c->info->op->instr == WEIR_INSTR_VAR_READ && c->in[0] == WEIR_NO_VALUE &&
      !add_fill(c, NULL, &at, &c->in[0]))
    return false;
  return add(c, out);
}

bool weir_call_op(weir_loader *l, weir_scope *scope, weir_def *def,
                  uint32_t node, const weir_result *results, weir_result *out) {
  weir_value_id few[WEIR_FEW_INPUTS];
  const weir_expr *expr = &def->item->expr;
  op_call c = {.l = l,
               .scope = scope,
               .def = def,
               .expr = expr,
               .call = &expr->nodes[node],
               .results = results,
               .info = expr->nodes[node].op_info,
               .node = node,
               .in = few};
  count_inputs(&c);
  if (c.info != NULL && c.info->op->instr == WEIR_INSTR_VAR_READ)
    c.in_count = 1;
  if (c.in_count > WEIR_FEW_INPUTS)
    c.in = weir_alloc_array(l->alloc, c.in_count, sizeof *c.in);
  bool ok = c.in != NULL ? run(&c, out) : weir_report_memory(l);
  if (c.in != few) weir_free(l->alloc, c.in);
  weir_tensor_unref(c.literal);
  return ok;
}
