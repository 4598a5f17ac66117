/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CLI_H_
#define CLI_CLI_H_

#include <stdio.h>

#include "runtime/tools/tools.h"
#include "runtime/weir.h"

/* The weir command. It uses nothing of weir but weir.h and tools.h.
 *
 * main.c finds the command in the list (commands/); options.c reads the
 * command line into one cli_args by that command's list of options; env.c fills
 * in values of WEIR_* that the command line does not give; then the command
 * runs and returns the exit code. Data goes to stdout through out.c, all else
 * to stderr. */

/* Refuses to compile unless |table| ends with the last of |count| values of its
 * enum; its entries are written [VALUE] = .... */
#define CLI_TABLE_OF(table, count)                           \
  _Static_assert(sizeof(table) / sizeof *(table) == (count), \
                 #table " must have an entry for each value of its enum")

/* ---- Options */

typedef enum cli_kind {
  CLI_FLAG,
  CLI_TEXT,
  CLI_LIST,   /* may be given several times */
  CLI_INT,    /* within [min, max] */
  CLI_FLOAT,  /* >= 0 */
  CLI_TIME,   /* 30s, 200ms, 5m: ns */
  CLI_CHOICE, /* one of |arg|, "a|b|c", or of the names of |row| */
  CLI_KIND_COUNT
} cli_kind;

typedef struct cli_list {
  const char **items;
  size_t count;
} cli_list;

/* Where a value came from, one for each of a command's options. */
typedef enum cli_from { CLI_DEFAULT, CLI_ENV, CLI_ARG } cli_from;

enum { CLI_OPTIONS = 64 }; /* of a command, at most */

/* Values of all options of all commands, and the rest of the line. */
typedef struct cli_args {
  cli_list inputs, outputs, expects, params, overrides, targets, dumps, limits;
  const char *format, *data_root, *trace, *after, *color, *threads, *isa,
      *baseline;
  const char *checkpoint, *resume, *init, *events, *run_folder, *data, *weights,
      *prompt;
  const char *labels;
  bool confusion;
  int64_t top;
  bool json, trap_nan, no_fusion, ref_kernels, tf32, print_config, full, quiet,
      help;
  bool brief;            /* -h, not --help */
  bool check, show_diff; /* fmt */
  bool all, man, explain, verbose;
  bool profile; /* bench, run, train */
  const char *profile_html;
  /* place */
  const char *in_process, *placer, *plan, *save_plan, *tune;
  const char *node_pattern; /* place --nodes */
  const char *cluster, *budget, *explain_node, *memory, *given, *verify, *diff,
      *costs, *assume_kernels;
  bool devices; /* show */
  bool calibrate, critical, parts, strict_placement, inference, compare,
      timings, no_run;
  int64_t processors, nodes;
  const char *objective;
  int64_t microbatches;
  int64_t seed, runs, warmup, inflight, steps, epochs, take, sample;
  double temperature;
  double rtol, atol;
  double diff_rtol, diff_atol; /* of checkpoint diff, where the default is 0 */
  cli_list maps, what_if;
  const char *role;
  int64_t at_step; /* a checkpoint's, or -1 */
  int64_t days;    /* of certificates; 0: not given */
  int64_t timeout_ns, time_ns, device_wait_ns;
  const char *device_locks;
  /* Clusters: |tasks| is --cluster of commands that run. */
  const char *tasks, *local, *task_threads, *job, *listen, *share;
  int64_t index, start_ns, step_ns, heartbeat_ns;
  /* Replicas between graphs; |restarts| -1: not given. */
  const char *mode, *addresses, *generations;
  int64_t restarts;
  int64_t max_workers; /* 0: those of the cluster */
  int64_t servers;     /* 0: not given */
  bool tasks_later;    /* the command starts those of --local itself */
  bool insecure;
  /* predict --serve */
  const char *serve, *tls_cert, *tls_key, *tls_ca;
  int64_t batch_wait_ns, batch_rows, queue;
  int64_t count, interval_ns, wait_ns; /* cluster */
  bool bandwidth, force;
  bool measure;             /* doctor */
  bool tune_kernels;        /* tune */
  bool follow;              /* eval */
  int64_t after_step;       /* eval, train: of an evaluator; 0: not given */
  weir_tools_tf_config *tf; /* of --cluster tf-config; else NULL */
  weir_tools_dmlc *dmlc;    /* of --cluster dmlc; else NULL */
  const char **rest;        /* positional */
  size_t rest_count;
  char *const *words; /* all of the line after the command; lent */
  size_t word_count;
  cli_from threads_from;
  uint8_t from[CLI_OPTIONS]; /* cli_from of each of the command's options */
} cli_args;

typedef struct cli_option {
  const char *name; /* without dashes; NULL ends a list */
  char letter;      /* 0: none */
  cli_kind kind;
  const char *arg; /* how the value is written, for the help */
  const char *doc;
  size_t offset;    /* in cli_args */
  const char *env;  /* WEIR_..., or NULL */
  int64_t min, max; /* CLI_INT */
  /* The values, where a list of the library has them; NULL: |arg| says. */
  bool (*row)(size_t i, weir_tools_row *out_row);
} cli_option;

/* Where an option of a command has an effect; elsewhere it is refused. */
typedef struct cli_effect {
  const char *option;  /* NULL ends a list */
  const char *of;      /* first words that it is for, "diff|convert"; or NULL */
  const char *with;    /* options of which one must be given too; or NULL */
  const char *without; /* an option that must not be given too; or NULL */
  const char *why;     /* then: a hint */
} cli_effect;

/* A command, one const struct in its file of commands/. */
typedef struct cli_command {
  const char *name;
  const char *synopsis; /* the text after the name */
  const char *summary;  /* one line */
  const char *text;     /* prose, or NULL */
  const char *examples; /* two lines or more */
  const cli_option *options;
  const cli_effect *effects; /* of options that are not for all; or NULL */
  size_t min_rest, max_rest;
  int (*run)(const cli_args *args); /* returns the exit code */
} cli_command;

/* All, in the order of the help; NULL ends the list, which cli/meson.build
 * makes of the files in commands/. */
extern const cli_command *const cli_commands[];
/* The command of that name, or NULL; how many there are. */
const cli_command *cli_command_find(const char *name);
size_t cli_command_count(void);

/* Reads |argv| (without program and command). Errors: W0001, W0002. */
weir_status cli_options_read(const cli_command *command, int argc, char **argv,
                             cli_args *args, weir_error *err);
/* Sets one option from text; used for the environment too. */
weir_status cli_option_set(const cli_option *option, const char *text,
                           cli_args *args, const char *shown, weir_error *err);
void cli_args_release(cli_args *args);
/* Whether the line gives option |name| of |command|. */
bool cli_option_is_given(const cli_command *command, const cli_args *args,
                         const char *name);
/* Whether --json or --format json is given. */
bool cli_is_json(const cli_args *args);
/* Refuses unknown WEIR_* and applies those that the command takes. W0003. */
weir_status cli_env_apply(const cli_command *command, cli_args *args,
                          weir_error *err);
/* "30s" to ns, "64MiB" to bytes. False when the text has another form. */
bool cli_parse_time(const char *text, int64_t *out_ns);
bool cli_parse_size(const char *text, uint64_t *out);
bool cli_parse_int(const char *text, int64_t *out);
/* Cores that this process may use. */
int cli_cores(void);

/* ---- Output */

/* Writes to stdout; a weir_write_fn. |self| is not used. */
bool cli_out(void *self, const char *data, size_t size);
/* The same to stderr. */
bool cli_err(void *self, const char *data, size_t size);
/* The same to the FILE |self|. */
bool cli_file_write(void *self, const char *data, size_t size);
/* Makes the file |path| to be written. Errors: W5009. */
weir_status cli_file_create(const char *path, FILE **out, weir_error *err);
/* Closes it: |s|, or W5009 if |s| is OK and the file could not be written. */
weir_status cli_file_close(FILE *file, const char *path, weir_status s,
                           weir_error *err);
/* printf to stdout and stderr. */
void cli_print(const char *fmt, ...) WEIR_PRINTF(1, 2);
void cli_note(const char *fmt, ...) WEIR_PRINTF(1, 2);
/* Hands on what was printed so far; a failure is kept for cli_out_close. */
void cli_flush(void);
/* Whether something could not be written to stdout. */
bool cli_out_failed(void);
/* Ends output: |code|, or the exit code of a failed write: W5009, or without a
 * word that of SIGPIPE where nobody reads any more. */
int cli_out_close(int code);
/* Whether stderr may have colours. */
bool cli_color(void);
void cli_color_set(const char *when); /* auto, always, never */

/* Prints |err| as a diagnostic on stderr; returns its exit code. */
int cli_fail(const weir_error *err);

/* Sets signals and standard descriptors as commands expect them. */
void cli_signals_init(void);
/* From now SIGINT, SIGTERM and SIGHUP cancel |session|'s runs; NULL: end the
 * process. First called before threads are made. */
void cli_signals_watch(weir_session *session);
/* The same for a training, which ends after its step; a second signal ends the
 * process. */
void cli_signals_watch_trainer(weir_trainer *trainer);
/* The same for a task's server, which stops; a second signal ends the process.
 */
void cli_signals_watch_server(weir_task_server *server);
/* The same for a server of predictions, which answers what it has accepted. */
void cli_signals_watch_predictor(weir_predict_server *serving);
/* The same for a part of a training between graphs, which leaves it. */
void cli_signals_watch_part(weir_train_part *part);
/* The same for the search of a plan, which is to ask cli_signal_code; a second
 * signal ends the process. */
void cli_signals_watch_search(void);
/* What is to be done when a signal or --timeout ends the process at once, on
 * another thread; NULL: nothing any more. */
void cli_exit_hook(void (*fn)(void *self), void *self);
/* Ends the process at once, after the hook. Any thread. */
void cli_exit_now(int code);
/* Ends cli_signals_watch. */
void cli_signals_end(void);
/* 130 or 143 when a signal came, else |code|. */
int cli_signal_code(int code);

/* ---- Common parts of commands */

/* Tensors by name, owned. */
typedef struct cli_tensors {
  char **names;
  weir_tensor **items;
  size_t count, capacity;
} cli_tensors;

struct cli_locals;
struct cli_own;
struct cli_dealt;

/* A loaded graph with its runtime, session and plan. Close also after a
 * failure. */
typedef struct cli_job {
  weir_runtime *runtime;
  weir_graph *graph;
  weir_session *session;
  weir_plan *plan, *used;    /* --in-process; --save-plan */
  weir_tasks *tasks;         /* --cluster, --local */
  struct cli_locals *locals; /* processes of --local */
  struct cli_own *own;       /* --job: the task that this process is */
  struct cli_dealt *dealt;   /* batches are dealt to workers; or NULL */
  bool show_plans;           /* each that a program gets */
  char *source; /* the graph file's text, once a diagnostic wanted it */
  size_t source_size;
  const char *path;
  weir_diag_form form;
  unsigned errors, warnings;
  char first_id[8];
} cli_job;

/* Makes a runtime from --threads (|threads| < 0: as given) and --limit. */
int cli_job_open(cli_job *job, const cli_args *args, int threads);
/* Reads the sections that placing uses, and reports their mistakes; gives the
 * exit code. */
int cli_job_check(cli_job *job);
/* Loads |path| ("-": stdin), printing diagnostics. Returns an exit code. */
int cli_job_load(cli_job *job, const cli_args *args, const char *path);
/* Makes the session. |inputs| (may be NULL): the feeds, as far as they are
 * known. |bench|: defaults are computed in every run. */
int cli_job_session(cli_job *job, const cli_args *args,
                    const cli_tensors *inputs, bool bench);
void cli_job_close(cli_job *job);
/* A plan file's text, which the caller frees. Errors: W4001. */
weir_status cli_read_plan(const char *path, char **out_text, size_t *out_size,
                          weir_error *err);

void cli_tensors_release(cli_tensors *t);
/* A feed of each, to be freed; it borrows |t|. NULL: no memory. */
weir_feed *cli_tensors_feeds(const cli_tensors *t);

/* Reads "name=value" of -i. */
weir_status cli_input_read(const cli_job *job, const cli_args *args,
                           const char *text, cli_tensors *tensors,
                           weir_error *err);
/* Random values for every input that is not in |tensors|; unknown dimensions
 * count as 1. |defaults|: for those with a default too. */
weir_status cli_inputs_random(const cli_job *job, bool defaults,
                              cli_tensors *tensors, weir_error *err);
/* Reads "@file", "@file#member", "dtype:shape=values", "[[1, 2]]", ...; |like|
 * (may be NULL) gives dtype and shape where the text does not. */
weir_status cli_value_read(weir_runtime *runtime, const char *data_root,
                           const char *text, const weir_io_desc *like,
                           weir_tensor **out_tensor, weir_error *err);
/* A tensor from "dtype:2x2=1,2,3,4", or from "[[1, 2]]" and |like|'s dtype. */
weir_status cli_literal_read(weir_runtime *runtime, const char *text,
                             const weir_io_desc *like, weir_tensor **out_tensor,
                             weir_error *err);

/* Compares |tensor| with the "NAME=VALUE" of --expect and reports the
 * difference; returns the exit code. */
int cli_expect(const cli_job *job, const cli_args *args, const char *text,
               const weir_tensor *tensor);

/* Fills a caller's error as the library would: |id| and its status. */
weir_status cli_error(weir_error *err, const char *id, const char *fmt, ...)
    WEIR_PRINTF(3, 4);
void cli_hint(weir_error *err, const char *fmt, ...) WEIR_PRINTF(2, 3);

/* The help of one command, in lines of 80 columns; in short, at most 24 lines.
 */
void cli_help_command(const cli_command *command);
void cli_help_brief(const cli_command *command);
/* The list of commands; |brief|: nothing else. */
void cli_help_list(bool brief);

#endif
