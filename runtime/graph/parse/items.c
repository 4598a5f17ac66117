/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/parse/items.h"
#include "runtime/device/name.h"
#include "runtime/graph/load/keys.h"
#include "runtime/graph/load/report.h"
#include "runtime/graph/parse/bind.h"
#include "runtime/graph/parse/lex.h"
#include "runtime/graph/parse/operators.h"
#include "runtime/graph/parse/parse_call.h"

/* Entries of `nodes` maps: names, call strings, `@ device`, `after`. */

bool weir_parse_failed(weir_loader *l, const weir_yaml *src,
                       weir_parse_result result, const weir_parse_error *e) {
  if (result == WEIR_PARSE_MEMORY) return weir_report_memory(l);
  weir_mark at = weir_yaml_mark_within(src, e->offset, e->size);
  weir_report_begin(l, e->id, &at, "%s", e->message);
  if (e->hint != NULL) weir_hint(&l->diag.error, "%s", e->hint);
  if (e->open_size == 0) return weir_report_send(l);
  char open = src->text.data[e->open + e->open_size - 1];
  weir_mark begin = weir_yaml_mark_within(src, e->open, e->open_size);
  weir_diag_add_label(&l->diag, &begin, "this %c is not closed", open);
  weir_hint(&l->diag.error,
            src->plain ? "close it with %c; inside { } and [ ] of YAML a text "
                         "ends at a comma or bracket unless it is in quotes"
                       : "close it with %c",
            open == '(' ? ')' : ']');
  return weir_report_send(l);
}

/* One expression from |*offset| on, its nodes taken to the work arena. */
static bool parse_part(weir_loader *l, const weir_yaml *y, uint32_t *offset,
                       weir_expr *out) {
  weir_parse_error e;
  weir_parser_nodes(l->parser)->count = 0;
  weir_parse_result r = weir_parse_expr(l->parser, y, offset, &e);
  if (r != WEIR_PARSE_OK) return weir_parse_failed(l, y, r, &e);
  return weir_parser_take(l->parser, &l->work, out) || weir_report_memory(l);
}

bool weir_refuse_rest(weir_loader *l, const weir_yaml *y, uint32_t offset) {
  weir_mark at = weir_yaml_mark_within(y, offset, 1);
  weir_report_begin(l, WEIR_W1101, &at, "found '%c', expected the end",
                    y->text.data[offset]);
  const char *hint = weir_operator_hint(y->text, offset);
  if (hint != NULL) weir_hint(&l->diag.error, "%s", hint);
  return weir_report_send(l);
}

bool weir_expr_parse(weir_loader *l, const weir_yaml *y, weir_expr *out) {
  uint32_t offset = 0;
  if (!weir_want_kind(l, y, WEIR_YAML_SCALAR, "an expression")) return false;
  if (!parse_part(l, y, &offset, out)) return false;
  return offset >= y->text.size || weir_refuse_rest(l, y, offset);
}

bool weir_device_parse(weir_loader *l, const weir_yaml *y, uint32_t offset,
                       weir_sv *out) {
  weir_sv text = {y->text.data + offset, y->text.size - offset};
  while (text.size > 0 && text.data[0] == ' ') text.data++, text.size--;
  while (text.size > 0 && text.data[text.size - 1] == ' ') text.size--;
  weir_device_name name;
  weir_error err = WEIR_ERROR_INIT;
  size_t bad = 0;
  char canonical[160];
  if (weir_device_name_parse(text, &name, &bad, &err) != WEIR_OK) {
    weir_mark at =
        weir_yaml_mark_within(y, (size_t)(text.data - y->text.data) + bad,
                              bad < text.size ? text.size - bad : 1);
    weir_report_begin(l, WEIR_W1115, &at, "%s", err.message);
    /* `x @ w`: no device begins like that. */
    if (offset > 0 && text.size > 0 && text.data[0] != '/' &&
        memchr(text.data, ':', text.size) == NULL)
      weir_hint(&l->diag.error, "%s", weir_operator_hint(WEIR_SV_LIT("@"), 0));
    return weir_report_send(l);
  }
  weir_device_name_print(&name, canonical, sizeof canonical);
  size_t size = strlen(canonical);
  out->data = weir_arena_string(l->arena, canonical, size);
  out->size = size;
  return out->data != NULL || weir_report_memory(l);
}

/* What stands behind a call: `@ device`, or nothing. */
static bool parse_device(weir_loader *l, const weir_yaml *y, uint32_t offset,
                         weir_item *item) {
  if (offset >= y->text.size) return true;
  if (y->text.data[offset] != '@') return weir_refuse_rest(l, y, offset);
  return weir_device_parse(l, y, offset + 1, &item->device);
}

bool weir_item_call(weir_loader *l, weir_module *m, const weir_block *block,
                    const weir_yaml *y, weir_item *item) {
  uint32_t offset = 0;
  return parse_part(l, y, &offset, &item->expr) &&
         parse_device(l, y, offset, item) &&
         weir_expr_bind(l, m, block, &item->expr, WEIR_MODE_VALUE);
}

/* The tree stays in the parser, where the next one takes its place. */
static bool parse_in_place(weir_loader *l, const weir_yaml *y, uint32_t *offset,
                           weir_expr *out) {
  weir_parse_error e;
  weir_ast_vec *nodes = weir_parser_nodes(l->parser);
  nodes->count = 0;
  weir_parse_result r = weir_parse_expr(l->parser, y, offset, &e);
  if (r != WEIR_PARSE_OK) return weir_parse_failed(l, y, r, &e);
  *out = (weir_expr){.nodes = nodes->items, .count = (uint32_t)nodes->count};
  return true;
}

bool weir_item_call_briefly(weir_loader *l, weir_module *m, const weir_yaml *y,
                            weir_item *item) {
  uint32_t offset = 0;
  bool ok = parse_in_place(l, y, &offset, &item->expr) &&
            parse_device(l, y, offset, item) &&
            weir_expr_bind(l, m, NULL, &item->expr, WEIR_MODE_VALUE);
  item->again = y;
  item->expr.nodes = NULL;
  return ok;
}

bool weir_item_again(weir_loader *l, weir_item *item) {
  uint32_t offset = 0;
  weir_expr e = {0};
  if (item->again == NULL || item->expr.nodes != NULL) return true;
  if (!parse_in_place(l, item->again, &offset, &e)) return false;
  size_t bytes = e.count * sizeof *e.nodes;
  item->expr.nodes = weir_alloc(l->alloc, bytes);
  if (item->expr.nodes == NULL) return weir_report_memory(l);
  memcpy(item->expr.nodes, e.nodes, bytes);
  item->expr.count = e.count;
  item->expr.calls = 0; /* binding counts them again */
  return weir_expr_bind(l, l->main, NULL, &item->expr, WEIR_MODE_VALUE);
}

void weir_item_forget(weir_loader *l, weir_item *item) {
  if (item->again == NULL) return;
  weir_free(l->alloc, item->expr.nodes);
  item->expr.nodes = NULL;
}

bool weir_item_after(weir_loader *l, weir_module *m, const weir_block *block,
                     const weir_yaml *y, weir_item *item) {
  bool one = y->kind == WEIR_YAML_SCALAR;
  if (!one && !weir_want_kind(l, y, WEIR_YAML_LIST, "after")) return false;
  uint32_t count = one ? 1 : y->count;
  item->after = weir_arena_array(&l->work, count, sizeof *item->after);
  if (item->after == NULL) return weir_report_memory(l);
  for (uint32_t i = 0; i < count; i++) {
    const weir_yaml *name = one ? y : y->items[i];
    weir_expr *expr = &item->after[i];
    if (!weir_expr_parse(l, name, expr)) return false;
    if (expr->nodes[expr->count - 1].kind != WEIR_AST_NAME)
      return weir_report(l, WEIR_W1010, &name->mark,
                         "after takes names of nodes");
    if (!weir_expr_bind(l, m, block, expr, WEIR_MODE_VALUE)) return false;
    item->after_count++;
  }
  return true;
}

/* ---- Names */

static bool plain_name(weir_loader *l, weir_sv text, const weir_mark *mark,
                       weir_item_name *out) {
  *out = (weir_item_name){.name = text, .mark = *mark};
  if (weir_is_name(text)) return true;
  if (text.size > 256)
    return weir_report(l, WEIR_W1106, mark, "names have at most 256 bytes");
  return weir_report(l, WEIR_W1106, mark, "'%.*s' is not a name",
                     WEIR_SV(text));
}

weir_yaml *weir_scalar_part(weir_loader *l, const weir_yaml *y, size_t from,
                            size_t size) {
  weir_yaml *part = weir_arena_alloc(&l->work, sizeof *part);
  if (part == NULL) {
    (void)weir_report_memory(l);
    return NULL;
  }
  *part = *y;
  part->text = (weir_sv){y->text.data + from, size};
  part->mark = weir_yaml_mark_within(y, from, size);
  return part;
}

/* `h[i+1]`: |part| of the key parsed as an expression; NULL: reported. */
static bool indexed_name(weir_loader *l, weir_module *m,
                         const weir_block *block, const weir_yaml *part,
                         weir_item_name *out) {
  if (part == NULL) return false;
  weir_expr *e = weir_arena_array(&l->work, 1, sizeof *e);
  if (e == NULL) return weir_report_memory(l);
  if (!weir_expr_parse(l, part, e)) return false;
  weir_ast *root = &e->nodes[e->count - 1];
  if (root->kind != WEIR_AST_NAME || root->count == 0 ||
      root->field.data != NULL || root->port >= 0)
    return weir_report(l, WEIR_W1106, &part->mark, "'%.*s' is not a name",
                       WEIR_SV(part->text));
  out->mark = part->mark;
  out->name = root->text;
  out->subscripts = e;
  return weir_expr_bind(l, m, block, e, WEIR_MODE_CONST);
}

/* Splits "a, b, c" at commas outside brackets. */
static bool several_names(weir_loader *l, weir_module *m,
                          const weir_block *block, const weir_yaml_entry *e,
                          weir_item *item) {
  weir_yaml key = {.kind = WEIR_YAML_SCALAR,
                   .plain = true,
                   .mark = e->key_mark,
                   .text = e->key};
  uint32_t count = 1, start = 0, size = (uint32_t)e->key.size;
  for (uint32_t i = 0; i < size; i++) count += e->key.data[i] == ',';
  item->names = weir_arena_array(&l->work, count, sizeof *item->names);
  if (item->names == NULL) return weir_report_memory(l);
  for (uint32_t i = 0, depth = 0; i <= size; i++) {
    char c = i < size ? e->key.data[i] : ',';
    if (c == '[') depth++;
    if (c == ']' && depth > 0) depth--;
    if (i < size && (c != ',' || depth > 0)) continue;
    uint32_t from = start, to = i;
    while (from < to && e->key.data[from] == ' ') from++;
    while (to > from && e->key.data[to - 1] == ' ') to--;
    start = i + 1;
    weir_item_name *out = &item->names[item->name_count];
    weir_sv text = {e->key.data + from, to - from};
    weir_mark mark = weir_yaml_mark_within(&key, from, to - from);
    bool indexed = memchr(text.data, '[', text.size) != NULL;
    if (!(indexed
              ? indexed_name(l, m, block,
                             weir_scalar_part(l, &key, from, to - from), out)
              : plain_name(l, text, &mark, out)))
      return false;
    item->name_count++;
  }
  return true;
}

bool weir_item_names(weir_loader *l, weir_module *m, const weir_block *block,
                     const weir_yaml_entry *e, weir_item *item) {
  if (!weir_is_name(e->key)) return several_names(l, m, block, e, item);
  item->names = &item->one; /* nearly always */
  item->one = (weir_item_name){.name = e->key, .mark = e->key_mark};
  item->name_count = 1;
  return true;
}
