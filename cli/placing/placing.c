/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/placing/placing.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cluster/cluster.h"
#include "cli/system.h"

static void on_warning(void *self, const weir_diag *diag) {
  (void)self;
  weir_diag_write(diag, WEIR_DIAG_FORM_HUMAN, cli_color(), NULL, NULL, cli_err,
                  NULL);
}

/* Of a run, which says little: a device that it was told of is not there. */
static void on_missing(void *self, const weir_diag *diag) {
  if (strcmp(weir_diag_error(diag)->id, "W6004") == 0) on_warning(self, diag);
}

/* "200000" moves, or "1s". */
static weir_status read_budget(const char *text, weir_plan_opts *out,
                               weir_error *err) {
  int64_t moves;
  if (text == NULL) return WEIR_OK;
  if (cli_parse_int(text, &moves) && moves >= 0) {
    out->moves = (uint64_t)moves;
    out->portfolio_only = moves == 0;
    return WEIR_OK;
  }
  if (cli_parse_time(text, &out->budget_ns)) return WEIR_OK;
  return cli_error(err, "W0002",
                   "--budget %s, expected a number of moves or a time (1s)",
                   text);
}

/* A placer that places by a rule does not search. The default one does. */
static weir_status check_budget(const cli_args *a, weir_error *err) {
  weir_tools_row first;
  if (a->budget == NULL || weir_tools_placer_searches(a->placer))
    return WEIR_OK;
  (void)weir_tools_placer(0, &first);
  return cli_error(err, "W0001",
                   "--budget has no effect with --placer %s; it is for %s",
                   a->placer, first.name);
}

weir_status cli_placing_read(const cli_args *a, const char *given,
                             weir_plan_opts *out, weir_plan_text *text,
                             weir_error *err) {
  *text = (weir_plan_text){.struct_size = sizeof *text, .name = given};
  *out = (weir_plan_opts){.struct_size = sizeof *out,
                          .strictness = a->strict_placement ? 1 : 0,
                          .seed = (uint64_t)a->seed,
                          .placer = a->placer,
                          .costs = a->costs,
                          .objective = a->objective,
                          .assume_kernels = a->assume_kernels,
                          .on_diag = on_warning};
  WEIR_TRY(check_budget(a, err));
  WEIR_TRY(read_budget(a->budget, out, err));
  if (given == NULL) return WEIR_OK;
  char *json;
  WEIR_TRY(cli_read_plan(given, &json, &text->size, err));
  text->json = json;
  return WEIR_OK;
}

void cli_plan_text_free(weir_plan_text *text) {
  free((char *)(uintptr_t)text->json);
}

/* ---- Commands that run */

/* The option of the line that is about a placing; NULL: there is none. */
static const char *placing_option(const cli_args *a) {
  const struct {
    const char *name, *value;
  } placing[] = {{"placer", a->placer},
                 {"objective", a->objective},
                 {"budget", a->budget},
                 {"costs", a->costs},
                 {"plan", a->plan},
                 {"save-plan", a->save_plan},
                 {"strict-placement", a->strict_placement ? "" : NULL}};
  for (size_t i = 0; i < sizeof placing / sizeof *placing; i++)
    if (placing[i].value != NULL) return placing[i].name;
  return NULL;
}

static weir_status check_alone(const cli_args *a, weir_error *err) {
  const char *name = placing_option(a);
  if (name == NULL) return WEIR_OK;
  return cli_error(err, "W0002",
                   "--%s needs --in-process, --cluster or --local", name);
}

/* The cluster of this process; NULL: it is of tasks, or there is none. Of
 * --cluster auto no task is known by now, so this process is all. */
static const char *own_cluster(const cli_args *a) {
  if (a->in_process != NULL || cli_cluster_text(a) != NULL)
    return a->in_process;
  return a->tasks;
}

/* Options of tasks, where --cluster auto found none. */
static void tell_no_tasks(const cli_args *a) {
  const struct {
    const char *name;
    bool given;
  } of_tasks[] = {{"share", a->share != NULL},
                  {"heartbeat", a->heartbeat_ns != 0},
                  {"start-timeout", a->start_ns != 0},
                  {"step-timeout", a->step_ns != 0},
                  {"insecure", a->insecure && a->serve == NULL}};
  if (a->tasks == NULL || cli_cluster_text(a) != NULL) return;
  for (size_t i = 0; i < sizeof of_tasks / sizeof *of_tasks; i++)
    if (of_tasks[i].given)
      cli_note("warning: --%s has no effect: --cluster auto is this machine\n",
               of_tasks[i].name);
}

static void show_plan(const weir_plan *plan) {
  weir_error ignored = WEIR_ERROR_INIT;
  /* That it cannot be shown is no reason not to run. */
  (void)weir_plan_write(plan, WEIR_PLAN_SUMMARY, NULL, cli_err, NULL, &ignored);
}

/* Keeps the largest: of a training the step. */
static void on_plan(void *self, const weir_plan *plan) {
  cli_job *job = self;
  if (job->show_plans) show_plan(plan);
  if (job->used != NULL && weir_plan_count(plan, WEIR_PLAN_NODES) <=
                               weir_plan_count(job->used, WEIR_PLAN_NODES))
    return;
  weir_plan_release(job->used);
  job->used = weir_plan_retain(plan);
}

static weir_status make_plan(cli_job *job, const cli_args *a,
                             const cli_placing_want *want, weir_error *err) {
  weir_plan_opts o;
  weir_plan_text text;
  cli_tensors none = {0};
  const cli_tensors *inputs = want->inputs != NULL ? want->inputs : &none;
  weir_feed *feeds = cli_tensors_feeds(inputs);
  if (feeds == NULL) return cli_no_memory(err);
  weir_status s = cli_placing_read(a, a->plan, &o, &text, err);
  o.cluster = own_cluster(a) != NULL ? own_cluster(a) : cli_cluster_text(a);
  o.inference = !want->training;
  o.replica = want->replicas && own_cluster(a) != NULL;
  o.feeds = feeds;
  o.feed_count = inputs->count;
  o.open = a->plan == NULL;
  o.present = own_cluster(a) != NULL;
  if (!a->verbose) o.on_diag = on_missing;
  if (s == WEIR_OK)
    s = a->plan != NULL
            ? weir_plan_from_json(job->runtime, job->graph, &o, &text,
                                  &job->plan, err)
            : weir_plan_create(job->runtime, job->graph, &o, &job->plan, err);
  cli_plan_text_free(&text);
  free(feeds);
  return s;
}

weir_status cli_placing_use(cli_job *job, const cli_args *a,
                            const cli_placing_want *want,
                            weir_session_opts *opts, weir_error *err) {
  if (own_cluster(a) == NULL && cli_cluster_text(a) == NULL)
    return check_alone(a, err);
  tell_no_tasks(a);
  bool deal = want->deal && placing_option(a) == NULL;
  WEIR_TRY(cli_cluster_open(job, a, deal, opts, err));
  if (job->dealt != NULL) return WEIR_OK;
  WEIR_TRY(make_plan(job, a, want, err));
  job->show_plans = a->verbose;
  opts->plan = job->plan;
  opts->plan_only = a->plan != NULL && want->one_program;
  opts->on_plan = on_plan;
  opts->on_plan_self = job;
  return WEIR_OK;
}

weir_status cli_placing_save(const cli_job *job, const cli_args *a,
                             weir_error *err) {
  /* Replicas are placed by their template, and no program of theirs is. */
  const weir_plan *plan = job->used != NULL ? job->used : job->plan;
  if (a->save_plan == NULL || plan == NULL) return WEIR_OK;
  FILE *file;
  WEIR_TRY(cli_file_create(a->save_plan, &file, err));
  weir_status s =
      weir_plan_write(plan, WEIR_PLAN_JSON, NULL, cli_file_write, file, err);
  return cli_file_close(file, a->save_plan, s, err);
}

void cli_placing_say(const weir_plan *plan) {
  weir_error err = WEIR_ERROR_INIT;
  weir_plan_device d = {.struct_size = sizeof d};
  size_t count = 0, all = weir_plan_count(plan, WEIR_PLAN_DEVICES);
  for (int pass = 0; pass < 2; pass++) {
    const char *between = "";
    for (size_t i = 0; i < all; i++) {
      if (weir_plan_device_at(plan, i, &d, &err) != WEIR_OK || d.nodes == 0)
        continue;
      if (pass == 0)
        count++;
      else
        cli_note("%s%.*s", between, (int)d.name.size, d.name.data);
      between = ", ";
    }
    if (pass == 0 && count == 1) cli_note(" on ");
    if (pass == 0 && count != 1) cli_note(" on %zu devices: ", count);
  }
}

void cli_placing_tell_pattern(const weir_plan *plan, const char *pattern) {
  if (pattern == NULL || weir_tools_plan_has(plan, pattern)) return;
  cli_note("weir place: no node of the plan fits --nodes %s\n", pattern);
}

void cli_placing_phase(const cli_args *args, int64_t *at_ns,
                       const char *phase) {
  int64_t now = cli_now_ns(), mb = cli_peak_bytes() / 1000000;
  if (args->timings)
    cli_note("%-6s %9.3f s   peak so far %6lld MB\n", phase,
             (double)(now - *at_ns) / 1e9, (long long)mb);
  *at_ns = now;
}

/* ---- Instances */

bool cli_placing_is_instance(const char *path) {
  size_t n = strlen(path);
  return (n > 4 && strcmp(path + n - 4, ".stg") == 0) ||
         (n > 5 && strcmp(path + n - 5, ".json") == 0);
}

weir_status cli_placing_check_instance(const cli_args *a, weir_error *err) {
  static const char *const of_graphs[] = {
      "input", "param",     "limit",          "cluster",         "calibrate",
      "costs", "inference", "assume-kernels", "strict-placement"};
  for (size_t i = 0; i < sizeof of_graphs / sizeof *of_graphs; i++)
    if (cli_option_is_given(cli_command_find("place"), a, of_graphs[i]))
      return cli_error(err, "W0002",
                       "--%s is for graphs, not instances (.stg, .json)",
                       of_graphs[i]);
  return WEIR_OK;
}
