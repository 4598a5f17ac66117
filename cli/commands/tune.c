/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "cli/config.h"
#include "cli/system.h"
#include "cli/table.h"

/* Makes the file that --tune reads: graphs are compiled, not run. */

/* Compiles the graph for all of its outputs. */
static weir_status compile(const cli_job *job, const cli_tensors *inputs,
                           weir_error *err) {
  size_t count = weir_graph_io_count(job->graph, WEIR_OUTPUT), named = 0;
  char **names = calloc(count + 1, sizeof *names);
  weir_fetch *fetches = calloc(count + 1, sizeof *fetches);
  weir_feed *feeds = cli_tensors_feeds(inputs);
  weir_bound *bound = NULL;
  bool room = names != NULL && fetches != NULL && feeds != NULL;
  weir_status s = room ? WEIR_OK : cli_no_memory(err);
  for (; s == WEIR_OK && named < count; named++) {
    weir_io_desc io = {.struct_size = sizeof io};
    s = weir_graph_io(job->graph, WEIR_OUTPUT, named, &io, err);
    if (s != WEIR_OK) break;
    names[named] = strndup(io.name, io.name_size);
    if (names[named] == NULL) s = cli_no_memory(err);
    fetches[named] = (weir_fetch)WEIR_FETCH(names[named]);
  }
  if (s == WEIR_OK)
    s = weir_session_bind(job->session,
                          &(weir_run_request)WEIR_RUN_REQUEST(
                              feeds, inputs->count, fetches, count),
                          &bound, err);
  weir_bound_release(bound);
  for (size_t i = 0; i < named; i++) weir_tensor_release(fetches[i].tensor);
  for (size_t i = 0; names != NULL && i < count; i++) free(names[i]);
  free(names);
  free(fetches);
  free(feeds);
  return s;
}

static int tune_graph(cli_job *job, const cli_args *args, const char *path) {
  weir_error err = WEIR_ERROR_INIT;
  cli_tensors inputs = {0};
  int code = cli_job_load(job, args, path);
  if (code != 0) return code;
  weir_status s = WEIR_OK;
  for (size_t i = 0; s == WEIR_OK && i < args->inputs.count; i++)
    s = cli_input_read(job, args, args->inputs.items[i], &inputs, &err);
  if (s == WEIR_OK) s = cli_inputs_random(job, false, &inputs, &err);
  if (s == WEIR_OK) code = cli_job_session(job, args, &inputs, true);
  if (s == WEIR_OK && code == 0) s = compile(job, &inputs, &err);
  cli_tensors_release(&inputs);
  return s != WEIR_OK ? cli_fail(&err) : code;
}

static int tune_command(const cli_args *args) {
  if (args->print_config) return cli_config_print("tune", args);
  cli_args a = *args;
  size_t calls = 0;
  int code = 0;
  a.tune = args->rest[0];
  a.tune_kernels = true;
  for (size_t i = 1; code == 0 && i < args->rest_count; i++) {
    cli_job job;
    code = cli_job_open(&job, &a, 1);
    if (code == 0) code = tune_graph(&job, &a, args->rest[i]);
    calls = code == 0 ? weir_tools_tuned(job.runtime) : 0;
    cli_job_close(&job);
  }
  if (code == 0 && calls == 0)
    cli_note("no node has a choice of kernels: %s is as it was\n", a.tune);
  else if (code == 0 && !args->quiet)
    cli_note("%s: %zu calls\n", a.tune, calls);
  return cli_signal_code(code);
}

static const cli_option options[] = {
    LIST("input", 'i', "NAME=VALUE", inputs,
         "an input as run takes it; others are random"),
    ISA,
    TIMED_GRAPH_OPTIONS,
    DATA_ROOT,
    QUIET,
    COMMON,
    END};

const cli_command cli_command_tune = {
    .name = "tune",
    .synopsis = "FILE GRAPH.weir.yaml... [options]",
    .summary = "time the kernels of graphs, and keep the quickest",
    .text =
        "Compiles each graph. Where several kernels of the CPU take a node, or "
        "a fused group, of its sizes, they are timed on one thread, and FILE "
        "keeps the quickest, if it is 5 % quicker than the one that weir takes "
        "by itself. What FILE has is not timed again. Commands that compute "
        "take FILE with --tune: other kernels may give other bits, and FILE "
        "fixes them. It is for this processor, instruction set and oneDNN; for "
        "others it is not used, with one warning, or an error with "
        "--strict-placement.",
    .examples =
        "  weir tune lenet.tune.yaml graphs/lenet.weir.yaml -p batch=64\n"
        "  weir bench graphs/lenet.weir.yaml -p batch=64 --tune "
        "lenet.tune.yaml\n",
    .options = options,
    .min_rest = 2,
    .max_rest = 1024,
    .run = tune_command,
};
