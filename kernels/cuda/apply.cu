/* SPDX-License-Identifier: Apache-2.0 */
/* Optimisers' rules, an element a step. For sgd, momentum and adam, products
 * are joined where the CPU's AVX2 set joins them when GCC builds it for release
 * (cpu/isa/apply_f32.c), so an update has the same bits there and here. That
 * compiler has a loop of its own for l2 = 0, in which it joins another product
 * of momentum's. */
#include "kernels/cuda/apply.h"

#include "kernels/cuda/element.h"
#include "kernels/cuda/fours.h"

/* b^step, by squaring: within some step * 2^-53 of it, and b^step itself is the
 * smaller the more steps there are. */
static __device__ __forceinline__ double kept(double b, int64_t step) {
  double y = 1.0;
  for (; step > 0; step >>= 1, b *= b)
    if (step & 1) y *= b;
  return y;
}

static __device__ __forceinline__ void refuse(
    const weir_update_numbers_args &args, int64_t element, int64_t value) {
  weir_body_fault *fault = &args.block->fault;
  args.out->refused = 1;
  if (fault->instr != 0) return;
  fault->element = element;
  fault->value = value;
  fault->instr = args.instr;
}

WEIR_BODY(apply_numbers, weir_update_numbers_args) {
  if (weir_body_first() != 0) return;
  double lr = args.lr != nullptr ? (double)*args.lr : 0.0;
  int64_t step = args.step != nullptr ? *args.step : 1;
  int64_t bits;
  memcpy(&bits, &lr, sizeof bits);
  *args.out = args.before;
  if (args.scale != nullptr) args.out->scale = *args.scale;
  if (!(lr >= 0.0 && lr - lr == 0.0)) return refuse(args, 0, bits);
  if (step < 1) return refuse(args, 1, step);
  float *c = args.out->c;
  if (args.lr != nullptr) c[0] = (float)lr;
  if (args.kind == WEIR_UPDATE_PROXIMAL_SGD) {
    c[1] = (float)(lr * args.p[0]);
    c[2] = (float)(1.0 / (1.0 + lr * args.p[1]));
  } else if (args.kind == WEIR_UPDATE_ADAM) {
    c[0] = (float)(lr / (1.0 - kept(args.p[0], step)));
    c[5] = (float)(1.0 / sqrt(1.0 - kept(args.p[1], step)));
    c[7] = (float)(1.0 - lr * args.p[2]);
  }
}

/* Changes all elements of the variable and of |SLOTS| slots by a rule, which
 * changes one: v[0], and v[1], ... of the slots. */
template <int SLOTS, class Rule>
static __device__ __forceinline__ void update(const weir_update_args &args,
                                              const Rule &rule) {
  const weir_update_numbers n = *args.numbers;
  if (n.refused != 0) return;
  int64_t fours = args.fours != 0 ? args.n / 4 : 0;
  for (int64_t i = weir_body_first(); i < fours; i += weir_body_step()) {
    weir_four<float> x[SLOTS + 1], g = weir_four_load(args.grad, 4 * i, false);
    for (int k = 0; k <= SLOTS; k++)
      x[k] = weir_four_load(args.in[k], 4 * i, false);
    for (int j = 0; j < 4; j++) {
      float v[SLOTS + 1];
      for (int k = 0; k <= SLOTS; k++) v[k] = x[k].v[j];
      rule.change(v, g.v[j], n);
      for (int k = 0; k <= SLOTS; k++) x[k].v[j] = v[k];
    }
    for (int k = 0; k <= SLOTS; k++) weir_four_store(args.out[k], 4 * i, x[k]);
  }
  for (int64_t i = 4 * fours + weir_body_first(); i < args.n;
       i += weir_body_step()) {
    float v[SLOTS + 1], g = args.grad[i];
    for (int k = 0; k <= SLOTS; k++) v[k] = args.in[k][i];
    rule.change(v, g, n);
    for (int k = 0; k <= SLOTS; k++) args.out[k][i] = v[k];
  }
}

/* The gradient, scaled, with the variable's decay. */
static __device__ __forceinline__ float gradient(const weir_update_numbers &n,
                                                 float var, float grad) {
  float g = grad * n.scale;
  return n.l2 != 0.0f ? fmaf(var, n.l2, g) : g;
}

#define RULE(name)                                                   \
  struct name {                                                      \
    static __device__ __forceinline__ void change(                   \
        float *v, float grad, const weir_update_numbers &n);         \
  };                                                                 \
  __device__ __forceinline__ void name::change(float *v, float grad, \
                                               const weir_update_numbers &n)

RULE(sgd) {
  float g = gradient(n, v[0], grad);
  v[0] = fmaf(-g, n.c[0], v[0]);
}

RULE(momentum) {
  float g = gradient(n, v[0], grad);
  v[1] =
      n.l2 != 0.0f ? fmaf(v[1], n.c[1], g) : fmaf(grad, n.scale, v[1] * n.c[1]);
  v[0] = fmaf(-v[1], n.c[0], v[0]);
}

RULE(nesterov) {
  float g = gradient(n, v[0], grad);
  v[1] = fmaf(v[1], n.c[1], g);
  v[0] = fmaf(-fmaf(v[1], n.c[1], g), n.c[0], v[0]);
}

RULE(adagrad) {
  float g = gradient(n, v[0], grad);
  v[1] = fmaf(g, g, v[1]);
  v[0] = v[0] - g * n.c[0] / (sqrtf(v[1]) + n.c[1]);
}

/* |z| drawn towards 0 by |by|, 0 within; a NaN stays. */
static __device__ __forceinline__ float drawn(float z, float by) {
  float rest = weir_el_abs(z) - by;
  return weir_el_copysign(rest < 0.0f ? 0.0f : rest, z);
}

RULE(proximal_sgd) {
  float g = grad * n.scale;
  v[0] = drawn(fmaf(-g, n.c[0], v[0]), n.c[1]) * n.c[2];
}

/* Where no gradient ever came the rate is infinite: the variable stays. */
RULE(proximal_adagrad) {
  float g = grad * n.scale;
  v[1] = fmaf(g, g, v[1]);
  float rate = n.c[0] / sqrtf(v[1]);
  float moved =
      drawn(fmaf(-rate, g, v[0]), rate * n.c[1]) / fmaf(rate, n.c[2], 1.0f);
  v[0] = v[1] == 0.0f ? v[0] : moved;
}

/* Rounding may leave the centered variance below 0; it counts as 0. */
template <bool MOMENTUM, bool CENTERED>
struct rms_prop {
  static __device__ __forceinline__ void change(float *v, float grad,
                                                const weir_update_numbers &n) {
    const int MG = MOMENTUM ? 3 : 2;
    float g = gradient(n, v[0], grad);
    float spread = v[1] = fmaf(v[1], n.c[1], g * g * n.c[2]);
    if (CENTERED) {
      v[MG] = fmaf(v[MG], n.c[1], g * n.c[2]);
      spread = fmaf(-v[MG], v[MG], spread);
      spread = spread < 0.0f ? 0.0f : spread;
    }
    float way = g / (sqrtf(spread) + n.c[3]);
    if (MOMENTUM) way = v[2] = fmaf(v[2], n.c[4], way);
    v[0] = fmaf(-way, n.c[0], v[0]);
  }
};

RULE(adam) {
  const float *c = n.c;
  float g = gradient(n, v[0], grad);
  v[1] = fmaf(v[1], c[1], g * c[2]);
  v[2] = fmaf(v[2], c[3], g * g * c[4]);
  float way = v[1] * c[0] / fmaf(sqrtf(v[2]), c[5], c[6]);
  v[0] = fmaf(v[0], c[7], -way);
}

/* The gradient is the variable whose average this is. */
RULE(ema) {
  v[0] = fmaf(grad - v[0], n.c[0], v[0]);
}

WEIR_BODY(apply_sgd_f32, weir_update_args) {
  update<0>(args, sgd());
}

WEIR_BODY(apply_momentum_f32, weir_update_args) {
  update<1>(args, momentum());
}

WEIR_BODY(apply_nesterov_f32, weir_update_args) {
  update<1>(args, nesterov());
}

WEIR_BODY(apply_adagrad_f32, weir_update_args) {
  update<1>(args, adagrad());
}

WEIR_BODY(apply_proximal_sgd_f32, weir_update_args) {
  update<0>(args, proximal_sgd());
}

WEIR_BODY(apply_proximal_adagrad_f32, weir_update_args) {
  update<1>(args, proximal_adagrad());
}

WEIR_BODY(apply_rms_prop_f32, weir_update_args) {
  if (args.momentum != 0 && args.centered != 0)
    update<3>(args, rms_prop<true, true>());
  else if (args.momentum != 0)
    update<2>(args, rms_prop<true, false>());
  else if (args.centered != 0)
    update<2>(args, rms_prop<false, true>());
  else
    update<1>(args, rms_prop<false, false>());
}

WEIR_BODY(apply_adam_f32, weir_update_args) {
  update<2>(args, adam());
}

WEIR_BODY(apply_ema_f32, weir_update_args) {
  update<0>(args, ema());
}
