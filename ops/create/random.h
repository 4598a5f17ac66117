/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPS_RANDOM_H_
#define OPS_RANDOM_H_

#include "ops/cost.h"
#include "ops/rules.h"

/* The common part of ops that make tensors, most of them of random numbers: the
 * attributes and words that stand in each of their manuals. */

/* Attributes of an op that makes a tensor. */
#define WEIR_CREATE_ATTRS                                   \
  {"shape", WEIR_ATTR_INTS, NULL, "shape of the result"}, { \
    "dtype", WEIR_ATTR_DTYPE, "f32", "dtype of the result"  \
  }
#define WEIR_CREATE_REFUSES "negative dimensions", "more than 8 dimensions"

/* The same of one that makes random numbers. */
#define WEIR_RANDOM_ATTRS                                             \
  WEIR_CREATE_ATTRS, {                                                \
    "seed", WEIR_ATTR_INT, "0", "added to the seed of graph and node" \
  }
/* All fields of zeros and ones but name and words. */
#define WEIR_CREATE_FIELDS                                            \
  .outputs = {{"y", "T"}}, .types = {{"T", WEIR_ALL_TYPES, "dtype"}}, \
  .attrs = {WEIR_CREATE_ATTRS}, .refuses = {WEIR_CREATE_REFUSES},     \
  .shape = weir_rule_attr_shape, .cost = weir_cost_bytes
#define WEIR_RANDOM_REFUSES WEIR_CREATE_REFUSES, "integer dtypes"
#define WEIR_RANDOM_DOC                                                 \
  "The numbers depend on the seeds of graph and node and on the step, " \
  "not on threads or devices."
#define WEIR_RANDOM_SOURCE "Philox: Salmon et al., SC11 (2011), article 16"

/* Of initial weights, whose spread follows from the numbers of inputs and
 * outputs. */
#define WEIR_FAN_DOC                                                   \
  WEIR_RANDOM_DOC                                                      \
  " Fans: [in, out] of a matrix; i kh kw and o kh kw of a filter [o, " \
  "i, kh, kw]."

/* Shape rule of normal and truncated_normal: the attribute `shape`; mean and
 * stddev must be finite and stddev not below 0. W2007. */
weir_status weir_rule_normal(weir_shape_ctx *ctx);

/* Ports, attributes and rules of initial weights: all but how they spread. */
#define WEIR_FAN_FIELDS                                                 \
  .doc = WEIR_FAN_DOC, .outputs = {{"y", "T"}},                         \
  .types = {{"T", WEIR_FLOATS, "dtype"}}, .attrs = {WEIR_RANDOM_ATTRS}, \
  .refuses = {WEIR_RANDOM_REFUSES}, .flags = WEIR_OP_RANDOM,            \
  .shape = weir_rule_attr_shape, .cost = weir_cost_math

/* The same of normal and truncated_normal; |stddev_doc| describes
 * stddev. */
#define WEIR_NORMAL_FIELDS(stddev_doc)                                         \
  .doc = WEIR_RANDOM_DOC                                                       \
      " In f32 none is further than 5.77 stddev from the mean: they are made " \
      "of 24 random bits.",                                                    \
  .source = WEIR_RANDOM_SOURCE, .outputs = {{"y", "T"}},                       \
  .types = {{"T", WEIR_FLOATS, "dtype"}},                                      \
  .attrs = {{"mean", WEIR_ATTR_FLOAT, "0.0", "mean"},                          \
            {"stddev", WEIR_ATTR_FLOAT, "1.0", stddev_doc},                    \
            WEIR_RANDOM_ATTRS},                                                \
  .refuses = {"a negative stddev", "numbers that are not finite",              \
              WEIR_RANDOM_REFUSES},                                            \
  .flags = WEIR_OP_RANDOM, .shape = weir_rule_normal, .cost = weir_cost_math

#endif
