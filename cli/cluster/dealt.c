/* SPDX-License-Identifier: Apache-2.0 */
/* The progress of dealt batches.
 *
 * Runs end on several threads; one of them at a time writes, and the others go
 * on. A rate is of the time since the first batch was done, so that loading and
 * compiling on the workers is not in it. */
#include "cli/cluster/dealt.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cluster/cluster.h"
#include "cli/system.h"
#include "cli/term/log.h"
#include "cli/term/terminal.h"

enum { LINE = 512, WORKERS = 512 };
static const int64_t kDraw_ns = 200000000, kLog_ns = 10000000000;

struct cli_dealt {
  const weir_tasks *tasks;
  pthread_mutex_t lock;
  bool shows, bar, drawn; /* bar: a line on a terminal, else lines of a log */
  int64_t first_ns, next_ns;
  uint64_t first[WORKERS]; /* runs of each when the first was done */
};

static bool worker_at(const cli_dealt *d, size_t i, weir_tasks_worker *out) {
  weir_error ignored = WEIR_ERROR_INIT;
  *out = (weir_tasks_worker){.struct_size = sizeof *out};
  return weir_tasks_worker_at(d->tasks, i, out, &ignored) == WEIR_OK;
}

/* Batches a second of worker |i|; negative: not known yet. */
static double rate_of(const cli_dealt *d, size_t i,
                      const weir_tasks_worker *worker) {
  int64_t ns = cli_now_ns() - d->first_ns;
  uint64_t before = i < WORKERS ? d->first[i] : 0;
  if (d->first_ns == 0 || ns <= 0 || worker->runs <= before) return -1;
  return (double)(worker->runs - before) * 1e9 / (double)ns;
}

/* ---- While it runs; under the lock */

static void clear(cli_dealt *d) {
  if (d->drawn) cli_terminal_clear();
  d->drawn = false;
}

static void draw(cli_dealt *d) {
  char line[LINE] = "";
  size_t used = 0;
  uint64_t sum = 0;
  weir_tasks_worker w;
  for (size_t i = 0; worker_at(d, i, &w) && used < sizeof line; i++) {
    double rate = rate_of(d, i, &w);
    sum += w.runs;
    if (w.unused) continue;
    used += (size_t)snprintf(line + used, sizeof line - used, "  %.*s ",
                             (int)w.task.size, w.task.data);
    if (used >= sizeof line) break;
    if (w.lost)
      used += (size_t)snprintf(line + used, sizeof line - used, "lost");
    else
      used += (size_t)snprintf(line + used, sizeof line - used, "%.1f/s",
                               rate > 0 ? rate : 0);
  }
  char text[LINE + 64];
  snprintf(text, sizeof text, "%llu batches%s", (unsigned long long)sum, line);
  cli_terminal_draw(text);
  d->drawn = true;
}

static void log_line(const cli_dealt *d) {
  weir_tasks_worker w;
  uint64_t sum = 0;
  for (size_t i = 0; worker_at(d, i, &w); i++) sum += w.runs;
  cli_log_begin("info", "dealt");
  cli_log_uint("batches", sum);
  for (size_t i = 0; worker_at(d, i, &w); i++) {
    char key[96];
    double rate = rate_of(d, i, &w);
    if (w.unused || rate < 0) continue;
    snprintf(key, sizeof key, "%.*s", (int)w.task.size, w.task.data);
    cli_log_number(key, rate, 4);
  }
  cli_log_end();
}

static void note_first(cli_dealt *d, int64_t now) {
  weir_tasks_worker w;
  d->first_ns = now;
  d->next_ns = now + (d->bar ? kDraw_ns : kLog_ns);
  for (size_t i = 0; i < WORKERS && worker_at(d, i, &w); i++)
    d->first[i] = w.runs;
}

static void on_run(void *self) {
  cli_dealt *d = self;
  if (pthread_mutex_trylock(&d->lock) != 0) return;
  int64_t now = cli_now_ns();
  if (d->first_ns == 0) {
    note_first(d, now);
  } else if (d->shows && now >= d->next_ns) {
    d->next_ns = now + (d->bar ? kDraw_ns : kLog_ns);
    if (d->bar)
      draw(d);
    else
      log_line(d);
  }
  pthread_mutex_unlock(&d->lock);
}

/* A warning, so --quiet does not hide it. */
static void on_lost(void *self, const char *task, const weir_error *why) {
  cli_dealt *d = self;
  pthread_mutex_lock(&d->lock);
  clear(d);
  if (cli_terminal()) {
    cli_note("warning: %s is lost, others get its batches: %s\n", task,
             why->message);
  } else {
    cli_log_begin("warning", "lost");
    cli_log_text("task", task);
    cli_log_text("message", why->message);
    cli_log_end();
  }
  pthread_mutex_unlock(&d->lock);
}

/* ---- The doors */

weir_status cli_dealt_begin(const cli_args *args, weir_tasks_opts *opts,
                            cli_dealt **out_dealt, weir_error *err) {
  cli_dealt *d = calloc(1, sizeof *d);
  *out_dealt = d;
  if (d == NULL) return cli_no_memory(err);
  pthread_mutex_init(&d->lock, NULL);
  d->shows = !args->quiet && !args->json;
  /* Rows of a prediction and a line that is drawn anew do not go together. */
  d->bar = cli_terminal() && !isatty(STDOUT_FILENO);
  if (cli_terminal() && !d->bar) d->shows = false;
  opts->deal = true;
  opts->on_lost = on_lost;
  opts->on_run = on_run;
  opts->on_deal_self = d;
  return WEIR_OK;
}

void cli_dealt_use(cli_dealt *d, const weir_tasks *tasks) {
  pthread_mutex_lock(&d->lock);
  d->tasks = tasks;
  pthread_mutex_unlock(&d->lock);
}

void cli_dealt_stop(cli_dealt *d) {
  if (d == NULL) return;
  pthread_mutex_lock(&d->lock);
  clear(d);
  d->shows = false;
  pthread_mutex_unlock(&d->lock);
}

/* " worker:0 21 (51.2/s), worker:1 19 (46.3/s)" */
static void say_workers(const cli_dealt *d) {
  weir_tasks_worker w;
  const char *between = "";
  for (size_t i = 0; worker_at(d, i, &w); i++) {
    double rate = rate_of(d, i, &w);
    if (w.unused) continue;
    cli_note("%s %.*s %llu", between, (int)w.task.size, w.task.data,
             (unsigned long long)w.runs);
    if (rate > 0 && !w.lost) cli_note(" (%.1f/s)", rate);
    between = ",";
  }
}

static void say_rest(const cli_dealt *d) {
  weir_tasks_worker w;
  for (size_t i = 0; worker_at(d, i, &w); i++)
    if (w.unused)
      cli_note("; %.*s had no part", (int)w.task.size, w.task.data);
    else if (w.lost)
      cli_note("; %.*s was lost, %llu batch%s dealt again", (int)w.task.size,
               w.task.data, (unsigned long long)w.again,
               w.again == 1 ? " was" : "es were");
}

void cli_dealt_say(const cli_job *job, const cli_args *args) {
  cli_dealt *d = job->dealt;
  weir_tasks_worker w;
  uint64_t sum = 0;
  if (d == NULL) return;
  cli_dealt_stop(d);
  for (size_t i = 0; worker_at(d, i, &w); i++) sum += w.runs;
  if (args->quiet || args->json || sum == 0) return;
  cli_note("%llu batch%s dealt to", (unsigned long long)sum,
           sum == 1 ? "" : "es");
  say_workers(d);
  say_rest(d);
  cli_cluster_say(job);
  cli_note("\n");
}

void cli_dealt_end(cli_dealt *d) {
  if (d == NULL) return;
  cli_dealt_stop(d);
  pthread_mutex_destroy(&d->lock);
  free(d);
}
