/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/parse/long_form.h"

#include "runtime/graph/load/keys.h"
#include "runtime/graph/load/report.h"
#include "runtime/graph/parse/bind.h"
#include "runtime/graph/parse/items.h"
#include "runtime/graph/parse/lex.h"
#include "runtime/graph/parse/parse_call.h"

/* The long form of a node, and repeat: maps instead of call strings. Operands
 * are emitted in the same postorder as by the parser, so that later steps
 * cannot tell the two forms apart; |roots| has the operands that have no parent
 * yet. */

const char *const weir_long_keys[] = {"op",     "in",    "attrs",
                                      "device", "after", NULL};
const char *const weir_repeat_keys[] = {"repeat", "nodes", NULL};

/* Parses |y| as one more operand; its root's index goes to |*out_root|. Quoted
 * attributes are strings; quoted inputs are calls all the same. */
static bool operand(weir_loader *l, const weir_yaml *y, bool input,
                    uint32_t *out_root) {
  weir_ast_vec *nodes = weir_parser_nodes(l->parser);
  uint32_t offset = 0;
  weir_parse_error e;
  if (!y->plain && !input) {
    weir_ast n = {.kind = WEIR_AST_STRING,
                  .text = y->text,
                  .src = y,
                  .size = (uint32_t)y->text.size};
    if (!weir_parser_emit(l->parser, &n, NULL, 0)) return weir_report_memory(l);
    *out_root = (uint32_t)nodes->count - 1;
    return true;
  }
  weir_parse_result r = weir_parse_expr(l->parser, y, &offset, &e);
  if (r != WEIR_PARSE_OK) return weir_parse_failed(l, y, r, &e);
  *out_root = (uint32_t)nodes->count - 1;
  return offset >= y->text.size || weir_refuse_rest(l, y, offset);
}

typedef struct list_frame {
  const weir_yaml *list;
  uint32_t at;
  uint32_t first_root;
} list_frame;

typedef WEIR_VEC(uint32_t) root_vec;

static bool emit_list(weir_loader *l, const weir_yaml *y, root_vec *roots,
                      uint32_t first) {
  weir_ast n = {.kind = WEIR_AST_LIST, .src = y};
  uint32_t count = (uint32_t)roots->count - first;
  const uint32_t *own = count > 0 ? roots->items + first : NULL;
  if (!weir_parser_emit(l->parser, &n, own, count))
    return weir_report_memory(l);
  roots->count = first;
  uint32_t root = (uint32_t)weir_parser_nodes(l->parser)->count - 1;
  return weir_vec_push(l->alloc, roots, root) || weir_report_memory(l);
}

/* A scalar, or a YAML list of lists of scalars, as one operand more. The
 * stack is as deep as the YAML tree may be. */
static bool value(weir_loader *l, const weir_yaml *y, bool input,
                  root_vec *roots) {
  WEIR_VEC(list_frame) stack = {0};
  bool ok = true;
  const weir_yaml *next = y;
  while (ok && next != NULL) {
    if (next->kind == WEIR_YAML_LIST) {
      list_frame f = {next, 0, (uint32_t)roots->count};
      ok = weir_vec_push(l->alloc, &stack, f) || weir_report_memory(l);
    } else if (next->kind == WEIR_YAML_SCALAR) {
      uint32_t root;
      ok = operand(l, next, input, &root) &&
           (weir_vec_push(l->alloc, roots, root) || weir_report_memory(l));
    } else {
      ok = weir_report(l, WEIR_W1010, &next->mark,
                       "a value is a scalar or a list, not a map");
    }
    next = NULL;
    while (ok && next == NULL && stack.count > 0) {
      list_frame *top = &stack.items[stack.count - 1];
      if (top->at < top->list->count) {
        next = top->list->items[top->at++];
      } else {
        list_frame done = *top;
        stack.count--;
        ok = emit_list(l, done.list, roots, done.first_root);
      }
    }
  }
  weir_vec_free(l->alloc, &stack);
  return ok;
}

static bool keyword(weir_loader *l, const weir_yaml_entry *e, bool input,
                    root_vec *roots) {
  weir_yaml *src = weir_arena_alloc(&l->work, sizeof *src);
  if (src == NULL) return weir_report_memory(l);
  *src = (weir_yaml){.kind = WEIR_YAML_SCALAR,
                     .plain = true,
                     .mark = e->key_mark,
                     .text = e->key};
  if (!value(l, e->value, input, roots)) return false;
  weir_ast n = {.kind = WEIR_AST_KEYWORD,
                .text = e->key,
                .src = src,
                .size = (uint32_t)e->key.size};
  if (!weir_parser_emit(l->parser, &n, &roots->items[roots->count - 1], 1))
    return weir_report_memory(l);
  roots->items[roots->count - 1] =
      (uint32_t)weir_parser_nodes(l->parser)->count - 1;
  return true;
}

static bool inputs(weir_loader *l, const weir_yaml *y, root_vec *roots) {
  if (y->kind == WEIR_YAML_SCALAR) return value(l, y, true, roots);
  for (uint32_t i = 0; i < y->count; i++)
    if (!(y->kind == WEIR_YAML_MAP ? keyword(l, &y->entries[i], true, roots)
                                   : value(l, y->items[i], true, roots)))
      return false;
  return true;
}

static bool call_parts(weir_loader *l, const weir_yaml *y, const weir_yaml *op,
                       root_vec *roots) {
  const weir_yaml *in = weir_yaml_get(y, "in");
  const weir_yaml *attrs = weir_yaml_get(y, "attrs");
  weir_parser_nodes(l->parser)->count = 0;
  if (in != NULL && !inputs(l, in, roots)) return false;
  if (attrs != NULL) {
    if (!weir_want_kind(l, attrs, WEIR_YAML_MAP, "attrs")) return false;
    for (uint32_t i = 0; i < attrs->count; i++)
      if (!keyword(l, &attrs->entries[i], false, roots)) return false;
  }
  weir_ast n = {.kind = WEIR_AST_CALL,
                .text = op->text,
                .src = op,
                .size = (uint32_t)op->text.size};
  return weir_parser_emit(l->parser, &n, roots->items,
                          (uint32_t)roots->count) ||
         weir_report_memory(l);
}

bool weir_item_long(weir_loader *l, weir_module *m, const weir_block *block,
                    const weir_yaml *y, weir_item *item) {
  const weir_yaml *op = weir_yaml_get(y, "op");
  if (op == NULL)
    return weir_report(l, WEIR_W1010, &y->mark,
                       "a node is a call, or a map with `op` or `repeat`");
  if (!weir_check_keys(l, y, "a node", weir_long_keys, false) ||
      !weir_want_kind(l, op, WEIR_YAML_SCALAR, "op"))
    return false;
  root_vec roots = {0};
  bool ok = call_parts(l, y, op, &roots);
  weir_vec_free(l->alloc, &roots);
  if (ok && !weir_parser_take(l->parser, &l->work, &item->expr))
    ok = weir_report_memory(l);
  const weir_yaml *device = weir_yaml_get(y, "device");
  const weir_yaml *after = weir_yaml_get(y, "after");
  if (ok && device != NULL)
    ok = weir_want_kind(l, device, WEIR_YAML_SCALAR, "device") &&
         weir_device_parse(l, device, 0, &item->device);
  if (ok && after != NULL) ok = weir_item_after(l, m, block, after, item);
  return ok && weir_expr_bind(l, m, block, &item->expr, WEIR_MODE_VALUE);
}

/* One end of "0..3"; |part| NULL: reported. */
static bool range_end(weir_loader *l, weir_module *m, const weir_block *block,
                      const weir_yaml *part, weir_expr *out) {
  return part != NULL && weir_expr_parse(l, part, out) &&
         weir_expr_bind(l, m, block, out, WEIR_MODE_CONST);
}

bool weir_item_repeat(weir_loader *l, weir_module *m, const weir_block *block,
                      const weir_yaml *y, weir_item *item) {
  const weir_yaml *repeat = weir_yaml_get(y, "repeat");
  const weir_yaml *nodes = weir_yaml_get(y, "nodes");
  item->kind = WEIR_ITEM_REPEAT;
  if (!weir_check_keys(l, y, "a repeat", weir_repeat_keys, false)) return false;
  if (repeat->kind != WEIR_YAML_MAP || repeat->count != 1 ||
      repeat->entries[0].value->kind != WEIR_YAML_SCALAR || nodes == NULL ||
      nodes->kind != WEIR_YAML_MAP)
    return weir_report(l, WEIR_W1119, &repeat->mark,
                       "repeat is written {repeat: {i: 0..3}, nodes: {...}}");
  const weir_yaml_entry *e = &repeat->entries[0];
  if (!weir_is_name(e->key))
    return weir_report(l, WEIR_W1106, &e->key_mark, "'%.*s' is not a name",
                       WEIR_SV(e->key));
  item->repeat = weir_arena_array(&l->work, 1, sizeof *item->repeat);
  if (item->repeat == NULL) return weir_report_memory(l);
  item->repeat->var = e->key;
  weir_sv text = e->value->text;
  size_t dots = 0;
  while (dots + 1 < text.size &&
         (text.data[dots] != '.' || text.data[dots + 1] != '.'))
    dots++;
  if (dots + 1 >= text.size)
    return weir_report(l, WEIR_W1119, &e->value->mark,
                       "a range is written 0..3 (3 is not in it)");
  const weir_yaml *from = weir_scalar_part(l, e->value, 0, dots), *to = NULL;
  if (!range_end(l, m, block, from, &item->repeat->from)) return false;
  to = weir_scalar_part(l, e->value, dots + 2, text.size - dots - 2);
  return range_end(l, m, block, to, &item->repeat->to);
}
