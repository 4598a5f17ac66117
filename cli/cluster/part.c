/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cluster/part.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cluster/cluster.h"
#include "cli/cluster/dmlc.h"
#include "cli/cluster/tf_config.h"
#include "cli/system.h"

/* Options about one graph on a cluster, which |what| is not. */
static weir_status refuse_others(const cli_args *a, const char *what,
                                 weir_error *err) {
  const struct {
    const char *name;
    bool given;
  } others[] = {{"placer", a->placer != NULL},
                {"objective", a->objective != NULL},
                {"budget", a->budget != NULL},
                {"costs", a->costs != NULL},
                {"plan", a->plan != NULL},
                {"save-plan", a->save_plan != NULL},
                {"share", a->share != NULL},
                {"step-timeout", a->step_ns != 0},
                {"resume", a->resume != NULL && a->local == NULL},
                {"ref-kernels", a->ref_kernels},
                {"tf32", a->tf32}};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (others[i].given)
      return cli_error(err, "W0002", "--%s has no effect on %s", others[i].name,
                       what);
  if (a->servers > 0 && (a->tf == NULL || !a->tf->sparse))
    return cli_error(err, "W0002",
                     "--servers is for TF_CONFIG with a sparseCluster");
  if (a->max_workers > 0 && (a->local != NULL || a->dmlc != NULL))
    return cli_error(err, "W0002", "--max-workers has no effect with %s",
                     a->dmlc != NULL ? "--cluster dmlc: DMLC_NUM_WORKER says it"
                                     : "--local, which starts the workers");
  return WEIR_OK;
}

static bool is_evaluator(void *self, const char *name, uint32_t index) {
  bool *found = self;
  (void)index;
  *found = *found || strcmp(name, "evaluator") == 0;
  return true;
}

/* The driver of one graph would start an evaluator as a task of that graph. */
static weir_status refuse_evaluator(const cli_job *job, const cli_args *args,
                                    weir_error *err) {
  bool found = false;
  if (args->local == NULL) return WEIR_OK;
  WEIR_TRY(
      weir_tools_tasks(job->runtime, args->local, is_evaluator, &found, err));
  if (!found) return WEIR_OK;
  weir_status s = cli_error(err, "W0002",
                            "--local %s: evaluators are for replicas between "
                            "graphs (mode async, sync or bounded)",
                            args->local);
  cli_hint(err,
           "beside a training of one graph: weir eval GRAPH --checkpoint DIR "
           "--follow");
  return s;
}

weir_status cli_part_find(const cli_job *job, cli_args *args, cli_between *out,
                          weir_error *err) {
  bool between = false, tasks = args->local != NULL || args->tasks != NULL;
  *out = CLI_BETWEEN_NOT;
  if (args->job != NULL && strcmp(args->job, "evaluator") == 0) {
    *out = CLI_EVALUATOR;
    return refuse_others(args, "an evaluator", err);
  }
  if (args->after_step > 0)
    return cli_error(err, "W0002",
                     "--after is for an evaluator, --job evaluator");
  WEIR_TRY(weir_tools_trains_between(job->graph, &between, err));
  WEIR_TRY(cli_tf_config_train(args, between, err));
  if (!between && args->dmlc != NULL)
    return cli_error(err, "W7082",
                     "--cluster dmlc is for replicas between graphs: --mode "
                     "async, sync(aggregate=N) or bounded(staleness=S), or a "
                     "mode of the graph's own");
  if (!between || !tasks) {
    const char *name = args->addresses != NULL     ? "addresses"
                       : args->generations != NULL ? "generations"
                       : args->restarts >= 0       ? "restarts"
                       : args->servers > 0         ? "servers"
                       : args->max_workers > 0     ? "max-workers"
                                                   : NULL;
    if (name == NULL) return refuse_evaluator(job, args, err);
    return cli_error(err, "W0002",
                     "--%s is for replicas between graphs: mode async, sync or "
                     "bounded with --local or --cluster",
                     name);
  }
  WEIR_TRY(refuse_others(args, "replicas between graphs over processes", err));
  if (args->local == NULL && args->job == NULL) {
    weir_status s =
        cli_error(err, "W0002",
                  "replicas between graphs: each task of the cluster is a "
                  "process of this command; --job NAME --index N say which "
                  "one this is");
    cli_hint(err, "--local ps=1,worker=2 starts all of them on this machine");
    return s;
  }
  *out = args->local != NULL ? CLI_BETWEEN_LOCAL : CLI_BETWEEN_PART;
  return WEIR_OK;
}

static void on_event(void *self, const char *text) {
  const cli_args *a = self;
  if (a->dmlc != NULL) /* an index comes later, or never */
    cli_note("[%s] %s\n", strcmp(a->job, "chief") == 0 ? "scheduler" : a->job,
             text);
  else
    cli_note("[%s:%lld] %s\n", a->job, (long long)a->index, text);
}

/* --addresses in pieces; |*out_text| has their memory. */
static weir_status cut(const char *given, char **out_text, const char ***out,
                       size_t *out_count, weir_error *err) {
  size_t count = 1;
  for (const char *c = given; *c != '\0'; c++) count += *c == ',';
  char *text = strdup(given);
  const char **list = calloc(count, sizeof *list);
  *out_text = text;
  *out = list;
  *out_count = count;
  if (text == NULL || list == NULL) return cli_no_memory(err);
  for (size_t i = 0; i < count; i++) list[i] = strsep(&text, ",");
  return WEIR_OK;
}

/* TF_CONFIG's tasks, and its chief, which is one too between graphs. */
static weir_status list_roles(const weir_tools_tf_config *tf, char cluster[96],
                              const char ***out, size_t *out_count,
                              weir_error *err) {
  size_t n = tf->address_count;
  const char **list = calloc(n + 1, sizeof *list);
  if (list == NULL) return cli_no_memory(err);
  memcpy(list, tf->addresses, n * sizeof *list);
  if (tf->has_chief) list[n++] = weir_tools_tf_config_address(tf, "chief", 0);
  snprintf(cluster, 96, "%.80s%s", tf->cluster,
           tf->has_chief ? ",chief=1" : "");
  *out = list;
  *out_count = n;
  return WEIR_OK;
}

weir_status cli_part_open(const cli_job *job, const cli_args *args,
                          weir_train_part **out_part, weir_error *err) {
  char *text = NULL, folder[4400], cluster[96];
  char scheduler[CLI_DMLC_BYTES], own[CLI_DMLC_BYTES];
  const char **list = NULL;
  size_t count = 0;
  weir_status s = WEIR_OK;
  weir_train_part_opts o = {.struct_size = sizeof o,
                            .insecure = args->insecure,
                            .cluster = args->tasks,
                            .job = args->job,
                            .index = (uint32_t)args->index,
                            .max_workers = (uint32_t)args->max_workers,
                            .generations = args->generations,
                            .heartbeat_ns = args->heartbeat_ns,
                            .start_timeout_ns = args->start_ns};
  if (args->generations == NULL && args->checkpoint != NULL &&
      args->checkpoint[0] != '\0') {
    snprintf(folder, sizeof folder, "%.4000s/generations", args->checkpoint);
    o.generations = folder;
  }
  if (!args->quiet) {
    o.on_event = on_event;
    o.on_event_self = (void *)(uintptr_t)args;
  }
  if (args->addresses != NULL)
    s = cut(args->addresses, &text, &list, &count, err);
  else if (args->tf != NULL)
    s = list_roles(args->tf, cluster, &list, &count, err);
  if (args->tf != NULL && args->addresses == NULL) o.cluster = cluster;
  if (args->dmlc != NULL) {
    s = cli_dmlc_addresses(args->dmlc, scheduler, own, err);
    o.scheduler = scheduler;
    o.address = own;
    o.ranked = args->dmlc->ranked;
  }
  o.addresses = list;
  o.address_count = count;
  cli_cluster_prepare();
  if (s == WEIR_OK)
    s = weir_train_part_create(job->runtime, job->graph, &o, out_part, err);
  free(list);
  free(text);
  return s;
}
