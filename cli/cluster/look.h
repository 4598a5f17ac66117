/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CLUSTER_LOOK_H_
#define CLI_CLUSTER_LOOK_H_

#include "cli/cli.h"

/* Looks at the tasks of --cluster: weir cluster show, ping and stop. Each
 * writes its answers to stdout. Errors: those of weir_tools_cluster_look. */
weir_status cli_cluster_show(weir_runtime *runtime, const cli_args *args,
                             weir_error *err);
weir_status cli_cluster_ping(weir_runtime *runtime, const cli_args *args,
                             weir_error *err);
weir_status cli_cluster_stop(weir_runtime *runtime, const cli_args *args,
                             weir_error *err);

#endif
