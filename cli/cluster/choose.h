/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CLUSTER_CHOOSE_H_
#define CLI_CLUSTER_CHOOSE_H_

#include "cli/cli.h"

/* Clusters that the environment describes: --cluster tf-config, dmlc, and auto,
 * which is whichever of them is there. */

/* Puts the tasks of the environment into |args| where --cluster asks for them.
 * Errors: W0002 (auto, and there are both), W7081, W7082. */
weir_status cli_cluster_choose(const cli_command *command, cli_args *args,
                               weir_error *err);

#endif
