/* SPDX-License-Identifier: Apache-2.0 */
/* Optimisers' rules, an element a step. Products are joined where the CPU's
 * AVX2 set joins them when GCC builds it for release (cpu/isa/apply_f32.c), so
 * an update has the same bits there and here. That compiler has a loop of its
 * own for l2 = 0, in which it joins another product of momentum's. */
#include "kernels/cuda/apply.h"

#include "kernels/cuda/element.h"

/* The gradient, scaled, with the variable's decay. */
static __device__ __forceinline__ float gradient(const weir_update_args &args,
                                                 int64_t i) {
  float g = args.grad[i] * args.scale;
  return args.l2 != 0.0f ? fmaf(args.in[0][i], args.l2, g) : g;
}

WEIR_BODY(apply_sgd_f32, weir_update_args) {
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    float g = gradient(args, i);
    args.out[0][i] = fmaf(-g, args.c[0], args.in[0][i]);
  }
}

WEIR_BODY(apply_momentum_f32, weir_update_args) {
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    float old = args.in[1][i], g = gradient(args, i);
    float m = args.l2 != 0.0f ? fmaf(old, args.c[1], g)
                              : fmaf(args.grad[i], args.scale, old * args.c[1]);
    args.out[0][i] = fmaf(-m, args.c[0], args.in[0][i]);
    args.out[1][i] = m;
  }
}

WEIR_BODY(apply_adam_f32, weir_update_args) {
  const float *c = args.c;
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    float g = gradient(args, i);
    float m = fmaf(args.in[1][i], c[1], g * c[2]);
    float v = fmaf(args.in[2][i], c[3], g * g * c[4]);
    float way = m * c[0] / fmaf(sqrtf(v), c[5], c[6]);
    args.out[0][i] = fmaf(args.in[0][i], c[7], -way);
    args.out[1][i] = m;
    args.out[2][i] = v;
  }
}
