/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PS_JOB_WATCH_H_
#define WEIR_TRAIN_PS_JOB_WATCH_H_

#include "runtime/train/ps/job.h"

/* Lists the numbers of runs, and finds who knows the nodes of `summary:`, in
 * job->split. Errors: W5023 (no such node), W1122 (a histogram of a node that
 * servers compute, a scalar that nobody does), W6001. */
weir_status weir_ps_job_watch(weir_ps_job *job, weir_error *err);

#endif
