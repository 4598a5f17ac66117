/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_CPU_ISA_RANDOM_H_
#define KERNELS_CPU_ISA_RANDOM_H_

#include <stdint.h>

#include "kernels/cpu/isa/isa.h"

/* Elements [first, first + n) of a dropout; pointers are to element |first|,
 * which is a multiple of 4. An element stays if the upper 24 bits of its word
 * (kernels/philox.h) are below |below|. y may be x. */
typedef struct weir_dropout {
  const float *x;
  float *y;
  uint8_t *mask; /* NULL: not wanted */
  int64_t first, n;
  uint64_t key, step;
  uint32_t below;
  float scale;
} weir_dropout;

/* Elements [first, first + n) of random numbers (kernels/draw.h), uniform or
 * normal; |y| is to element |first|, a multiple of 4. */
typedef struct weir_numbers {
  float *y;
  int64_t first, n;
  uint64_t key, step;
  double offset, scale;
  float high;
} weir_numbers;

struct weir_random_table {
  void (*dropout)(const weir_dropout *d);
  void (*uniform)(const weir_numbers *d);
  void (*normal)(const weir_numbers *d); /* |high| is not looked at */
};

#endif
