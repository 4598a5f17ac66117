/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPS_RULES_H_
#define OPS_RULES_H_

#include "ops/shape_ctx.h"

/* What the op files share.
 *
 * A shape rule is usually three lines made of these: read attributes, check
 * ranks and axes, set the outputs. A rank that is not known is no failure: the
 * output's rank is then not known either, and the rule is asked again once it
 * is. A dimension that is a symbol passes every check that some number could
 * pass. All sums and products of sizes are checked. Failures name what was
 * found and what was expected; the place and the op's name come from the
 * context. Nothing here allocates. */

/* ---- Shapes */

/* A shape of which nothing is known. */
weir_shape weir_shape_unknown(void);
/* A known rank-0 shape. */
weir_shape weir_shape_scalar(void);
/* Adds a dimension at the end. False when the rank is 8 already. */
bool weir_shape_push(weir_shape *shape, weir_dim dim);

/* Whether optional input |i| was given. */
bool weir_rule_has(const weir_shape_ctx *ctx, uint32_t i);

/* Output 0 has input 0's shape. */
weir_status weir_rule_unary(weir_shape_ctx *ctx);
/* Output 0 has the shape to which all inputs broadcast, as NumPy does it.
 * Errors: W2011. */
weir_status weir_rule_binary(weir_shape_ctx *ctx);
/* Output 0 has the shape of the attribute `shape`. Errors: W2002, W2003. */
weir_status weir_rule_attr_shape(weir_shape_ctx *ctx);
/* For ops without outputs. */
weir_status weir_rule_none(weir_shape_ctx *ctx);
/* Attributes `axis` (INTS or none: all) and `keepdims`: output 0 is input 0
 * without, or with 1 for, those dimensions. Errors: W2006. */
weir_status weir_rule_reduce(weir_shape_ctx *ctx);
/* The same for a reduction that has no value for zero elements: W2007. */
weir_status weir_rule_reduce_some(weir_shape_ctx *ctx);
/* |*y| is |x| reduced so, for gradients. */
weir_status weir_rule_reduced(weir_shape_ctx *ctx, const weir_shape *x,
                              weir_shape *y);
/* weir_rule_reduce_some along the one `axis` (INT): argmax. */
weir_status weir_rule_arg(weir_shape_ctx *ctx);
/* Output 0 is like input 0, and `axis` (INT) is one of its axes. W2006. */
weir_status weir_rule_along_axis(weir_shape_ctx *ctx);

/* |*out| is what |a| and |b| broadcast to. Errors: W2011 with both shapes. */
weir_status weir_rule_broadcast(weir_shape_ctx *ctx, const weir_shape *a,
                                const weir_shape *b, weir_shape *out);
/* |*out| is the better known of two shapes that must be equal; |a_is| and
 * |b_is| say what they are, for the message. Errors: W2010. */
weir_status weir_rule_same(weir_shape_ctx *ctx, const weir_shape *a,
                           const char *a_is, const weir_shape *b,
                           const char *b_is, weir_shape *out);
/* Fails with W2004 unless input |i|, called |name|, has rank |low| to |high|
 * or an unknown one. */
weir_status weir_rule_rank(weir_shape_ctx *ctx, uint32_t i, const char *name,
                           int low, int high);

/* ---- Attributes */

/* Values of attributes; the kind must be the one said. */
int64_t weir_rule_int(const weir_shape_ctx *ctx, const char *name);
double weir_rule_float(const weir_shape_ctx *ctx, const char *name);
bool weir_rule_bool(const weir_shape_ctx *ctx, const char *name);

/* |*out| is |axis| in [0, rank). Errors: W2006. */
weir_status weir_rule_axis(weir_shape_ctx *ctx, int64_t axis, int rank,
                           int *out);
/* The attribute |name| (INTS) as distinct axes in [0, rank), in the order
 * given; none given: all. |axes| has room for WEIR_MAX_RANK. W2006, W2007. */
weir_status weir_rule_axes(weir_shape_ctx *ctx, const char *name, int rank,
                           int *axes, int *out_count);
/* Fails with W2007 unless the attribute |name| lists numbers (no symbols),
 * |low| to |high| of them. */
weir_status weir_rule_numbers(weir_shape_ctx *ctx, const char *name, int low,
                              int high);
/* The attribute |name| (INTS, symbols allowed) as a shape. W2002, W2003. */
weir_status weir_rule_shape_of_attr(weir_shape_ctx *ctx, const char *name,
                                    weir_shape *out);
/* Fails with W2007 unless the attribute |name| (FLOAT) is finite; if
 * |positive|, it must also be above 0. */
weir_status weir_rule_finite(weir_shape_ctx *ctx, const char *name,
                             bool positive);

/* ---- Values that carry shapes: small integers known before anything runs.
 * They fold, so that reshape(x, ...) of a computed shape can be checked. */

enum { WEIR_FOLD_ELEMENTS = 64 };

/* A tensor on the stack. */
typedef struct weir_small {
  weir_tensor tensor;
  int64_t data[WEIR_FOLD_ELEMENTS];
  int64_t elements;
} weir_small;

/* Makes |small| an integer tensor of that shape, uninitialised. False when the
 * dtype is not i32, i64 or u8, or the shape is not known or too large. */
bool weir_small_init(weir_small *small, weir_dtype dtype,
                     const weir_shape *shape);
/* Input |i|'s value when it is a small known integer tensor, else NULL. */
const weir_tensor *weir_rule_ints(const weir_shape_ctx *ctx, uint32_t i);

/* The value of one element; false: leave the result unknown. */
typedef bool (*weir_fold_fn)(int64_t a, int64_t b, int64_t *out);
/* weir_rule_binary that also folds. */
weir_status weir_rule_binary_fold(weir_shape_ctx *ctx, weir_fold_fn fold);
/* weir_rule_unary that also folds; |b| is 0. */
weir_status weir_rule_unary_fold(weir_shape_ctx *ctx, weir_fold_fn fold);
/* Output 0 has |shape| and input 0's elements in their order. */
weir_status weir_rule_view(weir_shape_ctx *ctx, const weir_shape *shape);

/* ---- Costs. All count operands' bytes; see weir_cost. */

void weir_cost_bytes(const weir_call *call, weir_cost *out);
/* One operation for each element of output 0. */
void weir_cost_unary(const weir_call *call, weir_cost *out);
/* One operation for each element of input 0: reductions. */
void weir_cost_reduce(const weir_call *call, weir_cost *out);
/* About what a polynomial needs: 16 operations for each element. */
void weir_cost_math(const weir_call *call, weir_cost *out);
/* Nothing: views and control. */
void weir_cost_none(const weir_call *call, weir_cost *out);
/* |a| * |b|, at most INT64_MAX. */
int64_t weir_cost_mul(int64_t a, int64_t b);

#endif
