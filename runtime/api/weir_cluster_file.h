/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_API_WEIR_CLUSTER_FILE_H_
#define WEIR_API_WEIR_CLUSTER_FILE_H_

#include "runtime/api/weir_plan.h"

/* Where the call's cluster is the name of a file, x.yaml: reads it into
 * |call->arena|, for |call->request|. Errors: those of reading a file and of
 * YAML, W3020. */
weir_status weir_plan_cluster_read(plan_call *call, weir_runtime *runtime,
                                   weir_error *err);

#endif
