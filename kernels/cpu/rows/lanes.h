/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_LANES_H_
#define KERNELS_CPU_LANES_H_

#include "kernels/cpu/isa/isa.h"
#include "kernels/kernel.h"

/* The plan of kernels on rows: x as |count| rows of |n| elements that lie
 * together, cut into blocks of rows. */
typedef struct weir_row_plan {
  const weir_isa *isa;
  const weir_call *call;
  int64_t count, n;
  int64_t block; /* rows */
} weir_row_plan;

/* Runs |fn| on blocks of rows; plan->block rows each. */
void weir_row_plan_run(const weir_row_plan *plan, const weir_args *args,
                       weir_block_fn fn, void *arg);

/* Row range of a block. */
static inline void weir_row_range(const weir_row_plan *plan, int64_t block,
                                  int64_t *begin, int64_t *end) {
  *begin = block * plan->block;
  *end =
      *begin + plan->block < plan->count ? *begin + plan->block : plan->count;
}

/* Makes a plan the state of a kernel. */
WEIR_MUST_USE weir_status weir_row_plan_prepare(const weir_call *call,
                                                int64_t axis,
                                                int64_t element_cost,
                                                weir_prepared *out,
                                                weir_error *err);

#endif
