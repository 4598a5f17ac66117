/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/train/train_call.h"

#include <string.h>

#include "runtime/base/yaml/yaml_scalar.h"
#include "runtime/graph/parse/parse_call.h"
#include "runtime/graph/train/train_read.h"

/* Calls in the `train` section: adam(lr=lr, l2=1e-4), or the same as a map,
 * {name: adam, lr: lr, l2: 1e-4}. */

/* A name that is no param stays a text. */
static bool arg_name(weir_train_reader *r, weir_sv name, weir_train_arg *out) {
  const weir_graph_param *p = weir_train_param(r, name);
  weir_sv text = p != NULL ? p->text : name;
  out->kind = WEIR_ARG_NUMBER;
  if (p != NULL && weir_text_float(text, &out->number)) return true;
  out->kind = WEIR_ARG_BOOL;
  out->b = weir_sv_is(text, "true");
  if (out->b || weir_sv_is(text, "false")) return true;
  out->kind = WEIR_ARG_TEXT;
  out->text = text;
  return true;
}

static bool from_ast(weir_train_reader *r, const weir_ast *nodes, uint32_t at,
                     int depth, weir_train_arg *out);

static bool call_from_ast(weir_train_reader *r, const weir_ast *nodes,
                          uint32_t at, int depth, weir_train_call **out) {
  const weir_ast *root = &nodes[at];
  weir_train_call *call = weir_arena_array(r->arena, 1, sizeof *call);
  if (call == NULL) return weir_train_memory(r);
  call->name = root->text;
  call->mark = weir_ast_mark(root);
  call->count = root->kind == WEIR_AST_CALL ? root->count : 0;
  call->args = weir_arena_array(r->arena, call->count, sizeof *call->args);
  if (call->args == NULL) return weir_train_memory(r);
  uint32_t arg = root->first;
  for (uint32_t i = 0; i < call->count; i++, arg = nodes[arg].next) {
    const weir_ast *n = &nodes[arg];
    weir_train_arg *a = &call->args[i];
    a->name_mark = weir_ast_mark(n);
    uint32_t value = arg;
    if (n->kind == WEIR_AST_KEYWORD) {
      a->name = n->text;
      value = n->first;
    }
    if (!from_ast(r, nodes, value, depth, a)) return false;
  }
  *out = call;
  return true;
}

/* An argument; calls within calls once. */
static bool from_ast(weir_train_reader *r, const weir_ast *nodes, uint32_t at,
                     int depth, weir_train_arg *out) {
  const weir_ast *n = &nodes[at];
  out->mark = weir_ast_mark(n);
  double sign = 1;
  if (n->kind == WEIR_AST_NEG) {
    n = &nodes[n->first];
    sign = -1;
  }
  out->kind = WEIR_ARG_NUMBER;
  if (n->kind == WEIR_AST_INT || n->kind == WEIR_AST_FLOAT) {
    out->number = sign * (n->kind == WEIR_AST_INT ? (double)n->i : n->f);
    return true;
  }
  if (n->kind == WEIR_AST_NAME && n->count == 0 && n->port < 0 &&
      n->field.size == 0 && sign > 0)
    return arg_name(r, n->text, out);
  if (n->kind == WEIR_AST_STRING) {
    out->kind = WEIR_ARG_TEXT;
    out->text = n->text;
    return true;
  }
  if (n->kind == WEIR_AST_CALL && depth > 0 && sign > 0) {
    out->kind = WEIR_ARG_CALL;
    return call_from_ast(r, nodes, (uint32_t)(n - nodes), depth - 1,
                         &out->call);
  }
  return weir_train_report(r, WEIR_W1131, &out->mark,
                           "an argument here is a number, true, false or the "
                           "name of a param");
}

/* Parses |y|; only whole texts count. */
static bool parse(weir_train_reader *r, const weir_yaml *y, const char *what,
                  weir_expr *expr) {
  uint32_t offset = 0;
  weir_parse_error e;
  weir_parse_result result = weir_parse_expr(r->parser, y, &offset, &e);
  if (result == WEIR_PARSE_MEMORY) return weir_train_memory(r);
  if (result == WEIR_PARSE_FAILED) {
    weir_ast_vec *nodes = weir_parser_nodes(r->parser);
    nodes->count = 0;
    weir_mark at = weir_yaml_mark_within(y, e.offset, e.size);
    return weir_train_report(r, e.id, &at, "%s", e.message);
  }
  if (!weir_parser_take(r->parser, r->arena, expr)) return weir_train_memory(r);
  while (offset < y->text.size && y->text.data[offset] == ' ') offset++;
  if (offset == y->text.size) return true;
  weir_mark at = weir_yaml_mark_within(y, offset, 1);
  return weir_train_report(r, WEIR_W1101, &at, "%s ends before this", what);
}

/* A value in the map form: a number, a word, or a call as text. */
static bool arg_from_yaml(weir_train_reader *r, const weir_yaml_entry *e,
                          weir_train_arg *out) {
  const weir_yaml *y = e->value;
  *out = (weir_train_arg){
      .name = e->key, .name_mark = e->key_mark, .mark = y->mark};
  if (!weir_train_want(r, y, WEIR_YAML_SCALAR, "an argument")) return false;
  out->kind = WEIR_ARG_NUMBER;
  if (weir_text_float(weir_train_scalar(r, y), &out->number)) return true;
  if (memchr(y->text.data, '(', y->text.size) == NULL)
    return arg_name(r, y->text, out);
  weir_expr expr;
  return parse(r, y, "the call", &expr) &&
         from_ast(r, expr.nodes, expr.count - 1, 1, out);
}

static bool call_from_map(weir_train_reader *r, const weir_yaml *y,
                          const char *what, weir_train_call **out) {
  const weir_yaml *name = weir_yaml_get(y, "name");
  if (name == NULL)
    return weir_train_report(r, WEIR_W1010, &y->mark,
                             "%s: the map needs `name`", what);
  if (!weir_train_want(r, name, WEIR_YAML_SCALAR, "name")) return false;
  weir_train_call *call = weir_arena_array(r->arena, 1, sizeof *call);
  if (call == NULL) return weir_train_memory(r);
  *call = (weir_train_call){.name = name->text, .mark = name->mark};
  call->args = weir_arena_array(r->arena, y->count, sizeof *call->args);
  if (call->args == NULL) return weir_train_memory(r);
  bool ok = true;
  for (uint32_t i = 0; i < y->count; i++)
    if (y->entries[i].value != name)
      ok = arg_from_yaml(r, &y->entries[i], &call->args[call->count++]) && ok;
  *out = call;
  return ok;
}

bool weir_train_read_call(weir_train_reader *r, const weir_yaml *y,
                          const char *what, weir_train_call **out) {
  if (y->kind == WEIR_YAML_MAP) return call_from_map(r, y, what, out);
  if (!weir_train_want(r, y, WEIR_YAML_SCALAR, what)) return false;
  weir_expr expr;
  if (!parse(r, y, what, &expr)) return false;
  const weir_ast *root = &expr.nodes[expr.count - 1];
  if (root->kind == WEIR_AST_CALL ||
      (root->kind == WEIR_AST_NAME && root->count == 0))
    return call_from_ast(r, expr.nodes, expr.count - 1, 1, out);
  return weir_train_report(r, WEIR_W1010, &y->mark,
                           "%s is '%.*s', must be a call", what,
                           WEIR_SV(y->text));
}
