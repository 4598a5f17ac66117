/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CLUSTER_CLUSTER_H_
#define CLI_CLUSTER_CLUSTER_H_

#include "cli/cli.h"

/* The tasks of a command that runs a graph: those that serve at the addresses
 * of --cluster, of which this process may be one itself (own.h), or processes
 * of its own, one for each task of --local. */

/* Settings of this process, before the network is used: how gRPC waits, and
 * that malloc keeps what it got; the environment may say otherwise. And up to
 * 65,536 open files, if the system lets it. */
void cli_cluster_prepare(void);

/* With --local: starts the processes. On the main thread. Errors: W0002, W3020,
 * W4002, W6001, W6003. */
weir_status cli_cluster_start(cli_job *job, const cli_args *args,
                              weir_error *err);
/* With --cluster or --local: connects to all tasks, for |opts|. With |deal|, if
 * the graph allows it, runs are dealt to the workers: then |job->dealt| is set,
 * and no plan is wanted. Errors: those of weir_tasks_open and cli_own_start. */
weir_status cli_cluster_open(cli_job *job, const cli_args *args, bool deal,
                             weir_session_opts *opts, weir_error *err);
/* Writes "; 3 values, 1.2 KiB came from tasks" to standard error when the
 * command uses tasks. */
void cli_cluster_say(const cli_job *job);
/* Frees the tasks, and ends those of --local. No session uses them by now. */
void cli_cluster_close(cli_job *job);

/* The value of --cluster or --local; NULL: neither is given, or it is auto and
 * this machine. */
const char *cli_cluster_text(const cli_args *args);

#endif
