/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "cli/classes.h"
#include "cli/cluster/dealt.h"
#include "cli/cluster/serve.h"
#include "cli/config.h"
#include "cli/fit.h"
#include "cli/json.h"
#include "cli/placing/placing.h"
#include "cli/system.h"
#include "cli/table.h"
#include "cli/train.h"

/* One `weir predict`. */
typedef struct predict {
  const cli_args *args;
  cli_job job;
  cli_tensors inputs;
  cli_fit fit;
  uint64_t shown, labelled, right;
  /* -o: all rows of each output so far. */
  struct {
    char *data;
    size_t bytes, room;
    weir_tensor_info info;
  } * kept;
  size_t output_count;
  weir_error *err;
  weir_status failed;
} predict;

/* ---- Classes */

/* How many classes of each example are shown. */
static int top_of(const cli_args *args) {
  if (args->top > 0) return (int)args->top;
  return args->data != NULL ? 1 : 5;
}

static void json_class(const predict *p, weir_json_writer *w,
                       const cli_class *c) {
  const char *name = cli_class_name(p->job.graph, c->index);
  weir_json_key_int(w, "class", c->index);
  if (name != NULL) weir_json_key_text(w, "name", weir_sv_from(name));
  cli_json_number(w, "probability", c->share);
}

/* The best class, then all that are shown. */
static void json_row(const predict *p, uint64_t number, const cli_class *best,
                     int count, const int64_t *label) {
  weir_json_writer w;
  cli_json_begin(&w);
  weir_json_key_uint(&w, "example", number);
  json_class(p, &w, &best[0]);
  if (label != NULL) weir_json_key_int(&w, "label", *label);
  if (label != NULL && cli_class_name(p->job.graph, *label) != NULL)
    weir_json_key_text(&w, "label_name",
                       weir_sv_from(cli_class_name(p->job.graph, *label)));
  if (count > 1) {
    weir_json_key(&w, "top");
    weir_json_array_begin(&w, true);
    for (int i = 0; i < count; i++) {
      weir_json_object_begin(&w, true);
      json_class(p, &w, &best[i]);
      weir_json_object_end(&w);
    }
    weir_json_array_end(&w);
  }
  cli_json_end(&w);
}

static void text_row(const predict *p, uint64_t number, const cli_class *best,
                     int count, const int64_t *label) {
  const weir_graph *g = p->job.graph;
  bool named = weir_graph_label_count(g) > 0;
  if (p->shown == 0)
    cli_print("%8s %6s %12s%s%s\n", "example", "class", "probability",
              label != NULL ? "  label" : "", named ? "  name" : "");
  for (int i = 0; i < count; i++) {
    if (i == 0)
      cli_print("%8llu", (unsigned long long)number);
    else
      cli_print("%8s", "");
    cli_print(" %6lld %12.4f", (long long)best[i].index, best[i].share);
    if (label != NULL && i == 0)
      cli_print("  %5lld", (long long)*label);
    else if (label != NULL)
      cli_print("  %5s", "");
    const char *name = cli_class_name(g, best[i].index);
    if (name != NULL) cli_print("  %s", name);
    if (label != NULL && i == 0 && *label != best[0].index) {
      const char *truth = cli_class_name(g, *label);
      cli_print(truth != NULL ? "  wrong: %s" : "  wrong", truth);
    }
    cli_print("\n");
  }
}

static bool show_scores(predict *p, const weir_prediction *b) {
  weir_tensor_info info = cli_info(b->outputs[0]);
  const float *data = weir_tensor_data(b->outputs[0]);
  int most = top_of(p->args);
  p->failed = cli_labels_check(p->job.graph, info.dims[1], p->err);
  if (p->failed != WEIR_OK) return false;
  for (int64_t i = 0; i < b->rows; i++) {
    cli_class best[CLI_TOP_MOST];
    int count =
        cli_classes_best(data + i * info.dims[1], info.dims[1], most, best);
    int64_t label = b->labels != NULL ? cli_label_at(b->labels, i) : -1;
    uint64_t number = b->first + (uint64_t)i;
    (p->args->json ? json_row : text_row)(p, number, best, count,
                                          b->labels != NULL ? &label : NULL);
    p->shown++;
    p->labelled += b->labels != NULL;
    p->right += b->labels != NULL && label == best[0].index;
  }
  return true;
}

/* ---- Other outputs */

static void output_name(const predict *p, size_t k, char text[256]) {
  weir_io_desc io = {.struct_size = sizeof io};
  text[0] = '\0';
  if (weir_graph_io(p->job.graph, WEIR_OUTPUT, k, &io, NULL) == WEIR_OK)
    snprintf(text, 256, "%.*s", (int)(io.name_size < 255 ? io.name_size : 255),
             io.name);
}

static void show_tensors(const predict *p, const weir_tensor *const *outputs) {
  char names[64][256];
  const char *list[64];
  size_t count = p->output_count < 64 ? p->output_count : 64;
  for (size_t k = 0; k < count; k++) {
    output_name(p, k, names[k]);
    list[k] = names[k];
  }
  if (p->args->json) {
    weir_tools_outputs_json(count, list, outputs, cli_out, NULL);
    return;
  }
  for (size_t k = 0; k < count; k++)
    weir_tools_tensor_print(list[k], outputs[k], p->args->full, cli_out, NULL);
}

/* ---- Files */

/* Appends the first |rows| rows of output |k|. */
static bool keep(predict *p, size_t k, const weir_tensor *t, int64_t rows) {
  weir_tensor_info info = cli_info(t);
  if (info.rank < 1 || info.dims[0] < rows) {
    p->failed = cli_error(p->err, "W0002",
                          "-o needs outputs with one row for each example");
    return false;
  }
  size_t row = info.dims[0] > 0 ? info.bytes / (size_t)info.dims[0] : 0;
  size_t bytes = row * (size_t)rows;
  if (p->kept[k].room - p->kept[k].bytes < bytes) {
    size_t room = p->kept[k].room * 2 + bytes + 4096;
    char *data = realloc(p->kept[k].data, room);
    if (data == NULL) {
      p->failed = cli_no_memory(p->err);
      return false;
    }
    p->kept[k].data = data;
    p->kept[k].room = room;
  }
  memcpy(p->kept[k].data + p->kept[k].bytes, weir_tensor_data(t), bytes);
  p->kept[k].bytes += bytes;
  int64_t before = p->kept[k].info.rank > 0 ? p->kept[k].info.dims[0] : 0;
  p->kept[k].info = info;
  p->kept[k].info.dims[0] = before + rows;
  return true;
}

static weir_status write_one(predict *p, const char *text, weir_error *err) {
  const char *equals = strchr(text, '=');
  char name[256];
  if (equals == NULL || equals == text)
    return cli_error(err, "W0002", "-o %s, expected NAME=@FILE", text);
  for (size_t k = 0; k < p->output_count; k++) {
    output_name(p, k, name);
    if (strlen(name) != (size_t)(equals - text) ||
        memcmp(name, text, strlen(name)) != 0)
      continue;
    const char *file = equals + 1 + (equals[1] == '@'), *list = name;
    weir_tensor *t = NULL;
    weir_status s =
        weir_tensor_from_data(p->job.runtime,
                              &(weir_tensor_spec)WEIR_TENSOR_SPEC(
                                  p->kept[k].info.dtype, p->kept[k].info.rank,
                                  p->kept[k].info.dims, p->kept[k].bytes),
                              p->kept[k].data, &t, err);
    const weir_tensor *one = t;
    if (s == WEIR_OK)
      s = weir_tensor_write_file(
          p->job.runtime, file,
          &(weir_tensor_list)WEIR_TENSOR_LIST(1, &list, &one), err);
    weir_tensor_release(t);
    return s;
  }
  return cli_error(err, "W4016", "-o %.200s: the graph has no such output",
                   text);
}

/* ---- Batches */

static bool on_batch(void *self, const weir_prediction *b) {
  predict *p = self;
  if (p->args->outputs.count > 0) {
    for (size_t k = 0; k < p->output_count; k++)
      if (!keep(p, k, b->outputs[k], b->rows)) return false;
    return true;
  }
  if (cli_has_scores(b->outputs[0], p->output_count)) return show_scores(p, b);
  if (weir_graph_label_count(p->job.graph) > 0 && p->args->labels != NULL) {
    p->failed = cli_error(p->err, "W0002",
                          "--labels names classes, and the graph's outputs are "
                          "no scores, f32[examples, classes]");
    return false;
  }
  show_tensors(p, b->outputs);
  return true;
}

static weir_status run_data(predict *p, weir_error *err) {
  const cli_args *a = p->args;
  weir_predict_opts opts = {.struct_size = sizeof opts,
                            .data = a->data,
                            .data_root = a->data_root,
                            .seed = (uint64_t)a->seed,
                            .take = (uint64_t)a->take,
                            .self = p,
                            .batch = on_batch,
                            .getenv = cli_look_up_env};
  weir_error why = WEIR_ERROR_INIT; /* a batch's; err says that it ended */
  p->err = &why;
  weir_status s = weir_session_predict(p->job.session, &opts, err);
  cli_dealt_stop(p->job.dealt);
  if (p->failed == WEIR_OK) return s;
  *err = why;
  return p->failed;
}

/* ---- Inputs from the line */

static weir_status run_inputs(predict *p, weir_error *err) {
  size_t n = p->output_count;
  weir_feed *feeds = cli_tensors_feeds(&p->inputs);
  weir_fetch *fetches = calloc(n + 1, sizeof *fetches);
  const weir_tensor **outputs = calloc(n + 1, sizeof *outputs);
  char(*names)[256] = calloc(n + 1, sizeof *names);
  weir_status s = WEIR_OK;
  if (feeds == NULL || fetches == NULL || outputs == NULL || names == NULL)
    s = cli_no_memory(err);
  for (size_t k = 0; s == WEIR_OK && k < n; k++) {
    output_name(p, k, names[k]);
    fetches[k] = (weir_fetch)WEIR_FETCH(names[k]);
  }
  if (s == WEIR_OK)
    s = weir_session_run(
        p->job.session,
        &(weir_run_request)WEIR_RUN_REQUEST(feeds, p->inputs.count, fetches, n),
        NULL, err);
  for (size_t k = 0; s == WEIR_OK && k < n; k++)
    s = cli_fit_output(&p->job, &p->fit, names[k], &fetches[k].tensor, err);
  if (s == WEIR_OK) {
    for (size_t k = 0; k < n; k++) outputs[k] = fetches[k].tensor;
    weir_tensor_info info = cli_info(outputs[0]);
    weir_prediction b = {.struct_size = sizeof b,
                         .rows = info.rank > 0 ? info.dims[0] : 0,
                         .outputs = outputs};
    p->err = err;
    if (!on_batch(p, &b)) s = p->failed;
  }
  for (size_t k = 0; fetches != NULL && k < n; k++)
    weir_tensor_release(fetches[k].tensor);
  free(feeds);
  free(fetches);
  free(outputs);
  free(names);
  return s;
}

/* ---- Text */

static weir_status run_sample(const predict *p, weir_error *err) {
  const cli_args *a = p->args;
  weir_tools_sample_opts opts = {.data = a->data != NULL ? a->data : "train",
                                 .data_root = a->data_root,
                                 .prompt = a->prompt != NULL ? a->prompt : "",
                                 .count = (uint64_t)a->sample,
                                 .seed = (uint64_t)a->seed,
                                 .temperature = a->temperature,
                                 .write = cli_out,
                                 .getenv = cli_look_up_env};
  return weir_tools_sample(p->job.session, &opts, err);
}

/* ---- The command */

/* Examples come from one place: what the other gave would be dropped. */
static weir_status refuse_both(const cli_args *a, weir_error *err) {
  if (a->inputs.count > 0 && (a->data != NULL || a->sample > 0))
    return cli_error(err, "W0001",
                     "-i %.80s has no effect with %s: examples come from there",
                     a->inputs.items[0], a->sample > 0 ? "--sample" : "--data");
  if (a->outputs.count > 0 && a->sample > 0)
    return cli_error(err, "W0001", "-o %.80s has no effect with --sample",
                     a->outputs.items[0]);
  return WEIR_OK;
}

/* First values of variables are random: their outputs look like predictions and
 * are none. */
static weir_status want_trained(const predict *p, weir_error *err) {
  const cli_args *a = p->args;
  char name[128];
  size_t count = weir_tools_untrained(p->job.graph, name, sizeof name);
  if (count == 0 || a->checkpoint != NULL || a->weights != NULL ||
      weir_tools_session_has_found(p->job.session))
    return WEIR_OK;
  weir_status s = cli_error(
      err, "W4040",
      "no folder of checkpoints and no file of weights is given, and %s%s has "
      "no trained value",
      name, count > 1 ? ", like other variables," : "");
  cli_hint(err, "--checkpoint DIR, --weights FILE, or `weights:` in the graph");
  return s;
}

static weir_status run(predict *p, weir_error *err) {
  const cli_args *a = p->args;
  int64_t step;
  p->output_count = weir_graph_io_count(p->job.graph, WEIR_OUTPUT);
  if (p->output_count == 0)
    return cli_error(err, "W0001", "the graph has no outputs");
  if (a->sample == 0 && a->data == NULL && a->inputs.count == 0 &&
      a->serve == NULL)
    return cli_error(
        err, "W0001",
        "name the examples: --data NAME or -i NAME=VALUE, or --serve ADDRESS");
  WEIR_TRY(refuse_both(a, err));
  WEIR_TRY(want_trained(p, err));
  p->kept = calloc(p->output_count, sizeof *p->kept);
  if (p->kept == NULL) return cli_no_memory(err);
  WEIR_TRY(cli_trained_load(a, &p->job, &step, err));
  if (a->sample > 0) return run_sample(p, err);
  if (a->serve != NULL) return WEIR_OK; /* loaded is all */
  WEIR_TRY(a->data != NULL ? run_data(p, err) : run_inputs(p, err));
  for (size_t i = 0; i < a->outputs.count; i++)
    WEIR_TRY(write_one(p, a->outputs.items[i], err));
  if (p->labelled > 0 && !a->quiet)
    cli_note("%llu of %llu right (%.2f%%)\n", (unsigned long long)p->right,
             (unsigned long long)p->labelled,
             100 * (double)p->right / (double)p->labelled);
  cli_dealt_say(&p->job, a);
  return WEIR_OK;
}

static int predict_command(const cli_args *args) {
  if (args->print_config) return cli_config_print("predict", args);
  weir_error err = WEIR_ERROR_INIT;
  predict p = {.args = args};
  int code = cli_job_open(&p.job, args, -1);
  if (code == 0) code = cli_job_load(&p.job, args, args->rest[0]);
  weir_status s = WEIR_OK;
  for (size_t i = 0; code == 0 && s == WEIR_OK && i < args->inputs.count; i++)
    s = cli_input_read(&p.job, args, args->inputs.items[i], &p.inputs, &err);
  if (code == 0 && s == WEIR_OK)
    s = cli_fit_inputs(&p.job, &p.inputs, &p.fit, &err);
  if (code == 0 && s == WEIR_OK)
    code = cli_job_session(&p.job, args,
                           args->inputs.count > 0 ? &p.inputs : NULL, false);
  if (code == 0 && s == WEIR_OK) s = run(&p, &err);
  if (code == 0 && s == WEIR_OK && args->serve != NULL)
    code = cli_serve(&p.job, args);
  if (code == 0 && s == WEIR_OK) s = cli_placing_save(&p.job, args, &err);
  if (s != WEIR_OK) code = cli_fail(&err);
  for (size_t k = 0; p.kept != NULL && k < p.output_count; k++)
    free(p.kept[k].data);
  free(p.kept);
  cli_tensors_release(&p.inputs);
  cli_job_close(&p.job);
  return cli_signal_code(code);
}

static const cli_option options[] = {
    TRAINED,
    TEXT("data", 0, "NAME", data, NULL, "look at this data set of the graph"),
    INT("take", "N", take, NULL, 1, INT64_MAX, "of its first N examples only"),
    LABELS,
    INT("top", "N", top, NULL, 1, CLI_TOP_MOST,
        "show the N best classes of an example (5 with -i, 1 with --data)"),
    INT("sample", "N", sample, NULL, 1, 1000000,
        "draw N tokens of text from a language model"),
    TEXT("prompt", 0, "TEXT", prompt, NULL, "the beginning of the text"),
    NUMBER("temperature", "T", temperature,
           "0: always the best token; more: more variety (1)"),
    RUN_OPTIONS,
    LIST("output", 'o', "NAME=@FILE", outputs,
         "write an output, all rows, to a .npy or safetensors file"),
    TIMED_GRAPH_OPTIONS,
    FULL,
    TEXT("serve", 0, "ADDRESS", serve, NULL,
         "answer requests by gRPC at HOST:PORT (port 0: a free one) or "
         "unix:/PATH"),
    TEXT("tls-cert", 0, "FILE", tls_cert, NULL,
         "encrypt requests: the server's certificate, PEM"),
    TEXT("tls-key", 0, "FILE", tls_key, NULL, "its private key, PEM"),
    TEXT("tls-ca", 0, "FILE", tls_ca, NULL,
         "take only clients with a certificate of these authorities, PEM"),
    TIME("batch-wait", "TIME", batch_wait_ns, NULL,
         "how long a request may wait for others of its batch (1ms)"),
    INT("batch", "N", batch_rows, NULL, 1, 1000000,
        "rows of a batch where the graph leaves them open (32); 1: each "
        "request by itself"),
    INT("queue", "N", queue, NULL, 1, 1000000,
        "requests that may wait; more are refused (256)"),
    JSON_LINES,
    QUIET,
    COMMON,
    END};

#define NOT_SERVED(name)                                           \
  {                                                                \
    .option = name, .without = "serve",                            \
    .why = "requests bring the examples, answers have the outputs" \
  }

static const cli_effect effects[] = {
    TASKS_EFFECTS_WITH("cluster|serve"),
    NEEDS("batch-wait", "serve"),
    NEEDS("batch", "serve"),
    NEEDS("queue", "serve"),
    NEEDS("tls-cert", "serve"),
    NEEDS("tls-cert", "tls-key"),
    NEEDS("tls-key", "tls-cert"),
    NEEDS("tls-ca", "tls-cert"),
    NOT_SERVED("data"),
    NOT_SERVED("input"),
    NOT_SERVED("output"),
    NOT_SERVED("sample"),
    NOT_SERVED("top"),
    NOT_SERVED("full"),
    {.option = "take", .with = "data"},
    {.option = "prompt", .with = "sample"},
    {.option = "temperature", .with = "sample"},
    {.option = "map", .with = "weights"},
    NO_FUSION_WITHOUT_PLAN,
    {.option = NULL},
};

const cli_command cli_command_predict = {
    .name = "predict",
    .synopsis = "GRAPH.weir.yaml [options]",
    .summary = "a trained graph's outputs for data or inputs",
    .text =
        "Runs the outputs with trained variables, on examples of a data set or "
        "on "
        "inputs that\nare given. Scores of classes are printed as the best "
        "classes and their probabilities,\nwith the names of `labels`. A "
        "single "
        "example, such as a picture, needs no dimension for\nthe batch. "
        "--sample draws text from a language model. --serve answers programs "
        "of\nothers until SIGTERM or SIGINT; docs/serving.md has an example.",
    .examples =
        "  weir predict lenet.weir.yaml --checkpoint run1 --data test --take "
        "10\n"
        "  weir predict lenet.weir.yaml --checkpoint run1 -i image=@x.npy\n"
        "  weir predict lenet.weir.yaml --checkpoint run1 -i image=@shirt.png\n"
        "  weir predict lenet.weir.yaml --checkpoint run1 --serve "
        "localhost:8500\n"
        "  weir predict rnn.weir.yaml --checkpoint rnn --sample 9 --prompt "
        "'The "
        "'\n",
    .options = options,
    .effects = effects,
    .min_rest = 1,
    .max_rest = 1,
    .run = predict_command,
};
