/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/train/train_apply.h"

#include <string.h>

#include "runtime/graph/train/train_build.h"
#include "runtime/graph/train/train_schedule.h"

/* The step of one variable: its gradients are added up and averaged, clipped,
 * and its update is computed and assigned.
 *
 * An optimizer is known here by the names of its op's inputs and outputs alone:
 * an input that is no var, grad, lr, step or scale is a slot, and an output is
 * the new value of the input of the same name. So a new optimizer needs no line
 * here. A scale is handed to the op rather than multiplied into the gradient:
 * that saves a pass over memory of the gradient's size. */

static weir_sv var_name(const weir_train_build *b, uint32_t k) {
  return b->pass.from->nodes[b->vars[k].node].name;
}

/* The variable's value; base ids are good in the new graph. */
static weir_value_id var_value(const weir_train_build *b, uint32_t k) {
  return b->pass.from->nodes[b->vars[k].node].first_output;
}

/* ---- The gradient */

/* The divisor of a sum of gradients of |dtype|: N, or all examples. */
static weir_value_id divisor(weir_train_build *b, weir_dtype dtype) {
  weir_sv none = {NULL, 0};
  return weir_train_by_examples(b->spec)
             ? weir_train_cast(b, none, b->rows_total, dtype)
             : weir_train_const(b, none, dtype, (double)b->spec->accumulate);
}

/* sum += g in the runs that only accumulate; (sum + g) / N in the last one,
 * which begins anew once that is read, so that 0 may be written over the old
 * sum. The sum starts at +0, in the order of the runs. By examples: n g for g,
 * where n are the run's, and the sum of them for N. */
static weir_value_id accumulated(weir_train_build *b, uint32_t k,
                                 weir_value_id grad) {
  weir_sv name = var_name(b, k);
  weir_dtype dtype = weir_train_dtype(b, grad);
  if (weir_train_by_examples(b->spec))
    grad = weir_train_op2(
        b, "mul", grad, weir_train_cast(b, (weir_sv){NULL, 0}, b->rows, dtype));
  weir_value_id sum =
      weir_train_state(b, weir_train_name(b, "%.*s/grad_sum", WEIR_SV(name)),
                       grad, WEIR_NO_VALUE, 0, b->vars[k].node);
  weir_value_id in[] = {sum, grad};
  weir_value_id add = weir_train_add(
      b, weir_train_name(b, "train/%.*s/accumulate", WEIR_SV(name)),
      "assign_add", 2, in, NULL);
  weir_value_id total = weir_train_op2(b, "add", sum, grad);
  weir_value_id mean = weir_train_op2(b, "div", total, divisor(b, dtype));
  weir_value_id zero = weir_train_op1(b, "zeros_like", sum);
  weir_train_assign(b, weir_train_name(b, "train/%.*s/restart", WEIR_SV(name)),
                    sum, zero);
  if (b->status != WEIR_OK) return WEIR_NO_VALUE;
  if (!weir_vec_push(b->pass.alloc, &b->accumulate,
                     weir_train_value(b, add)->node))
    return weir_train_fail(b, weir_fail_memory(b->err, sizeof add));
  return mean;
}

/* The gradient of one run. One that is a variable's own value gets a node: a
 * server is sent it like any other, and does not read the variable. */
static weir_value_id raw_gradient(weir_train_build *b, uint32_t k) {
  weir_value_id grad = b->pass.values[b->vars[k].grad];
  const weir_graph *g = weir_graph_builder_graph(b->pass.builder);
  if (g->nodes[g->values[grad].node].op->instr == WEIR_INSTR_VAR_READ) {
    b->side = WEIR_TRAIN_WORKER;
    grad = weir_train_op1(b, "identity", grad);
    b->side = WEIR_TRAIN_UPDATE;
  }
  b->out->raw[k] = grad;
  return grad;
}

void weir_train_aggregate(weir_train_build *b, uint32_t k) {
  if (b->status != WEIR_OK) return;
  weir_value_id grad = raw_gradient(b, k);
  if (b->status != WEIR_OK) return;
  if (b->spec->accumulate > 1) grad = accumulated(b, k, grad);
  b->out->grads[k] = grad;
  double limit = b->rules->clip_value;
  if (limit > 0) {
    weir_named_attr attrs[] = {{"min", {.kind = WEIR_ATTR_FLOAT, .f = -limit}},
                               {"max", {.kind = WEIR_ATTR_FLOAT, .f = limit}},
                               {NULL, {.kind = WEIR_ATTR_NONE}}};
    b->side = WEIR_TRAIN_CLIP;
    grad = weir_train_add(b, (weir_sv){NULL, 0}, "clip", 1, &grad, attrs);
    b->side = WEIR_TRAIN_UPDATE;
  }
  b->means[k] = grad;
}

/* ---- Norms */

/* limit / max(norm, limit): 1 up to the limit. */
static weir_value_id shrink(weir_train_build *b, weir_value_id norm,
                            double limit, weir_sv name) {
  weir_value_id most =
      weir_train_const(b, (weir_sv){NULL, 0}, weir_train_dtype(b, norm), limit);
  weir_value_id in[] = {most, weir_train_op2(b, "max", norm, most)};
  return weir_train_add(b, name, "div", 2, in, NULL);
}

void weir_train_global_norm(weir_train_build *b) {
  if (b->status != WEIR_OK) return;
  for (uint32_t k = 1; k < b->var_count; k++)
    if (weir_train_dtype(b, b->means[k]) != weir_train_dtype(b, b->means[0])) {
      weir_train_fail(
          b, weir_fail(b->err, WEIR_W1131, &b->rules->clip_mark,
                       "a global norm needs variables of one "
                       "dtype; %.*s and %.*s differ",
                       WEIR_SV(var_name(b, 0)), WEIR_SV(var_name(b, k))));
      return;
    }
  b->side = WEIR_TRAIN_CLIP;
  weir_value_id norm =
      weir_train_add(b, WEIR_SV_LIT("train/grad_norm"), "global_norm",
                     b->var_count, b->means, NULL);
  b->out->grad_norm = norm;
  b->norm = shrink(b, norm, b->rules->clip_global_norm,
                   WEIR_SV_LIT("train/clip_factor"));
  b->side = WEIR_TRAIN_UPDATE;
}

/* The factor of the gradient, or WEIR_NO_VALUE. */
static weir_value_id scale_of(weir_train_build *b, uint32_t k) {
  if (b->rules->clip_norm <= 0) return b->norm;
  weir_sv name = var_name(b, k);
  b->side = WEIR_TRAIN_CLIP;
  weir_value_id norm = weir_train_add(
      b, weir_train_name(b, "train/%.*s/grad_norm", WEIR_SV(name)),
      "global_norm", 1, &b->means[k], NULL);
  weir_value_id scale =
      shrink(b, norm, b->rules->clip_norm, (weir_sv){NULL, 0});
  b->side = WEIR_TRAIN_UPDATE;
  return scale;
}

/* ---- The update */

static double arg_value(const struct weir_train_rules *rules, const char *name,
                        double fallback) {
  int index = weir_op_attr_index(rules->op, weir_sv_from(name));
  for (uint32_t i = 0; i < rules->arg_count; i++)
    if (rules->args[i].index == index) return rules->args[i].value;
  return fallback;
}

static const weir_slot_def *slot_of(const weir_optimizer_def *def,
                                    const char *name) {
  for (int i = 0; i < WEIR_SLOTS && def->slots[i].name != NULL; i++)
    if (strcmp(def->slots[i].name, name) == 0) return &def->slots[i];
  return NULL;
}

/* A slot's state, or WEIR_NO_VALUE for one that is not needed. */
static weir_value_id make_slot(weir_train_build *b, uint32_t k,
                               const weir_slot_def *slot) {
  const struct weir_train_rules *rules = b->rules;
  if (slot->only_if_attr != NULL &&
      arg_value(rules, slot->only_if_attr, 0) == 0)
    return WEIR_NO_VALUE;
  double initial = slot->fallback;
  if (slot->initial != NULL && rules->initial == rules->initial)
    initial = rules->initial;
  return weir_train_state(
      b,
      weir_train_name(b, "%.*s/%s_%s", WEIR_SV(var_name(b, k)),
                      rules->optimizer->name, slot->name),
      var_value(b, k), WEIR_NO_VALUE, initial, b->vars[k].node);
}

/* The op's attributes; l2 is left out where the section excludes it. */
static void fill_args(const weir_train_build *b, uint32_t k,
                      weir_named_attr *attrs) {
  const struct weir_train_rules *rules = b->rules;
  uint32_t count = 0;
  for (uint32_t i = 0; i < rules->arg_count; i++) {
    const weir_optimizer_arg *arg = &rules->args[i];
    const char *name = rules->op->attrs[arg->index].name;
    if (strcmp(name, "l2") == 0 && !b->vars[k].l2) continue;
    weir_attr value = {.kind = WEIR_ATTR_FLOAT, .f = arg->value};
    if (arg->is_bool)
      value = (weir_attr){.kind = WEIR_ATTR_BOOL, .b = arg->value != 0};
    attrs[count++] = (weir_named_attr){name, value};
  }
  attrs[count] = (weir_named_attr){NULL, {.kind = WEIR_ATTR_NONE}};
}

/* Inputs by name, up to the last one that is there. */
static uint32_t fill_inputs(weir_train_build *b, uint32_t k,
                            weir_value_id *in) {
  const struct weir_train_rules *rules = b->rules;
  const struct {
    const char *name;
    weir_value_id value;
  } kKnown[] = {{"var", var_value(b, k)},
                {"grad", b->means[k]},
                {"lr", weir_train_lr_of(b, k)},
                {"step", b->step},
                {"scale", scale_of(b, k)}};
  uint32_t count = 0;
  for (uint32_t i = 0; i < WEIR_OP_INPUTS && rules->op->inputs[i].name; i++) {
    const char *name = rules->op->inputs[i].name;
    const weir_slot_def *slot = slot_of(rules->optimizer, name);
    in[i] = slot != NULL ? make_slot(b, k, slot) : WEIR_NO_VALUE;
    for (size_t j = 0; j < 5 && slot == NULL; j++)
      if (strcmp(kKnown[j].name, name) == 0) in[i] = kKnown[j].value;
    if (in[i] != WEIR_NO_VALUE) count = i + 1;
  }
  return count;
}

/* The input of the op that its output |name| is the new value of. Outputs for
 * inputs that were left out are left out. */
static weir_value_id updated(const struct weir_train_rules *rules,
                             const char *name, const weir_value_id *in) {
  for (uint32_t i = 0; i < WEIR_OP_INPUTS && rules->op->inputs[i].name; i++)
    if (strcmp(rules->op->inputs[i].name, name) == 0) return in[i];
  return WEIR_NO_VALUE;
}

/* The average follows the new value; it begins as the variable does. */
static void average(weir_train_build *b, uint32_t k, weir_value_id fresh) {
  weir_sv name = var_name(b, k);
  const weir_node *var = &b->pass.from->nodes[b->vars[k].node];
  weir_value_id init = var->input_count > 0 ? var->inputs[0] : WEIR_NO_VALUE;
  weir_value_id ema =
      weir_train_state(b, weir_train_name(b, "%.*s/ema", WEIR_SV(name)), fresh,
                       init, 0, b->vars[k].node);
  weir_named_attr attrs[] = {
      {"decay", {.kind = WEIR_ATTR_FLOAT, .f = b->rules->ema_decay}},
      {NULL, {.kind = WEIR_ATTR_NONE}}};
  weir_value_id in[] = {ema, fresh};
  weir_value_id next =
      weir_train_add(b, weir_train_name(b, "train/%.*s/ema", WEIR_SV(name)),
                     "apply_ema", 2, in, attrs);
  weir_train_assign(
      b, weir_train_name(b, "train/%.*s/ema_assign", WEIR_SV(name)), ema, next);
}

void weir_train_apply(weir_train_build *b, uint32_t k) {
  const struct weir_train_rules *rules = b->rules;
  weir_value_id in[WEIR_OP_INPUTS];
  weir_named_attr attrs[WEIR_OP_ATTRS + 1];
  weir_sv name = var_name(b, k);
  if (b->status != WEIR_OK) return;
  b->device = b->pass.from->nodes[b->vars[k].node].device;
  fill_args(b, k, attrs);
  uint32_t count = fill_inputs(b, k, in);
  weir_value_id first =
      weir_train_add(b, weir_train_name(b, "train/%.*s/apply", WEIR_SV(name)),
                     rules->op->name, count, in, attrs);
  weir_value_id next = first;
  for (uint32_t i = 0; i < WEIR_OP_OUTPUTS && rules->op->outputs[i].name; i++) {
    const char *port = rules->op->outputs[i].name;
    weir_value_id ref = updated(rules, port, in);
    if (ref == WEIR_NO_VALUE) continue; /* a slot that is not used */
    weir_sv to = i == 0 ? weir_train_name(b, "train/%.*s/assign", WEIR_SV(name))
                        : weir_train_name(b, "train/%.*s/assign_%s",
                                          WEIR_SV(name), port);
    weir_train_assign(b, to, ref, next++);
  }
  if (rules->ema_decay > 0) average(b, k, first);
}
