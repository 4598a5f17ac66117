/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "cli/cluster/cluster.h"
#include "cli/cluster/tf_config.h"
#include "cli/config.h"
#include "cli/table.h"

/* A process of a cluster: it serves drivers until it is told to end. */

static void on_event(void *self, const char *text) {
  const cli_args *a = self;
  cli_note("[%s:%lld] %s\n", a->job, (long long)a->index, text);
}

static weir_task_opts options_of(const cli_args *args) {
  weir_task_opts o = {.struct_size = sizeof o,
                      .insecure = args->insecure,
                      .cluster = args->tasks,
                      .job = args->job,
                      .index = (uint32_t)args->index,
                      .address = args->listen,
                      .heartbeat_ns = args->heartbeat_ns,
                      .start_timeout_ns = args->start_ns,
                      .checkpoint_root = args->checkpoint};
  if (o.address == NULL) o.address = cli_tf_config_address(args);
  if (!args->quiet) {
    o.on_event = on_event;
    o.on_event_self = (void *)(uintptr_t)args;
  }
  return o;
}

static weir_status check(const cli_args *args, weir_error *err) {
  const struct {
    const char *name, *value;
  } needed[] = {{"job", args->job}, {"cluster", args->tasks}};
  for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
    if (needed[i].value == NULL)
      return cli_error(err, "W0001",
                       "--%s is missing: weir task --job NAME --index N "
                       "--cluster FILE",
                       needed[i].name);
  return WEIR_OK;
}

static int serve(const cli_args *args, cli_job *job) {
  weir_error err = WEIR_ERROR_INIT;
  weir_task_server *server = NULL;
  weir_task_opts opts = options_of(args);
  cli_cluster_prepare();
  cli_signals_watch(NULL); /* before there are threads */
  weir_status s = weir_task_server_create(job->runtime, &opts, &server, &err);
  if (s == WEIR_OK) {
    cli_signals_watch_server(server);
    s = weir_task_server_run(server, &err);
  }
  int code = s == WEIR_OK ? 0 : cli_fail(&err);
  cli_signals_watch(NULL);
  weir_task_server_release(server);
  return code != 0 ? code : cli_signal_code(0);
}

static int task_command(const cli_args *args) {
  if (args->print_config) return cli_config_print("task", args);
  weir_error err = WEIR_ERROR_INIT;
  if (check(args, &err) != WEIR_OK) return cli_fail(&err);
  cli_job job;
  int code = cli_job_open(&job, args, -1);
  if (code == 0) code = serve(args, &job);
  cli_job_close(&job);
  return code;
}

static const cli_option options[] = {
    TEXT("job", 0, "NAME", job, NULL, "the job that the task is of"),
    INT("index", "N", index, NULL, 0, 511, "its number in the job (0)"),
    TEXT("cluster", 0, "SPEC", tasks, NULL,
         "all tasks: FILE.yaml, with their addresses, ps=1,worker=2, or "
         "tf-config, which says --job and --index too (TF_CONFIG); the driver "
         "must be given the same tasks"),
    TEXT("listen", 0, "ADDRESS", listen, NULL,
         "HOST:PORT (port 0: a free one) or unix:/PATH, instead of its address "
         "in the cluster"),
    TEXT("checkpoint-root", 0, "DIR", checkpoint, NULL,
         "where drivers may have this task write and read its shards of "
         "checkpoints (nowhere: the drivers do)"),
    THREADS,
    DEVICE_WAIT,
    TUNE,
    TIME("start-timeout", "TIME", start_ns, NULL,
         "end with exit code 138 when no driver has begun by then (never)"),
    HEARTBEAT,
    INSECURE,
    LIST("limit", 0, "NAME=VALUE", limits, "memory=1GiB: of the process"),
    FLAG("quiet", 'q', quiet, "no line for each event"),
    COMMON,
    END};

const cli_command cli_command_task = {
    .name = "task",
    .synopsis = "--job NAME --index N --cluster FILE [options]",
    .summary = "serve as a task of a cluster",
    .text =
        "Waits for drivers (weir run, train, bench with --cluster) and carries "
        "out this task's\npart of their graphs, which they send. Ends with "
        "SIGTERM or SIGINT. docs/distributed.md\nhas an example.",
    .examples =
        "  weir task --job worker --index 0 --cluster cluster.yaml\n"
        "  TF_CONFIG=... weir task --cluster tf-config\n"
        "  weir task --job ps --cluster ps=1,worker=2 --listen "
        "127.0.0.1:0\n",
    .options = options,
    .max_rest = 0,
    .run = task_command,
};
