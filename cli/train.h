/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TRAIN_H_
#define CLI_TRAIN_H_

#include "cli/cli.h"

/* The common part of train, eval and predict. */

/* Loads the variables of --weights or --checkpoint into the job's session;
 * |*out_step|: of the checkpoint, or -1. */
weir_status cli_trained_load(const cli_args *args, cli_job *job,
                             int64_t *out_step, weir_error *err);

/* How a training is shown: a bar on a terminal, plain lines elsewhere, with
 * --json one object a line on stdout. */
typedef struct cli_train_view {
  bool json, quiet, bar, utf8;
  bool drawn;       /* a bar stands on the line */
  int64_t drawn_ns; /* when */
  int64_t first_ns; /* of the first step that was seen */
  uint64_t first_step;
  /* Since the last line or bar: */
  uint64_t seen_step, seen_examples;
  int64_t seen_ns, seen_wait_ns;
  double loss_sum;
  uint64_t loss_count;
  weir_trainer *trainer; /* is stopped when the lines cannot be written */
} cli_train_view;

void cli_train_view_init(cli_train_view *view, const cli_args *args);
/* Callbacks that show on |view|. */
weir_train_callbacks cli_train_view_calls(cli_train_view *view);
/* Takes the bar away, so that other text may follow. */
void cli_train_view_clear(cli_train_view *view);
/* The last line: the reason of the end, the time, the waiting. */
void cli_train_view_end(cli_train_view *view, weir_train_end end,
                        const weir_train_progress *progress);
/* "all steps done", ...: for people. */
const char *cli_train_end_why(weir_train_end end);
/* What each worker between graphs has done, and all of them. */
void cli_train_account(cli_train_view *view, const weir_train_account *account);
/* A table of a report's metrics on stdout, or an object. */
void cli_report_print(const weir_train_report *report, bool json);

#endif
