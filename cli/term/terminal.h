/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TERM_TERMINAL_H_
#define CLI_TERM_TERMINAL_H_

#include <stdbool.h>

/* A line of progress on standard error. */

/* Whether standard error is a terminal that can draw over a line. */
bool cli_terminal(void);
/* Its columns: the terminal's own answer, else COLUMNS, else 80. Asked anew
 * each time, for windows change their size. */
int cli_terminal_width(void);
/* Draws |text| over the present line, cut at the last column but one, so that
 * it never goes on in a second line. */
void cli_terminal_draw(const char *text);
/* Takes the line away. */
void cli_terminal_clear(void);

#endif
