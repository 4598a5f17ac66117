/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TERM_LOG_H_
#define CLI_TERM_LOG_H_

#include <stdint.h>

/* Lines about progress where standard error is no terminal, the same in all
 * commands:
 *
 *   2026-11-21T05:40:12Z info event=step step=1224 epoch=3 loss=0.4127
 *
 * UTC, a level (info, warning), then KEY=VALUE between blanks; a value with
 * blanks, quotes or = stands in double quotes, with \" and \\ in it. The names
 * of events and keys are those of --json. */

void cli_log_begin(const char *level, const char *event);
void cli_log_uint(const char *key, uint64_t value);
/* With |digits| significant digits. */
void cli_log_number(const char *key, double value, int digits);
void cli_log_text(const char *key, const char *text);
void cli_log_end(void);

#endif
