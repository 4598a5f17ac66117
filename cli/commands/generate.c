/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "cli/config.h"

int cli_generate(const cli_args *args) {
  weir_error err = WEIR_ERROR_INIT;
  cli_job job;
  if (args->print_config) return cli_config_print("generate", args);
  int code = cli_job_open(&job, args, 1);
  weir_tools_generate_opts opts = {
      .struct_size = sizeof opts,
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
