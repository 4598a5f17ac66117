/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_CALIBRATE_LINK_H_
#define WEIR_EXEC_CALIBRATE_LINK_H_

#include "placement/lower/cost_file.h"
#include "runtime/base/env.h"

/* Measures the link between devices of one process. */

/* Measures the time of a copy between two devices of one process, from 1 byte
 * to 64 MiB, fits a line to it and sets the table's link; a second or two.
 * Errors: as for compiling and running, W6001. */
weir_status weir_calibrate_link(const weir_env *env, weir_costs *costs,
                                weir_error *err);

/* ---- Lines through times of copies, of any link */

enum { WEIR_LINK_SIZES = 14 };

/* Size |i| of a sweep: 1, 4, 16 ... 64 Mi bytes. */
int64_t weir_link_size(int i);

/* How often size |i| is timed, of |most|: copies of 16 MiB and more are steady,
 * and took nine tenths of a sweep. */
int weir_link_runs(int i, int most);

/* The line through |ns|, the time of each size, and through |send|, the part of
 * it in which the sender is busy (NULL: it never is), all at least 1; each is
 * the median of its runs, |most| of a small size. */
weir_cost_piece weir_link_fit(const int64_t *ns, const int64_t *send, int most);

#endif
