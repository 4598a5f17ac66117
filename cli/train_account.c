/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "cli/json.h"
#include "cli/term/log.h"
#include "cli/train.h"

/* The account of workers between graphs at the end of a training: a line for
 * each worker, then one for all. */

enum { AGES = 400, SERVERS = 2000 };

/* "0:310 1:42 2-3:7": updates by the age of their values. */
static void ages(const weir_train_account *a, char text[AGES]) {
  size_t n = 0;
  text[0] = '\0';
  for (size_t i = 0; i < a->staleness_count && n < AGES; i++) {
    unsigned long long low = i == 0 ? 0 : 1ULL << (i - 1);
    char to[24] = "";
    if (a->staleness[i] == 0) continue;
    if (i + 1 == a->staleness_count)
      snprintf(to, sizeof to, "+");
    else if (i > 1)
      snprintf(to, sizeof to, "-%llu", 2 * low - 1);
    n += (size_t)snprintf(text + n, AGES - n, "%s%llu%s:%llu", n > 0 ? " " : "",
                          low, to, (unsigned long long)a->staleness[i]);
  }
}

/* "ps:0 400 ps:1 400": runs that each server has applied. */
static void servers(const weir_train_account *a, char text[SERVERS]) {
  size_t n = 0;
  text[0] = '\0';
  for (size_t i = 0; i < a->server_count && n + 40 < SERVERS; i++)
    n += (size_t)snprintf(text + n, SERVERS - n, "%sps:%zu %llu",
                          n > 0 ? " " : "", i,
                          (unsigned long long)a->applied[i]);
}

/* ---- A line of the log */

static void log_worker(const weir_train_worker *w, size_t i) {
  char name[32];
  snprintf(name, sizeof name, "worker:%zu", i);
  cli_log_begin("info", "worker");
  cli_log_text("name", name);
  cli_log_uint("runs", w->runs);
  cli_log_uint("examples", w->examples);
  cli_log_number("share", w->share, 4);
  cli_log_number("examples_per_s", w->rate, 6);
  cli_log_number("alone_per_s", w->alone_rate, 6);
  cli_log_end();
}

static void log_all(const weir_train_account *a) {
  char text[AGES], applied[SERVERS];
  ages(a, text);
  servers(a, applied);
  cli_log_begin("info", "account");
  cli_log_uint("runs", a->runs);
  cli_log_uint("earlier", a->earlier);
  cli_log_text("applied", applied);
  cli_log_uint("updates_least", a->updates_least);
  cli_log_uint("updates_most", a->updates_most);
  cli_log_uint("returned", a->returned);
  cli_log_uint("partial", a->partial);
  cli_log_number("examples_per_s", a->rate, 6);
  cli_log_number("alone_per_s", a->alone_rate, 6);
  cli_log_number("speedup", a->speedup, 4);
  if (text[0] != '\0') cli_log_text("staleness", text);
  if (text[0] != '\0') cli_log_uint("staleness_most", a->staleness_most);
  cli_log_end();
}

/* ---- JSON */

static void json_worker(weir_json_writer *w, const weir_train_worker *of) {
  weir_json_object_begin(w, true);
  weir_json_key_uint(w, "runs", of->runs);
  weir_json_key_uint(w, "examples", of->examples);
  cli_json_number(w, "share", of->share);
  cli_json_number(w, "examples_per_s", of->rate);
  cli_json_number(w, "alone_per_s", of->alone_rate);
  weir_json_object_end(w);
}

static void json_all(const weir_train_account *a) {
  weir_json_writer w;
  cli_json_begin(&w);
  weir_json_key_text(&w, "event", weir_sv_from("account"));
  weir_json_key_uint(&w, "runs", a->runs);
  weir_json_key_uint(&w, "earlier", a->earlier);
  weir_json_key(&w, "applied");
  weir_json_array_begin(&w, true);
  for (size_t i = 0; i < a->server_count; i++)
    weir_json_uint(&w, a->applied[i]);
  weir_json_array_end(&w);
  weir_json_key_uint(&w, "updates_least", a->updates_least);
  weir_json_key_uint(&w, "updates_most", a->updates_most);
  weir_json_key_uint(&w, "returned", a->returned);
  weir_json_key_uint(&w, "partial", a->partial);
  cli_json_number(&w, "examples_per_s", a->rate);
  cli_json_number(&w, "alone_per_s", a->alone_rate);
  cli_json_number(&w, "speedup", a->speedup);
  weir_json_key(&w, "staleness");
  weir_json_array_begin(&w, true);
  for (size_t i = 0; i < a->staleness_count; i++)
    weir_json_uint(&w, a->staleness[i]);
  weir_json_array_end(&w);
  weir_json_key_uint(&w, "staleness_most", a->staleness_most);
  weir_json_key(&w, "workers");
  weir_json_array_begin(&w, true);
  for (size_t i = 0; i < a->worker_count; i++) json_worker(&w, &a->workers[i]);
  weir_json_array_end(&w);
  cli_json_end(&w);
}

/* ---- Text */

static void note_all(const weir_train_account *a) {
  char text[AGES];
  ages(a, text);
  for (size_t i = 0; i < a->worker_count; i++) {
    const weir_train_worker *w = &a->workers[i];
    cli_note(
        "worker:%zu  %llu runs, %llu examples, share %.1f%%, %.6g "
        "examples/s, %.6g computing\n",
        i, (unsigned long long)w->runs, (unsigned long long)w->examples,
        100 * w->share, w->rate, w->alone_rate);
  }
  cli_note("%llu runs, %.6g examples/s, %.3g times one worker\n",
           (unsigned long long)a->runs, a->rate, a->speedup);
  if (text[0] != '\0') cli_note("staleness %s\n", text);
}

void cli_train_account(cli_train_view *v, const weir_train_account *a) {
  cli_train_view_clear(v);
  if (v->json) {
    json_all(a);
  } else if (!v->quiet && !v->bar) {
    for (size_t i = 0; i < a->worker_count; i++) log_worker(&a->workers[i], i);
    log_all(a);
  } else if (!v->quiet) {
    note_all(a);
  }
}
