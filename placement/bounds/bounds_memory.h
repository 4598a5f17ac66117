/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_BOUNDS_MEMORY_H_
#define WEIR_PLACEMENT_BOUNDS_MEMORY_H_

#include "placement/solve/load.h"

/* Proofs that no plan keeps the memory caps. Resident bytes are there at every
 * moment, whatever the order and however tensors are sent about. */

typedef enum weir_memory_proof {
  WEIR_MEMORY_OPEN,  /* nothing is proved */
  WEIR_MEMORY_ITEM,  /* a group's resident bytes pass the cap of each device */
  WEIR_MEMORY_SUM,   /* the bytes of all that only some devices may have pass
                        the sum of their caps */
  WEIR_MEMORY_HALVES /* so many take more than half of a cap each that two would
                        have to share a device */
} weir_memory_proof;

typedef struct weir_memory_lack {
  weir_memory_proof proof;
  uint32_t node;        /* of ITEM: its first */
  int64_t bytes;        /* of ITEM and SUM: wanted; saturates */
  int64_t cap_bytes;    /* of ITEM and SUM: there */
  uint32_t count, room; /* of HALVES: items, devices */
} weir_memory_lack;

/* Looks for a proof. Errors: W6001. */
weir_status weir_memory_prove(const weir_allocator *alloc,
                              const weir_place_problem *problem,
                              weir_memory_lack *out, weir_error *err);

#endif
