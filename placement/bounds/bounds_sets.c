/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/bounds/bounds_sets.h"

#include <assert.h>
#include <string.h>

/* Nodes with the same request and the same kernels have the same set. */
typedef struct origin {
  uint32_t allowed, set;
  uint64_t kernels; /* classes with one */
} origin;

enum { ORIGINS = 128 };

static uint64_t kernels_of(const weir_place_problem *p, uint32_t n) {
  uint64_t mask = 0;
  for (uint32_t c = 0; c < p->class_count; c++)
    if (p->cost[(size_t)n * p->class_count + c] != WEIR_PLACE_NO_KERNEL)
      mask |= UINT64_C(1) << c;
  return mask;
}

/* The number of the set of |n|; 0 when there are too many. */
static uint32_t add_set(const weir_place_problem *p, weir_bound_sets *s,
                        uint32_t n) {
  uint64_t words[WEIR_PLACE_DEVICES / 64] = {0}, classes = 0;
  int64_t devices = 0;
  for (uint32_t d = 0; d < p->device_count; d++) {
    if (weir_place_cost(p, n, d) == WEIR_PLACE_NO_KERNEL) continue;
    words[d >> 6] |= UINT64_C(1) << (d & 63);
    classes |= UINT64_C(1) << p->devices[d].cls;
    devices++;
  }
  for (uint32_t i = 0; i < s->count; i++)
    if (memcmp(s->words[i], words, sizeof words) == 0) return i;
  if (s->count == WEIR_BOUND_SETS) return 0; /* all devices: weaker, true */
  assert(s->count > 0);
  memcpy(s->words[s->count], words, sizeof words);
  s->classes[s->count] = classes;
  s->devices[s->count] = devices;
  return s->count++;
}

void weir_bound_sets_find(const weir_place_problem *p, weir_bound_sets *s) {
  origin origins[ORIGINS];
  uint32_t count = 0, at = 0;
  memset(s->words, 0, sizeof s->words);
  s->classes[0] = 0;
  for (uint32_t d = 0; d < p->device_count; d++) {
    s->words[0][d >> 6] |= UINT64_C(1) << (d & 63);
    s->classes[0] |= UINT64_C(1) << p->devices[d].cls;
  }
  s->devices[0] = p->device_count;
  s->count = 1;
  for (uint32_t n = 0; n < p->node_count; n++) {
    uint64_t kernels = kernels_of(p, n);
    if (at >= count || origins[at].allowed != p->allowed[n] ||
        origins[at].kernels != kernels) /* mostly that of the node before */
      for (at = 0; at < count; at++)
        if (origins[at].allowed == p->allowed[n] &&
            origins[at].kernels == kernels)
          break;
    if (at == count && count < ORIGINS)
      origins[count++] = (origin){p->allowed[n], add_set(p, s, n), kernels};
    s->of[n] = at < count ? (uint8_t)origins[at].set : 0;
  }
}

bool weir_bound_set_in(const weir_bound_sets *s, uint32_t a, uint32_t b) {
  assert(a < s->count && b < s->count);
  for (uint32_t w = 0; w < WEIR_PLACE_DEVICES / 64; w++)
    if ((s->words[a][w] & ~s->words[b][w]) != 0) return false;
  return true;
}
