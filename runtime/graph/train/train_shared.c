/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/train/train_shared.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/graph/train/train_call.h"

/* The ways in which tasks train together, as one table: `mode: sync(backup=1)`
 * and `sync: {backup: 1}` are the same, so both are checked by the same rows.
 */

typedef struct shared_keys {
  weir_sv text;
  uint32_t count;
} shared_keys;

static const weir_train_key kSyncKeys[] = {
    {"aggregate", WEIR_TRAIN_COUNT4, offsetof(shared_keys, count), .min = 1},
    {"backup", WEIR_TRAIN_COUNT4, offsetof(shared_keys, count)},
    {NULL}};
static const weir_train_key kBoundedKeys[] = {
    {"staleness", WEIR_TRAIN_COUNT4, offsetof(shared_keys, count)}, {NULL}};
static const weir_train_key kAsyncKeys[] = {
    {"max_staleness", WEIR_TRAIN_COUNT4, offsetof(shared_keys, count)},
    {"staleness_lr", WEIR_TRAIN_CHOICE, offsetof(shared_keys, text),
     .choices = "none|inverse"},
    {NULL}};
static const weir_train_key kAllReduceKeys[] = {
    {"algorithm", WEIR_TRAIN_CHOICE, offsetof(shared_keys, text),
     .choices = "auto|ring|tree"},
    {NULL}};
static const weir_train_key kSharedKeys[] = {
    {"sync_every", WEIR_TRAIN_COUNT4, offsetof(shared_keys, count), .min = 1},
    {"replicate", WEIR_TRAIN_CHOICE, offsetof(shared_keys, text),
     .choices = "between_graph|in_graph"},
    {"lr_scale", WEIR_TRAIN_CHOICE, offsetof(shared_keys, text),
     .choices = "none|linear|sqrt"},
    {NULL}};

static const struct {
  const char *name;
  const weir_train_key *keys; /* the first may be left without its name */
} kWays[] = {{"async", kAsyncKeys},
             {"sync", kSyncKeys},
             {"bounded", kBoundedKeys},
             {"all_reduce", kAllReduceKeys}};
enum { WAYS = sizeof kWays / sizeof kWays[0] };

static void remember(weir_train_reader *r, const weir_yaml_entry *e) {
  weir_train_spec *spec = r->spec;
  if (spec->unused_count == sizeof spec->unused / sizeof spec->unused[0])
    return;
  spec->unused_names[spec->unused_count] = e->key;
  spec->unused[spec->unused_count++] = &e->key_mark;
}

bool weir_train_read_shared(weir_train_reader *r, const weir_yaml_entry *e,
                            void *target) {
  shared_keys ignored;
  weir_yaml map = {.kind = WEIR_YAML_MAP, .count = 1, .entries = e};
  (void)target;
  remember(r, e);
  return weir_train_read_map(r, &map, "train", kSharedKeys, &ignored);
}

/* true and false, or a map, or the value of the way's first key. */
bool weir_train_read_way(weir_train_reader *r, const weir_yaml_entry *e,
                         void *target) {
  shared_keys ignored;
  size_t i = 0;
  (void)target;
  remember(r, e);
  while (i + 1 < WAYS && !weir_sv_is(e->key, kWays[i].name)) i++;
  if (e->value->kind == WEIR_YAML_MAP)
    return weir_train_read_map(r, e->value, kWays[i].name, kWays[i].keys,
                               &ignored);
  if (!weir_train_want(r, e->value, WEIR_YAML_SCALAR, kWays[i].name))
    return false;
  weir_sv text = weir_train_scalar(r, e->value);
  if (weir_sv_is(text, "true") || weir_sv_is(text, "false")) return true;
  weir_yaml_entry first = {.key = weir_sv_from(kWays[i].keys[0].name),
                           .key_mark = e->key_mark,
                           .value = e->value};
  weir_yaml map = {.kind = WEIR_YAML_MAP, .count = 1, .entries = &first};
  return weir_train_read_map(r, &map, kWays[i].name, kWays[i].keys, &ignored);
}

/* An argument of a call as an entry of the way's map, so that the table checks
 * it. Numbers were read already, and are written again. */
static bool read_argument(weir_train_reader *r, const weir_train_key *keys,
                          const char *way, const weir_train_arg *a) {
  char number[40];
  shared_keys ignored;
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
  return weir_train_read_map(r, &map, way, keys, &ignored);
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
    for (uint32_t k = 0; k < call->count; k++)
      ok = read_argument(r, kWays[i].keys, kWays[i].name, &call->args[k]) && ok;
    return ok;
  }
  return weir_train_report(r, WEIR_W1131, &call->mark,
                           "mode is '%.*s', must be %s", WEIR_SV(call->name),
                           names);
}
