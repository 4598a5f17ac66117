/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_OPS_NULL_CTX_H_
#define TESTS_OPS_NULL_CTX_H_

#include "ops/grad_ctx.h"
#include "ops/shape_ctx.h"

/* The least that implements the two contexts of ops: arrays, no graph. Copy
 * this to ask an op's rules from somewhere else. */

enum { NULL_CTX_PORTS = 8, NULL_CTX_NODES = 32 };

/* A call for a shape rule. The caller fills in |in_*| and base's op, attrs and
 * counts; null_shape_run asks the rule; |out_*| and |err| hold the answer. */
typedef struct null_shape {
  weir_shape_ctx base; /* first */
  weir_dtype in_dtypes[NULL_CTX_PORTS], out_dtypes[NULL_CTX_PORTS];
  weir_shape in_shapes[NULL_CTX_PORTS], out_shapes[NULL_CTX_PORTS];
  uint32_t symbols; /* given out for dimensions nobody knows */
  char text[256];   /* of the last weir_shape_text */
  weir_error err;
} null_shape;

weir_status null_shape_run(null_shape *call);

/* A call for a gradient rule. Values are numbered: the inputs from 0, then the
 * outputs, then the outputs' gradients, then those that the rule adds. All have
 * one type, |dtype| and |shape|. |nodes| lists the added nodes, in order. */
typedef struct null_grad {
  weir_grad_ctx base; /* first */
  weir_ref in[NULL_CTX_PORTS];
  uint32_t out_count;
  weir_dtype dtype;
  weir_shape shape;
  weir_ref next;                /* number of the next value */
  weir_ref dys[NULL_CTX_PORTS]; /* by input: the gradient, WEIR_NO_VALUE */
  uint32_t node_count;
  char nodes[NULL_CTX_NODES][64]; /* "4 = mul(3, 1)" */
  weir_status status;             /* the first failure; sticks */
  weir_error err;
} null_grad;

/* Asks |op|'s gradient rule of a call with |in_count| inputs. */
weir_status null_grad_run(null_grad *call, const weir_op_def *op,
                          uint32_t in_count, uint32_t out_count);

#endif
