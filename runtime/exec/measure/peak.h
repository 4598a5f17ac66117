/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_MEASURE_PEAK_H_
#define WEIR_EXEC_MEASURE_PEAK_H_

#include "runtime/base/env.h"
#include "runtime/tensor/dtype.h"

/* The peak of one core of this machine, by short loops in the calling thread:
 * products that are added, in registers, and copies of several sizes. */

enum { WEIR_PEAK_COPIES = 4 };

typedef struct weir_peak_copy {
  int64_t bytes;   /* read and written by one copy */
  double gb_per_s; /* of both together */
} weir_peak_copy;

typedef struct weir_peak {
  const char *isa;               /* the instruction set of the loops */
  double f32_gflops, f64_gflops; /* a product and a sum are two operations */
  weir_peak_copy copies[WEIR_PEAK_COPIES]; /* smallest first */
} weir_peak;

/* Measures; takes some 50 ms and 32 MB. |profile|: kernels/profile.h; 0: this
 * machine's best. Errors: W6001. */
weir_status weir_peak_measure(const weir_env *env, uint64_t profile,
                              weir_peak *out, weir_error *err);

/* The least time, in ns, in which |threads| cores can do |flops| operations on
 * |dtype| and move |bytes|, the longer of both. Bytes move as quickly as in the
 * smallest copy that is not smaller. */
double weir_peak_least_ns(const weir_peak *peak, int threads, weir_dtype dtype,
                          int64_t flops, int64_t bytes);

#endif
