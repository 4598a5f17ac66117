/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/parse/updates.h"

#include <assert.h>

#include "runtime/graph/load/keys.h"
#include "runtime/graph/load/report.h"
#include "runtime/graph/parse/bind.h"
#include "runtime/graph/parse/items.h"
#include "runtime/graph/parse/lex.h"
#include "runtime/graph/parse/parse_call.h"

/* `update: {h0: run.h}` is the assignment assign(h0, run.h), which belongs to
 * every run that reads h0. */

uint32_t weir_updates_count(const weir_yaml *updates) {
  return updates != NULL && updates->kind == WEIR_YAML_MAP ? updates->count : 0;
}

/* The name and the value, as the operands of a call. */
static bool call_of(weir_loader *l, const weir_yaml_entry *e, weir_expr *out) {
  weir_ast_vec *nodes = weir_parser_nodes(l->parser);
  weir_yaml *key = weir_arena_alloc(&l->work, sizeof *key);
  uint32_t offset = 0, roots[2];
  weir_parse_error error;
  if (key == NULL) return weir_report_memory(l);
  *key = (weir_yaml){.kind = WEIR_YAML_SCALAR,
                     .plain = true,
                     .mark = e->key_mark,
                     .text = e->key};
  nodes->count = 0;
  weir_parse_result r = weir_parse_expr(l->parser, key, &offset, &error);
  if (r != WEIR_PARSE_OK) return weir_parse_failed(l, key, r, &error);
  roots[0] = (uint32_t)nodes->count - 1;
  offset = 0;
  r = weir_parse_expr(l->parser, e->value, &offset, &error);
  if (r != WEIR_PARSE_OK) return weir_parse_failed(l, e->value, r, &error);
  if (offset < e->value->text.size)
    return weir_refuse_rest(l, e->value, offset);
  roots[1] = (uint32_t)nodes->count - 1;
  weir_ast call = {.kind = WEIR_AST_CALL,
                   .text = WEIR_SV_LIT("assign"),
                   .src = key,
                   .size = (uint32_t)e->key.size};
  return (weir_parser_emit(l->parser, &call, roots, 2) &&
          weir_parser_take(l->parser, &l->work, out)) ||
         weir_report_memory(l);
}

static bool parse_update(weir_loader *l, weir_module *m,
                         const weir_block *block, const weir_yaml_entry *e,
                         weir_item *item) {
  *item = (weir_item){.kind = WEIR_ITEM_CALL,
                      .mark = &e->key_mark,
                      .hidden = true,
                      .update = true,
                      .name_count = 1};
  item->names = &item->one;
  item->one = (weir_item_name){.name = e->key, .mark = e->key_mark};
  if (!weir_is_name(e->key))
    return weir_report(l, WEIR_W1106, &e->key_mark, "'%.*s' is not a name",
                       WEIR_SV(e->key));
  return weir_want_kind(l, e->value, WEIR_YAML_SCALAR, "an update") &&
         call_of(l, e, &item->expr) &&
         weir_expr_bind(l, m, block, &item->expr, WEIR_MODE_VALUE);
}

bool weir_updates_parse(weir_loader *l, weir_module *m, const weir_block *block,
                        const weir_yaml *updates, weir_body *body) {
  if (updates == NULL) return true;
  if (!weir_want_kind(l, updates, WEIR_YAML_MAP, "update")) return false;
  bool ok = true;
  for (uint32_t i = 0; i < updates->count && weir_loader_going(l); i++) {
    assert(body->count < body->capacity);
    weir_item *item = &body->items[body->count++];
    if (parse_update(l, m, block, &updates->entries[i], item)) continue;
    item->kind = WEIR_ITEM_BROKEN;
    ok = false;
  }
  return ok;
}
