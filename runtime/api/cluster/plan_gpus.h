/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_API_PLAN_GPUS_H_
#define WEIR_API_PLAN_GPUS_H_

#include "runtime/api/weir_plan.h"

/* The GPUs that this process has, for plans. */

/* Sets |call->request.machine| where "auto" decides the cluster and there are
 * GPUs. Opens CUDA's library, if it is there, but begins no work on a GPU. */
void weir_plan_gpus_auto(plan_call *call);

/* weir_placing_options.absent; |self|: the plan_call. Of a plan for this
 * process: with no GPU the cluster's are absent, with a warning, or it is an
 * error where no request may be dropped. That a task has more GPUs than this
 * process is an error always. Errors: W6004. */
weir_status weir_plan_gpus_absent(void *self, const weir_cluster *cluster,
                                  uint32_t *out_kinds, weir_error *err);

#endif
