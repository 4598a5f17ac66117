/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_API_CLUSTER_PART_GPUS_H_
#define WEIR_API_CLUSTER_PART_GPUS_H_

#include "runtime/api/cluster/train_part_internal.h"

/* A worker between graphs computes on its task's GPUs, if the cluster gives it
 * some and the process has them: its step is placed on them and its CPU. Sets
 * |session|'s placing, which is |part|'s, or leaves it; without a GPU the part
 * tells so. Errors: those of weir_placing_create, W6001. */
weir_status weir_part_gpus(weir_train_part *part, weir_session_options *session,
                           weir_error *err);

#endif
