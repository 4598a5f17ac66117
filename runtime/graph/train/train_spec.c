/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/train/train_spec.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/join.h"
#include "runtime/base/yaml/yaml_scalar.h"
#include "runtime/graph/parse/parse_call.h"
#include "runtime/graph/train/train_call.h"
#include "runtime/graph/train/train_read.h"
#include "runtime/graph/train/train_rules.h"
#include "runtime/graph/train/train_rules_check.h"
#include "runtime/graph/train/train_shared.h"

/* The `train` section as a table of keys, and the half of it that is about the
 * loop: ends, evaluation, checkpoints, summaries. A key that needs others, or
 * nodes of the graph, is checked once all are read: keys stand in any order. */

#define AT(field) .offset = offsetof(weir_train_spec, field)

static bool read_minimize(weir_train_reader *r, const weir_yaml_entry *e,
                          void *target) {
  (void)target;
  r->spec->minimize_mark = e->value->mark;
  if (!weir_train_want(r, e->value, WEIR_YAML_SCALAR, "minimize")) return false;
  r->spec->minimize = e->value->text;
  return true;
}

/* ---- stop */

/* The first of |marks| in |text|; SIZE_MAX when there is none. */
static size_t find_text(weir_sv text, const char *mark) {
  size_t size = strlen(mark);
  for (size_t i = 0; i + size <= text.size; i++)
    if (memcmp(text.data + i, mark, size) == 0) return i;
  return SIZE_MAX;
}

static weir_sv trimmed(weir_sv text) {
  while (text.size > 0 && text.data[0] == ' ') {
    text.data++;
    text.size--;
  }
  while (text.size > 0 && text.data[text.size - 1] == ' ') text.size--;
  return text;
}

/* "acc >= 0.90" */
static bool read_target(weir_train_reader *r, const weir_yaml_entry *e,
                        void *target) {
  weir_target_spec *out = &r->spec->stop.target;
  (void)target;
  if (!weir_train_want(r, e->value, WEIR_YAML_SCALAR, "target")) return false;
  weir_sv text = e->value->text;
  out->at_least = find_text(text, ">=") != SIZE_MAX;
  size_t at = find_text(text, out->at_least ? ">=" : "<=");
  out->mark = e->value->mark;
  if (at != SIZE_MAX) {
    weir_sv limit = trimmed((weir_sv){text.data + at + 2, text.size - at - 2});
    const weir_graph_param *p = weir_train_param(r, limit);
    out->metric = trimmed((weir_sv){text.data, at});
    if (out->metric.size > 0 &&
        weir_text_float(p != NULL ? p->text : limit, &out->value) &&
        !isnan(out->value))
      return true;
  }
  out->metric = (weir_sv){NULL, 0};
  return weir_train_report(
      r, WEIR_W1131, &e->value->mark,
      "a target is written \"acc >= 0.90\" or \"loss <= 0.1\"");
}

static bool read_better(weir_train_reader *r, const weir_yaml_entry *e,
                        void *target) {
  (void)target;
  if (!weir_train_want(r, e->value, WEIR_YAML_SCALAR, "better")) return false;
  r->spec->stop.early_at_least = weir_sv_is(e->value->text, "higher");
  if (r->spec->stop.early_at_least || weir_sv_is(e->value->text, "lower"))
    return true;
  return weir_train_report(r, WEIR_W1131, &e->value->mark,
                           "better is '%.*s', must be higher or lower",
                           WEIR_SV(e->value->text));
}

static const weir_train_key kEarlyKeys[] = {
    {"metric", WEIR_TRAIN_TEXT, AT(stop.early_metric)},
    {"patience", WEIR_TRAIN_COUNT4, AT(stop.early_patience), .min = 1},
    {"min_delta", WEIR_TRAIN_NUMBER, AT(stop.early_delta)},
    {"better", WEIR_TRAIN_CUSTOM, .read = read_better},
    {NULL}};

/* A larger metric is better, unless it is the minimized one. */
static bool read_early(weir_train_reader *r, const weir_yaml_entry *e,
                       void *target) {
  weir_train_spec *spec = r->spec;
  (void)target;
  spec->stop.early_patience = 3;
  if (!weir_train_read_map(r, e->value, "early", kEarlyKeys, spec))
    return false;
  if (spec->stop.early_metric.size == 0)
    return weir_train_report(r, WEIR_W1010, &e->value->mark,
                             "early needs `metric`");
  if (weir_yaml_get(e->value, "better") == NULL) {
    const weir_yaml *minimize = weir_yaml_get(spec->section, "minimize");
    spec->stop.early_at_least =
        minimize == NULL || minimize->kind != WEIR_YAML_SCALAR ||
        !weir_sv_equal(minimize->text, spec->stop.early_metric);
  }
  return true;
}

static const weir_train_key kStopKeys[] = {
    {"target", WEIR_TRAIN_CUSTOM, .read = read_target},
    {"time", WEIR_TRAIN_TIME, AT(stop.time_ns)},
    {"grace", WEIR_TRAIN_TIME, AT(stop.grace_ns)},
    {"early", WEIR_TRAIN_CUSTOM, .read = read_early},
    {NULL}};

/* ---- eval */

static bool metric_map(weir_train_reader *r, const weir_yaml *y,
                       weir_metric_spec *out) {
  static const char *const kKeys[] = {"name", "node", "perplexity"};
  bool ok = true;
  for (uint32_t i = 0; i < y->count; i++) {
    const weir_yaml_entry *e = &y->entries[i];
    size_t k = 0;
    while (k < 3 && !weir_sv_is(e->key, kKeys[k])) k++;
    if (k == 3) {
      ok = weir_train_report(r, WEIR_W1009, &e->key_mark,
                             "unknown key '%.*s' in a metric; there are name, "
                             "node, perplexity",
                             WEIR_SV(e->key));
      continue;
    }
    if (!weir_train_want(r, e->value, WEIR_YAML_SCALAR, kKeys[k])) return false;
    if (k == 0)
      out->name = e->value->text;
    else
      out->node = e->value->text;
    out->perplexity |= k == 2;
  }
  if (out->name.size == 0) out->name = out->node;
  if (!ok || out->node.size > 0) return ok;
  return weir_train_report(r, WEIR_W1010, &y->mark,
                           "a metric needs `node` or `perplexity`");
}

static bool read_metrics(weir_train_reader *r, const weir_yaml_entry *e,
                         void *target) {
  const weir_yaml *y = e->value;
  (void)target;
  const weir_yaml *const *items = y->kind == WEIR_YAML_LIST ? y->items : &y;
  uint32_t count = y->kind == WEIR_YAML_LIST ? y->count : 1;
  weir_metric_spec *out = weir_arena_array(r->arena, count, sizeof *out);
  if (out == NULL) return weir_train_memory(r);
  bool ok = true;
  for (uint32_t i = 0; i < count; i++) {
    out[i].mark = items[i]->mark;
    if (items[i]->kind == WEIR_YAML_MAP) {
      ok = metric_map(r, items[i], &out[i]) && ok;
    } else if (weir_train_want(r, items[i], WEIR_YAML_SCALAR, "a metric")) {
      out[i].name = out[i].node = items[i]->text;
    } else {
      ok = false;
    }
  }
  r->spec->eval.metrics = out;
  r->spec->eval.metric_count = count;
  return ok;
}

static const weir_train_key kEvalKeys[] = {
    {"data", WEIR_TRAIN_TEXT, AT(eval.data)},
    {"every", WEIR_TRAIN_EVERY, AT(eval.every)},
    {"metrics", WEIR_TRAIN_CUSTOM, .read = read_metrics},
    {"steps", WEIR_TRAIN_COUNT, AT(eval.steps), .min = 1},
    {NULL}};

/* ---- checkpoint, summary, log */

static const weir_train_key kCheckpointKeys[] = {
    {"dir", WEIR_TRAIN_FOLDER, AT(checkpoint.dir)},
    {"every", WEIR_TRAIN_EVERY, AT(checkpoint.every)},
    {"keep", WEIR_TRAIN_COUNT4, AT(checkpoint.keep)},
    {"keep_every", WEIR_TRAIN_EVERY, AT(checkpoint.keep_every)},
    {"async", WEIR_TRAIN_BOOL, AT(checkpoint.async)},
    {NULL}};

static bool read_scalars(weir_train_reader *r, const weir_yaml_entry *e,
                         void *target) {
  (void)target;
  r->spec->summary.has_scalars = true;
  return weir_train_texts(r, e->value, "scalars", &r->spec->summary.scalars,
                          &r->spec->summary.scalar_count);
}

static bool read_histograms(weir_train_reader *r, const weir_yaml_entry *e,
                            void *target) {
  (void)target;
  r->spec->summary.has_histograms = true;
  return weir_train_texts(r, e->value, "histograms",
                          &r->spec->summary.histograms,
                          &r->spec->summary.histogram_count);
}

static const weir_train_key kSummaryKeys[] = {
    {"dir", WEIR_TRAIN_FOLDER, AT(summary.dir)},
    {"every", WEIR_TRAIN_EVERY, AT(summary.every)},
    {"scalars", WEIR_TRAIN_CUSTOM, .read = read_scalars},
    {"histograms", WEIR_TRAIN_CUSTOM, .read = read_histograms},
    {"graph", WEIR_TRAIN_BOOL, AT(summary.graph)},
    {"csv", WEIR_TRAIN_FILE, AT(summary.csv)},
    {"jsonl", WEIR_TRAIN_FILE, AT(summary.jsonl)},
    {NULL}};

static const weir_train_key kLogKeys[] = {{"every", WEIR_TRAIN_EVERY, AT(log)},
                                          {NULL}};

static bool read_log(weir_train_reader *r, const weir_yaml_entry *e,
                     void *target) {
  (void)target;
  if (e->value->kind == WEIR_YAML_MAP)
    return weir_train_read_map(r, e->value, "log", kLogKeys, r->spec);
  return weir_train_every(r, e->value, "log", &r->spec->log);
}

static bool read_clip(weir_train_reader *r, const weir_yaml_entry *e,
                      void *target) {
  (void)target;
  return weir_train_read_map(r, e->value, "clip", weir_train_clip_keys,
                             (void *)(uintptr_t)r->spec->rules);
}

static bool read_ema(weir_train_reader *r, const weir_yaml_entry *e,
                     void *target) {
  (void)target;
  return weir_train_read_map(r, e->value, "ema", weir_train_ema_keys,
                             (void *)(uintptr_t)r->spec->rules);
}

const weir_train_key weir_train_keys[] = {
    {"minimize", WEIR_TRAIN_CUSTOM, .read = read_minimize},
    {"optimizer", WEIR_TRAIN_CUSTOM, .read = weir_train_read_optimizer},
    {"lr", WEIR_TRAIN_CUSTOM, .read = weir_train_read_lr},
    {"schedule", WEIR_TRAIN_CUSTOM, .read = weir_train_read_schedule},
    {"l2", WEIR_TRAIN_CUSTOM, .read = weir_train_read_l2},
    {"l2_exclude", WEIR_TRAIN_CUSTOM, .read = weir_train_read_patterns},
    {"trainable", WEIR_TRAIN_CUSTOM, .read = weir_train_read_patterns},
    {"recompute", WEIR_TRAIN_CUSTOM, .read = weir_train_read_patterns},
    {"clip", WEIR_TRAIN_CUSTOM, .read = read_clip},
    {"ema", WEIR_TRAIN_CUSTOM, .read = read_ema},
    {"accumulate", WEIR_TRAIN_COUNT4, AT(accumulate), .min = 1},
    {"average", WEIR_TRAIN_CHOICE, AT(average), .choices = "equal|examples"},
    {"data", WEIR_TRAIN_TEXT, AT(data)},
    {"epochs", WEIR_TRAIN_COUNT, AT(epochs), .min = 1},
    {"steps", WEIR_TRAIN_COUNT, AT(steps), .min = 1},
    {"reset_state", WEIR_TRAIN_CHOICE, AT(reset_state), .choices = "epoch"},
    {"stop", WEIR_TRAIN_MAP, .sub = kStopKeys},
    {"eval", WEIR_TRAIN_MAP, .sub = kEvalKeys},
    {"checkpoint", WEIR_TRAIN_MAP, .sub = kCheckpointKeys},
    {"summary", WEIR_TRAIN_MAP, .sub = kSummaryKeys},
    {"log", WEIR_TRAIN_CUSTOM, .read = read_log},
    {"nan_trap", WEIR_TRAIN_BOOL, AT(nan_trap)},
    {"mode", WEIR_TRAIN_CUSTOM, .read = weir_train_read_mode},
    {"sync", WEIR_TRAIN_CUSTOM, .read = weir_train_read_way},
    {"async", WEIR_TRAIN_CUSTOM, .read = weir_train_read_way},
    {"bounded", WEIR_TRAIN_CUSTOM, .read = weir_train_read_way},
    {"all_reduce", WEIR_TRAIN_CUSTOM, .read = weir_train_read_way},
    {"sync_every", WEIR_TRAIN_CUSTOM, .read = weir_train_read_shared},
    {"evict_after", WEIR_TRAIN_CUSTOM, .read = weir_train_read_shared},
    {"ps", WEIR_TRAIN_CUSTOM, .sub = weir_train_ps_keys,
     .read = weir_train_read_shared},
    {"replicate", WEIR_TRAIN_CUSTOM, .read = weir_train_read_shared},
    {"lr_scale", WEIR_TRAIN_CUSTOM, .read = weir_train_read_shared},
    {NULL}};

/* ---- Checks once all is read */

static weir_sv metric_at(const void *self, size_t i) {
  return ((const weir_train_spec *)self)->eval.metrics[i].name;
}

/* A metric that decides must be one that evaluation computes. */
static bool check_metric(weir_train_reader *r, weir_sv name,
                         const weir_mark *at) {
  const weir_train_spec *spec = r->spec;
  if (name.size == 0 || weir_sv_equal(name, spec->minimize)) return true;
  for (uint32_t i = 0; i < spec->eval.metric_count; i++)
    if (weir_sv_equal(spec->eval.metrics[i].name, name)) return true;
  weir_train_report_begin(r, WEIR_W1135, at, "eval has no metric '%.*s'",
                          WEIR_SV(name));
  weir_train_nearest(r, name, spec->eval.metric_count, metric_at, spec);
  return weir_train_report_send(r);
}

static weir_sv entry_at(const void *self, size_t i) {
  return ((const weir_yaml *)self)->entries[i].key;
}

static bool check_data(weir_train_reader *r, const weir_yaml *holder) {
  const weir_yaml *name = holder != NULL && holder->kind == WEIR_YAML_MAP
                              ? weir_yaml_get(holder, "data")
                              : NULL;
  const weir_yaml *data = r->graph->data;
  if (name == NULL || data == NULL || data->kind != WEIR_YAML_MAP) return true;
  if (weir_yaml_entry_of(data, name->text) != NULL) return true;
  weir_train_report_begin(r, WEIR_W1135, &name->mark,
                          "the data section has no '%.*s'",
                          WEIR_SV(name->text));
  weir_train_nearest(r, name->text, data->count, entry_at, data);
  return weir_train_report_send(r);
}

static bool check_nodes(weir_train_reader *r) {
  const weir_train_spec *spec = r->spec;
  const weir_yaml *summary = weir_yaml_get(spec->section, "summary");
  bool ok = true;
  for (uint32_t i = 0; i < spec->eval.metric_count; i++) {
    const weir_metric_spec *m = &spec->eval.metrics[i];
    if (weir_graph_find_value(r->graph, m->node) == WEIR_NO_VALUE)
      ok = weir_train_no_node(r, WEIR_W1135, &m->mark, m->node, "eval");
  }
  for (uint32_t i = 0; i < spec->summary.scalar_count; i++)
    if (weir_graph_find_value(r->graph, spec->summary.scalars[i]) ==
            WEIR_NO_VALUE &&
        !weir_sv_starts_with(spec->summary.scalars[i], "train/"))
      ok = weir_train_no_node(r, WEIR_W1135, &summary->mark,
                              spec->summary.scalars[i], "summary");
  return ok;
}

static void check_all(weir_train_reader *r) {
  const weir_yaml *section = r->spec->section;
  if (r->errors > 0) return; /* a missing key may be misspelled */
  if (weir_yaml_get(section, "minimize") == NULL)
    weir_train_report(r, WEIR_W1010, &section->mark, "train needs `minimize`");
  if (weir_yaml_get(section, "optimizer") == NULL)
    weir_train_report(r, WEIR_W1010, &section->mark, "train needs `optimizer`");
  const weir_yaml *stop = weir_yaml_get(section, "stop");
  weir_train_check_shared(r);
  check_metric(r, r->spec->stop.target.metric, &r->spec->stop.target.mark);
  if (r->spec->stop.early_metric.size > 0)
    check_metric(r, r->spec->stop.early_metric, &stop->mark);
  check_data(r, section);
  check_data(r, weir_yaml_get(section, "eval"));
  if (r->spec->rules->optimizer != NULL) weir_train_check_rules(r);
  if (r->names && r->errors == 0) check_nodes(r);
}

/* ---- The doors */

static weir_train_spec *create(const weir_allocator *alloc) {
  weir_train_spec *spec = weir_alloc_array(alloc, 1, sizeof *spec);
  if (spec == NULL) return NULL;
  weir_arena_init(&spec->arena, alloc);
  struct weir_train_rules *rules =
      weir_arena_array(&spec->arena, 1, sizeof *rules);
  if (rules == NULL) {
    weir_train_spec_release(spec);
    return NULL;
  }
  rules->initial = NAN;
  spec->rules = rules;
  spec->data = WEIR_SV_LIT("train");
  spec->accumulate = 1;
  spec->shared.max_staleness = UINT32_MAX;
  spec->shared.split_bytes = INT64_C(64) << 20;
  spec->checkpoint.keep = 5;
  spec->checkpoint.async = true;
  spec->checkpoint.every.ns = INT64_C(600000000000);
  spec->eval.every.epochs = 1;
  spec->summary.every.steps = spec->log.steps = 100;
  spec->summary.graph = true;
  spec->nan_trap = true;
  return spec;
}

void weir_train_spec_release(weir_train_spec *spec) {
  if (spec == NULL) return;
  const weir_allocator *alloc = spec->arena.alloc;
  weir_arena_release(&spec->arena);
  weir_free(alloc, spec);
}

/* Reads everything; the number of findings is in |r|. */
static void read_section(weir_train_reader *r) {
  r->spec = create(r->graph->alloc);
  r->parser = weir_parser_create(r->graph->alloc);
  if (r->spec == NULL || r->parser == NULL) {
    weir_train_memory(r);
  } else {
    r->arena = &r->spec->arena;
    r->spec->section = r->graph->train;
    weir_train_read_map(r, r->graph->train, "train", weir_train_keys, r->spec);
    if (r->graph->train->kind == WEIR_YAML_MAP && !r->fatal) check_all(r);
  }
  weir_parser_release(r->parser);
}

weir_status weir_train_spec_read(const weir_graph *graph,
                                 const weir_diag_sink *sink,
                                 weir_train_spec **out_spec, weir_error *err) {
  weir_train_reader r = {
      .graph = graph, .sink = sink, .err = err, .names = true};
  *out_spec = NULL;
  if (graph->train == NULL)
    return weir_fail(err, WEIR_W1130, NULL, "%.*s has no `train` section",
                     WEIR_SV(graph->file));
  read_section(&r);
  if (r.errors == 0) {
    *out_spec = r.spec;
    return WEIR_OK;
  }
  weir_train_spec_release(r.spec);
  return r.status;
}

uint32_t weir_train_check(const weir_graph *graph, const weir_diag_sink *sink,
                          bool names, weir_error *err) {
  weir_train_reader r = {
      .graph = graph, .sink = sink, .err = err, .names = names};
  read_section(&r);
  weir_train_spec_release(r.spec);
  return r.errors;
}

bool weir_train_unused(const weir_train_spec *spec, weir_error *err) {
  char names[160] = "", one[40];
  for (uint32_t i = 0; i < spec->unused_count; i++) {
    snprintf(one, sizeof one, "%.*s", WEIR_SV(spec->unused_names[i]));
    weir_join_name(names, sizeof names, one);
  }
  if (spec->unused_count == 0) return false;
  weir_fail(err, WEIR_W1136, spec->unused[0],
            "train: %s: no effect yet: a training has one graph", names);
  return true;
}
