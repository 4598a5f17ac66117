/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_NORMAL_H_
#define KERNELS_NORMAL_H_

#include <math.h>

/* Two normal numbers |z| of two numbers |u| and |v| of [0, 1). Kernels of a CPU
 * give these bits. Source: Box and Muller, Annals of Mathematical Statistics 29
 * (1958) 610-611. */
static inline void weir_normal_pair(double u, double v, double z[2]) {
  double radius = sqrt(-2 * log1p(-u)); /* 1 - u is never 0 */
  z[0] = radius * cos(2 * M_PI * v);
  z[1] = radius * sin(2 * M_PI * v);
}

#endif
