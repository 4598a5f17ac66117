/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_PROFILES_H_
#define TESTS_PROFILES_H_

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/profile.h"

/* Profiles of tests and benchmarks. WEIR_ISA caps them, and oneDNN, as it does
 * for the command. A test of kernels walks over them, best first. */

enum { PROFILES = 3 };

typedef struct test_profiles {
  int count;
  uint64_t list[PROFILES];
} test_profiles;

/* The profile that WEIR_ISA names, or the best one. false: this machine lacks
 * it; said already. */
static inline bool test_profile_capped(uint64_t *out) {
  const char *cap = getenv("WEIR_ISA");
  weir_error err = WEIR_ERROR_INIT;
  *out = weir_profile_best();
  if (cap == NULL || (weir_profile_named(cap, out, &err) == WEIR_OK &&
                      weir_profile_use(*out, &err) == WEIR_OK))
    return true;
  fprintf(stderr, "WEIR_ISA=%s: %s\n", cap, err.message);
  return false;
}

/* false: as test_profile_capped. */
static inline bool test_profiles_find(test_profiles *out) {
  uint64_t best, next;
  *out = (test_profiles){0};
  if (!test_profile_capped(&best)) return false;
  for (int i = 0; (next = weir_profile_at(i)) != 0; i++)
    if (weir_profile_level(next) <= weir_profile_level(best))
      out->list[out->count++] = weir_profile_common(next, best);
  return true;
}

#endif
