/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_EXAMPLES_H_
#define CLI_EXAMPLES_H_

/* Examples of errors, made from the files of cli/explain. */

/* Lines that begin with "$ " are commands, others a graph; each ends with a
 * line end. */
typedef struct cli_example {
  const char *id;
  const char *wrong, *right;
} cli_example;

/* One for each id, in the order of errors.def; a row of NULL ends the list. */
extern const cli_example cli_examples[];

#endif
