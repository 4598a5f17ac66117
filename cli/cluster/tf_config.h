/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CLUSTER_TF_CONFIG_H_
#define CLI_CLUSTER_TF_CONFIG_H_

#include "cli/cli.h"

/* --cluster tf-config: the tasks, and the part of this process, as the
 * environment variable TF_CONFIG says. */

/* Puts the tasks of TF_CONFIG into |args| where --cluster is tf-config, and the
 * task that this process is, unless --job says it. Errors: W7081, W6001. */
weir_status cli_tf_config_apply(const cli_command *command, cli_args *args,
                                weir_error *err);
/* `weir train`, once its graph is known. |between|: replicas between graphs, of
 * which each role is a process; else as any driver. Errors: W7081. */
weir_status cli_tf_config_train(cli_args *args, bool between, weir_error *err);
/* The address of the task --job, --index; NULL: TF_CONFIG is not used. */
const char *cli_tf_config_address(const cli_args *args);

#endif
