/* SPDX-License-Identifier: Apache-2.0 */
/* Roles of TF_CONFIG.
 *
 * A ps and a worker are tasks of that job. The chief drives, and so does worker
 * 0 where there is no chief, which is its task in the same process; TensorFlow
 * has them save the checkpoints, which is a driver's work here. An evaluator
 * takes no part in a cluster: it follows the checkpoints. A command that is not
 * for the role of its process is refused with the one that is. */
#include "cli/cluster/tf_config.h"

#include <string.h>

#include "cli/system.h"

static weir_status refuse(const weir_tools_tf_config *tf, const char *says,
                          const char *hint, weir_error *err) {
  weir_status s =
      cli_error(err, "W7081", "this process is %s:%u of TF_CONFIG: %s",
                tf->role, tf->index, says);
  cli_hint(err, "%s", hint);
  return s;
}

static weir_status refuse_evaluator(const weir_tools_tf_config *tf,
                                    weir_error *err) {
  return refuse(tf, "an evaluator takes no part in a cluster",
                "weir train GRAPH --cluster tf-config --checkpoint DIR is the "
                "evaluator of a training; weir eval GRAPH --checkpoint DIR "
                "evaluates once, without --cluster",
                err);
}

static void be_task(cli_args *args) {
  args->job = args->tf->role;
  args->index = args->tf->index;
}

static weir_status apply_task(cli_args *args, weir_error *err) {
  const weir_tools_tf_config *tf = args->tf;
  if (tf->role == NULL)
    return cli_error(err, "W7081",
                     "TF_CONFIG does not say which task this process is; "
                     "--job NAME --index N does, too");
  if (strcmp(tf->role, "evaluator") == 0) return refuse_evaluator(tf, err);
  if (strcmp(tf->role, "chief") == 0)
    return refuse(tf, "a chief drives and is no task",
                  "weir train GRAPH --cluster tf-config", err);
  be_task(args);
  return WEIR_OK;
}

static weir_status apply_driver(cli_args *args, weir_error *err) {
  const weir_tools_tf_config *tf = args->tf;
  if (tf->role == NULL || strcmp(tf->role, "chief") == 0) return WEIR_OK;
  if (strcmp(tf->role, "evaluator") == 0) return refuse_evaluator(tf, err);
  if (strcmp(tf->role, "worker") != 0 || tf->index != 0 || tf->has_chief)
    return refuse(tf,
                  tf->has_chief ? "the chief drives"
                                : "worker:0 drives, for there is no chief",
                  "weir task --cluster tf-config", err);
  be_task(args);
  return WEIR_OK;
}

/* A sparseCluster is of trainings between graphs, whose workers may come late.
 */
static weir_status fill_sparse(const cli_command *command, cli_args *args,
                               weir_error *err) {
  weir_tools_tf_config *tf = args->tf;
  if (!tf->sparse) return WEIR_OK;
  bool train = strcmp(command->name, "train") == 0;
  if (strcmp(tf->role, "evaluator") == 0) /* it needs no cluster */
    return train ? WEIR_OK : refuse_evaluator(tf, err);
  if (!train)
    return refuse(tf, "a cluster whose workers come and go",
                  "weir train GRAPH --mode async --cluster tf-config", err);
  if (args->max_workers == 0)
    return refuse(tf, "a sparseCluster does not say how many workers may come",
                  "--max-workers N does, the same for all processes", err);
  return weir_tools_tf_config_fill(tf, (uint32_t)args->servers, err);
}

weir_status cli_tf_config_apply(const cli_command *command, cli_args *args,
                                weir_error *err) {
  if (args->tasks == NULL || strcmp(args->tasks, "tf-config") != 0)
    return WEIR_OK;
  const char *text = cli_look_up_env(NULL, "TF_CONFIG");
  if (text == NULL)
    return cli_error(err, "W7081",
                     "--cluster tf-config: the environment has no TF_CONFIG");
  WEIR_TRY(weir_tools_tf_config_read(text, &args->tf, err));
  WEIR_TRY(fill_sparse(command, args, err));
  args->tasks = args->tf->cluster;
  if (args->job != NULL || strcmp(command->name, "cluster") == 0)
    return WEIR_OK;
  if (strcmp(command->name, "task") == 0) return apply_task(args, err);
  /* A training's graph says whether each process is a part of it. */
  if (strcmp(command->name, "train") != 0) return apply_driver(args, err);
  if (args->tf->role != NULL && strcmp(args->tf->role, "evaluator") == 0)
    be_task(args); /* of any */
  return WEIR_OK;
}

weir_status cli_tf_config_train(cli_args *args, bool between, weir_error *err) {
  if (args->tf == NULL || args->job != NULL) return WEIR_OK;
  if (!between && args->tf->sparse)
    return refuse(args->tf, "a cluster whose workers come and go",
                  "--mode async, sync(aggregate=N) or bounded(staleness=S)",
                  err);
  if (!between) return apply_driver(args, err);
  if (args->tf->role != NULL) be_task(args);
  return WEIR_OK;
}

const char *cli_tf_config_address(const cli_args *args) {
  if (args->tf == NULL || args->job == NULL) return NULL;
  return weir_tools_tf_config_address(args->tf, args->job,
                                      (uint32_t)args->index);
}
