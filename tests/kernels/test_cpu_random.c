/* SPDX-License-Identifier: Apache-2.0 */
/* Uniform and normal numbers of every instruction set, against the formulas,
 * bit by bit: series may not be rounded otherwise than the library's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/isa/choose.h"
#include "kernels/cpu/isa/random.h"
#include "kernels/normal.h"
#include "kernels/philox.h"
#include "tests/kernels/bed.h"

enum { LONG = 1 << 18, SHORT = 400 };

static float formula(const weir_numbers *d, bool normal, int64_t i) {
  weir_philox p =
      weir_philox_block(d->key, d->step, (uint64_t)(d->first + i) / 4);
  const uint32_t *pair = &p.word[i % 4 & ~1];
  double z[2] = {(double)weir_uniform_f32(pair[0]),
                 (double)weir_uniform_f32(pair[1])};
  if (normal) weir_normal_pair(z[0], z[1], z);
  volatile double scaled = d->scale * z[i % 2]; /* rounded */
  float y = (float)(d->offset + scaled);
  return !normal && y >= d->high ? (float)d->offset : y;
}

static void check(const weir_isa *isa, weir_numbers d, bool normal) {
  d.y[d.n] = 77;
  (normal ? isa->random->normal : isa->random->uniform)(&d);
  for (int64_t i = 0; i < d.n; i++) {
    float want = formula(&d, normal, i);
    if (memcmp(&want, &d.y[i], sizeof want) != 0)
      fail_msg("%s, %s of %g, %g: element %d of %d is %.9g, not %.9g",
               isa->name, normal ? "normal" : "uniform", d.offset, d.scale,
               (int)i, (int)d.n, (double)d.y[i], (double)want);
  }
  assert_true(d.y[d.n] == 77);
}

/* Offset, scale, bound; the last ones round in the middle of nowhere, so that
 * every number is made slowly, and to the bound. */
static const double kRanges[][3] = {{0, 1, INFINITY},   {-0.3, 0.4, 0.1},
                                    {3.7, 0.01, 3.71},  {1e6, 1e-3, 2e6},
                                    {0, INFINITY, 1e9}, {-1, 1 + 1e-9, 0}};

static void bits_are_the_formulas(void **state) {
  float *y = bed_memory((LONG + 1) * sizeof *y);
  const weir_isa *isa = NULL;
  (void)state;
  for (int k = 0; (isa = weir_isa_at(k)) != NULL; k++)
    for (size_t r = 0; r < sizeof kRanges / sizeof *kRanges; r++) {
      weir_numbers d = {.y = y,
                        .first = 4 * INT64_C(12345678901),
                        .key = 0xfedcba9876543210u + r,
                        .step = 0x100000007u,
                        .offset = kRanges[r][0],
                        .scale = kRanges[r][1],
                        .high = (float)kRanges[r][2]};
      for (d.n = 1; d.n < SHORT; d.n += 13)
        for (int normal = 0; normal < 2; normal++) check(isa, d, normal);
      d.n = r < 3 ? LONG : SHORT;
      for (int normal = 0; normal < 2; normal++) check(isa, d, normal);
    }
  free(y);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bits_are_the_formulas)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
