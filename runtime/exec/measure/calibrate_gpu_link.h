/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_CALIBRATE_GPU_LINK_H_
#define WEIR_EXEC_CALIBRATE_GPU_LINK_H_

#include "placement/lower/cost_file.h"
#include "runtime/base/env.h"

/* Measures the links of GPUs. */

/* Measures copies between the host's pinned memory and the first GPU, and from
 * it to a second one where |two|, from 1 byte to 64 MiB; fits a line to each
 * way and sets the table's. Errors: W6001, W6004, those of the device. */
weir_status weir_calibrate_gpu_links(const weir_env *env, bool two,
                                     weir_costs *costs, weir_error *err);

#endif
