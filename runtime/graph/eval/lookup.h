/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_LOOKUP_H_
#define WEIR_GRAPH_LOOKUP_H_

#include "runtime/graph/load/loader.h"

/* The meaning of a name where it is used. */

typedef enum weir_found {
  WEIR_FOUND_NOTHING,
  WEIR_FOUND_DEF,
  WEIR_FOUND_RESULT, /* a block's input */
  WEIR_FOUND_CONST
} weir_found;

typedef struct weir_lookup {
  weir_found kind;
  weir_def *def;
  weir_scope *scope; /* of |def| */
  uint32_t port;     /* of the results; UINT32_MAX: the name does not say */
  const weir_result *result;
  weir_const value;
} weir_lookup;

/* The meaning of a name in |scope|, seen from round |loop|. |subs| are the
 * values of its subscripts. */
void weir_scope_lookup(const weir_scope *scope, const weir_loop *loop,
                       const weir_ast *name, const weir_const *subs,
                       weir_lookup *out);

/* The same for a name that is an operand: evaluates the subscripts. false: an
 * error was reported. */
bool weir_operand_lookup(weir_loader *l, const weir_scope *scope,
                         const weir_loop *loop, const weir_expr *expr,
                         uint32_t node, weir_lookup *out);

/* W1103 with suggestions; the first part only fills l->diag. */
void weir_report_unknown_begin(weir_loader *l, const weir_scope *scope,
                               const weir_mark *at, weir_sv name);

/* Fills l->diag and sends it. */
bool weir_report_unknown(weir_loader *l, const weir_scope *scope,
                         const weir_mark *at, weir_sv name);

/* Writes "h[1][2]"; the length, or 0 when a subscript is no integer. */
size_t weir_round_text(weir_sv name, const weir_const *subs, uint32_t count,
                       char *text, size_t capacity);

#endif
