/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/train/train_schedule.h"

#include <math.h>

#include "runtime/graph/train/train_build.h"

/* The learning rate as nodes: the base times each schedule's factor, in f64,
 * from the number of finished updates. Without a schedule it is a constant. It
 * is f64 also for variables of f32, which counts steps exactly only up to 2^24.
 */

static weir_value_id f64(weir_train_build *b, double value) {
  return weir_train_const(b, (weir_sv){NULL, 0}, WEIR_F64, value);
}

static weir_value_id constant(weir_train_build *b, weir_value_id t,
                              const double *args) {
  (void)b;
  (void)t;
  (void)args;
  return WEIR_NO_VALUE; /* 1 */
}

/* factor ^ floor(t / every) */
static weir_value_id step(weir_train_build *b, weir_value_id t,
                          const double *args) {
  weir_value_id rounds =
      weir_train_op1(b, "floor", weir_train_op2(b, "div", t, f64(b, args[0])));
  return weir_train_op2(b, "pow", f64(b, args[1]), rounds);
}

/* rate ^ (t / steps), the exponent rounded down with staircase */
static weir_value_id exponential(weir_train_build *b, weir_value_id t,
                                 const double *args) {
  weir_value_id exponent = weir_train_op2(b, "div", t, f64(b, args[1]));
  if (args[2] != 0) exponent = weir_train_op1(b, "floor", exponent);
  return weir_train_op2(b, "pow", f64(b, args[0]), exponent);
}

/* end + (1 - end) (1 + cos(pi min(t / steps, 1))) / 2.
 * Source: Loshchilov and Hutter, arXiv:1608.03983, without restarts. */
static weir_value_id cosine(weir_train_build *b, weir_value_id t,
                            const double *args) {
  const double pi = 3.14159265358979323846;
  weir_value_id part = weir_train_op2(b, "div", t, f64(b, args[0]));
  part = weir_train_op2(b, "min", part, f64(b, 1));
  part = weir_train_op2(b, "mul", part, f64(b, pi));
  weir_value_id wave = weir_train_op1(b, "cos", part);
  wave = weir_train_op2(b, "add", wave, f64(b, 1));
  weir_value_id factor = weir_train_op2(b, "mul", wave, f64(b, 0.5));
  if (args[1] == 0) return factor;
  factor = weir_train_op2(b, "mul", factor, f64(b, 1 - args[1]));
  return weir_train_op2(b, "add", factor, f64(b, args[1]));
}

/* min((t + 1) / steps, 1) */
static weir_value_id warmup(weir_train_build *b, weir_value_id t,
                            const double *args) {
  weir_value_id next = weir_train_op2(b, "add", t, f64(b, 1));
  weir_value_id part = weir_train_op2(b, "div", next, f64(b, args[0]));
  return weir_train_op2(b, "min", part, f64(b, 1));
}

static const weir_schedule_def kSchedules[] = {
    {"constant", {{NULL, 0, 0, 0}}, constant},
    {"step", {{"every", NAN, 1, 1e15}, {"factor", 0.1, 0, 1e6}}, step},
    {"exponential",
     {{"rate", NAN, 0, 1e6}, {"steps", 1, 1, 1e15}, {"staircase", 0, 0, 1}},
     exponential},
    {"cosine", {{"steps", NAN, 1, 1e15}, {"end", 0, 0, 1}}, cosine},
    {"warmup", {{"steps", NAN, 1, 1e15}}, warmup},
};

const weir_schedule_def *weir_schedule_at(size_t i) {
  return i < sizeof kSchedules / sizeof kSchedules[0] ? &kSchedules[i] : NULL;
}

static weir_value_id scheduled(weir_train_build *b) {
  const struct weir_train_rules *rules = b->rules;
  weir_value_id lr = WEIR_NO_VALUE, t = WEIR_NO_VALUE;
  for (uint32_t i = 0; i < rules->part_count; i++) {
    const weir_schedule_part *part = &rules->parts[i];
    if (t == WEIR_NO_VALUE && part->def->build != constant)
      t = weir_train_cast(b, (weir_sv){NULL, 0}, b->global_step, WEIR_F64);
    weir_value_id factor = part->def->build(b, t, part->args);
    if (factor == WEIR_NO_VALUE) continue;
    if (lr == WEIR_NO_VALUE) lr = f64(b, rules->lr);
    lr = weir_train_op2(b, "mul", lr, factor);
  }
  return lr;
}

/* |lr| / max(staleness, 1), in f64 like the schedule. */
static weir_value_id by_staleness(weir_train_build *b, weir_value_id lr) {
  if (b->status != WEIR_OK) return WEIR_NO_VALUE;
  b->out->staleness = weir_train_fed_number(b, WEIR_SV_LIT("train/staleness"));
  weir_value_id age =
      weir_train_cast(b, (weir_sv){NULL, 0}, b->out->staleness, WEIR_F64);
  if (lr == WEIR_NO_VALUE) lr = f64(b, b->rules->lr);
  return weir_train_op2(b, "div", lr, weir_train_op2(b, "max", age, f64(b, 1)));
}

void weir_train_learning_rate(weir_train_build *b, weir_dtype dtype) {
  const weir_sv name = WEIR_SV_LIT("train/learning_rate");
  b->lr64 = scheduled(b);
  b->out->learning_rate = b->lr64 == WEIR_NO_VALUE
                              ? weir_train_const(b, name, dtype, b->rules->lr)
                              : weir_train_cast(b, name, b->lr64, dtype);
  if (b->spec->shared.given_staleness) b->lr64 = by_staleness(b, b->lr64);
}

weir_value_id weir_train_lr_of(weir_train_build *b, uint32_t k) {
  const weir_trained *v = &b->vars[k];
  weir_dtype dtype =
      weir_train_dtype(b, b->pass.from->nodes[v->node].first_output);
  if (v->lr_scale == 1 && !b->spec->shared.given_staleness &&
      weir_train_dtype(b, b->out->learning_rate) == dtype)
    return b->out->learning_rate;
  if (b->lr64 == WEIR_NO_VALUE)
    return weir_train_const(b, (weir_sv){NULL, 0}, dtype,
                            b->rules->lr * v->lr_scale);
  weir_value_id lr = b->lr64;
  if (v->lr_scale != 1) lr = weir_train_op2(b, "mul", lr, f64(b, v->lr_scale));
  return weir_train_cast(b, (weir_sv){NULL, 0}, lr, dtype);
}
