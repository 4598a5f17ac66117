/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tools/profile/bench_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/api/weir_internal.h"
#include "runtime/base/json/json.h"
#include "runtime/base/strbuf.h"

/* A file may hold several JSON values. Each is cut out by its braces, which
 * needs no more than to know strings, and read as one text; a mark's line is
 * that of the text, to which the lines before it are added. */

enum { FILE_BYTES = 256 << 20 };

/* Figures without which nothing can be compared. */
static const char *const kNeeded[] = {"threads", "runs", "median_ns", "p90_ns",
                                      "min_ns"};
enum { NEEDED = sizeof kNeeded / sizeof *kNeeded };

typedef struct reading {
  weir_bench_file *file;
  weir_json_reader json;
  weir_error *err;
} reading;

static weir_status fail_kind(reading *r, const char *what) {
  weir_mark mark = weir_json_mark(&r->json);
  weir_status s =
      weir_fail(r->err, WEIR_W4018, &mark, "%s is not of weir bench --json: %s",
                r->file->path, what);
  weir_hint(r->err, "weir bench GRAPH --json > FILE writes one");
  return s;
}

/* ---- Values */

static weir_status take_text(reading *r, weir_sv *out) {
  weir_json_token token;
  WEIR_TRY(weir_json_next(&r->json, &token, r->err));
  if (token != WEIR_JSON_STRING) return fail_kind(r, "a text is expected here");
  return weir_json_text(&r->json, &r->file->arena, out, r->err);
}

/* A number; null is NaN. */
static weir_status take_number(reading *r, double *out) {
  weir_json_token token;
  WEIR_TRY(weir_json_next(&r->json, &token, r->err));
  *out = NAN;
  if (token == WEIR_JSON_NULL) return WEIR_OK;
  if (token != WEIR_JSON_NUMBER || !weir_json_get_double(&r->json, out))
    return fail_kind(r, "a number is expected here");
  return WEIR_OK;
}

/* Adds each text of a list to |text|, behind |option|. */
static weir_status take_options(reading *r, const char *option,
                                weir_strbuf *text) {
  weir_json_token token;
  weir_sv item;
  WEIR_TRY(weir_json_next(&r->json, &token, r->err));
  if (token != WEIR_JSON_ARRAY_BEGIN)
    return fail_kind(r, "a list is expected here");
  for (;;) {
    WEIR_TRY(weir_json_next(&r->json, &token, r->err));
    if (token == WEIR_JSON_ARRAY_END) return weir_strbuf_status(text, r->err);
    if (token != WEIR_JSON_STRING)
      return fail_kind(r, "a text is expected here");
    WEIR_TRY(weir_json_text(&r->json, &r->file->arena, &item, r->err));
    weir_strbuf_printf(text, " %s %.*s", option, WEIR_SV(item));
  }
}

/* ---- The profile */

static weir_status take_node_member(reading *r, weir_bench_node *node,
                                    bool *has_time) {
  const weir_json_reader *j = &r->json;
  if (weir_json_text_is(j, "node")) return take_text(r, &node->node);
  if (weir_json_text_is(j, "within")) return take_text(r, &node->within);
  if (weir_json_text_is(j, "op")) return take_text(r, &node->op);
  if (weir_json_text_is(j, "kernel")) return take_text(r, &node->kernel);
  if (!weir_json_text_is(j, "time_ns")) return weir_json_skip(&r->json, r->err);
  *has_time = true;
  return take_number(r, &node->time_ns);
}

/* From behind its brace. */
static weir_status take_node(reading *r, weir_bench_run *run) {
  weir_bench_node node = {.place = (uint32_t)run->nodes.count};
  bool has_time = false;
  weir_json_token token;
  for (;;) {
    WEIR_TRY(weir_json_next(&r->json, &token, r->err));
    if (token == WEIR_JSON_OBJECT_END) break;
    WEIR_TRY(take_node_member(r, &node, &has_time));
  }
  if (!has_time) return fail_kind(r, "a node has no time_ns");
  return weir_vec_push(r->file->alloc, &run->nodes, node)
             ? WEIR_OK
             : weir_fail_memory(r->err, sizeof node);
}

static weir_status take_nodes(reading *r, weir_bench_run *run) {
  weir_json_token token;
  WEIR_TRY(weir_json_next(&r->json, &token, r->err));
  if (token != WEIR_JSON_ARRAY_BEGIN)
    return fail_kind(r, "a list is expected here");
  for (;;) {
    WEIR_TRY(weir_json_next(&r->json, &token, r->err));
    if (token == WEIR_JSON_ARRAY_END) return WEIR_OK;
    if (token != WEIR_JSON_OBJECT_BEGIN)
      return fail_kind(r, "a node is expected here");
    WEIR_TRY(take_node(r, run));
  }
}

static weir_status take_profile(reading *r, weir_bench_run *run) {
  weir_json_token token;
  WEIR_TRY(weir_json_next(&r->json, &token, r->err));
  if (token != WEIR_JSON_OBJECT_BEGIN)
    return fail_kind(r, "a profile is expected here");
  for (;;) {
    WEIR_TRY(weir_json_next(&r->json, &token, r->err));
    if (token == WEIR_JSON_OBJECT_END) break;
    if (weir_json_text_is(&r->json, "nodes"))
      WEIR_TRY(take_nodes(r, run));
    else
      WEIR_TRY(weir_json_skip(&r->json, r->err));
  }
  run->has_profile = true;
  return WEIR_OK;
}

static int order_text(weir_sv a, weir_sv b) {
  size_t size = a.size < b.size ? a.size : b.size;
  int order = size > 0 ? memcmp(a.data, b.data, size) : 0;
  return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

int weir_bench_node_order(const weir_bench_node *a, const weir_bench_node *b) {
  int order = order_text(a->within, b->within);
  if (order == 0) order = order_text(a->node, b->node);
  if (order == 0) order = order_text(a->op, b->op);
  return order != 0 ? order : (a->turn > b->turn) - (a->turn < b->turn);
}

/* Nodes of one name in the file's order, which is not that of a profile's
 * times: by place. */
static int by_name(const void *a, const void *b) {
  const weir_bench_node *x = a, *y = b;
  int order = weir_bench_node_order(x, y);
  return order != 0 ? order : (x->place > y->place) - (x->place < y->place);
}

static void sort_nodes(weir_bench_run *run) {
  weir_bench_node *list = run->nodes.items;
  if (run->nodes.count == 0) return;
  qsort(list, run->nodes.count, sizeof *list, by_name);
  for (size_t i = 1; i < run->nodes.count; i++) {
    weir_bench_node same = list[i];
    same.turn = list[i - 1].turn;
    if (weir_bench_node_order(&same, &list[i - 1]) == 0)
      list[i].turn = list[i - 1].turn + 1;
  }
}

/* ---- One measurement */

/* A member whose name is no other's: a figure, if it is a number. */
static weir_status take_figure(reading *r, weir_bench_run *run) {
  weir_bench_figure figure = {.value = NAN};
  weir_json_token token;
  WEIR_TRY(weir_json_text(&r->json, &r->file->arena, &figure.name, r->err));
  WEIR_TRY(weir_json_next(&r->json, &token, r->err));
  if (token == WEIR_JSON_OBJECT_BEGIN || token == WEIR_JSON_ARRAY_BEGIN)
    return weir_json_skip(&r->json, r->err);
  if (token != WEIR_JSON_NUMBER && token != WEIR_JSON_NULL) return WEIR_OK;
  if (token == WEIR_JSON_NUMBER &&
      !weir_json_get_double(&r->json, &figure.value))
    return fail_kind(r, "the number is too large");
  return weir_vec_push(r->file->alloc, &run->figures, figure)
             ? WEIR_OK
             : weir_fail_memory(r->err, sizeof figure);
}

static weir_status take_member(reading *r, weir_bench_run *run,
                               weir_strbuf *params) {
  const weir_json_reader *j = &r->json;
  if (weir_json_text_is(j, "version")) return take_text(r, &run->version);
  if (weir_json_text_is(j, "graph")) return take_text(r, &run->graph);
  if (weir_json_text_is(j, "machine")) return take_text(r, &run->machine);
  if (weir_json_text_is(j, "isa")) return take_text(r, &run->isa);
  if (weir_json_text_is(j, "params")) return take_options(r, "-p", params);
  if (weir_json_text_is(j, "set")) return take_options(r, "--set", params);
  if (weir_json_text_is(j, "profile")) return take_profile(r, run);
  return take_figure(r, run);
}

double weir_bench_figure_of(const weir_bench_run *run, weir_sv name) {
  for (size_t i = 0; i < run->figures.count; i++)
    if (weir_sv_equal(run->figures.items[i].name, name))
      return run->figures.items[i].value;
  return NAN;
}

static int64_t whole(const weir_bench_run *run, const char *name) {
  double value = weir_bench_figure_of(run, weir_sv_from(name));
  return value >= 0 && value < 1e15 ? (int64_t)value : 0;
}

static weir_status check_figures(reading *r, weir_bench_run *run) {
  for (int i = 0; i < NEEDED; i++) {
    char what[64];
    if (!isnan(weir_bench_figure_of(run, weir_sv_from(kNeeded[i])))) continue;
    snprintf(what, sizeof what, "figure %s is missing", kNeeded[i]);
    return fail_kind(r, what);
  }
  run->threads = whole(run, "threads");
  run->inflight = whole(run, "inflight");
  run->cores = whole(run, "cores");
  return WEIR_OK;
}

static weir_status take_run(reading *r, weir_bench_run *run) {
  weir_json_token token;
  weir_strbuf params;
  weir_strbuf_init(&params, r->file->alloc);
  weir_status s = weir_json_next(&r->json, &token, r->err);
  if (s == WEIR_OK && token != WEIR_JSON_OBJECT_BEGIN)
    s = fail_kind(r, "an object is expected");
  while (s == WEIR_OK) {
    s = weir_json_next(&r->json, &token, r->err);
    if (s != WEIR_OK || token == WEIR_JSON_OBJECT_END) break;
    s = take_member(r, run, &params);
  }
  if (s == WEIR_OK) s = check_figures(r, run);
  if (s == WEIR_OK) s = weir_json_expect(&r->json, WEIR_JSON_END, r->err);
  if (s == WEIR_OK && params.size > 0) {
    const char *copy =
        weir_arena_string(&r->file->arena, params.data + 1, params.size - 1);
    run->params = (weir_sv){copy, params.size - 1};
    if (copy == NULL) s = weir_fail_memory(r->err, params.size);
  }
  weir_strbuf_release(&params);
  sort_nodes(run);
  return s;
}

/* ---- The file */

/* The size of the first value in |text|: of an object or list up to its last
 * brace, of all else up to the end. */
static size_t value_size(weir_sv text) {
  int64_t depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size; i++) {
    char c = text.data[i];
    if (quoted && c == '\\')
      i++;
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && (c == '{' || c == '['))
      depth++;
    else if (!quoted && (c == '}' || c == ']') && --depth == 0)
      return i + 1;
  }
  return text.size;
}

static size_t blanks(weir_sv text) {
  size_t n = 0;
  while (n < text.size && strchr(" \t\r\n", text.data[n]) != NULL &&
         text.data[n] != '\0')
    n++;
  return n;
}

static uint32_t lines_in(const char *data, size_t size) {
  uint32_t lines = 0;
  for (size_t i = 0; i < size; i++) lines += data[i] == '\n';
  return lines;
}

/* The value of |text| that begins at |at|, |size| bytes. */
static weir_status take_value(reading *r, weir_sv text, size_t at,
                              size_t size) {
  const weir_json_options options = {.base_offset = at};
  weir_bench_run empty = {0};
  weir_error own = WEIR_ERROR_INIT;
  weir_error *err = r->err;
  if (!weir_vec_push(r->file->alloc, &r->file->runs, empty))
    return weir_fail_memory(err, sizeof empty);
  r->err = &own;
  weir_json_reader_init(&r->json, (weir_sv){text.data + at, size},
                        r->file->path, &options);
  weir_status s = take_run(r, &r->file->runs.items[r->file->runs.count - 1]);
  r->err = err;
  if (s == WEIR_OK) return WEIR_OK;
  uint32_t before = lines_in(text.data, at);
  if (own.line > 0) own.line += before;
  if (own.end_line > 0) own.end_line += before;
  weir_error_copy(err, &own);
  return s;
}

static weir_status take_all(reading *r, weir_sv text) {
  for (size_t at = blanks(text);;) {
    weir_sv rest = {text.data + at, text.size - at};
    size_t size = value_size(rest);
    WEIR_TRY(take_value(r, text, at, size)); /* of an empty file too */
    at += size;
    at += blanks((weir_sv){text.data + at, text.size - at});
    if (at >= text.size) return WEIR_OK;
  }
}

weir_status weir_bench_file_read(weir_runtime *runtime, const char *path,
                                 weir_bench_file *out, weir_error *err) {
  const weir_fs *fs = runtime->env.fs;
  weir_file file = {0};
  *out = (weir_bench_file){.alloc = runtime->env.alloc, .path = path};
  weir_arena_init(&out->arena, out->alloc);
  WEIR_TRY(fs->read(fs->self, NULL, path, FILE_BYTES, false, &file, err));
  reading r = {.file = out, .err = err};
  weir_status s =
      take_all(&r, (weir_sv){(const char *)file.bytes.data, file.bytes.size});
  fs->close(fs->self, &file);
  return s;
}

void weir_bench_file_release(weir_bench_file *file) {
  for (size_t i = 0; i < file->runs.count; i++) {
    weir_vec_free(file->alloc, &file->runs.items[i].figures);
    weir_vec_free(file->alloc, &file->runs.items[i].nodes);
  }
  weir_vec_free(file->alloc, &file->runs);
  weir_arena_release(&file->arena);
}
