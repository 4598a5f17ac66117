/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_LOWER_LACKS_H_
#define WEIR_PLACEMENT_LOWER_LACKS_H_

#include "placement/lower/lower.h"

/* Devices of the cluster without kernels: how much work that concerns. */

enum { WEIR_LACK_OPS = 512 }; /* that have counts of their own */

/* Units that lack a kernel for an op. */
typedef struct weir_lower_op_count {
  const char *name; /* static */
  uint32_t units;
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
/* Units that are not on a device that their rule prefers, for lack of kernels.
 */
uint32_t weir_lower_fallen_back(const weir_placement *placement);
/* Whether some unit that takes time has kernels on devices of |kind|. */
bool weir_lower_has_use(const weir_placement *placement, weir_device_kind kind);

#endif
