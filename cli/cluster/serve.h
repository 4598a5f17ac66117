/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CLUSTER_SERVE_H_
#define CLI_CLUSTER_SERVE_H_

#include "cli/cli.h"

/* Serves |job|'s session at --serve until a signal comes, then prints how it
 * went. Returns the exit code. */
int cli_serve(cli_job *job, const cli_args *args);

#endif
