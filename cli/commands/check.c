/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/config.h"
#include "cli/table.h"

static weir_diag_form form_of(const cli_args *args) {
  const char *format = args->format != NULL ? args->format : "text";
  if (cli_is_json(args)) return WEIR_DIAG_FORM_JSON;
  return strcmp(format, "gcc") == 0 ? WEIR_DIAG_FORM_GCC : WEIR_DIAG_FORM_HUMAN;
}

static void say_sum(const cli_job *job) {
  cli_note("%u error%s, %u warning%s", job->errors, job->errors == 1 ? "" : "s",
           job->warnings, job->warnings == 1 ? "" : "s");
  if (job->first_id[0] != '\0') cli_note(" (weir explain %s)", job->first_id);
  cli_note("\n");
}

static int check_one(const cli_args *args, const char *path) {
  cli_job job;
  int code = cli_job_open(&job, args, 1);
  job.form = form_of(args);
  if (code == 0) code = cli_job_load(&job, args, path);
  if (code == 0) code = cli_job_check(&job);
  if (code == 0 && job.errors + job.warnings == 0) {
    if (!args->quiet)
      cli_note("%s: ok, %zu nodes\n", path,
               weir_tools_graph_node_count(job.graph));
  } else if (job.errors + job.warnings != 0 && !args->quiet) {
    say_sum(&job);
  }
  cli_job_close(&job);
  return code;
}

static int check_command(const cli_args *args) {
  int code = 0;
  if (args->print_config) return cli_config_print("check", args);
  for (size_t i = 0; i < args->rest_count; i++) {
    int one = check_one(args, args->rest[i]);
    if (code == 0) code = one;
  }
  return code;
}

static const cli_option options[] = {
    TIMED_GRAPH_OPTIONS,
    CHOICE("format", 0, "text|gcc|json", format, "WEIR_FORMAT",
           "how findings are printed"),
    JSON_FORMAT,
    QUIET,
    COMMON,
    END};

const cli_command cli_command_check = {
    .name = "check",
    .synopsis = "GRAPH.weir.yaml... [options]",
    .summary = "find mistakes without running",
    .text =
        "Reads each graph, expands it, and works out all types and shapes; "
        "reads `cluster:` and\n`placement:` as weir place does. Exit code 3 "
        "when a mistake was found, 2 in a cluster or\nrule.",
    .examples =
        "  weir check graphs/lenet.weir.yaml\n"
        "  weir check mlp.weir.yaml --format gcc\n",
    .options = options,
    .min_rest = 1,
    .max_rest = 1024,
    .run = check_command,
};
