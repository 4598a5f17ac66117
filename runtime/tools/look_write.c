/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernels/profile.h"
#include "runtime/base/json/json.h"
#include "runtime/base/quantity.h"
#include "runtime/net/wire.h"
#include "runtime/tools/look.h"

/* Looks at tasks, as text and as JSON.
 *
 * A table is made in two passes over the same cells: the widths, then the
 * lines. The last column has no width. */

enum { CELL = 352, HASH_BYTES = 20 };

static const char *phase_name(const weir_observe_row *r) {
  switch (r->state.phase) {
    case WEIR__V1__TASK_PHASE__SERVING:
      return "serves";
    case WEIR__V1__TASK_PHASE__DECIDING:
      return "decides";
    case WEIR__V1__TASK_PHASE__ENDING:
      return "ends";
    default:
      return "idle";
  }
}

/* ---- Cells: each writes one, of CELL bytes */

typedef void cell_fn(const weir_look_text *t, uint32_t i, char *out);

static void cell_task(const weir_look_text *t, uint32_t i, char *out) {
  snprintf(out, CELL, "%s:%u", t->list->tasks[i].job, t->list->tasks[i].index);
}

static void cell_address(const weir_look_text *t, uint32_t i, char *out) {
  snprintf(out, CELL, "%s", t->list->tasks[i].address);
}

static void cell_version(const weir_look_text *t, uint32_t i, char *out) {
  snprintf(out, CELL, "%s", t->rows[i].known ? t->rows[i].version : "-");
}

static void cell_kernels(const weir_look_text *t, uint32_t i, char *out) {
  char text[WEIR_PROFILE_TEXT];
  const weir_observe_row *r = &t->rows[i];
  snprintf(out, CELL, "%s",
           r->profile != 0 ? weir_profile_text(r->profile, text) : "-");
}

static void bytes(char *out, bool known, double value, const char *per) {
  char text[WEIR_QUANTITY_TEXT];
  if (known && value > 0)
    snprintf(out, CELL, "%s%s", weir_quantity_print_bytes((int64_t)value, text),
             per);
  else
    snprintf(out, CELL, "-");
}

static void cell_memory(const weir_look_text *t, uint32_t i, char *out) {
  bytes(out, t->rows[i].known, (double)t->rows[i].memory_bytes, "");
}

static void cell_up(const weir_look_text *t, uint32_t i, char *out) {
  bytes(out, true, t->rows[i].up_bytes_per_s, "/s");
}

static void cell_down(const weir_look_text *t, uint32_t i, char *out) {
  bytes(out, true, t->rows[i].down_bytes_per_s, "/s");
}

static void trip(const weir_observe_trips *trips, int64_t ns, char *out) {
  char text[WEIR_QUANTITY_TEXT];
  bool any = trips->sent > trips->lost && trips->max_ns > 0;
  snprintf(out, CELL, "%s", any ? weir_quantity_print_time(ns, text) : "-");
}

static void cell_p50(const weir_look_text *t, uint32_t i, char *out) {
  trip(&t->rows[i].trips, t->rows[i].trips.p50_ns, out);
}

static void cell_p99(const weir_look_text *t, uint32_t i, char *out) {
  trip(&t->rows[i].trips, t->rows[i].trips.p99_ns, out);
}

static void cell_max(const weir_look_text *t, uint32_t i, char *out) {
  trip(&t->rows[i].trips, t->rows[i].trips.max_ns, out);
}

static void cell_min(const weir_look_text *t, uint32_t i, char *out) {
  trip(&t->rows[i].trips, t->rows[i].trips.min_ns, out);
}

static void cell_answers(const weir_look_text *t, uint32_t i, char *out) {
  const weir_observe_trips *trips = &t->rows[i].trips;
  snprintf(out, CELL, "%u of %u", trips->sent - trips->lost, t->opts->pings);
}

/* Whether program |k| is the first one of its graph; one that only reads or
 * writes variables is of none. */
static bool first_of_graph(const weir_task_state *s, uint32_t k) {
  if (s->held[k].graph_hash == 0) return false;
  for (uint32_t i = 0; i < k; i++)
    if (s->held[i].graph_hash == s->held[k].graph_hash) return false;
  return true;
}

static void cell_graphs(const weir_look_text *t, uint32_t i, char *out) {
  const weir_task_state *s = &t->rows[i].state;
  size_t at = 0;
  out[0] = '\0';
  for (uint32_t k = 0; k < s->held_count; k++) {
    if (!first_of_graph(s, k) || at + HASH_BYTES > CELL) continue;
    at += (size_t)snprintf(out + at, CELL - at, "%s%016" PRIx64,
                           at > 0 ? "," : "", s->held[k].graph_hash);
  }
  if (at == 0) snprintf(out, CELL, "-");
}

/* "the driver at A", "2 drivers in share b, at A and C". */
static void drivers(const weir_task_state *s, char *out) {
  uint32_t n = s->driver_count;
  if (n == 0) {
    snprintf(out, CELL, "without a driver");
    return;
  }
  size_t at =
      n == 1
          ? (size_t)snprintf(out, CELL, "the driver at %s", s->drivers[0])
          : (size_t)snprintf(out, CELL, "%u drivers at %s", n, s->drivers[0]);
  for (uint32_t i = 1; i < n && at < CELL; i++)
    at += (size_t)snprintf(out + at, CELL - at, "%s%s",
                           i + 1 == n ? " and " : ", ", s->drivers[i]);
  if (s->share[0] != '\0' && at < CELL)
    (void)snprintf(out + at, CELL - at, " in share %s", s->share);
}

static void cell_state(const weir_look_text *t, uint32_t i, char *out) {
  const weir_observe_row *r = &t->rows[i];
  const weir_task_state *s = &r->state;
  char who[CELL];
  drivers(s, who);
  if (r->error.id[0] != '\0') {
    snprintf(out, CELL, "%s%.320s",
             r->known ? "" : "unreachable: ", r->error.message);
  } else if (r->stopped) {
    snprintf(out, CELL, "ended");
  } else if (s->phase == WEIR__V1__TASK_PHASE__FREE) {
    snprintf(out, CELL, "idle");
  } else if (s->committed > 0) {
    int n = snprintf(out, CELL, "%s %.300s", phase_name(r), who);
    snprintf(out + n, CELL - (size_t)n, ", step %" PRIu64 " is committed",
             s->committed);
  } else {
    snprintf(out, CELL, "%s %.300s", phase_name(r), who);
  }
}

/* ---- The table */

typedef struct column {
  const char *title;
  cell_fn *cell;
} column;

static const column kShow[] = {
    {"task", cell_task},       {"address", cell_address},
    {"version", cell_version}, {"kernels", cell_kernels},
    {"memory", cell_memory},   {"p50", cell_p50},
    {"p99", cell_p99},         {"graphs", cell_graphs},
    {"state", cell_state}};
static const column kBandwidth[] = {
    {"task", cell_task},       {"address", cell_address},
    {"version", cell_version}, {"kernels", cell_kernels},
    {"memory", cell_memory},   {"p50", cell_p50},
    {"p99", cell_p99},         {"to it", cell_up},
    {"from it", cell_down},    {"graphs", cell_graphs},
    {"state", cell_state}};
static const column kPing[] = {{"task", cell_task},  {"answers", cell_answers},
                               {"min", cell_min},    {"p50", cell_p50},
                               {"p99", cell_p99},    {"max", cell_max},
                               {"state", cell_state}};
static const column kStop[] = {
    {"task", cell_task}, {"address", cell_address}, {"state", cell_state}};

static size_t columns_of(const weir_tools_look *o, const column **out) {
  if (o->kind == WEIR_TOOLS_LOOK_PING) {
    *out = kPing;
    return sizeof kPing / sizeof *kPing;
  }
  if (o->kind == WEIR_TOOLS_LOOK_STOP) {
    *out = kStop;
    return sizeof kStop / sizeof *kStop;
  }
  *out = o->bandwidth_bytes > 0 ? kBandwidth : kShow;
  return o->bandwidth_bytes > 0 ? sizeof kBandwidth / sizeof *kBandwidth
                                : sizeof kShow / sizeof *kShow;
}

static size_t width_of(const weir_look_text *t, const column *c) {
  char cell[CELL];
  size_t width = strlen(c->title);
  for (uint32_t i = 0; i < t->list->count; i++) {
    c->cell(t, i, cell);
    if (strlen(cell) > width) width = strlen(cell);
  }
  return width;
}

weir_status weir_look_write_text(const weir_look_text *t, weir_strbuf *out,
                                 weir_error *err) {
  enum { COLUMNS = 16 };
  const column *columns;
  size_t widths[COLUMNS], count = columns_of(t->opts, &columns);
  char cell[CELL];
  for (size_t c = 0; c < count; c++) widths[c] = width_of(t, &columns[c]);
  for (uint32_t i = 0; i <= t->list->count; i++) {
    for (size_t c = 0; c < count; c++) {
      if (i == 0)
        snprintf(cell, sizeof cell, "%s", columns[c].title);
      else
        columns[c].cell(t, i - 1, cell);
      weir_strbuf_text(out, cell);
      if (c + 1 < count)
        weir_strbuf_repeat(out, ' ', widths[c] - strlen(cell) + 2);
    }
    weir_strbuf_text(out, "\n");
  }
  return weir_strbuf_status(out, err);
}

/* ---- JSON */

static void write_trips(weir_json_writer *w, const weir_observe_trips *t) {
  weir_json_key(w, "round_trip");
  weir_json_object_begin(w, true);
  weir_json_key_uint(w, "sent", t->sent);
  weir_json_key_uint(w, "lost", t->lost);
  if (t->max_ns > 0) {
    weir_json_key_int(w, "min_ns", t->min_ns);
    weir_json_key_int(w, "mean_ns", t->mean_ns);
    weir_json_key_int(w, "p50_ns", t->p50_ns);
    weir_json_key_int(w, "p99_ns", t->p99_ns);
    weir_json_key_int(w, "max_ns", t->max_ns);
  }
  weir_json_object_end(w);
}

static void write_programs(weir_json_writer *w, const weir_task_state *s) {
  char hash[HASH_BYTES];
  weir_json_key(w, "programs");
  weir_json_array_begin(w, true);
  for (uint32_t i = 0; i < s->held_count; i++) {
    snprintf(hash, sizeof hash, "%016" PRIx64, s->held[i].graph_hash);
    weir_json_object_begin(w, true);
    weir_json_key_uint(w, "program", s->held[i].program);
    weir_json_key_text(w, "graph", weir_sv_from(hash));
    weir_json_key_uint(w, "memory_bytes", s->held[i].memory_bytes);
    weir_json_object_end(w);
  }
  weir_json_array_end(w);
}

static void write_drivers(weir_json_writer *w, const weir_task_state *s) {
  weir_json_key_text(w, "share", weir_sv_from(s->share));
  weir_json_key(w, "drivers");
  weir_json_array_begin(w, true);
  for (uint32_t i = 0; i < s->driver_count; i++)
    weir_json_string(w, weir_sv_from(s->drivers[i]));
  weir_json_array_end(w);
}

static void write_state(weir_json_writer *w, const weir_observe_row *r) {
  const weir_task_state *s = &r->state;
  char text[WEIR_PROFILE_TEXT];
  weir_json_key_text(w, "version", weir_sv_from(r->version));
  weir_json_key_text(w, "kernels",
                     weir_sv_from(weir_profile_text(r->profile, text)));
  weir_json_key_uint(w, "memory_bytes", r->memory_bytes);
  weir_json_key_uint(w, "uptime_ns", r->uptime_ns);
  if (s->phase != WEIR__V1__TASK_PHASE__FREE) {
    weir_json_key_text(w, "driver",
                       weir_sv_from(s->driver_count > 0 ? s->drivers[0] : ""));
    if (s->share[0] != '\0') write_drivers(w, s);
    weir_json_key_uint(w, "epoch", s->epoch);
    weir_json_key_uint(w, "tasks", s->tasks);
    weir_json_key_uint(w, "steps", s->steps);
    weir_json_key_uint(w, "committed", s->committed);
  }
  write_programs(w, s);
}

static void write_row(weir_json_writer *w, const weir_look_text *t,
                      uint32_t i) {
  const weir_driver_task *task = &t->list->tasks[i];
  const weir_observe_row *r = &t->rows[i];
  weir_json_object_begin(w, false);
  weir_json_key_text(w, "job", weir_sv_from(task->job));
  weir_json_key_uint(w, "index", task->index);
  weir_json_key_text(w, "address", weir_sv_from(task->address));
  const char *state = r->stopped ? "ended"
                      : r->known ? phase_name(r)
                                 : "unreachable";
  weir_json_key_text(w, "state", weir_sv_from(state));
  if (r->error.id[0] != '\0') {
    weir_json_key_text(w, "error", weir_sv_from(r->error.id));
    weir_json_key_text(w, "message", weir_sv_from(r->error.message));
  }
  if (r->known) write_state(w, r);
  if (r->trips.sent > 0) write_trips(w, &r->trips);
  if (r->up_bytes_per_s > 0)
    weir_json_key_double(w, "to_bytes_per_s", r->up_bytes_per_s);
  if (r->down_bytes_per_s > 0)
    weir_json_key_double(w, "from_bytes_per_s", r->down_bytes_per_s);
  weir_json_object_end(w);
}

weir_status weir_look_write_json(const weir_look_text *t, weir_strbuf *out,
                                 weir_error *err) {
  weir_json_writer w;
  weir_json_writer_init(&w, weir_strbuf_writer(out), 2);
  weir_json_array_begin(&w, false);
  for (uint32_t i = 0; i < t->list->count; i++) write_row(&w, t, i);
  weir_json_array_end(&w);
  if (!weir_json_finish(&w) && !out->failed)
    return weir_fail(err, WEIR_W5009, NULL, "the list could not be written");
  return weir_strbuf_status(out, err);
}
