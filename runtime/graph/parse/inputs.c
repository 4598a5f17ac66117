/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/parse/inputs.h"

#include <assert.h>
#include <stdio.h>

#include "runtime/graph/eval/add.h"
#include "runtime/graph/eval/attr_eval.h"
#include "runtime/graph/eval/eval_const.h"
#include "runtime/graph/eval/lookup.h"
#include "runtime/graph/load/keys.h"
#include "runtime/graph/load/loader.h"
#include "runtime/graph/load/report.h"
#include "runtime/graph/parse/bind.h"
#include "runtime/graph/parse/body.h"
#include "runtime/graph/parse/items.h"
#include "runtime/graph/parse/lex.h"
#include "runtime/graph/parse/parse_call.h"

/* Inputs of the graph: `b: f32[2, 2] = eye(2)`. Type and default help each
 * other: an op of the default gets dtype and shape from the type where it names
 * none (weir_input_inject), and `_` in the type takes its size from the
 * default. So the default is evaluated before the input's own node is made. */

bool weir_type_parse(weir_loader *l, weir_module *m, const weir_block *block,
                     const weir_yaml *y, uint32_t *offset, weir_expr *out) {
  weir_parse_error e;
  uint32_t start = *offset;
  weir_parser_nodes(l->parser)->count = 0;
  weir_parse_result r = weir_parse_expr(l->parser, y, offset, &e);
  if (r != WEIR_PARSE_OK) {
    e.id = e.id == WEIR_W1101 ? WEIR_W1112 : e.id;
    return weir_parse_failed(l, y, r, &e);
  }
  if (!weir_parser_take(l->parser, &l->work, out)) return weir_report_memory(l);
  weir_ast *root = &out->nodes[out->count - 1];
  bool name =
      root->kind == WEIR_AST_NAME && root->field.data == NULL && root->port < 0;
  if (!name || weir_dtype_from_name(root->text.data, root->text.size) ==
                   WEIR_DTYPE_NONE) {
    weir_mark at = weir_yaml_mark_within(y, start, *offset - start);
    return weir_report(l, WEIR_W1112, &at,
                       "a type is written dtype[dim, dim], dtype one of f32 "
                       "f64 i32 i64 u8 bool");
  }
  return weir_expr_bind(l, m, block, out, WEIR_MODE_CONST);
}

static bool parse_default(weir_loader *l, weir_module *m, const weir_yaml *y,
                          uint32_t offset, weir_item *item) {
  weir_parse_error e;
  weir_parse_result r = weir_parse_expr(l->parser, y, &offset, &e);
  if (r != WEIR_PARSE_OK) return weir_parse_failed(l, y, r, &e);
  if (!weir_parser_take(l->parser, &l->work, &item->expr))
    return weir_report_memory(l);
  if (offset < y->text.size) return weir_refuse_rest(l, y, offset);
  return weir_expr_bind(l, m, NULL, &item->expr, WEIR_MODE_VALUE);
}

static bool parse_input(weir_loader *l, weir_module *m,
                        const weir_yaml_entry *e, weir_item *item) {
  item->names[0] = (weir_item_name){.name = e->key, .mark = e->key_mark};
  item->name_count = 1;
  if (!weir_is_name(e->key))
    return weir_report(l, WEIR_W1106, &e->key_mark, "'%.*s' is not a name",
                       WEIR_SV(e->key));
  uint32_t offset = 0;
  const weir_yaml *y = e->value;
  if (!weir_want_kind(l, y, WEIR_YAML_SCALAR, "an input's type") ||
      !weir_type_parse(l, m, NULL, y, &offset, item->type))
    return false;
  if (offset >= y->text.size) return true;
  if (y->text.data[offset] == '=')
    return parse_default(l, m, y, offset + 1, item);
  weir_mark at = weir_yaml_mark_within(y, offset, 1);
  return weir_report(l, WEIR_W1112, &at, "found '%c', expected = or the end",
                     y->text.data[offset]);
}

bool weir_inputs_parse(weir_loader *l, weir_module *m, const weir_yaml *y,
                       weir_body *body) {
  for (uint32_t i = 0; i < y->count && weir_loader_going(l); i++) {
    assert(body->count < body->capacity);
    weir_item *item = &body->items[body->count++];
    *item =
        (weir_item){.kind = WEIR_ITEM_INPUT,
                    .mark = &y->entries[i].key_mark,
                    .type = weir_arena_array(&l->work, 1, sizeof *item->type)};
    item->names = &item->one;
    if (item->type == NULL) return weir_report_memory(l);
    if (!parse_input(l, m, &y->entries[i], item)) item->kind = WEIR_ITEM_BROKEN;
    if (!weir_body_declare(l, m, NULL, body)) item->kind = WEIR_ITEM_BROKEN;
  }
  return weir_loader_going(l);
}

static bool unknown_dim(weir_loader *l, const weir_scope *scope,
                        const weir_mark *at, weir_sv name) {
  weir_report_unknown_begin(l, scope, at, name);
  if (l->diag.error.hint[0] == '\0')
    weir_hint(&l->diag.error,
              "declare it: dims: [%.*s], or give it a value under params",
              WEIR_SV(name));
  return weir_report_send(l);
}

/* The dimensions of a type. Each `?` is a symbol of its own: nothing ties it to
 * another. The number of symbols so far makes its name new. */
static bool type_dims(weir_loader *l, weir_scope *scope, const weir_expr *type,
                      const weir_shape *fallback, weir_dim *dims) {
  const weir_ast *root = &type->nodes[type->count - 1];
  uint32_t i = 0;
  for (uint32_t n = root->first; i < root->count; n = type->nodes[n].next) {
    weir_const c;
    if (!weir_eval_const(l, scope, NULL, type, n, &c)) return false;
    weir_mark at = weir_ast_mark(&type->nodes[n]);
    if (c.kind == WEIR_CONST_UNKNOWN) {
      char name[32];
      snprintf(name, sizeof name, "?%u",
               l->builder != NULL
                   ? weir_graph_builder_graph(l->builder)->symbol_count
                   : 0);
      c.dim = (weir_dim){
          0, weir_graph_builder_symbol(l->builder, weir_sv_from(name)), 0};
      if (c.dim.symbol == 0) return weir_report_memory(l);
    } else if (c.kind == WEIR_CONST_WORD && weir_sv_is(c.s, "_") &&
               fallback != NULL && i < (uint32_t)fallback->rank) {
      c.dim = fallback->dims[i]; /* the default says it */
    } else if (c.kind == WEIR_CONST_WORD) {
      return unknown_dim(l, scope, &at, c.s);
    } else if (c.kind != WEIR_CONST_INT) {
      weir_report_begin(l, WEIR_W1112, &at, "a dimension is an integer");
      weir_const_hint_fraction(l, &c);
      return weir_report_send(l);
    }
    dims[i++] = c.dim;
  }
  return true;
}

/* Sets `dtype` and `shape` to the type's; |dims| has room for the rank. */
static bool type_attrs(weir_loader *l, weir_scope *scope, const weir_def *def,
                       const weir_op_def *op, weir_dim *dims,
                       weir_attr *attrs) {
  const weir_expr *type = def->item->type;
  const weir_ast *root = &type->nodes[type->count - 1];
  int dtype = weir_op_attr_index(op, WEIR_SV_LIT("dtype"));
  int shape = weir_op_attr_index(op, WEIR_SV_LIT("shape"));
  if (dtype >= 0 && attrs[dtype].kind == WEIR_ATTR_NONE)
    attrs[dtype] = (weir_attr){
        .kind = WEIR_ATTR_DTYPE,
        .dtype = weir_dtype_from_name(root->text.data, root->text.size)};
  if (shape < 0 || attrs[shape].kind != WEIR_ATTR_NONE) return true;
  if (root->count > WEIR_MAX_RANK) {
    weir_mark at = weir_ast_mark(root);
    return weir_report(l, WEIR_W2003, &at, "rank %u, at most %d", root->count,
                       WEIR_MAX_RANK);
  }
  attrs[shape] =
      (weir_attr){.kind = WEIR_ATTR_INTS, .count = root->count, .dims = dims};
  const weir_result *r = &def->result;
  const weir_shape *fallback = NULL;
  if (r->count > 0)
    fallback = weir_graph_builder_graph(l->builder)
                   ->values[r->list != NULL ? r->list[0] : r->first]
                   .shape;
  return type_dims(l, scope, type, fallback, dims);
}

bool weir_input_inject(weir_loader *l, weir_scope *scope, const weir_def *def,
                       const weir_op_def *op, weir_attr *attrs) {
  weir_dim *dims = weir_arena_array(&l->work, WEIR_MAX_RANK, sizeof *dims);
  if (dims == NULL) return weir_report_memory(l);
  return type_attrs(l, scope, def, op, dims, attrs);
}

/* A literal as a default. A number fills the declared shape, so that `= 0` is
 * short for zeros of any shape; a list has its own shape. */
bool weir_input_literal(weir_loader *l, weir_scope *scope, weir_def *def,
                        const weir_const *c, const weir_mark *at,
                        weir_result *out) {
  const weir_ast *root = &def->item->type->nodes[def->item->type->count - 1];
  const weir_op_def *fill = weir_loader_op(l, "fill");
  weir_sv name =
      weir_node_name(l, scope, def, WEIR_SV_LIT("default"), false, 0);
  if (name.data == NULL) return false;
  weir_dtype dtype = weir_dtype_from_name(root->text.data, root->text.size);
  weir_const_node made = {def, name, c, dtype, *at};
  if (c->kind == WEIR_CONST_LIST || root->count == 0 || fill == NULL)
    return weir_add_const(l, scope, &made, out);
  weir_attr attrs[WEIR_OP_ATTRS] = {0};
  weir_dim dims[WEIR_MAX_RANK];
  int value = weir_op_attr_index(fill, WEIR_SV_LIT("value"));
  weir_given_attr given = {fill, (uint32_t)value, c, at};
  if (!type_attrs(l, scope, def, fill, dims, attrs) ||
      (value >= 0 && !weir_attr_from_const(l, scope, &given, &attrs[value])))
    return false;
  weir_node_spec spec = {.name = name, .op = fill, .attrs = attrs, .mark = *at};
  weir_node_id id;
  if (!weir_add_node(l, scope, &spec, &id)) return false;
  *out = (weir_result){.first = weir_graph_builder_output(l->builder, id, 0),
                       .count = 1,
                       .node = id};
  return true;
}

/* Builds the `input` node; |fallback| is its default, evaluated, or NULL. */
bool weir_input_add(weir_loader *l, weir_scope *scope, weir_def *def,
                    const weir_result *fallback) {
  const weir_expr *type = def->item->type;
  weir_mark at = weir_ast_mark(&type->nodes[type->count - 1]);
  weir_dim dims[WEIR_MAX_RANK];
  weir_attr attrs[WEIR_OP_ATTRS] = {0};
  const weir_op_def *op = weir_loader_op(l, "input");
  if (op == NULL)
    return weir_report(l, WEIR_W9001, &at, "the op `input` does not exist");
  if (!type_attrs(l, scope, def, op, dims, attrs)) return false;
  weir_node_spec spec = {.name = def->name,
                         .op = op,
                         .attrs = attrs,
                         .inputs = fallback != NULL ? &fallback->first : NULL,
                         .input_count = fallback != NULL ? 1 : 0,
                         .mark = at};
  weir_node_id id;
  if (!weir_add_node(l, scope, &spec, &id)) return false;
  def->result =
      (weir_result){.first = weir_graph_builder_output(l->builder, id, 0),
                    .count = 1,
                    .node = id};
  weir_graph_port port = {.name = def->name,
                          .value = def->result.first,
                          .mark = *def->item->mark,
                          .has_default = fallback != NULL};
  weir_error err = WEIR_ERROR_INIT;
  return weir_graph_builder_add_input(l->builder, &port, &err) == WEIR_OK ||
         weir_report_memory(l);
}
