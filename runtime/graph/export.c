/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/export.h"

#include <string.h>

#include "runtime/graph/hash.h"
#include "runtime/graph/load/load.h"

/* The text is cut, not written anew, so that comments and layout stay. Sections
 * are lines: a top-level key stands in the first column, its value follows up
 * to the next one. Comments just above a key go with it. Params are kept as
 * they are in the file at first; if that gives another graph, since some were
 * set from outside, they are written out with their present values. The result
 * is loaded and compared by hash before it leaves, so no assumption about the
 * text has to hold. */

static const char *const kDropped[] = {
    "train", "data", "cluster", "placement", "weights", "labels", NULL};

static bool is_dropped(weir_sv key) {
  for (size_t i = 0; kDropped[i] != NULL; i++)
    if (weir_sv_is(key, kDropped[i])) return true;
  return false;
}

/* The next line of |text| from |*at| on, with its end. */
static weir_sv next_line(weir_sv text, size_t *at) {
  size_t from = *at;
  while (*at < text.size && text.data[*at] != '\n') (*at)++;
  if (*at < text.size) (*at)++;
  return (weir_sv){text.data + from, *at - from};
}

/* The key that a line begins a section with; empty when it does not. */
static weir_sv key_of(weir_sv line) {
  size_t n = 0;
  while (n < line.size && ((line.data[n] >= 'a' && line.data[n] <= 'z') ||
                           (line.data[n] >= 'A' && line.data[n] <= 'Z') ||
                           (line.data[n] >= '0' && line.data[n] <= '9') ||
                           line.data[n] == '_' || line.data[n] == '-'))
    n++;
  bool key = n > 0 && n < line.size && line.data[n] == ':';
  return (weir_sv){line.data, key ? n : 0};
}

/* A line that may stand above a section and speak of it. */
static bool is_remark(weir_sv line) {
  return line.size > 0 && line.data[0] == '#';
}

/* In single quotes, where only the quote itself is doubled. */
static void write_quoted(weir_strbuf *out, weir_sv text) {
  weir_strbuf_text(out, "'");
  for (size_t k = 0; k < text.size; k++) {
    if (text.data[k] == '\'') weir_strbuf_text(out, "'");
    weir_strbuf_append(out, text.data + k, 1);
  }
  weir_strbuf_text(out, "'");
}

/* The names themselves: their file may not lie beneath the new folder. */
static void write_labels(const weir_graph *g, weir_strbuf *out) {
  if (g->label_count > 0) weir_strbuf_text(out, "labels:\n");
  for (uint32_t i = 0; i < g->label_count; i++) {
    weir_strbuf_text(out, "  - ");
    write_quoted(out, g->labels[i]);
    weir_strbuf_text(out, "\n");
  }
}

static void write_params(const weir_graph *g, weir_strbuf *out) {
  weir_strbuf_text(out, "params:\n");
  for (uint32_t i = 0; i < g->param_count; i++) {
    weir_sv text = g->params[i].text;
    bool plain = text.size > 0;
    for (size_t k = 0; k < text.size && !g->params[i].list; k++)
      plain = plain && strchr(
                           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUV"
                           "WXYZ0123456789_+-./",
                           text.data[k]) != NULL;
    weir_strbuf_printf(out, "  %.*s: ", WEIR_SV(g->params[i].name));
    if (plain)
      weir_strbuf_sv(out, text);
    else
      write_quoted(out, text);
    weir_strbuf_text(out, "\n");
  }
}

/* Remarks are held back until the line below them is known. */
static void cut(const weir_graph *g, bool own_params, weir_strbuf *out) {
  bool keep = true;
  size_t at = 0, held = SIZE_MAX;
  while (at < g->source.size) {
    size_t from = at;
    weir_sv line = next_line(g->source, &at);
    weir_sv key = key_of(line);
    if (key.size == 0 && is_remark(line)) {
      if (held == SIZE_MAX) held = from;
      continue;
    }
    if (key.size > 0) keep = !is_dropped(key);
    bool params = own_params && weir_sv_is(key, "params");
    if (keep && held != SIZE_MAX)
      weir_strbuf_append(out, g->source.data + held, from - held);
    held = SIZE_MAX;
    if (params) {
      write_params(g, out);
      keep = false;
    }
    if (keep) weir_strbuf_sv(out, line);
  }
}

/* Whether |text| loads as |path| and gives |g|. */
static weir_status check(const weir_env *env, const weir_graph *g, weir_sv text,
                         const char *path, bool *out_same, weir_error *err) {
  weir_load_options options = {.registry = g->registry, .seed = g->seed};
  weir_graph *again = NULL;
  *out_same = false;
  WEIR_TRY(weir_graph_load_text(env, text, path, &options, &again, err));
  *out_same = weir_graph_hash(again) == weir_graph_hash(g);
  weir_graph_unref(again);
  return WEIR_OK;
}

static weir_status cut_and_check(const weir_env *env, const weir_graph *g,
                                 const char *path, weir_strbuf *text,
                                 weir_error *err) {
  bool same = false;
  weir_error why = WEIR_ERROR_INIT;
  weir_status s = WEIR_OK;
  for (int own = 0; own < 2 && !same; own++) {
    weir_strbuf_clear(text);
    cut(g, own != 0, text);
    if (text->size > 0 && text->data[text->size - 1] != '\n')
      weir_strbuf_text(text, "\n");
    WEIR_TRY(weir_strbuf_status(text, err));
    s = check(env, g, weir_strbuf_view(text), path, &same, &why);
    if (s != WEIR_OK && strcmp(why.id, "W6001") == 0) {
      weir_error_copy(err, &why);
      return s;
    }
  }
  if (same) return WEIR_OK;
  if (s == WEIR_OK)
    return weir_fail(err, WEIR_W5026, NULL,
                     "without its train and data sections the file gives "
                     "another graph: are there anchors in these sections?");
  s = weir_fail(err, WEIR_W5026, NULL,
                "without its train and data sections, as %s, the graph does "
                "not load: %s",
                path, why.message);
  if (strcmp(why.id, "W1116") == 0)
    weir_hint(err, "export to the folder of the files that the graph imports");
  return s;
}

weir_status weir_graph_export_text(const weir_env *env, const weir_graph *graph,
                                   const char *path, weir_sv weights,
                                   weir_strbuf *out, weir_error *err) {
  weir_strbuf text;
  weir_strbuf_init(&text, env->alloc);
  weir_status s = cut_and_check(env, graph, path, &text, err);
  if (s == WEIR_OK) {
    weir_strbuf_sv(out, weir_strbuf_view(&text));
    write_labels(graph, out);
    weir_strbuf_printf(out, "weights: %.*s\n", WEIR_SV(weights));
    s = weir_strbuf_status(out, err);
  }
  weir_strbuf_release(&text);
  return s;
}
