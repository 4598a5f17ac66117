/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/api/weir_internal.h"
#include "runtime/base/json/json.h"
#include "runtime/base/quantity.h"
#include "runtime/base/strbuf.h"
#include "runtime/tools/profile/bench_file.h"

/* Two files of measurements, side by side.
 *
 * Measurements are paired by their threads and steps under way; where both
 * files have one alone they are a pair in any case. Nodes are paired by name,
 * both lists being sorted by it, and shown by how much time was gained or lost.
 * Cost: O(nodes log nodes). */

typedef struct node_pair {
  const weir_bench_node *a, *b; /* one may be NULL */
  double change_ns;
} node_pair;

/* A pair of measurements. */
typedef struct comparing {
  const weir_bench_file *file_a, *file_b;
  const weir_bench_run *a, *b;
  WEIR_VEC(node_pair) nodes; /* most changed first */
} comparing;

/* ---- What differs */

enum { DIFFERENCES = 8 };

typedef struct difference {
  const char *name;
  bool decides; /* the two are not of the same work */
  bool there;
  char a[160], b[160];
} difference;

static void put_text(difference *d, const char *name, bool decides, weir_sv a,
                     weir_sv b) {
  *d = (difference){.name = name, .decides = decides};
  d->there = !weir_sv_equal(a, b);
  snprintf(d->a, sizeof d->a, "%.*s", a.size > 0 ? (int)a.size : 1,
           a.size > 0 ? a.data : "-");
  snprintf(d->b, sizeof d->b, "%.*s", b.size > 0 ? (int)b.size : 1,
           b.size > 0 ? b.data : "-");
}

static void put_number(difference *d, const char *name, int64_t a, int64_t b) {
  *d = (difference){.name = name, .decides = true, .there = a != b};
  snprintf(d->a, sizeof d->a, "%" PRId64, a);
  snprintf(d->b, sizeof d->b, "%" PRId64, b);
}

/* Another version or instruction set is what one compares with, so it is told
 * and no more. */
static void find_differences(const comparing *c, difference all[DIFFERENCES]) {
  put_text(&all[0], "graph", true, c->a->graph, c->b->graph);
  put_text(&all[1], "params", true, c->a->params, c->b->params);
  put_text(&all[2], "machine", true, c->a->machine, c->b->machine);
  put_number(&all[3], "cores", c->a->cores, c->b->cores);
  put_number(&all[4], "threads", c->a->threads, c->b->threads);
  put_number(&all[5], "inflight", c->a->inflight, c->b->inflight);
  put_text(&all[6], "version", false, c->a->version, c->b->version);
  put_text(&all[7], "isa", false, c->a->isa, c->b->isa);
}

/* ---- Nodes */

static int by_change(const void *a, const void *b) {
  const node_pair *x = a, *y = b;
  double p = fabs(x->change_ns), q = fabs(y->change_ns);
  if (p != q) return p < q ? 1 : -1;
  return weir_bench_node_order(x->a != NULL ? x->a : x->b,
                               y->a != NULL ? y->a : y->b);
}

static double time_of(const weir_bench_node *node) {
  return node != NULL && isfinite(node->time_ns) ? node->time_ns : 0;
}

static weir_status pair_nodes(comparing *c, const weir_allocator *alloc,
                              weir_error *err) {
  size_t i = 0, k = 0;
  while (i < c->a->nodes.count || k < c->b->nodes.count) {
    const weir_bench_node *a =
        i < c->a->nodes.count ? &c->a->nodes.items[i] : NULL;
    const weir_bench_node *b =
        k < c->b->nodes.count ? &c->b->nodes.items[k] : NULL;
    int order = a == NULL ? 1 : b == NULL ? -1 : weir_bench_node_order(a, b);
    node_pair pair = {order <= 0 ? a : NULL, order >= 0 ? b : NULL, 0};
    i += order <= 0;
    k += order >= 0;
    pair.change_ns = time_of(pair.b) - time_of(pair.a);
    if (!weir_vec_push(alloc, &c->nodes, pair))
      return weir_fail_memory(err, sizeof pair);
  }
  if (c->nodes.count > 0)
    qsort(c->nodes.items, c->nodes.count, sizeof *c->nodes.items, by_change);
  return WEIR_OK;
}

/* ---- As text */

static const char *number(double value, char text[32]) {
  if (isfinite(value))
    snprintf(text, 32, "%.6g", value);
  else
    snprintf(text, 32, "-");
  return text;
}

static const char *ratio_of(double a, double b, char text[32]) {
  return number(a > 0 ? b / a : NAN, text);
}

/* Numbers that say what was measured, and not how quick it is. */
static bool is_setting(weir_sv name) {
  return weir_sv_is(name, "threads") || weir_sv_is(name, "inflight") ||
         weir_sv_is(name, "cores");
}

static void add_figures(const comparing *c, weir_strbuf *out) {
  char a[32], b[32], ratio[32];
  weir_strbuf_printf(out, "%-16s %14s %14s %10s\n", "figure", "A", "B", "B/A");
  for (size_t i = 0; i < c->a->figures.count; i++) {
    const weir_bench_figure *f = &c->a->figures.items[i];
    double value = weir_bench_figure_of(c->b, f->name);
    if (is_setting(f->name)) continue;
    weir_strbuf_printf(out, "%-16.*s %14s %14s %10s\n", WEIR_SV(f->name),
                       number(f->value, a), number(value, b),
                       ratio_of(f->value, value, ratio));
  }
}

static const char *time_text(const weir_bench_node *node,
                             char text[WEIR_QUANTITY_TEXT]) {
  return node != NULL ? weir_quantity_print_time((int64_t)time_of(node), text)
                      : "-";
}

static const char *change_text(double ns, char text[WEIR_QUANTITY_TEXT + 1]) {
  text[0] = ns < 0 ? '-' : '+';
  weir_quantity_print_time((int64_t)fabs(ns), text + 1);
  return text;
}

static void add_kernels(const node_pair *p, weir_strbuf *out) {
  const weir_bench_node *one = p->a != NULL ? p->a : p->b;
  weir_strbuf_printf(out, "%.*s", WEIR_SV(one->kernel));
  if (p->a == NULL)
    weir_strbuf_text(out, " (B alone)");
  else if (p->b == NULL)
    weir_strbuf_text(out, " (A alone)");
  else if (!weir_sv_equal(p->a->kernel, p->b->kernel))
    weir_strbuf_printf(out, " -> %.*s", WEIR_SV(p->b->kernel));
}

static void add_nodes(const comparing *c, weir_strbuf *out) {
  char a[WEIR_QUANTITY_TEXT], b[WEIR_QUANTITY_TEXT], ratio[32];
  char change[WEIR_QUANTITY_TEXT + 1];
  weir_strbuf_printf(out, "%10s %10s %9s %11s  %s\n", "A", "B", "B/A", "change",
                     "node, kernel");
  for (size_t i = 0; i < c->nodes.count; i++) {
    const node_pair *p = &c->nodes.items[i];
    const weir_bench_node *one = p->a != NULL ? p->a : p->b;
    bool both = p->a != NULL && p->b != NULL;
    weir_strbuf_printf(
        out, "%10s %10s %9s %11s  %.*s%s%.*s, ", time_text(p->a, a),
        time_text(p->b, b),
        both ? ratio_of(time_of(p->a), time_of(p->b), ratio) : "-",
        change_text(p->change_ns, change), WEIR_SV(one->within),
        one->within.size > 0 ? " > " : "", WEIR_SV(one->node));
    add_kernels(p, out);
    weir_strbuf_text(out, "\n");
  }
}

static void add_text(const comparing *c, const difference *all,
                     weir_strbuf *out) {
  weir_strbuf_printf(
      out, "A: %s, %" PRId64 " threads\nB: %s, %" PRId64 " threads\n",
      c->file_a->path, c->a->threads, c->file_b->path, c->b->threads);
  for (int i = 0; i < DIFFERENCES; i++)
    if (all[i].there)
      weir_strbuf_printf(out, "%s differ%s: %s / %s\n", all[i].name,
                         all[i].name[strlen(all[i].name) - 1] == 's' ? "" : "s",
                         all[i].a, all[i].b);
  add_figures(c, out);
  if (c->a->has_profile != c->b->has_profile)
    weir_strbuf_printf(out, "%s has no profile: nodes are not compared\n",
                       c->a->has_profile ? "B" : "A");
  else if (c->a->has_profile)
    add_nodes(c, out);
}

/* ---- As JSON */

static void write_finite(weir_json_writer *w, const char *key, double value) {
  weir_json_key(w, key);
  if (isfinite(value))
    weir_json_double(w, value);
  else
    weir_json_null(w);
}

static void write_figures(const comparing *c, weir_json_writer *w) {
  weir_json_key(w, "figures");
  weir_json_array_begin(w, false);
  for (size_t i = 0; i < c->a->figures.count; i++) {
    const weir_bench_figure *f = &c->a->figures.items[i];
    double b = weir_bench_figure_of(c->b, f->name);
    if (is_setting(f->name)) continue;
    weir_json_object_begin(w, true);
    weir_json_key_text(w, "figure", f->name);
    write_finite(w, "a", f->value);
    write_finite(w, "b", b);
    write_finite(w, "ratio", f->value > 0 ? b / f->value : NAN);
    weir_json_object_end(w);
  }
  weir_json_array_end(w);
}

static void write_node(const node_pair *p, weir_json_writer *w) {
  const weir_bench_node *one = p->a != NULL ? p->a : p->b;
  weir_json_object_begin(w, true);
  weir_json_key_text(w, "node", one->node);
  if (one->within.size > 0) weir_json_key_text(w, "within", one->within);
  write_finite(w, "a_ns", p->a != NULL ? p->a->time_ns : NAN);
  write_finite(w, "b_ns", p->b != NULL ? p->b->time_ns : NAN);
  write_finite(w, "ratio",
               p->a != NULL && p->b != NULL && time_of(p->a) > 0
                   ? time_of(p->b) / time_of(p->a)
                   : NAN);
  write_finite(w, "change_ns", p->change_ns);
  if (p->a != NULL) weir_json_key_text(w, "a_kernel", p->a->kernel);
  if (p->b != NULL) weir_json_key_text(w, "b_kernel", p->b->kernel);
  weir_json_object_end(w);
}

static bool write_json(const comparing *c, const difference *all,
                       const weir_writer *out) {
  weir_json_writer w;
  weir_json_writer_init(&w, *out, 1);
  weir_json_object_begin(&w, true);
  weir_json_key_text(&w, "a", weir_sv_from(c->file_a->path));
  weir_json_key_text(&w, "b", weir_sv_from(c->file_b->path));
  weir_json_key_int(&w, "threads", c->a->threads);
  weir_json_key(&w, "differ");
  weir_json_object_begin(&w, true);
  for (int i = 0; i < DIFFERENCES; i++) {
    if (!all[i].there) continue;
    weir_json_key(&w, all[i].name);
    weir_json_array_begin(&w, true);
    weir_json_string(&w, weir_sv_from(all[i].a));
    weir_json_string(&w, weir_sv_from(all[i].b));
    weir_json_array_end(&w);
  }
  weir_json_object_end(&w);
  write_figures(c, &w);
  if (c->a->has_profile && c->b->has_profile) {
    weir_json_key(&w, "nodes");
    weir_json_array_begin(&w, false);
    for (size_t i = 0; i < c->nodes.count; i++)
      write_node(&c->nodes.items[i], &w);
    weir_json_array_end(&w);
  }
  weir_json_object_end(&w);
  return weir_json_finish(&w);
}

/* ---- All pairs */

/* Names what makes the two another work. */
static void add_difference(const difference *all, weir_strbuf *names) {
  for (int i = 0; i < DIFFERENCES; i++) {
    if (!all[i].there || !all[i].decides) continue;
    if (names->size > 0 && strstr(names->data, all[i].name) != NULL) continue;
    weir_strbuf_printf(names, "%s%s", names->size > 0 ? ", " : "", all[i].name);
  }
}

static weir_status compare_pair(comparing *c, const weir_tools_bench_diff *opts,
                                const weir_allocator *alloc,
                                weir_strbuf *differ, const weir_writer *out,
                                weir_error *err) {
  difference all[DIFFERENCES];
  weir_strbuf text;
  weir_strbuf_init(&text, alloc);
  find_differences(c, all);
  add_difference(all, differ);
  weir_status s = WEIR_OK;
  bool ok = true;
  if (c->a->has_profile && c->b->has_profile) s = pair_nodes(c, alloc, err);
  if (s == WEIR_OK && opts->json) ok = write_json(c, all, out);
  if (s == WEIR_OK && !opts->json) {
    add_text(c, all, &text);
    s = weir_strbuf_status(&text, err);
    if (s == WEIR_OK) ok = out->write(out->self, text.data, text.size);
  }
  weir_vec_free(alloc, &c->nodes);
  weir_strbuf_release(&text);
  if (s == WEIR_OK && !ok)
    s = weir_fail(err, WEIR_W5009, NULL, "the table could not be written");
  return s;
}

/* The measurement of |in| that belongs to |run| of |from|; NULL: none. */
static const weir_bench_run *partner(const weir_bench_file *from,
                                     const weir_bench_run *run,
                                     const weir_bench_file *in) {
  if (from->runs.count == 1 && in->runs.count == 1) return &in->runs.items[0];
  for (size_t i = 0; i < in->runs.count; i++)
    if (in->runs.items[i].threads == run->threads &&
        in->runs.items[i].inflight == run->inflight)
      return &in->runs.items[i];
  return NULL;
}

/* Measurements of |in| that |other| has none for. */
static void tell_lonely(const weir_bench_file *in, const weir_bench_file *other,
                        weir_strbuf *differ) {
  for (size_t i = 0; i < in->runs.count; i++) {
    const weir_bench_run *run = &in->runs.items[i];
    if (partner(in, run, other) != NULL) continue;
    weir_strbuf_printf(differ, "%s%s has no run with %" PRId64 " threads",
                       differ->size > 0 ? ", " : "", other->path, run->threads);
  }
}

static weir_status compare_all(const weir_bench_file *a,
                               const weir_bench_file *b,
                               const weir_tools_bench_diff *opts,
                               const weir_allocator *alloc,
                               const weir_writer *out, weir_error *err) {
  weir_strbuf differ;
  weir_status s = WEIR_OK;
  weir_strbuf_init(&differ, alloc);
  for (size_t i = 0; s == WEIR_OK && i < a->runs.count; i++) {
    comparing c = {.file_a = a, .file_b = b, .a = &a->runs.items[i]};
    c.b = partner(a, c.a, b);
    if (c.b != NULL) s = compare_pair(&c, opts, alloc, &differ, out, err);
  }
  tell_lonely(a, b, &differ);
  tell_lonely(b, a, &differ);
  if (s == WEIR_OK) s = weir_strbuf_status(&differ, err);
  if (s == WEIR_OK && differ.size > 0)
    s = weir_fail(err, WEIR_W0010, NULL,
                  "%s and %s are not of the same work: %.400s", a->path,
                  b->path, differ.data);
  weir_strbuf_release(&differ);
  return s;
}

weir_status weir_tools_bench_compare(weir_runtime *runtime,
                                     const weir_tools_bench_diff *opts,
                                     weir_write_fn write, void *self,
                                     weir_error *err) {
  const weir_writer out = {self, write};
  const weir_allocator *alloc = runtime->env.alloc;
  weir_bench_file a, b;
  weir_status s = weir_bench_file_read(runtime, opts->a, &a, err);
  if (s == WEIR_OK) {
    s = weir_bench_file_read(runtime, opts->b, &b, err);
    if (s == WEIR_OK) s = compare_all(&a, &b, opts, alloc, &out, err);
    weir_bench_file_release(&b);
  }
  weir_bench_file_release(&a);
  return s;
}
