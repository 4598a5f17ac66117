/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_BENCH_COMPARE_H_
#define CLI_BENCH_COMPARE_H_

#include "cli/cli.h"

/* bench --compare A.json B.json. */

/* Refuses other options, forms, and the same file twice. Errors: W0001, W0002.
 */
weir_status cli_bench_compare_check(const cli_args *args, weir_error *err);

/* Prints the comparison; gives the exit code: 1 where the two are not of the
 * same work. */
int cli_bench_compare(const cli_args *args);

#endif
