/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TOOLS_TOOLS_H_
#define WEIR_TOOLS_TOOLS_H_

#include "runtime/weir.h"

/* Functions for the weir command beside weir.h: dumps, manuals, formatting.
 *
 * This room stands above the public API and is linked into the command alone:
 * it is not installed, libweir.so does not have it, and it may change with
 * every commit. Write functions return false when writing failed. */

/* ---- Ops. */

/* Number of ops; the i-th one's name and one-sentence summary. */
size_t weir_tools_op_count(void);
const char *weir_tools_op_name(size_t i);
const char *weir_tools_op_summary(size_t i);
/* Index of the op with that name or alias, or -1. */
int64_t weir_tools_op_find(const char *name);
/* The manual of the i-th op as text, or as a JSON object. */
bool weir_tools_op_write(size_t i, bool json, weir_write_fn write, void *self);
/* All ops with the dtypes that kernels of each kind of device take, or the
 * reason why an op needs none, and counts; as text, or as a JSON object. */
bool weir_tools_op_devices(bool json, weir_write_fn write, void *self);

/* The manual of a block of the library, as nn.conv or std/nn.conv; false: there
 * is no such block. */
bool weir_tools_block_write(const char *name, bool json, weir_write_fn write,
                            void *self);
/* The name and one line about the |i|-th block of the library; false: there are
 * no more. */
bool weir_tools_block(size_t i, char *name, size_t size, char *summary,
                      size_t summary_size);

/* Width of the text that people read in a terminal. */
enum { WEIR_TOOLS_COLUMNS = 80 };

/* Writes |text|, broken at spaces: the first line goes on at column |at|, the
 * others begin at column |left|. A line end in |text| is a space, but for those
 * of an empty line. Ends with a line end. A word that is too long stands alone.
 */
bool weir_tools_wrap(const char *text, size_t at, size_t left,
                     weir_write_fn write, void *self);

/* Index of the one of |names| that is nearest to |name|, or -1. */
int64_t weir_tools_nearest(const char *name, size_t count,
                           const char *const *names);

/* ---- The machine. */

typedef void (*weir_tools_fact_fn)(void *self, const char *name,
                                   const char *value);

/* Gives |fact| the instruction sets that kernels have here, |runtime|'s profile
 * and what oneDNN has under it, which fixes oneDNN's set for the process; with
 * |measure| peaks too, by loops of some 200 ms. Errors: of measuring, W6001 and
 * W6003. */
weir_status weir_tools_machine(const weir_runtime *runtime, bool measure,
                               weir_tools_fact_fn fact, void *self,
                               weir_error *err);

/* How many choices of kernels |runtime|'s file of --tune has. */
size_t weir_tools_tuned(const weir_runtime *runtime);

/* ---- Graphs. */

/* Writes the nodes with their types, after the named pass (NULL: the first), as
 * text or as one JSON object. Errors: W0002 (no such pass), the pass's own;
 * W5009 when writing failed. */
weir_status weir_tools_graph_write(const weir_graph *graph, const char *pass,
                                   bool json, weir_write_fn write, void *self,
                                   weir_error *err);
/* How many nodes, inputs left out, the |count| values called |names| need when
 * the |fed_count| inputs |fed_names| are fed. */
weir_status weir_tools_needed_nodes(const weir_graph *graph, size_t count,
                                    const char *const *names, size_t fed_count,
                                    const char *const *fed_names,
                                    size_t *out_count, weir_error *err);
/* Number of nodes. */
size_t weir_tools_graph_node_count(const weir_graph *graph);
/* How many variables have a first value of their own only, not one of the
 * graph's `weights`; states do not count. |name| gets the first one's, cut. */
size_t weir_tools_untrained(const weir_graph *graph, char *name, size_t size);
/* Whether its variables had values of other drivers when it was made. */
bool weir_tools_session_has_found(const weir_session *session);

/* Reads `cluster:` and `placement:` as placing does; a mistake is reported to
 * |on_diag| too. Errors: W3020, W1115, W6001. */
weir_status weir_tools_check_sections(const weir_graph *graph,
                                      void (*on_diag)(void *self,
                                                      const weir_diag *diag),
                                      void *self, weir_error *err);
/* Whether |pattern|, as `--nodes` takes it, fits a node of |plan|. */
bool weir_tools_plan_has(const weir_plan *plan, const char *pattern);

/* Writes a JSON Schema of the graph file. */
bool weir_tools_schema(weir_write_fn write, void *self);

/* Writes the graph file |text|, called |name| in messages, in canonical form.
 * Comments and lines stay; blanks, indentation and quotes change. Errors:
 * W1001-W1013 (not YAML), W9001 (the form would change the meaning), W5009,
 * W6001. */
weir_status weir_tools_fmt(weir_runtime *runtime, const char *name,
                           const char *text, size_t size, weir_write_fn write,
                           void *self, weir_error *err);

/* ---- Compiled programs. */

/* A line about the machine, then one per instruction: the chosen kernel, its
 * algorithm, and the kernels before it with their reasons to refuse. */
bool weir_tools_bound_describe(const weir_bound *bound, weir_write_fn write,
                               void *self);

/* Many runs of a bound, several of them under way at once. */
typedef struct weir_tools_steps {
  int32_t inflight; /* 1 to 64 */
  uint64_t first, steps;
  void *self;
  /* As a step starts, and once it has succeeded, on its thread, several at
   * once; |outputs| are lent. May be NULL. */
  void (*begin)(void *self, uint64_t step);
  void (*end)(void *self, uint64_t step, weir_tensor *const *outputs);
} weir_tools_steps;

/* Runs steps first, first + 1, ...; stops at the first failure. Results are
 * those of one step after the other. */
weir_status weir_tools_bound_steps(weir_bound *bound,
                                   const weir_tools_steps *steps,
                                   weir_error *err);

/* ---- Profiles: where steps go, by node. */

typedef struct weir_tools_profile weir_tools_profile;
struct weir_json_writer;

typedef struct weir_tools_profile_opts {
  uint32_t steps;    /* at most; 0: 101 */
  uint32_t skip;     /* steps that warm up, before those */
  size_t max_events; /* of the first step; 0: 100,000 */
} weir_tools_profile_opts;

/* Errors: W6001. */
weir_status weir_tools_profile_create(weir_runtime *runtime,
                                      const weir_tools_profile_opts *opts,
                                      weir_tools_profile **out,
                                      weir_error *err);
void weir_tools_profile_release(weir_tools_profile *profile); /* NULL-safe */
/* By hand: the trace for the next run, NULL: no more are wanted; then, after
 * the run, how long it took (< 0: from its first node to its last). Errors:
 * W6001. */
weir_trace *weir_tools_profile_trace(weir_tools_profile *profile);
weir_status weir_tools_profile_take(weir_tools_profile *profile,
                                    int64_t took_ns, weir_error *err);
/* Runs |bound| for |time_ns| (three steps at least), every other time with a
 * trace. Errors: those of runs, W6001. */
weir_status weir_tools_profile_bound(weir_tools_profile *profile,
                                     weir_bound *bound, int64_t time_ns,
                                     weir_error *err);
/* The next steps of |trainer| are taken as they come; the profile outlives its
 * last one. Errors: W0001 (its steps are made by others: replicas, tasks). */
weir_status weir_tools_profile_trainer(weir_tools_profile *profile,
                                       weir_trainer *trainer, weir_error *err);
/* Adds up and measures the machine's peak; once, before the functions below.
 * Errors: W6001. */
weir_status weir_tools_profile_finish(weir_tools_profile *profile,
                                      weir_error *err);
/* How many steps are in it. */
size_t weir_tools_profile_steps(const weir_tools_profile *profile);
/* As a table. Errors: W5009, W6001. */
weir_status weir_tools_profile_write(const weir_tools_profile *profile,
                                     weir_write_fn write, void *self,
                                     weir_error *err);
/* As a JSON object, a value of the text that |w| writes. */
void weir_tools_profile_json(const weir_tools_profile *profile,
                             struct weir_json_writer *w);
/* As one page that needs no network, with a flame graph. Errors: W5009, W6001.
 */
weir_status weir_tools_profile_page(const weir_tools_profile *profile,
                                    const char *title, weir_write_fn write,
                                    void *self, weir_error *err);

typedef struct weir_tools_bench_diff {
  const char *a, *b; /* files of weir bench --json */
  bool json;
} weir_tools_bench_diff;

/* Writes figures and nodes of both with their ratios, as a table or as one JSON
 * object for each number of threads. Errors: W0010, after all is written (they
 * are not of the same graph, params, machine and threads), W4001, W4002, W4013,
 * W4015, W4018, W5009, W6001. */
weir_status weir_tools_bench_compare(weir_runtime *runtime,
                                     const weir_tools_bench_diff *opts,
                                     weir_write_fn write, void *self,
                                     weir_error *err);

/* ---- Tensors as text. */

/* "c  f32[2, 2]" and rows, the middle of long dimensions left out unless
 * |full|. */
bool weir_tools_tensor_print(const char *name, const weir_tensor *tensor,
                             bool full, weir_write_fn write, void *self);
/* {"outputs": {name: {"dtype", "shape", "data"}}} and a line end. */
bool weir_tools_outputs_json(size_t count, const char *const *names,
                             const weir_tensor *const *tensors,
                             weir_write_fn write, void *self);

/* How far |a| is from |b|: |a - b| <= atol + rtol |b|, NaN equals NaN. */
typedef struct weir_tools_compare {
  bool same_type;    /* dtype and shape; if not, nothing else is filled */
  int64_t differing; /* elements beyond the tolerance */
  int64_t first;     /* row-major index of the first of them, or -1 */
  double first_a, first_b;
  double max_abs, max_rel; /* the largest errors, over all elements */
} weir_tools_compare;

/* Fills |out|. */
void weir_tools_tensor_compare(const weir_tensor *a, const weir_tensor *b,
                               double rtol, double atol,
                               weir_tools_compare *out);

/* ---- Checkpoints. A path names a folder of them (the newest sound one is
 * meant) or one manifest, STEM.json. */

typedef struct weir_tools_checkpoint {
  const char *path;
  int64_t step; /* -1: the newest */
  /* Damaged ones that are passed over, as weir_load_opts has it; or NULL. */
  void (*on_diag)(void *self, const weir_diag *diag);
  void *on_diag_self;
} weir_tools_checkpoint;

/* Writes the contents of one, as text or as JSON: its path and manifest.
 * Errors: W4040-W4048, W5009. */
weir_status weir_tools_checkpoint_show(weir_runtime *runtime,
                                       const weir_tools_checkpoint *what,
                                       bool json, weir_write_fn write,
                                       void *self, weir_error *err);
/* Reads all of folder |path| and writes a line for each (an object with
 * |json|). Fails with the fault of the newest damaged one; W4040 when
 * there are none. */
weir_status weir_tools_checkpoint_verify(weir_runtime *runtime,
                                         const char *path, bool json,
                                         weir_write_fn write, void *self,
                                         weir_error *err);

typedef struct weir_tools_diff {
  const char *a, *b; /* checkpoints, .npz or .safetensors */
  double rtol, atol; /* both 0: the same values */
  bool json;
} weir_tools_diff;

/* Writes a line (an object with json) for each tensor that differs. Tensors are
 * matched by name. */
weir_status weir_tools_checkpoint_diff(weir_runtime *runtime,
                                       const weir_tools_diff *opts,
                                       weir_write_fn write, void *self,
                                       bool *out_same, weir_error *err);

typedef struct weir_tools_convert {
  const char *src;         /* a checkpoint, .npz or .safetensors */
  const char *dst;         /* .npz, .safetensors, .npy, or a folder to make */
  const char *role;        /* variable, slot, state, all; NULL: all */
  const char *const *maps; /* "old=new" */
  size_t map_count;
} weir_tools_convert;

/* Copies tensors from one form to another. A checkpoint made from a file has
 * variables only and step 0. */
weir_status weir_tools_checkpoint_convert(weir_runtime *runtime,
                                          const weir_tools_convert *opts,
                                          weir_error *err);

/* ---- Placement. */

/* A row of a list: how it is written (NAME, or NAME:ARGS too, where |args| is
 * not NULL) and what it is. Static text. */
typedef struct weir_tools_row {
  const char *name, *args, *summary;
} weir_tools_row;

/* The |i|-th placer, and objective, the default first; false: there are no
 * more. */
bool weir_tools_placer(size_t i, weir_tools_row *out_row);
/* Whether the placer that |text| spells takes a budget; true where there is no
 * such placer, or |text| is NULL: the default. */
bool weir_tools_placer_searches(const char *text);
bool weir_tools_objective(size_t i, weir_tools_row *out_row);
/* The |i|-th pass, in the order in which a graph goes through them, and the
 * |i|-th source of data sets; false: there are no more. */
bool weir_tools_pass(size_t i, weir_tools_row *out_row);
bool weir_tools_source(size_t i, weir_tools_row *out_row);
/* The |i|-th format of files of tensors, in the order in which they are tried.
 */
bool weir_tools_format(size_t i, weir_tools_row *out_row);
/* Whether |path| ends as a file of tensors does, or names one of its tensors:
 * x.npy, x.npz#w. */
bool weir_tools_tensor_file(const char *path);

/* Calls |task| for each task of the cluster that |text| spells
 * ("ps=1,worker=2"), in its order, until it returns false. Errors: W3020,
 * W6001. */
weir_status weir_tools_tasks(weir_runtime *runtime, const char *text,
                             bool (*task)(void *self, const char *job,
                                          uint32_t index),
                             void *self, weir_error *err);
/* The same for a text as of --cluster, which may name a file. Errors: W0002,
 * W3020, W4001, those of YAML, W6001. */
weir_status weir_tools_cluster_tasks(weir_runtime *runtime, const char *text,
                                     bool (*task)(void *self, const char *job,
                                                  uint32_t index),
                                     void *self, weir_error *err);

/* Whether the `train:` section of |graph| is of replicas between graphs, each a
 * process of its own (mode async, sync or bounded). Errors: those of the
 * section, W6001. */
weir_status weir_tools_trains_between(const weir_graph *graph, bool *out,
                                      weir_error *err);

/* TensorFlow's environment variable TF_CONFIG. A ps and a worker are tasks; a
 * chief drives and is none; an evaluator takes no part. */
typedef struct weir_tools_tf_config {
  const char *cluster;          /* of the tasks: "ps=1,worker=2" */
  const char *const *addresses; /* in its order */
  size_t address_count;
  const char *role; /* of this process; NULL: it is none of them */
  uint32_t index;   /* within the role */
  bool has_chief;
  /* It has a sparseCluster: |cluster| and |addresses| come with
   * weir_tools_tf_config_fill. */
  bool sparse;
} weir_tools_tf_config;

/* Reads |text|. Errors: W7081 (says where, and what is wrong), W6001. */
weir_status weir_tools_tf_config_read(const char *text,
                                      weir_tools_tf_config **out,
                                      weir_error *err);
/* A sparseCluster, of jobs whose workers come and go, tells a worker where it
 * is and where all ps are, and a ps where it is itself. The rest follows from
 * the names that Kubeflow gives, JOB-worker-0... and JOB-ps-1...: makes a
 * cluster of |servers| ps, 0: as many as are told of, and of worker 0, which
 * leads. Errors: W7081, W6001. */
weir_status weir_tools_tf_config_fill(weir_tools_tf_config *it,
                                      uint32_t servers, weir_error *err);
/* Where a task is; NULL: there is no such task. */
const char *weir_tools_tf_config_address(const weir_tools_tf_config *it,
                                         const char *job, uint32_t index);
void weir_tools_tf_config_release(weir_tools_tf_config *it); /* NULL-safe */

enum { WEIR_TOOLS_DMLC_BYTES = 200 };

/* The environment of ps-lite: DMLC_ROLE and so on. */
typedef struct weir_tools_dmlc {
  const char
      *job; /* of this process: "chief" (the scheduler), "ps", "worker" */
  char cluster[48];                 /* "ps=1,worker=2" */
  char root[WEIR_TOOLS_DMLC_BYTES]; /* the scheduler's machine */
  uint32_t root_port;
  /* Where this process is; "": as the system finds out. */
  char host[WEIR_TOOLS_DMLC_BYTES], interface[WEIR_TOOLS_DMLC_BYTES];
  uint32_t port; /* of a server; 0: any */
  bool local;    /* all processes are on this machine */
  bool any_host; /* the scheduler listens at all addresses of its machine */
  bool ranked;   /* |rank| is wanted */
  uint32_t rank;
  int64_t heartbeat_ns; /* 0: not said */
} weir_tools_dmlc;

/* Reads the variables by |look_up|. Errors: W7082 (names the variable, and
 * why).
 */
weir_status weir_tools_dmlc_read(const char *(*look_up)(void *self,
                                                        const char *name),
                                 void *self, weir_tools_dmlc *out,
                                 weir_error *err);
/* The variables that are read or refused: |*out_name| is number |at|; returns
 * how many there are. */
size_t weir_tools_dmlc_names(size_t at, const char **out_name);

typedef enum weir_tools_look_kind {
  WEIR_TOOLS_LOOK_SHOW,
  WEIR_TOOLS_LOOK_PING,
  WEIR_TOOLS_LOOK_STOP /* ends them */
} weir_tools_look_kind;

/* A look at the tasks of a cluster, as no driver. */
typedef struct weir_tools_look {
  weir_tools_look_kind kind;
  const char *cluster; /* as of --cluster */
  /* As of weir_tasks_opts; NULL: the cluster's. */
  const char *const *addresses;
  size_t address_count;
  bool insecure, json;
  bool quiet;      /* ping: no line for each round trip */
  bool force;      /* stop: also tasks that work for a driver */
  int64_t wait_ns; /* for a connection and for each answer; 0: 5 s */
  uint32_t pings;  /* round trips */
  int64_t interval_ns;
  uint64_t bandwidth_bytes; /* to measure with, each way; 0: not measured */
  weir_write_fn write;
  void *self;
} weir_tools_look;

/* Writes the tasks as a table, or as a JSON list. Errors, after all is written:
 * W7022 (tasks that did not answer, with the reason of the first), W7080 (a
 * task is in use and was not ended); before: those of weir_tasks_open's cluster
 * and transports, W5009, W6001. */
weir_status weir_tools_cluster_look(weir_runtime *runtime,
                                    const weir_tools_look *opts,
                                    weir_error *err);

/* Places the tasks of an instance file: STG, or dag-bench or dnn-partitioning
 * JSON, as its content says, on |processors| (0: 4) equal devices if it names
 * none; or as |replay| (may be NULL) says. Errors: W3010-W3016, W4001, W4013.
 */
weir_status weir_tools_place_file(weir_runtime *runtime, const char *path,
                                  const weir_plan_opts *opts,
                                  const weir_plan_text *replay,
                                  uint32_t processors, weir_plan **out_plan,
                                  weir_error *err);

/* A plan carried out here, beside its prediction. It borrows the plan. */
typedef struct weir_tools_observed weir_tools_observed;

/* Runs |graph|, of which |plan| was made by |opts| (its |inference| and the
 * shapes of its feeds count), many times with random inputs, and measures;
 * without |runs| it is only compiled, and there are no times. Errors: W3047
 * (the plan's devices are not here), the errors of runs, W6001. */
weir_status weir_tools_plan_observe(const weir_plan *plan,
                                    weir_runtime *runtime,
                                    const weir_graph *graph,
                                    const weir_plan_opts *opts, bool runs,
                                    weir_tools_observed **out_observed,
                                    weir_error *err);
/* Writes it as text (the |most| rows that differ most, 0: 12), JSON or, with
 * WEIR_PLAN_TRACE, Chrome's form. Errors: W5009, W6001. */
weir_status weir_tools_observed_write(const weir_tools_observed *observed,
                                      weir_plan_form form, size_t most,
                                      weir_write_fn write, void *self,
                                      weir_error *err);
void weir_tools_observed_release(weir_tools_observed *observed); /* NULL-safe */

/* ---- Data sets. */

typedef struct weir_tools_data {
  const char *name;      /* NULL: all of `data:` */
  const char *data_root; /* NULL: as the graph says */
  uint64_t seed;         /* of shuffles that give none */
} weir_tools_data;

/* Writes columns, examples, batches, files, first rows and how often small
 * integers occur, as text or as a JSON array. Reads the data (an epoch of
 * each). Errors: W4023, those of opening and reading, W5009. */
weir_status weir_tools_data_show(weir_runtime *runtime, const weir_graph *graph,
                                 const weir_tools_data *opts, bool json,
                                 weir_write_fn write, void *self,
                                 weir_error *err);

/* ---- Texts drawn from a language model. */

typedef struct weir_tools_sample_opts {
  const char *data;      /* name of the section with the vocabulary */
  const char *data_root; /* may be NULL */
  const char *prompt;
  uint64_t count, seed;
  double temperature; /* 0: always the best token */
  weir_write_fn write;
  void *self;
  const char *(*getenv)(void *self, const char *name); /* may be NULL */
  void *getenv_self;
} weir_tools_sample_opts;

/* Writes |prompt| and |count| tokens drawn from a language model's first
 * output. Errors: W4020-W4039, W5027, W5009, the runs' own. */
weir_status weir_tools_sample(weir_session *session,
                              const weir_tools_sample_opts *opts,
                              weir_error *err);

/* ---- Task graphs for experiments. */

typedef struct weir_tools_generate_opts {
  uint32_t processors; /* planted: of the hidden plan; 0: 4 */
  const char *kind; /* cholesky, lu, fft, stencil, layered, transformer, planted
                     */
  uint64_t nodes;   /* about so many */
  uint64_t seed;
} weir_tools_generate_opts;

/* Writes a graph file of `task` nodes. Errors: W0002, W0004, W5009, W6001. */
weir_status weir_tools_generate(weir_runtime *runtime,
                                const weir_tools_generate_opts *opts,
                                weir_write_fn write, void *self,
                                weir_error *err);

#endif
