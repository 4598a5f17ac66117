/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/config.h"
#include "cli/table.h"

static int generate_command(const cli_args *args) {
  weir_error err = WEIR_ERROR_INIT;
  cli_job job;
  if (args->print_config) return cli_config_print("generate", args);
  int code = cli_job_open(&job, args, 1);
  weir_tools_generate_opts opts = {
      .kind = args->rest[0],
      .nodes = args->nodes == 0 ? 1000 : (uint64_t)args->nodes,
      .seed = (uint64_t)args->seed,
      .processors = (uint32_t)args->processors};
  if (code == 0 &&
      weir_tools_generate(job.runtime, &opts, cli_out, NULL, &err) != WEIR_OK)
    code = cli_fail(&err);
  cli_job_close(&job);
  return code;
}

static const cli_option options[] = {
    INT("nodes", "N", nodes, NULL, 1, 4000000, "about so many tasks (1000)"),
    INT("processors", "N", processors, NULL, 1, 1024,
        "planted: processors of the hidden plan (4)"),
    INT("seed", "N", seed, "WEIR_SEED", 0, INT64_MAX, "of random sizes (0)"),
    LIST("limit", 0, "NAME=VALUE", limits, "memory=1GiB"),
    COMMON,
    END};

const cli_command cli_command_generate = {
    .name = "generate",
    .synopsis = "KIND [options]",
    .summary = "write a task graph for experiments",
    .text =
        "KIND is cholesky, lu, fft, stencil, layered, transformer, pipeline, "
        "replicas or planted.\nThe graph goes to standard output, as a graph "
        "file of task nodes. pipeline is a stack of\nlayers with weights and "
        "16 batches, replicas are 8 stacks whose results are added.\nplanted "
        "hides a plan without idle time: its step is the best possible.",
    .examples =
        "  weir generate cholesky --nodes 10000 > cholesky.weir.yaml\n"
        "  weir generate planted --nodes 500 --processors 8 > p.weir.yaml\n",
    .options = options,
    .min_rest = 1,
    .max_rest = 1,
    .run = generate_command,
};
