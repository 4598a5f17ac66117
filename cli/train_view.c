/* SPDX-License-Identifier: Apache-2.0 */
/* Progress of a training: a bar, plain lines, or JSON (train.h).
 *
 * Loss and speed are means since the last line, so a line tells of the steps it
 * stands for. The bar is redrawn at most ten times a second: a step may take
 * microseconds. Text that does not fit a line's buffer is cut at its end.
 */
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"
#include "cli/system.h"
#include "cli/term/log.h"
#include "cli/term/terminal.h"
#include "cli/train.h"
#include "runtime/base/quantity.h"

enum { REDRAW_NS = 100000000, BAR_LINE = 512 };

/* ---- JSON: an object a line */

static void json_event(weir_json_writer *w, const char *event) {
  cli_json_begin(w);
  weir_json_key_text(w, "event", weir_sv_from(event));
}

static void json_values(weir_json_writer *w, const weir_train_value *values,
                        size_t count) {
  weir_json_key(w, "metrics");
  weir_json_object_begin(w, true);
  for (size_t i = 0; i < count; i++)
    cli_json_number(w, values[i].name, values[i].value);
  weir_json_object_end(w);
}

/* ---- Figures */

/* Figures since the last line. */
typedef struct figures {
  double loss, per_s, wait;
} figures;

static figures since(const cli_train_view *v, const weir_train_progress *p) {
  double ns = (double)(p->run_ns - v->seen_ns);
  figures f = {.loss = p->loss};
  if (v->loss_count > 0) f.loss = v->loss_sum / (double)v->loss_count;
  if (ns > 0) {
    f.per_s = (double)(p->examples - v->seen_examples) * 1e9 / ns;
    f.wait = (double)(p->wait_ns - v->seen_wait_ns) / ns;
  }
  return f;
}

static void seen(cli_train_view *v, const weir_train_progress *p) {
  v->seen_step = p->step;
  v->seen_examples = p->examples;
  v->seen_ns = p->run_ns;
  v->seen_wait_ns = p->wait_ns;
  v->loss_sum = 0;
  v->loss_count = 0;
}

/* "31.2k" */
static const char *short_number(double x, char text[16]) {
  if (x >= 1e6)
    snprintf(text, 16, "%.1fM", x / 1e6);
  else if (x >= 1e4)
    snprintf(text, 16, "%.1fk", x / 1e3);
  else
    snprintf(text, 16, "%.0f", x);
  return text;
}

/* "0:14", "1:02:03" */
static const char *duration(double s, char text[24]) {
  long long n = s > 0 && s < 1e9 ? (long long)s : 0;
  if (n >= 3600)
    snprintf(text, 24, "%lld:%02lld:%02lld", n / 3600, n / 60 % 60, n % 60);
  else
    snprintf(text, 24, "%lld:%02lld", n / 60, n % 60);
  return text;
}

/* ---- The bar */

void cli_train_view_clear(cli_train_view *v) {
  if (v->drawn) cli_terminal_clear();
  v->drawn = false;
}

static void append(char *line, size_t *used, const char *text) {
  size_t n = strlen(text);
  if (*used + n >= BAR_LINE) return;
  memcpy(line + *used, text, n + 1);
  *used += n;
}

static void append_bar(const cli_train_view *v, double part, int cells,
                       char *line, size_t *used) {
  int full = (int)(part * cells);
  for (int i = 0; i < cells; i++) {
    const char *cell = i < full ? "\u2501" : i == full ? "\u2578" : "\u2500";
    if (!v->utf8) cell = i < full ? "=" : i == full ? ">" : "-";
    append(line, used, cell);
  }
}

/* Behind the bar: step, loss, metrics, speed, time left. */
static void tail(const cli_train_view *v, const weir_train_progress *p,
                 const figures *f, char *text, size_t room) {
  char per_s[16], eta[24];
  size_t n =
      (size_t)snprintf(text, room, "  step %llu", (unsigned long long)p->step);
  if (p->last_step > 0 && n < room)
    n += (size_t)snprintf(text + n, room - n, "/%llu",
                          (unsigned long long)p->last_step);
  if (n < room)
    n += (size_t)snprintf(text + n, room - n, "  loss %.4g", f->loss);
  for (size_t i = 0; i < p->value_count && n < room; i++)
    if (strcmp(p->values[i].name, "loss") != 0)
      n += (size_t)snprintf(text + n, room - n, "  %s %.4g", p->values[i].name,
                            p->values[i].value);
  if (n < room)
    n += (size_t)snprintf(text + n, room - n, "  %s/s  wait %.0f%%",
                          short_number(f->per_s, per_s), 100 * f->wait);
  uint64_t done = p->step - v->first_step;
  if (p->last_step > p->step && done > 0 && n < room)
    snprintf(text + n, room - n, "  eta %s",
             duration((double)(p->run_ns - v->first_ns) / 1e9 *
                          (double)(p->last_step - p->step) / (double)done,
                      eta));
}

static void draw(cli_train_view *v, const weir_train_progress *p) {
  char line[BAR_LINE] = "", head[64] = "", text[256] = "";
  size_t used = 0;
  figures f = since(v, p);
  double whole = floor(p->epoch), part = p->epoch - whole;
  if (p->epochs > 0 && whole >= (double)p->epochs) {
    whole = (double)p->epochs - 1;
    part = 1;
  }
  if (p->epochs > 0)
    snprintf(head, sizeof head, "epoch %.0f/%llu ", whole + 1,
             (unsigned long long)p->epochs);
  else if (p->last_step > 0)
    part = (double)p->step / (double)p->last_step;
  tail(v, p, &f, text, sizeof text);
  append(line, &used, head);
  int cells = cli_terminal_width() - (int)strlen(head) - (int)strlen(text) - 7;
  if (cells > 30) cells = 30;
  if (cells >= 8) append_bar(v, part, cells, line, &used);
  snprintf(head, sizeof head, " %3.0f%%", 100 * part);
  append(line, &used, head);
  append(line, &used, text);
  cli_terminal_draw(line);
  v->drawn = true;
  v->drawn_ns = cli_now_ns();
  seen(v, p);
}

/* ---- Lines */

static void log_values(const weir_train_value *values, size_t count,
                       bool with_loss) {
  for (size_t i = 0; i < count; i++)
    if (with_loss || strcmp(values[i].name, "loss") != 0)
      cli_log_number(values[i].name, values[i].value, 6);
}

static void log_step(cli_train_view *v, const weir_train_progress *p) {
  figures f = since(v, p);
  cli_log_begin("info", "step");
  cli_log_uint("step", p->step);
  cli_log_number("epoch", p->epoch, 4);
  cli_log_number("loss", f.loss, 6);
  log_values(p->values, p->value_count, false);
  cli_log_number("learning_rate", p->learning_rate, 6);
  cli_log_number("examples_per_s", floor(f.per_s + 0.5), 9);
  cli_log_number("wait_share", f.wait, 3);
  cli_log_end();
  seen(v, p);
}

static void json_line(cli_train_view *v, const weir_train_progress *p) {
  figures f = since(v, p);
  weir_json_writer w;
  json_event(&w, "step");
  weir_json_key_uint(&w, "step", p->step);
  cli_json_number(&w, "epoch", p->epoch);
  cli_json_number(&w, "loss", p->loss);
  cli_json_number(&w, "mean_loss", f.loss);
  cli_json_number(&w, "learning_rate", p->learning_rate);
  json_values(&w, p->values, p->value_count);
  weir_json_key_uint(&w, "examples", p->examples);
  cli_json_number(&w, "examples_per_s", f.per_s);
  cli_json_number(&w, "wait_share", f.wait);
  cli_json_end(&w);
  seen(v, p);
}

static void on_step(void *self, const weir_train_progress *p) {
  cli_train_view *v = self;
  if (v->loss_count == 0 && v->first_ns == 0) {
    v->first_ns = p->run_ns;
    v->first_step = p->step;
  }
  v->loss_sum += p->loss;
  v->loss_count++;
  if (v->json && cli_out_failed()) weir_trainer_stop(v->trainer);
  if (v->quiet && !v->json) return;
  if (v->json && p->log) json_line(v, p);
  if (v->json) return;
  if (v->bar && cli_now_ns() - v->drawn_ns >= REDRAW_NS) draw(v, p);
  if (!v->bar && p->log) log_step(v, p);
}

static void on_epoch(void *self, const weir_train_progress *p) {
  cli_train_view *v = self;
  if (v->json) {
    weir_json_writer w;
    json_event(&w, "epoch");
    weir_json_key_uint(&w, "step", p->step);
    cli_json_number(&w, "epoch", p->epoch);
    cli_json_end(&w);
  } else if (v->bar) {
    draw(v, p);
    cli_note("\n");
    v->drawn = false;
  }
}

static void on_eval(void *self, const weir_train_report *r) {
  cli_train_view *v = self;
  if (v->json) {
    cli_report_print(r, true);
    if (cli_out_failed()) weir_trainer_stop(v->trainer);
    return;
  }
  if (v->quiet) return;
  if (!v->bar) {
    cli_log_begin("info", "eval");
    cli_log_text("data", r->data);
    cli_log_uint("step", r->step);
    log_values(r->values, r->value_count, true);
    cli_log_uint("examples", r->examples);
    cli_log_number("seconds", (double)r->ns / 1e9, 4);
    cli_log_end();
    return;
  }
  cli_train_view_clear(v);
  cli_note("eval %s  step %llu", r->data, (unsigned long long)r->step);
  for (size_t i = 0; i < r->value_count; i++)
    cli_note("  %s %.6g", r->values[i].name, r->values[i].value);
  char took[WEIR_QUANTITY_TEXT];
  cli_note("  (%llu examples, %s)\n", (unsigned long long)r->examples,
           weir_quantity_print_time((int64_t)r->ns, took));
}

static void on_saved(void *self, uint64_t step, int64_t ns) {
  cli_train_view *v = self;
  if (v->json) {
    weir_json_writer w;
    json_event(&w, "checkpoint");
    weir_json_key_uint(&w, "step", step);
    cli_json_number(&w, "ms", (double)ns / 1e6);
    cli_json_end(&w);
  } else if (!v->quiet && !v->bar) {
    cli_log_begin("info", "checkpoint");
    cli_log_uint("step", step);
    cli_log_number("ms", (double)ns / 1e6, 4);
    cli_log_end();
  } else if (!v->quiet) {
    cli_train_view_clear(v);
    char took[WEIR_QUANTITY_TEXT];
    cli_note("checkpoint  step %llu, %s\n", (unsigned long long)step,
             weir_quantity_print_time(ns, took));
  }
}

static void on_resumed(void *self, uint64_t step) {
  cli_train_view *v = self;
  if (v->json) {
    weir_json_writer w;
    json_event(&w, "resumed");
    weir_json_key_uint(&w, "step", step);
    cli_json_end(&w);
  } else if (!v->quiet && !v->bar) {
    cli_log_begin("info", "resumed");
    cli_log_uint("step", step);
    cli_log_end();
  } else if (!v->quiet) {
    cli_note("resumed  step %llu\n", (unsigned long long)step);
  }
}

static void on_warning(void *self, const weir_error *w) {
  cli_train_view *v = self;
  cli_train_view_clear(v);
  if (v->json) {
    weir_json_writer json;
    json_event(&json, "warning");
    weir_json_key_text(&json, "id", weir_sv_from(w->id));
    weir_json_key_text(&json, "message", weir_sv_from(w->message));
    cli_json_end(&json);
  } else if (!v->bar) {
    cli_log_begin("warning", "warning");
    cli_log_text("id", w->id);
    cli_log_text("message", w->message);
    if (w->line > 0) {
      char at[320];
      snprintf(at, sizeof at, "%s:%u:%u", w->file, w->line, w->col);
      cli_log_text("at", at);
    }
    cli_log_end();
  } else {
    cli_note("warning[%s]: %s", w->id, w->message);
    if (w->line > 0) cli_note(" (%s:%u:%u)", w->file, w->line, w->col);
    cli_note("\n");
  }
}

static void on_skipped(void *self, uint64_t count, uint64_t step) {
  cli_train_view *v = self;
  if (v->json) {
    weir_json_writer w;
    json_event(&w, "skipped");
    weir_json_key_uint(&w, "step", step);
    weir_json_key_uint(&w, "checkpoints", count);
    cli_json_end(&w);
  } else if (!v->quiet && !v->bar) {
    cli_log_begin("info", "skipped");
    cli_log_uint("step", step);
    cli_log_uint("checkpoints", count);
    cli_log_end();
  } else if (!v->quiet) {
    cli_note("skipped  %llu checkpoints before step %llu\n",
             (unsigned long long)count, (unsigned long long)step);
  }
}

static void on_waiting(void *self, uint64_t step, const char *why) {
  cli_train_view *v = self;
  if (v->json) {
    weir_json_writer w;
    json_event(&w, "waiting");
    weir_json_key_uint(&w, "step", step);
    weir_json_key_text(&w, "message", weir_sv_from(why));
    cli_json_end(&w);
  } else if (!v->quiet && !v->bar) {
    cli_log_begin("info", "waiting");
    cli_log_uint("step", step);
    cli_log_text("message", why);
    cli_log_end();
  } else if (!v->quiet) {
    cli_note("waiting  step %llu: %s\n", (unsigned long long)step, why);
  }
}

static void on_account(void *self, const weir_train_account *account) {
  cli_train_account(self, account);
}

/* ---- The doors */

void cli_train_view_init(cli_train_view *v, const cli_args *args) {
  *v = (cli_train_view){.json = args->json, .quiet = args->quiet};
  v->bar = !v->json && !v->quiet && cli_terminal();
  if (!v->bar) return;
  setlocale(LC_CTYPE, "");
  v->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

weir_train_callbacks cli_train_view_calls(cli_train_view *v) {
  return (weir_train_callbacks){.struct_size = sizeof(weir_train_callbacks),
                                .self = v,
                                .step = on_step,
                                .epoch = on_epoch,
                                .eval = on_eval,
                                .saved = on_saved,
                                .resumed = on_resumed,
                                .warning = on_warning,
                                .skipped = on_skipped,
                                .waiting = on_waiting,
                                .account = on_account};
}

static const char *const kWhy[] = {
    [WEIR_TRAIN_END_GOING] = "not at its end",
    [WEIR_TRAIN_END_STEPS] = "all steps done",
    [WEIR_TRAIN_END_EPOCHS] = "all epochs done",
    [WEIR_TRAIN_END_TARGET] = "target reached",
    [WEIR_TRAIN_END_TIME] = "time limit reached",
    [WEIR_TRAIN_END_EARLY] = "no longer improving",
    [WEIR_TRAIN_END_STOPPED] = "stopped by a signal",
    [WEIR_TRAIN_END_FAILED] = "failed"};
CLI_TABLE_OF(kWhy, WEIR_TRAIN_END_FAILED + 1);

const char *cli_train_end_why(weir_train_end end) {
  return kWhy[end];
}

static void log_end(weir_train_end end, const weir_train_progress *p) {
  cli_log_begin("info", "end");
  cli_log_text("reason", weir_train_end_name(end));
  cli_log_uint("step", p->step);
  cli_log_number("epoch", p->epoch, 4);
  cli_log_uint("examples", p->examples);
  if (p->examples == 0) cli_log_text("message", "nothing was trained");
  cli_log_number("seconds", (double)p->run_ns / 1e9, 4);
  cli_log_number("wait_seconds", (double)p->wait_ns / 1e9, 4);
  cli_log_number("save_seconds", (double)p->save_ns / 1e9, 4);
  cli_log_number("eval_seconds", (double)p->eval_ns / 1e9, 4);
  cli_log_end();
}

void cli_train_view_end(cli_train_view *v, weir_train_end end,
                        const weir_train_progress *p) {
  double s = (double)p->run_ns / 1e9, wait = (double)p->wait_ns / 1e9;
  double per_s = s > 0 ? (double)p->examples / s : 0;
  char rate[16], time_text[24];
  cli_train_view_clear(v);
  if (v->json) {
    weir_json_writer w;
    json_event(&w, "end");
    weir_json_key_text(&w, "reason", weir_sv_from(weir_train_end_name(end)));
    weir_json_key_uint(&w, "step", p->step);
    cli_json_number(&w, "epoch", p->epoch);
    if (p->examples > 0) cli_json_number(&w, "loss", p->loss);
    weir_json_key_uint(&w, "examples", p->examples);
    cli_json_number(&w, "seconds", s);
    cli_json_number(&w, "wait_seconds", wait);
    cli_json_number(&w, "save_seconds", (double)p->save_ns / 1e9);
    cli_json_number(&w, "eval_seconds", (double)p->eval_ns / 1e9);
    cli_json_end(&w);
  } else if (!v->quiet && !v->bar) {
    log_end(end, p);
  } else if (!v->quiet && p->examples == 0) {
    cli_note("%s before: step %llu, epoch %.4g; nothing was trained\n",
             kWhy[end], (unsigned long long)p->step, p->epoch);
  } else if (!v->quiet) {
    cli_note(
        "%s: step %llu, epoch %.4g, %s, %s examples/s; waited %.2f s for "
        "data (%.1f%%), %.2f s for checkpoints, evaluated for %.2f s\n",
        kWhy[end], (unsigned long long)p->step, p->epoch,
        duration(s, time_text), short_number(per_s, rate), wait,
        s > 0 ? 100 * wait / s : 0, (double)p->save_ns / 1e9,
        (double)p->eval_ns / 1e9);
  }
}

void cli_report_print(const weir_train_report *r, bool json) {
  if (json) {
    weir_json_writer w;
    json_event(&w, "eval");
    weir_json_key_text(&w, "data", weir_sv_from(r->data));
    weir_json_key_uint(&w, "step", r->step);
    weir_json_key_uint(&w, "examples", r->examples);
    cli_json_number(&w, "seconds", (double)r->ns / 1e9);
    json_values(&w, r->values, r->value_count);
    cli_json_end(&w);
    return;
  }
  size_t widest = 8;
  for (size_t i = 0; i < r->value_count; i++)
    if (strlen(r->values[i].name) > widest) widest = strlen(r->values[i].name);
  cli_print("%-*s  %s\n", (int)widest, "data", r->data);
  cli_print("%-*s  %llu\n", (int)widest, "step", (unsigned long long)r->step);
  cli_print("%-*s  %llu\n", (int)widest, "examples",
            (unsigned long long)r->examples);
  for (size_t i = 0; i < r->value_count; i++)
    cli_print("%-*s  %.6g\n", (int)widest, r->values[i].name,
              r->values[i].value);
}
