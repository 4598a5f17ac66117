/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/parse/outputs.h"

#include <assert.h>

#include "runtime/graph/load/keys.h"
#include "runtime/graph/load/loader.h"
#include "runtime/graph/load/report.h"
#include "runtime/graph/parse/items.h"
#include "runtime/graph/parse/lex.h"

/* Outputs of the graph: a list of names, or a map name: expression. Each is a
 * hidden item at the end of the main body. */

uint32_t weir_outputs_count(const weir_yaml *outputs) {
  return outputs == NULL || outputs->kind == WEIR_YAML_SCALAR ? 0
                                                              : outputs->count;
}

/* |item| has its name already. */
static bool parse_output(weir_loader *l, weir_module *m, const weir_yaml *y,
                         bool list, weir_item *item) {
  const weir_item_name *named = &item->names[0];
  if (!weir_want_kind(l, y, WEIR_YAML_SCALAR, "an output")) return false;
  if (!list && !weir_is_name(named->name))
    return weir_report(l, WEIR_W1106, &named->mark, "'%.*s' is not a name",
                       WEIR_SV(named->name));
  if (!weir_item_call(l, m, NULL, y, item)) return false;
  const weir_ast *root = &item->expr.nodes[item->expr.count - 1];
  if (!list || root->kind == WEIR_AST_NAME) return true;
  weir_report_begin(l, WEIR_W1010, &y->mark,
                    "a list of outputs takes names only");
  if (root->kind == WEIR_AST_BINARY && weir_ast_is_path(root))
    weir_hint(
        &l->diag.error,
        "names with / are weir's own: `weir run -o %.*s=@FILE` fetches such a "
        "node",
        WEIR_SV(y->text));
  else
    weir_hint(&l->diag.error, "give it a name: {result: %.*s}",
              WEIR_SV(y->text));
  return weir_report_send(l);
}

bool weir_outputs_parse(weir_loader *l, weir_module *m, const weir_yaml *y,
                        weir_body *body) {
  if (y->kind == WEIR_YAML_SCALAR)
    return weir_want_kind(l, y, WEIR_YAML_LIST, "outputs");
  for (uint32_t i = 0; i < y->count && weir_loader_going(l); i++) {
    bool list = y->kind == WEIR_YAML_LIST;
    const weir_yaml *value = list ? y->items[i] : y->entries[i].value;
    assert(body->count < body->capacity);
    weir_item *item = &body->items[body->count++];
    *item = (weir_item){
        .kind = WEIR_ITEM_CALL, .mark = &value->mark, .hidden = true};
    item->names = &item->one;
    weir_sv name = list && value->kind == WEIR_YAML_SCALAR ? value->text
                   : list                                  ? (weir_sv){"", 0}
                                                           : y->entries[i].key;
    const weir_mark *mark = list ? &value->mark : &y->entries[i].key_mark;
    item->names[0] = (weir_item_name){.name = name, .mark = *mark};
    item->name_count = 1;
    if (!parse_output(l, m, value, list, item)) item->kind = WEIR_ITEM_BROKEN;
  }
  l->output_count = weir_outputs_count(y);
  return weir_loader_going(l);
}

bool weir_outputs_add(weir_loader *l, weir_scope *main) {
  weir_error err = WEIR_ERROR_INIT;
  uint32_t first = main->body->count - l->output_count;
  for (uint32_t i = 0; i < l->output_count; i++) {
    const weir_def *def = &main->defs.items[first + i];
    const weir_result *r = &def->result;
    if (def->state != WEIR_DEF_DONE) continue;
    if (r->count == 0) {
      weir_report(l, WEIR_W1107, def->item->mark, "%.*s has no result",
                  WEIR_SV(def->name));
      continue;
    }
    weir_graph_port port = {.name = def->name,
                            .value = r->list != NULL ? r->list[0] : r->first,
                            .mark = *def->item->mark};
    if (weir_graph_builder_add_output(l->builder, &port, &err) != WEIR_OK)
      return weir_report_memory(l);
  }
  return weir_loader_going(l);
}
