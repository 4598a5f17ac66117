/* SPDX-License-Identifier: Apache-2.0 */
/* eval --confusion. The graph's outputs are run once more over the data, in a
 * session that gets the trainer's variables, so the matrix is of the very
 * values that the metrics above it are of. */
#include "cli/confusion.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/classes.h"
#include "cli/json.h"
#include "cli/system.h"

enum { MOST_CLASSES = 4096, NAME_CELLS = 20, MISTAKES = 3 };

typedef struct matrix {
  const weir_graph *graph;
  int64_t classes;  /* 0: not known yet */
  uint64_t *counts; /* [truth][prediction] */
  weir_status failed;
  weir_error *err;
} matrix;

/* ---- Counting */

static weir_status begin(matrix *m, const weir_prediction *b) {
  if (!cli_has_scores(b->outputs[0],
                      weir_graph_io_count(m->graph, WEIR_OUTPUT)))
    return cli_error(m->err, "W0002",
                     "--confusion needs a graph with one output of scores, "
                     "f32[examples, classes]");
  if (b->labels == NULL)
    return cli_error(m->err, "W0002",
                     "--confusion needs a column of integers called label");
  m->classes = cli_info(b->outputs[0]).dims[1];
  if (m->classes > MOST_CLASSES)
    return cli_error(m->err, "W0002", "--confusion of %lld classes, at most %d",
                     (long long)m->classes, MOST_CLASSES);
  WEIR_TRY(cli_labels_check(m->graph, m->classes, m->err));
  m->counts = calloc((size_t)m->classes, (size_t)m->classes * sizeof(uint64_t));
  return m->counts != NULL ? WEIR_OK : cli_no_memory(m->err);
}

static bool on_batch(void *self, const weir_prediction *b) {
  matrix *m = self;
  if (m->counts == NULL) m->failed = begin(m, b);
  if (m->failed != WEIR_OK) return false;
  const float *scores = weir_tensor_data(b->outputs[0]);
  for (int64_t i = 0; i < b->rows; i++) {
    cli_class best;
    int64_t truth = cli_label_at(b->labels, i);
    cli_classes_best(scores + i * m->classes, m->classes, 1, &best);
    if (truth < 0 || truth >= m->classes) {
      m->failed =
          cli_error(m->err, "W4027",
                    "label %lld of example %llu, of %lld "
                    "classes",
                    (long long)truth,
                    (unsigned long long)b->first + (unsigned long long)i,
                    (long long)m->classes);
      return false;
    }
    m->counts[truth * m->classes + best.index]++;
  }
  return true;
}

/* Gives |session| the values of |trainer|. */
static weir_status copy_variables(weir_session *session, weir_trainer *trainer,
                                  weir_error *err) {
  size_t count = weir_session_variable_count(session);
  for (size_t i = 0; i < count; i++) {
    weir_variable_desc v = {.struct_size = sizeof v};
    weir_tensor *value = NULL;
    WEIR_TRY(weir_session_variable_at(session, i, &v, err));
    char *name = strndup(v.name.data, v.name.size);
    if (name == NULL) return cli_no_memory(err);
    weir_status s = weir_trainer_variable_get(trainer, name, &value, err);
    if (s == WEIR_OK) s = weir_session_variable_set(session, name, value, err);
    weir_tensor_release(value);
    free(name);
    if (s != WEIR_OK) return s;
  }
  return WEIR_OK;
}

/* ---- Showing */

static uint64_t count_at(const matrix *m, int64_t truth, int64_t guess) {
  return m->counts[truth * m->classes + guess];
}

static uint64_t total_of(const matrix *m, int64_t truth) {
  uint64_t sum = 0;
  for (int64_t k = 0; k < m->classes; k++) sum += count_at(m, truth, k);
  return sum;
}

static int digits(uint64_t n) {
  int d = 1;
  for (; n >= 10; n /= 10) d++;
  return d;
}

static void json(const matrix *m, const char *data) {
  weir_json_writer w;
  cli_json_begin(&w);
  weir_json_key_text(&w, "event", WEIR_SV_LIT("confusion"));
  weir_json_key_text(&w, "data", weir_sv_from(data));
  if (weir_graph_label_count(m->graph) > 0) {
    weir_json_key(&w, "labels");
    weir_json_array_begin(&w, true);
    for (int64_t k = 0; k < m->classes; k++)
      weir_json_string(&w, weir_sv_from(cli_class_name(m->graph, k)));
    weir_json_array_end(&w);
  }
  weir_json_key(&w, "truth"); /* truth[class][predicted class] */
  weir_json_array_begin(&w, true);
  for (int64_t t = 0; t < m->classes; t++) {
    weir_json_array_begin(&w, true);
    for (int64_t k = 0; k < m->classes; k++)
      weir_json_uint(&w, count_at(m, t, k));
    weir_json_array_end(&w);
  }
  weir_json_array_end(&w);
  cli_json_end(&w);
}

/* A quoted field: quotes are doubled (RFC 4180). */
static void csv_text(const char *text) {
  cli_print("\"");
  for (; *text != '\0'; text++) cli_print(*text == '"' ? "\"\"" : "%c", *text);
  cli_print("\"");
}

/* A line for each true class; columns are those it was taken for. */
static void csv(const matrix *m) {
  bool named = weir_graph_label_count(m->graph) > 0;
  cli_print(named ? "truth,name" : "truth");
  for (int64_t k = 0; k < m->classes; k++) cli_print(",%lld", (long long)k);
  cli_print("\n");
  for (int64_t t = 0; t < m->classes; t++) {
    cli_print("%lld", (long long)t);
    if (named) cli_print(",");
    if (named) csv_text(cli_class_name(m->graph, t));
    for (int64_t k = 0; k < m->classes; k++)
      cli_print(",%llu", (unsigned long long)count_at(m, t, k));
    cli_print("\n");
  }
}

bool cli_confusion_csv(const cli_args *args) {
  return args->format != NULL && strcmp(args->format, "csv") == 0;
}

/* Columns of the terminal; 80 where there is none. */
static int terminal_width(void) {
  struct winsize size;
  if (isatty(1) && ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return size.ws_col;
  return 80;
}

/* "  3 dress": its number, and its name where |named|. */
static void print_class(const matrix *m, int64_t k, bool named) {
  const char *name = cli_class_name(m->graph, k);
  cli_print("%5lld", (long long)k);
  if (named) cli_print("  %-*.*s", NAME_CELLS, NAME_CELLS, name);
}

static void print_matrix(const matrix *m, int cell, bool named) {
  cli_print("%5s%*s", "truth", named ? NAME_CELLS + 2 : 0, "");
  for (int64_t k = 0; k < m->classes; k++)
    cli_print(" %*lld", cell, (long long)k);
  cli_print("  right\n");
  for (int64_t t = 0; t < m->classes; t++) {
    uint64_t total = total_of(m, t);
    print_class(m, t, named);
    for (int64_t k = 0; k < m->classes; k++)
      cli_print(" %*llu", cell, (unsigned long long)count_at(m, t, k));
    if (total > 0)
      cli_print(" %5.1f%%", 100 * (double)count_at(m, t, t) / (double)total);
    cli_print("\n");
  }
}

/* The commonest wrong class of |truth| that comes after |last| in that order;
 * -1: none. */
static int64_t next_mistake(const matrix *m, int64_t truth, int64_t last) {
  int64_t found = -1;
  for (int64_t k = 0; k < m->classes; k++) {
    uint64_t n = count_at(m, truth, k);
    if (k == truth || n == 0) continue;
    if (last >= 0 && (n > count_at(m, truth, last) ||
                      (n == count_at(m, truth, last) && k <= last)))
      continue;
    if (found < 0 || n > count_at(m, truth, found)) found = k;
  }
  return found;
}

/* A class a line, where the matrix has no room; at most 60 columns. */
static void print_mistakes(const matrix *m, bool named) {
  cli_print("truth: right of all; taken for class (times)\n");
  for (int64_t t = 0; t < m->classes; t++) {
    int64_t wrong = -1;
    print_class(m, t, named);
    cli_print("  %llu of %llu", (unsigned long long)count_at(m, t, t),
              (unsigned long long)total_of(m, t));
    for (int i = 0; i < MISTAKES; i++) {
      wrong = next_mistake(m, t, wrong);
      if (wrong < 0) break;
      cli_print("%s %lld (%llu)", i == 0 ? ";" : ",", (long long)wrong,
                (unsigned long long)count_at(m, t, wrong));
    }
    cli_print("\n");
  }
}

static void print(const matrix *m) {
  bool named = weir_graph_label_count(m->graph) > 0;
  uint64_t most = (uint64_t)m->classes;
  int width = terminal_width();
  for (int64_t i = 0; i < m->classes * m->classes; i++)
    if (m->counts[i] > most) most = m->counts[i];
  int cell = digits(most);
  int64_t room = width - 5 - 8 - m->classes * (cell + 1);
  cli_print("\n");
  if (room < 0)
    print_mistakes(m, named && width >= 64);
  else
    print_matrix(m, cell, named && room >= NAME_CELLS + 2);
}

weir_status cli_confusion(cli_job *job, const cli_args *args,
                          weir_trainer *trainer, const char *data,
                          weir_error *err) {
  weir_error why = WEIR_ERROR_INIT; /* a batch's; err says that it ended */
  matrix m = {.graph = job->graph, .err = &why};
  weir_session_opts session = {.struct_size = sizeof session,
                               .ref_kernels = args->ref_kernels,
                               .tf32 = args->tf32,
                               .seed = (uint64_t)args->seed};
  weir_predict_opts opts = {.struct_size = sizeof opts,
                            .data = data,
                            .data_root = args->data_root,
                            .seed = (uint64_t)args->seed,
                            .self = &m,
                            .batch = on_batch,
                            .getenv = cli_look_up_env};
  if (job->dealt != NULL) session.tasks = job->tasks;
  weir_status s = weir_session_create(job->runtime, job->graph, &session,
                                      &job->session, err);
  if (s == WEIR_OK) s = copy_variables(job->session, trainer, err);
  if (s == WEIR_OK) s = weir_session_predict(job->session, &opts, err);
  if (m.failed != WEIR_OK) {
    *err = why;
    s = m.failed;
  }
  if (s == WEIR_OK && m.counts == NULL)
    s = cli_error(err, "W4033", "%s has no examples", data);
  if (s == WEIR_OK && args->json) json(&m, data);
  if (s == WEIR_OK && cli_confusion_csv(args))
    csv(&m);
  else if (s == WEIR_OK && !args->json)
    print(&m);
  free(m.counts);
  return s;
}
