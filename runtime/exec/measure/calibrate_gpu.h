/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_CALIBRATE_GPU_H_
#define WEIR_EXEC_CALIBRATE_GPU_H_

#include "placement/place.h"

/* Measures what is of GPUs into a cost file's table. */

/* Places the graph of |request| with every unit on a GPU that may be on one,
 * runs it in this process, and sets an entry for each of these units. Of
 * |request| the graph, the cluster, the shapes and the requests count. Errors:
 * W6004 (a GPU is not there), those of weir_place_graph and weir_calibrate. */
weir_status weir_calibrate_gpu(const weir_env *env,
                               const weir_place_request *request,
                               weir_costs *costs, weir_error *err);

/* Measures copies between the host's pinned memory and the first GPU, and from
 * it to a second one where |two|, from 1 byte to 64 MiB; fits a line to each
 * way and sets the table's. Errors: W6001, W6004, those of the device. */
weir_status weir_calibrate_gpu_links(const weir_env *env, bool two,
                                     weir_costs *costs, weir_error *err);

#endif
