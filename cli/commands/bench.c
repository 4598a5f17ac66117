/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cluster/cluster.h"
#include "cli/config.h"
#include "cli/json.h"
#include "cli/measuring/bench_compare.h"
#include "cli/measuring/profiling.h"
#include "cli/placing/placing.h"
#include "cli/system.h"
#include "cli/table.h"
#include "runtime/base/quantity.h"

enum { SAMPLES = 1 << 20 };

/* The measurements with one number of threads. */
typedef struct result {
  int threads;
  size_t runs, samples;
  int64_t *ns; /* of each sample, sorted */
  int64_t wall_ns;
  weir_run_stats stats;
  weir_tools_profile *profile; /* or NULL */
} result;

/* A bound and its samples. */
typedef struct lane {
  weir_bound *bound;
  int64_t *ns;
  size_t count, capacity; /* samples */
  int64_t time_ns;        /* how long; 0: |capacity| runs */
  int64_t warmup;
  int inflight, burst; /* runs under way; runs per sample */
  int64_t wall_ns;     /* of all runs but the first ones */
  weir_fetch *fetches;
  size_t fetch_count;
  char **names;
} lane;

/* ---- Running */

static weir_status lane_fetches(lane *l, const cli_job *job, weir_error *err) {
  size_t count = weir_graph_io_count(job->graph, WEIR_OUTPUT);
  l->fetches = calloc(count + 1, sizeof *l->fetches);
  l->names = calloc(count + 1, sizeof *l->names);
  if (l->fetches == NULL || l->names == NULL) return cli_no_memory(err);
  for (size_t i = 0; i < count; i++) {
    weir_io_desc io = {.struct_size = sizeof io};
    WEIR_TRY(weir_graph_io(job->graph, WEIR_OUTPUT, i, &io, err));
    l->names[i] = strndup(io.name, io.name_size);
    if (l->names[i] == NULL) return cli_no_memory(err);
    l->fetches[i] = (weir_fetch)WEIR_FETCH(l->names[i]);
    l->fetch_count++;
  }
  return WEIR_OK;
}

static weir_status lane_open(lane *l, const cli_job *job,
                             const cli_tensors *inputs, const cli_args *args,
                             weir_error *err) {
  l->capacity =
      args->runs > 0 && args->runs < SAMPLES ? (size_t)args->runs : SAMPLES;
  l->warmup = args->warmup;
  l->time_ns = args->runs > 0 ? 0 : args->time_ns;
  l->inflight = (int)args->inflight;
  l->ns = malloc(l->capacity * sizeof *l->ns);
  weir_feed *feeds = cli_tensors_feeds(inputs);
  weir_status s = WEIR_OK;
  if (l->ns == NULL || feeds == NULL) s = cli_no_memory(err);
  if (s == WEIR_OK) s = lane_fetches(l, job, err);
  if (s == WEIR_OK)
    s = weir_session_bind(job->session,
                          &(weir_run_request)WEIR_RUN_REQUEST(
                              feeds, inputs->count, l->fetches, l->fetch_count),
                          &l->bound, err);
  free(feeds);
  return s;
}

static void lane_close(lane *l) {
  weir_bound_release(l->bound);
  for (size_t i = 0; i < l->fetch_count; i++) {
    weir_tensor_release(l->fetches[i].tensor);
    free(l->names[i]);
  }
  free(l->fetches);
  free(l->names);
  free(l->ns);
}

static bool goes_on(const lane *l, int64_t now, int64_t end) {
  return l->count < l->capacity &&
         (l->time_ns == 0 || now < end || l->count == 0);
}

/* Runs until the time or the samples are used up. Short runs are taken in
 * bursts, so that reading the clock costs less than a hundredth. */
static weir_status run_single(lane *l, weir_error *err) {
  int64_t start = cli_now_ns();
  for (int64_t i = 0; i < l->warmup; i++)
    WEIR_TRY(weir_bound_run(l->bound, NULL, err));
  int64_t each = (cli_now_ns() - start) / (l->warmup > 0 ? l->warmup : 1);
  l->burst = l->warmup > 0 && each < 3000 && l->time_ns != 0 ? 16 : 1;
  int64_t last = cli_now_ns(), end = last + l->time_ns;
  while (goes_on(l, last, end)) {
    for (int i = 0; i < l->burst; i++)
      WEIR_TRY(weir_bound_run(l->bound, NULL, err));
    int64_t now = cli_now_ns();
    l->ns[l->count++] = (now - last) / l->burst;
    last = now;
  }
  l->wall_ns = last - (end - l->time_ns);
  return WEIR_OK;
}

/* Steps are samples: begin leaves the start there, end the time it took. */
static void step_begins(void *self, uint64_t step) {
  ((lane *)self)->ns[step] = cli_now_ns();
}

static void step_ends(void *self, uint64_t step, weir_tensor *const *outputs) {
  (void)outputs;
  ((lane *)self)->ns[step] = cli_now_ns() - ((lane *)self)->ns[step];
}

enum { CHUNK = 256 };

static weir_status run_overlapped(lane *l, weir_error *err) {
  weir_tools_steps steps = {.inflight = l->inflight,
                            .steps = (uint64_t)l->warmup};
  if (l->warmup > 0) WEIR_TRY(weir_tools_bound_steps(l->bound, &steps, err));
  steps.self = l;
  steps.begin = step_begins;
  steps.end = step_ends;
  l->burst = 1;
  int64_t now = cli_now_ns(), end = now + l->time_ns;
  while (goes_on(l, now, end)) {
    size_t left = l->capacity - l->count;
    steps.first = l->count;
    steps.steps = left < CHUNK ? left : CHUNK;
    WEIR_TRY(weir_tools_bound_steps(l->bound, &steps, err));
    l->count += (size_t)steps.steps;
    now = cli_now_ns();
  }
  l->wall_ns = now - (end - l->time_ns);
  return WEIR_OK;
}

static int compare_ns(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* Behind the measurement, so that this sees nothing of it. */
static weir_status profile_lane(result *r, const lane *l, const cli_job *job,
                                const cli_args *args, weir_error *err) {
  weir_tools_profile_opts opts = {.steps = 0};
  if (args->runs > 0 && args->runs < 101) opts.steps = (uint32_t)args->runs;
  WEIR_TRY(cli_profiling_open(job, args, &opts, &r->profile, err));
  if (r->profile == NULL) return WEIR_OK;
  int64_t time_ns = l->time_ns == 0 ? INT64_MAX / 4 : l->time_ns;
  return weir_tools_profile_bound(r->profile, l->bound, time_ns, err);
}

static weir_status measure(result *r, const cli_job *job,
                           const cli_tensors *inputs, const cli_args *args,
                           weir_error *err) {
  lane l = {0};
  weir_status s = lane_open(&l, job, inputs, args, err);
  if (s == WEIR_OK) {
    r->stats.struct_size = sizeof r->stats;
    s = weir_bound_stats(l.bound, &r->stats, err);
  }
  if (s == WEIR_OK) {
    if (args->explain) weir_tools_bound_describe(l.bound, cli_out, NULL);
    s = l.inflight > 1 ? run_overlapped(&l, err) : run_single(&l, err);
    r->wall_ns = l.wall_ns;
  }
  if (s == WEIR_OK) s = profile_lane(r, &l, job, args, err);
  if (s == WEIR_OK) {
    r->ns = l.ns; /* taken */
    l.ns = NULL;
    r->samples = l.count;
    r->runs = l.count * (size_t)l.burst;
    qsort(r->ns, r->samples, sizeof *r->ns, compare_ns);
  }
  lane_close(&l);
  return s;
}

/* ---- Figures */

static double quantile(const result *r, double q) {
  size_t i = (size_t)ceil(q * (double)r->samples);
  return r->samples == 0 ? 0 : (double)r->ns[i > 0 ? i - 1 : 0];
}

typedef enum column {
  C_THREADS,
  C_INFLIGHT,
  C_RUNS,
  C_MEDIAN,
  C_P90,
  C_P99,
  C_MIN,
  C_PER_S,
  C_NODES,
  C_INSTR,
  C_FLOPS,
  C_BYTES,
  C_PER_NODE,
  C_NODES_PER_S,
  C_GFLOPS,
  C_GB,
  C_ARENA,
  C_COUNT
} column;

static const char *const names[] = {[C_THREADS] = "threads",
                                    [C_INFLIGHT] = "inflight",
                                    [C_RUNS] = "runs",
                                    [C_MEDIAN] = "median_ns",
                                    [C_P90] = "p90_ns",
                                    [C_P99] = "p99_ns",
                                    [C_MIN] = "min_ns",
                                    [C_PER_S] = "runs_per_s",
                                    [C_NODES] = "nodes",
                                    [C_INSTR] = "instructions",
                                    [C_FLOPS] = "flops",
                                    [C_BYTES] = "bytes",
                                    [C_PER_NODE] = "ns_per_node",
                                    [C_NODES_PER_S] = "nodes_per_s",
                                    [C_GFLOPS] = "gflops",
                                    [C_GB] = "gb_per_s",
                                    [C_ARENA] = "arena_bytes"};
CLI_TABLE_OF(names, C_COUNT);

static void figures(const result *r, const cli_args *args, double v[C_COUNT]) {
  double median = quantile(r, 0.5);
  double per_ns = median > 0 ? 1 / median : 0;
  v[C_THREADS] = r->threads;
  v[C_INFLIGHT] = (double)args->inflight;
  v[C_RUNS] = (double)r->runs;
  v[C_MEDIAN] = median;
  v[C_P90] = quantile(r, 0.9);
  v[C_P99] = quantile(r, 0.99);
  v[C_MIN] = quantile(r, 0);
  v[C_PER_S] = args->inflight > 1 ? (double)r->runs * 1e9 / (double)r->wall_ns
                                  : per_ns * 1e9;
  v[C_NODES] = r->stats.nodes;
  v[C_INSTR] = r->stats.instructions;
  v[C_FLOPS] = (double)r->stats.flops;
  v[C_BYTES] = (double)r->stats.bytes;
  v[C_PER_NODE] = r->stats.nodes != 0 ? median / r->stats.nodes : 0;
  v[C_NODES_PER_S] = v[C_NODES] * v[C_PER_S];
  v[C_GFLOPS] = v[C_FLOPS] * per_ns;
  v[C_GB] = v[C_BYTES] * per_ns;
  v[C_ARENA] = (double)r->stats.arena_bytes;
}

static void print_csv(const double v[C_COUNT], bool head) {
  for (int i = 0; head && i < C_COUNT; i++)
    cli_print("%s%s", i != 0 ? "," : "", names[i]);
  if (head) cli_print("\n");
  for (int i = 0; i < C_COUNT; i++)
    cli_print("%s%.10g", i != 0 ? "," : "", v[i]);
  cli_print("\n");
}

static void print_json(const result *r, const cli_job *job,
                       const cli_args *args, const double v[C_COUNT]) {
  weir_json_writer w;
  cli_json_begin(&w);
  weir_json_key_text(&w, "version", weir_sv_from(weir_version_text()));
  cli_measured_json(job, args, &w);
  for (int i = 0; i < C_COUNT; i++) cli_json_number(&w, names[i], v[i]);
  cli_profiling_json(r->profile, args, &w);
  cli_json_end(&w);
}

static void print_table(const double v[C_COUNT], bool head) {
  char median[WEIR_QUANTITY_TEXT], p90[WEIR_QUANTITY_TEXT],
      p99[WEIR_QUANTITY_TEXT];
  if (head)
    cli_print("%7s %8s %9s %10s %10s %10s %9s %9s %9s %9s\n", "threads",
              "inflight", "runs", "median", "p90", "p99", "nodes", "ns/node",
              "GFLOP/s", "GB/s");
  cli_print("%7.0f %8.0f %9.0f %10s %10s %10s %9.0f %9.3g %9.4g %9.4g\n",
            v[C_THREADS], v[C_INFLIGHT], v[C_RUNS],
            weir_quantity_print_time((int64_t)v[C_MEDIAN], median),
            weir_quantity_print_time((int64_t)v[C_P90], p90),
            weir_quantity_print_time((int64_t)v[C_P99], p99), v[C_NODES],
            v[C_PER_NODE], v[C_GFLOPS], v[C_GB]);
}

/* ---- The command */

/* The figures, then the profile. */
static int print_result(result *r, const cli_job *job, const cli_args *args,
                        bool head) {
  weir_error err = WEIR_ERROR_INIT;
  double v[C_COUNT];
  const char *format = args->format != NULL ? args->format : "text";
  figures(r, args, v);
  if (!cli_is_json(args) && strcmp(format, "csv") == 0)
    print_csv(v, head);
  else if (!cli_is_json(args))
    print_table(v, head || args->profile);
  weir_status s = cli_profiling_end(r->profile, job, args, "bench", &err);
  if (s != WEIR_OK) return cli_fail(&err);
  if (cli_is_json(args)) print_json(r, job, args, v);
  return 0;
}

static int bench_loaded(cli_job *job, const cli_args *args, int threads,
                        bool head) {
  weir_error err = WEIR_ERROR_INIT;
  cli_tensors inputs = {0};
  result r = {.threads = threads};
  weir_status s = WEIR_OK;
  int code = 0;
  for (size_t i = 0; s == WEIR_OK && i < args->inputs.count; i++)
    s = cli_input_read(job, args, args->inputs.items[i], &inputs, &err);
  if (s == WEIR_OK) s = cli_inputs_random(job, false, &inputs, &err);
  if (s == WEIR_OK) code = cli_job_session(job, args, &inputs, true);
  if (s == WEIR_OK && code == 0) s = measure(&r, job, &inputs, args, &err);
  if (s == WEIR_OK && code == 0) s = cli_placing_save(job, args, &err);
  cli_tensors_release(&inputs);
  if (s != WEIR_OK) code = cli_fail(&err);
  if (code == 0) code = print_result(&r, job, args, head);
  if (code == 0 && head && job->used != NULL && !cli_is_json(args)) {
    cli_note("measured");
    cli_placing_say(job->used);
    cli_cluster_say(job);
    cli_note("\n");
  }
  free(r.ns);
  weir_tools_profile_release(r.profile);
  return cli_signal_code(code);
}

static int bench_one(const cli_args *args, int threads, bool head) {
  cli_job job;
  int code = cli_job_open(&job, args, threads);
  if (code == 0) code = cli_job_load(&job, args, args->rest[0]);
  if (code == 0) code = bench_loaded(&job, args, threads, head);
  cli_job_close(&job);
  return code;
}

/* Forms that a request does not have. */
static weir_status check_forms(const cli_args *args, weir_error *err) {
  const char *format = args->format != NULL ? args->format : "text";
  bool csv = !cli_is_json(args) && strcmp(format, "csv") == 0;
  if (args->compare) return cli_bench_compare_check(args, err);
  if (args->rest_count != 1)
    return cli_error(err, "W0001", "weir bench: %s is one argument too many",
                     args->rest[1]);
  if (args->profile && csv)
    return cli_error(err, "W0002",
                     "--profile is text or --json, not --format csv");
  if (args->profile_html != NULL && args->threads != NULL &&
      strchr(args->threads, ',') != NULL)
    return cli_error(err, "W0002",
                     "--profile-html is of one number of threads, not of %s",
                     args->threads);
  return WEIR_OK;
}

static int bench_command(const cli_args *args) {
  weir_error wrong = WEIR_ERROR_INIT;
  if (args->print_config) return cli_config_print("bench", args);
  if (check_forms(args, &wrong) != WEIR_OK) return cli_fail(&wrong);
  if (args->compare) return cli_bench_compare(args);
  const char *at = args->threads != NULL ? args->threads : "";
  int code = 0;
  bool head = true;
  do {
    char text[16];
    int64_t threads = 0;
    size_t size = strcspn(at, ",");
    snprintf(text, sizeof text, "%.*s", (int)(size < 15 ? size : 15), at);
    if (*text == '\0' && args->threads == NULL)
      threads = cli_cores();
    else if (!cli_parse_int(text, &threads) || threads < 1 || threads > 256) {
      weir_error err = WEIR_ERROR_INIT;
      weir_status s =
          cli_error(&err, args->threads_from == CLI_ENV ? "W0003" : "W0002",
                    "--threads is \"%s\", expected integers from 1 to 256 "
                    "with commas between them",
                    args->threads);
      return s == WEIR_OK ? 0 : cli_fail(&err);
    }
    code = bench_one(args, (int)threads, head);
    head = false;
    at += size;
    if (*at == ',')
      at++;
    else
      break;
  } while (code == 0);
  return code;
}

static const cli_option options[] = {
    RUN_OPTIONS,
    GRAPH_OPTIONS,
    INT("warmup", "N", warmup, NULL, 0, 1000000, "runs before measuring (10)"),
    TIME("time", "TIME", time_ns, NULL, "how long to measure (1s)"),
    INT("runs", "N", runs, NULL, 1, 100000000,
        "how many runs to measure, instead of --time"),
    INT("inflight", "N", inflight, NULL, 1, 16, "runs under way at once (1)"),
    CHOICE("format", 0, "text|table|csv|json", format, "WEIR_FORMAT",
           "the form of the output; text is the table, json: an object a line"),
    JSON_FORMAT,
    FLAG("explain", 0, explain,
         "print each instruction's kernel, with the reason"),
    PROFILE,
    FLAG("compare", 0, compare,
         "compare two files of weir bench --json, A and B, instead of "
         "measuring"),
    COMMON,
    END};

#define NO_INFLIGHT(name)                                         \
  {                                                               \
    .option = name, .without = "inflight",                        \
    .why =                                                        \
        "steps that are under way at once have no time of their " \
        "own"                                                     \
  }

static const cli_effect effects[] = {
    TASKS_EFFECTS,          PROFILE_EFFECTS,
    NO_INFLIGHT("profile"), NO_INFLIGHT("profile-html"),
    NO_FUSION_WITHOUT_PLAN, {.option = NULL},
};

const cli_command cli_command_bench = {
    .name = "bench",
    .synopsis = "GRAPH.weir.yaml [options] | --compare A.json B.json",
    .summary = "measure latency and throughput",
    .text =
        "Inputs that are not given are random. Inputs with defaults are "
        "computed "
        "in every run,\nand all outputs are made. A list of values for "
        "--threads "
        "is measured one by one.\n--compare: what A and B measured, old, new "
        "and "
        "ratio, most time first; exit code 1 if they\nare not of the same "
        "graph, params, machine and threads.",
    .examples =
        "  weir bench graphs/lenet.weir.yaml -p batch=64 --threads 1,2\n"
        "  weir bench deep.weir.yaml --no-fusion --format json --time 5s\n"
        "  weir bench graphs/lenet.weir.yaml --profile\n"
        "  weir bench --compare old.json new.json\n",
    .options = options,
    .effects = effects,
    .min_rest = 1,
    .max_rest = 2,
    .run = bench_command,
};
