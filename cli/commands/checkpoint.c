/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/table.h"

static int fail_usage(const char *says) {
  weir_error err = WEIR_ERROR_INIT;
  if (cli_error(&err, "W0001", "weir checkpoint: %s", says) == WEIR_OK)
    return 0;
  cli_hint(&err,
           "weir checkpoint show DIR | verify DIR | diff A B | convert SRC "
           "DST");
  return cli_fail(&err);
}

static void warn(void *self, const weir_diag *diag) {
  (void)self;
  weir_diag_write(diag, WEIR_DIAG_FORM_HUMAN, cli_color(), NULL, NULL, cli_err,
                  NULL);
}

static weir_status show(weir_runtime *runtime, const cli_args *args,
                        weir_error *err) {
  weir_tools_checkpoint what = {
      .path = args->rest[1],
      .step = args->at_step,
      .on_diag = warn,
  };
  return weir_tools_checkpoint_show(runtime, &what, args->json, cli_out, NULL,
                                    err);
}

/* Exit code 1 when they differ. */
static weir_status diff(weir_runtime *runtime, const cli_args *args,
                        bool *out_same, weir_error *err) {
  weir_tools_diff opts = {.a = args->rest[1],
                          .b = args->rest[2],
                          .rtol = args->diff_rtol,
                          .atol = args->diff_atol,
                          .json = args->json};
  return weir_tools_checkpoint_diff(runtime, &opts, cli_out, NULL, out_same,
                                    err);
}

static weir_status convert(weir_runtime *runtime, const cli_args *args,
                           weir_error *err) {
  weir_tools_convert opts = {.src = args->rest[1],
                             .dst = args->rest[2],
                             .role = args->role,
                             .maps = args->maps.items,
                             .map_count = args->maps.count};
  return weir_tools_checkpoint_convert(runtime, &opts, err);
}

static int checkpoint_command(const cli_args *args) {
  const char *action = args->rest[0];
  size_t want =
      strcmp(action, "diff") == 0 || strcmp(action, "convert") == 0 ? 3 : 2;
  bool same = true;
  weir_error err = WEIR_ERROR_INIT;
  cli_job job;
  if (args->color != NULL) cli_color_set(args->color);
  if (args->rest_count != want)
    return fail_usage("it takes one folder, or for diff and convert two");
  int code = cli_job_open(&job, args, 1);
  if (code != 0) return code;
  weir_status s = WEIR_OK;
  if (strcmp(action, "show") == 0)
    s = show(job.runtime, args, &err);
  else if (strcmp(action, "verify") == 0)
    s = weir_tools_checkpoint_verify(job.runtime, args->rest[1], args->json,
                                     cli_out, NULL, &err);
  else if (strcmp(action, "diff") == 0)
    s = diff(job.runtime, args, &same, &err);
  else if (strcmp(action, "convert") == 0)
    s = convert(job.runtime, args, &err);
  else
    code = fail_usage("unknown action");
  if (s != WEIR_OK) code = cli_fail(&err);
  if (code == 0 && !same) code = 1;
  cli_job_close(&job);
  return code;
}

static const cli_option options[] = {
    INT("step", "N", at_step, NULL, 0, INT64_MAX,
        "show the checkpoint of step N, not the newest"),
    NUMBER("rtol", "X", diff_rtol, "diff: relative tolerance (0)"),
    NUMBER("atol", "X", diff_atol, "diff: absolute tolerance (0)"),
    LIST("map", 0, "OLD=NEW", maps, "convert: rename a tensor"),
    CHOICE("role", 0, "variable|slot|state|all", role, NULL,
           "convert: tensors of this role only (all)"),
    JSON,
    COLOR,
    HELP,
    END};

static const cli_effect effects[] = {
    {.option = "step", .of = "show"},
    {.option = "rtol", .of = "diff"},
    {.option = "atol", .of = "diff"},
    {.option = "map", .of = "convert"},
    {.option = "role", .of = "convert"},
    {.option = "json", .of = "show|verify|diff"},
    {.option = NULL},
};

const cli_command cli_command_checkpoint = {
    .name = "checkpoint",
    .synopsis = "show DIR | verify DIR | diff A B | convert SRC DST",
    .summary = "look at, check, compare and convert checkpoints",
    .text =
        "show prints the contents of the newest sound checkpoint of a folder "
        "(or one "
        "manifest) holds, verify\nreads all of them (exit code 5: damaged), "
        "diff "
        "compares tensors by name (exit code 1: they\ndiffer), convert writes "
        "a "
        ".safetensors or .npz file from a checkpoint, or the reverse.",
    .examples =
        "  weir checkpoint show runs/a\n"
        "  weir checkpoint verify runs/a\n"
        "  weir checkpoint diff runs/a runs/b --rtol 1e-5\n"
        "  weir checkpoint convert runs/a weights.safetensors --role variable\n"
        "  weir checkpoint convert old.npz runs/new --map w=dense/w\n",
    .options = options,
    .effects = effects,
    .min_rest = 2,
    .max_rest = 3,
    .run = checkpoint_command,
};
