/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_PREDICT_LATENCY_H_
#define WEIR_DIST_PREDICT_LATENCY_H_

#include <stdint.h>

/* Times of any number of requests in little memory: 16 bins for each power of
 * two, so a quantile is off by at most 1/16. */

enum { WEIR_LATENCY_BINS = 16 * 60 };

typedef struct weir_latency {
  uint64_t count, bins[WEIR_LATENCY_BINS];
} weir_latency;

/* Counts one of |ns|. */
void weir_latency_add(weir_latency *l, int64_t ns);
/* The time that a share |q| (0 to 1) of all requests stay within, the end of
 * its bin; 0 without any. */
int64_t weir_latency_at(const weir_latency *l, double q);

#endif
