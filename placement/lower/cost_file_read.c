/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/lower/cost_file_read.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "placement/cluster/machine.h"
#include "placement/lower/cost_file.h"
#include "runtime/base/number.h"

/* Reads a cost file, line by line and field by field. The text is untrusted:
 * every number has a limit that keeps later sums in 64 bits, a unit may stand
 * once, and the first fault ends the reading with its place. Nothing recurses.
 */

#define MOST_FS INT64_C(1000000000000000) /* 1 byte a second */

typedef struct line {
  weir_costs *costs;
  weir_sv text; /* of the line, without its end */
  size_t at;
  weir_mark mark;
  weir_error *err;
} line;

static weir_status bad(line *l, size_t at, size_t size, const char *what) {
  l->mark.col = (uint32_t)at + 1;
  l->mark.end_line = l->mark.line;
  l->mark.end_col = (uint32_t)(at + size) + 1;
  weir_status s = weir_fail(l->err, WEIR_W3045, &l->mark, "expected %s", what);
  weir_hint(l->err,
            "weir place GRAPH --calibrate --costs FILE writes such a "
            "file");
  return s;
}

/* The next field, up to a space or the end. */
static weir_status read_field(line *l, const char *what, weir_sv *out) {
  size_t begin = l->at, end = begin;
  while (end < l->text.size && l->text.data[end] != ' ') end++;
  if (end == begin) return bad(l, begin, 1, what);
  *out = (weir_sv){l->text.data + begin, end - begin};
  l->at = end < l->text.size ? end + 1 : end;
  return WEIR_OK;
}

static weir_status read_number(line *l, const char *what, int64_t most,
                               int64_t *out) {
  size_t begin = l->at;
  weir_sv field = {0};
  WEIR_TRY(read_field(l, what, &field));
  if (!weir_number_parse_int(field, out) || *out < 0 || *out > most)
    return bad(l, begin, field.size, what);
  return WEIR_OK;
}

static weir_status read_rest(line *l, const char *what, weir_sv *out) {
  *out = (weir_sv){l->text.data + l->at, l->text.size - l->at};
  if (out->size == 0) return bad(l, l->at, 1, what);
  l->at = l->text.size;
  return WEIR_OK;
}

static weir_status expect_end(line *l) {
  return l->at == l->text.size ? WEIR_OK
                               : bad(l, l->at, 1, "the end of the line");
}

/* "cpu" or "cpu*4". */
static weir_status read_device(line *l, int *out_kind, uint32_t *out_threads) {
  size_t begin = l->at;
  weir_sv field = {0}, name;
  char names[128], what[160];
  int64_t threads = 1;
  snprintf(what, sizeof what, "%s, with threads as in cpu*4",
           weir_device_kind_names(names, sizeof names));
  WEIR_TRY(read_field(l, what, &field));
  name = field;
  const char *star = memchr(field.data, '*', field.size);
  if (star != NULL) {
    name.size = (size_t)(star - field.data);
    weir_sv number = {star + 1, field.size - name.size - 1};
    if (!weir_number_parse_int(number, &threads) || threads < 2 ||
        threads > WEIR_MACHINE_THREADS)
      return bad(l, begin, field.size, "2 to 256 threads behind the *");
  }
  *out_kind = weir_device_kind_find(name);
  *out_threads = (uint32_t)threads;
  if (*out_kind == WEIR_DEVICE_ANY ||
      (threads > 1 && !weir_device_kinds[*out_kind]->host))
    return bad(l, begin, field.size, what);
  return WEIR_OK;
}

static weir_status read_sample(line *l, weir_cost_sample *out) {
  int64_t spread, count;
  WEIR_TRY(
      read_number(l, "a time in nanoseconds", INT64_MAX / 8, &out->median_ns));
  WEIR_TRY(read_number(l, "a spread in thousandths", UINT32_MAX, &spread));
  WEIR_TRY(read_number(l, "a number of runs", UINT32_MAX, &count));
  out->spread_permille = (uint32_t)spread;
  out->count = (uint32_t)count;
  return WEIR_OK;
}

/* ---- Kinds of lines */

static weir_status read_machine(line *l) {
  weir_sv name = {0}, text = {0};
  WEIR_TRY(read_field(l, "the name of a fact about the machine", &name));
  size_t begin = l->at;
  WEIR_TRY(read_rest(l, "a description", &text));
  /* Files of before say once that all units ran on one thread. */
  if (weir_sv_is(name, "threads"))
    return weir_sv_is(text, "1")
               ? WEIR_OK
               : bad(l, begin, text.size, "1: a unit says its threads (cpu*4)");
  return weir_costs_set_fact(l->costs, name, text, l->err);
}

static weir_status read_step(line *l) {
  weir_cost_step step;
  size_t begin = l->at;
  WEIR_TRY(read_device(l, &step.cls, &step.threads));
  WEIR_TRY(read_sample(l, &step.sample));
  if (!weir_costs_set_step(l->costs, &step))
    return bad(l, begin, 1, "at most 16 lines of steps");
  return expect_end(l);
}

/* The fields behind the bytes that it holds from. */
static weir_status read_piece(line *l, weir_cost_piece *p) {
  int64_t spread, count;
  WEIR_TRY(read_number(l, "a latency in nanoseconds", INT64_MAX / 8,
                       &p->latency_ns));
  WEIR_TRY(read_number(l, "femtoseconds a byte", MOST_FS, &p->fs_per_byte));
  WEIR_TRY(
      read_number(l, "a sender's nanoseconds", INT64_MAX / 8, &p->send_ns));
  WEIR_TRY(read_number(l, "a sender's femtoseconds a byte", MOST_FS,
                       &p->send_fs_per_byte));
  WEIR_TRY(read_number(l, "a spread in thousandths", UINT32_MAX, &spread));
  WEIR_TRY(read_number(l, "a number of runs", UINT32_MAX, &count));
  p->spread_permille = (uint32_t)spread;
  p->count = (uint32_t)count;
  return expect_end(l);
}

/* "cpu->gpu"; NULL: it is not that. */
static weir_cost_piece *way_called(weir_costs *c, weir_sv text) {
  for (size_t i = 0; i + 1 < text.size; i++) {
    if (memcmp(text.data + i, "->", 2) != 0) continue;
    int from = weir_device_kind_find((weir_sv){text.data, i});
    int to =
        weir_device_kind_find((weir_sv){text.data + i + 2, text.size - i - 2});
    return from == WEIR_DEVICE_ANY || to == WEIR_DEVICE_ANY
               ? NULL
               : &c->ways[from][to];
  }
  return NULL;
}

static weir_status read_link(line *l) {
  static const char kBetween[] = "in-process or two kinds as in cpu->gpu";
  weir_costs *c = l->costs;
  weir_cost_piece p = {0};
  size_t begin = l->at;
  weir_sv kind = {0};
  WEIR_TRY(read_field(l, kBetween, &kind));
  weir_cost_piece *way = way_called(c, kind);
  if (way == NULL && !weir_sv_is(kind, "in-process"))
    return bad(l, begin, kind.size, kBetween);
  if (way != NULL && way->count > 0)
    return bad(l, begin, kind.size, "each pair of kinds once");
  begin = l->at;
  WEIR_TRY(read_number(l, "bytes", INT64_MAX / 8, &p.from_bytes));
  size_t size = l->at - begin;
  if (way != NULL) {
    if (p.from_bytes != 0) return bad(l, begin, size, "0 bytes");
    WEIR_TRY(read_piece(l, &p));
    *way = p;
    return WEIR_OK;
  }
  if (c->piece_count == WEIR_COST_PIECES ||
      (c->piece_count > 0 &&
       p.from_bytes <= c->pieces[c->piece_count - 1].from_bytes))
    return bad(l, begin, size, "at most 8 pieces in ascending order");
  WEIR_TRY(read_piece(l, &p));
  c->pieces[c->piece_count++] = p;
  return WEIR_OK;
}

static weir_status read_unit(line *l) {
  weir_cost_entry e = {.flops = 0};
  int cls;
  weir_sv key = {0};
  WEIR_TRY(read_device(l, &cls, &e.threads));
  WEIR_TRY(read_sample(l, &e.sample));
  WEIR_TRY(read_number(l, "a number of operations", INT64_MAX, &e.flops));
  WEIR_TRY(read_number(l, "a number of bytes", INT64_MAX, &e.bytes));
  size_t begin = l->at;
  WEIR_TRY(read_rest(l, "the measured unit", &key));
  if (key.size > WEIR_COST_KEY_BYTES)
    return bad(l, begin, key.size, "at most 1000 bytes for the measured unit");
  if (weir_costs_find(l->costs, cls, e.threads, key) != NULL)
    return bad(l, begin, key.size, "each unit once");
  return weir_costs_set(l->costs, cls, key, &e, l->err);
}

static weir_status read_line(line *l) {
  weir_sv kind = {0};
  if (l->text.size == 0 || l->text.data[0] == '#') return WEIR_OK;
  WEIR_TRY(read_field(l, "machine, step, link or unit", &kind));
  if (weir_sv_is(kind, "machine")) return read_machine(l);
  if (weir_sv_is(kind, "step")) return read_step(l);
  if (weir_sv_is(kind, "link")) return read_link(l);
  if (weir_sv_is(kind, "unit")) return read_unit(l);
  return bad(l, 0, kind.size, "machine, step, link or unit");
}

static weir_status read_all(weir_costs *c, weir_sv text, const char *name,
                            weir_error *err) {
  line l = {.costs = c, .mark = {.file = name}, .err = err};
  for (size_t at = 0, end; at < text.size || l.mark.line == 0; at = end + 1) {
    end = at;
    while (end < text.size && text.data[end] != '\n') end++;
    l.mark.line++;
    l.text = (weir_sv){text.data + at, end - at};
    l.at = 0;
    if (l.mark.line > 1)
      WEIR_TRY(read_line(&l));
    else if (!weir_sv_is(l.text, "weir-costs 1"))
      return bad(&l, 0, 1, "weir-costs 1 in the first line");
  }
  return WEIR_OK;
}

weir_status weir_costs_read(const weir_allocator *alloc, weir_sv text,
                            const char *name, weir_costs **out_costs,
                            weir_error *err) {
  WEIR_TRY(weir_costs_create(alloc, out_costs, err));
  weir_status s = read_all(*out_costs, text, name, err);
  if (s == WEIR_OK) return WEIR_OK;
  weir_costs_release(*out_costs);
  *out_costs = NULL;
  return s;
}
