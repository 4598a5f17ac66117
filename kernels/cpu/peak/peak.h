/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_PEAK_H_
#define KERNELS_CPU_PEAK_H_

#include <stdint.h>

/* What one core does at best: products that are added, in registers alone.
 *
 * Each does |turns| turns of a fixed number of them and returns how many
 * operations those were, a product and a sum counting two. |*sink| takes a
 * number made of all results, so that no compiler leaves them out. */

struct weir_peak_table {
  int64_t (*f32)(int64_t turns, double *sink);
  int64_t (*f64)(int64_t turns, double *sink);
};

#endif
