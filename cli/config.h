/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CONFIG_H_
#define CLI_CONFIG_H_

#include "cli/cli.h"

/* --print-config: every option of the command with its value and where that
 * came from. Returns the exit code. */
int cli_config_print(const char *command, const cli_args *args);

#endif
