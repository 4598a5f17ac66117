/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_LOWER_KERNELS_H_
#define WEIR_PLACEMENT_LOWER_KERNELS_H_

#include "placement/lower/lower.h"

/* Kernels of nodes: whether there is one, and the reason if not. */

/* A node as its kernel sees it; constants have their values. */
typedef struct weir_lower_call {
  weir_call call;
  weir_operand operands[64];
} weir_lower_call;

/* false: a shape is not known. Of very many inputs the first are looked at. */
bool weir_lower_call_make(const weir_graph *graph, weir_node_id node,
                          weir_lower_call *out);

/* Whether some kernel for |node| exists on devices of |kind|. */
bool weir_place_has_kernel(const weir_graph *graph, weir_node_id node,
                           weir_device_kind kind);

enum { WEIR_LOWER_WHY_BYTES = 320 };

/* Writes, for the first of |members| without a kernel on devices of |kind|, its
 * name, op, operands and the kernels' reasons to |text|, of
 * WEIR_LOWER_WHY_BYTES, and returns it; "" where all have one. */
const char *weir_lower_why(const weir_graph *graph, const weir_node_id *members,
                           uint32_t count, weir_device_kind kind, char *text);

/* ---- Units */

/* Devices of the cluster without kernels: how much work that concerns. */

enum { WEIR_LACK_OPS = 512 }; /* that have counts of their own */

/* Units that lack a kernel for an op. */
typedef struct weir_lower_op_count {
  const char *name; /* static */
  uint32_t units;
  uint32_t first; /* of those units */
} weir_lower_op_count;

typedef struct weir_lower_lack {
  weir_device_kind kind;
  uint32_t units, of; /* that lack it, of those that take time */
  uint32_t ops;       /* entries of |by_op| */
  weir_lower_op_count by_op[WEIR_LACK_OPS]; /* most units first, then by name */
} weir_lower_lack;

/* Bits: kinds for which some unit has no kernel. */
uint32_t weir_lower_lacks(const weir_placement *placement);
/* The units that have no kernel on devices of |kind|, by op. */
void weir_lower_lack_count(const weir_placement *placement,
                           weir_device_kind kind, weir_lower_lack *out);
/* Why |unit| has no kernel on devices of |kind| (lower_kernels.h), in |text| of
 * WEIR_LOWER_WHY_BYTES, which is returned; "" where it has one. */
const char *weir_lower_lack_why(const weir_placement *placement, uint32_t unit,
                                weir_device_kind kind, char *text);
/* Units that are not on a device that their rule prefers, for lack of kernels.
 */
uint32_t weir_lower_fallen_back(const weir_placement *placement);
/* Whether some unit that takes time has kernels on devices of |kind|. */
bool weir_lower_has_use(const weir_placement *placement, weir_device_kind kind);

#endif
