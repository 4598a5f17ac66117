/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CLUSTER_OWN_H_
#define CLI_CLUSTER_OWN_H_

#include "cli/cli.h"

/* The task that the process of a command is itself, beside driving the others:
 * --cluster FILE --job worker --index 0. */

typedef struct cli_own cli_own;

/* Serves at the task's address of the cluster, on threads of its own, from here
 * on. Signals are watched already. Without --job: |*out_own| is NULL. Errors:
 * those of weir_task_server_create, among them W7002 where another process
 * serves as that task; W6003. */
weir_status cli_own_start(const cli_job *job, const cli_args *args,
                          cli_own **out_own, weir_error *err);
/* Ends it. The command has freed the tasks by now. NULL-safe. */
void cli_own_end(cli_own *own);

#endif
