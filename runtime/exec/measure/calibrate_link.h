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

#endif
