/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CLUSTER_DEALT_H_
#define CLI_CLUSTER_DEALT_H_

#include "cli/cli.h"

/* Batches that are dealt to workers, as a user sees them: the rate of each
 * while they run, who is lost, and at the end how many each had. */

typedef struct cli_dealt cli_dealt;

/* Has |opts| deal, and tell |*out_dealt| of it. Errors: W6001. */
weir_status cli_dealt_begin(const cli_args *args, weir_tasks_opts *opts,
                            cli_dealt **out_dealt, weir_error *err);
/* The tasks that |opts| made; lent. */
void cli_dealt_use(cli_dealt *dealt, const weir_tasks *tasks);
/* Takes the line of progress away, for good: other text follows. NULL-safe. */
void cli_dealt_stop(cli_dealt *dealt);
/* The last line: the batches of each worker. Nothing where none were dealt, and
 * with --quiet or --json. */
void cli_dealt_say(const cli_job *job, const cli_args *args);
/* After the tasks are released. NULL-safe. */
void cli_dealt_end(cli_dealt *dealt);

#endif
