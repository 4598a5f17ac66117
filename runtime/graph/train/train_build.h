/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_TRAIN_BUILD_H_
#define WEIR_GRAPH_TRAIN_BUILD_H_

#include "runtime/graph/pass/pass.h"
#include "runtime/graph/train/train_mode.h"
#include "runtime/graph/train/train_rules.h"

/* The rewrite under way: the graph with gradients is copied, and nodes are
 * added between its own. Failures stick: after one, calls give WEIR_NO_VALUE
 * and the caller returns b->status. */

/* A trained variable. */
typedef struct weir_trained {
  weir_node_id node;
  weir_value_id grad; /* in pass.from */
  weir_node_id ready; /* in pass.from: after this its update may stand */
  uint32_t next;      /* trained variable with the same |ready|; UINT32_MAX */
  double lr_scale;
  bool l2;
} weir_trained;

struct weir_train_graph_build {
  weir_pass pass;
  const weir_train_spec *spec;
  const struct weir_train_rules *rules;
  weir_train_graph *out;
  weir_train_mode mode;
  weir_trained *vars;
  uint32_t var_count;
  uint32_t *heads; /* by node of pass.from: the first variable ready there */
  /* Where added nodes belong. */
  weir_sv device;
  weir_mark mark;
  weir_train_side side;
  uint32_t added; /* for names */
  weir_status status;
  weir_error *err;
  /* Values of the new graph. */
  weir_value_id global_step, step, lr64, norm;
  weir_value_id rows, rows_total; /* of this run; of all of the update */
  weir_value_id
      *means; /* by trained variable: its gradient, clipped by value */
  WEIR_VEC(weir_node_id) targets;
  WEIR_VEC(weir_node_id) accumulate;
  WEIR_VEC(weir_train_var) slots;
  WEIR_VEC(weir_train_mark) marks; /* of added nodes */
};

/* "VAR/adam_m", in the new graph's arena; data NULL: no memory, b fails. */
weir_sv weir_train_name(weir_train_build *b, const char *fmt, ...)
    WEIR_PRINTF(2, 3);
/* Adds op(|in|...); an empty name is replaced by train/OP_N. Attributes as for
 * weir_grad_node. Returns output 0. */
weir_value_id weir_train_add(weir_train_build *b, weir_sv name, const char *op,
                             uint32_t in_count, const weir_value_id *in,
                             const weir_named_attr *attrs);
/* An input of the type of |like|, whose rank is known. */
weir_value_id weir_train_input(weir_train_build *b, weir_sv name,
                               const weir_value *like);
/* An i64 input |name| of the graph, a number as global_step is. */
weir_value_id weir_train_fed_number(weir_train_build *b, weir_sv name);
weir_value_id weir_train_const(weir_train_build *b, weir_sv name,
                               weir_dtype dtype, double value);
/* Unnamed nodes of one and two inputs. */
weir_value_id weir_train_op1(weir_train_build *b, const char *op,
                             weir_value_id x);
weir_value_id weir_train_op2(weir_train_build *b, const char *op,
                             weir_value_id x, weir_value_id y);
weir_value_id weir_train_cast(weir_train_build *b, weir_sv name,
                              weir_value_id x, weir_dtype dtype);
/* A state of |like|'s shape and dtype that begins with |initial| everywhere,
 * or with the value |init| unless that is WEIR_NO_VALUE; entered as a slot of
 * variable |of| (UINT32_MAX: of none). */
weir_value_id weir_train_state(weir_train_build *b, weir_sv name,
                               weir_value_id like, weir_value_id init,
                               double initial, weir_node_id of);
/* assign(ref, value), as a target. */
void weir_train_assign(weir_train_build *b, weir_sv name, weir_value_id ref,
                       weir_value_id value);
weir_value_id weir_train_fail(weir_train_build *b, weir_status status);
/* Of the new graph. */
const weir_value *weir_train_value(const weir_train_build *b,
                                   weir_value_id value);
weir_dtype weir_train_dtype(const weir_train_build *b, weir_value_id value);

#endif
