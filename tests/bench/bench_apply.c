/* SPDX-License-Identifier: Apache-2.0 */
/* The optimisers' rules on one thread, for each instruction set of this
 * processor: `build/tests/bench/bench_apply [elements]`, 61706 being LeNet's
 * parameters. Prints the best of many passes over the same memory. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kernels/cpu/isa/apply.h"
#include "kernels/cpu/isa/choose.h"

enum { PASSES = 300, BUFFERS = 5 };

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void say(const weir_isa *isa, const char *name, double ns, int64_t n) {
  printf("%-8s %-18s %9.2f us %7.3f ns/element\n", isa->name, name, ns / 1e3,
         ns / (double)n);
}

static void measure(const weir_isa *isa, const char *name, weir_apply_fn fn,
                    float *const *buffers, int64_t n) {
  /* Numbers that suit any rule, and small steps. */
  weir_apply_piece piece = {
      .grad = buffers[BUFFERS - 1],
      .n = n,
      .scale = 1,
      .c = {1e-6f, 0.9f, 0.1f, 0.999f, 0.001f, 1.1f, 1e-8f, 1}};
  double best = 1e18;
  for (int k = 0; k < WEIR_APPLY_SLOTS; k++) {
    piece.in[k] = buffers[k];
    piece.out[k] = buffers[k];
  }
  for (int i = 0; i < PASSES; i++) {
    double start = now_ns();
    fn(&piece);
    double taken = now_ns() - start;
    if (taken < best) best = taken;
  }
  say(isa, name, best, n);
}

static void measure_squares(const weir_isa *isa, const float *x, int64_t n) {
  volatile double sum = 0;
  double best = 1e18;
  for (int i = 0; i < PASSES; i++) {
    double start = now_ns();
    sum = sum + isa->apply->squares(x, n);
    double taken = now_ns() - start;
    if (taken < best) best = taken;
  }
  say(isa, "global_norm", best, n);
}

int main(int argc, char **argv) {
  int64_t n = argc > 1 ? strtoll(argv[1], NULL, 10) : 61706;
  n -= n % WEIR_APPLY_LANES;
  float *buffers[BUFFERS];
  if (n < 1 || n > INT64_C(1) << 30) return 2;
  for (int k = 0; k < BUFFERS; k++) {
    void *p = NULL;
    if (posix_memalign(&p, 64, (size_t)n * sizeof(float)) != 0) return 7;
    buffers[k] = p;
    for (int64_t i = 0; i < n; i++)
      buffers[k][i] = 0.01f + 0.001f * (float)(i % 97);
  }
  for (int i = 0; weir_isa_at(i) != NULL; i++) {
    const weir_isa *isa = weir_isa_at(i);
    const weir_apply_table *t = isa->apply;
    measure(isa, "sgd", t->sgd, buffers, n);
    measure(isa, "momentum", t->momentum, buffers, n);
    measure(isa, "adagrad", t->adagrad, buffers, n);
    measure(isa, "proximal_adagrad", t->proximal_adagrad, buffers, n);
    measure(isa, "rms_prop", t->rms_prop[0][0], buffers, n);
    measure(isa, "adam", t->adam, buffers, n);
    measure(isa, "ema", t->ema, buffers, n);
    measure_squares(isa, buffers[0], n);
  }
  for (int k = 0; k < BUFFERS; k++) free(buffers[k]);
  return 0;
}
