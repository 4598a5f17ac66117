/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/predict/latency.h"

/* Times below 16 ns have a bin each. A time in [2^k, 2^(k+1)), k of 4 or more,
 * goes by its first five bits: 16 bins for each k. */

static unsigned bin_of(uint64_t ns) {
  if (ns < 16) return (unsigned)ns;
  unsigned k = 63 - (unsigned)__builtin_clzll(ns);
  return (k - 3) * 16 + (unsigned)(ns >> (k - 4) & 15);
}

/* The largest time of bin |i|. */
static int64_t end_of(unsigned i) {
  if (i < 16) return (int64_t)i;
  unsigned k = i / 16 + 3;
  return (int64_t)(((uint64_t)(16 + i % 16 + 1) << (k - 4)) - 1);
}

void weir_latency_add(weir_latency *l, int64_t ns) {
  uint64_t most = (uint64_t)1 << 62;
  uint64_t value = ns < 0 ? 0 : (uint64_t)ns;
  l->bins[bin_of(value < most ? value : most - 1)]++;
  l->count++;
}

int64_t weir_latency_at(const weir_latency *l, double q) {
  uint64_t below = 0, wanted = (uint64_t)(q * (double)l->count);
  if (l->count == 0) return 0;
  if (wanted >= l->count) wanted = l->count - 1;
  for (unsigned i = 0; i < WEIR_LATENCY_BINS; i++) {
    below += l->bins[i];
    if (below > wanted) return end_of(i);
  }
  return INT64_MAX; /* not reached: the bins hold |count| times */
}
