/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_PLACING_VIEW_H_
#define CLI_PLACING_VIEW_H_

#include "cli/cli.h"

/* A search with a budget, as its user sees it: a line on a terminal's stderr
 * with the best step so far, the bound, and the time that is left; with -v and
 * no terminal a line every second. The first SIGINT or SIGTERM ends the search
 * and keeps its best plan, the second ends the process. */

typedef struct cli_placing_view {
  bool bar;   /* one line, drawn again and again */
  bool lines; /* a line a second */
  bool drawn;
  bool watches;      /* signals */
  int64_t budget_ns; /* 0: of moves */
  int64_t told_ns;   /* when, since the search began */
} cli_placing_view;

/* Sets |opts->on_progress| where |args| has a budget to search for. |view|
 * lives until _end. Called before there are threads. */
void cli_placing_view_begin(cli_placing_view *view, const cli_args *args,
                            weir_plan_opts *opts);
/* Clears the line. Signals end the process again. */
void cli_placing_view_end(cli_placing_view *view);

#endif
