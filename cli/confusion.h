/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CONFUSION_H_
#define CLI_CONFUSION_H_

#include "cli/cli.h"

/* Counts the best class of each example of data set |data| against its label,
 * with |trainer|'s variables, and prints the matrix: rows are true classes,
 * columns predicted ones. Where it is wider than the terminal, each class gets
 * a line with its commonest mistakes. With --json one object, with --format csv
 * a head and a line for each class.
 * Errors: W0002 (no scores, no column `label`), W4027, W4039, W6001, the
 * run's own. */
weir_status cli_confusion(cli_job *job, const cli_args *args,
                          weir_trainer *trainer, const char *data,
                          weir_error *err);
/* Whether the matrix alone is wanted, as CSV. */
bool cli_confusion_csv(const cli_args *args);

#endif
