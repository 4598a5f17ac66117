/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cluster/cluster.h"
#include "cli/config.h"
#include "cli/measuring/profiling.h"
#include "cli/placing/placing.h"
#include "cli/system.h"
#include "cli/table.h"
#include "runtime/base/quantity.h"

/* One `weir run`. */
typedef struct run {
  const cli_args *args;
  cli_job job;
  cli_tensors inputs;
  char **names; /* of the fetches, owned */
  weir_fetch *fetches;
  weir_error *errors; /* of each fetch */
  size_t fetch_count;
  weir_tools_profile *profile;   /* or NULL */
  weir_trace *own_trace, *trace; /* the second is the first, or the profile's */
  int64_t ns;                    /* how long it took */
} run;

/* ---- Fetches */

static bool is_asked(const run *r, const char *name, size_t size) {
  for (size_t i = 0; i < r->fetch_count; i++)
    if (strlen(r->names[i]) == size && memcmp(r->names[i], name, size) == 0)
      return true;
  return false;
}

static weir_status ask(run *r, const char *name, size_t size, weir_error *err) {
  if (is_asked(r, name, size)) return WEIR_OK;
  char *copy = strndup(name, size);
  if (copy == NULL) return cli_no_memory(err);
  r->names[r->fetch_count] = copy;
  r->fetches[r->fetch_count] = (weir_fetch)WEIR_FETCH(copy);
  r->fetches[r->fetch_count].error = &r->errors[r->fetch_count];
  r->errors[r->fetch_count] = (weir_error)WEIR_ERROR_INIT;
  r->fetch_count++;
  return WEIR_OK;
}

/* The names before "=" of -o and --expect. */
static weir_status ask_list(run *r, const cli_list *list, const char *option,
                            weir_error *err) {
  for (size_t i = 0; i < list->count; i++) {
    const char *text = list->items[i], *equals = strchr(text, '=');
    if (strcmp(text, "-") == 0 && strcmp(option, "-o") == 0) continue;
    if (equals == NULL || equals == text)
      return cli_error(err, "W0002", "%s %.80s, expected NAME=@FILE", option,
                       text);
    WEIR_TRY(ask(r, text, (size_t)(equals - text), err));
  }
  return WEIR_OK;
}

static weir_status ask_all(run *r, weir_error *err) {
  size_t count = weir_graph_io_count(r->job.graph, WEIR_OUTPUT);
  for (size_t i = 0; i < count; i++) {
    weir_io_desc io = {.struct_size = sizeof io};
    WEIR_TRY(weir_graph_io(r->job.graph, WEIR_OUTPUT, i, &io, err));
    WEIR_TRY(ask(r, io.name, io.name_size, err));
  }
  return WEIR_OK;
}

/* "-o -" writes the only output to standard output. */
static bool writes_bare(const cli_args *args) {
  for (size_t i = 0; i < args->outputs.count; i++)
    if (strcmp(args->outputs.items[i], "-") == 0) return true;
  return false;
}

static weir_status choose_fetches(run *r, weir_error *err) {
  const cli_args *a = r->args;
  if (a->profile && writes_bare(a))
    return cli_error(err, "W0001",
                     "--profile and -o - both write standard output; "
                     "--profile-html FILE writes a file");
  size_t most = weir_graph_io_count(r->job.graph, WEIR_OUTPUT) +
                a->outputs.count + a->expects.count + 1;
  r->names = calloc(most, sizeof *r->names);
  r->fetches = calloc(most, sizeof *r->fetches);
  r->errors = calloc(most, sizeof *r->errors);
  if (r->names == NULL || r->fetches == NULL || r->errors == NULL)
    return cli_no_memory(err);
  WEIR_TRY(ask_list(r, &a->outputs, "-o", err));
  WEIR_TRY(ask_list(r, &a->expects, "--expect", err));
  bool some = r->fetch_count != 0 || a->targets.count != 0;
  return some && !writes_bare(a) ? WEIR_OK : ask_all(r, err);
}

/* ---- Running */

static void on_value(void *self, const char *node, size_t node_size,
                     uint32_t port, const weir_tensor *tensor) {
  const run *r = self;
  char name[512];
  bool first = port == 0;
  bool named = false;
  snprintf(name, sizeof name, "%.*s", (int)(node_size < 480 ? node_size : 480),
           node);
  for (size_t i = 0; i < r->args->targets.count && !named; i++)
    named = strcmp(r->args->targets.items[i], name) == 0;
  for (size_t i = 0; i < r->args->dumps.count && !named; i++)
    named = strcmp(r->args->dumps.items[i], name) == 0;
  if (!named) return;
  if (!first) {
    size_t used = strlen(name);
    snprintf(name + used, sizeof name - used, ":%u", port);
  }
  weir_tools_tensor_print(name, tensor, r->args->full, cli_out, NULL);
}

/* A profile has a trace, which --trace writes then. */
static weir_status open_trace(run *r, weir_error *err) {
  enum { EVENTS = 1 << 20 };
  const weir_tools_profile_opts opts = {.steps = 1, .max_events = EVENTS};
  WEIR_TRY(cli_profiling_open(&r->job, r->args, &opts, &r->profile, err));
  if (r->profile != NULL) {
    r->trace = weir_tools_profile_trace(r->profile);
    return WEIR_OK;
  }
  if (r->args->trace == NULL) return WEIR_OK;
  weir_status s = weir_trace_create(r->job.runtime, EVENTS, &r->own_trace, err);
  r->trace = r->own_trace;
  return s;
}

static weir_status execute(run *r, weir_error *err) {
  const cli_args *a = r->args;
  size_t watched = a->targets.count + a->dumps.count;
  const char **dump = calloc(watched + 1, sizeof *dump);
  weir_feed *feeds = cli_tensors_feeds(&r->inputs);
  weir_status s = dump == NULL || feeds == NULL ? cli_no_memory(err) : WEIR_OK;
  for (size_t i = 0; s == WEIR_OK && i < watched; i++)
    dump[i] = i < a->targets.count ? a->targets.items[i]
                                   : a->dumps.items[i - a->targets.count];
  if (s == WEIR_OK) s = open_trace(r, err);
  weir_run_opts opts = {.struct_size = sizeof opts,
                        .trap_nan = a->trap_nan,
                        .dump = dump,
                        .dump_count = watched,
                        .on_value = watched != 0 ? on_value : NULL,
                        .self = r,
                        .trace = r->trace};
  weir_run_request request = {.struct_size = sizeof request,
                              .feeds = feeds,
                              .feed_count = r->inputs.count,
                              .fetches = r->fetches,
                              .fetch_count = r->fetch_count,
                              .targets = a->targets.items,
                              .target_count = a->targets.count};
  int64_t start = cli_now_ns();
  if (s == WEIR_OK) s = weir_session_run(r->job.session, &request, &opts, err);
  r->ns = cli_now_ns() - start;
  if (s == WEIR_OK && r->profile != NULL)
    s = weir_tools_profile_take(r->profile, -1, err);
  free(dump);
  free(feeds);
  return s;
}

/* ---- Results */

static const weir_fetch *fetch_of(const run *r, const char *name, size_t size) {
  for (size_t i = 0; i < r->fetch_count; i++)
    if (strlen(r->names[i]) == size && memcmp(r->names[i], name, size) == 0)
      return &r->fetches[i];
  return NULL;
}

static bool is_stdout(const char *file) {
  return strcmp(file, "-") == 0 || strcmp(file, "@-") == 0;
}

static weir_status write_stdout(run *r, const weir_fetch *fetch,
                                weir_error *err) {
  const weir_tensor *tensor = fetch->tensor;
  return weir_tensor_write_stream(
      r->job.runtime, WEIR_FILE_NPY,
      &(weir_tensor_list)WEIR_TENSOR_LIST(1, &fetch->name, &tensor), cli_out,
      NULL, err);
}

/* Writes all outputs that go to the file of the i-th -o, unless one before it
 * did. */
static weir_status write_file(run *r, size_t i, weir_error *err) {
  const cli_list *list = &r->args->outputs;
  const char *file = strchr(list->items[i], '=') + 1;
  const char **names = calloc(list->count, sizeof *names);
  const weir_tensor **tensors = calloc(list->count, sizeof *tensors);
  size_t count = 0;
  bool done = false;
  weir_status s =
      names == NULL || tensors == NULL ? cli_no_memory(err) : WEIR_OK;
  for (size_t k = 0; s == WEIR_OK && k < list->count; k++) {
    const char *equals = strchr(list->items[k], '=');
    if (equals == NULL || strcmp(equals + 1, file) != 0) continue;
    const weir_fetch *f =
        fetch_of(r, list->items[k], (size_t)(equals - list->items[k]));
    if (f == NULL || f->tensor == NULL) continue;
    done = done || k < i;
    names[count] = f->name;
    tensors[count++] = f->tensor;
  }
  if (s == WEIR_OK && count != 0 && !done)
    s = weir_tensor_write_file(
        r->job.runtime, file + (*file == '@'),
        &(weir_tensor_list)WEIR_TENSOR_LIST(count, names, tensors), err);
  free(names);
  free(tensors);
  return s;
}

static weir_status write_outputs(run *r, weir_error *err) {
  const cli_list *list = &r->args->outputs;
  for (size_t i = 0; i < list->count; i++) {
    const char *equals = strchr(list->items[i], '=');
    const char *file = equals != NULL ? equals + 1 : list->items[i];
    const weir_fetch *fetch =
        equals != NULL
            ? fetch_of(r, list->items[i], (size_t)(equals - list->items[i]))
            : (r->fetch_count == 1 ? &r->fetches[0] : NULL);
    if (equals == NULL && fetch == NULL)
      return cli_error(err, "W0001",
                       "-o - needs a name: the graph has %zu outputs",
                       r->fetch_count);
    if (fetch == NULL || fetch->tensor == NULL) continue;
    if (is_stdout(file))
      WEIR_TRY(write_stdout(r, fetch, err));
    else
      WEIR_TRY(write_file(r, i, err));
  }
  return WEIR_OK;
}

static void print_json(const run *r) {
  size_t count = 0;
  const char **names = calloc(r->fetch_count + 1, sizeof *names);
  const weir_tensor **tensors = calloc(r->fetch_count + 1, sizeof *tensors);
  for (size_t i = 0; names != NULL && tensors != NULL && i < r->fetch_count;
       i++) {
    if (r->fetches[i].tensor == NULL) continue;
    names[count] = r->names[i];
    tensors[count++] = r->fetches[i].tensor;
  }
  weir_tools_outputs_json(count, names, tensors, cli_out, NULL);
  free(names);
  free(tensors);
}

static void print_outputs(const run *r) {
  const cli_args *a = r->args;
  bool json = cli_is_json(a);
  if (json && a->outputs.count == 0) print_json(r);
  if (json || a->outputs.count + a->expects.count != 0) return;
  for (size_t i = 0; i < r->fetch_count; i++)
    if (r->fetches[i].tensor != NULL)
      weir_tools_tensor_print(r->names[i], r->fetches[i].tensor, a->full,
                              cli_out, NULL);
}

static weir_status write_trace(const run *r, weir_error *err) {
  const char *path = r->args->trace;
  FILE *file;
  if (r->trace == NULL || path == NULL) return WEIR_OK;
  WEIR_TRY(cli_file_create(path, &file, err));
  weir_status s = WEIR_OK;
  if (!weir_trace_write(r->trace, cli_file_write, file))
    s = cli_error(err, "W5009", "%s cannot be written", path);
  return cli_file_close(file, path, s, err);
}

/* As text or as a line of JSON, behind the outputs. */
static weir_status write_profile(const run *r, weir_error *err) {
  weir_json_writer w;
  WEIR_TRY(cli_profiling_end(r->profile, &r->job, r->args, "run", err));
  if (!r->args->profile || !cli_is_json(r->args)) return WEIR_OK;
  cli_json_begin(&w);
  cli_profiling_json(r->profile, r->args, &w);
  cli_json_end(&w);
  return WEIR_OK;
}

static void say_ran(run *r) {
  weir_error err = WEIR_ERROR_INIT;
  const cli_list *targets = &r->args->targets;
  size_t nodes = 0, count = r->fetch_count + targets->count;
  if (r->args->quiet) return;
  const char **names = calloc(count + 1, sizeof *names);
  for (size_t i = 0; names != NULL && i < count; i++)
    names[i] =
        i < r->fetch_count ? r->names[i] : targets->items[i - r->fetch_count];
  if (names != NULL &&
      weir_tools_needed_nodes(r->job.graph, count, names, r->inputs.count,
                              (const char *const *)r->inputs.names, &nodes,
                              &err) == WEIR_OK) {
    char took[WEIR_QUANTITY_TEXT];
    cli_note("ran %zu node%s in %s", nodes, nodes == 1 ? "" : "s",
             weir_quantity_print_time(r->ns, took));
    if (r->job.used != NULL)
      cli_placing_say(r->job.used);
    else
      cli_note(" on /job:localhost/task:0/device:CPU:0");
    cli_cluster_say(&r->job);
    cli_note("\n");
  }
  free(names);
}

/* ---- The command */

/* Reads inputs, runs, delivers the outputs that did not fail. */
static int run_loaded(run *r) {
  weir_error err = WEIR_ERROR_INIT;
  weir_status s = WEIR_OK;
  for (size_t i = 0; s == WEIR_OK && i < r->args->inputs.count; i++)
    s = cli_input_read(&r->job, r->args, r->args->inputs.items[i], &r->inputs,
                       &err);
  if (s == WEIR_OK) s = choose_fetches(r, &err);
  if (s != WEIR_OK) return cli_fail(&err);
  int code = cli_job_session(&r->job, r->args, &r->inputs, false);
  if (code != 0) return code;
  s = execute(r, &err);
  if (s != WEIR_OK) code = cli_fail(&err);
  print_outputs(r);
  weir_error write_err = WEIR_ERROR_INIT;
  s = write_outputs(r, &write_err);
  if (s == WEIR_OK) s = write_trace(r, &write_err);
  if (s == WEIR_OK && code == 0) s = write_profile(r, &write_err);
  if (s == WEIR_OK) s = cli_placing_save(&r->job, r->args, &write_err);
  if (s != WEIR_OK) {
    int write_code = cli_fail(&write_err);
    if (code == 0) code = write_code;
  }
  if (code == 0) say_ran(r);
  for (size_t i = 0; code == 0 && i < r->args->expects.count; i++) {
    const char *text = r->args->expects.items[i];
    size_t size = strcspn(text, "=");
    const weir_fetch *fetch = fetch_of(r, text, size);
    code = cli_expect(&r->job, r->args, text, fetch->tensor);
  }
  return cli_signal_code(code);
}

static void run_release(run *r) {
  for (size_t i = 0; i < r->fetch_count; i++) {
    weir_tensor_release(r->fetches[i].tensor);
    free(r->names[i]);
  }
  free(r->names);
  free(r->fetches);
  free(r->errors);
  cli_tensors_release(&r->inputs);
  weir_trace_release(r->own_trace);
  weir_tools_profile_release(r->profile);
  cli_job_close(&r->job);
}

static int run_command(const cli_args *args) {
  if (args->print_config) return cli_config_print("run", args);
  run r = {.args = args};
  int code = cli_job_open(&r.job, args, -1);
  if (code == 0) code = cli_job_load(&r.job, args, args->rest[0]);
  if (code == 0) code = run_loaded(&r);
  run_release(&r);
  return code;
}

static const cli_option options[] = {
    RUN_OPTIONS,
    LIST("output", 'o', "NAME=@FILE", outputs,
         "write an output to a .npy, .npz or safetensors file, or to - (.npy)"),
    LIST("target", 0, "NODE", targets,
         "run only the nodes that NODE needs, and show it"),
    LIST("expect", 0, "NAME=@FILE", expects,
         "compare an output; exit 1 and show the first difference"),
    NUMBER("rtol", "X", rtol, "relative tolerance of --expect (1e-5)"),
    NUMBER("atol", "X", atol, "absolute tolerance of --expect (1e-8)"),
    GRAPH_OPTIONS,
    CHOICE("format", 0, "text|json", format, "WEIR_FORMAT",
           "how outputs are printed"),
    JSON_FORMAT,
    FULL,
    LIST("dump", 0, "NODE", dumps, "print the results of NODE as well"),
    FLAG("trap-nan", 0, trap_nan, "fail at the first NaN or infinity"),
    TEXT("trace", 0, "FILE", trace, NULL,
         "write a timeline of the run, as Chrome JSON"),
    PROFILE,
    TIMEOUT,
    FLAG("verbose", 'v', verbose,
         WITH_IN_PROCESS "where nodes went, and why a step on a GPU is no CUDA "
                         "graph, on standard error"),
    QUIET,
    COMMON,
    END};

static const cli_effect effects[] = {
    TASKS_EFFECTS,
    {.option = "rtol", .with = "expect"},
    {.option = "atol", .with = "expect"},
    {.option = "verbose", .with = "in-process|cluster|local"},
    {.option = "trace",
     .without = "cluster",
     .why = "a timeline is of one process"},
    {.option = "trace",
     .without = "local",
     .why = "a timeline is of one process"},
    PROFILE_EFFECTS,
    NO_FUSION_WITHOUT_PLAN,
    {.option = "trap-nan",
     .without = "plan",
     .why = "a plan is of the fused graph, and --trap-nan runs without fusion"},
    {.option = NULL},
};

const cli_command cli_command_run = {
    .name = "run",
    .synopsis = "GRAPH.weir.yaml [options]",
    .summary = "run a graph once",
    .text =
        "Feeds the inputs, runs the nodes that the outputs need, and prints "
        "them. With "
        "-o, "
        "outputs go to\nfiles instead. GRAPH may be - for standard input.",
    .examples =
        "  weir run graphs/tiny_matmul.weir.yaml -i b=f32:2x2=0,1,1,0\n"
        "  weir run mlp.weir.yaml -p batch=8 -i x=@x.npy -o y=@y.npy\n"
        "  weir run mlp.weir.yaml -i x=random --expect y=@ref.npy "
        "--rtol "
        "1e-4\n",
    .options = options,
    .effects = effects,
    .min_rest = 1,
    .max_rest = 1,
    .run = run_command,
};
