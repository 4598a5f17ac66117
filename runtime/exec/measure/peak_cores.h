/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_MEASURE_PEAK_CORES_H_
#define WEIR_EXEC_MEASURE_PEAK_CORES_H_

#include "runtime/base/env.h"

/* Products that are added, in registers, on |threads| threads at once, in
 * GFLOP/s of all of them. Less than |threads| times one core's: cores are
 * slower together, or hardware threads share one. */
typedef struct weir_peak_cores {
  int threads;
  double f32_gflops, f64_gflops;
} weir_peak_cores;

/* Measures for some tens of ms, with threads of its own. |profile| as
 * weir_peak_measure. Errors: W6003 (no thread), W6001. */
weir_status weir_peak_measure_cores(const weir_env *env, uint64_t profile,
                                    int threads, weir_peak_cores *out,
                                    weir_error *err);

#endif
