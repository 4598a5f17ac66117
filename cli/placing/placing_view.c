/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/placing/placing_view.h"

#include <stdio.h>

#include "cli/system.h"
#include "cli/term/log.h"
#include "cli/term/terminal.h"
#include "runtime/base/quantity.h"

static const int64_t second_ns = 1000000000;

static const char *step_text(int64_t ns, char text[32]) {
  return ns < 0 ? "none" : weir_quantity_print_time(ns, text);
}

static double gap_of(const weir_plan_progress *p) {
  return 100.0 * (double)(p->best_ns - p->bound_ns) / (double)p->bound_ns;
}

static void draw(const cli_placing_view *v, const weir_plan_progress *p) {
  char best[32], bound[32], gap[32] = "", left[64], line[256];
  if (p->best_ns > 0 && p->bound_ns > 0)
    snprintf(gap, sizeof gap, "   gap %.1f %%", gap_of(p));
  if (v->budget_ns > 0)
    snprintf(left, sizeof left, "%lld s left",
             (long long)((v->budget_ns - p->elapsed_ns + second_ns - 1) /
                         second_ns));
  else
    snprintf(left, sizeof left, "%lld s",
             (long long)(p->elapsed_ns / second_ns));
  snprintf(line, sizeof line, "best step %s   bound %s%s   %s",
           step_text(p->best_ns, best), step_text(p->bound_ns, bound), gap,
           left);
  cli_terminal_draw(line);
}

static void log_search(const weir_plan_progress *p) {
  cli_log_begin("info", "search");
  if (p->best_ns >= 0) cli_log_uint("best_ns", (uint64_t)p->best_ns);
  if (p->bound_ns >= 0) cli_log_uint("bound_ns", (uint64_t)p->bound_ns);
  if (p->best_ns > 0 && p->bound_ns > 0)
    cli_log_number("gap_percent", gap_of(p), 4);
  cli_log_number("seconds", (double)p->elapsed_ns / 1e9, 3);
  cli_log_end();
}

static weir_plan_answer on_progress(void *self, const weir_plan_progress *p) {
  cli_placing_view *v = self;
  int64_t every = v->bar ? second_ns / 5 : second_ns;
  if (cli_signal_code(0) != 0) return WEIR_PLAN_ENOUGH;
  if (p->elapsed_ns < v->told_ns) v->told_ns = 0; /* another plan */
  if ((!v->bar && !v->lines) || p->elapsed_ns - v->told_ns < every)
    return WEIR_PLAN_GO_ON;
  v->told_ns = p->elapsed_ns;
  v->drawn = true;
  if (v->bar)
    draw(v, p);
  else
    log_search(p);
  return WEIR_PLAN_GO_ON;
}

void cli_placing_view_begin(cli_placing_view *v, const cli_args *a,
                            weir_plan_opts *opts) {
  *v = (cli_placing_view){.budget_ns = opts->budget_ns};
  if (a->budget == NULL || opts->portfolio_only) return;
  v->bar = !a->quiet && cli_terminal();
  v->lines = a->verbose && !v->bar;
  v->watches = true;
  opts->on_progress = on_progress;
  opts->on_progress_self = v;
  cli_signals_watch_search();
}

void cli_placing_view_end(cli_placing_view *v) {
  if (v->drawn && v->bar) cli_terminal_clear();
  v->drawn = false;
  if (v->watches) cli_signals_watch(NULL);
  v->watches = false;
}
