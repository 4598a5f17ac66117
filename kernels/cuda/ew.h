/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CUDA_EW_H_
#define KERNELS_CUDA_EW_H_

#include "kernels/cuda/body.h"

/* Arguments of the bodies of ew.cu. A body has an op's number in its argument
 * and not a body for each op: all threads take the same branch, and one build
 * has all. Grids: any number of blocks in x, 1 in y and z. Pointers are the
 * GPU's; strides are in elements, 0 along a dimension that is repeated. An
 * output may be an operand of the same shape and dtype. */

/* |n| elements of |size| bytes (1, 4, 8), all |value|. */
typedef struct weir_fill_args {
  void *y;
  int64_t n;
  uint64_t value; /* in its lowest bytes */
  int32_t size;
  int32_t wide; /* y is 16-byte aligned, and |value| has copies side by side */
} weir_fill_args;

/* The functions of one f32. p: leaky_relu's and elu's alpha; clip's min and
 * max. */
#define WEIR_UNARY(name) WEIR_UNARY_##name,
typedef enum weir_unary_op {
#include "kernels/cuda/unary.def"
  WEIR_UNARY_COUNT
} weir_unary_op;
#undef WEIR_UNARY

/* unary_f32 and unary_f64: all of them, with |p| or |wide|; unary_i32,
 * unary_i64 and unary_u8: neg, abs, square, sign, relu, and clip between
 * |limits|. */
typedef struct weir_unary_args {
  void *y;
  const void *x;
  int64_t n;
  float p[2];
  double wide[2];    /* p, of f64 */
  int64_t limits[2]; /* clip's, of integers; they are some of the type's */
  int32_t op;        /* weir_unary_op */
  int32_t fours;     /* of f32: both are 16-byte aligned */
} weir_unary_args;

/* Of integers, sums and products wrap; a division by 0 and a negative power
 * give 0, and |refused| has the number of their element. */
typedef enum weir_binary_op {
  WEIR_BINARY_ADD,
  WEIR_BINARY_SUB,
  WEIR_BINARY_MUL,
  WEIR_BINARY_DIV,
  WEIR_BINARY_MIN,
  WEIR_BINARY_MAX,
  WEIR_BINARY_POW,
  /* Of floats: slopes by a function's value, times the second operand. */
  WEIR_BINARY_SIGMOID_GRAD,
  WEIR_BINARY_TANH_GRAD,
  WEIR_BINARY_RELU_GRAD
} weir_binary_op;

/* The result is a byte, 0 or 1. AND, OR and XOR ask whether elements are 0; NOT
 * asks the first operand alone. */
typedef enum weir_compare_op {
  WEIR_COMPARE_EQUAL,
  WEIR_COMPARE_NOT_EQUAL,
  WEIR_COMPARE_LESS,
  WEIR_COMPARE_LESS_EQUAL,
  WEIR_COMPARE_GREATER,
  WEIR_COMPARE_GREATER_EQUAL,
  WEIR_COMPARE_AND,
  WEIR_COMPARE_OR,
  WEIR_COMPARE_XOR,
  WEIR_COMPARE_NOT
} weir_compare_op;

/* y, |n| elements that lie together, of |rank| dimensions. Rank 0: one stride
 * counts for all elements, strides[.][0].
 * With |fours| elements are done four at a time: the last dimension, or all at
 * rank 0 and 1, counts fours; its stride is 4, or 0 for an operand in
 * |repeated| (bit k: operand k), of which all four are one element. Other
 * strides of the others are multiples of 4, and y and they are aligned to four
 * elements or to 16 bytes. Only at rank 0 and 1 may a rest be left. Not for
 * powers. */
typedef struct weir_binary_args {
  void *y;
  const void *in[2];
  /* NULL, or the number of the first refused element, if that is less than
   * what stands there. */
  unsigned long long *refused;
  int64_t n;
  int64_t dims[WEIR_BODY_RANK], strides[2][WEIR_BODY_RANK];
  int32_t rank, op, fours;
  uint32_t repeated;
} weir_binary_args;

/* in[0], bytes of which 0 is no, chooses in[1], else in[2]. */
typedef struct weir_where_args {
  void *y;
  const void *in[3];
  int64_t n;
  int64_t dims[WEIR_BODY_RANK], strides[3][WEIR_BODY_RANK];
  int32_t rank, fours; /* as above */
  uint32_t repeated;
} weir_where_args;

/* Makes |*refused|, if it is less than |most|, the run's fault, unless there is
 * one. One block. */
typedef struct weir_tell_args {
  weir_body_block *block;
  const unsigned long long *refused;
  uint64_t instr; /* number of the instruction + 1 */
  int64_t most;
} weir_tell_args;

typedef enum weir_cast_type {
  WEIR_CAST_F32,
  WEIR_CAST_F64,
  WEIR_CAST_I32,
  WEIR_CAST_I64,
  WEIR_CAST_U8,
  WEIR_CAST_BOOL
} weir_cast_type;

/* Floats go to integers toward zero, clamped at the ends, NaN to 0; integers
 * to narrower ones clamped; all to bool by != 0. */
typedef struct weir_cast_args {
  void *y;
  const void *x;
  int64_t n;
  int32_t from, to; /* weir_cast_type */
} weir_cast_args;

#endif
