/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/draw.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* How many inputs and outputs a weight's unit sees: [in, out] for a matrix,
 * [out, in, kernel...] for filters, its length for a vector. */
typedef struct fans {
  double in, out;
} fans;

static fans fans_of(const weir_operand *y) {
  fans f = {1, 1};
  double window = 1;
  if (y->rank == 0) return f;
  if (y->rank == 1) return (fans){(double)y->dims[0], (double)y->dims[0]};
  if (y->rank == 2) return (fans){(double)y->dims[0], (double)y->dims[1]};
  for (int32_t d = 2; d < y->rank; d++) window *= (double)y->dims[d];
  f.in = (double)y->dims[1] * window;
  f.out = (double)y->dims[0] * window;
  return f;
}

static double attr(const weir_call *call, const char *name) {
  return weir_call_attr(call, name)->f;
}

static void set_uniform(const weir_call *call, weir_draw *d) {
  double low = attr(call, "low"), high = attr(call, "high");
  d->offset = low;
  d->scale = high - low;
  if (low < high) d->high = high;
}

static void set_normal(const weir_call *call, weir_draw *d) {
  d->offset = attr(call, "mean");
  d->scale = attr(call, "stddev");
}

/* Initialisers: numbers of a variance that follows from the weight's shape. */
static double glorot(fans f) {
  return 2 / (f.in + f.out);
}

static double he(fans f) {
  return 2 / f.in;
}

static double lecun(fans f) {
  return 1 / f.in;
}

static const struct {
  const char *op;
  weir_draw_of of;
  void (*set)(const weir_call *call, weir_draw *d);
  double (*variance)(fans f);
} kOps[] = {{"uniform", WEIR_DRAW_UNIFORM, set_uniform, NULL},
            {"normal", WEIR_DRAW_NORMAL, set_normal, NULL},
            {"truncated_normal", WEIR_DRAW_TRUNCATED, set_normal, NULL},
            {"glorot_uniform", WEIR_DRAW_UNIFORM, NULL, glorot},
            {"glorot_normal", WEIR_DRAW_NORMAL, NULL, glorot},
            {"he_uniform", WEIR_DRAW_UNIFORM, NULL, he},
            {"he_normal", WEIR_DRAW_NORMAL, NULL, he},
            {"lecun_uniform", WEIR_DRAW_UNIFORM, NULL, lecun},
            {"lecun_normal", WEIR_DRAW_NORMAL, NULL, lecun}};

uint64_t weir_draw_key(const weir_call *call) {
  return call->seed ^ (uint64_t)weir_call_attr(call, "seed")->i;
}

weir_draw weir_draw_make(const weir_call *call) {
  size_t i = 0;
  while (strcmp(kOps[i].op, call->op->name) != 0) {
    i++;
    assert(i < sizeof kOps / sizeof *kOps);
  }
  weir_draw d = {
      .of = kOps[i].of, .key = weir_draw_key(call), .high = INFINITY};
  if (kOps[i].set != NULL) {
    kOps[i].set(call, &d);
    return d;
  }
  double variance = kOps[i].variance(fans_of(&call->out[0]));
  bool normal = d.of == WEIR_DRAW_NORMAL;
  double limit = sqrt(3 * variance);
  d.offset = normal ? 0 : -limit;
  d.scale = normal ? sqrt(variance) : 2 * limit;
  return d;
}

float weir_draw_high_f32(const weir_draw *draw) {
  float high = (float)draw->high;
  return (double)high < draw->high ? nextafterf(high, INFINITY) : high;
}
