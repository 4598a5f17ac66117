/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CLUSTER_FOLLOW_H_
#define CLI_CLUSTER_FOLLOW_H_

#include "cli/cli.h"

/* An evaluator: `weir eval GRAPH --checkpoint DIR --follow`, and the evaluator
 * of a cluster, `weir train GRAPH --job evaluator`, which is the same work. */

/* Evaluates each checkpoint as it appears, until the training is over.
 * |session| as of weir_trainer_create. Returns the exit code. */
int cli_follow(cli_job *job, const cli_args *args,
               const weir_session_opts *session);

#endif
