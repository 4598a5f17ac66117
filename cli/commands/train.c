/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "cli/cluster/cluster.h"
#include "cli/cluster/follow.h"
#include "cli/cluster/part.h"
#include "cli/cluster/supervise.h"
#include "cli/config.h"
#include "cli/measuring/profiling.h"
#include "cli/placing/placing.h"
#include "cli/system.h"
#include "cli/table.h"
#include "cli/train.h"

static weir_train_opts options_of(const cli_args *a,
                                  const weir_session_opts *session,
                                  const weir_train_callbacks *calls) {
  bool none = a->resume != NULL && strcmp(a->resume, "none") == 0;
  return (weir_train_opts){
      .struct_size = sizeof(weir_train_opts),
      .resume = none ? WEIR_TRAIN_RESUME_NONE : WEIR_TRAIN_RESUME_AUTO,
      .seed = (uint64_t)a->seed,
      .steps = (uint64_t)a->steps,
      .epochs = (uint64_t)a->epochs,
      .data_root = a->data_root,
      .checkpoint = a->checkpoint,
      .events = a->events,
      .out = a->run_folder,
      .init = a->init,
      .map = a->maps.items,
      .map_count = a->maps.count,
      .time_ns = cli_wall_ns(),
      .session = session,
      .callbacks = calls,
      .getenv = cli_look_up_env};
}

/* A run that goes on may have passed --steps long ago. */
static void warn_of_steps(const cli_args *args, cli_train_view *view,
                          const weir_train_progress *p) {
  weir_error err = WEIR_ERROR_INIT;
  weir_train_callbacks calls = cli_train_view_calls(view);
  if (args->steps <= 0 || (uint64_t)args->steps >= p->step || p->examples > 0)
    return;
  (void)cli_error(&err, "W0002",
                  "--steps %lld is below step %llu, which was reached before: "
                  "nothing is trained",
                  (long long)args->steps, (unsigned long long)p->step);
  calls.warning(calls.self, &err);
}

/* A part that does not lead: until the job is over. */
static int run_part(const cli_args *args, cli_job *job, weir_train_part *part) {
  weir_error err = WEIR_ERROR_INIT;
  weir_train_opts opts = options_of(args, NULL, NULL);
  cli_signals_watch_part(part);
  weir_status s = weir_train_part_run(part, &opts, &err);
  int code = s == WEIR_OK ? 0 : cli_fail(&err);
  cli_signals_watch(NULL);
  (void)job;
  return cli_signal_code(code);
}

enum { WARM_STEPS = 3 };

/* As text or as a line of JSON. */
static weir_status end_profile(weir_tools_profile *profile, const cli_job *job,
                               const cli_args *args, weir_error *err) {
  weir_json_writer w;
  WEIR_TRY(cli_profiling_end(profile, job, args, "train", err));
  if (!args->profile || !cli_is_json(args)) return WEIR_OK;
  cli_json_begin(&w);
  weir_json_key_text(&w, "event", weir_sv_from("profile"));
  cli_profiling_json(profile, args, &w);
  cli_json_end(&w);
  return WEIR_OK;
}

/* |part|: that this process leads; NULL: there is none. */
static int run(const cli_args *args, cli_job *job, cli_train_view *view,
               weir_train_part *part) {
  weir_error err = WEIR_ERROR_INIT;
  weir_trainer *trainer = NULL;
  weir_tools_profile *profile = NULL;
  const weir_tools_profile_opts few = {.skip = WARM_STEPS};
  weir_train_end end = WEIR_TRAIN_END_FAILED;
  weir_session_opts session = {.struct_size = sizeof session,
                               .ref_kernels = args->ref_kernels,
                               .tf32 = args->tf32};
  cli_placing_want want = {.training = true, .replicas = true};
  weir_train_callbacks calls = cli_train_view_calls(view);
  weir_train_opts opts = options_of(args, &session, &calls);
  weir_status s = WEIR_OK;
  cli_signals_watch(NULL); /* before there are threads */
  opts.part = part;
  if (part == NULL) s = cli_cluster_start(job, args, &err);
  if (s == WEIR_OK && part == NULL)
    s = cli_placing_use(job, args, &want, &session, &err);
  if (s == WEIR_OK)
    s = weir_trainer_create(job->runtime, job->graph, &opts, &trainer, &err);
  if (s == WEIR_OK) s = cli_profiling_open(job, args, &few, &profile, &err);
  if (s == WEIR_OK && profile != NULL)
    s = weir_tools_profile_trainer(profile, trainer, &err);
  if (s == WEIR_OK) {
    view->trainer = trainer;
    cli_signals_watch_trainer(trainer);
    s = weir_trainer_run(trainer, &end, &err);
  }
  weir_train_progress p = {.struct_size = sizeof p};
  weir_error ignored = WEIR_ERROR_INIT;
  cli_train_view_clear(view);
  if (trainer != NULL && end != WEIR_TRAIN_END_FAILED &&
      weir_trainer_progress(trainer, &p, &ignored) == WEIR_OK) {
    warn_of_steps(args, view, &p);
    cli_train_view_end(view, end, &p);
  }
  if (s == WEIR_OK && job->used != NULL && !args->quiet && !args->json) {
    cli_note("trained");
    cli_placing_say(job->used);
    cli_cluster_say(job);
    cli_note("\n");
  }
  if (s == WEIR_OK) s = cli_placing_save(job, args, &err);
  if (s == WEIR_OK) s = end_profile(profile, job, args, &err);
  int code = s == WEIR_OK ? 0 : cli_fail(&err);
  cli_signals_watch(NULL);
  weir_trainer_release(trainer);
  weir_tools_profile_release(profile);
  return code != 0 ? code : cli_signal_code(0);
}

static bool no_more_tasks(void *self, const char *name, uint32_t index) {
  (void)self;
  (void)name;
  (void)index;
  return false;
}

/* The evaluator of a cluster, whatever trains in it. It dials nobody, and need
 * not be listed; but the cluster is one. */
static int run_evaluator(const cli_args *args, cli_job *job) {
  weir_error err = WEIR_ERROR_INIT;
  weir_session_opts session = {.struct_size = sizeof session};
  if (strcmp(args->tasks, "graph") != 0 &&
      weir_tools_cluster_tasks(job->runtime, args->tasks, no_more_tasks, NULL,
                               &err) != WEIR_OK)
    return cli_fail(&err);
  cli_signals_watch(NULL); /* before there are threads */
  return cli_follow(job, args, &session);
}

static int run_any(const cli_args *args, cli_job *job, cli_train_view *view) {
  weir_error err = WEIR_ERROR_INIT;
  weir_train_part *part = NULL;
  cli_between way;
  cli_args *own = (cli_args *)(uintptr_t)args;
  if (cli_part_find(job, own, &way, &err) != WEIR_OK) return cli_fail(&err);
  if (way == CLI_BETWEEN_LOCAL) return cli_supervise(job, args);
  if (way == CLI_EVALUATOR) return run_evaluator(args, job);
  if (way == CLI_BETWEEN_NOT) return run(args, job, view, NULL);
  cli_signals_watch(NULL); /* before there are threads */
  if (cli_part_open(job, args, &part, &err) != WEIR_OK) return cli_fail(&err);
  int code = weir_train_part_is_chief(part) ? run(args, job, view, part)
                                            : run_part(args, job, part);
  weir_train_part_release(part);
  return code;
}

/* --mode M is --set train.mode=M. */
static weir_status add_mode(const cli_args *args, char *text, size_t size,
                            weir_error *err) {
  cli_list *sets = (cli_list *)(uintptr_t)&args->overrides;
  if (args->mode == NULL) return WEIR_OK;
  const char **items =
      realloc(sets->items, (sets->count + 1) * sizeof *sets->items);
  if (items == NULL) return cli_no_memory(err);
  snprintf(text, size, "train.mode=%s", args->mode);
  sets->items = items;
  sets->items[sets->count++] = text;
  return WEIR_OK;
}

static int train_command(const cli_args *args) {
  char mode[256];
  weir_error err = WEIR_ERROR_INIT;
  if (args->print_config) return cli_config_print("train", args);
  if (add_mode(args, mode, sizeof mode, &err) != WEIR_OK) return cli_fail(&err);
  /* The graph says which processes there are. */
  ((cli_args *)(uintptr_t)args)->tasks_later = true;
  cli_job job;
  cli_train_view view;
  cli_train_view_init(&view, args);
  int code = cli_job_open(&job, args, -1);
  if (code == 0) code = cli_job_load(&job, args, args->rest[0]);
  if (code == 0) code = run_any(args, &job, &view);
  cli_job_close(&job);
  return code;
}

static const cli_option options[] = {
    INT("steps", "N", steps, NULL, 1, INT64_MAX,
        "end after N updates in all, in place of train:'s number"),
    INT("epochs", "N", epochs, NULL, 1, INT64_MAX,
        "end after N epochs in all, likewise"),
    CHOICE("resume", 0, "auto|none", resume, NULL,
           "auto: go on from the newest checkpoint; none: start anew, and "
           "refuse a folder that has some"),
    TEXT("init", 0, "FILE", init, NULL,
         "first values of variables, by name, from a safetensors file"),
    TEXT("out", 0, "DIR", run_folder, NULL,
         "folder for all files that the graph names"),
    TEXT("events", 0, "DIR", events, NULL,
         "folder of summaries, instead of train: summary: dir:"),
    TEXT("mode", 0, "MODE", mode, NULL,
         "async, sync(aggregate=N) or bounded(staleness=S), in place of "
         "train: mode:"),
    TEXT("addresses", 0, "LIST", addresses, NULL,
         "of all tasks, in the order of --cluster, with commas"),
    TEXT("generations", 0, "DIR", generations, NULL,
         "folder that servers go back to when one died (generations beneath "
         "--checkpoint)"),
    INT("after", "STEP", after_step, NULL, 1, INT64_MAX,
        "an evaluator: a training that ended at this step or before is taken "
        "up again"),
    INT("restarts", "N", restarts, NULL, 0, 1000000,
        "with --local: how often processes that died are started again (3)"),
    INT("servers", "N", servers, NULL, 1, 64,
        "with a sparseCluster of TF_CONFIG, which tells a ps nothing of the "
        "others: how many ps there are"),
    INT("max-workers", "N", max_workers, NULL, 1, 1024,
        "replicas between graphs: workers that may be there at most, those of "
        "--cluster and others, which join while it runs"),
    PROFILE,
    TRAIN_COMMON,
    END};

static const cli_effect effects[] = {
    TASKS_EFFECTS,
    PROFILE_EFFECTS,
    {.option = "map", .with = "init"},
    {.option = NULL},
};

const cli_command cli_command_train = {
    .name = "train",
    .synopsis = "GRAPH.weir.yaml [options]",
    .summary = "train as the graph says",
    .text =
        "Makes gradients and updates from the graph's `train:` section and "
        "runs "
        "them over its\n`data:`. Goes on from the newest checkpoint, if there "
        "is "
        "one. SIGINT: the step is\nfinished, a checkpoint written, exit code "
        "130; "
        "a second one ends at once.",
    .examples =
        "  weir train graphs/mlp_train.weir.yaml --steps 1000\n"
        "  weir train lenet.weir.yaml --checkpoint run1 --json > run1.jsonl\n",
    .options = options,
    .effects = effects,
    .min_rest = 1,
    .max_rest = 1,
    .run = train_command,
};
