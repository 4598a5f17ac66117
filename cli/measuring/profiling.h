/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_PROFILING_H_
#define CLI_PROFILING_H_

#include "cli/cli.h"
#include "cli/json.h"

/* --profile and --profile-html of bench, run and train. */

/* Makes |*out|, for at most |steps| steps behind |skip| ones; NULL where none
 * is wanted. Errors: W6001. */
weir_status cli_profiling_open(const cli_job *job, const cli_args *args,
                               const weir_tools_profile_opts *opts,
                               weir_tools_profile **out, weir_error *err);

/* Once all steps were taken: adds up, writes the page, and prints the table of
 * --profile where the form is text. |command|: its name, for the page's title.
 * Nothing where |profile| is NULL. Errors: W5009, W6001. */
weir_status cli_profiling_end(weir_tools_profile *profile, const cli_job *job,
                              const cli_args *args, const char *command,
                              weir_error *err);

/* The member "profile", where --profile is given; behind cli_profiling_end. */
void cli_profiling_json(const weir_tools_profile *profile, const cli_args *args,
                        weir_json_writer *w);

/* ---- What was measured, for comparisons of JSON files */

/* Members graph, params, machine, cores and isa. */
void cli_measured_json(const cli_job *job, const cli_args *args,
                       weir_json_writer *w);

#endif
