/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_PLACING_H_
#define CLI_PLACING_H_

#include "cli/cli.h"

/* Options of placing: read here, for place and trace and for all commands that
 * run with --in-process. All make a plan by the same call, so that the others
 * run the plan that `place` shows. */

/* Fills |out| from the line. |text| gets the plan of file |given| (NULL: none),
 * which the caller frees after the plan was made. Errors: W0002, W4001. */
weir_status cli_placing_read(const cli_args *args, const char *given,
                             weir_plan_opts *out, weir_plan_text *text,
                             weir_error *err);
void cli_plan_text_free(weir_plan_text *text);

/* The placement options of a command that runs a graph. */
typedef struct cli_placing_want {
  const cli_tensors *inputs; /* that are known already; or NULL */
  bool training;             /* a step; else the outputs */
  bool replicas;    /* in one process: as many as the job between graphs has */
  bool one_program; /* --plan must be of the program that runs */
  bool deal;        /* batches may be dealt: on tasks, where no option places */
} cli_placing_want;

/* With --in-process: makes |job->plan| and says so in |opts|. Without, options
 * that need it are refused by name: W0002. Errors: those of placing. */
weir_status cli_placing_use(cli_job *job, const cli_args *args,
                            const cli_placing_want *want,
                            weir_session_opts *opts, weir_error *err);
/* --save-plan: writes the plan that was used, the largest of several. Errors:
 * W5009. */
weir_status cli_placing_save(const cli_job *job, const cli_args *args,
                             weir_error *err);

/* Prints " on DEVICE", or " on N devices: DEVICE, ...", those with nodes of
 * |plan|, to standard error. */
void cli_placing_say(const weir_plan *plan);

/* --nodes: a |pattern| that fits no node leaves an empty list, and is said.
 * NULL: none was given. */
void cli_placing_tell_pattern(const weir_plan *plan, const char *pattern);

/* --timings: a line for the phase that ends; |at_ns|: the end of the last. */
void cli_placing_phase(const cli_args *args, int64_t *at_ns, const char *phase);

/* ---- Instances: files of tasks */

/* By the end of the name: .stg, .json. */
bool cli_placing_is_instance(const char *path);
/* Refuses options that speak of a graph. Errors: W0002. */
weir_status cli_placing_check_instance(const cli_args *args, weir_error *err);

#endif
