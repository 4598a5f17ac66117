/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPS_REGISTRY_H_
#define OPS_REGISTRY_H_

#include "ops/op.h"

/* Where ops and kernels are found: the generated tables, or a host program's
 * registry chained before them. Immutable once a graph was loaded with it. */
struct weir_kernel_def;
struct weir_group_kernel_def;

typedef struct weir_registry {
  const weir_op_def *const *ops;
  size_t op_count;
  const struct weir_kernel_def *const *kernels; /* in order of preference */
  size_t kernel_count;
  const struct weir_group_kernel_def *const *group_kernels;
  size_t group_kernel_count;
  const struct weir_registry *next; /* asked when this one does not know */
  /* Counts its users, each graph among them, on any thread; both NULL: static,
   * or lent for longer than any of them. */
  void (*hold)(const struct weir_registry *registry);
  void (*drop)(const struct weir_registry *registry);
} weir_registry;

/* The generated op table (ops/meson.build), without kernels. */
extern const weir_op_def *const weir_builtin_ops[];
extern const size_t weir_builtin_op_count;

/* The op of that name or alias, or NULL. Linear; loaders keep a map. */
const weir_op_def *weir_registry_find_op(const weir_registry *registry,
                                         weir_sv name);
/* Number of all ops, and the i-th, in table order, the chain's after. */
size_t weir_registry_op_count(const weir_registry *registry);
const weir_op_def *weir_registry_op_at(const weir_registry *registry, size_t i);

/* Number of listed ports and attributes. */
uint32_t weir_op_input_count(const weir_op_def *op);
uint32_t weir_op_output_count(const weir_op_def *op);
uint32_t weir_op_attr_count(const weir_op_def *op);
/* Index of the attribute called |name|, or -1. */
int weir_op_attr_index(const weir_op_def *op, weir_sv name);

#endif
