/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/train/train_rules.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "runtime/base/yaml/yaml_scalar.h"
#include "runtime/graph/pattern.h"
#include "runtime/graph/train/train_call.h"
#include "runtime/graph/train/train_optim.h"
#include "runtime/graph/train/train_read.h"
#include "runtime/graph/train/train_schedule.h"

/* The half of `train` that is about the graph: optimizer, learning rate,
 * schedules, clipping, patterns. */

static struct weir_train_rules *rules_of(weir_train_reader *r) {
  return (struct weir_train_rules *)(uintptr_t)r->spec->rules;
}

/* ---- Ranges of arguments by name, so that those of a new optimizer are
 * checked without a line of its own. */

typedef struct number_range {
  const char *name;
  double min, below; /* min <= value < below */
  bool above_min;    /* min < value */
} number_range;

static const number_range kRanges[] = {
    {"lr", 0, INFINITY, false},
    {"momentum", 0, 1, false},
    {"rho", 0, 1, false},
    {"decay", 0, 1, false},
    {"beta1", 0, 1, false},
    {"beta2", 0, 1, false},
    {"epsilon", 0, INFINITY, true},
    {"l1", 0, INFINITY, false},
    {"l2", 0, INFINITY, false},
    {"weight_decay", 0, INFINITY, false},
    {"initial", 0, INFINITY, false},
    {"clip_value", 0, INFINITY, true},
    {"clip_norm", 0, INFINITY, true},
    {"clip_global_norm", 0, INFINITY, true},
};

/* Checks |value| of the argument |name|. */
static bool check_range(weir_train_reader *r, weir_sv name, double value,
                        const weir_mark *at) {
  if (!isfinite(value))
    return weir_train_report(r, WEIR_W1131, at, "%.*s must be a finite number",
                             WEIR_SV(name));
  for (size_t i = 0; i < sizeof kRanges / sizeof kRanges[0]; i++) {
    const number_range *k = &kRanges[i];
    if (!weir_sv_is(name, k->name)) continue;
    bool low = k->above_min ? value <= k->min : value < k->min;
    if (!low && value < k->below) return true;
    if (isinf(k->below))
      return weir_train_report(r, WEIR_W1131, at, "%s is %g, must be %s %g",
                               k->name, value,
                               k->above_min ? "above" : "at least", k->min);
    return weir_train_report(r, WEIR_W1131, at,
                             "%s is %g, must be at least %g and below %g",
                             k->name, value, k->min, k->below);
  }
  return true;
}

static bool want_number(weir_train_reader *r, const weir_train_arg *a,
                        weir_sv name, double *out) {
  if (a->kind != WEIR_ARG_NUMBER)
    return weir_train_report(r, WEIR_W1131, &a->mark,
                             "%.*s must be a number or a param of one",
                             WEIR_SV(name));
  *out = a->number;
  return check_range(r, name, a->number, &a->mark);
}

/* ---- Schedules */

static weir_sv schedule_at(const void *self, size_t i) {
  (void)self;
  return weir_sv_from(weir_schedule_at(i)->name);
}

static const weir_schedule_def *find_schedule(weir_train_reader *r,
                                              const weir_train_call *call) {
  size_t count = 0;
  for (; weir_schedule_at(count) != NULL; count++)
    if (weir_sv_is(call->name, weir_schedule_at(count)->name))
      return weir_schedule_at(count);
  weir_train_report_begin(r, WEIR_W1132, &call->mark, "unknown schedule '%.*s'",
                          WEIR_SV(call->name));
  weir_train_nearest(r, call->name, count, schedule_at, NULL);
  weir_train_report_send(r);
  return NULL;
}

static weir_sv schedule_arg_at(const void *self, size_t i) {
  return weir_sv_from(((const weir_schedule_def *)self)->args[i].name);
}

/* The index of the argument that |a|, the |i|-th of the call, sets. */
static bool schedule_arg(weir_train_reader *r, const weir_schedule_def *def,
                         const weir_train_arg *a, uint32_t i, uint32_t *out) {
  uint32_t count = 0;
  while (count < WEIR_SCHEDULE_ARGS && def->args[count].name != NULL) count++;
  *out = i;
  if (a->name.size == 0 && i < count) return true;
  for (uint32_t k = 0; k < count; k++) {
    *out = k;
    if (weir_sv_is(a->name, def->args[k].name)) return true;
  }
  weir_train_report_begin(r, WEIR_W1132, &a->name_mark,
                          "%s has no argument '%.*s'", def->name,
                          WEIR_SV(a->name));
  weir_train_nearest(r, a->name, count, schedule_arg_at, def);
  return weir_train_report_send(r);
}

static bool schedule_args(weir_train_reader *r, const weir_train_call *call,
                          weir_schedule_part *part) {
  const weir_schedule_def *def = part->def;
  bool given[WEIR_SCHEDULE_ARGS] = {false};
  for (uint32_t k = 0; k < WEIR_SCHEDULE_ARGS; k++)
    part->args[k] = def->args[k].fallback;
  for (uint32_t i = 0; i < call->count; i++) {
    const weir_train_arg *a = &call->args[i];
    uint32_t k = 0;
    if (!schedule_arg(r, def, a, i, &k)) return false;
    if (given[k])
      return weir_train_report(r, WEIR_W1131, &a->name_mark,
                               "%s is given twice", def->args[k].name);
    given[k] = true;
    double value = a->kind == WEIR_ARG_BOOL ? a->b : a->number;
    if (a->kind != WEIR_ARG_NUMBER && a->kind != WEIR_ARG_BOOL)
      return weir_train_report(r, WEIR_W1131, &a->mark, "%s must be a number",
                               def->args[k].name);
    if (!(value >= def->args[k].min && value <= def->args[k].max))
      return weir_train_report(
          r, WEIR_W1131, &a->mark, "%s is %g, must be from %g to %g",
          def->args[k].name, value, def->args[k].min, def->args[k].max);
    part->args[k] = value;
  }
  for (uint32_t k = 0; k < WEIR_SCHEDULE_ARGS && def->args[k].name; k++)
    if (isnan(part->args[k]))
      return weir_train_report(r, WEIR_W1131, &call->mark, "%s needs %s",
                               def->name, def->args[k].name);
  return true;
}

static bool add_schedule(weir_train_reader *r, const weir_train_call *call) {
  struct weir_train_rules *rules = rules_of(r);
  weir_schedule_part part = {.def = find_schedule(r, call)};
  if (part.def == NULL || !schedule_args(r, call, &part)) return false;
  if (rules->part_count == WEIR_SCHEDULE_PARTS)
    return weir_train_report(r, WEIR_W1131, &call->mark,
                             "at most %d schedules combine",
                             WEIR_SCHEDULE_PARTS);
  rules->schedule_mark = call->mark;
  rules->parts[rules->part_count++] = part;
  return true;
}

static bool read_schedules(weir_train_reader *r, const weir_yaml *y) {
  const weir_yaml *const *items = y->kind == WEIR_YAML_LIST ? y->items : &y;
  uint32_t count = y->kind == WEIR_YAML_LIST ? y->count : 1;
  bool ok = true;
  for (uint32_t i = 0; i < count; i++) {
    weir_train_call *call = NULL;
    ok = weir_train_read_call(r, items[i], "schedule", &call) &&
         add_schedule(r, call) && ok;
  }
  return ok;
}

bool weir_train_read_schedule(weir_train_reader *r, const weir_yaml_entry *e,
                              void *target) {
  (void)target;
  return read_schedules(r, e->value);
}

/* ---- Patterns */

static bool add_pattern(weir_train_reader *r, weir_train_pattern *item,
                        weir_sv text, const weir_mark *mark, double value) {
  *item = (weir_train_pattern){text, *mark, value};
  if (text.size > 0) return true;
  return weir_train_report(r, WEIR_W1131, mark, "an empty pattern");
}

static bool pattern_value(weir_train_reader *r, const weir_yaml_entry *e,
                          bool numbers, double *out) {
  bool on = false;
  if (numbers) {
    if (!weir_train_number(r, e->value, "a multiplier", out)) return false;
    if (*out >= 0 && isfinite(*out)) return true;
    return weir_train_report(r, WEIR_W1131, &e->value->mark,
                             "a multiplier must be 0 or more");
  }
  if (!weir_train_bool(r, e->value, "a pattern's value", &on)) return false;
  *out = on;
  return true;
}

/* "w*", ["w*", "b"], or {"w*": true}; numbers: {"w*": 0.1}. */
static bool read_patterns(weir_train_reader *r, const weir_yaml *y,
                          bool numbers, weir_train_patterns *out) {
  bool map = y->kind == WEIR_YAML_MAP;
  uint32_t count = y->kind == WEIR_YAML_SCALAR ? 1 : y->count;
  weir_train_pattern *items = weir_arena_array(r->arena, count, sizeof *items);
  if (items == NULL) return weir_train_memory(r);
  bool ok = true;
  for (uint32_t i = 0; i < count; i++) {
    if (map) {
      const weir_yaml_entry *e = &y->entries[i];
      double value = 0;
      ok = pattern_value(r, e, numbers, &value) &&
           add_pattern(r, &items[i], e->key, &e->key_mark, value) && ok;
      continue;
    }
    const weir_yaml *item = y->kind == WEIR_YAML_LIST ? y->items[i] : y;
    ok = weir_train_want(r, item, WEIR_YAML_SCALAR, "a pattern") &&
         add_pattern(r, &items[i], item->text, &item->mark, 1) && ok;
  }
  *out = (weir_train_patterns){items, count, !map};
  return ok;
}

bool weir_train_read_patterns(weir_train_reader *r, const weir_yaml_entry *e,
                              void *target) {
  struct weir_train_rules *rules = rules_of(r);
  (void)target;
  const struct {
    const char *name;
    weir_train_patterns *list;
  } kLists[] = {{"trainable", &rules->trainable},
                {"l2_exclude", &rules->l2_exclude},
                {"recompute", &rules->recompute}};
  for (size_t i = 0; i < 3; i++)
    if (weir_sv_is(e->key, kLists[i].name))
      return read_patterns(r, e->value, false, kLists[i].list);
  return false;
}

double weir_train_patterns_value(const weir_train_patterns *patterns,
                                 const weir_graph *graph, weir_node_id var,
                                 double fallback) {
  for (uint32_t i = patterns->count; i-- > 0;)
    if (weir_pattern_fits_var(patterns->items[i].text, graph, var))
      return patterns->items[i].value;
  return patterns->only ? 0 : fallback;
}

bool weir_train_is_trained(const weir_graph *graph,
                           const struct weir_train_rules *rules,
                           weir_node_id id) {
  const weir_node *node = &graph->nodes[id];
  if (strcmp(node->op->name, "var") != 0) return false;
  if (!weir_dtype_is_float(graph->values[node->first_output].dtype))
    return false;
  int at = weir_op_attr_index(node->op, WEIR_SV_LIT("trainable"));
  if (at >= 0 && node->attrs[at].kind == WEIR_ATTR_BOOL && !node->attrs[at].b)
    return false;
  return weir_train_patterns_value(&rules->trainable, graph, id, 1) != 0;
}

/* ---- Learning rate */

/* The rate may stand in the optimizer's call or under `lr`. Both would leave it
 * to the order of keys, hence the error. */
static bool set_lr(weir_train_reader *r, double value, const weir_mark *at) {
  struct weir_train_rules *rules = rules_of(r);
  if (rules->lr_mark.line != 0) {
    weir_train_report_begin(r, WEIR_W1131, at,
                            "the learning rate is given twice");
    weir_diag_add_label(&r->diag, &rules->lr_mark, "first here");
    return weir_train_report_send(r);
  }
  rules->lr = value;
  rules->lr_mark = *at;
  return check_range(r, WEIR_SV_LIT("lr"), value, at);
}

static bool lr_base(weir_train_reader *r, const weir_yaml_entry *e,
                    void *target) {
  double value = 0;
  (void)target;
  return weir_train_number(r, e->value, "base", &value) &&
         set_lr(r, value, &e->value->mark);
}

static bool lr_warmup(weir_train_reader *r, const weir_yaml_entry *e,
                      void *target) {
  weir_train_arg arg = {.name = WEIR_SV_LIT("steps"),
                        .name_mark = e->key_mark,
                        .mark = e->value->mark};
  weir_train_call call = {WEIR_SV_LIT("warmup"), e->key_mark, &arg, 1};
  (void)target;
  return weir_train_number(r, e->value, "warmup", &arg.number) &&
         add_schedule(r, &call);
}

static bool lr_scale(weir_train_reader *r, const weir_yaml_entry *e,
                     void *target) {
  (void)target;
  if (!weir_train_want(r, e->value, WEIR_YAML_MAP, "scale")) return false;
  return read_patterns(r, e->value, true, &rules_of(r)->lr_scale);
}

static const weir_train_key kLrKeys[] = {
    {"base", WEIR_TRAIN_CUSTOM, .read = lr_base},
    {"schedule", WEIR_TRAIN_CUSTOM, .read = weir_train_read_schedule},
    {"warmup", WEIR_TRAIN_CUSTOM, .read = lr_warmup},
    {"scale", WEIR_TRAIN_CUSTOM, .read = lr_scale},
    {NULL}};

/* A number, a schedule, a map of these, or multipliers by pattern: a map
 * without any known key. */
bool weir_train_read_lr(weir_train_reader *r, const weir_yaml_entry *e,
                        void *target) {
  const weir_yaml *y = e->value;
  double value = 0;
  bool keyed = false;
  if (y->kind == WEIR_YAML_LIST) return read_schedules(r, y);
  if (y->kind == WEIR_YAML_SCALAR) {
    if (weir_text_float(weir_train_scalar(r, y), &value))
      return set_lr(r, value, &y->mark);
    return read_schedules(r, y);
  }
  for (size_t i = 0; kLrKeys[i].name != NULL; i++)
    keyed |= weir_yaml_get(y, kLrKeys[i].name) != NULL;
  if (keyed) return weir_train_read_map(r, y, "lr", kLrKeys, target);
  return read_patterns(r, y, true, &rules_of(r)->lr_scale);
}

/* ---- The optimizer */

static weir_sv optimizer_name_at(const void *self, size_t i) {
  (void)self;
  return weir_sv_from(weir_optimizer_at(i)->name);
}

static const weir_optimizer_def *find_optimizer(weir_train_reader *r,
                                                const weir_train_call *call) {
  size_t count = 0;
  for (; weir_optimizer_at(count) != NULL; count++) {
    const weir_optimizer_def *def = weir_optimizer_at(count);
    if (weir_sv_is(call->name, def->name)) return def;
    for (int a = 0; a < 3 && def->aliases[a] != NULL; a++)
      if (weir_sv_is(call->name, def->aliases[a])) return def;
  }
  weir_train_report_begin(r, WEIR_W1132, &call->mark,
                          "unknown optimizer '%.*s'", WEIR_SV(call->name));
  weir_train_nearest(r, call->name, count, optimizer_name_at, NULL);
  weir_train_report_send(r);
  return NULL;
}

/* Arguments that every optimizer has besides its op's attributes. */
enum { kArgLr, kArgClipValue, kArgClipNorm, kArgClipGlobal, kArgInitial };
static const char *const kCommonArgs[] = {"lr", "clip_value", "clip_norm",
                                          "clip_global_norm", "initial"};

static bool has_initial(const weir_optimizer_def *def) {
  for (int i = 0; i < WEIR_SLOTS && def->slots[i].name != NULL; i++)
    if (def->slots[i].initial != NULL) return true;
  return false;
}

static size_t common_count(const weir_optimizer_def *def) {
  return has_initial(def) ? kArgInitial + 1 : kArgInitial;
}

static weir_sv optimizer_arg_at(const void *self, size_t i) {
  const struct weir_train_rules *rules = self;
  size_t common = common_count(rules->optimizer);
  if (i < common) return weir_sv_from(kCommonArgs[i]);
  return weir_sv_from(rules->op->attrs[i - common].name);
}

static bool set_common(weir_train_reader *r, size_t which,
                       const weir_train_arg *a) {
  struct weir_train_rules *rules = rules_of(r);
  double *const to[] = {&rules->lr, &rules->clip_value, &rules->clip_norm,
                        &rules->clip_global_norm, &rules->initial};
  weir_sv name = weir_sv_from(kCommonArgs[which]);
  double value = 0;
  if (which == kArgLr && a->kind == WEIR_ARG_CALL)
    return add_schedule(r, a->call);
  if (!want_number(r, a, name, &value)) return false;
  if (which == kArgLr) return set_lr(r, value, &a->mark);
  if (which != kArgInitial) rules->clip_mark = a->mark;
  *to[which] = value;
  return true;
}

static bool set_attr(weir_train_reader *r, int index, const weir_train_arg *a) {
  struct weir_train_rules *rules = rules_of(r);
  const weir_attr_def *def = &rules->op->attrs[index];
  weir_optimizer_arg arg = {.index = index,
                            .is_bool = def->kind == WEIR_ATTR_BOOL};
  if (arg.is_bool) {
    if (a->kind != WEIR_ARG_BOOL)
      return weir_train_report(r, WEIR_W1131, &a->mark,
                               "%s must be true or false", def->name);
    arg.value = a->b;
  } else if (!want_number(r, a, a->name, &arg.value)) {
    return false;
  }
  assert(rules->arg_count < WEIR_OP_ATTRS); /* each attribute once */
  rules->args[rules->arg_count++] = arg;
  return true;
}

static bool optimizer_arg(weir_train_reader *r, const weir_train_call *call,
                          uint32_t i) {
  struct weir_train_rules *rules = rules_of(r);
  const weir_train_arg *a = &call->args[i];
  if (a->name.size == 0)
    return weir_train_report(r, WEIR_W1131, &a->mark,
                             "arguments of an optimizer have names: lr=...");
  for (uint32_t k = 0; k < i; k++)
    if (weir_sv_equal(call->args[k].name, a->name))
      return weir_train_report(r, WEIR_W1131, &a->name_mark,
                               "%.*s is given twice", WEIR_SV(a->name));
  size_t common = common_count(rules->optimizer);
  for (size_t k = 0; k < common; k++)
    if (weir_sv_is(a->name, kCommonArgs[k])) return set_common(r, k, a);
  if (rules->op == NULL) return true; /* weir_graph_train says so */
  int index = weir_op_attr_index(rules->op, a->name);
  if (index >= 0) return set_attr(r, index, a);
  weir_train_report_begin(r, WEIR_W1132, &a->name_mark,
                          "%s has no argument '%.*s'", rules->optimizer->name,
                          WEIR_SV(a->name));
  weir_train_nearest(r, a->name, common + weir_op_attr_count(rules->op),
                     optimizer_arg_at, rules);
  return weir_train_report_send(r);
}

bool weir_train_read_optimizer(weir_train_reader *r, const weir_yaml_entry *e,
                               void *target) {
  struct weir_train_rules *rules = rules_of(r);
  weir_train_call *call = NULL;
  (void)target;
  rules->mark = e->value->mark;
  if (!weir_train_read_call(r, e->value, "optimizer", &call)) return false;
  rules->mark = call->mark;
  rules->optimizer = find_optimizer(r, call);
  if (rules->optimizer == NULL) return false;
  rules->op = weir_registry_find_op(r->graph->registry,
                                    weir_sv_from(rules->optimizer->op));
  bool ok = true;
  for (uint32_t i = 0; i < call->count; i++)
    ok = optimizer_arg(r, call, i) && ok;
  return ok;
}
