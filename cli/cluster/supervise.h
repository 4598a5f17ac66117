/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CLUSTER_SUPERVISE_H_
#define CLI_CLUSTER_SUPERVISE_H_

#include "cli/cli.h"

/* `weir train --local` of replicas between graphs: each task is a process that
 * runs the same command with its own part, and this one looks after them.
 *
 * The chief has this process's outputs; lines of the others go to standard
 * error with their names. A process that dies is started again, --restarts
 * times in all; one that ends by an error of its own (exit code below 128) ends
 * the job. SIGINT and SIGTERM end the job as they end a training in one
 * process.
 *
 * Tasks of job evaluator follow the checkpoints (follow.h) and are waited
 * for. The training does not end with one; its failure is the command's where
 * the training had none. */

/* Runs the job on main's thread, which has no other yet; returns the exit code,
 * the chief's. */
int cli_supervise(cli_job *job, const cli_args *args);

#endif
