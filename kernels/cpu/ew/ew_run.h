/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_KERNELS_CPU_EW_RUN_H_
#define WEIR_KERNELS_CPU_EW_RUN_H_

#include "kernels/cpu/ew/ew.h"

/* Runs an element-wise program, whole or a region at a time. */

/* Looks at data that a step may not like; first in every run. Errors: W5008. */
weir_status weir_ew_check(const weir_ew *ew, const weir_args *args);

/* Computes everything, by weir_parallel_for when it is large. The program's
 * scratch is args->scratch's worker part. */
void weir_ew_run(const weir_ew *ew, const weir_args *args);

/* Rows [r0, r1), columns [c0, c1). |io|: the run's operands. |scratch|:
 * scratch_bytes of the calling thread's own. */
void weir_ew_region(const weir_ew *ew, void *const *io, int64_t r0, int64_t r1,
                    int64_t c0, int64_t c1, char *scratch);

/* The same for elements [at, end) of the space, row by row. */
void weir_ew_range(const weir_ew *ew, void *const *io, int64_t at, int64_t end,
                   char *scratch);

#endif
