/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CUDA_STANDIN_BUGS_H_
#define TESTS_CUDA_STANDIN_BUGS_H_

#include <stdbool.h>

/* Planted bugs. STANDIN_BUG=name makes the stand-in behave as if the author of
 * the module had made that mistake: a call is left out, comes too early or has
 * a wrong argument. The suites must find each one (test_cuda_planted.py). A
 * name that is not in bugs.def ends the process. */

#if defined(__cplusplus)
extern "C" {
#endif

typedef enum standin_bug {
  STANDIN_BUG_none,
#define STANDIN_BUG(name) STANDIN_BUG_##name,
#include "tests/cuda/standin/bugs.def"
#undef STANDIN_BUG
} standin_bug;

extern standin_bug standin_planted; /* set before main */

static inline bool standin_has(standin_bug bug) {
  return standin_planted == bug;
}

#if defined(__cplusplus)
}
#endif

#endif
