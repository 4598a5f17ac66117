/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_MEMORY_PLAN_H_
#define PLACEMENT_MEMORY_PLAN_H_

#include "runtime/base/alloc.h"
#include "runtime/base/status.h"

/* The memory planner: lifetimes in, offsets into one block of memory out.
 *
 * Time is a position in a program's static order. A buffer is written at
 * |first| and read for the last time at |last|, both included: two buffers
 * that share a moment never share memory, unless one was made in place of the
 * other. A pure function of its input: same lifetimes, same plan.
 *
 * Work that runs side by side does not keep to the static order. A program
 * that runs so asks for the reuses of the plan and adds each as a dependency:
 * all uses of |earlier| come before the first of |later|. As they point
 * forward in time, they make no cycle. */

#define WEIR_MEMORY_NO_BUFFER UINT32_MAX

typedef struct weir_lifetime {
  size_t bytes; /* 0 is allowed and takes no memory */
  uint32_t first, last;
  /* May take over this buffer's memory if that is dead after |first| and large
   * enough; WEIR_MEMORY_NO_BUFFER: no. Smaller index than its own. */
  uint32_t in_place_of;
} weir_lifetime;

typedef struct weir_memory_plan {
  size_t *offsets;    /* one per buffer, in the arena given */
  size_t peak_bytes;  /* size of the block */
  size_t bound_bytes; /* no plan can do with less: the largest live sum */
} weir_memory_plan;

/* The buffers of one plan. */
typedef struct weir_lifetimes {
  const weir_lifetime *items;
  uint32_t count;
} weir_lifetimes;

/* Plans the buffers of |lives|, offsets aligned to |align| (a power of two).
 * Results live in |arena|; |scratch| is used and given back meanwhile. Time: n
 * log n for the first-fit plan; below a thousand buffers a second, quadratic
 * one is made too and the better taken. Errors: W6001; W2001 when the sum of
 * sizes overflows. */
weir_status weir_memory_plan_make(weir_lifetimes lives, size_t align,
                                  weir_arena *arena,
                                  const weir_allocator *scratch,
                                  weir_memory_plan *out_plan, weir_error *err);

#endif
