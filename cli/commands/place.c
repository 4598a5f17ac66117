/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "cli/config.h"
#include "cli/placing/placing.h"
#include "cli/placing/placing_compare.h"
#include "cli/placing/placing_view.h"
#include "cli/system.h"
#include "cli/table.h"

/* One `weir place`. */
typedef struct place {
  const cli_args *args;
  cli_job job;
  weir_plan_opts opts;
  weir_plan *plan, *before; /* |before|: of --what-if */
  weir_plan_text given;     /* of --given or --plan */
  cli_tensors inputs;
  weir_feed *feeds;
  cli_placing_view view;
  bool observed; /* it is to be carried out */
  int64_t at_ns; /* --timings: the end of the last phase */
} place;

/* ---- Options */

static weir_status read_options(place *p, weir_error *err) {
  const cli_args *a = p->args;
  if (a->node_pattern != NULL && a->node_pattern[0] == '\0')
    return cli_error(err, "W0002",
                     "--nodes is empty, expected a pattern: c1/*, op:matmul");
  const char *given = a->plan != NULL ? a->plan : a->given;
  WEIR_TRY(cli_placing_read(a, given, &p->opts, &p->given, err));
  cli_placing_view_begin(&p->view, a, &p->opts);
  p->opts.cluster = a->cluster;
  if (a->plan == NULL && given != NULL) p->opts.given = &p->given;
  p->opts.inference = a->inference;
  p->opts.replica = !p->observed;
  p->opts.microbatches = (uint32_t)a->microbatches;
  p->opts.in_process = p->observed; /* wants measured costs */
  bool unknown = p->observed && a->costs == NULL && !a->no_run;
  p->opts.calibrate = a->calibrate || unknown;
  return WEIR_OK;
}

/* -i: their shapes count. */
static weir_status read_inputs(place *p, weir_error *err) {
  const cli_list *list = &p->args->inputs;
  for (size_t i = 0; i < list->count; i++)
    WEIR_TRY(cli_input_read(&p->job, p->args, list->items[i], &p->inputs, err));
  p->feeds = cli_tensors_feeds(&p->inputs);
  if (p->feeds == NULL) return cli_no_memory(err);
  p->opts.feeds = p->feeds;
  p->opts.feed_count = list->count;
  return WEIR_OK;
}

static weir_status plan_graph(place *p, weir_error *err) {
  if (p->args->plan != NULL)
    return weir_plan_from_json(p->job.runtime, p->job.graph, &p->opts,
                               &p->given, &p->plan, err);
  return weir_plan_create(p->job.runtime, p->job.graph, &p->opts, &p->plan,
                          err);
}

static weir_status plan_any(place *p, weir_error *err) {
  const char *path = p->args->rest[0];
  if (!cli_placing_is_instance(path)) return plan_graph(p, err);
  return weir_tools_place_file(p->job.runtime, path, &p->opts,
                               p->args->plan != NULL ? &p->given : NULL,
                               (uint32_t)p->args->processors, &p->plan, err);
}

/* All that a plan is made from. */
static int load(place *p) {
  weir_error err = WEIR_ERROR_INIT;
  const char *path = p->args->rest[0];
  weir_status s = read_options(p, &err);
  if (s != WEIR_OK) return cli_fail(&err);
  if (cli_placing_is_instance(path)) {
    s = cli_placing_check_instance(p->args, &err);
    return s == WEIR_OK ? 0 : cli_fail(&err);
  }
  if (p->args->processors != 0) {
    (void)cli_error(&err, "W0002",
                    "--processors is for instances (.stg, .json), not graphs");
    cli_hint(&err, "--cluster names the devices of a graph");
    return cli_fail(&err);
  }
  int code = cli_job_load(&p->job, p->args, path);
  if (code != 0) return code;
  cli_placing_phase(p->args, &p->at_ns, "load");
  s = read_inputs(p, &err);
  return s == WEIR_OK ? 0 : cli_fail(&err);
}

static int make_plan(place *p) {
  weir_error err = WEIR_ERROR_INIT;
  int code = load(p);
  if (code != 0) return code;
  weir_status s = plan_any(p, &err);
  cli_placing_phase(p->args, &p->at_ns, "place");
  return s == WEIR_OK ? 0 : cli_fail(&err);
}

/* ---- --compare: a plan of each placer */

static weir_status plan_by(void *self, const char *placer, bool searches,
                           weir_plan **out, weir_error *err) {
  place *p = self;
  weir_plan_opts kept = p->opts;
  p->opts.placer = placer;
  if (!searches) {
    p->opts.moves = 0;
    p->opts.budget_ns = 0;
    p->opts.portfolio_only = false;
  }
  weir_status s = plan_any(p, err);
  *out = p->plan;
  p->plan = NULL;
  p->opts = kept;
  p->opts.on_diag = cli_placing_say_nothing; /* the first has said it */
  return s;
}

static int compare_placers(place *p) {
  const cli_args *a = p->args;
  weir_error err = WEIR_ERROR_INIT;
  cli_placing_comparer by = {plan_by, p};
  if (cli_placing_compare_form(a, &err) != WEIR_OK) return cli_fail(&err);
  int code = load(p);
  if (code != 0) return code;
  weir_status s = cli_placing_compare(&by, cli_is_json(a), &err);
  cli_placing_view_end(&p->view);
  return s == WEIR_OK ? 0 : cli_fail(&err);
}

/* --what-if: the plan again with the changes. */
static int change_plan(place *p) {
  const cli_args *a = p->args;
  weir_error err = WEIR_ERROR_INIT;
  if (a->what_if.count == 0) return 0;
  p->before = p->plan;
  p->plan = NULL;
  if (p->job.graph == NULL) {
    (void)cli_error(&err, "W3040", "--what-if is for graphs, not instances");
    return cli_fail(&err);
  }
  p->opts.changes = a->what_if.items;
  p->opts.change_count = a->what_if.count;
  p->opts.before = p->before;
  p->opts.calibrate = false; /* that is done */
  weir_status s = plan_graph(p, &err);
  return s == WEIR_OK ? 0 : cli_fail(&err);
}

static weir_status show_changes(const place *p, weir_error *err) {
  const cli_list *list = &p->args->what_if;
  for (size_t i = 0; i < list->count; i++) {
    const char *text = list->items[i];
    if (!cli_out(NULL, "what if: ", 9) || !cli_out(NULL, text, strlen(text)) ||
        !cli_out(NULL, "\n", 1))
      return cli_error(err, "W5009", "the output could not be written");
  }
  return weir_plan_compare(p->before, p->plan, NULL, cli_out, NULL, err);
}

static weir_status show(const place *p, weir_plan_form form, const char *what,
                        weir_error *err) {
  return weir_plan_write(p->plan, form, what, cli_out, NULL, err);
}

static weir_plan_form form_of(const cli_args *a) {
  static const struct {
    const char *name;
    weir_plan_form form;
  } forms[] = {{"table", WEIR_PLAN_TABLE},
               {"dot", WEIR_PLAN_DOT},
               {"trace", WEIR_PLAN_TRACE},
               {"html", WEIR_PLAN_HTML}};
  if (cli_is_json(a)) return WEIR_PLAN_JSON;
  for (size_t i = 0; a->format != NULL && i < sizeof forms / sizeof *forms; i++)
    if (strcmp(a->format, forms[i].name) == 0) return forms[i].form;
  return a->all || a->node_pattern != NULL ? WEIR_PLAN_TABLE
                                           : WEIR_PLAN_SUMMARY;
}

/* The form of --parts. Errors: W0002 where they have none. */
static weir_status parts_form(const cli_args *a, weir_plan_form *form,
                              weir_error *err) {
  *form = WEIR_PLAN_PARTS_TEXT;
  if (!a->parts) return WEIR_OK;
  if (cli_is_json(a))
    *form = WEIR_PLAN_PARTS_JSON;
  else if (a->format != NULL && strcmp(a->format, "dot") == 0)
    *form = WEIR_PLAN_PARTS_DOT;
  else if (a->format != NULL && strcmp(a->format, "text") != 0)
    return cli_error(err, "W0002",
                     "--parts is text, --json or --format dot, not --format %s"
                     " (the page of --format html has them without --parts)",
                     a->format);
  return WEIR_OK;
}

/* --verify and --diff: the answer is the exit code. */
static int compare(const place *p) {
  const cli_args *a = p->args;
  weir_error err = WEIR_ERROR_INIT;
  const char *path = a->verify != NULL ? a->verify : a->diff;
  char *json = NULL;
  weir_plan_text text = {.struct_size = sizeof text, .name = path};
  bool same = true;
  weir_status s = cli_read_plan(path, &json, &text.size, &err);
  text.json = json;
  if (s == WEIR_OK && a->verify != NULL)
    s = weir_plan_verify(p->plan, &text, &err);
  else if (s == WEIR_OK)
    s = weir_plan_diff(p->plan, &text, &same, cli_out, NULL, &err);
  free(json);
  if (s != WEIR_OK) return cli_fail(&err);
  if (a->verify != NULL && !a->quiet) cli_note("%s: a sound plan\n", path);
  return same ? 0 : 1;
}

static int answer(const place *p) {
  const cli_args *a = p->args;
  weir_error err = WEIR_ERROR_INIT;
  weir_status s = WEIR_OK;
  if (a->verify != NULL || a->diff != NULL) return compare(p);
  bool more = a->explain_node != NULL || a->critical || a->memory != NULL ||
              a->parts || p->before != NULL;
  weir_plan_form parts;
  cli_placing_tell_pattern(p->plan, a->node_pattern);
  s = parts_form(a, &parts, &err);
  if (s == WEIR_OK && p->before != NULL && a->format == NULL && !a->json)
    s = show_changes(p, &err);
  if (s != WEIR_OK) return cli_fail(&err);
  bool formatted = (a->format != NULL || a->json) && !a->parts;
  bool silent = a->quiet && form_of(a) == WEIR_PLAN_SUMMARY && !formatted;
  if ((!more && !silent) || formatted || a->all || a->node_pattern != NULL)
    s = show(p, a->parts ? WEIR_PLAN_TABLE : form_of(a), a->node_pattern, &err);
  if (s == WEIR_OK && a->parts) s = show(p, parts, NULL, &err);
  if (s == WEIR_OK && a->critical) s = show(p, WEIR_PLAN_CRITICAL, NULL, &err);
  if (s == WEIR_OK && a->explain_node != NULL)
    s = show(p, WEIR_PLAN_EXPLAIN, a->explain_node, &err);
  if (s == WEIR_OK && a->memory != NULL)
    s = show(p, WEIR_PLAN_MEMORY, a->memory, &err);
  return s == WEIR_OK ? 0 : cli_fail(&err);
}

static void place_release(place *p) {
  weir_plan_release(p->plan);
  weir_plan_release(p->before);
  cli_tensors_release(&p->inputs);
  free(p->feeds);
  cli_plan_text_free(&p->given);
  cli_job_close(&p->job);
}

static int place_command(const cli_args *args) {
  place p = {.args = args, .at_ns = cli_now_ns()};
  if (args->print_config) return cli_config_print("place", args);
  cli_free_at_once();
  int code = cli_job_open(&p.job, args, 1);
  if (code == 0 && args->compare) {
    code = compare_placers(&p);
  } else if (code == 0) {
    code = make_plan(&p);
    if (code == 0) code = change_plan(&p);
    cli_placing_view_end(&p.view);
    if (code == 0) code = answer(&p);
  }
  if (code == 0) code = cli_signal_code(0);
  cli_placing_phase(args, &p.at_ns, "print");
  place_release(&p);
  return code;
}

/* ---- weir trace: the plan carried out here, beside its prediction */

static weir_status write_timeline(const weir_tools_observed *seen,
                                  const char *path, weir_error *err) {
  FILE *file;
  WEIR_TRY(cli_file_create(path, &file, err));
  weir_status s = weir_tools_observed_write(seen, WEIR_PLAN_TRACE, 0,
                                            cli_file_write, file, err);
  return cli_file_close(file, path, s, err);
}

static int observe(const place *p) {
  const cli_args *a = p->args;
  weir_error err = WEIR_ERROR_INIT;
  weir_tools_observed *seen = NULL;
  weir_plan_form form = cli_is_json(a) ? WEIR_PLAN_JSON : WEIR_PLAN_TABLE;
  weir_status s = weir_tools_plan_observe(p->plan, p->job.runtime, p->job.graph,
                                          &p->opts, !a->no_run, &seen, &err);
  if (s == WEIR_OK)
    s = weir_tools_observed_write(seen, form, a->all ? SIZE_MAX : 0, cli_out,
                                  NULL, &err);
  if (s == WEIR_OK && a->trace != NULL)
    s = write_timeline(seen, a->trace, &err);
  weir_tools_observed_release(seen);
  return s == WEIR_OK ? 0 : cli_fail(&err);
}

static int trace_command(const cli_args *args) {
  place p = {.args = args, .observed = true};
  if (args->print_config) return cli_config_print("trace", args);
  int code = cli_job_open(&p.job, args, 1);
  if (code == 0) code = make_plan(&p);
  cli_placing_view_end(&p.view);
  if (code == 0) code = observe(&p);
  if (code == 0) code = cli_signal_code(0);
  cli_placing_phase(args, &p.at_ns, "print");
  place_release(&p);
  return code;
}

static const cli_option place_options[] = {
    CLUSTER,
    INT("processors", "N", processors, NULL, 1, 1024,
        "equal devices for an instance file (4)"),
    OBJECTIVE,
    INT("microbatches", "M", microbatches, NULL, 1, 1000000,
        "batches in flight in a pipeline (8)"),
    BUDGET_AND_VERBOSE,
    FLAG("calibrate", 0, calibrate, "run the graph and measure its nodes"),
    TEXT("costs", 0, "FILE", costs, NULL,
         "measured costs: used, and with --calibrate written"),
    PLACER,
    TEXT("assume-kernels", 0, "KIND", assume_kernels, NULL,
         "count every op as having a kernel on devices of KIND (gpu); such a "
         "plan cannot be run"),
    FLAG("compare", 0, compare,
         "a table of all placers: their plans' figures and their time"),
    FLAG("strict-placement", 0, strict_placement,
         "no request is dropped, whatever a rule says"),
    TEXT("explain", 0, "NODE", explain_node, NULL,
         "why NODE is on its device, and the cost of moving it"),
    FLAG("inference", 0, inference,
         "place the outputs, though the graph has `train`"),
    FLAG("all", 0, all, "a line per node"),
    FLAG("timings", 0, timings,
         "seconds and peak memory of each phase, to standard error"),
    FLAG("critical", 0, critical,
         "the chain of nodes, copies and waits that makes the step"),
    FLAG("parts", 0, parts,
         "what each device does, sends and receives; with --json or --format "
         "dot too"),
    TEXT("memory", 0, "DEVICE", memory, NULL,
         "the moment of DEVICE's peak and its largest holders"),
    PLANS,
    TEXT("verify", 0, "PLAN", verify, NULL,
         "check PLAN against the model; exit 4 when it breaks a rule"),
    TEXT("diff", 0, "PLAN", diff, NULL,
         "print the differences from PLAN; exit 1 when there are some"),
    TEXT("nodes", 0, "PATTERN", node_pattern, NULL,
         "rows of a table or JSON: c1/*, op:matmul, kind:var"),
    LIST("what-if", 0, "CHANGE", what_if,
         "the effect of a change: pin N=DEVICE, add JOB, add gpu:JOB, remove "
         "DEVICE, memory DEVICE=BYTES, link network=LATENCY,BANDWIDTH"),
    SHAPES,
    TIMED_GRAPH_OPTIONS,
    CHOICE("format", 0, "text|table|json|dot|trace|html", format, "WEIR_FORMAT",
           "how the plan is printed"),
    JSON_FORMAT,
    QUIET,
    COMMON,
    END};

#define GIVEN_WITHOUT_PLAN                                            \
  {                                                                   \
    .option = "given", .without = "plan",                             \
    .why = "--plan takes a plan as it is, so there are no candidates" \
  }

/* The whole answer of --verify is its exit code, of --diff the differences. */
#define SAYS_NOTHING(name)                                   \
  {.option = name,                                           \
   .without = "verify",                                      \
   .why = "--verify says whether a plan is sound, no more"}, \
  {                                                          \
    .option = name, .without = "diff",                       \
    .why = "--diff prints the differences, no more"          \
  }

#define COMPARE_WITHOUT(other)                                             \
  {                                                                        \
    .option = "compare", .without = other,                                 \
    .why = "--compare makes a plan with each placer and shows its figures" \
  }

static const cli_effect place_effects[] = {
    GIVEN_WITHOUT_PLAN,
    {.option = "verbose", .with = "budget"},
    SAYS_NOTHING("explain"),
    SAYS_NOTHING("critical"),
    SAYS_NOTHING("format"),
    SAYS_NOTHING("json"),
    SAYS_NOTHING("all"),
    SAYS_NOTHING("nodes"),
    SAYS_NOTHING("parts"),
    SAYS_NOTHING("memory"),
    COMPARE_WITHOUT("placer"),
    COMPARE_WITHOUT("plan"),
    COMPARE_WITHOUT("verify"),
    COMPARE_WITHOUT("diff"),
    COMPARE_WITHOUT("what-if"),
    COMPARE_WITHOUT("explain"),
    COMPARE_WITHOUT("critical"),
    COMPARE_WITHOUT("memory"),
    COMPARE_WITHOUT("parts"),
    COMPARE_WITHOUT("nodes"),
    COMPARE_WITHOUT("all"),
    {.option = "verify",
     .without = "diff",
     .why = "the exit code is the answer of one of them"},
    {.option = NULL},
};

const cli_command cli_command_place = {
    .name = "place",
    .synopsis = "GRAPH.weir.yaml|FILE.stg|FILE.json [options]",
    .summary = "decide which node runs where",
    .text =
        "Places the graph on a cluster, which need not exist, and reports the "
        "step by the model,\nits distance from a lower bound, and the reason "
        "for "
        "each node's device. While --budget\nlasts, a terminal shows the best "
        "step so far; SIGINT ends the search: its best plan is\nprinted, exit "
        "code 130.",
    .examples =
        "  weir place graphs/lenet.weir.yaml --cluster ps=1,worker=2\n"
        "  weir place graphs/lenet.weir.yaml --explain c1/conv2d\n"
        "  weir place graphs/lenet.weir.yaml --format html > plan.html\n"
        "  weir place graphs/lenet.weir.yaml --what-if \"add gpu:worker\"\n"
        "  weir place graphs/lenet.weir.yaml --calibrate --costs lenet.costs\n"
        "  weir place rand0000.stg --processors 4 --json\n",
    .options = place_options,
    .effects = place_effects,
    .min_rest = 1,
    .max_rest = 1,
    .run = place_command,
};

static const cli_option trace_options[] = {
    CLUSTER,
    BUDGET_AND_VERBOSE,
    PLACER,
    STRICT_WHEN(""),
    FLAG("calibrate", 0, calibrate, "measure into the file of --costs first"),
    TEXT("costs", 0, "FILE", costs, NULL,
         "measured costs (without it the graph is measured first)"),
    FLAG("inference", 0, inference,
         "the outputs, though the graph has `train`"),
    PLANS,
    TEXT("output", 'o', "FILE", trace, NULL,
         "write both timelines for Perfetto"),
    FLAG("all", 0, all, "every node and copy, not only the worst"),
    FLAG("no-run", 0, no_run,
         "compile only: the memory of each device, no times"),
    SHAPES,
    ISA,
    TIMED_GRAPH_OPTIONS,
    CHOICE("format", 0, "text|table|json", format, "WEIR_FORMAT",
           "the form of the output; text is the table"),
    JSON_FORMAT,
    COMMON,
    END};

#define NO_TIMES "--no-run measures no times"

static const cli_effect trace_effects[] = {
    GIVEN_WITHOUT_PLAN,
    {.option = "verbose", .with = "budget"},
    {.option = "output", .without = "no-run", .why = NO_TIMES},
    {.option = "all", .without = "no-run", .why = NO_TIMES},
    {.option = NULL},
};

const cli_command cli_command_trace = {
    .name = "trace",
    .synopsis = "GRAPH.weir.yaml [options]",
    .summary = "carry a plan out and compare it with its prediction",
    .text =
        "Places the graph, runs it on the devices of this process with random "
        "inputs, and reports\nthe predicted and the measured time of the step, "
        "each node and each copy.",
    .examples =
        "  weir trace graphs/lenet.weir.yaml --inference --cluster auto\n"
        "  weir trace graphs/mlp.weir.yaml --costs here.costs -o mlp.json\n",
    .options = trace_options,
    .effects = trace_effects,
    .min_rest = 1,
    .max_rest = 1,
    .run = trace_command,
};
