/* SPDX-License-Identifier: Apache-2.0 */
/* Optimisers' rules, an element a step. For sgd, momentum and adam, products
 * are joined where the CPU's AVX2 set joins them when GCC builds it for release
 * (cpu/isa/apply_f32.c), so an update has the same bits there and here. That
 * compiler has a loop of its own for l2 = 0, in which it joins another product
 * of momentum's. */
#include "kernels/cuda/apply.h"

#include "kernels/cuda/fours.h"
#include "kernels/cuda/wide.h"

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

static __device__ __forceinline__ double number_of(const void *x,
                                                   int32_t wide) {
  return wide != 0 ? *(const double *)x : (double)*(const float *)x;
}

WEIR_BODY(apply_numbers, weir_update_numbers_args) {
  if (weir_body_first() != 0) return;
  double lr = args.lr != nullptr ? number_of(args.lr, args.wide) : 0.0;
  int64_t step = args.step != nullptr ? *args.step : 1;
  int64_t bits;
  memcpy(&bits, &lr, sizeof bits);
  *args.out = args.before;
  if (args.scale != nullptr) args.out->scale = number_of(args.scale, args.wide);
  if (!(lr >= 0.0 && lr - lr == 0.0)) return refuse(args, 0, bits);
  if (step < 1) return refuse(args, 1, step);
  double *c = args.out->c;
  if (args.lr != nullptr) c[0] = lr;
  if (args.kind == WEIR_UPDATE_PROXIMAL_SGD) {
    c[1] = lr * args.p[0];
    c[2] = 1.0 / (1.0 + lr * args.p[1]);
  } else if (args.kind == WEIR_UPDATE_ADAM) {
    c[0] = lr / (1.0 - kept(args.p[0], step));
    c[5] = 1.0 / sqrt(1.0 - kept(args.p[1], step));
    c[7] = 1.0 - lr * args.p[2];
  }
}

/* The numbers, as elements are. */
template <class V>
struct numbers {
  V scale, l2, c[WEIR_UPDATE_CONSTANTS];
};

template <class V>
static __device__ __forceinline__ numbers<V> numbers_of(
    const weir_update_numbers &from) {
  numbers<V> n;
  n.scale = (V)from.scale;
  n.l2 = (V)from.l2;
  for (int k = 0; k < WEIR_UPDATE_CONSTANTS; k++) n.c[k] = (V)from.c[k];
  return n;
}

/* Changes all elements of the variable and of |SLOTS| slots by a rule, which
 * changes one: v[0], and v[1], ... of the slots. */
template <int SLOTS, class V, class Rule>
static __device__ __forceinline__ void update(const weir_update_args &args,
                                              const Rule &rule) {
  if (args.numbers->refused != 0) return;
  const numbers<V> n = numbers_of<V>(*args.numbers);
  const V *grad = (const V *)args.grad;
  int64_t fours = args.fours != 0 ? args.n / 4 : 0;
  for (int64_t i = weir_body_first(); i < fours; i += weir_body_step()) {
    weir_four<V> x[SLOTS + 1], g = weir_four_load(grad, 4 * i, false);
    for (int k = 0; k <= SLOTS; k++)
      x[k] = weir_four_load((const V *)args.in[k], 4 * i, false);
    for (int j = 0; j < 4; j++) {
      V v[SLOTS + 1];
      for (int k = 0; k <= SLOTS; k++) v[k] = x[k].v[j];
      rule.change(v, g.v[j], n);
      for (int k = 0; k <= SLOTS; k++) x[k].v[j] = v[k];
    }
    for (int k = 0; k <= SLOTS; k++)
      weir_four_store((V *)args.out[k], 4 * i, x[k]);
  }
  for (int64_t i = 4 * fours + weir_body_first(); i < args.n;
       i += weir_body_step()) {
    V v[SLOTS + 1], g = grad[i];
    for (int k = 0; k <= SLOTS; k++) v[k] = ((const V *)args.in[k])[i];
    rule.change(v, g, n);
    for (int k = 0; k <= SLOTS; k++) ((V *)args.out[k])[i] = v[k];
  }
}

/* The gradient, scaled, with the variable's decay. */
template <class V>
static __device__ __forceinline__ V gradient(const numbers<V> &n, V var,
                                             V grad) {
  V g = grad * n.scale;
  return n.l2 != (V)0 ? weir_el_fma(var, n.l2, g) : g;
}

#define RULE(name)                                                      \
  struct name {                                                         \
    template <class V>                                                  \
    static __device__ __forceinline__ void change(V *v, V grad,         \
                                                  const numbers<V> &n); \
  };                                                                    \
  template <class V>                                                    \
  __device__ __forceinline__ void name::change(V *v, V grad,            \
                                               const numbers<V> &n)

RULE(sgd) {
  V g = gradient(n, v[0], grad);
  v[0] = weir_el_fma(-g, n.c[0], v[0]);
}

RULE(momentum) {
  V g = gradient(n, v[0], grad);
  v[1] = n.l2 != (V)0 ? weir_el_fma(v[1], n.c[1], g)
                      : weir_el_fma(grad, n.scale, v[1] * n.c[1]);
  v[0] = weir_el_fma(-v[1], n.c[0], v[0]);
}

RULE(nesterov) {
  V g = gradient(n, v[0], grad);
  v[1] = weir_el_fma(v[1], n.c[1], g);
  v[0] = weir_el_fma(-weir_el_fma(v[1], n.c[1], g), n.c[0], v[0]);
}

RULE(adagrad) {
  V g = gradient(n, v[0], grad);
  v[1] = weir_el_fma(g, g, v[1]);
  v[0] = v[0] - g * n.c[0] / (weir_el_root(v[1]) + n.c[1]);
}

/* |z| drawn towards 0 by |by|, 0 within; a NaN stays. */
template <class V>
static __device__ __forceinline__ V drawn(V z, V by) {
  V rest = weir_el_abs(z) - by;
  return weir_el_copysign(rest < (V)0 ? (V)0 : rest, z);
}

RULE(proximal_sgd) {
  V g = grad * n.scale;
  v[0] = drawn(weir_el_fma(-g, n.c[0], v[0]), n.c[1]) * n.c[2];
}

/* Where no gradient ever came the rate is infinite: the variable stays. */
RULE(proximal_adagrad) {
  V g = grad * n.scale;
  v[1] = weir_el_fma(g, g, v[1]);
  V rate = n.c[0] / weir_el_root(v[1]);
  V moved = drawn(weir_el_fma(-rate, g, v[0]), rate * n.c[1]) /
            weir_el_fma(rate, n.c[2], (V)1);
  v[0] = v[1] == (V)0 ? v[0] : moved;
}

/* Rounding may leave the centered variance below 0; it counts as 0. */
template <bool MOMENTUM, bool CENTERED>
struct rms_prop {
  template <class V>
  static __device__ __forceinline__ void change(V *v, V grad,
                                                const numbers<V> &n) {
    const int MG = MOMENTUM ? 3 : 2;
    V g = gradient(n, v[0], grad);
    V spread = v[1] = weir_el_fma(v[1], n.c[1], g * g * n.c[2]);
    if (CENTERED) {
      v[MG] = weir_el_fma(v[MG], n.c[1], g * n.c[2]);
      spread = weir_el_fma(-v[MG], v[MG], spread);
      spread = spread < (V)0 ? (V)0 : spread;
    }
    V way = g / (weir_el_root(spread) + n.c[3]);
    if (MOMENTUM) way = v[2] = weir_el_fma(v[2], n.c[4], way);
    v[0] = weir_el_fma(-way, n.c[0], v[0]);
  }
};

RULE(adam) {
  const V *c = n.c;
  V g = gradient(n, v[0], grad);
  v[1] = weir_el_fma(v[1], c[1], g * c[2]);
  v[2] = weir_el_fma(v[2], c[3], g * g * c[4]);
  V way = v[1] * c[0] / weir_el_fma(weir_el_root(v[2]), c[5], c[6]);
  v[0] = weir_el_fma(v[0], c[7], -way);
}

/* The gradient is the variable whose average this is. */
RULE(ema) {
  v[0] = weir_el_fma(grad - v[0], n.c[0], v[0]);
}

#define APPLY(rule, slots)                          \
  WEIR_BODY(apply_##rule##_f32, weir_update_args) { \
    update<slots, float>(args, rule());             \
  }                                                 \
  WEIR_BODY(apply_##rule##_f64, weir_update_args) { \
    update<slots, double>(args, rule());            \
  }
APPLY(sgd, 0)
APPLY(momentum, 1)
APPLY(nesterov, 1)
APPLY(adagrad, 1)
APPLY(proximal_sgd, 0)
APPLY(proximal_adagrad, 1)
APPLY(adam, 2)
APPLY(ema, 0)

template <class V>
static __device__ __forceinline__ void apply_rms_prop(
    const weir_update_args &args) {
  if (args.momentum != 0 && args.centered != 0)
    update<3, V>(args, rms_prop<true, true>());
  else if (args.momentum != 0)
    update<2, V>(args, rms_prop<true, false>());
  else if (args.centered != 0)
    update<2, V>(args, rms_prop<false, true>());
  else
    update<1, V>(args, rms_prop<false, false>());
}

WEIR_BODY(apply_rms_prop_f32, weir_update_args) {
  apply_rms_prop<float>(args);
}

WEIR_BODY(apply_rms_prop_f64, weir_update_args) {
  apply_rms_prop<double>(args);
}
