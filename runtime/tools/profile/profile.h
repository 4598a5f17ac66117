/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TOOLS_PROFILE_H_
#define WEIR_TOOLS_PROFILE_H_

#include "runtime/base/strbuf.h"
#include "runtime/exec/measure/peak.h"
#include "runtime/exec/measure/step_profile.h"
#include "runtime/tools/tools.h"

/* A profile as its writers see it. */
struct weir_tools_profile {
  weir_runtime *runtime;
  weir_step_profile *steps;
  /* Filled by weir_tools_profile_finish. */
  bool finished;
  weir_profile_sum sum;
  weir_peak peak;
  weir_cost_sample plain; /* steps without a trace; of none: count 0 */
  uint32_t *order;        /* rows that were run, most time first */
  uint32_t order_count;
  int threads;  /* the most that a row's loops may have */
  bool devices; /* some row was timed by a device's clock */
  int64_t *plain_ns;
  uint32_t plain_count;
};

/* What is said of a row, by all writers alike. */
typedef struct weir_profile_said {
  bool is_work;            /* its operations and bytes are its own */
  double share;            /* of a step */
  double gflops, gb_per_s; /* while it ran */
  double peak;             /* of the machine's; < 0: not known */
  weir_sv kernel, reason;  /* with words where there is no kernel */
} weir_profile_said;

/* Of a profile that is finished. */
weir_profile_said weir_profile_say(const weir_tools_profile *profile,
                                   const weir_profile_row *row);

/* The length of a step: without a trace where that is known. */
int64_t weir_profile_step_ns(const weir_tools_profile *profile);

#endif
