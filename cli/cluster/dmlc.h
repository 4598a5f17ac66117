/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CLUSTER_DMLC_H_
#define CLI_CLUSTER_DMLC_H_

#include "cli/cli.h"

/* --cluster dmlc: the part of this process in a job that the environment of
 * ps-lite describes. */

/* Puts it into |args| where --cluster is dmlc. Errors: W7082, W0002. */
weir_status cli_dmlc_apply(const cli_command *command, cli_args *args,
                           weir_error *err);

enum { CLI_DMLC_BYTES = 256 };

/* Where the scheduler takes connections, and where this process does; asks the
 * system. Errors: W7082. */
weir_status cli_dmlc_addresses(const weir_tools_dmlc *dmlc,
                               char scheduler[CLI_DMLC_BYTES],
                               char own[CLI_DMLC_BYTES], weir_error *err);

#endif
