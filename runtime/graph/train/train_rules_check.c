/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/train/train_rules_check.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "runtime/graph/pattern.h"
#include "runtime/graph/train/train_read.h"
#include "runtime/graph/train/train_rules.h"

/* Clipping, decay and averages; and checks that need all of `train`, or the
 * whole graph. */

static struct weir_train_rules *rules_of(weir_train_reader *r) {
  return (struct weir_train_rules *)(uintptr_t)r->spec->rules;
}

static bool clip_limit(weir_train_reader *r, const weir_yaml_entry *e,
                       void *target) {
  struct weir_train_rules *rules = target;
  const struct {
    const char *name;
    double *to;
  } kLimits[] = {{"value", &rules->clip_value},
                 {"norm", &rules->clip_norm},
                 {"global_norm", &rules->clip_global_norm},
                 {"clip_norm", &rules->clip_norm}};
  double value = 0;
  if (!weir_train_number(r, e->value, "a limit", &value)) return false;
  if (!(value > 0) || !isfinite(value))
    return weir_train_report(r, WEIR_W1131, &e->value->mark,
                             "a limit of gradients must be above 0");
  for (size_t i = 0; i < 4; i++)
    if (weir_sv_is(e->key, kLimits[i].name)) *kLimits[i].to = value;
  rules->clip_mark = e->value->mark;
  return true;
}

const weir_train_key weir_train_clip_keys[] = {
    {"value", WEIR_TRAIN_CUSTOM, .read = clip_limit},
    {"norm", WEIR_TRAIN_CUSTOM, .read = clip_limit},
    {"global_norm", WEIR_TRAIN_CUSTOM, .read = clip_limit},
    {NULL}};

const weir_train_key weir_train_ema_keys[] = {
    {"decay", WEIR_TRAIN_NUMBER,
     .offset = offsetof(struct weir_train_rules, ema_decay), .min = 0,
     .max = 0.9999999},
    {NULL}};

bool weir_train_read_l2(weir_train_reader *r, const weir_yaml_entry *e,
                        void *target) {
  struct weir_train_rules *rules = rules_of(r);
  (void)target;
  if (!weir_train_number(r, e->value, "l2", &rules->l2)) return false;
  rules->l2_mark = e->value->mark;
  if (rules->l2 >= 0 && isfinite(rules->l2)) return true;
  return weir_train_report(r, WEIR_W1131, &e->value->mark,
                           "l2 is %g, must be at least 0", rules->l2);
}

/* `l2:` of the section is the optimizer's attribute. */
static bool merge_l2(weir_train_reader *r) {
  struct weir_train_rules *rules = rules_of(r);
  if (rules->l2_mark.line == 0 || rules->op == NULL) return true;
  int index = weir_op_attr_index(rules->op, WEIR_SV_LIT("l2"));
  if (index < 0)
    return weir_train_report(r, WEIR_W1132, &rules->l2_mark, "%s has no l2",
                             rules->optimizer->name);
  for (uint32_t i = 0; i < rules->arg_count; i++)
    if (rules->args[i].index == index)
      return weir_train_report(r, WEIR_W1131, &rules->l2_mark,
                               "l2 is given twice: here and to the optimizer");
  assert(rules->arg_count < WEIR_OP_ATTRS);
  rules->args[rules->arg_count++] =
      (weir_optimizer_arg){.index = index, .value = rules->l2};
  return true;
}

static weir_sv node_at(const void *self, size_t i) {
  return ((const weir_graph *)self)->nodes[i].name;
}

/* Every pattern fits some variable: one that fits none is most likely misspelt.
 */
static bool check_patterns(weir_train_reader *r, const char *what,
                           const weir_train_patterns *list) {
  const weir_graph *g = r->graph;
  bool ok = true;
  for (uint32_t i = 0; i < list->count; i++) {
    bool found = false;
    for (uint32_t n = 0; n < g->node_count && !found; n++)
      found = strcmp(g->nodes[n].op->name, "var") == 0 &&
              weir_pattern_fits_var(list->items[i].text, g, n);
    if (found) continue;
    weir_train_report_begin(r, WEIR_W1134, &list->items[i].mark,
                            "%s: no variable is called '%.*s'", what,
                            WEIR_SV(list->items[i].text));
    weir_train_nearest(r, list->items[i].text, g->node_count, node_at, g);
    ok = weir_train_report_send(r);
  }
  return ok;
}

/* recompute names any nodes. */
static bool check_segments(weir_train_reader *r) {
  const weir_train_patterns *list = &rules_of(r)->recompute;
  const weir_graph *g = r->graph;
  bool ok = true;
  for (uint32_t i = 0; i < list->count; i++) {
    bool found = false;
    for (uint32_t n = 0; n < g->node_count && !found; n++)
      found = weir_segment_of(list->items[i].text, g->nodes[n].name).size > 0;
    if (found) continue;
    weir_train_report_begin(r, WEIR_W1134, &list->items[i].mark,
                            "recompute: nothing is called '%.*s'",
                            WEIR_SV(list->items[i].text));
    weir_train_nearest(r, list->items[i].text, g->node_count, node_at, g);
    ok = weir_train_report_send(r);
  }
  return ok;
}

/* The loss is a floating-point scalar, and some variable is trained. */
static bool check_loss(weir_train_reader *r) {
  const weir_train_spec *spec = r->spec;
  const weir_graph *g = r->graph;
  weir_value_id loss = weir_graph_find_value(g, spec->minimize);
  if (loss == WEIR_NO_VALUE)
    return weir_train_no_node(r, WEIR_W1133, &spec->minimize_mark,
                              spec->minimize, "minimize");
  const weir_value *v = &g->values[loss];
  char type[128];
  if (!weir_dtype_is_float(v->dtype) || v->shape->rank > 0)
    return weir_train_report(
        r, WEIR_W1133, &spec->minimize_mark,
        "%.*s is %s; expected one floating-point number to minimize",
        WEIR_SV(spec->minimize),
        weir_graph_type_text(g, loss, type, sizeof type));
  for (uint32_t n = 0; n < g->node_count; n++)
    if (weir_train_is_trained(g, rules_of(r), n)) return true;
  return weir_train_report(r, WEIR_W1133, &spec->minimize_mark,
                           "there is no variable to train");
}

bool weir_train_check_rules(weir_train_reader *r) {
  struct weir_train_rules *rules = rules_of(r);
  bool ok = merge_l2(r);
  if (rules->lr_mark.line == 0)
    ok = weir_train_report(r, WEIR_W1131, &rules->mark,
                           "the learning rate is missing: %s(lr=...)",
                           rules->optimizer->name);
  if (rules->clip_norm > 0 && rules->clip_global_norm > 0)
    ok = weir_train_report(
        r, WEIR_W1131, &rules->clip_mark,
        "gradients are clipped by the norm of each or of all, not both");
  if (!r->names || r->errors > 0) return ok;
  return check_patterns(r, "trainable", &rules->trainable) &&
         check_patterns(r, "lr", &rules->lr_scale) &&
         check_patterns(r, "l2_exclude", &rules->l2_exclude) &&
         check_segments(r) && check_loss(r);
}
