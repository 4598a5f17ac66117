/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_PROFILES_H_
#define TESTS_PROFILES_H_

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/profile.h"

/* The profiles that a test of kernels walks over, best first. WEIR_ISA caps
 * them, and oneDNN, as it does for the command. */

enum { PROFILES = 3 };

typedef struct test_profiles {
  int count;
  uint64_t list[PROFILES];
} test_profiles;

/* false: this machine lacks the set that WEIR_ISA names; said already. */
static inline bool test_profiles_find(test_profiles *out) {
  const char *cap = getenv("WEIR_ISA");
  uint64_t best = weir_profile_best(), next;
  weir_error err = WEIR_ERROR_INIT;
  *out = (test_profiles){0};
  if (cap != NULL && (weir_profile_named(cap, &best, &err) != WEIR_OK ||
                      weir_profile_use(best, &err) != WEIR_OK)) {
    fprintf(stderr, "WEIR_ISA=%s: %s\n", cap, err.message);
    return false;
  }
  for (int i = 0; (next = weir_profile_at(i)) != 0; i++)
    if (weir_profile_level(next) <= weir_profile_level(best))
      out->list[out->count++] = weir_profile_common(next, best);
  return true;
}

#endif
