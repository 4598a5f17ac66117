/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/cluster/certs.h"
#include "cli/cluster/look.h"
#include "cli/table.h"

/* Work around a cluster. An action is a row: its name, the number of words that
 * it takes, and its function. */

typedef struct action {
  const char *name;
  size_t words; /* itself included */
  weir_status (*run)(weir_runtime *runtime, const cli_args *args,
                     weir_error *err);
} action;

static weir_status certs(weir_runtime *runtime, const cli_args *args,
                         weir_error *err) {
  cli_certs_opts opts = {.folder = args->rest[1],
                         .cluster = args->tasks,
                         .days = args->days,
                         .quiet = args->quiet};
  return cli_certs_make(runtime, &opts, err);
}

static const action actions[] = {{"certs", 2, certs},
                                 {"show", 1, cli_cluster_show},
                                 {"ping", 1, cli_cluster_ping},
                                 {"stop", 1, cli_cluster_stop}};

static int fail_usage(const char *says) {
  weir_error err = WEIR_ERROR_INIT;
  if (cli_error(&err, "W0001", "weir cluster: %s", says) == WEIR_OK) return 0;
  cli_hint(&err,
           "weir cluster certs DIR --cluster FILE, weir cluster "
           "show|ping|stop --cluster FILE");
  return cli_fail(&err);
}

static const action *find(const char *name) {
  for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
    if (strcmp(actions[i].name, name) == 0) return &actions[i];
  return NULL;
}

static int cluster_command(const cli_args *args) {
  weir_error err = WEIR_ERROR_INIT;
  cli_job job;
  if (args->color != NULL) cli_color_set(args->color);
  const action *it = find(args->rest[0]);
  if (it == NULL) return fail_usage("unknown action");
  if (args->rest_count != it->words)
    return fail_usage("another number of words is expected");
  if (args->tasks == NULL) return fail_usage("--cluster is missing");
  int code = cli_job_open(&job, args, 1);
  if (code != 0) return code;
  if (it->run(job.runtime, args, &err) != WEIR_OK) code = cli_fail(&err);
  cli_job_close(&job);
  return code;
}

static const cli_option options[] = {
    TEXT(
        "cluster", 0, "SPEC", tasks, NULL,
        "all tasks: FILE.yaml, with their addresses, or tf-config (TF_CONFIG); "
        "for certs ps=1,worker=2 too"),
    INT("days", "N", days, NULL, 1, 36500,
        "certs: days that they are valid (365)"),
    INT("count", "N", count, NULL, 1, 100000, "ping: round trips (5)"),
    TIME("interval", "TIME", interval_ns, NULL,
         "ping: from one round trip to the next (1s)"),
    TIME("wait", "TIME", wait_ns, NULL,
         "show, ping, stop: for a connection, and for each answer (5s)"),
    FLAG("bandwidth", 0, bandwidth,
         "show: send 64 MiB to each task and back, and measure"),
    FLAG("force", 0, force, "stop: end tasks that work for a driver, too"),
    INSECURE,
    JSON,
    FLAG("quiet", 'q', quiet,
         "certs: no line for each file; ping: none for each round trip"),
    COLOR,
    HELP,
    END};

static const cli_effect effects[] = {
    {.option = "days", .of = "certs"},
    {.option = "count", .of = "ping"},
    {.option = "interval", .of = "ping"},
    {.option = "wait", .of = "show|ping|stop"},
    {.option = "bandwidth", .of = "show"},
    {.option = "force", .of = "stop"},
    {.option = "insecure", .of = "show|ping|stop"},
    {.option = "json", .of = "show|ping|stop"},
    {.option = "quiet", .of = "certs|ping"},
    {.option = NULL},
};

const cli_command cli_command_cluster = {
    .name = "cluster",
    .synopsis = "certs DIR | show | ping | stop --cluster SPEC",
    .summary = "look at the tasks of a cluster, end them, make certificates",
    .text =
        "show writes a table of the tasks: state, version, kernels, memory, "
        "round trips, hashes of the\ngraphs that they hold. ping measures "
        "round trips. stop ends tasks, with exit code 0; one that\nworks for "
        "a driver goes on (exit code 138) unless --force is given. None of "
        "them takes part\nin a run or makes it wait. A task that does not "
        "answer: exit code 138.\n\n"
        "certs makes a test authority in DIR and, signed by it, a certificate "
        "and a key for each task\nand for the driver, by the command openssl. "
        "Files that are there are kept, so a task can be\nadded later. `tls: "
        "DIR` "
        "in the cluster's file uses them. docs/distributed.md has an example.",
    .examples =
        "  weir cluster show --cluster cluster.yaml --bandwidth\n"
        "  weir cluster ping --cluster cluster.yaml --count 100 --interval "
        "10ms -q\n"
        "  weir cluster stop --cluster cluster.yaml\n"
        "  weir cluster certs certs --cluster cluster.yaml\n"
        "  weir cluster certs certs --cluster ps=1,worker=2 --days 30\n",
    .options = options,
    .effects = effects,
    .min_rest = 1,
    .max_rest = 2,
    .run = cluster_command,
};
