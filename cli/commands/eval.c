/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "cli/cluster/dealt.h"
#include "cli/cluster/follow.h"
#include "cli/config.h"
#include "cli/confusion.h"
#include "cli/placing/placing.h"
#include "cli/system.h"
#include "cli/table.h"
#include "cli/train.h"

static int run(const cli_args *args, cli_job *job) {
  weir_error err = WEIR_ERROR_INIT;
  weir_trainer *trainer = NULL;
  weir_session_opts session = {.struct_size = sizeof session,
                               .ref_kernels = args->ref_kernels,
                               .tf32 = args->tf32};
  cli_placing_want want = {.training = true, .deal = true};
  weir_train_opts opts = {.struct_size = sizeof opts,
                          .seed = (uint64_t)args->seed,
                          .eval_only = true,
                          .data_root = args->data_root,
                          .checkpoint = args->checkpoint,
                          .init = args->weights,
                          .map = args->maps.items,
                          .map_count = args->maps.count,
                          .session = &session,
                          .getenv = cli_look_up_env};
  weir_train_report report = {.struct_size = sizeof report};
  weir_status s = cli_placing_use(job, args, &want, &session, &err);
  if (s == WEIR_OK)
    s = weir_trainer_create(job->runtime, job->graph, &opts, &trainer, &err);
  if (s == WEIR_OK) s = weir_trainer_eval(trainer, args->data, &report, &err);
  cli_dealt_stop(job->dealt);
  if (s == WEIR_OK && !cli_confusion_csv(args))
    cli_report_print(&report, args->json);
  if (s == WEIR_OK && args->confusion)
    s = cli_confusion(job, args, trainer, report.data, &err);
  if (s == WEIR_OK) s = cli_placing_save(job, args, &err);
  if (s == WEIR_OK) cli_dealt_say(job, args);
  weir_trainer_release(trainer);
  return s == WEIR_OK ? 0 : cli_fail(&err);
}

/* --follow: as long as another process trains. */
static int follow(const cli_args *args, cli_job *job) {
  weir_error err = WEIR_ERROR_INIT;
  weir_session_opts session = {.struct_size = sizeof session,
                               .ref_kernels = args->ref_kernels,
                               .tf32 = args->tf32};
  cli_placing_want want = {.training = true, .deal = true};
  cli_signals_watch(NULL); /* before there are threads */
  weir_status s = cli_placing_use(job, args, &want, &session, &err);
  int code = s == WEIR_OK ? cli_follow(job, args, &session) : cli_fail(&err);
  cli_dealt_stop(job->dealt);
  return code;
}

static int eval_command(const cli_args *args) {
  if (args->print_config) return cli_config_print("eval", args);
  if (cli_confusion_csv(args) && !args->confusion) {
    weir_error err = WEIR_ERROR_INIT;
    (void)cli_error(&err, "W0002", "--format csv is the form of --confusion");
    return cli_fail(&err);
  }
  cli_job job;
  int code = cli_job_open(&job, args, -1);
  if (code == 0) code = cli_job_load(&job, args, args->rest[0]);
  if (code == 0) code = args->follow ? follow(args, &job) : run(args, &job);
  cli_job_close(&job);
  return code;
}

static const cli_option options[] = {
    TEXT("weights", 0, "FILE", weights, NULL,
         "variables from a safetensors file instead of a checkpoint"),
    TEXT("data", 0, "NAME", data, NULL,
         "the data set, instead of that of train: eval:"),
    FLAG("follow", 0, follow,
         "evaluate each checkpoint as a training saves it, until it is over"),
    INT("after", "STEP", after_step, NULL, 1, INT64_MAX,
        "with --follow: a training that ended at this step or before is taken "
        "up again"),
    TEXT("events", 0, "DIR", events, NULL,
         "with --follow: folder of summaries, instead of train: summary: dir:"),
    FLAG("confusion", 0, confusion,
         "print how often each class is taken for each other one"),
    LABELS,
    TRAIN_COMMON_WITH(
        CHOICE("format", 0, "text|csv|json", format, "WEIR_FORMAT",
               "the form of the output; csv: --confusion's matrix alone"),
        JSON_FORMAT),
    END};

static const cli_effect effects[] = {
    TASKS_EFFECTS,
    {.option = "map", .with = "weights"},
    {.option = "labels", .with = "confusion"},
    {.option = "events", .with = "follow"},
    {.option = "after", .with = "follow"},
    {.option = "follow",
     .without = "weights",
     .why = "checkpoints are followed; a file of weights does not change"},
    {.option = "follow",
     .without = "confusion",
     .why =
         "the matrix is of one checkpoint: run the command without --follow"},
    {.option = "follow",
     .without = "save-plan",
     .why = "run the command without --follow once to save its plan"},
    {.option = NULL},
};

const cli_command cli_command_eval = {
    .name = "eval",
    .synopsis = "GRAPH.weir.yaml [options]",
    .summary = "measure a trained graph",
    .text =
        "Computes the metrics of `train: {eval: ...}` over a data set, with "
        "the "
        "variables of a\ncheckpoint or of a safetensors file. With --follow "
        "it is the evaluator of a training\nthat another process runs: see "
        "docs/training.md.",
    .examples =
        "  weir eval lenet.weir.yaml --checkpoint run1\n"
        "  weir eval lenet.weir.yaml --checkpoint run1 --follow\n"
        "  weir eval lenet.weir.yaml --checkpoint run1 --confusion\n"
        "  weir eval lenet.weir.yaml --checkpoint run1 --confusion --format "
        "csv\n"
        "  weir eval lenet.weir.yaml --weights lenet.safetensors --data "
        "train\n",
    .options = options,
    .effects = effects,
    .min_rest = 1,
    .max_rest = 1,
    .run = eval_command,
};
