/* SPDX-License-Identifier: Apache-2.0 */
/* Peak rate of products that are added.
 *
 * A sum waits for the one before it, four or five cycles, and a core begins two
 * of them in a cycle: so ten sums that do not wait for each other keep it busy,
 * and leave registers for the factors where there are sixteen. Values stay
 * finite: each sum goes to 1 / (1 - factor).
 *
 * Cost: |turns| times ten vectors. */
#include "kernels/cpu/peak/peak.h"

#include "kernels/cpu/isa/vec.h"

enum { SUMS = 10 };

typedef double vd __attribute__((vector_size(4 * WEIR_ISA_LANES)));

/* The text of both loops; only the vector's type differs. The factor comes from
 * memory that the compiler must read: else it finds sums that do not change. */
#define PEAK_LOOP(vector, number)                                    \
  const volatile number half = (number)0.5;                          \
  vector sums[SUMS], factor = half - (vector){0};                    \
  vector one = (number)1 - (vector){0};                              \
  const int lanes = (int)(sizeof(vector) / sizeof(number));          \
  for (int i = 0; i < SUMS; i++) sums[i] = (number)i - (vector){0};  \
  for (int64_t t = 0; t < turns; t++)                                \
    for (int i = 0; i < SUMS; i++) sums[i] = sums[i] * factor + one; \
  vector all = sums[0];                                              \
  for (int i = 1; i < SUMS; i++) all += sums[i];                     \
  *sink = 0;                                                         \
  for (int i = 0; i < lanes; i++) *sink += (double)all[i];           \
  return turns * SUMS * 2 * lanes

static int64_t peak_f32(int64_t turns, double *sink) {
  PEAK_LOOP(vf, float);
}

static int64_t peak_f64(int64_t turns, double *sink) {
  PEAK_LOOP(vd, double);
}

extern const struct weir_peak_table ISA(peak);
const struct weir_peak_table ISA(peak) = {.f32 = peak_f32, .f64 = peak_f64};
