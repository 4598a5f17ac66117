/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cluster/cluster.h"
#include "cli/placing/placing.h"
#include "cli/system.h"
#include "cli/watch.h"

enum { READ_LIMIT = 64 << 20, PLAN_LIMIT = 1 << 30 };

/* ---- The source, for diagnostics and for graphs from standard input */

weir_status cli_read_plan(const char *path, char **out_text, size_t *out_size,
                          weir_error *err) {
  /* A pipe that nobody writes to is empty, and does not stop us; one with a
   * writer, as `<(...)` of a shell, is read to its end. */
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  *out_text = NULL;
  *out_size = 0;
  if (fd < 0) return cli_error(err, "W4001", "cannot open plan %s", path);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  *out_text = cli_read_all(fd, PLAN_LIMIT, out_size);
  close(fd);
  return *out_text != NULL
             ? WEIR_OK
             : cli_error(err, "W4001", "cannot read plan %s", path);
}

/* The text of the graph file itself; of others (imports) nothing is drawn. */
static size_t source(void *self, const char *file, const char **out_text) {
  cli_job *job = self;
  *out_text = NULL;
  if (job->path == NULL || strcmp(file, job->path) != 0) return 0;
  if (job->source == NULL) {
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return 0;
    job->source = cli_read_all(fd, READ_LIMIT, &job->source_size);
    close(fd);
  }
  *out_text = job->source;
  return job->source != NULL ? job->source_size : 0;
}

static void on_diag(void *self, const weir_diag *diag) {
  cli_job *job = self;
  const weir_error *error = weir_diag_error(diag);
  bool warning = weir_diag_is_warning(diag);
  job->warnings += warning;
  job->errors += !warning;
  if (job->first_id[0] == '\0' || (!warning && job->errors == 1))
    memcpy(job->first_id, error->id, sizeof job->first_id);
  bool human = job->form == WEIR_DIAG_FORM_HUMAN;
  weir_diag_write(diag, job->form, human && cli_color(), source, job,
                  human ? cli_err : cli_out, NULL);
}

/* ---- Opening */

static weir_status limit_of(const cli_args *args, const char *name,
                            uint64_t *out, weir_error *err) {
  *out = 0;
  size_t size = strlen(name);
  for (size_t i = 0; i < args->limits.count; i++) {
    const char *text = args->limits.items[i];
    if (strncmp(text, name, size) != 0 || text[size] != '=') continue;
    if (!cli_parse_size(text + size + 1, out))
      return cli_error(err, "W0002",
                       "--limit %s, expected a number such as 1000 or 64MiB",
                       text);
  }
  return WEIR_OK;
}

static weir_status check_limit_names(const cli_args *args, weir_error *err) {
  static const char *const names[] = {"memory=", "bytes=", "nodes=", "depth="};
  for (size_t i = 0; i < args->limits.count; i++) {
    size_t k = 0;
    while (k < 4 &&
           strncmp(args->limits.items[i], names[k], strlen(names[k])) != 0)
      k++;
    if (k == 4)
      return cli_error(err, "W0002",
                       "--limit %s, expected memory=, bytes=, nodes= or depth=",
                       args->limits.items[i]);
  }
  return WEIR_OK;
}

static weir_status threads_of(const cli_args *args, int threads, int32_t *out,
                              weir_error *err) {
  int64_t value = threads;
  if (threads < 0) {
    value = 0;
    if (args->threads != NULL &&
        (!cli_parse_int(args->threads, &value) || value < 1 || value > 256))
      return cli_error(
          err, args->threads_from == CLI_ENV ? "W0003" : "W0002",
          "%s is \"%s\", expected an integer from 1 to 256",
          args->threads_from == CLI_ENV ? "WEIR_THREADS" : "--threads",
          args->threads);
  }
  *out = (int32_t)value;
  return WEIR_OK;
}

/* Warnings of tasks: certificates that changed, frames without encryption; of
 * the file of --tune. */
static void on_log(void *self, weir_log_level level, const char *text) {
  const cli_args *args = self;
  if (level == WEIR_LOG_WARNING && (args->tasks != NULL || args->tune != NULL))
    cli_note("warning: %s\n", text);
}

/* With -v, how GPUs do their work. */
static void on_device(void *self, const char *text) {
  const cli_args *args = self;
  if (args->verbose) cli_note("%s\n", text);
}

int cli_job_open(cli_job *job, const cli_args *args, int threads) {
  weir_error err = WEIR_ERROR_INIT;
  weir_runtime_opts opts = {.struct_size = sizeof opts};
  *job = (cli_job){0};
  if (args->color != NULL) cli_color_set(args->color);
  weir_status s = check_limit_names(args, &err);
  if (s == WEIR_OK) s = limit_of(args, "memory", &opts.memory_limit, &err);
  if (s == WEIR_OK) s = threads_of(args, threads, &opts.threads, &err);
  opts.timeout_ns = args->timeout_ns;
  opts.device_wait_ns = args->device_wait_ns;
  opts.device_locks = args->device_locks;
  opts.isa = args->isa;
  opts.tune = args->tune;
  opts.tune_kernels = args->tune_kernels ? 1 : 0;
  opts.tune_strict = args->strict_placement ? 1 : 0;
  opts.on_log = on_log;
  opts.on_device = on_device;
  opts.on_log_self = (void *)(uintptr_t)args;
  if (s == WEIR_OK) s = cli_watch_start(args->timeout_ns, &err);
  if (s == WEIR_OK) s = weir_runtime_create(&opts, &job->runtime, &err);
  return s == WEIR_OK ? 0 : cli_fail(&err);
}

/* ---- Loading */

/* Cuts "name=text" of |option|; the name is copied. */
static weir_status read_param(const char *option, const char *text,
                              weir_param *out, weir_error *err) {
  const char *equals = strchr(text, '=');
  if (equals == NULL || equals == text)
    return cli_error(err, "W0002", "%s %s, expected %s=VALUE", option, text,
                     option[1] == 'p' ? "NAME" : "PATH");
  char *name = strndup(text, (size_t)(equals - text));
  if (name == NULL) return cli_no_memory(err);
  *out = (weir_param){sizeof *out, name, equals + 1};
  return WEIR_OK;
}

static weir_status load(cli_job *job, const char *path,
                        const weir_load_opts *opts, weir_error *err) {
  if (strcmp(path, "-") != 0)
    return weir_graph_load_file(job->runtime, path, opts, &job->graph, err);
  job->path = "<stdin>";
  /* A little more than the loader takes, so that the loader refuses it. */
  size_t limit = opts->max_bytes > READ_LIMIT ? opts->max_bytes : READ_LIMIT;
  job->source = cli_read_all(0, limit, &job->source_size);
  if (job->source == NULL)
    return cli_error(err, "W4001", "standard input cannot be read");
  return weir_graph_load_buffer(job->runtime, job->source, job->source_size,
                                job->path, opts, &job->graph, err);
}

static void free_params(weir_param *params, size_t count) {
  for (size_t i = 0; params != NULL && i < count; i++)
    free((char *)params[i].name);
  free(params);
}

/* The values of |option|; NULL: |err| says why. */
static weir_param *read_params(const char *option, const cli_list *list,
                               weir_error *err) {
  weir_param *params = calloc(list->count + 1, sizeof *params);
  if (params == NULL) return cli_no_memory(err), NULL;
  for (size_t i = 0; i < list->count; i++) {
    if (read_param(option, list->items[i], &params[i], err) == WEIR_OK)
      continue;
    free_params(params, i);
    return NULL;
  }
  return params;
}

static weir_status load_with_params(cli_job *job, const cli_args *args,
                                    const char *path, weir_load_opts *opts,
                                    weir_error *err) {
  weir_param *params = read_params("-p", &args->params, err), *overrides = NULL;
  if (params != NULL) overrides = read_params("--set", &args->overrides, err);
  opts->params = params;
  opts->param_count = args->params.count;
  opts->overrides = overrides;
  opts->override_count = args->overrides.count;
  weir_status s =
      overrides != NULL ? load(job, path, opts, err) : WEIR_INVALID_ARGUMENT;
  free_params(params, args->params.count);
  free_params(overrides, args->overrides.count);
  return s;
}

int cli_job_load(cli_job *job, const cli_args *args, const char *path) {
  weir_error err = WEIR_ERROR_INIT;
  uint64_t depth = 0;
  weir_load_opts opts = {.struct_size = sizeof opts,
                         .seed = (uint64_t)args->seed,
                         .labels = args->labels,
                         .on_diag = on_diag,
                         .on_diag_self = job,
                         .getenv = cli_look_up_env,
                         .keep_files = cli_cluster_text(args) != NULL};
  job->path = path;
  weir_status s = WEIR_OK;
  if (!args->tasks_later) s = cli_cluster_start(job, args, &err);
  if (s == WEIR_OK) s = limit_of(args, "bytes", &opts.max_bytes, &err);
  if (s == WEIR_OK) s = limit_of(args, "nodes", &opts.max_nodes, &err);
  if (s == WEIR_OK) s = limit_of(args, "depth", &depth, &err);
  opts.max_depth = depth < UINT32_MAX ? (uint32_t)depth : UINT32_MAX;
  if (s == WEIR_OK) s = load_with_params(job, args, path, &opts, &err);
  if (s == WEIR_OK) return 0;
  if (job->errors == 0) return cli_fail(&err);
  int code = weir_error_exit_code(err.id);
  return code >= 0 ? code : 8;
}

int cli_job_check(cli_job *job) {
  weir_error err = WEIR_ERROR_INIT;
  weir_status s = weir_tools_check_sections(job->graph, on_diag, job, &err);
  return s == WEIR_OK ? 0 : weir_error_exit_code(err.id);
}

int cli_job_session(cli_job *job, const cli_args *args,
                    const cli_tensors *inputs, bool bench) {
  weir_error err = WEIR_ERROR_INIT;
  weir_session_opts opts = {.struct_size = sizeof opts,
                            .no_fusion = args->no_fusion,
                            .no_fold = bench,
                            .ref_kernels = args->ref_kernels,
                            .tf32 = args->tf32,
                            .seed = (uint64_t)args->seed};
  cli_placing_want want = {
      .inputs = inputs,
      .one_program = inputs != NULL,
      .deal = (args->data != NULL && args->sample == 0) || args->serve != NULL};
  cli_signals_watch(NULL);
  weir_status s = cli_placing_use(job, args, &want, &opts, &err);
  if (s == WEIR_OK)
    s = weir_session_create(job->runtime, job->graph, &opts, &job->session,
                            &err);
  if (s != WEIR_OK) return cli_fail(&err);
  cli_signals_watch(job->session);
  return 0;
}

void cli_job_close(cli_job *job) {
  if (job->session != NULL) cli_signals_watch(NULL);
  weir_session_release(job->session);
  cli_cluster_close(job);
  weir_plan_release(job->plan);
  weir_plan_release(job->used);
  weir_graph_release(job->graph);
  weir_runtime_release(job->runtime);
  free(job->source);
}
