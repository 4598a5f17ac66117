/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/config.h"
#include "cli/table.h"
#include "cli/train.h"

/* Variables of the job's session from --weights or --checkpoint. */
weir_status cli_trained_load(const cli_args *args, cli_job *job,
                             int64_t *out_step, weir_error *err) {
  *out_step = -1;
  if (args->weights != NULL)
    return weir_session_load_weights(job->session, args->weights,
                                     args->maps.items, args->maps.count, NULL,
                                     err);
  if (args->checkpoint != NULL)
    return weir_session_restore(job->session, args->checkpoint, -1, out_step,
                                err);
  return WEIR_OK;
}

static int export(const cli_args *args, cli_job *job) {
  weir_error err = WEIR_ERROR_INIT;
  int64_t step = -1;
  weir_status s = WEIR_OK;
  if (args->outputs.count != 1)
    s = cli_error(&err, "W0001", "-o NAME.weir.yaml says where to");
  else if (args->weights == NULL && args->checkpoint == NULL)
    s = cli_error(
        &err, "W0001",
        "name the trained weights: --checkpoint DIR or --weights FILE");
  if (s == WEIR_OK) s = cli_trained_load(args, job, &step, &err);
  if (s == WEIR_OK)
    s = weir_session_export(job->session, args->outputs.items[0], &err);
  if (s != WEIR_OK) return cli_fail(&err);
  if (!args->quiet && step >= 0)
    cli_note("exported step %lld to %s\n", (long long)step,
             args->outputs.items[0]);
  return 0;
}

static int export_command(const cli_args *args) {
  if (args->print_config) return cli_config_print("export", args);
  cli_job job;
  int code = cli_job_open(&job, args, -1);
  if (code == 0) code = cli_job_load(&job, args, args->rest[0]);
  if (code == 0) code = cli_job_session(&job, args, NULL, false);
  if (code == 0) code = export(args, &job);
  cli_job_close(&job);
  return cli_signal_code(code);
}

static const cli_option options[] = {
    TRAINED,
    LIST("output", 'o', "FILE", outputs,
         "NAME.weir.yaml; NAME.safetensors is written beside it"),
    THREADS,
    GRAPH_OPTIONS,
    QUIET,
    COMMON,
    END};

static const cli_effect effects[] = {
    {.option = "map", .with = "weights"},
    {.option = NULL},
};

const cli_command cli_command_export = {
    .name = "export",
    .synopsis = "GRAPH.weir.yaml [options]",
    .summary = "write a trained graph to be run",
    .text =
        "Writes the graph without its sections for training, and its variables "
        "as safetensors\nbeside it; `weir run` of that gives the same bits.",
    .examples =
        "  weir export lenet.weir.yaml --checkpoint run1 -o "
        "out/lenet.weir.yaml\n"
        "  weir run out/lenet.weir.yaml -i image=@x.npy\n",
    .options = options,
    .effects = effects,
    .min_rest = 1,
    .max_rest = 1,
    .run = export_command,
};
