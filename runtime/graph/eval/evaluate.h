/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_EVALUATE_H_
#define WEIR_GRAPH_EVALUATE_H_

#include "runtime/graph/parse/forms.h"

/* Evaluation: definitions in the order of their dependencies, by a stack of
 * frames (evaluate.c). A definition's frame first sees that all definitions it
 * names are done, then adds its calls, inner ones first; a call of a block, and
 * each part of a form, puts a scope on the stack and goes on when that is done.
 */

typedef struct weir_form_state weir_form_state;

typedef struct weir_eval_frame {
  weir_scope *scope;
  weir_def *def;          /* NULL: all definitions of the scope */
  uint32_t at;            /* definition, or node of the expression */
  bool named;             /* all names are done */
  bool failed;            /* something it needs has failed */
  uint32_t after;         /* control predecessors seen */
  weir_result *results;   /* of nested calls, by node */
  weir_scope *inner;      /* the block just evaluated for node |at| */
  weir_form_state *state; /* of a form */
} weir_eval_frame;

typedef struct weir_evaluation {
  weir_loader *l;
  WEIR_VEC(weir_eval_frame) frames;
} weir_evaluation;

/* A frame more. Frames move: pointers to them are good until then. */
bool weir_eval_push(weir_evaluation *e, weir_scope *scope, weir_def *def);
/* The same for all names of an expression from f->at on. */
bool weir_eval_need_expr(weir_evaluation *e, weir_eval_frame *f,
                         const weir_expr *expr);
/* The only or first value of |def| in the present level; false: it failed. */
bool weir_result_value(weir_loader *l, const weir_def *def, weir_value_id *out);

/* Evaluates all definitions of |main|. */
bool weir_evaluate(weir_loader *l, weir_scope *main);

#endif
