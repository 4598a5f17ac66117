/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/placing.h"

#include <stdlib.h>

static void on_warning(void *self, const weir_diag *diag) {
  (void)self;
  weir_diag_write(diag, WEIR_DIAG_FORM_HUMAN, cli_color(), NULL, NULL, cli_err,
                  NULL);
}

/* "200000" moves, or "1s". */
static weir_status read_budget(const char *text, weir_tools_place_opts *out,
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

weir_status cli_placing_read(const cli_args *a, const char *given,
                             weir_tools_place_opts *out, char **text,
                             weir_error *err) {
  *text = NULL;
  *out = (weir_tools_place_opts){.struct_size = sizeof *out,
                                 .strictness = a->strict_placement ? 1 : 0,
                                 .seed = (uint64_t)a->seed,
                                 .placer = a->placer,
                                 .costs = a->costs,
                                 .objective = a->objective,
                                 .on_diag = on_warning};
  WEIR_TRY(read_budget(a->budget, out, err));
  if (given == NULL) return WEIR_OK;
  WEIR_TRY(cli_read_plan(given, text, &out->given_size, err));
  out->given = *text;
  out->given_name = given;
  return WEIR_OK;
}

/* ---- Commands that run */

static weir_status check_alone(const cli_args *a, weir_error *err) {
  const struct {
    const char *name, *value;
  } needing[] = {{"placer", a->placer}, {"objective", a->objective},
                 {"budget", a->budget}, {"costs", a->costs},
                 {"plan", a->plan},     {"save-plan", a->save_plan}};
  for (size_t i = 0; i < sizeof needing / sizeof *needing; i++)
    if (needing[i].value != NULL)
      return cli_error(err, "W0002", "--%s needs --in-process SPEC",
                       needing[i].name);
  return WEIR_OK;
}

/* Keeps the largest: of a training the step. */
static void on_plan(void *self, const weir_plan *plan) {
  cli_job *job = self;
  weir_error ignored = WEIR_ERROR_INIT;
  (void)weir_tools_plan_keep(job->runtime, plan, &job->used, &ignored);
}

static weir_status make_plan(cli_job *job, const cli_args *a,
                             const cli_placing_want *want, weir_error *err) {
  weir_tools_place_opts o;
  char *text = NULL;
  size_t count = want->inputs == NULL ? 0 : want->inputs->count;
  weir_feed *feeds = calloc(count + 1, sizeof *feeds);
  if (feeds == NULL) return cli_error(err, "W6001", "out of memory");
  for (size_t i = 0; i < count; i++)
    feeds[i] =
        (weir_feed)WEIR_FEED(want->inputs->names[i], want->inputs->items[i]);
  weir_status s = cli_placing_read(a, a->plan, &o, &text, err);
  o.cluster = a->in_process;
  o.inference = !want->training;
  o.feeds = feeds;
  o.feed_count = count;
  o.replay = a->plan != NULL;
  o.open = a->plan == NULL;
  if (!a->verbose) o.on_diag = NULL;
  if (s == WEIR_OK)
    s = weir_tools_place_graph(job->runtime, job->graph, &o, &job->plan, err);
  free(text);
  free(feeds);
  return s;
}

weir_status cli_placing_use(cli_job *job, const cli_args *a,
                            const cli_placing_want *want,
                            weir_session_opts *opts, weir_error *err) {
  if (a->in_process == NULL) return check_alone(a, err);
  WEIR_TRY(make_plan(job, a, want, err));
  opts->placed = weir_tools_plan_get(job->plan);
  opts->placed_only = a->plan != NULL && want->one_program;
  opts->on_placed = a->verbose ? cli_err : NULL;
  opts->on_plan = a->save_plan != NULL ? on_plan : NULL;
  opts->on_plan_self = job;
  return WEIR_OK;
}

weir_status cli_placing_save(const cli_job *job, const cli_args *a,
                             weir_error *err) {
  if (a->save_plan == NULL || job->used == NULL) return WEIR_OK;
  FILE *file = fopen(a->save_plan, "we");
  if (file == NULL)
    return cli_error(err, "W5009", "%s cannot be written", a->save_plan);
  weir_status s = weir_tools_plan_write(job->used, WEIR_PLAN_JSON, NULL,
                                        cli_file_write, file, err);
  if (fclose(file) != 0 && s == WEIR_OK)
    s = cli_error(err, "W5009", "%s cannot be written", a->save_plan);
  return s;
}
