/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/train/train_shared.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/graph/train/train_call.h"

/* The ways in which tasks train together, as one table: `mode: sync(backup=1)`
 * and `sync: {backup: 1}` are the same, so both are read by the same rows.
 */

#define AT(field) offsetof(weir_train_shared, field)

static const weir_train_key kSyncKeys[] = {
    {"aggregate", WEIR_TRAIN_COUNT4, AT(aggregate), .min = 1},
    {"backup", WEIR_TRAIN_COUNT4, AT(backup)},
    {NULL}};
#define STALENESS_LR                                     \
  {                                                      \
    "staleness_lr", WEIR_TRAIN_CHOICE, AT(staleness_lr), \
        .choices = "none|inverse"                        \
  }
static const weir_train_key kBoundedKeys[] = {
    {"staleness", WEIR_TRAIN_COUNT4, AT(staleness)}, STALENESS_LR, {NULL}};
static const weir_train_key kAsyncKeys[] = {
    {"max_staleness", WEIR_TRAIN_COUNT4, AT(max_staleness)},
    STALENESS_LR,
    {NULL}};
static const weir_train_key kAllReduceKeys[] = {
    {"algorithm", WEIR_TRAIN_CHOICE, AT(algorithm),
     .choices = "auto|ring|tree"},
    {NULL}};
const weir_train_key weir_train_ps_keys[] = {
    {"split", WEIR_TRAIN_BYTES, AT(split_bytes)}, {NULL}};
static const weir_train_key kSharedKeys[] = {
    {"sync_every", WEIR_TRAIN_COUNT4, AT(sync_every), .min = 1},
    {"replicate", WEIR_TRAIN_CHOICE, AT(replicate),
     .choices = "between_graph|in_graph"},
    {"evict_after", WEIR_TRAIN_TIME, AT(evict_ns)},
    {"ps", WEIR_TRAIN_MAP, .sub = weir_train_ps_keys},
    {"lr_scale", WEIR_TRAIN_CHOICE, AT(lr_scale),
     .choices = "none|linear|sqrt"},
    {NULL}};

static const struct {
  const char *name;
  weir_train_way way;
  const weir_train_key *keys; /* the first may be left without its name */
} kWays[] = {{"async", WEIR_WAY_ASYNC, kAsyncKeys},
             {"sync", WEIR_WAY_SYNC, kSyncKeys},
             {"bounded", WEIR_WAY_BOUNDED, kBoundedKeys},
             {"all_reduce", WEIR_WAY_ALL_REDUCE, kAllReduceKeys}};
enum { WAYS = sizeof kWays / sizeof kWays[0] };

static void remember(weir_train_reader *r, const weir_yaml_entry *e) {
  weir_train_spec *spec = r->spec;
  if (spec->unused_count == sizeof spec->unused / sizeof spec->unused[0])
    return;
  spec->unused_names[spec->unused_count] = e->key;
  spec->unused[spec->unused_count++] = &e->key_mark;
}

/* A way is named once: by `mode`, or by the key of its name. */
static bool choose(weir_train_reader *r, size_t i, const weir_mark *at) {
  weir_train_shared *shared = &r->spec->shared;
  if (shared->way != WEIR_WAY_NONE)
    return weir_train_report(r, WEIR_W1131, at,
                             "replicas train by %s or by %s: one of them",
                             shared->way_name, kWays[i].name);
  shared->way = kWays[i].way;
  shared->way_name = kWays[i].name;
  shared->way_mark = *at;
  return true;
}

bool weir_train_read_shared(weir_train_reader *r, const weir_yaml_entry *e,
                            void *target) {
  weir_yaml map = {.kind = WEIR_YAML_MAP, .count = 1, .entries = e};
  (void)target;
  remember(r, e);
  return weir_train_read_map(r, &map, "train", kSharedKeys, &r->spec->shared);
}

/* true and false, or a map, or the value of the way's first key. */
bool weir_train_read_way(weir_train_reader *r, const weir_yaml_entry *e,
                         void *target) {
  weir_train_shared *shared = &r->spec->shared;
  size_t i = 0;
  (void)target;
  remember(r, e);
  while (i + 1 < WAYS && !weir_sv_is(e->key, kWays[i].name)) i++;
  if (e->value->kind == WEIR_YAML_MAP)
    return choose(r, i, &e->key_mark) &&
           weir_train_read_map(r, e->value, kWays[i].name, kWays[i].keys,
                               shared);
  if (!weir_train_want(r, e->value, WEIR_YAML_SCALAR, kWays[i].name))
    return false;
  weir_sv text = weir_train_scalar(r, e->value);
  if (weir_sv_is(text, "false")) return true;
  if (!choose(r, i, &e->key_mark)) return false;
  if (weir_sv_is(text, "true")) return true;
  weir_yaml_entry first = {.key = weir_sv_from(kWays[i].keys[0].name),
                           .key_mark = e->key_mark,
                           .value = e->value};
  weir_yaml map = {.kind = WEIR_YAML_MAP, .count = 1, .entries = &first};
  return weir_train_read_map(r, &map, kWays[i].name, kWays[i].keys, shared);
}

/* An argument of a call as an entry of the way's map, so that the table checks
 * it. Numbers were read already, and are written again. */
static bool read_argument(weir_train_reader *r, const weir_train_key *keys,
                          const char *way, const weir_train_arg *a) {
  char number[40];
  weir_yaml value = {.kind = WEIR_YAML_SCALAR, .mark = a->mark};
  snprintf(number, sizeof number, "%.17g", a->number);
  value.text = weir_sv_from(number);
  if (a->kind == WEIR_ARG_TEXT) value.text = a->text;
  if (a->kind == WEIR_ARG_BOOL)
    value.text = weir_sv_from(a->b ? "true" : "false");
  if (a->kind == WEIR_ARG_CALL) value.text = a->call->name;
  weir_yaml_entry e = {
      .key = a->name.size > 0 ? a->name : weir_sv_from(keys[0].name),
      .key_mark = a->name_mark,
      .value = &value};
  weir_yaml map = {.kind = WEIR_YAML_MAP, .count = 1, .entries = &e};
  return weir_train_read_map(r, &map, way, keys, &r->spec->shared);
}

bool weir_train_read_mode(weir_train_reader *r, const weir_yaml_entry *e,
                          void *target) {
  weir_train_call *call = NULL;
  char names[64] = "";
  size_t n = 0;
  (void)target;
  remember(r, e);
  if (!weir_train_read_call(r, e->value, "mode", &call)) return false;
  for (size_t i = 0; i < WAYS && n < sizeof names; i++) {
    bool ok = true;
    n += (size_t)snprintf(names + n, sizeof names - n, "%s%s",
                          weir_sv_before(i, WAYS), kWays[i].name);
    if (!weir_sv_is(call->name, kWays[i].name)) continue;
    if (!choose(r, i, &e->key_mark)) return false;
    for (uint32_t k = 0; k < call->count; k++)
      ok = read_argument(r, kWays[i].keys, kWays[i].name, &call->args[k]) && ok;
    return ok;
  }
  return weir_train_report(r, WEIR_W1131, &call->mark,
                           "mode is '%.*s', must be %s", WEIR_SV(call->name),
                           names);
}

/* ---- Keys that do not go together */

static const weir_mark *mark_of(const weir_train_reader *r, const char *key) {
  for (uint32_t i = 0; i < r->spec->section->count; i++)
    if (weir_sv_is(r->spec->section->entries[i].key, key))
      return &r->spec->section->entries[i].key_mark;
  return &r->spec->section->mark;
}

/* Between graphs: the keys of other ways to train have no meaning. */
static bool check_between(weir_train_reader *r) {
  const weir_train_shared *s = &r->spec->shared;
  const char *way = s->way_name;
  if (weir_sv_is(s->replicate, "in_graph"))
    return weir_train_report(r, WEIR_W1131, mark_of(r, "replicate"),
                             "mode %s trains replicas between graphs, "
                             "replicate is in_graph",
                             way);
  if (s->sync_every > 0)
    return weir_train_report(r, WEIR_W1131, mark_of(r, "sync_every"),
                             "sync_every does not apply to mode %s", way);
  if (r->spec->accumulate > 1)
    return weir_train_report(
        r, WEIR_W1131, mark_of(r, "accumulate"),
        "accumulate does not apply to mode %s%s", way,
        s->way == WEIR_WAY_SYNC ? ": aggregate says how many batches" : "");
  return true;
}

/* Batches weigh where there are several to an update. In one process those of
 * mode sync are one, and then the key is without effect like the mode. */
static bool check_average(weir_train_reader *r) {
  weir_train_spec *spec = r->spec;
  const weir_yaml *y = spec->section;
  if (!weir_sv_is(spec->average, "examples") || spec->accumulate > 1)
    return true;
  if (spec->shared.way != WEIR_WAY_SYNC)
    return weir_train_report(r, WEIR_W1131, mark_of(r, "average"),
                             "average: examples is for updates of several "
                             "batches: accumulate, or mode sync");
  for (uint32_t i = 0; i < y->count; i++)
    if (weir_sv_is(y->entries[i].key, "average")) remember(r, &y->entries[i]);
  return true;
}

bool weir_train_check_shared(weir_train_reader *r) {
  weir_train_shared *s = &r->spec->shared;
  bool asked = weir_sv_is(s->replicate, "between_graph");
  if (s->way == WEIR_WAY_NONE && asked) {
    s->way = WEIR_WAY_ASYNC;
    s->way_name = "async";
    s->way_mark = *mark_of(r, "replicate");
  }
  s->between = s->way == WEIR_WAY_ASYNC || s->way == WEIR_WAY_SYNC ||
               s->way == WEIR_WAY_BOUNDED;
  if (s->evict_ns > 0 && !s->between)
    return weir_train_report(r, WEIR_W1131, mark_of(r, "evict_after"),
                             "evict_after is for workers between graphs: mode "
                             "async, sync or bounded");
  if (weir_yaml_get(r->spec->section, "ps") != NULL && !s->between)
    return weir_train_report(r, WEIR_W1131, mark_of(r, "ps"),
                             "ps is for parameter servers between graphs: mode "
                             "async, sync or bounded");
  bool scaled = s->lr_scale.size > 0 && !weir_sv_is(s->lr_scale, "none");
  if (scaled && s->way != WEIR_WAY_SYNC && s->way != WEIR_WAY_ALL_REDUCE)
    return weir_train_report(r, WEIR_W1131, mark_of(r, "lr_scale"),
                             "lr_scale is for updates of several batches: mode "
                             "sync or all_reduce");
  return check_average(r) && (!s->between || check_between(r));
}
