/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_OPS_COST_H_
#define WEIR_OPS_COST_H_

#include "ops/op.h"

/* Cost rules that several ops share. All count operands' bytes; see weir_cost.
 */

/* The bytes of all inputs and outputs; no operations. */
void weir_cost_bytes(const weir_call *call, weir_cost *out);

/* One operation for each element of output 0. */
void weir_cost_unary(const weir_call *call, weir_cost *out);

/* One operation for each element of input 0: reductions. */
void weir_cost_reduce(const weir_call *call, weir_cost *out);

/* 16 operations for each element, about those of a polynomial. */
void weir_cost_math(const weir_call *call, weir_cost *out);

/* Nothing: views and control. */
void weir_cost_none(const weir_call *call, weir_cost *out);

/* |a| * |b|, at most INT64_MAX. */
int64_t weir_cost_mul(int64_t a, int64_t b);

#endif
