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

#endif
