/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/eval/infix.h"

#include "runtime/graph/eval/lookup.h"
#include "runtime/graph/load/report.h"
#include "runtime/graph/parse/operators.h"

/* Operators on values.
 *
 * `a * b` is the call mul(a, b) when one of a and b is a value, and a number
 * when both are: `2 * n` of a param is one. Names decide, and what a name means
 * is known only where the expression is evaluated: a block's attribute in one
 * place is a node's name in another. So binding prepares both meanings, and the
 * walk over the postorder chooses for each operation once its operands are
 * known. An operation that is a number has no result here; the one around it
 * evaluates it as a constant, with all that is below. Cost: each operation
 * once, and each number of a chain once, since a number ends the walk upwards.
 */

bool weir_is_operation(const weir_ast *n, const weir_result *results,
                       uint32_t node) {
  return n->kind != WEIR_AST_CALL && n->named && results != NULL &&
         results[node].count > 0;
}

static bool is_value(weir_loader *l, weir_scope *scope, weir_def *def,
                     uint32_t node, const weir_result *results, bool *out) {
  const weir_expr *expr = &def->item->expr;
  const weir_ast *n = &expr->nodes[node];
  weir_lookup found;
  *out = n->kind == WEIR_AST_CALL ? !n->constant
                                  : weir_is_operation(n, results, node);
  if (n->kind != WEIR_AST_NAME || weir_sv_is(n->text, "true") ||
      weir_sv_is(n->text, "false"))
    return true;
  if (!weir_operand_lookup(l, scope, def->loop, expr, node, &found))
    return false;
  *out = found.kind != WEIR_FOUND_CONST;
  return true;
}

/* An operation on values whose operator is no op. */
static bool refuse(weir_loader *l, const weir_ast *n) {
  weir_mark at = weir_ast_mark(n);
  if (n->op != WEIR_FLOOR_DIV)
    return weir_report(l, WEIR_W1102, &at, "unknown op '%.*s'",
                       WEIR_SV(n->text));
  weir_report_begin(l, WEIR_W1113, &at,
                    "// divides numbers known while loading, not values of "
                    "the graph");
  weir_hint(&l->diag.error,
            "write floor(x / y); x / y of integers rounds to 0");
  return weir_report_send(l);
}

bool weir_operation_is_value(weir_loader *l, weir_scope *scope, weir_def *def,
                             uint32_t node, const weir_result *results,
                             bool *out) {
  const weir_expr *expr = &def->item->expr;
  const weir_ast *n = &expr->nodes[node];
  *out = false;
  for (uint32_t i = 0, a = n->first; i < n->count; i++) {
    bool value = false;
    if (!is_value(l, scope, def, a, results, &value)) return false;
    *out = *out || value;
    a = expr->nodes[a].next;
  }
  return !*out || n->op_info != NULL || refuse(l, n);
}
