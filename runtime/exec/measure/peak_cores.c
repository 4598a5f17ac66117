/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/measure/peak_cores.h"

#include <pthread.h>
#include <stdatomic.h>

#include "kernels/cpu/isa/choose.h"
#include "kernels/cpu/peak/peak.h"

/* Each thread does the same work over and over until all have done a few
 * rounds, so that none computes alone; its rate is its quickest round while the
 * others were at work, and the rates add up. */

enum { ROUNDS = 5, TURNS = 200000 };

typedef struct common {
  const weir_env *env;
  int64_t (*loop)(int64_t turns, double *sink);
  atomic_int waiting; /* threads that have not begun */
  atomic_int working; /* that have rounds to do */
} common;

typedef struct runner {
  common *all;
  pthread_t thread;
  double rate;
} runner;

static void *run(void *arg) {
  runner *r = arg;
  common *all = r->all;
  const weir_clock *clock = all->env->clock;
  double sink;
  atomic_fetch_sub(&all->waiting, 1);
  while (atomic_load(&all->waiting) > 0) continue;
  for (int i = 0; i < ROUNDS || atomic_load(&all->working) > 0; i++) {
    int64_t begin = clock->now_ns(clock->self);
    double flops = (double)all->loop(TURNS, &sink);
    int64_t took = clock->now_ns(clock->self) - begin;
    double rate = flops / (double)(took > 0 ? took : 1);
    if (atomic_load(&all->working) > 0 && rate > r->rate) r->rate = rate;
    if (i == ROUNDS - 1) atomic_fetch_sub(&all->working, 1);
  }
  return NULL;
}

/* The sum of the rates of |count| threads. */
static weir_status measure(const weir_env *env, runner *runners, int count,
                           int64_t (*loop)(int64_t, double *), double *out_rate,
                           weir_error *err) {
  common all = {.env = env, .loop = loop};
  weir_status s = WEIR_OK;
  int made = 0;
  atomic_init(&all.waiting, count);
  atomic_init(&all.working, count);
  for (; made < count; made++) {
    runners[made] = (runner){.all = &all};
    if (pthread_create(&runners[made].thread, NULL, run, &runners[made]) != 0)
      break;
  }
  if (made < count) { /* those that were made are let go */
    s = weir_fail(err, WEIR_W6003, NULL, "no thread %d of %d", made + 1, count);
    atomic_fetch_sub(&all.waiting, count - made);
    atomic_fetch_sub(&all.working, count - made);
  }
  *out_rate = 0;
  for (int i = 0; i < made; i++) {
    (void)pthread_join(runners[i].thread, NULL);
    *out_rate += runners[i].rate;
  }
  return s;
}

weir_status weir_peak_measure_cores(const weir_env *env, uint64_t profile,
                                    int threads, weir_peak_cores *out,
                                    weir_error *err) {
  const weir_call call = {.profile = profile};
  const weir_peak_table *peak = weir_isa_of(&call)->peak;
  runner *runners =
      weir_alloc_array(env->alloc, (size_t)threads, sizeof *runners);
  *out = (weir_peak_cores){.threads = threads};
  if (runners == NULL)
    return weir_fail_memory(err, (size_t)threads * sizeof *runners);
  weir_status s =
      measure(env, runners, threads, peak->f32, &out->f32_gflops, err);
  if (s == WEIR_OK)
    s = measure(env, runners, threads, peak->f64, &out->f64_gflops, err);
  weir_free(env->alloc, runners);
  return s;
}
