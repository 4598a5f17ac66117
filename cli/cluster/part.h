/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CLUSTER_PART_H_
#define CLI_CLUSTER_PART_H_

#include "cli/cli.h"

/* This process's part of a training between graphs: `weir train GRAPH --cluster
 * FILE --job worker --index 1`. */

/* How a training of |job|'s graph goes over processes. */
typedef enum cli_between {
  CLI_BETWEEN_NOT,   /* one graph, or replicas in this process */
  CLI_BETWEEN_LOCAL, /* --local: this process looks after the others */
  CLI_BETWEEN_PART,  /* it is one of them */
  CLI_EVALUATOR      /* it is no part of any, and follows its checkpoints */
} cli_between;

/* With TF_CONFIG, |args| gets the task that this process is. Errors: W0002
 * (options that do not fit it), W7081, those of the train section. */
weir_status cli_part_find(const cli_job *job, cli_args *args, cli_between *out,
                          weir_error *err);
/* Makes the part, before there are other threads. Errors: those of
 * weir_train_part_create. */
weir_status cli_part_open(const cli_job *job, const cli_args *args,
                          weir_train_part **out_part, weir_error *err);

#endif
