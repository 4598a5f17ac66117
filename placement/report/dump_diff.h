/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PLACEMENT_DUMP_DIFF_H_
#define WEIR_PLACEMENT_DUMP_DIFF_H_

#include "placement/report/dump.h"

/* Differences between two plans. */

/* The differences from |a| to |b|, plans for the same nodes on devices that may
 * be other ones: step, copies, peaks (where both have them), moved nodes by
 * reason. |*same|: there are none, and no times of units differ; not where |a|
 * has no peaks, for it is not sound. */
bool weir_place_write_diff(const weir_place_view *a, const weir_place_view *b,
                           const weir_writer *out, bool *same);

#endif
