/* SPDX-License-Identifier: Apache-2.0 */
/* batch_norm_train and its gradient, f32: a block is a channel. Sums are kept
 * in eight f64 lanes, added in a fixed order.
 *
 * The mean comes before the squares: E[x^2] - E[x]^2 would cancel for channels
 * whose mean is large. So x is read three times forward (sum, squares, result)
 * and x and dy about twice back, from the cache as long as a channel fits.
 * Source: Ioffe and Szegedy, Batch normalization, ICML 2015.
 * Invariant: a channel is one block, so no sum crosses threads. */
#include <math.h>

#include "kernels/kernel.h"
#include "kernels/registry.h"

enum { kLanes = 8 };

/* The planes of a channel: |planes| runs of |n| floats, |stride| apart. */
typedef struct planes {
  int64_t planes, n, stride;
} planes;

static planes planes_of(const weir_operand *x) {
  planes p = {x->dims[0], 1, x->dims[1]};
  for (int32_t i = 2; i < x->rank; i++) p.n *= x->dims[i];
  p.stride *= p.n;
  return p;
}

static bool accepts(const weir_call *call, weir_why *why) {
  const weir_operand *x = &call->in[0];
  if (x->elements == 0) return weir_no(why, "no elements");
  if (x->rank > 2 && planes_of(x).n >= kLanes) return true;
  return weir_no(why, "planes of fewer than %d pixels", kLanes);
}

static double total(const double *lanes) {
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
         ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

static double sum_of(const float *x, planes p) {
  double lanes[kLanes] = {0}, rest = 0;
  for (int64_t b = 0; b < p.planes; b++, x += p.stride) {
    int64_t i = 0;
    for (; i + kLanes <= p.n; i += kLanes)
      for (int k = 0; k < kLanes; k++) lanes[k] += (double)x[i + k];
    for (; i < p.n; i++) rest += (double)x[i];
  }
  return total(lanes) + rest;
}

static double squares_of(const float *x, planes p, double mean) {
  double lanes[kLanes] = {0}, rest = 0;
  for (int64_t b = 0; b < p.planes; b++, x += p.stride) {
    int64_t i = 0;
    for (; i + kLanes <= p.n; i += kLanes)
      for (int k = 0; k < kLanes; k++) {
        double d = (double)x[i + k] - mean;
        lanes[k] += d * d;
      }
    for (; i < p.n; i++) {
      double d = (double)x[i] - mean;
      rest += d * d;
    }
  }
  return total(lanes) + rest;
}

/* Sum of dy (x - mean). */
static double spread_of(const float *x, const float *dy, planes p,
                        double mean) {
  double lanes[kLanes] = {0}, rest = 0;
  for (int64_t b = 0; b < p.planes; b++, x += p.stride, dy += p.stride) {
    int64_t i = 0;
    for (; i + kLanes <= p.n; i += kLanes)
      for (int k = 0; k < kLanes; k++)
        lanes[k] += (double)dy[i + k] * ((double)x[i + k] - mean);
    for (; i < p.n; i++) rest += (double)dy[i] * ((double)x[i] - mean);
  }
  return total(lanes) + rest;
}

static void train_block(void *arg, int64_t c, int worker) {
  const weir_args *args = arg;
  const weir_call *call = args->state;
  planes p = planes_of(&call->in[0]);
  const float *x = (const float *)args->io[0] + c * p.n;
  float *y = (float *)args->io[3] + c * p.n;
  double count = (double)(p.planes * p.n);
  double mean = sum_of(x, p) / count;
  double var = squares_of(x, p, mean) / count;
  double epsilon = weir_call_attr(call, "epsilon")->f;
  (void)worker;
  double slope = (double)((const float *)args->io[1])[c] / sqrt(var + epsilon);
  float m = (float)mean, factor = (float)slope;
  float bias = ((const float *)args->io[2])[c];
  for (int64_t b = 0; b < p.planes; b++, x += p.stride, y += p.stride)
    for (int64_t i = 0; i < p.n; i++) y[i] = (x[i] - m) * factor + bias;
  ((float *)args->io[4])[c] = (float)mean;
  ((float *)args->io[5])[c] = (float)var;
}

/* dx = a dy + b (x - mean) + d, with numbers of the channel: with r = 1 /
 * sqrt(var + epsilon), a = scale r, b = -a r mean(dy z), d = -a mean(dy). */
static void grad_block(void *arg, int64_t c, int worker) {
  const weir_args *args = arg;
  const weir_call *call = args->state;
  planes p = planes_of(&call->in[0]);
  const float *x = (const float *)args->io[0] + c * p.n;
  const float *dy = (const float *)args->io[4] + c * p.n;
  float *dx = (float *)args->io[5] + c * p.n;
  double count = (double)(p.planes * p.n);
  float mean = ((const float *)args->io[2])[c];
  double var = (double)((const float *)args->io[3])[c];
  double r = 1 / sqrt(var + weir_call_attr(call, "epsilon")->f);
  double slope = (double)((const float *)args->io[1])[c] * r;
  (void)worker;
  double sum = sum_of(dy, p);
  double spread = spread_of(x, dy, p, (double)mean) * r;
  float fa = (float)slope, fb = (float)(-slope * r * spread / count);
  float fd = (float)(-slope * sum / count);
  for (int64_t b = 0; b < p.planes;
       b++, x += p.stride, dy += p.stride, dx += p.stride)
    for (int64_t i = 0; i < p.n; i++)
      dx[i] = fa * dy[i] + (fb * (x[i] - mean) + fd);
  ((float *)args->io[6])[c] = (float)spread;
  ((float *)args->io[7])[c] = (float)sum;
}

static weir_status run_train(const weir_args *args) {
  const weir_call *call = args->state;
  weir_parallel_for(args, call->in[0].dims[1], train_block,
                    (void *)(uintptr_t)args);
  return WEIR_OK;
}

static weir_status run_grad(const weir_args *args) {
  const weir_call *call = args->state;
  weir_parallel_for(args, call->in[0].dims[1], grad_block,
                    (void *)(uintptr_t)args);
  return WEIR_OK;
}

const weir_kernel_def weir_kernel_cpu_batch_norm_train = {
    .op = "batch_norm_train",
    .name = "cpu.batch_norm_train",
    .device = WEIR_CPU,
    .types = WEIR_F32,
    .accepts = accepts,
    .run = run_train};

const weir_kernel_def weir_kernel_cpu_batch_norm_train_grad = {
    .op = "batch_norm_train_grad",
    .name = "cpu.batch_norm_train_grad",
    .device = WEIR_CPU,
    .types = WEIR_F32,
    .accepts = accepts,
    .run = run_grad};
