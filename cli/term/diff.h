/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TERM_DIFF_H_
#define CLI_TERM_DIFF_H_

#include <stdbool.h>
#include <stddef.h>

/* A text of |size| bytes; a NUL in it means nothing. */
typedef struct cli_text {
  const char *data;
  size_t size;
} cli_text;

/* Prints the change of |from| to |to| as a unified diff of file |name|, which
 * `patch` takes; nothing if they are equal. Lines are paired in their order: a
 * diff is the shortest where empty lines alone come or go. False: no memory. */
bool cli_print_diff(const char *name, cli_text from, cli_text to);

#endif
