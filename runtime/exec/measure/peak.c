/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/measure/peak.h"

#include <assert.h>
#include <string.h>

#include "kernels/cpu/isa/choose.h"
#include "kernels/cpu/peak/peak.h"

/* Each loop is timed several times and the quickest counts: whatever else the
 * machine does makes it slower, nothing makes it quicker than the core. The
 * sizes of copies are such that they lie in the first cache, in the second, in
 * the last one and in no cache on most machines, which need not be known. */

enum { TRIES = 5, TURNS = 100000 };

static const int64_t kCopyBytes[WEIR_PEAK_COPIES] = {
    INT64_C(1) << 14, INT64_C(1) << 18, INT64_C(1) << 22, INT64_C(1) << 25};

static int64_t now(const weir_env *env) {
  return env->clock->now_ns(env->clock->self);
}

/* Operations in a nanosecond. */
static double rate_of(const weir_env *env,
                      int64_t (*loop)(int64_t turns, double *sink)) {
  double best = 0, sink;
  for (int i = 0; i < TRIES; i++) {
    int64_t begin = now(env), flops = loop(TURNS, &sink);
    int64_t took = now(env) - begin;
    double rate = (double)flops / (double)(took > 0 ? took : 1);
    assert(sink > 0); /* the results are used */
    if (rate > best) best = rate;
  }
  return best;
}

/* So many times that the clock's steps do not matter, but twice at least, since
 * the first copy of a size finds the caches as the last one left them. */
static double copy_rate(const weir_env *env, char *dst, const char *src,
                        int64_t bytes) {
  int64_t repeats = kCopyBytes[WEIR_PEAK_COPIES - 1] / bytes;
  if (repeats > 64) repeats = 64;
  double best = 0;
  for (int i = 0; i < TRIES; i++) {
    int64_t begin = now(env);
    for (int64_t r = 0; r < repeats; r++) {
      memcpy(dst, src, (size_t)bytes / 2);
      __asm__ volatile("" : : "r"(dst), "r"(src) : "memory");
    }
    int64_t took = now(env) - begin;
    double rate = (double)(repeats * bytes) / (double)(took > 0 ? took : 1);
    if (rate > best) best = rate;
  }
  return best;
}

weir_status weir_peak_measure(const weir_env *env, uint64_t profile,
                              weir_peak *out, weir_error *err) {
  const weir_call call = {.profile = profile};
  const weir_isa *isa = weir_isa_of(&call);
  size_t most = (size_t)kCopyBytes[WEIR_PEAK_COPIES - 1];
  char *memory = weir_alloc(env->alloc, most);
  if (memory == NULL) return weir_fail_memory(err, most);
  memset(memory, 1, most); /* its pages are there */
  *out = (weir_peak){.isa = isa->name,
                     .f32_gflops = rate_of(env, isa->peak->f32),
                     .f64_gflops = rate_of(env, isa->peak->f64)};
  for (int i = 0; i < WEIR_PEAK_COPIES; i++)
    out->copies[i] = (weir_peak_copy){
        kCopyBytes[i],
        copy_rate(env, memory, memory + most / 2, kCopyBytes[i])};
  weir_free(env->alloc, memory);
  return WEIR_OK;
}

double weir_peak_least_ns(const weir_peak *peak, int threads, weir_dtype dtype,
                          int64_t flops, int64_t bytes) {
  double gflops = dtype == WEIR_F64 || dtype == WEIR_I64 ? peak->f64_gflops
                                                         : peak->f32_gflops;
  int i = 0;
  while (i < WEIR_PEAK_COPIES - 1 && peak->copies[i].bytes < bytes) i++;
  double cores = threads > 0 ? threads : 1;
  double work = (double)flops / (gflops * cores);
  double moves = (double)bytes / (peak->copies[i].gb_per_s * cores);
  return work > moves ? work : moves;
}
