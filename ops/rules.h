/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPS_RULES_H_
#define OPS_RULES_H_

#include "ops/shape_ctx.h"

/* The common rules of op files.
 *
 * A shape rule is usually three lines made of these: read attributes, check
 * ranks and axes, set the outputs. A rank that is not known is no failure: the
 * output's rank is then not known either, and the rule is asked again once it
 * is. A dimension that is a symbol passes every check that some number could
 * pass. All sums and products of sizes are checked. Failures name the found
 * and the expected; the place and the op's name come from the
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

/* Ports, types, refusals and shape rule of an op on floats that gives a number
 * for each, element by element. */
#define WEIR_FLOAT_UNARY_FIELDS                                   \
  .inputs = {{"x", "T"}}, .outputs = {{"y", "T"}},                \
  .types = {{"T", WEIR_FLOATS}}, .refuses = {"integers", "bool"}, \
  .flags = WEIR_OP_ELEMENTWISE, .shape = weir_rule_unary

/* |*out| is the broadcast of |a| and |b|. Errors: W2011 with both shapes. */
weir_status weir_rule_broadcast(weir_shape_ctx *ctx, const weir_shape *a,
                                const weir_shape *b, weir_shape *out);
/* |*out| is the better known of two shapes that must be equal; |a_is| and
 * |b_is| describe them in the message. Errors: W2010. */
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

/* The value of one element; false: leave the result unknown. */
typedef bool (*weir_fold_fn)(int64_t a, int64_t b, int64_t *out);

#endif
