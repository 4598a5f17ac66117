/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "tests/graph/trainee.h"

/* Training steps against numbers worked out in two other ways: by PyTorch 2.x
 * (f64; the figures below), and by the plain formulas in this file, for every
 * optimizer with every decay, clipping, schedule and accumulation. */

enum { kSteps = 6 };

/* d loss / d w = 2 w x, d loss / d b = y */
static const char kGraph[] =
    "weir: 1\n"
    "inputs: {x: 'f64[3]', y: 'f64[2]'}\n"
    "nodes:\n"
    "  w: var([3], dtype=f64, init=const([1.0, -2.0, 0.5], dtype=f64))\n"
    "  b: var([2], dtype=f64, init=const([0.25, -1.5], dtype=f64))\n"
    "  loss: add(reduce_sum(mul(square(w), x)), reduce_sum(mul(b, y)))\n"
    "outputs: [loss]\n"
    "train:\n"
    "  minimize: loss\n";

static void open_section(trainee *t, const char *section) {
  char text[2048];
  snprintf(text, sizeof text, "%s%s\n", kGraph, section);
  trainee_open(t, text, 1);
}

static double x_of(int run, int i) {
  return 0.5 + 0.125 * run - 0.25 * i;
}
static double y_of(int run, int i) {
  return 0.75 - 0.25 * run + 0.5 * i;
}

static double one_run(trainee *t, int run, bool accumulate) {
  double x[3], y[2];
  for (int i = 0; i < 3; i++) x[i] = x_of(run, i);
  for (int i = 0; i < 2; i++) y[i] = y_of(run, i);
  trainee_feed feeds[] = {{"x", x, 3}, {"y", y, 2}};
  return trainee_run(t, feeds, 2, accumulate);
}

static void check_vars(trainee *t, const char *what, const double *want,
                       double tolerance) {
  for (int i = 0; i < 5; i++) {
    double got = trainee_get(t, i < 3 ? "w" : "b", i < 3 ? i : i - 3);
    if (!(fabs(got - want[i]) <= tolerance * (1 + fabs(want[i]))))
      fail_msg("%s: element %d is %.17g, want %.17g", what, i, got, want[i]);
  }
}

/* ---- PyTorch */

/* Six steps of torch.optim with the same names' settings and, for schedules,
 * StepLR(2, 0.5), ExponentialLR(0.5), CosineAnnealingLR(8, eta_min),
 * LinearLR(0.25, 1, 3). */
static const struct {
  const char *section;
  double want[5];
} kTorch[] = {
    {"  optimizer: sgd(lr=0.1)",
     {0.34238531249999998, -0.97055191406249985, 0.33735761718750001,
      0.17499999999999999, -1.875}},
    {"  optimizer: sgd(lr=0.1, l2=0.25)",
     {0.28532109375000003, -0.81730687499999999, 0.28675397460937502,
      0.15470401934814451, -1.6305289053955077}},
    {"  optimizer: momentum(lr=0.1, momentum=0.5)",
     {0.062154179687499971, -0.49800945312500006, 0.26629648437499998,
      0.046093749999999975, -2.2054687499999996}},
    {"  optimizer: {name: momentum, lr: 0.1, momentum: 0.5, nesterov: true}\n"
     "  l2: 0.25",
     {0.031460101318359364, -0.28050892089843749, 0.16850889083862303,
      0.057563936154365558, -1.7546298818531036}},
    {"  optimizer: adagrad(lr=0.1)",
     {0.61415578309793872, -1.5707840639961244, 0.24054241593155751,
      0.14880415565947941, -1.7401085700313315}},
    {"  optimizer: adagrad(lr=0.1, initial=0.5, l2=0.25)",
     {0.63650023720086146, -1.5955548643201318, 0.27906833729372704,
      0.15726493555308391, -1.6159982098735732}},
    {"  optimizer: rms_prop(lr=0.1)",
     {0.051101571011484902, -0.69341302437475438, 0.018190840566842059,
      -0.07106509226029703, -2.3098359847474508}},
    {"  optimizer: rmsprop(lr=0.1, momentum=0.5, centered=true, l2=0.25)",
     {-0.055062113642992253, 0.077389644131367841, -0.059449345654482531,
      -0.33675430192867972, -2.2213951278914692}},
    {"  optimizer: adam(lr=0.1)",
     {0.39801741902430232, -1.4006148952728166, 0.063365388447685453,
      -0.16620572770460815, -2.0435299404270801}},
    {"  optimizer: adam(lr=0.1, beta1=0.5, l2=0.25)",
     {0.39614024560389527, -1.3496252998498679, -0.046729462008739966,
      0.015833204098492502, -1.7730224295590575}},
    {"  optimizer: adamw(lr=0.1, weight_decay=0.25)",
     {0.29550388115529547, -1.1535392996306968, 0.013772535945474312,
      -0.16891087010578065, -1.7970504987842995}},
    {"  optimizer: sgd(lr=0.1, clip_value=0.5)",
     {0.69999999999999973, -1.6999999999999997, 0.33735761718750001,
      0.20000000000000001, -1.7250000000000001}},
    {"  optimizer: 'sgd(lr=step(every=2, factor=0.5))'\n  lr: 0.1",
     {0.59594439331054683, -1.4406629974365233, 0.43211197814941404,
      0.13125000000000001, -1.7937500000000002}},
    {"  optimizer: sgd(lr=0.1)\n  schedule: exponential(rate=0.5)",
     {0.77889975718259818, -1.7292080482614041, 0.47811333158612257,
      0.14687499999999998, -1.7015625000000001}},
    {"  optimizer: adam\n  lr: {base: 0.1, schedule: cosine(steps=8)}",
     {0.56682405172890393, -1.5696567135669428, 0.21861147904866848,
      -0.096432395436974447, -1.9051168667290876}},
    {"  optimizer: adam(lr=0.1)\n  schedule: cosine(steps=8, end=0.25)",
     {0.52445983689070019, -1.5274287047502211, 0.17958680767782026,
      -0.1138757285038829, -1.9397201351535855}},
    {"  optimizer: sgd\n  lr: {base: 0.1, warmup: 4}",
     {0.41494438476562495, -1.0789231164550783, 0.34617854003906251,
      0.26250000000000001, -1.7124999999999999}},
};

static void test_like_pytorch(void **state) {
  (void)state;
  for (size_t c = 0; c < sizeof kTorch / sizeof kTorch[0]; c++) {
    trainee t;
    open_section(&t, kTorch[c].section);
    for (int run = 0; run < kSteps; run++) one_run(&t, run, false);
    check_vars(&t, kTorch[c].section, kTorch[c].want, 1e-11);
    assert_int_equal(trainee_get(&t, "train/global_step", 0), kSteps);
    trainee_close(&t);
  }
}

/* ---- The formulas */

typedef struct state_of {
  double w, a, b, c; /* the weight and its slots */
} state_of;

typedef void (*rule)(state_of *s, double g, double lr, double l2, int step);

static void sgd(state_of *s, double g, double lr, double l2, int step) {
  (void)step;
  s->w -= lr * (g + l2 * s->w);
}

static void momentum(state_of *s, double g, double lr, double l2, int step) {
  (void)step;
  s->a = 0.5 * s->a + (g + l2 * s->w);
  s->w -= lr * s->a;
}

static void nesterov(state_of *s, double g, double lr, double l2, int step) {
  (void)step;
  g += l2 * s->w;
  s->a = 0.5 * s->a + g;
  s->w -= lr * (g + 0.5 * s->a);
}

static void adagrad(state_of *s, double g, double lr, double l2, int step) {
  if (step == 1) s->a = 0.25;
  g += l2 * s->w;
  s->a += g * g;
  s->w -= lr * g / (sqrt(s->a) + 1e-10);
}

static double towards_0(double z, double by) {
  return copysign(fmax(fabs(z) - by, 0), z);
}

static void proximal_sgd(state_of *s, double g, double lr, double l2,
                         int step) {
  (void)step;
  s->w = towards_0(s->w - lr * g, lr * 0.125) / (1 + lr * l2);
}

static void proximal_adagrad(state_of *s, double g, double lr, double l2,
                             int step) {
  if (step == 1) s->a = 0.1;
  s->a += g * g;
  double r = lr / sqrt(s->a);
  s->w = towards_0(s->w - r * g, r * 0.125) / (1 + r * l2);
}

static void rms_prop(state_of *s, double g, double lr, double l2, int step) {
  (void)step;
  g += l2 * s->w;
  s->a = 0.9 * s->a + (1 - 0.9) * g * g;
  s->w -= lr * g / (sqrt(s->a) + 1e-8);
}

static void rms_prop_all(state_of *s, double g, double lr, double l2,
                         int step) {
  (void)step;
  g += l2 * s->w;
  s->a = 0.75 * s->a + 0.25 * g * g;
  s->c = 0.75 * s->c + 0.25 * g;
  s->b = 0.5 * s->b + g / (sqrt(fmax(s->a - s->c * s->c, 0)) + 0.125);
  s->w -= lr * s->b;
}

static void adam(state_of *s, double g, double lr, double l2, int step) {
  g += l2 * s->w;
  s->a = 0.9 * s->a + (1 - 0.9) * g;
  s->b = 0.999 * s->b + (1 - 0.999) * g * g;
  s->w -= lr * (s->a / (1 - pow(0.9, step))) /
          (sqrt(s->b / (1 - pow(0.999, step))) + 1e-8);
}

static void adamw(state_of *s, double g, double lr, double l2, int step) {
  s->w *= 1 - lr * 0.5;
  adam(s, g, lr, 0 * l2, step);
}

static const struct {
  const char *call; /* without lr and l2 */
  rule rule;
  bool no_l2;
} kRules[] = {
    {"sgd(", sgd, false},
    {"momentum(momentum=0.5, ", momentum, false},
    {"momentum(momentum=0.5, nesterov=true, ", nesterov, false},
    {"adagrad(initial=0.25, ", adagrad, false},
    {"proximal_sgd(l1=0.125, ", proximal_sgd, false},
    {"proximal_adagrad(l1=0.125, ", proximal_adagrad, false},
    {"rms_prop(", rms_prop, false},
    {"rms_prop(rho=0.75, momentum=0.5, centered=true, epsilon=0.125, ",
     rms_prop_all, false},
    {"adam(", adam, false},
    {"adamw(weight_decay=0.5, ", adamw, true},
};

static double flat(int step) {
  return 1 + 0 * step;
}
static double stairs(int step) {
  return pow(0.5, floor(step / 2.0));
}
static double smooth(int step) {
  return pow(0.25, step / 3.0);
}
static double wave(int step) {
  double part = fmin(step / 5.0, 1), up = fmin((step + 1) / 3.0, 1);
  return (0.25 + 0.75 * 0.5 * (1 + cos(3.14159265358979323846 * part))) * up;
}

static const struct {
  const char *line;
  double (*factor)(int step); /* finished updates */
} kSchedules[] = {
    {"", flat},
    {"  schedule: step(every=2, factor=0.5)\n", stairs},
    {"  lr: {schedule: 'exponential(rate=0.25, steps=3)'}\n", smooth},
    {"  schedule: [warmup(3), 'cosine(steps=5, end=0.25)']\n", wave},
};

enum { kNone, kValue, kNorm, kGlobal, kClips };
static const char *const kClipLines[] = {"", "  clip: {value: 0.375}\n",
                                         "  clip: {norm: 0.5}\n",
                                         "  clip: {global_norm: 0.75}\n"};

static double norm_of(const double *g, int from, int to) {
  double sum = 0;
  for (int i = from; i < to; i++) sum += g[i] * g[i];
  return sqrt(sum);
}

static void clip(double *g, int kind) {
  for (int i = 0; i < 5 && kind == kValue; i++)
    g[i] = fmax(-0.375, fmin(g[i], 0.375));
  double nw = norm_of(g, 0, 3), nb = norm_of(g, 3, 5), n = norm_of(g, 0, 5);
  for (int i = 0; i < 5 && kind == kNorm; i++)
    g[i] *= 0.5 / fmax(i < 3 ? nw : nb, 0.5);
  for (int i = 0; i < 5 && kind == kGlobal; i++) g[i] *= 0.75 / fmax(n, 0.75);
}

/* |kSteps| updates by the formulas, each of |micro| runs. */
static void expect(size_t r, double l2, int clip_kind, size_t schedule,
                   int micro, double *out) {
  state_of s[5] = {{1, 0, 0, 0},
                   {-2, 0, 0, 0},
                   {0.5, 0, 0, 0},
                   {0.25, 0, 0, 0},
                   {-1.5, 0, 0, 0}};
  for (int step = 0; step < kSteps; step++) {
    double g[5] = {0};
    for (int k = 0; k < micro; k++)
      for (int i = 0; i < 5; i++)
        g[i] += i < 3 ? 2 * s[i].w * x_of(step * micro + k, i)
                      : y_of(step * micro + k, i - 3);
    for (int i = 0; i < 5; i++) g[i] /= micro;
    clip(g, clip_kind);
    double lr = 0.05 * kSchedules[schedule].factor(step);
    for (int i = 0; i < 5; i++) kRules[r].rule(&s[i], g[i], lr, l2, step + 1);
  }
  for (int i = 0; i < 5; i++) out[i] = s[i].w;
}

static void check_one(size_t r, double l2, int clip_kind, size_t schedule,
                      int micro) {
  char section[512];
  double want[5];
  snprintf(section, sizeof section,
           "  optimizer: '%s%slr=0.05)'\n%s%s  accumulate: %d\n",
           kRules[r].call, l2 > 0 ? "l2=0.25, " : "", kClipLines[clip_kind],
           kSchedules[schedule].line, micro);
  trainee t;
  open_section(&t, section);
  for (int run = 0; run < kSteps * micro; run++)
    one_run(&t, run, run % micro != micro - 1);
  expect(r, l2, clip_kind, schedule, micro, want);
  check_vars(&t, section, want, 1e-11);
  assert_int_equal(trainee_get(&t, "train/global_step", 0), kSteps);
  trainee_close(&t);
}

static void test_all_together(void **state) {
  (void)state;
  for (size_t r = 0; r < sizeof kRules / sizeof kRules[0]; r++)
    for (int decay = 0; decay < (kRules[r].no_l2 ? 1 : 2); decay++)
      for (int c = 0; c < kClips; c++)
        for (size_t s = 0; s < 4; s++)
          for (int micro = 1; micro <= 3; micro += 2)
            check_one(r, decay * 0.25, c, s, micro);
}

/* ---- Printed values, and untouched ones */

static void test_printed(void **state) {
  (void)state;
  trainee t;
  open_section(&t,
               "  optimizer: sgd(lr=0.1, l2=0.5)\n"
               "  lr: {warmup: 4}\n"
               "  clip: {global_norm: 1}\n");
  /* 1 * 0.5 + 4 * 0.25 + 0.25 * 0 + 0.25 * 0.75 - 1.5 * 1.25: without l2 */
  assert_float_equal(one_run(&t, 0, false), -0.1875, 1e-15);
  assert_float_equal(trainee_fetch(&t, t.train->learning_rate), 0.05, 1e-15);
  assert_true(t.train->grad_norm != WEIR_NO_VALUE);
  assert_int_equal(trainee_fetch(&t, t.train->global_step), 1);
  assert_int_equal(t.train->trained_count, 2);
  assert_true(
      weir_sv_is(t.train->graph->nodes[t.train->vars[0].node].name, "w"));
  trainee_close(&t);
}

static void test_patterns(void **state) {
  (void)state;
  trainee t;
  open_section(&t,
               "  optimizer: sgd(lr=0.1, l2=0.5)\n"
               "  l2_exclude: ['kind:bias']\n"
               "  lr: {w: 0, 'b*': 2}\n");
  one_run(&t, 0, false);
  double want[5] = {1, -2, 0.5, 0.25 - 0.2 * 0.75, -1.5 - 0.2 * 1.25};
  check_vars(&t, "lr and l2_exclude", want, 1e-15);
  trainee_close(&t);
  open_section(&t,
               "  optimizer: sgd(lr=0.1)\n  trainable: {'*': false, b: true}");
  one_run(&t, 0, false);
  want[3] = 0.25 - 0.1 * 0.75;
  want[4] = -1.5 - 0.1 * 1.25;
  check_vars(&t, "trainable", want, 1e-15);
  assert_int_equal(t.train->trained_count, 1);
  trainee_close(&t);
}

static void test_average(void **state) {
  (void)state;
  trainee t;
  open_section(&t, "  optimizer: sgd(lr=0.1)\n  ema: {decay: 0.75}");
  assert_float_equal(trainee_get(&t, "w/ema", 1), -2, 0);
  double ema = 0.25;
  for (int run = 0; run < kSteps; run++) {
    one_run(&t, run, false);
    ema = 0.75 * ema + 0.25 * trainee_get(&t, "b", 0);
    assert_float_equal(trainee_get(&t, "b/ema", 0), ema, 1e-14);
  }
  trainee_close(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_like_pytorch), cmocka_unit_test(test_all_together),
      cmocka_unit_test(test_printed),      cmocka_unit_test(test_patterns),
      cmocka_unit_test(test_average),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
