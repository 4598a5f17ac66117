/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TOOLS_PLAN_H_
#define WEIR_TOOLS_PLAN_H_

#include "placement/place.h"
#include "runtime/api/weir_internal.h"
#include "runtime/exec/measure/measure.h"
#include "runtime/tools/weir_tools.h"

/* What stands behind the plans of the tools. */

struct weir_tools_plan {
  weir_runtime *runtime;
  weir_plan *plan;
};

#endif
