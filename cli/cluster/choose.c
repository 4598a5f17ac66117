/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cluster/choose.h"

#include <string.h>

#include "cli/cluster/dmlc.h"
#include "cli/cluster/tf_config.h"
#include "cli/system.h"

static bool has(const char *name) {
  const char *text = cli_look_up_env(NULL, name);
  return text != NULL && text[0] != '\0';
}

/* Commands whose processes find each other by the environment; for the others
 * auto is this machine, whatever the environment has. */
static bool is_for(const cli_command *command) {
  static const char *const kNames[] = {"train", "task",    "cluster",
                                       "run",   "predict", "eval"};
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames; i++)
    if (strcmp(command->name, kNames[i]) == 0) return true;
  return false;
}

/* Which form auto is here. */
static weir_status choose(const cli_command *command, cli_args *args,
                          weir_error *err) {
  if (args->tasks == NULL || strcmp(args->tasks, "auto") != 0 ||
      !is_for(command))
    return WEIR_OK;
  bool tf = has("TF_CONFIG");
  bool dmlc = has("DMLC_ROLE") || has("DMLC_PS_ROOT_URI");
  if (tf && dmlc) {
    weir_status s = cli_error(err, "W0002",
                              "--cluster auto: the environment has TF_CONFIG, "
                              "and DMLC_* of ps-lite as well");
    cli_hint(err, "--cluster tf-config or --cluster dmlc takes one of them");
    return s;
  }
  if (!args->quiet)
    cli_note("--cluster auto: %s\n",
             tf     ? "tf-config, for the environment has TF_CONFIG"
             : dmlc ? "dmlc, for the environment has DMLC_*"
                    : "this machine, for the environment has neither TF_CONFIG "
                      "nor DMLC_*");
  if (tf) args->tasks = "tf-config";
  if (dmlc) args->tasks = "dmlc";
  return WEIR_OK;
}

weir_status cli_cluster_choose(const cli_command *command, cli_args *args,
                               weir_error *err) {
  WEIR_TRY(choose(command, args, err));
  WEIR_TRY(cli_dmlc_apply(command, args, err));
  return cli_tf_config_apply(command, args, err);
}
