/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_TUNE_TRIAL_H_
#define KERNELS_TUNE_TRIAL_H_

#include "kernels/kernel.h"
#include "runtime/base/env.h"

/* Kernels of the host that accept one call, or one group, against each other:
 * on one thread, in turns, with random floats, and zeros for all else. */

enum { WEIR_TRIAL_KERNELS = 8 };

typedef struct weir_trial_kernel {
  const weir_kernel_def *kernel;      /* of |call|, or */
  const weir_group_kernel_def *group; /* of |group| */
  int64_t ns; /* out: the quickest run; INT64_MAX: it failed on such values */
} weir_trial_kernel;

typedef struct weir_trial {
  const weir_call *call; /* or NULL, and */
  const weir_group *group;
  weir_trial_kernel kernels[WEIR_TRIAL_KERNELS];
  int count; /* the one that is chosen without a trial first */
} weir_trial;

/* Fills in the times and gives the winner: the first one, unless another is 5 %
 * quicker, since noise must not change bits. Some 50 ms, more for work that
 * takes longer. Errors: W6001. */
weir_status weir_trial_run(const weir_env *env, weir_trial *trial,
                           int *out_winner, weir_error *err);

#endif
